//! A person's home, and the program run in it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

/// Far longer than anything here takes, and far shorter than the commands.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks until it is so.
#[track_caller]
pub fn until<R>(mut look: impl FnMut() -> Option<R>) -> R {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "it never came to that");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub struct Home {
    pub dir: tempfile::TempDir,
}

#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Home {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = Self { dir };
        std::fs::create_dir(home.project()).unwrap();
        std::fs::write(home.project().join("a.txt"), "a\n").unwrap();
        home
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn project(&self) -> PathBuf {
        self.dir.path().join("proj")
    }

    pub fn state(&self, name: &str) -> PathBuf {
        self.dir.path().join(".local/state/hermitcrab").join(name)
    }

    /// Runs the program in the project, with nobody to ask.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.run_in(&self.project(), arguments)
    }

    /// The program in a directory, with nobody to ask, not started yet.
    pub fn command(&self, dir: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("setsid");
        command
            .arg("--wait")
            .arg(env!("CARGO_BIN_EXE_hermitcrab"))
            .args(arguments)
            .current_dir(dir)
            .env_clear()
            .env("HOME", self.dir.path())
            .env("PATH", "/usr/bin:/bin");
        command
    }

    pub fn run_in(&self, dir: &Path, arguments: &[&str]) -> Ran {
        let output = self.command(dir, arguments).output().unwrap();
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs it and expects it to end well.
    #[track_caller]
    pub fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
        ran.out
    }

    pub fn configure(&self, text: &str) -> PathBuf {
        let dir = self.dir.path().join(".config/hermitcrab");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.toml"), text).unwrap();
        dir.join("config.toml")
    }

    pub fn ledger(&self) -> String {
        std::fs::read_to_string(self.state("ledger.jsonl")).unwrap()
    }
}

/// Puts a script where it can be started. Another process writes it: what this
/// one has open for writing, a child forked meanwhile has, too, and nothing that
/// anybody has open for writing can be started.
pub fn put_program(path: &Path, script: &str) {
    let source = path.with_extension("txt");
    std::fs::write(&source, script).unwrap();
    let done = Command::new("install")
        .args(["-m", "755"])
        .args([&source, path])
        .status()
        .unwrap();
    assert!(done.success());
}
