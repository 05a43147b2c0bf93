//! What rules withhold of a view: its name shows, its content does not, and nothing a
//! command does brings it out, over an overlay and over a copy.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::Withheld;
use hermitcrab_sandbox::SpawnError;
use hermitcrab_sandbox::spawn::{Command, Ending, Finished, Step, ViewMode};
use support::{Workspace, commit, on_all_layers, run, text, tree};

fn withheld(places: &[&str], names: &[&str]) -> Withheld {
    Withheld {
        places: places
            .iter()
            .map(|place| RelPath::parse_dir(place.as_bytes()).unwrap())
            .collect(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
    }
}

fn command<'w>(workspace: &'w Workspace, script: &str, withheld: Withheld) -> Command<'w> {
    let mut command = workspace.command(script);
    command.views[0].withheld = withheld;
    command
}

fn without(workspace: &Workspace, script: &str, withheld: Withheld) -> Finished {
    run(&command(workspace, script, withheld)).unwrap()
}

/// Keys in several places, and other files beside them.
fn with_keys() -> Workspace {
    let workspace = Workspace::new();
    workspace.file("open", "open\n");
    workspace.file("plan/secret", "KEY in plan\n");
    workspace.file("plan/notes", "notes\n");
    workspace.file("keys/one", "KEY one\n");
    workspace.file("keys/deep/two", "KEY two\n");
    workspace.file("a/b/c/Server.KEY", "KEY three\n");
    workspace.file("a/b/c/server.txt", "server\n");
    workspace.file("a/own.key.d/four", "KEY four\n");
    workspace
}

fn rules() -> Withheld {
    withheld(&["plan/secret", "keys", "not/there"], &["*.key", "own.*"])
}

fn its_names_show_and_its_content_does_not() {
    let workspace = with_keys();
    let look = "find . | sort; cat plan/secret keys/one keys/deep/two a/b/c/Server.KEY a/own.key.d/four; \
                ls keys; grep -r KEY .; cat < plan/secret; head -c 3 keys/../plan/secret; \
                cd keys || cat /proc/self/cwd/keys/one; exec 5<> a/b/c/Server.KEY; cat <&5";
    let seen = text(&without(&workspace, look, rules()));
    assert!(!seen.contains("KEY "), "{seen}");
    for name in [
        "./plan/secret",
        "./keys",
        "./a/b/c/Server.KEY",
        "./a/own.key.d",
    ] {
        assert!(seen.lines().any(|line| line == name), "{name}: {seen}");
    }
    assert!(seen.contains("plan/secret: Permission denied"), "{seen}");
    assert!(!seen.contains("./keys/deep"), "{seen}");
    // The same without rules shows all of it, and beside what is withheld all is as it was.
    let all = text(&workspace.run(look));
    assert_eq!(all.matches("KEY in plan").count(), 3, "{all}");
    let beside = "cat open plan/notes a/b/c/server.txt; echo more >> plan/notes; mv open plan/; rm a/b/c/server.txt";
    let finished = without(&workspace, beside, rules());
    assert_eq!(text(&finished), "open\nnotes\nserver\n");
    assert_eq!(finished.ending, Ending::Exited(0));
    assert!(commit(&finished, &workspace).failure.is_none());
    assert_eq!(workspace.read("plan/notes"), "notes\nmore\n");
    assert_eq!(workspace.read("plan/secret"), "KEY in plan\n");
}

fn nothing_a_command_does_brings_it_out() {
    let workspace = with_keys();
    let before = tree(&workspace.path().join("keys"));
    // Each tries to have the content under another name, or the name for other content.
    for script in [
        "mv plan/secret plan/other",
        "mv plan moved",
        "mv keys moved",
        "mv a/b/c moved; mv a/b moved2; mv a moved3",
        "ln plan/secret other; ln a/b/c/Server.KEY other2",
        "cp -r . /tmp/all; cp -r /tmp/all ./all",
        "tar cf all.tar .; tar xf all.tar -C /tmp",
        "chmod -R u+rwX .; cat plan/secret > other",
        "rm -rf plan keys a; ls -R > other",
        "rm -f plan/secret; echo new > plan/secret",
        "mv -T a/b keys; mv -T plan a",
        "truncate -s 0 plan/secret; echo more >> plan/secret; : > a/b/c/Server.KEY",
        "umount plan/secret; mount --bind plan /tmp; cat plan/secret > other",
        "python3 -c 'import os; os.rename(\"plan\", \"moved\")'; python3 -c 'import os; os.rename(\"a\", \"moved3\")'",
        "python3 -c 'import os; os.link(\"plan/secret\", \"other\"); os.rename(\"plan/secret\", \"o\")'",
    ] {
        let finished = without(&workspace, script, rules());
        let names: Vec<String> = finished.changes[0]
            .changes()
            .iter()
            .map(|change| change.path.to_string())
            .collect();
        for name in ["plan/secret", "keys", "a/b/c/Server.KEY", "a/own.key.d"] {
            let touched = names
                .iter()
                .any(|path| path == name || path.starts_with(&format!("{name}/")));
            assert!(!touched, "{script}: {names:?}");
        }
        let kept = commit(&finished, &workspace);
        assert!(kept.failure.is_none(), "{script}: {:?}", kept.failure);
        let shown = text(&without(
            &workspace,
            "find . /tmp -type f -exec cat {} + 2> /dev/null",
            rules(),
        ));
        assert!(!shown.contains("KEY "), "{script}: {shown}");
        assert_eq!(workspace.read("plan/secret"), "KEY in plan\n", "{script}");
        assert_eq!(
            workspace.read("a/b/c/Server.KEY"),
            "KEY three\n",
            "{script}"
        );
    }
    assert_eq!(tree(&workspace.path().join("keys")), before);
}

fn what_was_made_since_the_last_command_is_withheld_from_the_next() {
    let workspace = with_keys();
    let rules = withheld(&["later"], &["*.key"]);
    for round in 0..4 {
        let content = format!("KEY {round}\n");
        let script = format!("cat later new-{round}.key");
        workspace.file(&format!("new-{round}.key"), &content);
        workspace.file("later", &content);
        let seen = text(&without(&workspace, &script, rules.clone()));
        assert_eq!(seen.matches("Permission denied").count(), 2, "{seen}");
        std::fs::remove_file(workspace.path().join("later")).unwrap();
        // What the command makes is its own to read.
        let made = "echo mine > later; cat later; echo mine > own.key; cat own.key";
        let seen = text(&without(&workspace, made, rules.clone()));
        assert_eq!(seen, "mine\nmine\n");
    }
}

fn a_view_that_cannot_be_written_withholds_as_well() {
    let workspace = with_keys();
    let mut reading = command(&workspace, "cat plan/secret keys/one plan/notes", rules());
    reading.views[0].mode = ViewMode::ReadOnly;
    let seen = text(&run(&reading).unwrap());
    assert!(!seen.contains("KEY "), "{seen}");
    assert!(seen.ends_with("notes\n"), "{seen}");
}

fn links_are_followed_to_what_is_withheld_and_are_not_withheld_themselves() {
    let workspace = with_keys();
    let at = |name: &str| workspace.path().join(name);
    symlink("plan/secret", at("to-secret")).unwrap();
    symlink("plan", at("to-plan")).unwrap();
    symlink("open", at("open.key")).unwrap();
    let seen = text(&without(
        &workspace,
        "cat to-secret to-plan/secret; cat open.key to-plan/notes",
        withheld(&["plan/secret", "to-plan/notes"], &["*.key"]),
    ));
    assert_eq!(seen.matches("Permission denied").count(), 2, "{seen}");
    assert!(seen.ends_with("open\nnotes\n"), "{seen}");
}

fn a_directory_nobody_can_list_is_withheld_where_names_are() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: needs root, to have a directory of somebody else's");
        return;
    }
    let workspace = with_keys();
    workspace.file("theirs/a.key", "KEY theirs\n");
    workspace.file("theirs/b", "b\n");
    let theirs = workspace.path().join("theirs");
    let owner = std::fs::metadata(workspace.path()).unwrap().uid() + 12_345;
    std::os::unix::fs::chown(&theirs, Some(owner), Some(owner)).unwrap();
    std::fs::set_permissions(&theirs, std::fs::Permissions::from_mode(0o711)).unwrap();
    let look = "cat theirs/a.key theirs/b";
    let seen = text(&without(&workspace, look, Withheld::default()));
    let seen_covered = text(&without(&workspace, look, withheld(&[], &["*.key"])));
    if support::layer() == hermitcrab_sandbox::changeset::Layer::Overlay {
        assert_eq!(seen, "KEY theirs\nb\n");
    }
    assert!(!seen_covered.contains("KEY "), "{seen_covered}");
}

on_all_layers!(
    its_names_show_and_its_content_does_not,
    nothing_a_command_does_brings_it_out,
    what_was_made_since_the_last_command_is_withheld_from_the_next,
    a_view_that_cannot_be_written_withholds_as_well,
    links_are_followed_to_what_is_withheld_and_are_not_withheld_themselves,
    a_directory_nobody_can_list_is_withheld_where_names_are,
);

#[test]
fn more_than_can_be_covered_is_an_error_and_nothing_runs() {
    let workspace = Workspace::new();
    for number in 0..8193 {
        workspace.file(&format!("d/{number}.key"), "");
    }
    let marker = workspace.path().join("ran");
    let script = format!("touch {}", marker.display());
    match run(&command(&workspace, &script, withheld(&[], &["*.key"]))) {
        Err(SpawnError::Step(error)) => {
            assert_eq!(error.step(), Step::Withhold, "{error}");
            assert!(error.to_string().contains("name fewer places"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    // In a copy the directory they are in counts as well.
    for number in 8191..8193 {
        std::fs::remove_file(workspace.path().join(format!("d/{number}.key"))).unwrap();
    }
    let seen = text(&without(
        &workspace,
        "cat d/8190.key d/0.key 2>&1 | sort",
        withheld(&[], &["*.key"]),
    ));
    assert_eq!(seen.matches("Permission denied").count(), 2, "{seen}");
}
