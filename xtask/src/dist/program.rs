//! The program that is handed on: built for others, and asked about itself.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::ambient;
use crate::cmd::{self, Passed};
use crate::kernels::Processor;

/// A program, and one that can speak for it here.
#[derive(Debug)]
pub(super) struct Made {
    /// The program.
    pub file: PathBuf,
    /// The same for this machine's processor, which writes manual and completions.
    pub speaker: PathBuf,
    /// The oldest C library it starts with, as in `2.34`.
    pub library: String,
}

/// Builds it for a processor, with no place of this machine in it.
pub(super) fn make(processor: Processor, dir: &Path) -> Result<Made> {
    processor.ensure_compiles()?;
    let file = build(processor, dir)?;
    let speaker = match processor.is_foreign() {
        true => build(Processor::OWN, dir)?,
        false => file.clone(),
    };
    let library = oldest_library(&versions(&file)?)
        .context("the program names no version of the C library it needs")?;
    Ok(Made {
        file,
        speaker,
        library,
    })
}

fn build(processor: Processor, dir: &Path) -> Result<PathBuf> {
    let mut build = cmd::cargo();
    build
        .args(["build", "--release", "--locked", "-p", "hermitcrab"])
        .arg("--target-dir")
        .arg(dir)
        // Whoever debugs builds it themselves; names of functions are half of the file.
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
        .env("CARGO_ENCODED_RUSTFLAGS", flags()?);
    let mut file = dir.to_path_buf();
    if let Some(target) = processor.target() {
        target.given(&mut build);
        file.push(target.triple);
    }
    ensure!(
        cmd::status(&mut build)? == Passed::Yes,
        "the program does not build"
    );
    file.push("release/hermitcrab");
    Ok(file)
}

/// What has the compiler write other places than this machine's into messages.
fn flags() -> Result<String> {
    let cargo = ambient::cargo_home().context("neither CARGO_HOME nor HOME is set")?;
    let mut flags = String::new();
    // The last that fits counts, and one may lie in the other.
    for (place, name) in [(cargo, "/cargo"), (cmd::root(), "/hermitcrab")] {
        let place = place
            .to_str()
            .context("a directory of the build is no text")?;
        if !flags.is_empty() {
            flags.push('\u{1f}');
        }
        let _written = write!(flags, "--remap-path-prefix={place}={name}");
    }
    Ok(flags)
}

/// What the program says of the versions it needs of its libraries.
fn versions(file: &Path) -> Result<String> {
    let mut ask = Command::new("readelf");
    ask.args(["--version-info", "--wide"]).arg(file);
    let said = cmd::output(&mut ask).context("binutils has readelf")?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// The greatest version of glibc that is asked for.
pub(super) fn oldest_library(said: &str) -> Option<String> {
    let asked = said
        .split(|letter: char| letter.is_whitespace() || letter == '(' || letter == ')')
        .filter_map(|word| word.strip_prefix("GLIBC_"));
    let version = |text: &str| -> Option<Vec<u32>> {
        text.split('.').map(|part| part.parse().ok()).collect()
    };
    asked
        .filter_map(|text| Some((version(text)?, text)))
        .max_by(|left, right| left.0.cmp(&right.0).then(Ordering::Equal))
        .map(|(_, text)| text.to_owned())
}

/// The workspace's version.
pub(super) fn version() -> Result<String> {
    let manifest = cmd::root().join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest)
        .with_context(|| format!("cannot read {}", manifest.display()))?;
    let table: toml::Table = text.parse().context("Cargo.toml is not TOML")?;
    let said = ["workspace", "package", "version"]
        .iter()
        .try_fold(&toml::Value::Table(table), |at, name| at.get(name))
        .and_then(toml::Value::as_str)
        .map(str::to_owned);
    said.context("Cargo.toml says no version of the workspace")
}

/// When the commit was made that is checked out, in seconds since 1970.
pub(super) fn time() -> Result<u64> {
    let mut ask = Command::new("git");
    ask.args(["log", "-1", "--format=%ct"])
        .current_dir(cmd::root());
    let said = cmd::output(&mut ask)?;
    let said = String::from_utf8_lossy(&said);
    said.trim()
        .parse()
        .with_context(|| format!("git says `{}`, which is no time", said.trim()))
}
