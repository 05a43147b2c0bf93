//! A second name of a file that was there is a change of that file, whatever its name is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::os::unix::fs::MetadataExt as _;

use hermitcrab::runtime::{Fate, GrantWords};
use hermitcrab_core::{
    approval::Stance,
    authority::Verb,
    rules::{ConfiguredRule, Layer, Pattern},
    session::Asking,
};
use serde_json::json;
use support::Bench;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.put("src/main.c", "int main;\n");
    bench.put("deploy.sh", "deploy\n");
    bench.put(".env", "TOKEN=1\n");
    bench.put(".git/hooks/pre-commit", "true\n");
    bench.put("build/log.txt", "old\n");
    bench
}

fn names_of(bench: &Bench, name: &str) -> u64 {
    bench.workspace.join(name).metadata().unwrap().nlink()
}

#[test]
fn where_only_the_new_name_is_held_nothing_of_it_stands() {
    for script in [
        "ln .git/hooks/pre-commit build/hook",
        "ln -f .git/hooks/pre-commit build/log.txt",
        "rm build/log.txt; ln .env build/log.txt",
        "ln src/main.c build/a; ln src/main.c build/b",
        "ln deploy.sh build/one; mv build/one build/two",
    ] {
        let mut bench = bench();
        bench.grant("fs.*", "build");
        bench.runtime.set_asking(Asking::Refuse).unwrap();
        let report = bench.call("terminal", json!({ "command": script }));
        assert_ne!(report.fate, Fate::Ran, "{script}: {}", report.text);
        for name in [".git/hooks/pre-commit", ".env", "src/main.c", "deploy.sh"] {
            assert_eq!(names_of(&bench, name), 1, "{script}: {name}");
        }
        let there: Vec<_> = std::fs::read_dir(bench.workspace.join("build"))
            .unwrap()
            .collect();
        assert_eq!(there.len(), 1, "{script}");
        assert_eq!(
            bench.text("build/log.txt").as_deref(),
            Some("old\n"),
            "{script}"
        );
    }
}

/// A tree that is new is carried over as it is, and what is in it is its own.
#[test]
fn in_a_directory_that_is_new_a_second_name_is_a_copy_and_no_change_of_its_file() {
    let mut bench = bench();
    bench.grant("fs.*", "build");
    bench.runtime.set_asking(Asking::Refuse).unwrap();
    let script =
        "mkdir build/n; ln src/main.c build/n/a; ln src/main.c build/n/b; cp -al src build/snap";
    let report = bench.call("terminal", json!({ "command": script }));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!(names_of(&bench, "src/main.c"), 1);
    for name in ["build/n/a", "build/n/b", "build/snap/main.c"] {
        assert_eq!(bench.text(name).as_deref(), Some("int main;\n"), "{name}");
    }
}

/// Of several names that come at once one is linked, and nothing is said of the others.
#[test]
fn of_several_second_names_the_first_is_one() {
    let mut bench = bench();
    bench.grant("fs.*", ".");
    let script = "ln src/main.c build/a; ln src/main.c build/b";
    let report = bench.call("terminal", json!({ "command": script }));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!(names_of(&bench, "src/main.c"), 2);
    assert_eq!(
        (names_of(&bench, "build/a"), names_of(&bench, "build/b")),
        (2, 1)
    );
}

#[test]
fn a_name_that_is_asked_about_each_time_is_so_as_the_first_of_two() {
    let mut bench = bench();
    bench.grant("fs.*", ".");
    let report = bench.call("terminal", json!({"command": "ln src/main.c build/a"}));
    assert_eq!(report.questions.len(), 0, "{}", report.text);
    assert_eq!(names_of(&bench, "src/main.c"), 2);
    for (first, word, names) in [(".env", "deny", 1), (".git/hooks/pre-commit", "once", 2)] {
        bench.user.words.borrow_mut().push_back(word);
        let command = format!("ln {first} build/plain");
        let report = bench.call("terminal", json!({ "command": command }));
        assert_eq!(report.questions.len(), 1, "{}", report.text);
        let shown = bench.user.shown.borrow().last().cloned().unwrap();
        let workspace = bench.workspace.display();
        let told = format!(
            "{workspace}/build/plain is a second name of {workspace}/{first}: what is written to one is in both"
        );
        assert!(shown.contains(&told), "{shown}");
        assert_eq!(names_of(&bench, first), names);
    }
}

#[test]
fn a_rule_about_a_file_is_about_its_second_names() {
    let mut bench = bench();
    bench.grant("fs.*", ".");
    let written = ("config.toml", 7, Layer::User);
    let pattern = Pattern::Named("deploy.sh".to_owned());
    let rule = ConfiguredRule::new("r", Stance::Deny, vec![Verb::FsModify], pattern, written);
    bench.runtime.add_rule(rule.unwrap()).unwrap();
    let report = bench.call("terminal", json!({"command": "ln deploy.sh build/out.log"}));
    assert!(report.text.contains("denied-by-rule"), "{}", report.text);
    assert_eq!(names_of(&bench, "deploy.sh"), 1);
}

/// What a command that goes on has linked is decided as what one that ended has.
#[test]
fn one_that_goes_on_gives_no_second_name_that_is_not_held() {
    let mut bench = bench();
    let agent = bench.runtime.first_agent();
    let build = bench.workspace.join("build");
    let words = GrantWords::new("fs.*", &build.to_string_lossy());
    bench.runtime.grant(agent, &words).unwrap();
    bench.runtime.set_asking(Asking::Refuse).unwrap();
    let script = "ln .env build/e; echo made > build/m; echo first; sleep 600";
    let started = bench.call("terminal", json!({"command": script, "background": true}));
    assert_eq!(started.fate, Fate::Ran, "{}", started.text);
    for _ in 0..1200 {
        let looked = bench.call("read_file", json!({"path": "build/m"}));
        if looked.text.contains("made") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(names_of(&bench, ".env"), 1);
    let number = |name: &str| Some(build.join(name).metadata().ok()?.ino());
    let env = bench.workspace.join(".env").metadata().unwrap().ino();
    assert_ne!(number("e"), Some(env));
}

#[test]
fn a_file_that_has_several_names_already_gets_no_more_of_them() {
    let mut bench = bench();
    bench.grant("fs.*", ".");
    let other = bench.workspace.parent().unwrap().join("outside");
    std::fs::hard_link(bench.workspace.join("src/main.c"), &other).unwrap();
    let report = bench.call("terminal", json!({"command": "ln src/main.c build/a"}));
    assert_eq!(report.questions.len(), 0, "{}", report.text);
    assert_eq!(bench.text("build/a").as_deref(), Some("int main;\n"));
    assert_eq!(names_of(&bench, "src/main.c"), 2);
}
