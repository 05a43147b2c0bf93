//! What a judge proposed and a person turned down leaves everything as it was.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::{Arc, Mutex};

use hermitcrab::{
    ports::{Prompt, UserPort, Verdict},
    runtime::{GrantWords, Proposed, Runtime},
};
use hermitcrab_core::approval::Reply;
use serde_json::json;

use crate::support::{self, ManualClock};

/// Turns everything down, and keeps what was asked.
struct Declines(Arc<Mutex<Vec<String>>>);

impl UserPort for Declines {
    fn ask(&mut self, prompt: Prompt<'_>) -> Reply {
        self.0.lock().unwrap().push(prompt.shown.to_owned());
        Reply::No
    }

    fn consider(&mut self, shown: &str) -> Verdict {
        self.0.lock().unwrap().push(shown.to_owned());
        Verdict::No
    }
}

#[test]
fn a_directory_that_was_opened_for_a_declined_proposal_is_as_closed_as_before() {
    let dirs = tempfile::tempdir().unwrap();
    let root = dirs.path().canonicalize().unwrap();
    let (workspace, other) = (root.join("proj"), root.join("other"));
    for dir in [&workspace, &other] {
        std::fs::create_dir(dir).unwrap();
    }
    std::fs::write(other.join("secret"), "s\n").unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let config = support::config(workspace, root.join("state"));
    let user = Box::new(Declines(Arc::clone(&asked)));
    let mut runtime = Runtime::open(config, user, Box::new(ManualClock::default())).unwrap();
    let first = runtime.first_agent();
    runtime.grant_basics(first).unwrap();
    let read = json!({"path": other.join("secret")});
    let before = runtime.call(first, "read_file", &read);
    assert!(asked.lock().unwrap().is_empty(), "{before:?}");
    let words = GrantWords::new("fs.create", other.join("nothing").to_str().unwrap());
    let came = runtime.propose("judge-1", first, &words).unwrap();
    assert_eq!(came, Proposed::Declined);
    assert_eq!(asked.lock().unwrap().len(), 1);
    let after = runtime.call(first, "read_file", &read);
    assert_eq!((&after.fate, &after.text), (&before.fate, &before.text));
    assert_eq!(asked.lock().unwrap().len(), 1, "nobody is asked");
}
