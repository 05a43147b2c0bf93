//! A run of the oracle that is interrupted in the middle of a case.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::ambient::Ambient;
use crate::interrupt::Interrupt;
use crate::{exit, lineage};

/// How long a run may take to come to its second case.
const COMING: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(20);

/// Interrupts one run; what was wrong with how it ended.
///
/// # Errors
/// The run cannot be started.
pub(super) fn check(
    ambient: &Ambient,
    hermes: &str,
    interrupt: &Interrupt,
) -> Result<Vec<String>, String> {
    let failed = |error: std::io::Error| format!("cannot interrupt a run: {error}");
    let folder = tempfile::tempdir().map_err(failed)?;
    let case = |id: &str, command: &str| json!({"id": id, "script": [{"call": {"tool": "terminal", "args": {"command": command}}}]});
    let suite = json!({
        "schema": 1, "suite": "s", "description": "d",
        "cases": [case("quick", "echo quick"), case("slow", "sleep 600")],
    });
    std::fs::create_dir(folder.path().join("suites")).map_err(failed)?;
    std::fs::write(folder.path().join("suites/s.json"), suite.to_string()).map_err(failed)?;
    let report = folder.path().join("report");
    let mut run = Command::new(&ambient.program)
        .args(["check", "--jobs", "1", "--hermes", hermes, "--vectors"])
        .arg(folder.path())
        .arg("--report")
        .arg(&report)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let until = Instant::now() + COMING;
    let is_slow = |id: u32| {
        lineage::descendants(id)
            .values()
            .any(|name| name == "sleep")
    };
    while !is_slow(run.id()) && Instant::now() < until && !interrupt.is_set() {
        if run.try_wait().map_err(failed)?.is_some() {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    if let Ok(id) = i32::try_from(run.id()) {
        // One that has ended by itself is told of below.
        let _ = kill(Pid::from_raw(id), Signal::SIGINT);
    }
    let status = run.wait().map_err(failed)?;
    let mut wrong = Vec::new();
    if interrupt.is_set() {
        return Ok(wrong);
    }
    if status.code() != Some(i32::from(exit::INCONCLUSIVE)) {
        wrong.push(format!("an interrupted run ended with {status}"));
    }
    let kept = std::fs::read_to_string(report.join("results.jsonl")).unwrap_or_default();
    if kept.lines().count() != 1 || !kept.contains("\"quick\"") {
        wrong.push(format!(
            "an interrupted run kept {} of 1 results",
            kept.lines().count()
        ));
    }
    Ok(wrong)
}
