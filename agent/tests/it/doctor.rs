//! What the doctor tells programs is what it tells people.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::Value;

use crate::support::home::Home;

#[test]
fn programs_are_told_of_each_mechanism_what_people_are() {
    let home = Home::new();
    let (said, json) = (home.run(&["doctor"]), home.run(&["doctor", "--json"]));
    let told: Value = serde_json::from_str(&json.out).unwrap();
    let isolation = told["isolation"].as_str().unwrap();
    assert!(
        said.out.contains(&format!("isolation: {isolation}")),
        "{}",
        said.out
    );
    let is_isolated = isolation == "isolated";
    assert_eq!(json.code, Some(if is_isolated { 0 } else { 69 }));
    assert_eq!(told["failure"].is_null(), is_isolated, "{told}");
    let mechanisms = told["mechanisms"].as_array().unwrap();
    assert!(mechanisms.len() > 10, "{told}");
    for row in mechanisms {
        let name = row["mechanism"].as_str().unwrap();
        let own = format!("{name} ");
        let line = said.out.lines().find(|line| line.starts_with(&own));
        let line = line.unwrap_or_else(|| panic!("{name}: {}", said.out));
        let words: Vec<&str> = line[name.len()..].split_whitespace().collect();
        let used = row["used"].as_bool().unwrap();
        let at = if words[0] == "not" { 2 } else { 1 };
        assert_eq!(words[at] == "yes", used, "{line}");
        assert_eq!(words[0] == "yes", row["available"] == true, "{line}");
        let is_mandatory = row["mandatory"].as_bool().unwrap();
        assert_eq!(!line.ends_with("(not required)"), is_mandatory, "{line}");
        assert!(!is_isolated || !is_mandatory || used, "{line}");
    }
}
