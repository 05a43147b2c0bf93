//! AgentDojo in an environment of its own, installed from a lock file with
//! digests, and the program that is measured.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::cmd::{self, Passed};

/// The lock file, below the workspace root.
pub const LOCK: &str = "xtask/agentdojo/agentdojo-0.1.35.lock";

/// The interpreter of the environment; installs it first if it is not there.
pub fn ensure() -> Result<PathBuf> {
    let lock = cmd::root().join(LOCK);
    let wanted =
        fs::read_to_string(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    let home = cmd::root().join("target/agentdojo");
    let python = home.join("venv/bin/python");
    // What was installed last and to the end.
    let marker = home.join("installed.lock");
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) && python.exists() {
        return Ok(python);
    }
    fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
    println!("installing AgentDojo into {}", home.display());
    let mut venv = Command::new("python3");
    venv.args(["-I", "-m", "venv", "--clear"])
        .arg(home.join("venv"));
    needed(&mut venv)?;
    let mut pip = Command::new(&python);
    pip.args(["-I", "-m", "pip", "install", "--quiet", "--no-input"])
        .args(["--require-hashes", "--only-binary", ":all:", "--no-deps"])
        .arg("--requirement")
        .arg(&lock);
    needed(&mut pip)?;
    fs::write(&marker, wanted).with_context(|| format!("cannot write {}", marker.display()))?;
    Ok(python)
}

/// Builds the program that is measured, and sets a copy aside, so that nothing
/// built meanwhile is measured in its place.
pub fn build_agent() -> Result<()> {
    needed(cmd::cargo().args(["build", "--quiet", "--package", "hermitcrab"]))?;
    let built = cmd::root().join("target/debug/hermitcrab");
    let aside = agent();
    // A file that is being run cannot be written to.
    if aside.exists() {
        fs::remove_file(&aside).with_context(|| format!("cannot remove {}", aside.display()))?;
    }
    fs::copy(&built, &aside).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(())
}

/// The program that is measured.
pub fn agent() -> PathBuf {
    cmd::root().join("target/agentdojo/hermitcrab")
}

fn needed(command: &mut Command) -> Result<()> {
    let passed = cmd::status(command)?;
    anyhow::ensure!(passed == Passed::Yes, "`{}` failed", cmd::show(command));
    Ok(())
}
