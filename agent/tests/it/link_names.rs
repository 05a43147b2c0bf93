//! A patch that deletes or moves a symbolic link by its name means the link itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use hermitcrab::runtime::{CallReport, Fate};
use hermitcrab_core::outcome::DenialCode;
use serde_json::{Value, json};

use crate::support::Bench;

/// A workspace with links, of whose files the agent may read most and change nothing.
fn with_links() -> Bench {
    let bench = Bench::new();
    bench.put("notes/a.txt", "alpha needle\n");
    bench.put(".env", "TOKEN=needle\n");
    let outside = bench.workspace.parent().unwrap().join("outside.txt");
    std::fs::write(&outside, "needle outside\n").unwrap();
    for (target, name) in [
        ("notes/a.txt", "to-file"),
        ("to-file", "to-link"),
        ("notes", "to-dir"),
        ("../notes/a.txt", "notes/up"),
        (".env", "innocent.txt"),
        ("../outside.txt", "out.txt"),
        ("nothing", "dangling"),
        ("loop", "loop"),
        ("notes/a.txt", ".envrc"),
    ] {
        symlink(target, bench.workspace.join(name)).unwrap();
    }
    bench
}

fn patch(bench: &mut Bench, headers: &[&str]) -> CallReport {
    let headers: Vec<String> = headers.iter().map(|one| format!("*** {one}\n")).collect();
    let patch = format!("*** Begin Patch\n{}*** End Patch", headers.concat());
    bench.call("patch", json!({"mode": "patch", "patch": patch}))
}

/// What a link says; `None` if there is none.
fn says(bench: &Bench, name: &str) -> Option<PathBuf> {
    std::fs::read_link(bench.workspace.join(name)).ok()
}

/// Files and links of the workspace and beside it, with what they hold.
fn all(bench: &Bench) -> Vec<(PathBuf, String)> {
    fn below(dir: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if let Ok(target) = std::fs::read_link(&path) {
                found.push((path, format!("-> {}", target.display())));
            } else if path.is_dir() {
                below(&path, found);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    let mut found = Vec::new();
    below(&bench.workspace, &mut found);
    let outside = bench.workspace.parent().unwrap().join("outside.txt");
    found.push((outside.clone(), std::fs::read_to_string(outside).unwrap()));
    found.sort();
    found
}

/// All but what has these names in the workspace.
fn without(bench: &Bench, all: &[(PathBuf, String)], names: &[&str]) -> Vec<(PathBuf, String)> {
    let names: Vec<PathBuf> = names.iter().map(|n| bench.workspace.join(n)).collect();
    let stays = |(path, _): &&(PathBuf, String)| !names.contains(path);
    all.iter().filter(stays).cloned().collect()
}

#[test]
fn a_link_that_is_deleted_goes_alone_is_shown_with_where_it_points_and_comes_back() {
    for (name, points) in [
        ("to-file", "notes/a.txt"),
        ("to-link", "to-file"),
        ("notes/up", "../notes/a.txt"),
    ] {
        let mut bench = with_links();
        let before = all(&bench);
        bench.user.words.borrow_mut().push_back("once");
        let report = patch(&mut bench, &[&format!("Delete File: {name}")]);
        assert_eq!(report.fate, Fate::Ran, "{name}: {}", report.text);
        let told: Value = serde_json::from_str(&report.text).unwrap();
        assert_eq!(
            told["diff"],
            format!("--- a/{name}\n+++ /dev/null\n@@ -1 +0,0 @@\n-alpha needle\n")
        );
        let shown = bench.user.shown.borrow().join("\n");
        assert!(shown.contains("deleted link "), "{shown}");
        assert!(shown.contains(&format!("{name} to {points}\n")), "{shown}");
        assert!(!shown.contains("deleted file"), "{shown}");
        assert_eq!(all(&bench), without(&bench, &before, &[name]));
        // Taken back, it is there again, and says the same.
        bench.user.words.borrow_mut().push_back("once");
        let first = bench.runtime.first_agent();
        let commit = bench.runtime.last_commit().unwrap();
        bench.runtime.undo(first, commit).unwrap();
        assert_eq!(all(&bench), before);
    }
}

#[test]
fn nobody_who_says_no_or_may_not_delete_it_loses_a_link() {
    let mut bench = with_links();
    let before = all(&bench);
    let report = patch(&mut bench, &["Delete File: to-file"]);
    assert_eq!(report.fate, Fate::AskedRefused(DenialCode::RejectedByUser));
    // What a link leads to being held is nothing held of the link.
    bench.grant("fs.*", "notes/a.txt");
    let report = patch(&mut bench, &["Delete File: to-file"]);
    assert_eq!(report.fate, Fate::AskedRefused(DenialCode::RejectedByUser));
    // A name that rules speak of is asked about whatever it points to.
    bench.grant("fs.*", ".");
    for header in [
        "Delete File: .envrc",
        "Move File: to-file -> .env.new",
        "Move File: to-file -> .vscode",
    ] {
        let report = patch(&mut bench, &[header]);
        assert_eq!(
            report.fate,
            Fate::AskedRefused(DenialCode::RejectedByUser),
            "{header}: {}",
            report.text
        );
    }
    assert_eq!(all(&bench), before);
}

#[test]
fn a_link_that_says_something_else_by_the_time_of_the_answer_stays() {
    for header in ["Delete File: to-file", "Move File: to-file -> moved"] {
        let mut bench = with_links();
        bench.put("notes/b.txt", "alpha needle\n");
        let at = bench.workspace.join("to-file");
        *bench.user.meanwhile.borrow_mut() = Some(Box::new(move || {
            std::fs::remove_file(&at).unwrap();
            symlink("notes/b.txt", &at).unwrap();
        }));
        bench.user.words.borrow_mut().push_back("once");
        let report = patch(&mut bench, &[header]);
        assert_eq!(
            report.fate,
            Fate::Refused(DenialCode::ChangedSinceShown),
            "{header}: {}",
            report.text
        );
        assert_eq!(says(&bench, "to-file"), Some("notes/b.txt".into()));
        assert_eq!(says(&bench, "moved"), None);
        assert_eq!(bench.text("notes/a.txt").as_deref(), Some("alpha needle\n"));
    }
    // So does a file that took its place.
    let mut bench = with_links();
    let at = bench.workspace.join("to-file");
    *bench.user.meanwhile.borrow_mut() = Some(Box::new(move || {
        std::fs::remove_file(&at).unwrap();
        std::fs::write(&at, "mine\n").unwrap();
    }));
    bench.user.words.borrow_mut().push_back("once");
    patch(&mut bench, &["Delete File: to-file"]);
    assert_eq!(bench.text("to-file").as_deref(), Some("mine\n"));
}

#[test]
fn a_link_to_what_may_not_be_read_goes_and_tells_nothing_of_it() {
    for name in ["innocent.txt", "out.txt"] {
        let mut bench = with_links();
        bench.grant("fs.*", ".");
        let before = all(&bench);
        let report = patch(&mut bench, &[&format!("Delete File: {name}")]);
        assert_eq!(report.fate, Fate::Ran, "{name}: {}", report.text);
        assert!(report.questions.is_empty(), "{name}");
        assert!(!report.text.contains("needle"), "{name}: {}", report.text);
        let told: Value = serde_json::from_str(&report.text).unwrap();
        assert_eq!(told["diff"], format!("# Deleted: {name}"));
        assert_eq!(all(&bench), without(&bench, &before, &[name]));
    }
    // Nothing is written in the place of one, and nothing behind it.
    let mut bench = with_links();
    bench.grant("fs.*", ".");
    let before = all(&bench);
    for headers in [
        ["Add File: out.txt\n+mine", "Delete File: out.txt"],
        ["Update File: out.txt\n@@\n+mine", "Delete File: out.txt"],
    ] {
        let report = patch(&mut bench, &headers);
        assert_eq!(report.fate, Fate::ToolError, "{headers:?}: {}", report.text);
        assert_eq!(all(&bench), before, "{headers:?}");
    }
}

#[test]
fn what_leads_to_no_file_is_none_to_delete_or_to_move() {
    let mut bench = with_links();
    bench.grant("fs.*", ".");
    let before = all(&bench);
    for name in ["dangling", "loop", "to-dir", "to-file/"] {
        for header in [
            format!("Delete File: {name}"),
            format!("Move File: {name} -> moved"),
        ] {
            let report = patch(&mut bench, &[&header]);
            assert_eq!(report.fate, Fate::ToolError, "{header}: {}", report.text);
            assert_eq!(all(&bench), before, "{header}");
        }
    }
}

#[test]
fn a_link_that_is_moved_says_what_it_said_and_what_it_led_to_stays() {
    let mut bench = with_links();
    bench.grant("fs.*", ".");
    let before = all(&bench);
    let report = patch(&mut bench, &["Move File: to-file -> moved"]);
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!(says(&bench, "moved"), Some("notes/a.txt".into()));
    let both = ["to-file", "moved"];
    assert_eq!(
        without(&bench, &all(&bench), &both),
        without(&bench, &before, &both)
    );
    assert_eq!(says(&bench, "to-file"), None);
    let first = bench.runtime.first_agent();
    let commit = bench.runtime.last_commit().unwrap();
    bench.user.words.borrow_mut().push_back("once");
    bench.runtime.undo(first, commit).unwrap();
    assert_eq!(all(&bench), before);
    // A file takes the place of a link that leads to nothing.
    let report = patch(&mut bench, &["Move File: notes/a.txt -> dangling"]);
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!(bench.text("dangling").as_deref(), Some("alpha needle\n"));
    assert_eq!(says(&bench, "dangling"), None);
    assert_eq!(bench.text("nothing"), None);
}

#[test]
fn a_link_goes_with_all_else_of_a_patch_or_not_at_all() {
    let mut bench = with_links();
    bench.grant("fs.*", ".");
    let before = all(&bench);
    for headers in [
        &["Delete File: to-file", "Delete File: none"][..],
        &["Delete File: notes/a.txt", "Delete File: to-file"],
        &["Delete File: to-file", "Delete File: to-file"],
    ] {
        let report = patch(&mut bench, headers);
        assert_eq!(report.fate, Fate::ToolError, "{headers:?}: {}", report.text);
        assert_eq!(all(&bench), before, "{headers:?}");
    }
    let headers = ["Delete File: to-file", "Delete File: notes/a.txt"];
    let report = patch(&mut bench, &headers);
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!(
        all(&bench),
        without(&bench, &before, &["to-file", "notes/a.txt"])
    );
    let headers = ["Delete File: innocent.txt", "Add File: innocent.txt\n+mine"];
    let report = patch(&mut bench, &headers);
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!(bench.text("innocent.txt").as_deref(), Some("mine"));
    assert_eq!(bench.text(".env").as_deref(), Some("TOKEN=needle\n"));
}
