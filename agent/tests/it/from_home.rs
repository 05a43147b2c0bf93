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
