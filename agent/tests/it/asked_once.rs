//! How often a person is asked for one call, where one honest question would do, and what
//! that question and its answer are about.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use hermitcrab::runtime::{CallReport, Fate, GrantWords};
use hermitcrab_core::{
    approval::Stance,
    authority::Verb,
    path::RelPath,
    rules::{ConfiguredRule, Layer, Pattern},
    standing::PortableObject,
};
use serde_json::{Value, json};

use crate::support::Bench;

/// Where a call has its effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    /// In the workspace, which may be looked at.
    Workspace,
    /// In a directory beside it that is open and not held.
    Beside,
}

/// A bench with the same files in its workspace and in a directory beside it.
fn bench() -> (Bench, PathBuf) {
    let mut bench = Bench::new();
    let beside = bench.workspace.parent().unwrap().join("beside");
    for root in [&bench.workspace, &beside] {
        for (name, text) in [
            ("a.txt", "alpha\n"),
            ("lib/b.txt", "beta alpha\n"),
            ("lib/deep/c.txt", "gamma\n"),
            ("lib/.env", "alpha=secret\n"),
        ] {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }
    open(&mut bench, &beside);
    (bench, beside)
}

/// Opens a directory in which nothing is held.
fn open(bench: &mut Bench, dir: &Path) {
    let first = bench.runtime.first_agent();
    let on = dir.to_string_lossy().into_owned();
    let mut words = GrantWords::new("fs.read", &on);
    words.uses = Some(1);
    let grant = bench.runtime.grant(first, &words).unwrap();
    bench.runtime.revoke(grant).unwrap();
}

/// One call, whose every question is answered so: what was shown, and what came of it.
fn call(
    bench: &mut Bench,
    (tool, args): (&str, Value),
    word: &'static str,
) -> (Vec<String>, CallReport) {
    bench.user.shown.borrow_mut().clear();
    bench.user.words.borrow_mut().extend([word; 32]);
    let report = bench.call(tool, args);
    bench.user.words.borrow_mut().clear();
    let shown = bench.user.shown.borrow().clone();
    (shown, report)
}

/// Each call, and how often somebody is asked about it in the workspace and beside it: to
/// look, where that is not held, and to change what was shown then.
fn calls(root: &str) -> Vec<(&'static str, Value, (usize, usize))> {
    let at = |name: &str| format!("{root}/{name}");
    let patch = |text: String| {
        let patch = format!("*** Begin Patch\n{text}\n*** End Patch");
        json!({"mode": "patch", "patch": patch})
    };
    let update = |name: &str, old: &str| {
        let name = at(name);
        format!("*** Update File: {name}\n@@\n-{old}\n+new")
    };
    let several = [
        update("a.txt", "alpha"),
        update("lib/b.txt", "beta alpha"),
        format!("*** Add File: {}\n+x", at("new/deep/y.txt")),
    ];
    let removed = format!("*** Delete File: {}", at("a.txt"));
    let moved = format!("*** Move File: {} -> {}", at("a.txt"), at("lib/z.txt"));
    let search = |path: &str| json!({"pattern": "alpha", "path": path});
    let write = |path: &str| json!({"path": at(path), "content": "x\n"});
    let replaced = json!({"path": at("a.txt"), "old_string": "alpha", "new_string": "new"});
    let both = format!(
        "from hermes_tools import search_files, read_file\n\
         print(search_files('alpha', path='{root}'))\nprint(read_file('{root}/a.txt'))"
    );
    vec![
        ("read_file", json!({"path": at("a.txt")}), (0, 1)),
        ("read_file", json!({"path": at("no.txt")}), (0, 1)),
        ("read_file", json!({"path": at("lib")}), (0, 1)),
        ("search_files", search(root), (0, 1)),
        ("search_files", search(&at("a.txt")), (0, 1)),
        ("search_files", search(&at("no")), (0, 1)),
        (
            "search_files",
            json!({"pattern": "*.txt", "path": root, "target": "files"}),
            (0, 1),
        ),
        ("write_file", write("new/deep/x.txt"), (1, 2)),
        ("write_file", write("x.txt"), (1, 2)),
        ("write_file", write("a.txt"), (1, 2)),
        ("patch", replaced, (1, 2)),
        ("patch", patch(several.join("\n")), (1, 2)),
        ("patch", patch(removed), (1, 2)),
        ("patch", patch(moved), (1, 2)),
        // A script makes two calls.
        ("execute_code", json!({"code": both}), (0, 2)),
        // What a command changes is decided at once; beside the workspace it is shown nothing.
        (
            "terminal",
            json!({"command": "echo x > one; mkdir d; echo y > d/two; rm a.txt"}),
            (1, 1),
        ),
        (
            "execute_code",
            json!({"code": "for name in 'ab': open(name, 'w').write('x')"}),
            (1, 1),
        ),
        ("clarify", json!({"question": "which?"}), (0, 0)),
        ("todo", json!({}), (0, 0)),
    ]
}

#[test]
fn a_person_is_asked_once_to_look_and_once_to_change() {
    for (number, _) in calls("").iter().enumerate() {
        for at in [Where::Workspace, Where::Beside] {
            let (mut bench, beside) = bench();
            let root = match at {
                Where::Workspace => bench.workspace.clone(),
                Where::Beside => beside,
            };
            let (tool, args, counts) = calls(root.to_str().unwrap()).swap_remove(number);
            let wanted = match at {
                Where::Workspace => counts.0,
                Where::Beside => counts.1,
            };
            let (shown, report) = call(&mut bench, (tool, args.clone()), "once");
            let told = format!("{tool} {args} {at:?}: {shown:#?}\n{}", report.text);
            assert_eq!(shown.len(), wanted, "{told}");
            assert!(matches!(report.fate, Fate::Ran | Fate::ToolError), "{told}");
        }
    }
}

#[test]
fn notes_skills_and_jobs_are_asked_about_once_to_look_and_once_to_change() {
    let text = |name: &str| format!("---\nname: {name}\ndescription: d\n---\nBody\n");
    let job = json!({"action": "create", "schedule": "every 2h", "prompt": "look", "name": "j"});
    let skill = |action: &str, more: Value| {
        let mut args = json!({"action": action, "name": "one"});
        for (key, value) in more.as_object().unwrap() {
            args[key] = value.clone();
        }
        ("skills", "skill_manage", args)
    };
    let calls = [
        (
            (
                "memories",
                "memory",
                json!({"action": "add", "target": "memory", "content": "note"}),
            ),
            2,
        ),
        (("skills", "skills_list", json!({})), 1),
        (("skills", "skill_view", json!({"name": "one"})), 1),
        (
            skill("create", json!({"name": "new", "content": text("new")})),
            2,
        ),
        (
            skill("patch", json!({"old_string": "Body", "new_string": "B"})),
            2,
        ),
        (skill("delete", json!({})), 2),
        (
            skill(
                "write_file",
                json!({"file_path": "references/a.md", "file_content": "x"}),
            ),
            2,
        ),
        (("cron", "cronjob", json!({"action": "list"})), 1),
        (("cron", "cronjob", job), 2),
    ];
    for ((dir, tool, args), wanted) in calls {
        let mut bench = Bench::new();
        let home = bench.workspace.parent().unwrap().join(".hermes");
        for (name, text) in [
            ("memories/MEMORY.md", "old fact"),
            ("skills/one/SKILL.md", text("one").as_str()),
            ("skills/two/SKILL.md", text("two").as_str()),
            ("cron/jobs.json", "{\"jobs\": []}"),
        ] {
            let path = home.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        open(&mut bench, &home.join(dir));
        let (shown, report) = call(&mut bench, (tool, args.clone()), "once");
        assert_eq!(shown.len(), wanted, "{tool} {args}: {shown:#?}");
        assert_eq!(report.fate, Fate::Ran, "{tool} {args}: {}", report.text);
    }
}

fn search(bench: &mut Bench, path: &Path, word: &'static str) -> (Vec<String>, CallReport) {
    let args = json!({"pattern": "alpha", "path": path});
    call(bench, ("search_files", args), word)
}

#[test]
fn once_is_for_one_search_and_session_for_those_that_follow() {
    let (mut bench, beside) = bench();
    let (shown, report) = search(&mut bench, &beside, "once");
    let at = beside.display();
    let asked = format!(
        "fs.list all of {at}\nfs.read all of {at}\n\
         that is the file, or the directory and everything in it; with `once`, for this one call of the tool\n\
         not in it: what a rule of yours withholds, the agent's own files, names that are asked about each time (keys, `.env`)\n"
    );
    assert_eq!(shown, [asked.as_str()]);
    // What is asked about each time was neither read nor asked about.
    let found: Value = serde_json::from_str(&report.text).unwrap();
    assert_eq!(found["total_count"], 2, "{found}");
    assert!(!report.text.contains("secret\""), "{found}");
    assert!(report.text.contains("1 file(s) not searched"), "{found}");
    // Each look was decided by itself, and is in the ledger.
    let ledger = std::fs::read_to_string(bench.state.join("ledger.jsonl")).unwrap();
    for name in ["lib", "lib/deep", "lib/b.txt", "a.txt"] {
        assert!(ledger.contains(&format!(":{name}")), "{name}: {ledger}");
    }
    assert!(!ledger.contains("fs.read dir1:lib/.env"), "{ledger}");
    // No other call has anything of it.
    for (tool, args) in [
        ("read_file", json!({"path": beside.join("a.txt")})),
        (
            "search_files",
            json!({"pattern": "alpha", "path": beside.join("lib")}),
        ),
        ("search_files", json!({"pattern": "alpha", "path": beside})),
    ] {
        let (shown, report) = call(&mut bench, (tool, args), "deny");
        assert_eq!(shown.len(), 1, "{tool}");
        assert_ne!(report.fate, Fate::Ran, "{tool}: {}", report.text);
    }
    let (shown, _) = search(&mut bench, &beside, "session");
    assert_eq!(shown.len(), 1);
    let (shown, report) = search(&mut bench, &beside.join("lib"), "deny");
    assert_eq!((shown.len(), report.fate), (0, Fate::Ran));
}

#[test]
fn what_a_rule_withholds_is_not_read_by_a_yes_to_all() {
    let (mut bench, beside) = bench();
    let deep = beside.join("lib/deep");
    std::fs::write(deep.join("c.txt"), "alpha hushed\n").unwrap();
    let place = deep.to_str().unwrap().trim_start_matches('/').as_bytes();
    let pattern = Pattern::Object(PortableObject::tree(RelPath::parse_dir(place).unwrap()));
    let written = ("config.toml", 7, Layer::User);
    let rule =
        ConfiguredRule::new("kept", Stance::Deny, vec![Verb::FsRead], pattern, written).unwrap();
    bench.runtime.add_rule(rule).unwrap();
    let (shown, report) = search(&mut bench, &beside, "once");
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert!(!report.text.contains("hushed"), "{}", report.text);
    let found: Value = serde_json::from_str(&report.text).unwrap();
    assert_eq!(found["total_count"], 2, "{found}");
}

#[test]
fn a_link_in_it_is_not_followed_and_one_that_is_searched_is_asked_about_where_it_leads() {
    let (mut bench, beside) = bench();
    let around = beside.parent().unwrap().join("around");
    std::fs::create_dir(&around).unwrap();
    std::fs::write(around.join("o.txt"), "alpha hushed\n").unwrap();
    std::os::unix::fs::symlink(&around, beside.join("out")).unwrap();
    std::os::unix::fs::symlink("lib", beside.join("in")).unwrap();
    let (shown, report) = search(&mut bench, &beside, "once");
    assert_eq!(shown.len(), 1);
    assert!(!report.text.contains("hushed"), "{}", report.text);
    // Nobody knows where it leads before it was looked at.
    let (shown, report) = search(&mut bench, &beside.join("in"), "once");
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(shown[1].contains(&format!("fs.read all of {}/lib\n", beside.display())));
    assert!(report.text.contains("beta alpha"), "{}", report.text);
    let (_, report) = search(&mut bench, &beside.join("out"), "once");
    assert!(!report.text.contains("hushed"), "{}", report.text);
}

/// A grant that holds a part is not asked about again, and more than one page of files is
/// one question where only reading is lacking.
#[test]
fn what_is_held_is_not_asked_about_with_the_rest() {
    let (mut bench, beside) = bench();
    for number in 0..400 {
        std::fs::write(beside.join(format!("{number}.log")), "text\n").unwrap();
    }
    let first = bench.runtime.first_agent();
    let words = GrantWords::new("fs.list", &beside.to_string_lossy());
    bench.runtime.grant(first, &words).unwrap();
    let (shown, report) = search(&mut bench, &beside, "once");
    assert_eq!(shown.len(), 1, "{shown:#?}");
    let all = format!("fs.read all of {}\nthat is", beside.display());
    assert!(shown[0].starts_with(&all), "{shown:?}");
    assert!(report.text.contains("beta alpha"), "{}", report.text);
    // A few files are named.
    let (shown, _) = search(&mut bench, &beside.join("lib"), "once");
    let two =
        ["b.txt", "deep/c.txt"].map(|name| format!("fs.read {}/lib/{name}\n", beside.display()));
    assert_eq!(shown.len(), 1);
    assert!(two.iter().all(|line| shown[0].contains(line)), "{shown:?}");
}

#[test]
fn what_is_looked_at_for_a_change_is_named_and_a_no_changes_nothing() {
    let (mut bench, beside) = bench();
    let at = beside.display();
    let args = json!({"path": beside.join("new/deep/x.txt"), "content": "x\n"});
    let (shown, report) = call(&mut bench, ("write_file", args.clone()), "deny");
    assert_eq!(
        shown,
        [format!(
            "write_file looks at this first; what it would change is asked about by itself\n\
             fs.read {at}/new/deep/x.txt\n\
             fs.read (whether it is there) {at}/new/deep\n\
             fs.read (whether it is there) {at}/new\n"
        )]
    );
    assert_ne!(report.fate, Fate::Ran);
    // A yes to the look is none to the change.
    bench.user.shown.borrow_mut().clear();
    bench.user.words.borrow_mut().extend(["once", "deny"]);
    let report = bench.call("write_file", args);
    let told = bench.user.shown.borrow()[1].clone();
    // What is made on the way is a part of it, and is told.
    let made = format!("\nnew directory {at}/new\nnew directory {at}/new/deep\n");
    assert!(told.ends_with(&made), "{told}");
    assert_ne!(report.fate, Fate::Ran);
    assert!(!beside.join("new").exists());
}

#[test]
fn who_takes_a_yes_back_while_its_call_works_is_not_asked_again() {
    // The number of the grant that the first yes makes.
    let yes = bench().0.grant("fs.create", "x");
    let (mut bench, beside) = bench();
    let remote = bench.runtime.remote();
    let next = bench.user.meanwhile.clone();
    *bench.user.meanwhile.borrow_mut() = Some(Box::new(move || {
        let revoked = move || assert_eq!(remote.revoke(yes).unwrap(), [yes]);
        *next.borrow_mut() = Some(Box::new(revoked));
    }));
    let update = |name: &str, old: &str| {
        let name = beside.join(name);
        format!("*** Update File: {}\n@@\n-{old}\n+new\n", name.display())
    };
    let patch = format!(
        "*** Begin Patch\n{}{}*** End Patch",
        update("a.txt", "alpha"),
        update("lib/b.txt", "beta alpha")
    );
    let args = json!({"mode": "patch", "patch": patch});
    let (shown, report) = call(&mut bench, ("patch", args), "once");
    // What was agreed to then is done; it is looked at no more.
    assert_eq!(shown.len(), 2, "{shown:#?}");
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    let text = std::fs::read_to_string(beside.join("lib/b.txt")).unwrap();
    assert_eq!(text, "new\n");
}
