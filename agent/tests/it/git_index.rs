//! Looking at a repository changes git's index, and nobody is asked about that.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::Command;

use crate::support::home::Home;

/// A project with a repository in it, whose index knows other times than its files have.
fn repository() -> Home {
    let home = Home::new();
    let git = |arguments: &[&str]| {
        let done = Command::new("git")
            .args(arguments)
            .current_dir(home.project())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", home.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{arguments:?}: {done:?}");
    };
    git(&["init", "-q"]);
    std::fs::write(home.project().join("b.txt"), "b\n").unwrap();
    git(&["add", "-A"]);
    let who = ["-c", "user.name=A", "-c", "user.email=a@b"];
    git(&[&who[..], &["commit", "-q", "-m", "first"]].concat());
    let other = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let file = std::fs::File::options()
        .write(true)
        .open(home.project().join("a.txt"))
        .unwrap();
    file.set_modified(other).unwrap();
    home
}

fn index(home: &Home) -> Vec<u8> {
    std::fs::read(home.project().join(".git/index")).unwrap()
}

#[test]
fn to_look_at_a_repository_needs_no_grant_and_changes_nothing() {
    let home = repository();
    let before = index(&home);
    for command in ["git status -s", "git diff --stat", "git status | cat"] {
        let ran = home.run(&["exec", "--", command]);
        assert_eq!(ran.code, Some(0), "{command}: {ran:?}");
        assert_eq!(ran.err, "", "{command}");
        assert!(index(&home) == before, "{command}");
    }
}

/// A file as young as the index may have been changed since without a trace, so git looks
/// into it and writes the same index anew, for its time alone.
#[test]
fn an_index_that_is_only_written_anew_is_left_out_as_well() {
    let home = repository();
    let status = || {
        let status = Command::new("git")
            .args(["status", "-s"])
            .current_dir(home.project())
            .output();
        assert!(status.unwrap().status.success());
    };
    status();
    let place = home.project().join(".git/index");
    let young = std::fs::metadata(home.project().join("b.txt"))
        .unwrap()
        .modified()
        .unwrap();
    let time = || std::fs::metadata(&place).unwrap().modified().unwrap();
    std::fs::File::options()
        .write(true)
        .open(&place)
        .unwrap()
        .set_modified(young)
        .unwrap();
    let ran = home.run(&["exec", "--dry-run", "--", "git status -s"]);
    assert!(!ran.err.contains("changed file"), "only its time: {ran:?}");
    let ran = home.run(&["exec", "--", "git status -s"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(time(), young);
    // It is what this is about: outside, its time is another one afterwards.
    status();
    assert!(time() > young);
    // The time of what is no index is somebody's.
    for command in ["touch .git/HEAD", "touch index", "touch a.txt"] {
        std::fs::write(home.project().join("index"), "x").unwrap();
        let ran = home.run(&["exec", "--", command]);
        assert_eq!(ran.code, Some(77), "{command}: {ran:?}");
    }
}

#[test]
fn what_stages_something_is_asked_about_and_so_is_all_that_comes_with_it() {
    let home = repository();
    std::fs::write(home.project().join("a.txt"), "other\n").unwrap();
    let before = index(&home);
    for command in [
        "git add a.txt",
        "git update-index --assume-unchanged b.txt",
        "git status; echo x > c.txt",
        "git status; cp .git/HEAD .git/index",
        "git status; chmod 600 .git/index",
        "git status; mv .git/index index",
    ] {
        let ran = home.run(&["exec", "--", command]);
        assert_eq!(ran.code, Some(77), "{command}: {ran:?}");
        assert!(index(&home) == before, "{command}");
    }
}

#[test]
fn where_it_is_held_git_is_quicker_the_next_time() {
    let home = repository();
    let before = index(&home);
    let ran = home.run(&[
        "exec",
        "--grant",
        "fs.modify=.git/index",
        "--",
        "git status -s",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let after = index(&home);
    assert!(after != before, "it was brought up to date");
}

#[test]
fn one_that_got_another_mode_is_asked_about() {
    for command in [
        "git status; chmod 600 .git/index",
        "git status; chmod 600 .git/index; echo x > c.txt",
    ] {
        let home = repository();
        let before = index(&home);
        let ran = home.run(&["exec", "--grant", "fs.create=c.txt", "--", command]);
        assert_eq!(ran.code, Some(77), "{command}: {ran:?}");
        assert!(index(&home) == before, "{command}");
        assert!(!home.project().join("c.txt").exists(), "{command}");
    }
}

#[test]
fn beside_a_change_that_is_held_it_is_left_out_and_the_change_stands() {
    let home = repository();
    let before = index(&home);
    let command = "git status -s; echo x > c.txt";
    let ran = home.run(&["exec", "--grant", "fs.create=c.txt", "--", command]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.err, "");
    assert!(index(&home) == before);
    assert!(home.project().join("c.txt").exists());
}
