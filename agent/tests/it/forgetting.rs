//! `undo --forget`, as a person would, also where the disk is full.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::Command;

use crate::support::{home::Home, pty::Pty};

/// A home in which so many commands were kept, each with what a file held before.
fn after(commands: usize) -> Home {
    let home = Home::new();
    std::fs::write(home.project().join("a.txt"), "12345\n").unwrap();
    for number in 0..commands {
        exec(&home, &format!("echo {number} > a.txt"));
    }
    home
}

fn exec(home: &Home, line: &str) {
    home.ok(&["exec", "--grant", "fs.*=.", "--", line]);
}

/// The numbers of the commits that are listed.
fn listed(home: &Home) -> Vec<String> {
    let list = home.ok(&["undo", "--list", "--all"]);
    let numbers = list.lines().filter(|line| !line.starts_with("      "));
    numbers
        .filter(|line| !line.starts_with("there is nothing"))
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn what_is_forgotten_by_its_number_is_gone_and_on_record() {
    let home = after(3);
    let list = home.ok(&["undo", "--list"]);
    assert!(list.contains("      6 bytes kept of it\n"), "{list}");
    // Nobody can be asked.
    let ran = home.run(&["undo", "--forget", "1", "3"]);
    assert_eq!(ran.code, Some(77), "{}", ran.err);
    assert!(
        ran.err.contains("`--yes` forgets without asking"),
        "{}",
        ran.err
    );
    assert_eq!(listed(&home), ["3", "2", "1"]);
    let told = home.ok(&["undo", "--forget", "1", "3", "--yes"]);
    assert_eq!(told, "forgot 2 commits (8 bytes kept of them)\n");
    assert_eq!(listed(&home), ["2"]);
    let text = std::fs::read_to_string(home.project().join("a.txt"));
    assert_eq!(text.unwrap(), "2\n");
    let ledger = home.ledger();
    assert!(
        ledger.contains("what is kept of commit 1, 3 is removed, as a person typed"),
        "{ledger}"
    );
    assert!(home.ok(&["audit", "verify"]).contains("whole"));
    let ran = home.run(&["undo", "3"]);
    assert_eq!(ran.code, Some(64), "{}", ran.err);
    exec(&home, "echo later > a.txt");
    assert_eq!(listed(&home), ["4", "2"], "no number is given twice");
}

#[test]
fn what_happened_anywhere_is_listed_and_forgotten_in_a_home_too() {
    let home = after(2);
    let at_home = |arguments: &[&str]| home.run_in(home.path(), arguments);
    // Nothing can be worked on there, so nothing is taken back or listed for it alone.
    for arguments in [&["undo"][..], &["undo", "--list"]] {
        let ran = at_home(arguments);
        assert_eq!(ran.code, Some(64), "{}", ran.err);
        assert!(ran.err.contains("cannot be worked in"), "{}", ran.err);
    }
    let list = at_home(&["undo", "--list", "--all"]);
    assert_eq!((list.code, list.err.as_str()), (Some(0), ""));
    assert_eq!(list.out, home.ok(&["undo", "--list", "--all"]));
    let told = at_home(&["undo", "--forget", "2", "--yes"]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert_eq!(listed(&home), ["1"]);
    let ran = at_home(&["undo", "--forget", "--all-but", "0", "--yes"]);
    assert_eq!(ran.code, Some(64), "{}", ran.err);
    let all = ["undo", "--forget", "--all-but", "0", "--all", "--yes"];
    assert_eq!(at_home(&all).code, Some(0));
    assert_eq!(listed(&home), [""; 0]);
    assert!(home.ok(&["audit", "verify"]).contains("whole"));
}

#[test]
fn all_but_the_newest_and_those_of_before_a_day_go_here_and_nowhere_else() {
    let home = after(3);
    let other = home.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let ran = home.run_in(&other, &["exec", "--grant", "fs.*=.", "--", "echo > b.txt"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let forget = |more: &[&str]| home.ok(&[&["undo", "--forget", "--yes"], more].concat());
    assert_eq!(
        forget(&["--before", "2020-01-01"]),
        "there is nothing to forget\n"
    );
    assert_eq!(forget(&["--all-but", "3"]), "there is nothing to forget\n");
    forget(&["--all-but", "2"]);
    assert_eq!(listed(&home), ["4", "3", "2"]);
    forget(&["--before", "9999-01-01"]);
    assert_eq!(listed(&home), ["4"]);
    assert_eq!(forget(&["--all-but", "0"]), "there is nothing to forget\n");
    forget(&["--all-but", "0", "--all"]);
    assert_eq!(listed(&home), [""; 0]);
}

#[test]
fn what_means_nothing_forgets_nothing() {
    let home = after(1);
    for words in [
        &["--forget"][..],
        &["--forget", "--all"],
        &["--forget", "1", "--all"],
        &["--forget", "1", "--all-but", "0"],
        &["--forget", "--all-but", "0", "--before", "2026-01-01"],
        &["--forget", "--before", "yesterday"],
        &["--forget", "9"],
        &["--forget", "1", "9"],
        &["--forget", "1", "--list"],
        &["--forget", "1", "--last", "1"],
        &["--all-but", "0"],
        &["--yes"],
        &["--all"],
    ] {
        let ran = home.run(&[&["undo"], words].concat());
        assert_eq!(ran.code, Some(64), "{words:?}: {}{}", ran.out, ran.err);
        assert_eq!(listed(&home), ["1"], "{words:?}");
    }
}

#[test]
fn a_person_is_shown_what_goes_and_only_the_word_yes_forgets_it() {
    let home = after(2);
    for (answer, left) in [("y", &["2", "1"][..]), ("", &["2", "1"]), ("yes", &["2"])] {
        let mut pty = Pty::start(&home, &["undo", "--forget", "1"], &[]);
        pty.sees("forget commit 1 (6 bytes kept of it)?");
        assert!(pty.shown().contains("echo 0 > a.txt"), "{}", pty.shown());
        pty.keys(&format!("{answer}\r"));
        assert_eq!(pty.ended().success(), answer == "yes");
        assert_eq!(listed(&home), left, "{answer:?}");
    }
}

/// Ledger and journal lie on a disk in memory which is full, seen by nobody else.
#[test]
fn on_a_full_disk_the_error_names_the_command_and_the_command_makes_room() {
    let home = after(0);
    let state = home.path().join("small");
    std::fs::create_dir(&state).unwrap();
    let script = r#"
mount -t tmpfs -o size=1m,mode=700 tmpfs "$1" || exit 96
exec 2>&1
program=$2 state=$1
exec_it() { "$program" exec --state-dir "$state" --grant 'fs.*=.' -- "$1"; echo "= $?"; }
head -c 300000 /dev/zero > long; head -c 900000 /dev/zero > longer
exec_it 'echo 1 > long'
echo '- no room in the journal'
exec_it 'rm longer'
echo '- no room in the ledger'
dd if=/dev/zero of="$state/fill" bs=4096 2> /dev/null
while : >> "$state/fill" && head -c 1 /dev/zero >> "$state/fill"; do :; done 2> /dev/null
exec_it 'echo 2 > long'
echo '- forgotten'
"$program" undo --state-dir "$state" --forget 1 --yes; echo "= $?"
exec_it 'echo 3 > long'
"$program" audit --state-dir "$state" verify; echo "= $?"
echo '- the ledger'
cat "$state/ledger.jsonl"
"#;
    let ran = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(&state)
        .arg(env!("CARGO_BIN_EXE_hermitcrab"))
        .current_dir(home.project())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .output()
        .unwrap();
    if ran.status.code() == Some(96) {
        println!("SKIPPED: no disk can be mounted here");
        return;
    }
    let told = String::from_utf8_lossy(&ran.stdout).into_owned();
    let parts: Vec<&str> = told.split("\n- ").collect();
    let [first, journal, ledger, forgotten, records] = parts[..] else {
        panic!("{told}")
    };
    assert!(first.ends_with("= 0"), "{told}");
    let names = format!("the file system at {} has ", state.display());
    for (part, code) in [(journal, "= 77"), (ledger, "= 74")] {
        assert!(part.contains(&names), "{part}");
        assert!(part.contains("hermitcrab undo --forget ID"), "{part}");
        assert!(part.ends_with(code), "{part}");
    }
    assert!(ledger.contains("ledger.jsonl` has no room"), "{ledger}");
    assert_eq!(
        forgotten.lines().filter(|line| *line == "= 0").count(),
        3,
        "{told}"
    );
    assert!(
        forgotten.contains("forgot commit 1 (300000 bytes kept of it)"),
        "{told}"
    );
    assert!(
        records.contains("what is kept of commit 1 is removed, as a person typed"),
        "{records}"
    );
}

#[test]
fn programs_are_told_of_each_commit_by_an_object() {
    let home = after(2);
    home.ok(&["undo"]);
    let list = home.ok(&["undo", "--list", "--json"]);
    let all: Vec<serde_json::Value> = list
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let numbers: Vec<_> = all.iter().map(|one| one["id"].as_u64().unwrap()).collect();
    // An undo stands for what it took back.
    assert_eq!(numbers, [3, 1], "{list}");
    assert_eq!(all[0]["undoes"], 2, "{list}");
    let path = home.project().join("a.txt").display().to_string();
    let changes = serde_json::json!([{"verb": "fs.modify", "path": path}]);
    for (key, wanted) in [
        ("undoes", serde_json::Value::Null),
        ("bytes", 6.into()),
        ("stuck", false.into()),
        ("waits", false.into()),
        ("note", "echo 0 > a.txt".into()),
        ("changes", changes),
    ] {
        assert_eq!(all[1][key], wanted, "{list}");
    }
    // Elsewhere there is nothing, which is no words for a program.
    let other = home.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let there = ["undo", "--list", "--json", "--workspace", "../other"];
    assert_eq!(home.ok(&there), "");
    assert_eq!(home.run(&["undo", "--json"]).code, Some(64));
}

/// A commit that was cut off just before it stood, in a directory that has another name now.
fn waiting() -> (Home, std::path::PathBuf) {
    let home = after(1);
    let entry = home.state("journal").join("00000001");
    std::fs::rename(entry.join("committed"), entry.join("plan")).unwrap();
    let away = home.path().join("away");
    std::fs::rename(home.project(), &away).unwrap();
    (home, away)
}

#[test]
fn what_waits_for_a_directory_that_never_comes_is_listed_told_and_forgotten() {
    let (home, away) = waiting();
    let at_home = |arguments: &[&str]| home.run_in(home.path(), arguments);
    let list = at_home(&["undo", "--list", "--all"]);
    let said = "taken back when its directories can be reached";
    assert!(list.out.contains(said), "{}", list.out);
    let list = at_home(&["undo", "--list", "--all", "--json"]);
    let one: serde_json::Value = serde_json::from_str(&list.out).unwrap();
    assert_eq!(one["waits"], true, "{}", list.out);
    let ledger = home.ledger();
    assert!(ledger.contains("commit 1 was cut off, and"), "{ledger}");
    // Nobody takes it back by hand, and it is none of those that are old.
    let other = home.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let ran = home.run_in(&other, &["undo", "1"]);
    assert_eq!(ran.code, Some(77), "{}", ran.err);
    assert!(
        ran.err.contains("`hermitcrab undo --forget 1` gives it up"),
        "{}",
        ran.err
    );
    let all = ["undo", "--forget", "--all-but", "0", "--all", "--yes"];
    assert_eq!(at_home(&all).out, "there is nothing to forget\n");
    let told = at_home(&["undo", "--forget", "1", "--yes"]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.out.contains("forgot commit 1"), "{}", told.out);
    let list = at_home(&["undo", "--list", "--all"]);
    assert!(
        list.out.contains("there is nothing to undo"),
        "{}",
        list.out
    );
    std::fs::rename(&away, home.project()).unwrap();
    let list = home.ok(&["undo", "--list"]);
    assert!(list.contains("there is nothing to undo"), "{list}");
    let text = std::fs::read_to_string(home.project().join("a.txt"));
    assert_eq!(text.unwrap(), "0\n");
}

#[test]
fn what_waits_is_taken_back_by_itself_when_its_directory_is_back() {
    let (home, away) = waiting();
    home.run_in(home.path(), &["undo", "--list", "--all"]);
    std::fs::rename(&away, home.project()).unwrap();
    assert_eq!(listed(&home), [""; 0]);
    let text = std::fs::read_to_string(home.project().join("a.txt"));
    assert_eq!(text.unwrap(), "12345\n");
}
