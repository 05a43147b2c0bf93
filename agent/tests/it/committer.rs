//! Who commits, where the home is not seen.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;

use serde_json::json;

use crate::support::Bench;
use hermitcrab::{ambient, text::gitconfig};

const SETTINGS: &str =
    "[user]\n\tname = Ann B\n\temail = ann@b.org\n[core]\n\tsshCommand = program\n";

/// A home that no directory of the machine lies over.
fn at_home(settings: &str) -> Bench {
    in_home("/home/somebody-who-commits", settings)
}

fn in_home(home: &str, settings: &str) -> Bench {
    let mut bench = Bench::beginning_with(|config| {
        config.home = PathBuf::from(home);
        let home = config.home.display().to_string();
        config.env.push(("HOME".to_owned(), home));
        config.git_settings = gitconfig::of_a_person([settings].into_iter());
    });
    bench.grant("fs.*", ".");
    // A store without settings or hooks of its own asks nobody anything.
    for (name, text) in [
        ("HEAD", "ref: refs/heads/main\n"),
        ("objects/x", ""),
        ("refs/x", ""),
    ] {
        bench.put(&format!(".git/{name}"), text);
    }
    bench
}

fn output(bench: &mut Bench, command: &str) -> String {
    let report = bench.call("terminal", json!({ "command": command }));
    let told: serde_json::Value = serde_json::from_str(&report.text).unwrap();
    told["output"].as_str().unwrap().to_owned()
}

#[test]
fn a_commit_bears_the_name_of_the_person_and_nothing_else_of_their_settings_is_seen() {
    let mut bench = at_home(SETTINGS);
    let done = output(
        &mut bench,
        "echo x > a && git add a && git commit -qm first && git log --format='%an %ae'; git config core.sshCommand || echo none",
    );
    assert_eq!(done, "Ann B ann@b.org\nnone");
    // What a repository says goes before it.
    bench.put(".git/config", "[user]\n\tname = Other\n");
    assert_eq!(output(&mut bench, "git config user.name"), "Other");
    assert!(bench.user.shown.borrow().is_empty());
}

/// Many a container has one there, and a command's `/tmp` is its own.
#[test]
fn a_home_below_tmp_says_who_commits_like_any_other() {
    let mut bench = in_home("/tmp/somebody-who-commits", SETTINGS);
    let asked = "git config user.name; git config core.sshCommand || echo none; ls -A ~";
    let said = output(&mut bench, asked);
    assert_eq!(said, "Ann B\nnone\n.gitconfig");
    // What one command makes of it is gone with it.
    output(&mut bench, "rm -f ~/.gitconfig; touch ~/left");
    assert_eq!(output(&mut bench, "ls -A ~"), ".gitconfig");
}

/// What a command made lies in the workspace as other files than the command had: only how
/// long they are and when they were changed is the same.
#[test]
fn what_one_command_committed_is_unchanged_to_the_next() {
    let mut bench = at_home(SETTINGS);
    output(
        &mut bench,
        "seq 20 > a && mkdir d && echo x > d/b && git add -A && git commit -qm first",
    );
    let looked = "git diff-index --quiet HEAD -- && git diff-files --quiet && echo clean";
    assert_eq!(output(&mut bench, looked), "clean");
    let applied = "sed -i s/7/seven/ a && git diff > d/x.diff; git checkout -q a; git apply --index d/x.diff; echo $?";
    assert_eq!(output(&mut bench, applied), "0");
    // A change of the same length within the same second is one.
    output(&mut bench, "git commit -qam second -- a; echo y > d/b");
    assert_eq!(output(&mut bench, "git diff-files --name-only d/b"), "d/b");
    // Whoever tells git something by variables tells it all.
    let own = "export GIT_CONFIG_COUNT=0; git config core.checkStat || echo none";
    assert_eq!(output(&mut bench, own), "none");
    assert_eq!(
        output(&mut bench, "git config core.checkStat || echo none"),
        "none"
    );
    assert!(bench.user.shown.borrow().is_empty());
}

#[test]
fn who_has_told_git_nothing_commits_nothing() {
    let mut bench = at_home("");
    let done = output(
        &mut bench,
        "ls -A ~; echo x > a && git add a && git commit -qm first; echo $?",
    );
    assert!(
        done.contains("user.email") && done.ends_with("128"),
        "{done}"
    );
}

#[test]
fn settings_are_read_where_git_keeps_them() {
    let home = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let files = [".config/git/config", ".gitconfig"].map(|name| home.path().join(name));
    let found = || ambient::git_settings_in(&files);
    assert_eq!(found(), "");
    put(".config/git/config", "[user]\nname = first\nemail = e\n");
    put(".gitconfig", "[user]\nname = second\n");
    assert_eq!(
        found(),
        "[user]\n\tname = \"second\"\n[user]\n\temail = \"e\"\n"
    );
    put(".gitconfig", &" ".repeat((1 << 20) + 1));
    assert!(found().contains("first"));
}
