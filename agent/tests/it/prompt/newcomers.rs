//! What somebody does who has not read how it is done.

use super::{settled, start};

/// At the command line a number names a commit, at the prompt it is how many.
#[test]
fn more_changes_than_there_are_are_not_taken_back() {
    let home = settled("");
    let mut pty = start(&home);
    for name in ["one", "two"] {
        pty.keys(&format!("!touch {name}\r"));
        pty.until(|shown| shown.trim_end().ends_with("[deny]:"));
        pty.keys("once\r");
        pty.until(|shown| shown.trim_end().ends_with("takes it back\n>"));
        pty.prompt();
    }
    pty.keys("undo\r");
    pty.sees("took back commit 2");
    pty.prompt();
    pty.keys("undo 3\r");
    let shown = pty.sees("`undo commit 3` takes back commit 3");
    assert!(shown.contains("nothing was taken back"), "{shown}");
    pty.prompt();
    pty.keys("exit\r");
    assert!(pty.ended().success());
    assert!(home.project().join("one").exists());
    let ran = home.run(&["undo", "--last", "9"]);
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(ran.err.contains("but 1 change;"), "{ran:?}");
    let ran = home.run(&["undo", "one"]);
    assert!(ran.err.contains("it is the number of a commit"), "{ran:?}");
    assert!(
        home.ok(&["undo", "--last", "1"])
            .contains("took back commit 1")
    );
    assert!(!home.project().join("one").exists());
}
