//! Commands that go on running, and scripts that call tools.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab::{
    ports::ProgressPort,
    runtime::{CallReport, Ceilings, Fate, Layers},
};
use hermitcrab_core::{grant::AgentId, outcome::DenialCode};
use serde_json::{Value, json};
use std::{
    cell::RefCell,
    rc::Rc,
    time::{Duration, Instant},
};
use support::{
    Bench,
    asleep::{mark, out_of_time},
};

fn value(report: &CallReport) -> Value {
    serde_json::from_str(&report.text).unwrap()
}

/// Starts a command in the background; its name.
fn start(bench: &mut Bench, command: &str) -> String {
    let report = bench.call("terminal", json!({"command": command, "background": true}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    value(&report)["session_id"].as_str().unwrap().to_owned()
}

fn process(bench: &mut Bench, action: &str, id: &str) -> CallReport {
    bench.call(
        "process",
        json!({"action": action, "session_id": id, "timeout": 60}),
    )
}

#[test]
fn a_background_command_ends_by_itself_and_what_it_changed_stands() {
    let mut bench = Bench::with_files();
    let id = start(&mut bench, "echo one; echo two > out.txt; (exit 3)");
    assert!(id.starts_with("proc_") && id.len() == 17, "{id}");
    let report = process(&mut bench, "wait", &id);
    let got = value(&report);
    assert_eq!(
        (&got["status"], &got["exit_code"]),
        (&json!("exited"), &json!(3)),
        "{got}"
    );
    assert_eq!(
        (&got["output"], &got["completion_reason"]),
        (&json!("one\n"), &json!("exited"))
    );
    assert_eq!(bench.text("out.txt").as_deref(), Some("two\n"));
    let log = value(&process(&mut bench, "log", &id));
    assert_eq!(
        (&log["output"], &log["total_lines"]),
        (&json!("one"), &json!(1))
    );
    let again = value(&process(&mut bench, "kill", &id));
    assert_eq!(again["status"], "already_exited");
}

#[test]
fn changes_that_are_not_held_are_asked_about_when_it_ends() {
    let mut bench = Bench::new();
    bench.put("a.txt", "a\n");
    let id = start(&mut bench, "rm a.txt");
    let report = process(&mut bench, "wait", &id);
    assert_eq!(
        report.fate,
        Fate::RanDiscarded(DenialCode::RejectedByUser),
        "{}",
        report.text
    );
    assert_eq!(report.questions.len(), 1);
    assert_eq!(bench.text("a.txt").as_deref(), Some("a\n"));
    bench.user.words.borrow_mut().push_back("once");
    let id = start(&mut bench, "rm a.txt");
    assert_eq!(process(&mut bench, "wait", &id).fate, Fate::Ran);
    assert_eq!(bench.text("a.txt"), None);
}

#[test]
fn a_running_one_is_polled_listed_and_killed() {
    let mut bench = Bench::with_files();
    let id = start(&mut bench, "echo ready; while :; do echo x; done");
    let polled = value(&process(&mut bench, "poll", &id));
    assert_eq!(polled["status"], "running", "{polled}");
    let listed = value(&bench.call("process", json!({"action": "list"})));
    assert_eq!(listed["processes"][0]["session_id"], json!(id));
    let refused = value(&process(&mut bench, "write", &id));
    assert_eq!(refused["status"], "error");
    let killed = value(&process(&mut bench, "kill", &id));
    assert_eq!(
        (&killed["status"], &killed["termination_source"]),
        (&json!("killed"), &json!("process.kill"))
    );
    let polled = value(&process(&mut bench, "poll", &id));
    assert_eq!(
        (&polled["status"], &polled["exit_code"]),
        (&json!("exited"), &json!(-15))
    );
    assert!(!bench.runtime.has_running_jobs());
}

#[test]
fn an_end_that_a_call_has_told_of_is_not_told_again_and_others_are() {
    let told = |bench: &mut Bench, asked: &[(&str, Value)]| {
        let command = json!({"command": "seq 1 5", "background": true, "notify_on_complete": true});
        let report = bench.call("terminal", command);
        let id = value(&report)["session_id"].as_str().unwrap().to_owned();
        // Its end is known, and no call has told of it.
        while bench.runtime.has_running_jobs() {
            std::thread::sleep(Duration::from_millis(5));
        }
        for (action, more) in asked {
            let mut args = json!({"action": action, "session_id": id});
            args.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            bench.call("process", args);
        }
        // Deciding what it did is what each call begins with.
        bench.call("process", json!({"action": "list"}));
        let by = bench.runtime.first_agent();
        let ended: Vec<String> = bench
            .runtime
            .take_endings(by)
            .into_iter()
            .map(|one| one.id)
            .collect();
        assert!(bench.runtime.take_endings(by).is_empty());
        assert!(ended.is_empty() || ended == [id], "{ended:?}");
        ended.is_empty()
    };
    let mut bench = Bench::with_files();
    for (asked, is_told) in [
        (&[][..], false),
        (&[("poll", json!({}))], true),
        (&[("wait", json!({}))], true),
        (&[("kill", json!({}))], true),
        (&[("log", json!({}))], true),
        (&[("log", json!({"offset": 3, "limit": 9}))], true),
        // It was read on in the middle, and at nothing behind the end.
        (&[("log", json!({"offset": 1, "limit": 2}))], false),
        (&[("log", json!({"offset": 7, "limit": 2}))], false),
        (&[("write", json!({"data": "x"}))], false),
    ] {
        assert_eq!(told(&mut bench, asked), is_told, "{asked:?}");
    }
}

#[test]
fn what_one_does_when_it_is_asked_to_end_is_decided_as_all_it_did() {
    let loops = "echo up; while :; do sleep 0.1; done";
    let killed = |bench: &mut Bench, how: &str| {
        let id = start(bench, &format!("trap '{how}; exit 0' TERM; {loops}"));
        while value(&process(bench, "poll", &id))["output_preview"] != "up\n" {
            std::thread::sleep(Duration::from_millis(20));
        }
        let report = process(bench, "kill", &id);
        (value(&report)["status"].clone(), report)
    };
    let mut bench = Bench::with_files();
    let (status, report) = killed(&mut bench, "echo bye > state.txt; echo bye");
    assert_eq!((status, &report.fate), (json!("killed"), &Fate::Ran));
    // The shell itself may say something of its missing terminal in between.
    let output = value(&report)["output"].to_string();
    assert!(output.ends_with("bye\\n\""), "{output}");
    assert_eq!(bench.text("state.txt").as_deref(), Some("bye\n"));
    // What is not held is asked about.
    let mut bench = Bench::new();
    bench.put("a.txt", "a\n");
    let (status, report) = killed(&mut bench, "rm a.txt");
    let refused = Fate::RanDiscarded(DenialCode::RejectedByUser);
    assert_eq!((status, &report.fate), (json!("killed"), &refused));
    assert_eq!(report.questions.len(), 1);
    assert_eq!(bench.text("a.txt").as_deref(), Some("a\n"));
}

#[test]
fn a_command_and_a_script_whose_time_is_over_put_away_what_they_made() {
    let mut bench = Bench::with_files();
    // Who sleeps so long has said what it does when it is asked.
    let mark = mark();
    let command =
        format!("trap 'echo bye > left.txt; exit 0' TERM; while :; do sleep {mark}; done");
    let report = out_of_time(&mark, |seconds| {
        bench.call("terminal", json!({"command": command, "timeout": seconds}))
    });
    assert_eq!(value(&report)["exit_code"], 124, "{}", report.text);
    assert_eq!(bench.text("left.txt").as_deref(), Some("bye\n"));
    let code = format!(
        "import signal, subprocess, sys\n\
         def leave(number, frame):\n    open('script.txt', 'w').write('bye')\n    sys.exit(0)\n\
         signal.signal(signal.SIGTERM, leave)\nwhile True:\n    subprocess.call(['sleep', '{mark}'])\n"
    );
    let report = out_of_time(&mark, |seconds| {
        bench.runtime.set_ceilings(Ceilings {
            script_timeout: Some(Duration::from_secs(seconds)),
            ..Ceilings::default()
        });
        bench.call("execute_code", json!({ "code": code }))
    });
    assert_eq!(value(&report)["status"], "timeout", "{}", report.text);
    assert_eq!(bench.text("script.txt").as_deref(), Some("bye"));
}

#[test]
fn revoking_the_grant_it_runs_on_kills_it_and_keeps_nothing() {
    let mut bench = Bench::new();
    bench.grant("fs.*", ".");
    let first = bench.runtime.first_agent();
    let run = bench.runtime.held_by(first);
    start(&mut bench, "echo x > late.txt; sleep 1000");
    for grant in run {
        let _ = bench.runtime.revoke(grant);
    }
    assert!(!bench.runtime.has_running_jobs());
    assert_eq!(bench.text("late.txt"), None);
}

/// One that had ended by itself, and of which nobody has decided yet, holds what it made until
/// then; a revocation has decided.
#[test]
fn revoking_the_grant_of_one_that_has_ended_keeps_nothing_of_it_on_the_disk() {
    let mut bench = Bench::new();
    bench.runtime.set_ceilings(Ceilings {
        layers: Layers::Disk,
        sandboxes_are_fresh: true,
        ..Ceilings::default()
    });
    let first = bench.runtime.first_agent();
    let held = bench.runtime.held_by(first);
    start(&mut bench, "echo much > made.txt");
    let until = Instant::now() + Duration::from_secs(60);
    while bench.runtime.has_running_jobs() {
        assert!(Instant::now() < until, "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    let layers = bench.state.join("layers");
    assert!(holds(&layers, "made.txt"), "what it made waits on the disk");
    for grant in held {
        let _ = bench.runtime.revoke(grant);
    }
    let until = Instant::now() + Duration::from_secs(60);
    while holds(&layers, "made.txt") {
        assert!(
            Instant::now() < until,
            "what was thrown away is still there"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(bench.text("made.txt"), None);
}

/// Whether a file of this name is below a directory.
fn holds(dir: &std::path::Path, name: &str) -> bool {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .any(|path| path.ends_with(name) || (path.is_dir() && holds(&path, name)))
}

#[test]
fn the_end_of_the_session_ends_them_all() {
    let mut bench = Bench::with_files();
    start(&mut bench, "sleep 1000");
    start(&mut bench, "sleep 1000");
    assert!(bench.runtime.has_running_jobs());
    bench.runtime.end_session().unwrap();
    assert!(!bench.runtime.has_running_jobs());
}

#[test]
fn a_command_on_a_terminal_is_typed_to_until_its_input_ends() {
    let mut bench = Bench::with_files();
    let command = "test -t 0 && test -t 1 && read -r x && echo \"got $x\" && cat > typed.txt";
    let started = value(&bench.call(
        "terminal",
        json!({"command": command, "background": true, "pty": true}),
    ));
    let Some(id) = started["session_id"].as_str().map(str::to_owned) else {
        println!("SKIPPED: no terminals here: {started}");
        return;
    };
    let typed = |bench: &mut Bench, action: &str, data: &str| {
        value(&bench.call(
            "process",
            json!({"action": action, "session_id": id, "data": data}),
        ))
    };
    assert_eq!(
        typed(&mut bench, "submit", "h\u{e9}llo"),
        json!({"status": "ok", "bytes_written": 6})
    );
    assert_eq!(typed(&mut bench, "write", "line\n")["status"], "ok");
    assert_eq!(
        typed(&mut bench, "close", ""),
        json!({"status": "ok", "message": "EOF sent"})
    );
    let ended = value(&process(&mut bench, "wait", &id));
    assert_eq!(
        (&ended["status"], &ended["exit_code"]),
        (&json!("exited"), &json!(0)),
        "{ended}"
    );
    let output = ended["output"].as_str().unwrap();
    assert!(output.contains("got h\u{e9}llo\r\n"), "{ended}");
    assert_eq!(bench.text("typed.txt").as_deref(), Some("line\n"));
    assert_eq!(
        typed(&mut bench, "write", "late")["status"],
        "already_exited"
    );
}

#[test]
fn words_that_are_watched_for_are_told_once_while_the_command_runs() {
    let mut bench = Bench::with_files();
    let report = bench.call(
        "terminal",
        json!({"command": "echo server ready; sleep 1000", "background": true, "watch_patterns": ["ready"]}),
    );
    let id = value(&report)["session_id"].as_str().unwrap().to_owned();
    let first = bench.runtime.first_agent();
    let mut told = Vec::new();
    for _ in 0..600 {
        told = bench.runtime.take_notices(first);
        if !told.is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let [(job, notice)] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert_eq!(job.id, id);
    let words = hermitcrab::tools::process::notice(job, notice);
    assert!(words.contains("server ready"), "{words}");
    assert!(bench.runtime.take_notices(first).is_empty());
    let listed = value(&bench.call("process", json!({"action": "list"})));
    assert_eq!(listed["processes"][0]["watch_hit"], true, "{listed}");
    process(&mut bench, "kill", &id);
}

#[test]
fn odd_calls_of_process_are_told_in_words() {
    let mut bench = Bench::new();
    let check = |bench: &mut Bench, args: Value, part: &str| {
        let report = bench.call("process", args.clone());
        assert!(report.text.contains(part), "{args}: {}", report.text);
    };
    check(&mut bench, json!({}), "Unknown process action: . Use: list");
    check(
        &mut bench,
        json!({"action": "dance"}),
        "Unknown process action: dance",
    );
    check(
        &mut bench,
        json!({"action": "poll"}),
        "session_id is required for poll",
    );
    check(
        &mut bench,
        json!({"action": "kill", "session_id": 7}),
        "No process with ID 7",
    );
    check(&mut bench, json!({"action": "list"}), "{\"processes\": []}");
    check(&mut bench, json!([]), "Unknown process action");
    check(
        &mut bench,
        json!({"action": true}),
        "Unknown process action: True.",
    );
}

#[test]
fn a_time_nobody_can_read_is_told_and_nothing_runs() {
    let mut bench = Bench::with_files();
    for timeout in [json!("soon"), json!([5]), json!({"s": 5})] {
        let report = bench.call(
            "terminal",
            json!({"command": "echo x > ran.txt", "timeout": timeout}),
        );
        assert_eq!(report.fate, Fate::ToolError, "{}", report.text);
        assert!(
            report.text.contains("not supported between"),
            "{}",
            report.text
        );
    }
    assert_eq!(bench.text("ran.txt"), None);
    let report = bench.call("terminal", json!({"command": "echo x", "timeout": "5"}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
}

#[test]
fn a_script_prints_and_its_calls_are_calls_like_any_other() {
    let mut bench = Bench::with_files();
    bench.put("a.txt", "alpha\n");
    let code = "from hermes_tools import read_file, write_file, terminal\n\
                print(read_file('a.txt')['content'])\n\
                print(write_file('b.txt', 'beta\\n')['bytes_written'])\n\
                print(terminal('cat b.txt', )['output'])\n\
                print(write_file('/etc/x', 'no')['error'][:16])\n";
    let report = bench.call("execute_code", json!({"code": code}));
    let got = value(&report);
    assert_eq!(
        got["output"], "1|alpha\n2|\n5\nbeta\nDenied (no-cap):\n",
        "{got}"
    );
    assert_eq!(
        (&got["status"], &got["tool_calls_made"]),
        (&json!("success"), &json!(4))
    );
    assert_eq!(bench.text("b.txt").as_deref(), Some("beta\n"));
}

#[test]
fn a_script_that_fails_says_why_and_one_that_changes_things_is_asked_about() {
    let mut bench = Bench::new();
    let report = bench.call(
        "execute_code",
        json!({"code": "import sys\nprint('x')\nsys.exit(4)"}),
    );
    let got = value(&report);
    assert_eq!(got["error"], "Script exited with code 4", "{got}");
    let report = bench.call("execute_code", json!({"code": "1/0"}));
    assert!(
        value(&report)["output"]
            .as_str()
            .unwrap()
            .contains("ZeroDivisionError")
    );
    let report = bench.call(
        "execute_code",
        json!({"code": "open('n.txt', 'w').write('x')"}),
    );
    assert_eq!(
        report.fate,
        Fate::RanDiscarded(DenialCode::RejectedByUser),
        "{}",
        report.text
    );
    assert_eq!(bench.text("n.txt"), None);
    for code in [json!({}), json!({"code": " "}), json!({"code": null})] {
        assert!(
            bench
                .call("execute_code", code)
                .text
                .contains("No code provided.")
        );
    }
}

#[test]
fn a_script_cannot_call_what_scripts_may_not_and_not_for_ever() {
    let mut bench = Bench::new();
    let code = "import hermes_tools as h\n\
                print(h._call('delegate_task', {'goal': 'x'})['error'][:50])\n\
                r = [h.read_file('none') for _ in range(60)]\n\
                print(sum('limit reached' in str(x) for x in r))\n\
                print(h.terminal('echo $0')['exit_code'])\n";
    let got = value(&bench.call("execute_code", json!({"code": code})));
    let output = got["output"].as_str().unwrap();
    assert!(
        output.starts_with("Tool 'delegate_task' is not available"),
        "{got}"
    );
    assert_eq!(got["tool_calls_made"], 50, "{got}");
}

#[test]
fn a_script_is_bound_by_what_the_configuration_says_of_scripts() {
    let code = "from hermes_tools import read_file\n\
                print(sum('limit reached (2)' in str(read_file('none')) for _ in range(5)))\n";
    for (calls, refused) in [(Some(2), "3\n"), (None, "0\n")] {
        let mut bench = Bench::new();
        bench.runtime.set_ceilings(Ceilings {
            script_calls_max: calls,
            ..Ceilings::default()
        });
        let got = value(&bench.call("execute_code", json!({"code": code})));
        assert_eq!(got["output"], refused, "{got}");
    }
    // What bounds every command bounds a script as well.
    let bounds: [fn(Duration) -> Ceilings; 2] = [
        |time| Ceilings {
            script_timeout: Some(time),
            ..Ceilings::default()
        },
        |time| Ceilings {
            timeout_max: Some(time),
            ..Ceilings::default()
        },
    ];
    for bound in bounds {
        let mut bench = Bench::new();
        let mark = mark();
        let late = format!("import subprocess\nsubprocess.call(['sleep', '{mark}'])");
        let (seconds, got) = out_of_time(&mark, |seconds| {
            bench
                .runtime
                .set_ceilings(bound(Duration::from_secs(seconds)));
            let report = bench.call("execute_code", json!({ "code": late }));
            (seconds, value(&report))
        });
        let error = format!("Script timed out after {seconds}s and was killed.");
        assert_eq!(
            (&got["status"], &got["error"]),
            (&json!("timeout"), &json!(error))
        );
    }
}

#[test]
fn output_is_shown_while_a_command_runs() {
    struct Shown(Rc<RefCell<String>>);
    impl ProgressPort for Shown {
        fn output(&mut self, _agent: AgentId, piece: &str) {
            self.0.borrow_mut().push_str(piece);
        }
    }
    let mut bench = Bench::new();
    let shown = Rc::new(RefCell::new(String::new()));
    bench
        .runtime
        .show_progress(Box::new(Shown(Rc::clone(&shown))));
    bench.call("terminal", json!({"command": "echo one; echo two >&2"}));
    assert_eq!(*shown.borrow(), "one\ntwo\n");
}
