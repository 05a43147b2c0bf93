//! Starting other programs: always from the workspace root, always by exit status.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

use crate::ambient;

/// What a gate says. A gate that could not be asked is an error instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// Everything it looked at was right.
    Yes,
    /// Something was wrong, and has been printed.
    No,
}

impl Passed {
    /// `Yes` if `condition` holds.
    pub fn when(condition: bool) -> Self {
        if condition { Self::Yes } else { Self::No }
    }
}

/// The directory of the workspace's `Cargo.toml`.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// A cargo command in the workspace root.
pub fn cargo() -> Command {
    let mut command = Command::new(ambient::cargo());
    command.current_dir(root());
    command
}

/// The processor time of everything this process started and waited for, and of what they did.
pub fn children_cpu() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else {
        return Duration::ZERO;
    };
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// Run to the end with inherited output; the exit status decides.
pub fn status(command: &mut Command) -> Result<Passed> {
    let shown = show(command);
    let status = command
        .status()
        .with_context(|| format!("cannot start `{shown}`"))?;
    Ok(Passed::when(status.success()))
}

/// Run to the end and return the standard output; another status than 0 is an error.
pub fn output(command: &mut Command) -> Result<Vec<u8>> {
    let shown = show(command);
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    anyhow::ensure!(
        output.status.success(),
        "`{shown}` ended with {}",
        output.status
    );
    Ok(output.stdout)
}

/// The command as a person would type it.
pub fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
