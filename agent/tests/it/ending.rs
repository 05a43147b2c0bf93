//! How grants end at the runtime: by a revoker, by their uses, by time, with the session.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hermitcrab::runtime::{Fate, GrantWords};
use hermitcrab_core::{outcome::DenialCode, session::Asking, time::Millis};
use serde_json::json;

use crate::support::{self, Bench};

#[test]
fn a_revoked_grant_ends_at_once_and_for_the_child_too() {
    let mut bench = Bench::new();
    let grant = bench.grant("fs.*", ".");
    let first = bench.runtime.first_agent();
    let alone = bench.runtime.spawn(first, &[]).unwrap();
    let child = bench.runtime.spawn(first, &[grant]).unwrap();
    let args = json!({"path": "c.txt", "content": "c\n"});
    assert_eq!(
        bench.runtime.call(alone, "write_file", &args).fate,
        Fate::Refused(DenialCode::NoCap)
    );
    assert_eq!(
        bench.runtime.call(child, "write_file", &args).fate,
        Fate::Ran
    );
    bench.runtime.revoke(grant).unwrap();
    assert_eq!(
        bench.runtime.call(child, "write_file", &args).fate,
        Fate::Refused(DenialCode::Revoked)
    );
    assert_eq!(
        bench.call("write_file", args).fate,
        Fate::AskedRefused(DenialCode::RejectedByUser),
        "the first agent may ask, and the user says no"
    );
}

#[test]
fn a_grant_for_one_use_works_once() {
    let mut bench = Bench::new();
    let first = bench.runtime.first_agent();
    let on = bench.workspace.to_string_lossy().into_owned();
    let words = GrantWords {
        uses: Some(1),
        ..GrantWords::new("fs.create", &on)
    };
    bench.runtime.grant(first, &words).unwrap();
    assert_eq!(
        bench
            .call("write_file", json!({"path": "1", "content": "x"}))
            .fate,
        Fate::Ran
    );
    let report = bench.call("write_file", json!({"path": "2", "content": "x"}));
    assert_eq!(report.fate, Fate::AskedRefused(DenialCode::RejectedByUser));
    assert!(
        bench.user.shown.borrow()[0].contains("exhausted"),
        "{:?}",
        bench.user.shown.borrow()
    );
}

#[test]
fn a_grant_for_one_use_reads_one_file_whoever_it_was_forwarded_to() {
    for forwarded in [false, true] {
        let mut bench = Bench::new();
        bench.put("one/a.txt", "alpha\n");
        bench.put("one/b.docx", "no document\n");
        bench.put("one/dir/c.txt", "gamma\n");
        std::os::unix::fs::symlink("a.txt", bench.workspace.join("one/link")).unwrap();
        // What every session begins with has ended by then.
        bench.clock.set(13 * 60 * 60 * 1000);
        let first = bench.runtime.first_agent();
        let on = bench.workspace.join("one").to_string_lossy().into_owned();
        let mut read = |path: &str, uses: u64| {
            let words = GrantWords {
                uses: Some(uses),
                ..GrantWords::new("fs.*", &on)
            };
            let grant = bench.runtime.grant(first, &words).unwrap();
            let by = if forwarded {
                bench.runtime.spawn(first, &[grant]).unwrap()
            } else {
                first
            };
            let mut call = || {
                bench
                    .runtime
                    .call(by, "read_file", &json!({ "path": path }))
            };
            let once = call();
            // Nothing is left for a second time.
            let code = match call().fate {
                Fate::Refused(code) | Fate::AskedRefused(code) => Some(code),
                _ => None,
            };
            bench.runtime.revoke(grant).unwrap();
            (once.fate, once.text, code)
        };
        let spent = Some(if forwarded {
            DenialCode::Exhausted
        } else {
            DenialCode::RejectedByUser
        });
        let (fate, text, again) = read("one/a.txt", 1);
        assert_eq!((fate, again), (Fate::Ran, spent), "{text}");
        assert!(text.contains("1|alpha"), "{text}");
        // A link is read by the name as written, and by the name it leads to.
        let (fate, text, again) = read("one/link", 3);
        assert_eq!((fate, again), (Fate::Ran, spent), "{text}");
        assert!(text.contains("1|alpha"), "{text}");
        for path in ["one/dir", "one/nothing.txt"] {
            let (fate, text, again) = read(path, 1);
            assert_eq!((fate, again), (Fate::ToolError, spent), "{path}: {text}");
            assert!(text.contains("File not found"), "{path}: {text}");
        }
        let (fate, text, _) = read("one/b.docx", 1);
        assert!(!text.contains("alpha"), "{fate:?} {text}");
    }
}

/// A script's calls, what the script itself makes, a command in the background and a child
/// share what is left of one grant, whoever comes first.
#[test]
fn no_more_is_made_than_a_grant_has_uses_whoever_uses_it() {
    let mut bench = Bench::new();
    bench.runtime.set_asking(Asking::Refuse).unwrap();
    let first = bench.runtime.first_agent();
    let on = bench.workspace.to_string_lossy().into_owned();
    let words = GrantWords {
        uses: Some(3),
        ..GrantWords::new("fs.create", &on)
    };
    let grant = bench.runtime.grant(first, &words).unwrap();
    let child = bench.runtime.spawn(first, &[grant]).unwrap();
    let made = |bench: &Bench| std::fs::read_dir(&bench.workspace).unwrap().count();
    let started = bench.call(
        "terminal",
        json!({"command": "echo x > background", "background": true}),
    );
    let started: serde_json::Value = serde_json::from_str(&started.text).unwrap();
    let code = "import threading\n\
        from hermes_tools import write_file\n\
        open('own', 'w').write('x')\n\
        calls = [threading.Thread(target=write_file, args=(f'call{n}', 'x')) for n in range(4)]\n\
        [call.start() for call in calls]\n\
        [call.join() for call in calls]\n";
    bench.call("execute_code", json!({"code": code}));
    bench.runtime.call(
        child,
        "write_file",
        &json!({"path": "child", "content": "x"}),
    );
    let args = json!({"action": "wait", "session_id": started["session_id"]});
    let ended = bench.call("process", args);
    assert!(ended.text.contains("exited"), "{}", ended.text);
    let (used, left) = (made(&bench), bench.runtime.grants_in_words(first));
    assert_eq!(used, 3, "{left:?}");
    assert!(!left.iter().any(|(id, _)| *id == grant), "{left:?}");
}

#[test]
fn a_minute_ends_after_a_minute() {
    let mut bench = Bench::new();
    let first = bench.runtime.first_agent();
    let on = bench.workspace.to_string_lossy().into_owned();
    let words = GrantWords {
        lifetime: Some(Millis::from_seconds(60)),
        ..GrantWords::new("fs.*", &on)
    };
    bench.runtime.grant(first, &words).unwrap();
    bench.clock.set(60_000);
    assert_eq!(
        bench
            .call("write_file", json!({"path": "1", "content": "x"}))
            .fate,
        Fate::Ran
    );
    bench.clock.set(61_000);
    let report = bench.call("write_file", json!({"path": "2", "content": "x"}));
    assert_eq!(report.fate, Fate::AskedRefused(DenialCode::RejectedByUser));
    assert!(
        bench.user.shown.borrow()[0].contains("expired"),
        "{:?}",
        bench.user.shown.borrow()
    );
    let ledger = std::fs::read_to_string(bench.state.join("ledger.jsonl")).unwrap();
    assert!(ledger.contains(r#""kind":"expired""#), "{ledger}");
}

#[test]
fn nothing_held_outlives_the_session() {
    let mut bench = Bench::with_files();
    bench.runtime.end_session().unwrap();
    let args = json!({"path": "a", "content": "x"});
    assert_eq!(
        bench.call("write_file", args.clone()).fate,
        Fate::Refused(DenialCode::SessionEnded)
    );
    bench.runtime.begin_session().unwrap();
    let report = bench.call("write_file", args);
    assert!(
        matches!(report.fate, Fate::Refused(_) | Fate::AskedRefused(_)),
        "{:?}",
        report.fate
    );
    assert_eq!(bench.text("a"), None);
}

#[test]
fn a_short_deadline_passes_in_real_time() {
    let dirs = tempfile::tempdir().unwrap();
    let root = dirs.path().canonicalize().unwrap();
    let workspace = root.join("proj");
    std::fs::create_dir(&workspace).unwrap();
    let mut runtime = hermitcrab::runtime::Runtime::open(
        support::config(workspace.clone(), root.join("state")),
        Box::new(hermitcrab::person::NobodyThere),
        Box::new(hermitcrab::ambient::BootClock),
    )
    .unwrap();
    let first = runtime.first_agent();
    runtime.grant_basics(first).unwrap();
    let on = workspace.to_string_lossy().into_owned();
    // Long enough that a slow machine still gets there before the deadline.
    let words = GrantWords {
        lifetime: Some(Millis::new(300)),
        ..GrantWords::new("fs.create", &on)
    };
    let mut before = Fate::Refused(DenialCode::Expired);
    for attempt in 0..20 {
        runtime.grant(first, &words).unwrap();
        let args = json!({"path": format!("{attempt}"), "content": "x"});
        before = runtime.call(first, "write_file", &args).fate;
        if before == Fate::Ran {
            break;
        }
    }
    assert_eq!(before, Fate::Ran);
    std::thread::sleep(std::time::Duration::from_millis(400));
    let report = runtime.call(
        first,
        "write_file",
        &json!({"path": "late", "content": "x"}),
    );
    // Nobody can be asked (the question fails), and the old grant does not help.
    assert_eq!(
        report.fate,
        Fate::AskedRefused(DenialCode::NoAnswer),
        "{}",
        report.text
    );
    assert!(
        report.questions[0].shown.contains("expired"),
        "{:?}",
        report.questions
    );
    assert!(!workspace.join("late").exists());
}
