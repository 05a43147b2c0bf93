//! The program started where a terminal opens: in the home, above its own files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::home::Home;

/// A person's first look at the program is from their home, and its own files lie below that.
#[test]
fn what_is_kept_is_seen_and_ended_from_the_home_where_nothing_can_be_worked_on() {
    let home = Home::new();
    home.ok(&["caps", "grant", "fs.delete=."]);
    let from_home = |arguments: &[&str]| home.run_in(home.path(), arguments);
    let told = from_home(&["doctor"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    for words in ["isolation: isolated", "workspace: none here", "1 standing"] {
        assert!(told.out.contains(words), "{words}: {}", told.out);
    }
    let kept = from_home(&["caps"]);
    assert_eq!(kept.code, Some(0), "{kept:?}");
    assert!(kept.out.contains("caps list --all"), "{}", kept.out);
    assert!(
        from_home(&["caps", "list", "--all"])
            .out
            .contains("standing0")
    );
    for looks in [&["remembered"][..], &["servers"]] {
        assert_eq!(from_home(looks).code, Some(0), "{looks:?}");
    }
    for works in [&["exec", "--", "true"][..], &["caps", "grant", "fs.read=."]] {
        let refused = from_home(works);
        assert_eq!(refused.code, Some(64), "{refused:?}");
        assert!(refused.err.contains("--workspace DIR"), "{}", refused.err);
    }
    assert_eq!(from_home(&["caps", "revoke", "0"]).code, Some(0));
    assert!(
        from_home(&["caps", "list", "--all"])
            .out
            .contains("; it was revoked")
    );
    assert!(from_home(&["doctor"]).out.contains("0 standing"));
}

/// That nothing can be kept in a place says nothing about what was kept: it is another code than
/// that of a ledger that does not hold.
#[test]
fn where_nothing_can_be_kept_another_place_is_named_and_the_code_is_not_that_of_a_broken_ledger() {
    let home = Home::new();
    std::fs::write(home.path().join("file"), "").unwrap();
    let state = home.path().join("file/state").display().to_string();
    for words in [&["exec"][..], &["caps", "list"], &["chat"]] {
        let mut words = words.to_vec();
        words.extend(["--state-dir", &state]);
        if words.first() == Some(&"exec") {
            words.extend(["--", "true"]);
        }
        if words.first() == Some(&"chat") {
            words.extend(["--model", "m", "--base-url", "http://127.0.0.1:1/v1", "hi"]);
        }
        let told = home.run(&words);
        assert_eq!(told.code, Some(69), "{words:?}: {told:?}");
        assert!(
            told.err.contains("the state directory cannot be used")
                && told.err.contains("`--state-dir DIR` names another"),
            "{words:?}: {}",
            told.err
        );
    }
}

#[test]
fn a_state_directory_beside_the_workspace_is_named_from_there() {
    let home = Home::new();
    home.ok(&["exec", "--state-dir", "../st/of/this", "--", "true"]);
    assert!(home.path().join("st/of/this/ledger.jsonl").is_file());
    let below = home.run(&["exec", "--state-dir", "../proj/st", "--", "true"]);
    assert_eq!(below.code, Some(64), "{below:?}");
    assert!(below.err.contains("proj/st` is below it"), "{below:?}");
}
