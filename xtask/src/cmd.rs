//! Starting other programs: always from the workspace root, always by exit status.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
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
    bisim::nested_cargo::apart(&mut command).current_dir(root());
    command
}

/// The compiler's name for this machine.
pub fn host() -> Result<String> {
    let said = output(cargo().args(["-vV"]))?;
    String::from_utf8_lossy(&said)
        .lines()
        .find_map(|line| line.strip_prefix("host: ").map(str::to_owned))
        .context("cargo -vV names no host")
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

/// What becomes of a program's output while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Passed on as it comes.
    All,
    /// Kept back.
    Nothing,
}

/// How many lines [`status_and_tail`] keeps.
const TAIL_LINES: usize = 60;

/// Run to the end like [`status`], and return the last lines of both its streams as well.
pub fn status_and_tail(command: &mut Command, show_it: Show) -> Result<(Passed, String)> {
    let shown = show(command);
    let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
    let both = writer.try_clone().context("cannot copy a pipe")?;
    let mut child = command
        .stdout(both)
        .stderr(writer)
        .spawn()
        .with_context(|| format!("cannot start `{shown}`"))?;
    // The command holds the writing ends until it is given others.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let tail = last_lines(reader, show_it).with_context(|| format!("reading from `{shown}`"))?;
    let status = child
        .wait()
        .with_context(|| format!("waiting for `{shown}`"))?;
    Ok((Passed::when(status.success()), tail))
}

/// The last lines of a stream, which is passed on meanwhile.
pub fn last_lines(stream: impl std::io::Read, show_it: Show) -> std::io::Result<String> {
    let mut kept = VecDeque::new();
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        if stream.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if show_it == Show::All {
            std::io::stdout().write_all(&line)?;
        }
        kept.push_back(line);
        if kept.len() > TAIL_LINES {
            kept.pop_front();
        }
    }
    let bytes: Vec<u8> = kept.into_iter().flatten().collect();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
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

/// Whether there is such a program: as a person without root has it in their path, or where only
/// root looks.
pub fn is_installed(program: &str) -> bool {
    ["/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/bin"]
        .iter()
        .any(|dir| Path::new(dir).join(program).exists())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_tells_by_its_status_and_leaves_the_last_lines_of_both_streams() {
        let script = "for i in $(seq 100); do echo $i; done; echo why >&2; exit 3";
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let (passed, tail) = status_and_tail(&mut command, Show::Nothing).unwrap();
        assert_eq!(passed, Passed::No);
        let lines: Vec<&str> = tail.lines().collect();
        assert_eq!(lines.len(), TAIL_LINES);
        assert_eq!(lines.last(), Some(&"why"));
        let (passed, tail) = status_and_tail(&mut Command::new("true"), Show::Nothing).unwrap();
        assert_eq!((passed, tail.as_str()), (Passed::Yes, ""));
    }
}
