//! The licences of all that is built into the program.
//!
//! Why: most of them ask to be handed on with it. They are read from the sources that are
//! really built, so that a new dependency brings its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::cmd;
use crate::kernels::Processor;

/// Names such files begin with.
const NAMES: [&str; 6] = [
    "licence",
    "license",
    "copying",
    "copyright",
    "notice",
    "unlicense",
];
/// What no package of cargo's says.
const BESIDES: &str = "Rust's standard library: MIT OR Apache-2.0\n\
                       SQLite: in the public domain\n";

/// One of the packages that are built in.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Package {
    /// Its name and version.
    pub name: String,
    /// Its licence, as an expression of SPDX.
    pub licence: String,
    /// Where its sources are.
    pub sources: PathBuf,
}

/// All of them, for the program of a processor.
pub(super) fn of(processor: Processor) -> Result<String> {
    told(&packages(processor)?)
}

/// The packages, each with what it says of its licence.
fn packages(processor: Processor) -> Result<BTreeSet<Package>> {
    let target = match processor.target() {
        Some(target) => target.triple.to_owned(),
        None => cmd::host()?,
    };
    let tree = cmd::output(cmd::cargo().args([
        "tree",
        "--locked",
        "--package=hermitcrab",
        "--edges=normal",
        "--prefix=none",
        "--no-dedupe",
        "--format={p}",
        "--target",
        &target,
    ]))?;
    // `name v1.2.3`, and behind it the place of what is of this workspace.
    let tree = String::from_utf8_lossy(&tree);
    let built: BTreeSet<&str> = tree.lines().filter(|line| !line.contains(" (/")).collect();
    let metadata = cmd::output(cmd::cargo().args(["metadata", "--locked", "--format-version=1"]))?;
    let metadata: Value = serde_json::from_slice(&metadata).context("cargo metadata")?;
    let all = metadata.get("packages").and_then(Value::as_array);
    let mut packages = BTreeSet::new();
    for package in all.into_iter().flatten() {
        let said = |name: &str| {
            package
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let line = format!("{} v{}", said("name"), said("version"));
        // Macros are marked as such.
        let is_built = built.contains(line.as_str())
            || built.contains(format!("{line} (proc-macro)").as_str());
        if is_built {
            packages.insert(Package {
                name: format!("{} {}", said("name"), said("version")),
                licence: said("license").to_owned(),
                sources: Path::new(said("manifest_path"))
                    .parent()
                    .map(Path::to_path_buf)
                    .unwrap_or_default(),
            });
        }
    }
    anyhow::ensure!(!packages.is_empty(), "cargo tree names no package");
    Ok(packages)
}

/// A list of them, and each text once, with those it is of.
pub(super) fn told(packages: &BTreeSet<Package>) -> Result<String> {
    let mut list = String::from("What is built into hermitcrab, and under which licence:\n\n");
    list.push_str(BESIDES);
    let mut texts: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for package in packages {
        // Writing to a String cannot fail.
        let _written = writeln!(list, "{}: {}", package.name, package.licence);
        for text in texts_in(&package.sources)? {
            texts.entry(text).or_default().push(&package.name);
        }
    }
    for (text, of) in &texts {
        let of = of.join(", ");
        let _written = write!(list, "\n{:=<78}\n{of}\n{:-<78}\n\n{text}\n", "", "");
    }
    Ok(list)
}

/// The texts of the files that have such a name.
fn texts_in(sources: &Path) -> Result<BTreeSet<String>> {
    let cannot = || format!("cannot list {}", sources.display());
    let mut texts = BTreeSet::new();
    for entry in fs::read_dir(sources).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_lowercase();
        if path.is_file() && NAMES.iter().any(|begins| name.starts_with(begins)) {
            let bytes =
                fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let text = String::from_utf8_lossy(&bytes);
            let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
            texts.insert(lines.join("\n").trim_matches('\n').to_owned());
        }
    }
    Ok(texts)
}
