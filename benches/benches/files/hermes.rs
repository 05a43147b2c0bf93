//! The real Hermes' half: its tools called in one interpreter that stays.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Cost, ambient, fill};

/// Reads lists of calls, one a line. The first of each makes it warm and is not
/// measured; of the others it says what one took.
const PROGRAM: &str = r#"
import json, os, sys, time
os.chdir(sys.argv[1])
import model_tools
def used():
    t = os.times()
    return (t.user + t.system + t.children_user + t.children_system) * 1000
for line in sys.stdin:
    calls = json.loads(line)
    tool, args = calls[0]
    model_tools.handle_function_call(tool, args, task_id="warm")
    before, begun = used(), time.monotonic()
    for tool, args in calls[1:]:
        answer = model_tools.handle_function_call(tool, args, task_id="bench")
    n = len(calls) - 1
    print("COST", (used() - before) / n, (time.monotonic() - begun) * 1000 / n, answer, flush=True)
"#;

/// A running Hermes, in a home and a workspace of its own.
pub struct Hermes {
    child: Child,
    calls: Option<ChildStdin>,
    costs: BufReader<ChildStdout>,
    _dirs: TempDir,
}

/// Starts it with a directory in this place; `None` where it is not installed.
pub fn start(place: &Path) -> Option<Hermes> {
    let python = ambient::hermes_python().ok()?;
    let dirs = tempfile::tempdir_in(place).unwrap();
    let (home, workspace) = (dirs.path().join("h"), dirs.path().join("w"));
    std::fs::create_dir_all(home.join(".hermes")).unwrap();
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(
        home.join(".hermes/config.yaml"),
        "approvals:\n  mode: manual\nlsp:\n  enabled: false\nsecurity:\n  tirith_enabled: false\n",
    )
    .unwrap();
    fill(&workspace);
    let script = dirs.path().join("bench.py");
    std::fs::write(&script, PROGRAM).unwrap();
    let mut child = Command::new(python)
        .arg(&script)
        .arg(&workspace)
        .env_clear()
        .env("HOME", &home)
        .env("HERMES_HOME", home.join(".hermes"))
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Some(Hermes {
        calls: child.stdin.take(),
        costs: BufReader::new(child.stdout.take().unwrap()),
        child,
        _dirs: dirs,
    })
}

impl Hermes {
    /// What one of these calls took but for the first, on the whole; the answer
    /// of the last must not be a failure.
    pub fn cost(&mut self, calls: Vec<(&'static str, Value)>) -> Cost {
        writeln!(self.calls.as_mut().unwrap(), "{}", json!(calls)).unwrap();
        let mut line = String::new();
        // Whatever else it prints is not for us.
        while !line.starts_with("COST ") {
            line.clear();
            let read = self.costs.read_line(&mut line).unwrap();
            assert!(read > 0, "Hermes ended in the middle of its calls");
        }
        let mut words = line["COST ".len()..].splitn(3, ' ');
        let mut figure = || words.next().unwrap().parse::<f64>().unwrap();
        let (used, passed) = (figure(), figure());
        let answer: Value = serde_json::from_str(words.next().unwrap()).unwrap();
        let failed = answer["error"]
            .as_str()
            .is_some_and(|error| !error.is_empty())
            || answer["exit_code"].as_i64().is_some_and(|code| code != 0);
        assert!(!failed, "Hermes could not: {answer}");
        Cost { used, passed }
    }
}

impl Drop for Hermes {
    fn drop(&mut self) {
        // The end of its input is the end of the program.
        drop(self.calls.take());
        let _ended = self.child.wait();
    }
}
