//! How long it takes until nothing runs any more, once the grant of a running
//! command is taken back: the command is killed, its tree reaped, its changes
//! thrown away, and the end is on record.

use std::sync::mpsc;
use std::time::{Duration, Instant as Moment};

use hermitcrab::ports::ProgressPort;
use hermitcrab::runtime::{Fate, GrantWords, Runtime, RuntimeConfig};
use hermitcrab::{ambient::BootClock, person::NobodyThere};
use hermitcrab_core::grant::AgentId;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::session::Asking;
use hermitcrab_sandbox::SpawnerProgram;
use serde_json::json;

/// How many programs the command waits in, beside its shell.
const SLEEPERS: usize = 20;

/// Says when a command's first words come.
struct Begun(mpsc::Sender<()>);

impl ProgressPort for Begun {
    fn output(&mut self, _: AgentId, _: &str) {
        // Whoever listened has heard enough.
        let _told = self.0.send(());
    }
}

/// The times of `count` revocations, shortest first; `None` if commands cannot
/// be confined here.
pub fn times(count: usize) -> Option<Vec<Duration>> {
    let mut times: Vec<Duration> = (0..count).map(|_| one()).collect::<Option<_>>()?;
    times.sort();
    Some(times)
}

fn one() -> Option<Duration> {
    let dirs = tempfile::tempdir().unwrap();
    let root = dirs.path().canonicalize().unwrap();
    let workspace = root.join("w");
    std::fs::create_dir(&workspace).unwrap();
    let config = RuntimeConfig {
        home: root.clone(),
        state_dir: root.join("state"),
        common_dir: root.join("state"),
        workspace: workspace.clone(),
        protected: Vec::new(),
        tools: hermitcrab::tools::run,
        env: Vec::new(),
        git_settings: String::new(),
        isolation: Isolation::Isolated,
        asking: Asking::Refuse,
        session: 1,
        spawner: SpawnerProgram::Own,
        umask: 0o022,
    };
    let mut runtime = Runtime::open(config, Box::new(NobodyThere), Box::new(BootClock)).unwrap();
    let agent = runtime.first_agent();
    let place = workspace.to_string_lossy().into_owned();
    runtime
        .grant(agent, &GrantWords::new("fs.*", &place))
        .unwrap();
    let exec = runtime
        .grant(agent, &GrantWords::new("proc.exec", "*"))
        .unwrap();
    let (begun, has_begun) = mpsc::channel();
    runtime.show_progress(Box::new(Begun(begun)));
    let remote = runtime.remote();
    let other = std::thread::spawn(move || {
        has_begun.recv().ok()?;
        let asked = Moment::now();
        remote.revoke_and_drain(exec).unwrap();
        Some(asked.elapsed())
    });
    let sleepers = vec!["sleep 600"; SLEEPERS].join(" | ");
    let command = format!("echo x > made.txt; echo begun; {sleepers}");
    let report = runtime.call(agent, "terminal", &json!({"command": command}));
    // Without words of a command the other thread hears that nobody will speak.
    drop(runtime);
    let Some(took) = other.join().unwrap() else {
        println!("SKIPPED: {:?} {}", report.fate, report.text);
        return None;
    };
    assert_eq!(
        report.fate,
        Fate::RanDiscarded(DenialCode::Revoked),
        "{}",
        report.text
    );
    assert!(!workspace.join("made.txt").exists());
    Some(took)
}
