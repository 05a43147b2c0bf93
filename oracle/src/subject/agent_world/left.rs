//! What is left of a call in its world when it is over.

use std::time::Duration;

use hermitcrab::runtime::Runtime;

/// The processes in the world beside its first one and those that serve the
/// sandbox, after giving those that were killed time to go. The agent has no
/// background commands: a process that outlives its call has escaped it.
pub(super) fn left_behind(runtime: &Runtime) -> std::io::Result<Vec<String>> {
    const PATIENCE: Duration = Duration::from_secs(10);
    // A background command is known to the agent and ends with its session.
    if runtime.has_running_jobs() {
        return Ok(Vec::new());
    }
    let started = std::time::Instant::now();
    loop {
        let left = others(&runtime.sandbox_helpers())?;
        if left.is_empty() || started.elapsed() > PATIENCE {
            return Ok(left);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn others(helpers: &[u32]) -> std::io::Result<Vec<String>> {
    let own = std::process::id();
    let mut names = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let Ok(id) = name.parse::<u32>() else {
            continue;
        };
        if id == own || helpers.contains(&id) {
            continue;
        }
        // Gone between listing and looking.
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{name}/stat")) else {
            continue;
        };
        // `pid (name) state ...`; the name may hold anything but is the last in parentheses.
        let Some((head, tail)) = stat.rsplit_once(") ") else {
            continue;
        };
        if !tail.starts_with('Z') {
            names.push(head.replacen(" (", " ", 1));
        }
    }
    Ok(names)
}
