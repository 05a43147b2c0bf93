//! What is on record moves elsewhere, and a chain holds in both places.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs::{self, File},
    process::Command,
};

use crate::{ledgers_of_all::all_kinds, support::home::Home};

#[test]
fn what_is_on_record_goes_elsewhere_and_what_comes_next_says_where_it_ended() {
    let (home, session, job) = all_kinds();
    home.ok(&["caps", "grant", "fs.create=./n.txt"]);
    let head = home.ok(&["audit", "head"]);
    let heads: Vec<&str> = head.lines().collect();
    assert_eq!(heads.len(), 3, "{head}");
    let of_others = [format!("acp/{session}"), format!("jobs/{job}")].map(|dir| home.state(&dir));
    let left = |name: &str| {
        of_others
            .iter()
            .filter(|dir| dir.join(name).exists())
            .count()
    };
    assert!(left("ledger.index") > 0);
    let to = home.path().join("records");
    let place = to.to_str().unwrap();
    let said = home.ok(&["audit", "archive", place]);
    for head in &heads {
        assert!(said.contains(head), "{said}");
    }
    // Nor does anything say where in what is gone a session began.
    assert_eq!((left("ledger.jsonl"), left("ledger.index")), (0, 0));
    // There they are three ledgers that hold, and end where they ended.
    assert_eq!(home.ok(&["audit", "head", "--state-dir", place]), head);
    let there = home.ok(&["audit", "--state-dir", place]);
    assert!(
        there.contains("note.txt") && there.contains("b.txt"),
        "{there}"
    );
    // Here a chain begins that names each of them.
    let verified = home.ok(&["audit", "verify"]);
    assert_eq!(verified.lines().count(), 1, "{verified}");
    let here = home.ledger();
    for (name, head) in ["", &format!("acp/{session}: "), &format!("jobs/{job}: ")]
        .iter()
        .zip(&heads)
    {
        assert!(
            here.contains(&format!("archived {name}{head} into ")),
            "{here}"
        );
    }
    // What is granted and what can be undone is where it was.
    let ran = home.run(&["exec", "--", "echo n > n.txt"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    home.ok(&["undo"]);
    home.ok(&["cron", "tick"]);
    assert!(home.ok(&["audit", "verify"]).contains("whole"));
    // A second time it goes to another place.
    let again = home.run(&["audit", "archive", place]);
    assert_eq!(again.code, Some(64), "{again:?}");
    home.ok(&["audit", "archive", &format!("{place}-2")]);
    assert!(home.ok(&["audit", "verify"]).contains("whole"));
}

#[test]
fn a_ledger_that_does_not_hold_or_is_written_stays_where_it_is() {
    let home = Home::new();
    let nothing = home.ok(&["audit", "archive", home.path().join("no").to_str().unwrap()]);
    assert!(nothing.contains("nothing was moved"), "{nothing}");
    home.ok(&["exec", "--", "true"]);
    let file = home.state("ledger.jsonl");
    let whole = fs::read(&file).unwrap();

    let busy = File::open(&file).unwrap();
    busy.lock().unwrap();
    let to = home.path().join("busy");
    let ran = home.run(&["audit", "archive", to.to_str().unwrap()]);
    assert!(ran.err.contains("a session writes it"), "{ran:?}");
    assert!(!to.exists());
    drop(busy);
    assert_eq!(fs::read(&file).unwrap(), whole);

    // A copy that does not fit leaves nothing in the way of the next.
    let to = home.path().join("short");
    let line = format!(
        "ulimit -f 1; exec {} audit archive {}",
        env!("CARGO_BIN_EXE_hermitcrab"),
        to.display()
    );
    let ran = Command::new("bash")
        .args(["-c", &line])
        .current_dir(home.project())
        .env("HOME", home.path())
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(74), "{ran:?}");
    assert!(!to.exists());
    assert_eq!(fs::read(&file).unwrap(), whole);

    let mut changed = whole.clone();
    let at = changed.len() / 2;
    changed[at] ^= 1;
    fs::write(&file, &changed).unwrap();
    let to = home.path().join("damaged");
    let ran = home.run(&["audit", "archive", to.to_str().unwrap()]);
    assert_eq!(ran.code, Some(74), "{ran:?}");
    assert!(!to.exists());
    assert_eq!(fs::read(&file).unwrap(), changed);

    // Nor does one of which records are missing at its end, which its anchor knows.
    let text = String::from_utf8(whole).unwrap();
    let shorter = text.trim_end().rsplit_once('\n').unwrap().0.to_owned() + "\n";
    fs::write(&file, &shorter).unwrap();
    let ran = home.run(&["audit", "archive", to.to_str().unwrap()]);
    assert_eq!(ran.code, Some(74), "{ran:?}");
    assert!(ran.err.contains("lacks records"), "{ran:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), shorter);
}
