//! Lists for programs, asked for as they are asked for by a person.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::Value;

use crate::support::home::Home;

#[test]
fn a_list_is_given_as_json_where_it_is_shown_without_a_command_as_well() {
    let home = Home::new();
    home.ok(&["caps", "grant", "fs.delete=."]);
    for words in [&["caps", "--json"][..], &["caps", "list", "--json"]] {
        let line: Value = serde_json::from_str(&home.ok(words)).unwrap();
        assert_eq!(line["id"], "standing0", "{words:?}");
    }
    assert!(home.ok(&["caps", "--all"]).contains("standing0"));
    // What there is none of is no words in place of JSON.
    for words in [
        &["remembered", "--json"][..],
        &["cron", "--json"],
        &["servers", "--json"],
    ] {
        assert_eq!(home.ok(words), "", "{words:?}");
    }
    home.configure("[servers.notes]\nurl = \"https://notes.example.com/mcp\"\n");
    let line: Value = serde_json::from_str(&home.ok(&["servers", "--json"])).unwrap();
    assert_eq!(line["name"], "notes");
    // Before another command they would be passed over.
    for words in [
        &["caps", "--json", "revoke", "standing0"][..],
        &["remembered", "--json", "clear"],
        &["cron", "--json", "tick"],
    ] {
        let refused = home.run(words);
        assert_eq!(refused.code, Some(64), "{refused:?}");
        assert!(refused.err.contains("for the list"), "{refused:?}");
    }
    assert!(home.ok(&["caps"]).contains("standing0"));
}
