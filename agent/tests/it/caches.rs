//! What a command leaves in caches is left out where it is not held, and nobody is asked.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;

use hermitcrab::runtime::{CallReport, Fate};
use serde_json::{Value, json};

use crate::support::{
    Bench,
    home::{Home, Ran, until},
};

/// Stands for a program that keeps a cache, new or old, beside what it reads.
const CACHES: &str = "mkdir -p pkg/__pycache__ && echo 1 > pkg/__pycache__/m.cpython-311.pyc";

fn project() -> Home {
    let home = Home::new();
    std::fs::create_dir(home.project().join("pkg")).unwrap();
    std::fs::write(home.project().join("pkg/m.py"), "x = 1\n").unwrap();
    home
}

fn cached(home: &Home) -> PathBuf {
    home.project().join("pkg/__pycache__/m.cpython-311.pyc")
}

#[track_caller]
fn is_refused(ran: &Ran) {
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(!ran.err.contains("not kept"), "{ran:?}");
}

#[test]
fn a_program_that_only_fills_caches_ends_as_it_ends_and_is_told_of() {
    let home = project();
    let ran = home.run(&["exec", "--", &format!("{CACHES}; exit 3")]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(
        ran.err
            .contains("what it left in caches is not kept (2 names"),
        "{ran:?}"
    );
    assert!(!home.project().join("pkg/__pycache__").exists());
    // The same once more: nothing was remembered either.
    let ran = home.run(&["exec", "--", CACHES]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn what_is_done_besides_stands_or_falls_as_it_would_without_caches() {
    let home = project();
    let both = format!("{CACHES}; echo new > b.txt");
    is_refused(&home.run(&["exec", "--", &both]));
    assert!(!home.project().join("b.txt").exists());
    // What is written elsewhere, and was nowhere in them, hinders nothing.
    let changed = format!("{CACHES}; echo more > a.txt");
    let ran = home.run(&["exec", "--grant", "fs.modify=a.txt", "--", &changed]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = home.run(&["exec", "--grant", "fs.create=b.txt", "--", &both]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(home.project().join("b.txt").exists());
    assert!(!home.project().join("pkg/__pycache__").exists());
    let ran = home.run(&["undo"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!home.project().join("b.txt").exists());
}

#[test]
fn where_caches_are_held_they_stand() {
    let home = project();
    let command =
        "mkdir lib lib/__pycache__ && echo 1 > lib/__pycache__/n.pyc && echo 2 > lib/n.py";
    // Whoever holds all of the directory holds its caches, too.
    let ran = home.run(&["exec", "--grant", "fs.create=lib", "--", command]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.err, "");
    assert!(home.project().join("lib/__pycache__/n.pyc").exists());
    std::fs::remove_dir_all(home.project().join("lib")).unwrap();
    home.configure("mode = \"approve_all\"\n");
    let ran = home.run(&["exec", "--", command]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(home.project().join("lib/__pycache__/n.pyc").exists());
}

#[test]
fn a_cache_that_is_there_is_left_as_it_is() {
    let home = project();
    let file = cached(&home);
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "old\n").unwrap();
    let ran = home.run(&[
        "exec",
        "--",
        &format!("{CACHES}; chmod 600 pkg/__pycache__/*; echo 2 > pkg/__pycache__/o"),
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "old\n");
    assert!(!home.project().join("pkg/__pycache__/o").exists());
    let held = ["exec", "--grant", "fs.modify=pkg/__pycache__", "--", CACHES];
    assert_eq!(home.run(&held).code, Some(0));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "1\n");
}

#[test]
fn where_anything_is_gone_or_no_cache_nothing_is_left_out() {
    let home = project();
    std::fs::create_dir(home.project().join(".mypy_cache")).unwrap();
    std::fs::write(home.project().join(".mypy_cache/old"), "x").unwrap();
    for command in [
        // What is gone may be what is in the cache now, under another name or changed.
        "mkdir __pycache__; mv a.txt __pycache__/a.txt; echo more >> __pycache__/a.txt",
        "mkdir __pycache__; mv a.txt __pycache__/a.txt",
        // Whoever removes caches wants them gone.
        "rm .mypy_cache/old",
        "rm -r .mypy_cache",
        "mv .mypy_cache x",
        // No directories.
        "echo x > __pycache__",
        "ln -s pkg __pycache__",
        "chmod 700 .mypy_cache",
        // No names of caches.
        "mkdir cache; echo x > cache/a",
        "mkdir -p .git/__pycache__/; echo x > .git/config",
    ] {
        is_refused(&home.run(&["exec", "--", command]));
        let text = std::fs::read_to_string(home.project().join("a.txt"));
        assert_eq!(text.ok().as_deref(), Some("a\n"), "{command}");
        assert!(home.project().join(".mypy_cache/old").exists(), "{command}");
    }
}

#[test]
fn what_a_file_held_before_is_not_left_out_with_the_cache_it_was_put_in() {
    let home = project();
    for put in ["mv", "cp"] {
        let command = format!("mkdir __pycache__; {put} a.txt __pycache__/b; echo new > a.txt");
        is_refused(&home.run(&["exec", "--grant", "fs.modify=a.txt", "--", &command]));
        let text = std::fs::read_to_string(home.project().join("a.txt")).unwrap();
        assert_eq!(text, "a\n", "{put}");
    }
}

#[test]
fn which_directories_are_caches_is_configured() {
    let home = project();
    let other = "mkdir -p out && echo 1 > out/x";
    home.configure("[sandbox]\ncaches = [\"out\"]\n");
    assert_eq!(home.run(&["exec", "--", other]).code, Some(0));
    assert!(!home.project().join("out").exists());
    is_refused(&home.run(&["exec", "--", CACHES]));
    home.configure("[sandbox]\ncaches = []\n");
    is_refused(&home.run(&["exec", "--", other]));
    is_refused(&home.run(&["exec", "--", CACHES]));
    for wrong in ["/a", "..", ".git", "a/.git", ""] {
        home.configure(&format!("[sandbox]\ncaches = [\"{wrong}\"]\n"));
        let ran = home.run(&["exec", "--", "true"]);
        assert_eq!(ran.code, Some(64), "{ran:?}");
        assert!(ran.err.contains("sandbox.caches"), "{ran:?}");
    }
}

#[test]
fn what_programs_of_node_keep_beside_packages_is_left_out_and_packages_are_not() {
    let home = project();
    for name in [".cache", ".vite"] {
        is_refused(&home.run(&["exec", "--", "mkdir node_modules"]));
        std::fs::create_dir_all(home.project().join("node_modules")).unwrap();
        let kept =
            format!("mkdir -p node_modules/{name}/babel && echo 1 > node_modules/{name}/babel/x");
        let ran = home.run(&["exec", "--", &kept]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!home.project().join("node_modules").join(name).exists());
        is_refused(&home.run(&["exec", "--", &format!("mkdir {name} && echo 1 > {name}/x")]));
        std::fs::remove_dir_all(home.project().join("node_modules")).unwrap();
    }
}

#[test]
fn a_real_run_of_tests_asks_nobody() {
    let home = project();
    std::fs::write(
        home.project().join("test_m.py"),
        "import unittest\nfrom pkg import m\nclass T(unittest.TestCase):\n    def test_x(self):\n        self.assertEqual(m.x, 1)\n",
    )
    .unwrap();
    let ran = home.run(&["exec", "--", "/usr/bin/env python3 -m unittest -q"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.err.contains("what it left in caches is not kept"),
        "{ran:?}"
    );
    assert!(!home.project().join("__pycache__").exists());
}

#[test]
fn what_a_rule_refuses_is_left_out_and_the_new_directory_around_it_stands() {
    let home = project();
    home.configure(
        "mode = \"approve_all\"\n\n[[rules]]\nid = \"no-caches\"\ndecision = \"deny\"\n\
         verbs = [\"fs.create\"]\nnamed = \"__pycache__\"\n",
    );
    let command = "mkdir -p lib/__pycache__ && echo 1 > lib/__pycache__/n.pyc; echo 2 > lib/n.py";
    let ran = home.run(&["exec", "--", command]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("(2 names"), "{ran:?}");
    assert!(home.project().join("lib/n.py").exists());
    // A file in it is not refused, and has nowhere to be.
    assert!(!home.project().join("lib/__pycache__").exists());
}

/// What a command in the background came to that did this, one after the other, while
/// others look at it in between; it holds what it does outside of caches.
fn looked_at_between(bench: &mut Bench, parts: &[&str]) -> CallReport {
    let mut command = "mkdir /tmp/w".to_owned();
    for (part, does) in parts.iter().enumerate() {
        command +=
            &format!("; {does}; echo PA''RT{part}; until [ -e go{part}.txt ]; do sleep 0.02; done");
        bench.grant("fs.create", &format!("go{part}.txt"));
    }
    for verb in ["fs.modify", "fs.delete", "fs.create"] {
        bench.grant(verb, "a.txt");
    }
    let args = json!({"command": command, "background": true});
    let started = bench.call("terminal", args);
    let started: Value = serde_json::from_str(&started.text).unwrap();
    let id = started["session_id"].as_str().unwrap().to_owned();
    let poll = |bench: &mut Bench, wanted: &str| {
        until(|| {
            let args = json!({"action": "poll", "session_id": id});
            let report = bench.call("process", args);
            report.text.contains(wanted).then_some(report)
        })
    };
    for part in 0..parts.len() {
        poll(bench, &format!("PART{part}"));
        let seen = bench.call("terminal", json!({"command": "cat a.txt; true"}));
        assert_eq!(seen.fate, Fate::Ran, "{}", seen.text);
        let go = json!({"path": format!("go{part}.txt"), "content": ""});
        assert_eq!(bench.call("write_file", go).fate, Fate::Ran);
    }
    poll(bench, "\"exit_code\": 0")
}

#[test]
fn what_was_taken_away_while_a_command_still_ran_is_not_left_out_with_a_cache() {
    for (parts, there) in [
        (
            ["cp a.txt /tmp/w; rm a.txt", "cp -r /tmp/w __pycache__"],
            None,
        ),
        (
            [
                "cp a.txt /tmp/w; echo new > a.txt",
                "cp -r /tmp/w __pycache__",
            ],
            Some("new\n"),
        ),
        (
            [
                "touch a.txt",
                "mkdir __pycache__; cp a.txt __pycache__/b; echo new > a.txt",
            ],
            Some("new\n"),
        ),
    ] {
        let mut bench = Bench::new();
        bench.put("a.txt", "words\n");
        let ended = looked_at_between(&mut bench, &parts);
        assert_eq!(bench.text("a.txt").as_deref(), there, "{parts:?}");
        assert_eq!(ended.questions.len(), 1, "{parts:?}: {}", ended.text);
    }
}

#[test]
fn what_a_command_made_itself_and_removed_while_it_ran_hinders_nothing() {
    let mut bench = Bench::new();
    let parts = [
        "echo 1 > a.txt",
        "echo 2 > a.txt",
        "rm a.txt",
        "mkdir __pycache__; echo 1 > __pycache__/b",
    ];
    let ended = looked_at_between(&mut bench, &parts);
    assert!(ended.questions.is_empty(), "{}", ended.text);
    assert_eq!(bench.text("a.txt"), None);
    assert!(!bench.workspace.join("__pycache__").exists());
}

#[test]
fn what_a_file_gets_through_another_name_in_a_cache_is_decided_like_any_change() {
    let command = "mkdir __pycache__; ln a.txt __pycache__/b; echo new > __pycache__/b";
    let home = project();
    is_refused(&home.run(&["exec", "--", command]));
    let text = || std::fs::read_to_string(home.project().join("a.txt")).unwrap();
    assert_eq!(text(), "a\n");
    let ran = home.run(&["exec", "--grant", "fs.modify=a.txt", "--", command]);
    assert_eq!((ran.code, text().as_str()), (Some(0), "new\n"), "{ran:?}");
    assert!(!home.project().join("__pycache__").exists());
    // A cache that is a link is where it leads.
    std::os::unix::fs::symlink("pkg", home.project().join("__pycache__")).unwrap();
    for command in ["echo y > __pycache__/m.py", "echo y > __pycache__/new.py"] {
        is_refused(&home.run(&["exec", "--", command]));
    }
    assert!(!home.project().join("pkg/new.py").exists());
}

/// Whoever puts something into a cache that is not held puts it before nobody else: not
/// while it runs, not for later, whatever it runs as.
#[test]
fn what_is_left_in_a_cache_reaches_no_other_command() {
    let mut bench = Bench::new();
    bench.put("m.py", "x = 1\n");
    let poison = "mkdir -p __pycache__; echo 'print(666)' > __pycache__/m.py; \
                  echo POI''SONED; until [ -e go.txt ]; do sleep 0.02; done";
    let started = bench.call("terminal", json!({"command": poison, "background": true}));
    let started: Value = serde_json::from_str(&started.text).unwrap();
    let id = started["session_id"].clone();
    let poll = |bench: &mut Bench, wanted: &str| {
        until(|| {
            let report = bench.call("process", json!({"action": "poll", "session_id": id}));
            report.text.contains(wanted).then_some(())
        });
    };
    let looks = "ls -A; cat __pycache__/m.py; true";
    let unseen = |bench: &mut Bench, after: &str| {
        let seen = bench.call("terminal", json!({"command": looks}));
        assert!(
            seen.fate == Fate::Ran && !seen.text.contains("666"),
            "{after}: {}",
            seen.text
        );
        let script = json!({"code": "import os; print(os.path.exists('__pycache__'))"});
        let seen = bench.call("execute_code", script);
        assert!(seen.text.contains("False"), "{after}: {}", seen.text);
        assert!(!bench.workspace.join("__pycache__").exists(), "{after}");
    };
    poll(&mut bench, "POISONED");
    unseen(&mut bench, "while it runs");
    bench.grant("fs.create", "go.txt");
    let go = json!({"path": "go.txt", "content": ""});
    assert_eq!(bench.call("write_file", go).fate, Fate::Ran);
    poll(&mut bench, "\"exit_code\": 0");
    unseen(&mut bench, "after it ran");
    let script = json!({"code": "import os; os.mkdir('__pycache__'); open('__pycache__/m.py', 'w').write('666'); print('done')"});
    let ran = bench.call("execute_code", script);
    assert!(ran.text.contains("done"), "{}", ran.text);
    unseen(&mut bench, "after a script");
    assert!(bench.user.shown.borrow().is_empty(), "somebody was asked");
}
