//! The runtime from a model's call to its text: what is held runs, what is not
//! asks or is refused, and nothing stands that was not permitted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab::runtime::{Ceilings, Fate, GrantWords};
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_sandbox::spawn::Interpreters;
use serde_json::json;
use support::{
    Bench,
    asleep::{mark, out_of_time},
};

#[test]
fn a_held_write_is_done_and_read_back() {
    let mut bench = Bench::with_files();
    let report = bench.call(
        "write_file",
        json!({"path": "a/b.txt", "content": "hello\n"}),
    );
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert!(report.questions.is_empty());
    assert_eq!(bench.text("a/b.txt").as_deref(), Some("hello\n"));
    let report = bench.call("read_file", json!({"path": "a/b.txt"}));
    assert_eq!(
        report.text,
        r#"{"content": "1|hello\n2|", "total_lines": 1, "file_size": 6, "truncated": false, "is_binary": false, "is_image": false}"#
    );
}

#[test]
fn a_file_with_a_slash_behind_its_name_is_not_there() {
    for path in ["a.txt/", "a.txt/."] {
        let mut bench = Bench::with_files();
        bench.put("a.txt", "a\n");
        let report = bench.call("read_file", json!({ "path": path }));
        assert_eq!(report.fate, Fate::ToolError, "{path}: {}", report.text);
        // It counts as asked for all the same, as under Hermes.
        let report = bench.call("read_file", json!({"path": "./a.txt"}));
        assert_eq!(report.fate, Fate::Ran, "{}", report.text);
        assert!(report.text.contains("\"dedup\": true"), "{}", report.text);
    }
}

#[test]
fn a_write_that_is_not_held_is_shown_in_full_and_the_answer_decides() {
    let mut bench = Bench::new();
    bench.put("a.txt", "old\n");
    let args = json!({"path": "a.txt", "content": "new\n"});
    let report = bench.call("write_file", args.clone());
    assert_eq!(report.fate, Fate::AskedRefused(DenialCode::RejectedByUser));
    assert_eq!(bench.text("a.txt").as_deref(), Some("old\n"));
    assert!(
        bench.user.shown.borrow()[0].contains("-old\n+new\n"),
        "{}",
        bench.user.shown.borrow()[0]
    );

    bench.user.words.borrow_mut().push_back("once");
    assert_eq!(bench.call("write_file", args.clone()).fate, Fate::Ran);
    assert_eq!(bench.text("a.txt").as_deref(), Some("new\n"));

    bench.user.words.borrow_mut().push_back("yes please");
    let report = bench.call("write_file", json!({"path": "a.txt", "content": "newer\n"}));
    assert_eq!(report.fate, Fate::AskedRefused(DenialCode::UnknownAnswer));
    assert_eq!(bench.text("a.txt").as_deref(), Some("new\n"));
}

#[test]
fn interpreters_are_started_early_only_where_that_is_wanted() {
    let mut bench = Bench::with_files();
    // One that was started early has other words after its name.
    let is_early = |bench: &mut Bench| {
        let args = json!({"command": "tr '\\0' ' ' < /proc/$$/cmdline"});
        let report = bench.call("terminal", args);
        assert_eq!(report.fate, Fate::Ran, "{}", report.text);
        report.text.contains("read -r _h")
    };
    // A waiting one is made ready beside what runs.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while !is_early(&mut bench) {
        assert!(
            std::time::Instant::now() < until,
            "none was ever started early"
        );
    }
    bench.runtime.set_ceilings(Ceilings {
        interpreters: Some(Interpreters::NONE),
        ..Ceilings::default()
    });
    for _ in 0..5 {
        assert!(!is_early(&mut bench));
    }
}

#[test]
fn paths_outside_every_directory_are_refused_without_asking() {
    let mut bench = Bench::with_files();
    for (path, code) in [
        ("/etc/passwd", DenialCode::NoCap),
        ("../../../etc/passwd", DenialCode::PathEscapes),
        ("~root/x", DenialCode::NoCap),
    ] {
        let report = bench.call("read_file", json!({"path": path}));
        assert_eq!(report.fate, Fate::Refused(code), "{path}: {}", report.text);
        assert!(bench.user.shown.borrow().is_empty());
    }
}

#[test]
fn a_command_runs_on_a_copy_and_held_changes_stand() {
    let mut bench = Bench::with_files();
    bench.put("a.txt", "a\n");
    let report = bench.call(
        "terminal",
        json!({"command": "echo b >> a.txt && mkdir d && mv a.txt d/ && echo done"}),
    );
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!(
        report.text,
        r#"{"output": "done", "exit_code": 0, "error": null}"#
    );
    assert_eq!(bench.text("d/a.txt").as_deref(), Some("a\nb\n"));
    assert_eq!(bench.text("a.txt"), None);
    assert_eq!((report.changes.created, report.changes.deleted), (2, 1));
}

#[test]
fn changes_that_are_not_held_are_discarded_on_a_no_and_kept_on_a_yes() {
    let mut bench = Bench::new();
    bench.put("a.txt", "a\n");
    let report = bench.call("terminal", json!({"command": "r\\m -rf a.txt; echo gone"}));
    assert_eq!(
        report.fate,
        Fate::RanDiscarded(DenialCode::RejectedByUser),
        "{}",
        report.text
    );
    assert!(
        report.text.contains("\"status\": \"blocked\""),
        "{}",
        report.text
    );
    assert_eq!(bench.text("a.txt").as_deref(), Some("a\n"));
    let shown = bench.user.shown.borrow()[0].clone();
    assert!(
        shown.contains("deleted file") && shown.contains("a.txt") && shown.contains("-a\n"),
        "{shown}"
    );

    bench.user.words.borrow_mut().push_back("once");
    let report = bench.call("terminal", json!({"command": "rm -rf a.txt"}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!(bench.text("a.txt"), None);
}

#[test]
fn what_only_reads_needs_no_question() {
    let mut bench = Bench::new();
    bench.put("a.txt", "a\n");
    let report = bench.call(
        "terminal",
        json!({"command": "cat a.txt; echo x > /tmp/y; cat /tmp/y"}),
    );
    assert_eq!(report.fate, Fate::Ran);
    assert_eq!(
        report.text,
        r#"{"output": "a\nx", "exit_code": 0, "error": null}"#
    );
    assert!(report.questions.is_empty());
}

#[test]
fn directory_and_variables_last_from_command_to_command() {
    let mut bench = Bench::with_files();
    bench.put("d/x.txt", "x\n");
    bench.call("terminal", json!({"command": "cd d; export A='1 2'; B=3"}));
    let report = bench.call(
        "terminal",
        json!({"command": "echo \"$A,$B\"; basename $PWD"}),
    );
    assert_eq!(
        report.text,
        r#"{"output": "1 2,\nd", "exit_code": 0, "error": null}"#
    );
    let report = bench.call("read_file", json!({"path": "x.txt"}));
    assert!(report.text.contains("1|x"), "{}", report.text);
}

#[test]
fn a_script_finds_no_marks_of_a_shell_around_it() {
    let mut bench = Bench::beginning_with(|config| {
        for (name, value) in [("TZ", "Asia/Tokyo"), ("PYTHONHASHSEED", "0")] {
            config.env.push((name.to_owned(), value.to_owned()));
        }
    });
    bench.call(
        "terminal",
        json!({"command": "mkdir -p /tmp/x; cd /tmp; cd /"}),
    );
    let code = "import os\nprint([n for n in ('OLDPWD', 'PWD', 'PYTHONHASHSEED', 'SHLVL', 'TZ') if n in os.environ], 'PATH' in os.environ)";
    let report = bench.call("execute_code", json!({ "code": code }));
    let told: serde_json::Value = serde_json::from_str(&report.text).unwrap();
    assert_eq!(told["output"], "[] True\n", "{}", report.text);
}

#[test]
fn whoever_removes_the_directory_they_are_in_goes_on_in_the_next_one_above() {
    let mut bench = Bench::with_files();
    let run = |bench: &mut Bench, command: &str| {
        let report = bench.call("terminal", json!({"command": command}));
        serde_json::from_str::<serde_json::Value>(&report.text).unwrap()["output"].clone()
    };
    let script = json!({"code": "import os; print(os.path.basename(os.getcwd()), end='')"});
    run(&mut bench, "mkdir -p d/e/f g; cd d/e/f");
    run(&mut bench, "rm -r ../../e; echo x > ../../../h");
    let there = bench.call("execute_code", script.clone());
    assert!(there.text.contains("\"proj\""), "{}", there.text);
    // The command that finds it gone does not run elsewhere.
    let told = run(&mut bench, "touch made; pwd");
    assert!(told.as_str().unwrap().contains("No such file"), "{told}");
    assert_eq!(run(&mut bench, "basename $PWD; echo $#; ls"), "d\n0");
    assert_eq!(run(&mut bench, "cd ../g && basename $PWD"), "g");
    let there = bench.call("execute_code", script);
    assert!(there.text.contains("\"g\""), "{}", there.text);
}

#[test]
fn a_timeout_ends_the_command_and_says_so() {
    let mut bench = Bench::new();
    let mark = mark();
    let command = format!("echo a; sleep {mark}");
    let (seconds, report) = out_of_time(&mark, |seconds| {
        let args = json!({"command": command, "timeout": seconds});
        (seconds, bench.call("terminal", args))
    });
    let output = format!("a\\n\\n[Command timed out after {seconds}s]");
    assert_eq!(
        report.text,
        format!(r#"{{"output": "{output}", "exit_code": 124, "error": null}}"#)
    );
}

#[test]
fn the_ledger_is_written_and_whole() {
    let mut bench = Bench::with_files();
    bench.call("write_file", json!({"path": "a", "content": "x"}));
    let mut kinds = Vec::new();
    hermitcrab::audit::each(&bench.state, |record| kinds.push(record.kind.clone())).unwrap();
    assert!(
        kinds.contains(&"intent".to_owned()) && kinds.contains(&"outcome".to_owned()),
        "{kinds:?}"
    );
    hermitcrab::audit::verify(&bench.state).unwrap();
    let path = bench.state.join(hermitcrab::audit::FILE_NAME);
    let changed = std::fs::read_to_string(&path)
        .unwrap()
        .replacen("write_file", "read__file", 1);
    std::fs::write(&path, changed).unwrap();
    assert!(hermitcrab::audit::verify(&bench.state).is_err());
}

#[test]
fn the_agents_own_files_are_out_of_reach() {
    let mut bench = Bench::new();
    let first = bench.runtime.first_agent();
    let above = bench
        .workspace
        .parent()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    bench
        .runtime
        .grant(first, &GrantWords::new("fs.*", &above))
        .unwrap();
    let ledger = bench
        .state
        .join("ledger.jsonl")
        .to_string_lossy()
        .into_owned();
    let report = bench.call("write_file", json!({"path": ledger, "content": "x"}));
    assert_eq!(
        report.fate,
        Fate::Refused(DenialCode::Protected),
        "{}",
        report.text
    );
}

#[test]
fn unknown_tools_are_refused() {
    let mut bench = Bench::with_files();
    let report = bench.call("format_disk", json!({}));
    assert_eq!(report.fate, Fate::Refused(DenialCode::UnknownTool));
    assert_eq!(report.text, r#"{"error": "Unknown tool: format_disk"}"#);
}

#[test]
fn a_file_changed_after_it_was_shown_is_not_overwritten() {
    struct Meddler(std::path::PathBuf);
    impl hermitcrab::ports::UserPort for Meddler {
        fn ask(&mut self, _: hermitcrab::ports::Prompt<'_>) -> hermitcrab_core::approval::Reply {
            std::fs::write(&self.0, "meanwhile\n").unwrap();
            hermitcrab_core::approval::Reply::parse("once")
        }
    }
    let dirs = tempfile::tempdir().unwrap();
    let root = dirs.path().canonicalize().unwrap();
    let workspace = root.join("proj");
    std::fs::create_dir(&workspace).unwrap();
    let file = workspace.join("a.txt");
    for (tool, args) in [
        ("write_file", json!({"path": "a.txt", "content": "new\n"})),
        (
            "patch",
            json!({"path": "a.txt", "old_string": "old", "new_string": "new"}),
        ),
        ("terminal", json!({"command": "echo new > a.txt"})),
        ("terminal", json!({"command": "rm a.txt"})),
    ] {
        std::fs::write(&file, "old\n").unwrap();
        let mut runtime = hermitcrab::runtime::Runtime::open(
            support::config(workspace.clone(), root.join("state")),
            Box::new(Meddler(file.clone())),
            Box::new(support::ManualClock::default()),
        )
        .unwrap();
        let first = runtime.first_agent();
        runtime.grant_basics(first).unwrap();
        let report = runtime.call(first, tool, &args);
        assert_ne!(report.fate, Fate::Ran, "{tool}: {}", report.text);
        assert!(
            report.text.contains("changed-since-shown"),
            "{tool}: {}",
            report.text
        );
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            "meanwhile\n",
            "{tool}"
        );
    }
}

#[test]
fn a_link_out_of_the_workspace_is_refused() {
    let mut bench = Bench::with_files();
    std::os::unix::fs::symlink("/etc/passwd", bench.workspace.join("link")).unwrap();
    let report = bench.call("read_file", json!({"path": "link"}));
    assert_eq!(
        report.fate,
        Fate::Refused(DenialCode::OutsideRoot),
        "{}",
        report.text
    );
    let report = bench.call("write_file", json!({"path": "link", "content": "x"}));
    assert!(matches!(report.fate, Fate::Refused(_)), "{}", report.text);
}

#[test]
fn names_made_for_secrets_are_asked_about_even_if_reading_is_held() {
    let mut bench = Bench::with_files();
    bench.put(".env", "KEY=1\n");
    let report = bench.call("read_file", json!({"path": ".env"}));
    assert_eq!(
        report.fate,
        Fate::AskedRefused(DenialCode::RejectedByUser),
        "{}",
        report.text
    );
    bench.put("d/a.txt", "KEY\n");
    let path = bench.workspace.to_string_lossy().into_owned();
    let report = bench.call("search_files", json!({"pattern": "KEY", "path": path}));
    assert_eq!(report.fate, Fate::Ran);
    assert!(
        report.text.contains("d/a.txt") && report.text.contains("_omitted"),
        "{}",
        report.text
    );
    assert!(!report.text.contains("KEY=1"), "{}", report.text);
}

#[test]
fn a_discarded_command_leaves_no_directory_and_no_variable_behind() {
    let mut bench = Bench::new();
    let report = bench.call(
        "terminal",
        json!({"command": "mkdir d && cd d && export A=1"}),
    );
    assert_eq!(report.fate, Fate::RanDiscarded(DenialCode::RejectedByUser));
    let report = bench.call(
        "terminal",
        json!({"command": "basename $PWD; echo \"[$A]\""}),
    );
    assert_eq!(
        report.text,
        r#"{"output": "proj\n[]", "exit_code": 0, "error": null}"#
    );
}

#[test]
fn a_name_or_a_command_cannot_draw_on_the_question_about_it() {
    let mut bench = Bench::new();
    bench.call(
        "write_file",
        json!({"path": "a\u{1b}[2J\n+++ b\u{202e}", "content": "bin\u{0}"}),
    );
    bench.call(
        "terminal",
        json!({"command": "true\nnew file forged, 1 byte\nln -s \"$(printf 'x\\ny')\" link"}),
    );
    let shown = bench.user.shown.borrow();
    assert_eq!(shown.len(), 2, "{shown:?}");
    for question in shown.iter() {
        assert!(
            !question.contains(['\u{1b}', '\u{202e}', '\u{0}']),
            "{question:?}"
        );
    }
    let has_line =
        |question: &str, start: &str| question.lines().any(|line| line.starts_with(start));
    assert!(!has_line(&shown[0], "+++ b"), "{}", shown[0]);
    assert!(!has_line(&shown[1], "new file forged"), "{}", shown[1]);
    assert!(!has_line(&shown[1], "y"), "{}", shown[1]);
    assert!(has_line(&shown[1], "new link "), "{}", shown[1]);
}

#[test]
fn a_command_that_leaves_a_pipe_or_a_set_id_file_leaves_nothing() {
    for (command, code) in [
        ("echo b > b.txt; mkfifo pipe", DenialCode::NotRegularFile),
        (
            "echo b > b.txt; chmod u+s b.txt",
            DenialCode::EffectNotCovered,
        ),
    ] {
        let mut bench = Bench::with_files();
        let report = bench.call("terminal", json!({"command": command}));
        assert_eq!(report.fate, Fate::RanDiscarded(code), "{}", report.text);
        assert_eq!(bench.text("b.txt"), None);
        assert!(bench.user.shown.borrow().is_empty());
    }
}

#[test]
fn a_grant_above_the_agents_own_files_shows_them_to_no_command() {
    let mut bench = Bench::with_files();
    let first = bench.runtime.first_agent();
    let state = bench.state.to_string_lossy().into_owned();
    bench
        .runtime
        .grant(first, &GrantWords::new("fs.read", &state))
        .unwrap();
    let command = format!("cat {state}/ledger.jsonl && echo seen");
    let report = bench.call("terminal", json!({"command": command}));
    assert!(!report.text.contains("seen\""), "{}", report.text);
    assert!(!report.text.contains("granted"), "{}", report.text);
}

#[test]
fn the_agents_own_files_are_protected_where_links_lead_to_them() {
    let mut bench = Bench::new();
    let root = bench.workspace.parent().unwrap().to_owned();
    let link = root.join("elsewhere");
    std::os::unix::fs::symlink(&bench.state, &link).unwrap();
    let first = bench.runtime.first_agent();
    bench
        .runtime
        .grant(first, &GrantWords::new("fs.*", &link.to_string_lossy()))
        .unwrap();
    let path = link.join("forged").to_string_lossy().into_owned();
    let report = bench.call("write_file", json!({"path": path, "content": "x"}));
    assert_eq!(
        report.fate,
        Fate::Refused(DenialCode::Protected),
        "{}",
        report.text
    );
    assert!(!bench.state.join("forged").exists());
}

#[test]
fn what_is_asked_about_each_time_stands_at_the_end_of_a_long_question() {
    let mut bench = Bench::with_files();
    let asked_last = |bench: &mut Bench, command: &str| {
        bench.call("terminal", json!({"command": command}));
        let shown = bench.user.shown.borrow().last().unwrap().clone();
        shown.trim_end().lines().last().unwrap().to_owned()
    };
    let many = "for i in $(seq 50); do echo $i > z$i; done";
    let hook = "mkdir -p .git/hooks; echo evil > .git/hooks/post-commit";
    let at = bench.workspace.join(".git").display().to_string();
    assert_eq!(
        asked_last(&mut bench, &format!("{hook}; {many}")),
        format!("of this, asked about each time: fs.create {at}/hooks/post-commit")
    );
    let last = asked_last(
        &mut bench,
        "for i in $(seq 20); do echo k > $i.pem; done; echo > z",
    );
    assert!(last.ends_with(" and 12 more"), "{last}");
    let last = asked_last(&mut bench, &format!("echo KEY=1 > .env; {many}"));
    let env = bench.workspace.join(".env").display().to_string();
    assert_eq!(
        last,
        format!("of this, asked about each time: fs.create {env}")
    );
    // What is on the screen anyway is not said twice.
    assert_eq!(asked_last(&mut bench, "echo KEY=1 > .env"), "+KEY=1");
}
