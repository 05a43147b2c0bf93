//! Patches of several files: all of it, or none.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab::runtime::{Ceilings, Fate, GrantWords};
use hermitcrab_core::outcome::DenialCode;
use serde_json::json;
use support::Bench;

const PATCH: &str = "*** Begin Patch\n*** Update File: a.txt\n-one\n+uno\n*** Delete File: b.txt\n*** Add File: new/c.txt\n+c\n\
                     *** Move File: d.txt -> e.txt\n*** End Patch";

fn filled() -> Bench {
    let bench = Bench::new();
    for (name, text) in [("a.txt", "one\n"), ("b.txt", "b\n"), ("d.txt", "d\n")] {
        std::fs::write(bench.workspace.join(name), text).unwrap();
    }
    bench
}

/// Every file below the workspace and what it holds.
fn tree(bench: &Bench) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut todo = vec![bench.workspace.clone()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else {
                let name = path.strip_prefix(&bench.workspace).unwrap();
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((name.to_string_lossy().into_owned(), text));
            }
        }
    }
    found.sort();
    found
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

#[test]
fn a_patch_that_is_held_changes_every_file_it_names() {
    let mut bench = filled();
    let agent = bench.runtime.first_agent();
    let workspace = bench.workspace.to_string_lossy().into_owned();
    bench
        .runtime
        .grant(agent, &GrantWords::new("fs.*", &workspace))
        .unwrap();
    let report = bench
        .runtime
        .call(agent, "patch", &json!({"mode": "patch", "patch": PATCH}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert!(report.questions.is_empty());
    assert_eq!(
        tree(&bench),
        pairs(&[("a.txt", "uno\n"), ("e.txt", "d\n"), ("new/c.txt", "c")])
    );
}

#[test]
fn one_question_shows_the_whole_patch_and_a_no_changes_nothing() {
    let mut bench = filled();
    let before = tree(&bench);
    let agent = bench.runtime.first_agent();
    let report = bench
        .runtime
        .call(agent, "patch", &json!({"mode": "patch", "patch": PATCH}));
    assert!(
        matches!(report.fate, Fate::AskedRefused(_)),
        "{}",
        report.text
    );
    let shown = bench.user.shown.borrow();
    assert_eq!(shown.len(), 1);
    for part in ["-one", "+uno", "b.txt", "new/c.txt", "e.txt"] {
        assert!(shown[0].contains(part), "{part}: {}", shown[0]);
    }
    assert_eq!(tree(&bench), before);
}

#[test]
fn a_patch_of_which_one_part_may_not_be_done_does_nothing() {
    let mut bench = filled();
    let before = tree(&bench);
    let agent = bench.runtime.first_agent();
    let workspace = bench.workspace.to_string_lossy().into_owned();
    // Deleting is not held: the rest of the patch would be.
    for verb in ["fs.create", "fs.modify"] {
        bench
            .runtime
            .grant(agent, &GrantWords::new(verb, &workspace))
            .unwrap();
    }
    let report = bench
        .runtime
        .call(agent, "patch", &json!({"mode": "patch", "patch": PATCH}));
    assert!(
        matches!(report.fate, Fate::AskedRefused(_)),
        "{}",
        report.text
    );
    assert_eq!(tree(&bench), before);
}

#[test]
fn broken_data_in_one_file_keeps_all_files_as_they_were() {
    let mut bench = filled();
    let before = tree(&bench);
    let agent = bench.runtime.first_agent();
    let workspace = bench.workspace.to_string_lossy().into_owned();
    bench
        .runtime
        .grant(agent, &GrantWords::new("fs.*", &workspace))
        .unwrap();
    let patch = "*** Update File: a.txt\n-one\n+uno\n*** Add File: x.json\n+{\"a\": }\n";
    let report = bench
        .runtime
        .call(agent, "patch", &json!({"mode": "patch", "patch": patch}));
    assert_eq!(report.fate, Fate::ToolError);
    assert!(
        report.text.contains("no files were modified"),
        "{}",
        report.text
    );
    assert_eq!(tree(&bench), before);
}

fn granted(bench: &mut Bench) -> hermitcrab_core::grant::AgentId {
    let agent = bench.runtime.first_agent();
    let workspace = bench.workspace.to_string_lossy().into_owned();
    bench
        .runtime
        .grant(agent, &GrantWords::new("fs.*", &workspace))
        .unwrap();
    agent
}

#[test]
fn a_patch_whose_last_part_turns_out_impossible_takes_back_the_first() {
    let mut bench = filled();
    let agent = granted(&mut bench);
    // A name that looks free to whoever looks for a file.
    std::os::unix::fs::symlink("../nowhere", bench.workspace.join("z.txt")).unwrap();
    let patch =
        "*** Update File: a.txt\n-one\n+uno\n*** Delete File: b.txt\n*** Add File: z.txt\n+z\n";
    let report = bench
        .runtime
        .call(agent, "patch", &json!({"mode": "patch", "patch": patch}));
    assert_ne!(report.fate, Fate::Ran, "{}", report.text);
    std::fs::remove_file(bench.workspace.join("z.txt")).unwrap();
    assert_eq!(
        tree(&bench),
        pairs(&[("a.txt", "one\n"), ("b.txt", "b\n"), ("d.txt", "d\n")])
    );
}

#[test]
fn a_moved_file_keeps_its_mode_where_another_is_put_in_its_place_and_the_question_says_so() {
    use std::os::unix::fs::PermissionsExt;
    let mut bench = filled();
    let script = bench.workspace.join("d.txt");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let agent = bench.runtime.first_agent();
    bench.user.words.borrow_mut().push_back("once");
    let patch =
        "*** Begin Patch\n*** Move File: d.txt -> e.txt\n*** Add File: d.txt\n+new\n*** End Patch";
    let report = bench
        .runtime
        .call(agent, "patch", &json!({"mode": "patch", "patch": patch}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!(bench.text("e.txt").as_deref(), Some("d\n"));
    assert_eq!(bench.text("d.txt").as_deref(), Some("new"));
    let stat = std::fs::metadata(bench.workspace.join("e.txt")).unwrap();
    assert_eq!(stat.permissions().mode() & 0o777, 0o755);
    let asked = bench.user.shown.borrow();
    assert!(
        asked.iter().any(|text| text.contains("e.txt: mode 755\n")),
        "{asked:?}"
    );
}

#[test]
fn a_patch_keeps_modes_and_makes_directories_on_the_way() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut bench = filled();
    let agent = granted(&mut bench);
    let mode = |bench: &Bench, name: &str| {
        let stat = std::fs::metadata(bench.workspace.join(name)).unwrap();
        stat.permissions().mode() & 0o7777
    };
    for (name, bits) in [("a.txt", 0o755), ("d.txt", 0o640)] {
        let bits = std::fs::Permissions::from_mode(bits);
        std::fs::set_permissions(bench.workspace.join(name), bits).unwrap();
    }
    let patch = "*** Update File: a.txt\n-one\n+uno\n*** Move File: d.txt -> e.txt\n*** Add File: p/q/r.txt\n+r\n\
                 *** Add File: p/s.txt\n+s\n";
    let report = bench
        .runtime
        .call(agent, "patch", &json!({"mode": "patch", "patch": patch}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!(
        tree(&bench),
        pairs(&[
            ("a.txt", "uno\n"),
            ("b.txt", "b\n"),
            ("e.txt", "d\n"),
            ("p/q/r.txt", "r"),
            ("p/s.txt", "s")
        ])
    );
    assert_eq!(
        ["a.txt", "e.txt", "p", "p/q", "p/s.txt"].map(|name| mode(&bench, name)),
        [0o755, 0o640, 0o755, 0o755, 0o600]
    );
}

#[test]
fn a_file_is_moved_into_a_directory_that_comes_with_the_same_patch() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut bench = filled();
    let agent = granted(&mut bench);
    let bits = std::fs::Permissions::from_mode(0o750);
    std::fs::set_permissions(bench.workspace.join("d.txt"), bits).unwrap();
    let patch = "*** Add File: p/q/r.txt\n+r\n*** Move File: d.txt -> p/d.txt\n*** Move File: b.txt -> p/q/b.txt\n";
    let report = bench
        .runtime
        .call(agent, "patch", &json!({"mode": "patch", "patch": patch}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    let moved = pairs(&[
        ("a.txt", "one\n"),
        ("p/d.txt", "d\n"),
        ("p/q/b.txt", "b\n"),
        ("p/q/r.txt", "r"),
    ]);
    assert_eq!(tree(&bench), moved);
    let stat = std::fs::metadata(bench.workspace.join("p/d.txt")).unwrap();
    assert_eq!(stat.permissions().mode() & 0o7777, 0o750);

    // What only looks like the directory is none, and what comes later is not there yet.
    for patch in [
        "*** Add File: pq/x.txt\n+x\n*** Move File: a.txt -> pq/y/a.txt\n",
        "*** Add File: new/x.txt\n+x\n*** Move File: a.txt -> ne/a.txt\n",
        "*** Move File: a.txt -> new/a.txt\n*** Add File: new/x.txt\n+x\n",
    ] {
        let report = bench
            .runtime
            .call(agent, "patch", &json!({"mode": "patch", "patch": patch}));
        assert_eq!(report.fate, Fate::ToolError, "{patch}: {}", report.text);
        assert!(
            report.text.contains("No such file or directory"),
            "{}",
            report.text
        );
        assert_eq!(tree(&bench), moved, "{patch}");
    }
}

#[test]
fn a_patch_through_a_link_that_leads_out_is_refused_whole() {
    let mut bench = filled();
    let agent = granted(&mut bench);
    let outside = bench.workspace.parent().unwrap().join("dir");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("in.txt"), "one\n").unwrap();
    std::os::unix::fs::symlink("../dir", bench.workspace.join("way")).unwrap();
    let patch = "*** Update File: a.txt\n-one\n+uno\n*** Update File: way/in.txt\n-one\n+uno\n";
    let report = bench
        .runtime
        .call(agent, "patch", &json!({"mode": "patch", "patch": patch}));
    assert!(matches!(report.fate, Fate::Refused(_)), "{}", report.text);
    for name in ["a.txt", "../dir/in.txt"] {
        let text = std::fs::read_to_string(bench.workspace.join(name)).unwrap();
        assert_eq!(text, "one\n");
    }
}

#[test]
fn in_an_editors_session_an_edit_that_cannot_be_shown_says_why_and_asks_nobody() {
    let mut bench = filled();
    let agent = bench.runtime.first_agent();
    let workspace = bench.workspace.to_string_lossy().into_owned();
    bench
        .runtime
        .grant(agent, &GrantWords::new("fs.*", &workspace))
        .unwrap();
    let edit = json!({"path": "a.txt", "old_string": "nowhere", "new_string": "x"});
    let told = bench.runtime.call(agent, "patch", &edit);
    assert_eq!(told.fate, Fate::ToolError, "{}", told.text);
    bench.runtime.serve_an_editor();
    for (tool, arguments, why) in [
        (
            "patch",
            edit,
            "Could not find a match for old_string in the file",
        ),
        (
            "patch",
            json!({"mode": "patch", "patch": "x"}),
            "no file paths found in V4A patch",
        ),
        (
            "patch",
            json!({"path": "none", "old_string": "a", "new_string": "b"}),
            "Failed to read file: none",
        ),
        (
            "write_file",
            json!({"path": ".", "content": "x"}),
            "Cannot edit non-file path: .",
        ),
        ("write_file", json!({"path": "a.txt"}), "content required"),
    ] {
        let told = bench.runtime.call(agent, tool, &arguments);
        let expected =
            format!("{{\"error\": \"Edit approval denied: could not prepare diff ({why})\"}}");
        assert_eq!(told.text, expected);
        assert!(matches!(told.fate, Fate::Refused(_)) && told.questions.is_empty());
    }
    // Of what the agent may not read nothing is said, not even that it is not there.
    let outside = bench.workspace.parent().unwrap().join("secret");
    for is_there in [false, true] {
        if is_there {
            std::fs::write(&outside, "key").unwrap();
        }
        let edit = json!({"path": outside, "old_string": "a", "new_string": "b"});
        let told = bench.runtime.call(agent, "patch", &edit);
        assert!(told.text.contains("no-cap"), "{}", told.text);
    }
    let edit = json!({"path": "a.txt", "old_string": "one", "new_string": "1"});
    assert_eq!(bench.runtime.call(agent, "patch", &edit).fate, Fate::Ran);
}

#[test]
fn no_file_is_added_where_a_directory_is() {
    let mut bench = filled();
    bench.grant("fs.*", ".");
    std::fs::create_dir_all(bench.workspace.join("dir/empty")).unwrap();
    std::os::unix::fs::symlink("dir", bench.workspace.join("led")).unwrap();
    let before = tree(&bench);
    let whole = bench.workspace.to_string_lossy().into_owned();
    for name in [".", "./", "dir", "dir/empty", "led", &whole] {
        for beside in ["", "*** Add File: n.txt\n+n\n"] {
            let patch = format!("*** Begin Patch\n{beside}*** Add File: {name}\n+x\n*** End Patch");
            let report = bench.call("patch", json!({"mode": "patch", "patch": patch}));
            assert_eq!(report.fate, Fate::ToolError, "{name}: {}", report.text);
            let told = format!("Failed to add {name}: Failed to write file: ");
            assert!(report.text.contains(&told), "{name}: {}", report.text);
            assert_eq!(tree(&bench), before, "{name}");
        }
    }
    let onto = "*** Begin Patch\n*** Move File: a.txt -> .\n*** End Patch";
    let report = bench.call("patch", json!({"mode": "patch", "patch": onto}));
    assert!(
        report
            .text
            .contains("mv: 'a.txt' and './a.txt' are the same file"),
        "{}",
        report.text
    );
    assert_eq!(tree(&bench), before);
}

#[test]
fn a_patch_of_more_files_than_one_operation_may_change_changes_none() {
    for (most, is_done) in [(4, false), (5, true)] {
        let mut bench = filled();
        let before = tree(&bench);
        let agent = bench.runtime.first_agent();
        let workspace = bench.workspace.to_string_lossy().into_owned();
        bench
            .runtime
            .grant(agent, &GrantWords::new("fs.*", &workspace))
            .unwrap();
        bench.runtime.set_ceilings(Ceilings {
            files_max: Some(most),
            ..Ceilings::default()
        });
        let args = json!({"mode": "patch", "patch": PATCH});
        let report = bench.runtime.call(agent, "patch", &args);
        assert_eq!(report.fate == Fate::Ran, is_done, "{}", report.text);
        if !is_done {
            assert_eq!(report.fate, Fate::Refused(DenialCode::DeniedByRule));
            let why = "`safety.max_files_per_operation` is 4";
            assert!(report.text.contains(why), "{}", report.text);
            assert_eq!(tree(&bench), before);
        }
    }
}

#[test]
fn a_file_with_more_directories_than_one_operation_may_make_is_not_written() {
    for (most, is_done) in [(2, false), (3, true)] {
        let mut bench = filled();
        bench.grant("fs.*", ".");
        let before = tree(&bench);
        bench.runtime.set_ceilings(Ceilings {
            files_max: Some(most),
            ..Ceilings::default()
        });
        let new = json!({"path": "n/m/f", "content": "x"});
        let report = bench.call("write_file", new);
        assert_eq!(report.fate == Fate::Ran, is_done, "{}", report.text);
        if !is_done {
            assert_eq!(report.fate, Fate::Refused(DenialCode::DeniedByRule));
            let why =
                "it changes 3 files and directories, and `safety.max_files_per_operation` is 2";
            assert!(report.text.contains(why), "{}", report.text);
            assert_eq!(tree(&bench), before);
        }
        // What is there already is one file, whatever it lies in.
        let report = bench.call("write_file", json!({"path": "a.txt", "content": "x"}));
        assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    }
}

#[test]
fn a_patch_of_one_new_file_counts_the_directories_it_makes_and_asks_nobody_where_they_are_too_many()
{
    for (most, is_done) in [(2, false), (3, true)] {
        let mut bench = filled();
        let before = tree(&bench);
        bench.user.words.borrow_mut().push_back("once");
        bench.runtime.set_ceilings(Ceilings {
            files_max: Some(most),
            ..Ceilings::default()
        });
        let patch = "*** Begin Patch\n*** Add File: n/m/f\n+x\n*** End Patch";
        let report = bench.call("patch", json!({"mode": "patch", "patch": patch}));
        assert_eq!(report.fate == Fate::Ran, is_done, "{}", report.text);
        assert_eq!(bench.user.shown.borrow().len(), usize::from(is_done));
        if !is_done {
            assert_eq!(report.fate, Fate::Refused(DenialCode::DeniedByRule));
            let why =
                "it changes 3 files and directories, and `safety.max_files_per_operation` is 2";
            assert!(report.text.contains(why), "{}", report.text);
            assert_eq!(tree(&bench), before);
            assert!(!bench.workspace.join("n").exists());
        }
    }
}

/// One file with the directory it lies in, and yet no work of the person's.
#[test]
fn the_agents_own_notes_are_no_operation_that_is_counted() {
    let mut bench = filled();
    bench.runtime.set_ceilings(Ceilings {
        files_max: Some(1),
        ..Ceilings::default()
    });
    let notes = bench.workspace.parent().unwrap().join(".hermes");
    std::fs::create_dir(&notes).unwrap();
    bench.grant("fs.*", &notes.to_string_lossy());
    let note = json!({"action": "add", "target": "memory", "content": "likes tests"});
    let report = bench.call("memory", note);
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert!(notes.join("memories").is_dir());
}
