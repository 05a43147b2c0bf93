//! A use of a grant that another call of the same answer spends while a question is open: the
//! yes to the rest is not carried by a use that is not there any more.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    cell::RefCell,
    path::PathBuf,
    rc::Rc,
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use hermitcrab::{
    ports::{Clock, Prompt, UserPort},
    runtime::{CallReport, Fate, GrantWords, Runtime},
};
use hermitcrab_core::{
    approval::{Reply, Scope},
    outcome::DenialCode,
    time::Instant,
};
use serde_json::{Value, json};

use crate::support;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(120);

/// Whether a person is asked.
#[derive(Clone, Default)]
struct Asked(Arc<(Mutex<bool>, Condvar)>);

impl Asked {
    fn now(&self) {
        let (is_asked, changed) = &*self.0;
        *is_asked.lock().unwrap() = true;
        changed.notify_all();
    }

    fn wait(&self) {
        let (is_asked, changed) = &*self.0;
        let waited = changed.wait_timeout_while(is_asked.lock().unwrap(), LONG, |is| !*is);
        assert!(!waited.unwrap().1.timed_out(), "nobody was asked");
    }
}

/// Tells no call but the first what time it is before somebody is asked.
struct OneFirst(Asked);

impl Clock for OneFirst {
    fn now(&self) -> Instant {
        let thread = std::thread::current();
        let is_later = thread.name().is_some_and(|name| {
            name.strip_prefix("call ")
                .is_some_and(|number| number != "0")
        });
        if is_later {
            self.0.wait();
        }
        Instant::BOOT
    }
}

/// A person who, asked the first time, waits for something, and says yes to everything.
struct Waiting {
    asked: Asked,
    is_so: Box<dyn Fn() -> bool>,
    shown: Rc<RefCell<Vec<String>>>,
}

impl UserPort for Waiting {
    fn ask(&mut self, prompt: Prompt<'_>) -> Reply {
        self.shown.borrow_mut().push(prompt.shown.to_owned());
        self.asked.now();
        support::home::until(|| (self.is_so)().then_some(()));
        Reply::Yes(Scope::Once)
    }
}

struct Came {
    reports: Vec<CallReport>,
    shown: Vec<String>,
    workspace: PathBuf,
    _dirs: tempfile::TempDir,
}

impl Came {
    fn there(&self, names: &[&str]) -> Vec<bool> {
        let is_there = |name: &&str| self.workspace.join(name).exists();
        names.iter().map(is_there).collect()
    }
}

/// What a person waits for before they say yes.
#[derive(Clone, Copy)]
enum Until {
    /// That this file is there.
    There(&'static str),
    /// That so many questions are open.
    Asked(usize),
}

/// What these calls come to at the same time where so many files may be made in `here`, and the
/// first of them is asked about.
fn together(uses: u64, calls: &[(&str, Value)], until: Until) -> Came {
    let dirs = tempfile::tempdir().unwrap();
    let root = dirs.path().canonicalize().unwrap();
    let (workspace, state) = (root.join("proj"), root.join("state"));
    std::fs::create_dir_all(workspace.join("here")).unwrap();
    let (asked, shown) = (Asked::default(), Rc::default());
    let (place, ledger) = (workspace.clone(), state.join("ledger.jsonl"));
    let user = Waiting {
        asked: asked.clone(),
        is_so: Box::new(move || match until {
            Until::There(name) => place.join(name).exists(),
            Until::Asked(count) => {
                let ledger = std::fs::read_to_string(&ledger).unwrap();
                ledger.matches("\"kind\":\"asked\"").count() >= count
            }
        }),
        shown: Rc::clone(&shown),
    };
    let config = support::config(workspace.clone(), state);
    let mut runtime = Runtime::open(config, Box::new(user), Box::new(OneFirst(asked))).unwrap();
    let first = runtime.first_agent();
    runtime.grant_basics(first).unwrap();
    let words = GrantWords {
        uses: Some(uses),
        ..GrantWords::new("fs.create", &workspace.join("here").to_string_lossy())
    };
    runtime.grant(first, &words).unwrap();
    let calls: Vec<(&str, &Value)> = calls.iter().map(|(tool, args)| (*tool, args)).collect();
    let reports = runtime.call_together(first, &calls);
    let shown = shown.take();
    Came {
        reports,
        shown,
        workspace,
        _dirs: dirs,
    }
}

/// Makes a file that may be made, and one that is asked about.
fn both(name: &str) -> (&'static str, Value) {
    let patch = format!(
        "*** Begin Patch\n*** Add File: here/{name}\n+1\n*** Add File: {name}\n+2\n*** End Patch\n"
    );
    ("patch", json!({"mode": "patch", "patch": patch}))
}

fn write(path: &str) -> (&'static str, Value) {
    ("write_file", json!({"path": path, "content": "x\n"}))
}

#[test]
fn a_use_that_another_call_spends_while_a_question_is_open_is_not_there_for_its_answer() {
    for (uses, is_left) in [(1, false), (2, true)] {
        let came = together(uses, &[both("a"), write("here/b")], Until::There("here/b"));
        assert_eq!(came.shown.len(), 1, "{:?}", came.shown);
        assert_eq!(came.reports[1].fate, Fate::Ran, "{}", came.reports[1].text);
        let fate = match is_left {
            true => Fate::Ran,
            false => Fate::AskedRefused(DenialCode::Exhausted),
        };
        assert_eq!(came.reports[0].fate, fate, "{}", came.reports[0].text);
        let there = came.there(&["here/a", "a", "here/b"]);
        assert_eq!(there, [is_left, is_left, true]);
    }
}

#[test]
fn a_command_whose_changes_are_asked_about_keeps_none_on_a_use_that_is_spent_by_then() {
    for (uses, is_left) in [(1, false), (2, true)] {
        let command = json!({"command": "echo 1 > here/a; echo 2 > a"});
        let came = together(
            uses,
            &[("terminal", command), write("here/b")],
            Until::There("here/b"),
        );
        let fate = match is_left {
            true => Fate::Ran,
            false => Fate::RanDiscarded(DenialCode::Exhausted),
        };
        assert_eq!(came.reports[0].fate, fate, "{}", came.reports[0].text);
        let there = came.there(&["here/a", "a", "here/b"]);
        assert_eq!(there, [is_left, is_left, true]);
    }
}

#[test]
fn of_two_calls_that_are_asked_about_one_yes_gets_the_last_use_and_the_other_does_nothing() {
    let came = together(1, &[both("a"), both("b")], Until::Asked(2));
    let fates: Vec<&Fate> = came.reports.iter().map(|report| &report.fate).collect();
    let spent = Fate::AskedRefused(DenialCode::Exhausted);
    assert_eq!(fates, [&Fate::Ran, &spent], "{:?}", came.shown);
    let there = came.there(&["here/a", "a", "here/b", "b"]);
    assert_eq!(there, [true, true, false, false]);
}
