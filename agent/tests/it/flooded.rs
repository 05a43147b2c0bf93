//! What a script asks for without end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};

use hermitcrab::{ports::ProgressPort, runtime::Fate};
use hermitcrab_core::grant::AgentId;
use serde_json::json;

use crate::support::Bench;

/// Whoever waits wants no more after a while.
struct Patient(Instant);

impl ProgressPort for Patient {
    fn output(&mut self, _: AgentId, _: &str) {}

    fn is_wanted(&mut self) -> bool {
        self.0.elapsed() < Duration::from_secs(2)
    }
}

#[test]
fn a_script_that_asks_without_end_can_be_called_off() {
    let mut bench = Bench::new();
    bench
        .runtime
        .show_progress(Box::new(Patient(Instant::now())));
    let code = "
import os, threading
line = int(os.environ['HERMITCRAB_RPC'])
def take():
    while True:
        os.read(line, 1 << 16)
threading.Thread(target=take, daemon=True).start()
while True:
    os.write(line, b'x\\n' * 4096)
";
    let report = bench.call("execute_code", json!({"code": code}));
    assert_ne!(report.fate, Fate::Ran, "{}", report.text);
    assert!(
        report.text.contains("the script was stopped"),
        "{}",
        report.text
    );
}
