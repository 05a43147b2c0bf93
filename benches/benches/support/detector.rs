//! What the real Hermes' detector of dangerous commands takes, beside the monitor.

use std::path::Path;
use std::process::Command;

/// Nanoseconds for each command, as the installed Hermes answers.
pub fn times(python: &Path, commands: &[&str]) -> Result<Vec<f64>, String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../shim/src/time_detector.py");
    let output = Command::new(python)
        .arg(script)
        .args(commands)
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let times: Vec<f64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    if times.len() == commands.len() {
        Ok(times)
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}
