//! A link gives a place a second spelling, never a second set of rules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::{os::unix::fs::symlink, process::Command};

use hermitcrab::runtime::{Fate, GrantWords};
use hermitcrab_core::{
    approval::Stance,
    authority::Verb,
    outcome::DenialCode,
    path::RelPath,
    rules::{ConfiguredRule, Layer, Pattern},
    standing::PortableObject,
};
use serde_json::json;
use support::{Bench, home::Home};

fn with_links() -> Bench {
    let bench = Bench::new();
    bench.put("notes/a.txt", "alpha needle\n");
    bench.put(".env", "TOKEN=needle\n");
    bench.put("keys/.ssh/id_rsa", "needle\n");
    std::fs::write(
        bench.workspace.parent().unwrap().join("outside.txt"),
        "needle\n",
    )
    .unwrap();
    for (target, name) in [
        ("notes/a.txt", "to-file"),
        ("notes", "to-dir"),
        ("to-file", "to-link"),
        (".env", "innocent.txt"),
        ("keys/.ssh", "harmless"),
        ("../outside.txt", "out.txt"),
        ("nothing", "dangling"),
        ("loop", "loop"),
    ] {
        symlink(target, bench.workspace.join(name)).unwrap();
    }
    bench
}

fn read(bench: &mut Bench, path: &str) -> hermitcrab::runtime::CallReport {
    bench.call("read_file", json!({ "path": path }))
}

#[test]
fn a_link_by_whose_name_something_is_run_is_asked_about_as_what_lies_behind_it() {
    for (script, is_asked) in [
        (
            "mkdir -p foo; echo x > foo/tasks.json; ln -s foo bar",
            false,
        ),
        (
            "mkdir -p foo; echo x > foo/tasks.json; ln -s foo .vscode",
            true,
        ),
        ("ln -s foo x; mv x .vscode", true),
    ] {
        let mut bench = Bench::with_files();
        let report = bench.call("terminal", json!({ "command": script }));
        assert_eq!(!report.questions.is_empty(), is_asked, "{script}");
        let made = std::fs::symlink_metadata(bench.workspace.join(".vscode"));
        assert!(made.is_err(), "{script}");
        if is_asked {
            let shown = bench.user.shown.borrow();
            assert!(shown[0].contains("new link"), "{shown:?}");
        } else {
            assert_eq!(report.fate, Fate::Ran, "{}", report.text);
        }
    }
}

#[test]
fn links_that_stay_inside_are_read_through() {
    for path in ["to-file", "to-link", "to-dir/a.txt"] {
        let report = read(&mut with_links(), path);
        assert_eq!(report.fate, Fate::Ran, "{path}: {}", report.text);
        assert!(
            report.text.contains("alpha needle"),
            "{path}: {}",
            report.text
        );
    }
    // Two names of one file are one file.
    let mut bench = with_links();
    read(&mut bench, "to-file");
    let again = read(&mut bench, "to-link");
    assert!(again.text.contains("\"dedup\": true"), "{}", again.text);
    let report = bench.call(
        "search_files",
        json!({"pattern": "needle", "path": "to-dir"}),
    );
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert!(report.text.contains("alpha needle"), "{}", report.text);
}

#[test]
fn a_sensitive_file_is_asked_about_under_any_spelling() {
    for path in [".env", "innocent.txt", "harmless/id_rsa"] {
        let mut bench = with_links();
        let report = read(&mut bench, path);
        assert_eq!(
            report.fate,
            Fate::AskedRefused(DenialCode::RejectedByUser),
            "{path}: {}",
            report.text
        );
        assert!(!report.text.contains("needle"), "{path}: {}", report.text);
        // Where the name as written is sensitive too, both are asked about.
        bench.user.words.borrow_mut().extend(["once", "once"]);
        let report = read(&mut bench, path);
        assert_eq!(report.fate, Fate::Ran, "{path}: {}", report.text);
        assert!(report.text.contains("needle"), "{path}: {}", report.text);
    }
}

#[test]
fn links_that_lead_out_or_nowhere_give_nothing() {
    let mut bench = with_links();
    let report = read(&mut bench, "out.txt");
    assert_eq!(
        report.fate,
        Fate::Refused(DenialCode::OutsideRoot),
        "{}",
        report.text
    );
    for path in ["out.txt", "dangling", "loop"] {
        assert!(!read(&mut bench, path).text.contains("needle"), "{path}");
        let report = bench.call("search_files", json!({"pattern": "needle", "path": path}));
        assert!(
            !report.text.contains("needle\\n") && report.fate != Fate::Ran,
            "{path}: {}",
            report.text
        );
    }
}

#[test]
fn a_link_into_a_place_that_is_not_held_is_asked_for_by_its_own_name() {
    let mut bench = with_links();
    let first = bench.runtime.first_agent();
    // The child holds `notes` alone; the link in it leads to the rest.
    symlink("../keys/plain.txt", bench.workspace.join("notes/sly.txt")).unwrap();
    bench.put("keys/plain.txt", "needle\n");
    let on = bench.workspace.join("notes").to_string_lossy().into_owned();
    let notes = bench
        .runtime
        .grant(first, &GrantWords::new("fs.read", &on))
        .unwrap();
    let child = bench.runtime.spawn(first, &[notes]).unwrap();
    let mut read = |path: &str| {
        bench
            .runtime
            .call(child, "read_file", &json!({ "path": path }))
    };
    assert_eq!(read("notes/a.txt").fate, Fate::Ran);
    let report = read("notes/sly.txt");
    assert!(
        matches!(report.fate, Fate::Refused(_)),
        "{:?} {}",
        report.fate,
        report.text
    );
    assert!(!report.text.contains("needle"), "{}", report.text);
}

/// A directory beside the workspace with a file in it, and how a command shows that.
fn beside(bench: &Bench, name: &str) -> (String, serde_json::Value) {
    let dir = bench.workspace.parent().unwrap().join(name);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("f"), "needle\n").unwrap();
    let path = dir.to_str().unwrap().to_owned();
    let command = json!({"command": format!("cat {path}/f || true")});
    (path, command)
}

#[test]
fn a_command_does_not_see_through_a_link_that_took_the_place_of_what_is_held() {
    let mut bench = Bench::new();
    let (above, _) = beside(&bench, "above");
    let (given, shows) = beside(&bench, "above/given");
    beside(&bench, "above/private");
    // The one above is held open, the one below may be read.
    bench.grant("fs.create", &above);
    bench.grant("fs.read", &given);
    let seen = bench.call("terminal", shows.clone()).text;
    assert!(seen.contains("needle"), "{seen}");
    std::fs::remove_dir_all(&given).unwrap();
    symlink("private", &given).unwrap();
    let seen = bench.call("terminal", shows).text;
    assert!(!seen.contains("needle"), "{seen}");
}

#[test]
fn a_command_does_not_see_a_directory_that_a_rule_refuses_to_have_read() {
    let mut bench = Bench::new();
    let (path, shows) = beside(&bench, "private");
    bench.grant("fs.read", &path);
    let seen = bench.call("terminal", shows.clone()).text;
    assert!(seen.contains("needle"), "{seen}");
    let place = RelPath::parse(path.trim_start_matches('/').as_bytes()).unwrap();
    let rule = ConfiguredRule::new(
        "private",
        Stance::Deny,
        vec![Verb::FsRead],
        Pattern::Object(PortableObject::tree(place)),
        ("config.toml", 1, Layer::User),
    );
    bench.runtime.add_rule(rule.unwrap()).unwrap();
    let report = bench.call("terminal", shows);
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert!(!report.text.contains("needle"), "{}", report.text);
}

#[test]
fn a_change_under_a_links_name_falls_on_the_place_it_leads_to() {
    let mut bench = with_links();
    bench.grant("fs.*", "notes");
    let write = json!({"path": "to-link", "content": "written\n"});
    let report = bench.call("write_file", write);
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert!(report.text.contains("notes/a.txt"), "{}", report.text);
    let change = json!({"path": "to-dir/a.txt", "old_string": "written", "new_string": "changed"});
    assert_eq!(bench.call("patch", change).fate, Fate::Ran);
    let write = json!({"path": "to-dir/new/b.txt", "content": "b\n"});
    assert_eq!(bench.call("write_file", write).fate, Fate::Ran);
    let both = "*** Begin Patch\n*** Update File: to-file\n@@\n-changed\n+both\n*** Add File: to-dir/c.txt\n+c\n*** End Patch";
    let report = bench.call("patch", json!({"mode": "patch", "patch": both}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!(bench.text("notes/a.txt").as_deref(), Some("both\n"));
    assert_eq!(bench.text("notes/new/b.txt").as_deref(), Some("b\n"));
    assert_eq!(bench.text("notes/c.txt").as_deref(), Some("c"));
    let is_link = |name: &str| bench.workspace.join(name).is_symlink();
    assert!(is_link("to-link") && is_link("to-file") && is_link("to-dir"));
}

#[test]
fn a_change_through_a_link_is_held_to_what_covers_the_place_it_leads_to() {
    // The names as written are covered, what they lead to is not, is sensitive, or lies outside.
    for (path, is_asked) in [
        ("to-file", true),
        ("innocent.txt", true),
        ("harmless/id_rsa", true),
        ("out.txt", false),
        ("dangling", true),
        ("loop", false),
    ] {
        let mut bench = with_links();
        let before = bench.text("notes/a.txt");
        bench.grant("fs.modify", path);
        bench.grant("fs.create", path);
        let report = bench.call("write_file", json!({"path": path, "content": "x\n"}));
        let asked = matches!(report.fate, Fate::AskedRefused(_));
        assert!(
            asked || matches!(report.fate, Fate::Refused(_) | Fate::ToolError),
            "{path}: {:?} {}",
            report.fate,
            report.text
        );
        assert_eq!(asked, is_asked, "{path}: {:?} {}", report.fate, report.text);
        assert_eq!(bench.text("notes/a.txt"), before, "{path}");
        assert_eq!(
            bench.text(".env").as_deref(),
            Some("TOKEN=needle\n"),
            "{path}"
        );
        assert_eq!(bench.text("nothing"), None, "{path}");
        let outside =
            std::fs::read_to_string(bench.workspace.parent().unwrap().join("outside.txt"));
        assert_eq!(outside.unwrap(), "needle\n", "{path}");
    }
}

#[test]
fn what_a_link_leads_to_that_is_not_there_yet_is_made_there_and_nowhere_else() {
    let patch = |text: &str| json!({"mode": "patch", "patch": text});
    let mut bench = with_links();
    bench.grant("fs.*", ".");
    let link = |target: &str, name: &str| symlink(target, bench.workspace.join(name)).unwrap();
    link("none/deep/x.txt", "far");
    link("added.txt", "to-add");
    link("to-add", "to-it-by-two");
    link("../notes/z.txt", "notes/back");
    let outside = bench.workspace.parent().unwrap().join("made.txt");
    link("../made.txt", "to-outside");
    link(outside.to_str().unwrap(), "to-outside-in-full");
    link("none-here/../notes/y.txt", "over-what-is-not-there");
    link(".env.new", "innocent.new");
    for (path, made) in [
        ("dangling", "nothing"),
        ("far", "none/deep/x.txt"),
        ("notes/back", "notes/z.txt"),
    ] {
        let report = bench.call("write_file", json!({"path": path, "content": "new\n"}));
        assert_eq!(report.fate, Fate::Ran, "{path}: {}", report.text);
        assert_eq!(bench.text(made).as_deref(), Some("new\n"), "{path}");
        let told: serde_json::Value = serde_json::from_str(&report.text).unwrap();
        let told = told["resolved_path"].as_str().unwrap();
        assert_eq!(told, bench.workspace.join(made).to_str().unwrap());
        assert!(bench.workspace.join(path).is_symlink(), "{path}");
    }
    let add = patch("*** Begin Patch\n*** Add File: to-it-by-two\n+new\n*** End Patch");
    let report = bench.call("patch", add);
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!(bench.text("added.txt").as_deref(), Some("new"));
    // What leads out, or over what is not there, makes nothing; what is sensitive is asked about.
    for (path, is_asked) in [
        ("to-outside", false),
        ("to-outside-in-full", false),
        ("over-what-is-not-there", false),
        ("innocent.new", true),
    ] {
        let report = bench.call("write_file", json!({"path": path, "content": "x\n"}));
        let asked = matches!(report.fate, Fate::AskedRefused(_));
        assert_eq!(asked, is_asked, "{path}: {}", report.text);
        assert!(asked || matches!(report.fate, Fate::Refused(_)), "{path}");
    }
    assert!(!outside.exists());
    assert_eq!(bench.text("notes/y.txt"), None);
    assert_eq!(bench.text(".env.new"), None);
    // A move goes into the directory that a link on the way leads to.
    let report = bench.call(
        "patch",
        patch("*** Begin Patch\n*** Move File: added.txt -> to-dir/moved.txt\n*** End Patch"),
    );
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!(bench.text("notes/moved.txt").as_deref(), Some("new"));
    assert_eq!(bench.text("added.txt"), None);
}

#[test]
fn a_name_that_rules_speak_of_is_not_led_on() {
    let mut bench = with_links();
    symlink("notes/a.txt", bench.workspace.join(".envrc")).unwrap();
    symlink("notes", bench.workspace.join(".husky")).unwrap();
    bench.grant("fs.*", ".");
    for path in [".envrc", ".husky/pre-commit"] {
        let report = bench.call("write_file", json!({"path": path, "content": "x\n"}));
        assert!(
            matches!(
                report.fate,
                Fate::Refused(_) | Fate::AskedRefused(_) | Fate::ToolError
            ),
            "{path}: {:?} {}",
            report.fate,
            report.text
        );
        assert_eq!(bench.text("notes/a.txt").as_deref(), Some("alpha needle\n"));
        assert_eq!(bench.text("notes/pre-commit"), None);
    }
}

#[test]
fn nothing_is_changed_under_a_path_that_goes_up_from_a_link() {
    let calls = |path: &str| {
        [
            ("write_file", json!({"path": path, "content": "written\n"})),
            (
                "patch",
                json!({"mode": "replace", "path": path, "old_string": "alpha", "new_string": "beta"}),
            ),
        ]
    };
    let bench = || {
        let mut bench = with_links();
        bench.grant("fs.*", ".");
        bench.put("a/deep/f.txt", "alpha\n");
        bench.put("up.txt", "alpha\n");
        symlink("a/deep", bench.workspace.join("below")).unwrap();
        symlink("/", bench.workspace.join("root")).unwrap();
        bench
    };
    for path in [
        // By its spelling `up.txt`, to the system `a/up.txt`.
        "below/../up.txt",
        "./below/./../up.txt",
        "a/../below/../up.txt",
        "root/../up.txt",
        "loop/../up.txt",
    ] {
        for (tool, args) in calls(path) {
            let mut bench = bench();
            let report = bench.call(tool, args.clone());
            let refused = Fate::Refused(DenialCode::SymlinkRefused);
            assert_eq!(report.fate, refused, "{args}: {}", report.text);
            assert_eq!(bench.text("up.txt").unwrap(), "alpha\n", "{args}");
            assert_eq!(bench.text("a/up.txt"), None, "{args}");
        }
    }
    // Where the two are one, it is changed: up from directories, also behind a link.
    for path in [
        "a/../up.txt",
        "a/deep/../../up.txt",
        "below/new/../f.txt",
        "to-dir/../up.txt",
    ] {
        let mut bench = bench();
        std::fs::create_dir(bench.workspace.join("a/deep/new")).unwrap();
        let args = json!({"path": path, "content": "written\n"});
        let report = bench.call("write_file", args);
        assert_eq!(report.fate, Fate::Ran, "{path}: {}", report.text);
        let written = bench.workspace.join(path);
        assert_eq!(std::fs::read_to_string(written).unwrap(), "written\n");
    }
}

#[test]
fn no_step_changes_what_a_path_names_that_goes_up_from_a_link() {
    let up = "link/../up.txt";
    for (call, with) in [
        ("delete_files", json!({"paths": [up]})),
        (
            "create_file",
            json!({"path": up, "text": "x", "replace": true}),
        ),
        (
            "copy_file",
            json!({"from": "a.txt", "to": "link/../new.txt"}),
        ),
        ("move_file", json!({"from": up, "to": "new.txt"})),
        (
            "move_file",
            json!({"from": "a.txt", "to": "link/../new.txt"}),
        ),
        (
            "move_files",
            json!({"paths": ["a.txt"], "into": "link/../b"}),
        ),
        ("create_directory", json!({"path": "link/../made"})),
        ("organize_by_type", json!({"path": "link/../b"})),
    ] {
        let home = Home::new();
        let project = home.project();
        for dir in ["b", "a/b", "a/deep"] {
            std::fs::create_dir_all(project.join(dir)).unwrap();
        }
        for name in ["up.txt", "b/c.txt", "a/b/c.txt", "a/up.txt"] {
            std::fs::write(project.join(name), "old\n").unwrap();
        }
        symlink("a/deep", project.join("link")).unwrap();
        let all = || -> Vec<String> {
            let found = Command::new("find").arg(&project).output().unwrap();
            let mut found: Vec<String> = String::from_utf8(found.stdout)
                .unwrap()
                .lines()
                .map(str::to_owned)
                .collect();
            found.sort();
            found
        };
        let before = all();
        let steps = json!([{"id": "one", "call": call, "with": with}]);
        let plan = json!({"version": 1, "summary": "a test", "steps": steps});
        std::fs::write(home.path().join("plan.json"), plan.to_string()).unwrap();
        let ran = home.run(&[
            "run",
            "--plan",
            "../plan.json",
            "--yes-low",
            "--grant",
            "fs.*=.",
        ]);
        assert_ne!(ran.code, Some(0), "{call}: {ran:?}");
        assert!(ran.out.contains("(symlink-refused)"), "{call}: {ran:?}");
        assert_eq!(all(), before, "{call}");
        let text = std::fs::read_to_string(project.join("up.txt")).unwrap();
        assert_eq!(text, "old\n", "{call}");
    }
}

/// Whoever made the file behind such a link would have made the agent's own settings.
#[test]
fn where_the_agents_own_files_would_come_to_lie_nobody_works() {
    // A configuration behind a link to nothing is one nobody can read.
    for (link, target, told) in [
        (
            ".config/hermitcrab/config.toml",
            "proj/settings.toml",
            "where nothing is",
        ),
        (
            ".config/hermitcrab",
            "proj/dotfiles/hermitcrab",
            "where nothing is",
        ),
        (".config", "proj/dotfiles", "where nothing is"),
        (".local/state/hermitcrab", "proj/state", "the agent's own"),
    ] {
        let home = Home::new();
        let link = home.path().join(link);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(home.path().join(target), &link).unwrap();
        let made = "mkdir -p dotfiles/hermitcrab state; \
                    for f in settings.toml dotfiles/hermitcrab/config.toml; do echo 'mode = \"approve_all\"' > $f; done";
        let ran = home.run(&["exec", "--grant", "fs.*=.", "--", made]);
        assert_eq!(ran.code, Some(64), "{link:?}: {ran:?}");
        assert!(ran.err.contains(told), "{ran:?}");
        assert!(!home.path().join(target).exists(), "{link:?}");
    }
}

/// A rule is about the place, also where it is made only later.
#[test]
fn a_rule_about_a_link_to_nothing_is_about_what_comes_to_lie_there() {
    let home = Home::new();
    symlink("releases/5", home.project().join("current")).unwrap();
    home.configure(
        "[[rules]]\nid = \"current\"\nverbs = [\"fs.create\"]\non = \"current\"\ndecision = \"deny\"\n",
    );
    let exec = ["exec", "--grant", "fs.*=.", "--"];
    let ran = home.run(&[&exec[..], &["mkdir -p releases/5"]].concat());
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(ran.err.contains("denied-by-rule"), "{ran:?}");
    let ran = home.run(&[&exec[..], &["mkdir -p releases/6"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// A directory of the configuration is that directory, and not what somebody who may change
/// the one above it puts in its place.
#[test]
fn a_configured_directory_that_became_a_link_is_left_out() {
    let home = Home::new();
    let (docs, victim) = (home.project().join("docs"), home.path().join("victim"));
    for (dir, text) in [(&docs, "for everybody"), (&victim, "needle")] {
        std::fs::create_dir(dir).unwrap();
        std::fs::write(dir.join("f"), text).unwrap();
    }
    let other = home.path().join("other");
    std::fs::create_dir(&other).unwrap();
    home.ok(&["config", "add-directory", "docs"]);
    let at = docs.join("f").to_string_lossy().into_owned();
    let read = |home: &Home| {
        let args = json!({"path": at}).to_string();
        home.run_in(&other, &["call", "read_file", &args])
    };
    let ran = read(&home);
    assert!(ran.out.contains("for everybody"), "{ran:?}");
    let put = "rm -r docs && ln -s ../victim docs";
    home.ok(&["exec", "--grant", "fs.*=.", "--", put]);
    let ran = read(&home);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(!ran.out.contains("needle"), "{ran:?}");
    assert!(
        ran.err.contains("is left out: a link leads from there to"),
        "{ran:?}"
    );
    let shown = home.run_in(&other, &["exec", "--", &format!("cat {at}")]);
    assert!(!shown.out.contains("needle"), "{shown:?}");
    // A grant written by hand, also one to change files, and one through a link above it.
    std::fs::create_dir_all(victim.join("below")).unwrap();
    for on in ["docs", "docs/below"] {
        let on = home.project().join(on);
        home.configure(&format!(
            "[[grants]]\nverb = \"fs.*\"\non = \"{}\"\n",
            on.display()
        ));
        let made = format!("echo x > {}/made", on.display());
        let ran = home.run_in(&other, &["exec", "--", &made]);
        assert!(ran.err.contains("is left out"), "{ran:?}");
        assert!(!victim.join("made").exists() && !victim.join("below/made").exists());
    }
    // Where it is meant it is written as it is.
    home.configure(&format!("directories = [\"{}\"]\n", victim.display()));
    let args = json!({"path": victim.join("f")}).to_string();
    let ran = home.run_in(&other, &["call", "read_file", &args]);
    assert!(ran.out.contains("needle"), "{ran:?}");
}
