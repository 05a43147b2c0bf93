//! A gate that runs beside others.
//!
//! Why: an emulated machine keeps one processor busy and no more. Compiling fills the other,
//! stands back for what counts the time, and the whole is over sooner.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};

use super::{End, ended};
use crate::cmd::{self, Passed, Show};

/// Puts a command behind everything else that wants a processor.
const BEHIND: [&str; 2] = ["nice", "-n15"];

/// A command that runs while other gates do; what it prints is kept until it is asked for.
pub(super) struct Beside {
    child: Child,
    shown: String,
    log: PathBuf,
}

impl Beside {
    /// Starts the command; `name` is its gate.
    pub(super) fn start(command: &mut Command, name: &str) -> Result<Self> {
        let dir = cmd::root().join("target/xtask");
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let log = dir.join(format!("beside-{name}.log"));
        let file =
            fs::File::create(&log).with_context(|| format!("cannot make {}", log.display()))?;
        let both = file.try_clone().context("cannot copy a file")?;
        let shown = cmd::show(command);
        let child = command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(both)
            .spawn()
            .with_context(|| format!("cannot start `{shown}`"))?;
        Ok(Self { child, shown, log })
    }

    /// Waits for its end, and prints what it printed.
    pub(super) fn end(mut self) -> Result<End> {
        let status = self
            .child
            .wait()
            .with_context(|| format!("waiting for `{}`", self.shown))?;
        println!("$ {}", self.shown);
        let log = fs::File::open(&self.log)
            .with_context(|| format!("cannot read {}", self.log.display()))?;
        let tail = cmd::last_lines(log, Show::All)?;
        Ok(ended(Passed::when(status.success()), &self.shown, tail))
    }
}

/// The same command, behind what runs beside it.
pub(super) fn behind(command: &Command) -> Command {
    let [nice, how] = BEHIND;
    let mut stands_back = Command::new(nice);
    stands_back.arg(how).arg(command.get_program());
    stands_back.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => stands_back.env(name, value),
            None => stands_back.env_remove(name),
        };
    }
    if let Some(dir) = command.get_current_dir() {
        stands_back.current_dir(dir);
    }
    stands_back
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ran_beside_passes_or_fails_by_its_status_and_leaves_its_last_lines() {
        let run = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Beside::start(&mut command, "test-of-beside")
                .unwrap()
                .end()
                .unwrap()
        };
        assert!(matches!(run("echo said"), End::Passed));
        let End::Failed(failure) = run("echo why >&2; exit 3") else {
            panic!("a command that fails has failed");
        };
        assert_eq!(failure.tail, "why\n");
    }

    #[test]
    fn what_stands_back_is_the_same_command_with_the_same_surroundings() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo $(nice) $PWD $GIVEN ${HOME-none}"])
            .current_dir("/usr")
            .env("GIVEN", "given")
            .env_remove("HOME");
        let said = cmd::output(&mut behind(&command)).unwrap();
        let said = String::from_utf8(said).unwrap();
        let (nice, rest) = said.trim_end().split_once(' ').unwrap();
        assert_eq!(rest, "/usr given none");
        assert!(nice.parse::<i32>().unwrap() >= 15, "{nice}");
    }
}
