//! What is kept, listed for programs.

use serde_json::{Value, json};

use super::{Home, with_grant};

fn listed(home: &Home, more: &[&str]) -> Value {
    let words = [&["caps", "list", "--json"][..], more].concat();
    serde_json::from_str(&home.ok(&words)).unwrap()
}

#[test]
fn a_program_reads_what_a_grant_allows_whether_it_counts_and_how_long() {
    let home = with_grant();
    let told = listed(&home, &[]);
    let on = home.project().to_string_lossy().into_owned();
    let holds = json!([{"verb": "fs.delete", "on": on, "below": true}]);
    assert_eq!(told["grants"], holds);
    assert_eq!(told["id"], "standing0");
    assert_eq!(told["workspace"], on.as_str());
    assert_eq!(
        (&told["state"], &told["why"]),
        (&json!("counts"), &Value::Null)
    );
    let left = told["seconds_left"].as_u64().unwrap();
    assert!(left > 29 * 24 * 3600, "{told}");

    home.ok(&["caps", "revoke", "standing0"]);
    assert_eq!(home.ok(&["caps", "list", "--json"]), "");
    let told = listed(&home, &["--all"]);
    assert_eq!(told["state"], "ended");
    assert_eq!(told["why"], "it was revoked");
    assert_eq!(told["seconds_left"], Value::Null);
}
