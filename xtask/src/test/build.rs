//! Build the test programs and ask each what tests it holds.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::selection;
use crate::cmd;

/// One test program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Program {
    /// The package it belongs to.
    pub package: String,
    /// The package's version.
    pub version: String,
    /// The target's name, such as `lib` or an integration test's.
    pub target: String,
    /// The file to run.
    pub executable: PathBuf,
    /// The package's directory: where tests expect to start.
    pub directory: PathBuf,
    /// `harness = false`: one test, which takes no arguments.
    pub bare: bool,
}

/// What programs are compiled for, where that is not this machine.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The compiler's name for it.
    pub triple: &'static str,
    /// The program that links for it.
    pub linker: &'static str,
}

impl Target {
    /// Has a command of cargo compile for it. Nobody steps through what runs elsewhere.
    pub fn given(self, command: &mut Command) -> &mut Command {
        let name = self.triple.to_uppercase().replace('-', "_");
        command
            .args(["--target", self.triple])
            .env(format!("CARGO_TARGET_{name}_LINKER"), self.linker)
            .env("CARGO_PROFILE_DEV_DEBUG", "false")
    }
}

/// One test to run.
#[derive(Clone, Debug)]
pub struct Case {
    /// Where it lives.
    pub program: Program,
    /// Its name; `None` runs the program as a whole.
    pub name: Option<String>,
    /// Marked `#[ignore]`, which is not how this project skips.
    pub ignored: bool,
}

impl Case {
    /// The name a person can look for.
    pub fn label(&self) -> String {
        let Program {
            package, target, ..
        } = &self.program;
        match &self.name {
            Some(name) => format!("{package}/{target} {name}"),
            None => format!("{package}/{target}"),
        }
    }
}

/// The tests of these programs whose names contain one of the words, if there are any.
pub fn cases(programs: &[Program], filter: &[String]) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for program in programs {
        if program.bare {
            cases.push(Case {
                program: program.clone(),
                name: None,
                ignored: false,
            });
            continue;
        }
        let ignored = list(program, &["--ignored"])?;
        for name in list(program, &[])? {
            cases.push(Case {
                program: program.clone(),
                ignored: ignored.contains(&name),
                name: Some(name),
            });
        }
    }
    if !filter.is_empty() {
        cases.retain(|case| {
            let label = case.label();
            filter.iter().any(|word| label.contains(word))
        });
    }
    Ok(cases)
}

/// Builds the chosen packages' tests and lists their programs in a file, for another
/// machine that has the same files.
pub fn write_programs(packages: &[String], target: Option<Target>, list: &Path) -> Result<()> {
    let programs = serde_json::to_vec(&programs(packages, target)?)?;
    fs::write(list, programs).with_context(|| format!("cannot write {}", list.display()))
}

/// The programs of a list.
pub fn read_programs(list: &Path) -> Result<Vec<Program>> {
    let bytes = fs::read(list).with_context(|| format!("cannot read {}", list.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("{} is no list", list.display()))
}

/// Run `cargo test --no-run` and read which programs it made.
pub fn programs(packages: &[String], target: Option<Target>) -> Result<Vec<Program>> {
    let mut build = cmd::cargo();
    build
        .args(["test", "--no-run"])
        .arg("--message-format=json-render-diagnostics")
        .args(selection(packages));
    if let Some(target) = target {
        target.given(&mut build);
    }
    let output = build
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "the tests do not build");
    let versions = versions()?;
    let mut programs = Vec::new();
    for line in output.stdout.split(|byte| *byte == b'\n') {
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            continue;
        };
        let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
        let is_test = message.pointer("/profile/test") == Some(&Value::Bool(true));
        let (Some(executable), Some(manifest), true) =
            (text("/executable"), text("/manifest_path"), is_test)
        else {
            continue;
        };
        let name = text("/target/name").unwrap_or("?");
        let kind = text("/target/kind/0").unwrap_or("?");
        let manifest = Path::new(manifest);
        let (package, version) = versions
            .get(manifest)
            .cloned()
            .with_context(|| format!("{} is not in the workspace", manifest.display()))?;
        programs.push(Program {
            package,
            version,
            target: match kind {
                "test" | "bin" | "bench" => name.to_owned(),
                _ => "lib".to_owned(),
            },
            executable: PathBuf::from(executable),
            directory: manifest.parent().unwrap_or(manifest).to_path_buf(),
            bare: kind == "test" && is_bare(manifest, name)?,
        });
    }
    programs.sort_by(|a, b| (&a.package, &a.target).cmp(&(&b.package, &b.target)));
    Ok(programs)
}

/// Manifest path to package name and version.
fn versions() -> Result<BTreeMap<PathBuf, (String, String)>> {
    let metadata = cmd::output(cmd::cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_slice(&metadata).context("cargo metadata")?;
    let packages = metadata.get("packages").and_then(Value::as_array);
    Ok(packages
        .into_iter()
        .flatten()
        .filter_map(|package| {
            let text = |key: &str| package.get(key).and_then(Value::as_str);
            Some((
                PathBuf::from(text("manifest_path")?),
                (text("name")?.to_owned(), text("version")?.to_owned()),
            ))
        })
        .collect())
}

/// Does the manifest say `harness = false` for this test target?
fn is_bare(manifest: &Path, name: &str) -> Result<bool> {
    let text = fs::read_to_string(manifest)
        .with_context(|| format!("cannot read {}", manifest.display()))?;
    let table: toml::Table = text
        .parse()
        .with_context(|| format!("{} is not TOML", manifest.display()))?;
    let targets = table.get("test").and_then(toml::Value::as_array);
    Ok(targets.into_iter().flatten().any(|target| {
        target.get("name").and_then(toml::Value::as_str) == Some(name)
            && target.get("harness").and_then(toml::Value::as_bool) == Some(false)
    }))
}

/// The names a test program lists.
fn list(program: &Program, more: &[&str]) -> Result<Vec<String>> {
    let output = Command::new(&program.executable)
        .args(["--list", "--format", "terse"])
        .args(more)
        .current_dir(&program.directory)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", program.executable.display()))?;
    ensure!(
        output.status.success(),
        "{} does not list its tests",
        program.executable.display()
    );
    Ok(String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect())
}
