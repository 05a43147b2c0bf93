//! Rules of the house that no lint knows, read from the tree itself.
//!
//! Each rule can fail and has a test that makes it fail. A rule that only a
//! reader can judge belongs in the style guide, not here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::cmd::{self, Passed};
use crate::licences;

mod named;
mod one_build;
mod rings;

use self::rings::{Arrows, Names};

/// The arrows between packages. Another one is a design change: add it here and
/// in `docs/ARCHITECTURE.md`, and say why.
const ARROWS: &[(&str, &[&str])] = &[
    ("hermitcrab-core", &[]),
    ("hermitcrab-core-misuse", &["hermitcrab-core"]),
    ("hermitcrab-sandbox", &["hermitcrab-core"]),
    ("hermitcrab", &["hermitcrab-core", "hermitcrab-sandbox"]),
    ("bisim-world", &[]),
    ("hermes-shim", &["bisim-world"]),
    (
        "hermitcrab-python",
        &["hermitcrab-core", "hermitcrab-sandbox"],
    ),
    (
        "bisim",
        &[
            "bisim-world",
            "hermes-shim",
            "hermitcrab",
            "hermitcrab-core",
            "hermitcrab-sandbox",
        ],
    ),
    (
        "benches",
        &[
            "hermitcrab-core",
            "hermitcrab-sandbox",
            "hermitcrab",
            "bisim-world",
        ],
    ),
    ("xtask", &["bisim"]),
];
/// Sources whose modules name each other in one direction.
const WITHOUT_RINGS: &[&str] = &[
    "agent/core/src/",
    "agent/sandbox/src/",
    "agent/src/",
    "oracle/src/",
    "world/src/",
    "shim/src/",
    "xtask/src/",
    "benches/src/",
    "fuzz/src/",
    "python/src/",
];
/// The only file that may hold unsafe code, with the parts below it.
const UNSAFE_FILE: &str = "agent/sandbox/src/sys.rs";

/// Check everything and print what is wrong.
pub fn run() -> Result<Passed> {
    let root = cmd::root();
    let mut findings = arrows(&metadata()?);
    let mut files = Vec::new();
    let mut modules = vec![Vec::new(); WITHOUT_RINGS.len()];
    let mut functions = BTreeSet::new();
    for dir in [
        "agent", "world", "shim", "python", "oracle", "benches", "xtask", "fuzz",
    ] {
        files_below(&root.join(dir), "rs", &mut files)?;
    }
    for path in &files {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.strip_prefix(&root).unwrap_or(path).to_string_lossy();
        findings.extend(in_file(&name, &text));
        functions.extend(named::functions(&text).map(str::to_owned));
        for (package, modules) in WITHOUT_RINGS.iter().zip(&mut modules) {
            if let Some(below) = name.strip_prefix(package) {
                modules.push((below.to_owned(), text.clone()));
            }
        }
    }
    for (package, modules) in WITHOUT_RINGS.iter().zip(&modules) {
        findings.extend(rings(package, modules)?);
    }
    findings.extend(licences::findings()?);
    findings.extend(one_build::findings()?);
    findings.extend(named(&root, &functions)?);
    findings.extend(patterns(&root)?);
    for finding in &findings {
        println!("{finding}");
    }
    println!("{} files, {} findings", files.len(), findings.len());
    Ok(Passed::when(findings.is_empty()))
}

/// What of the page of Hermes' patterns is not as its command would make it today.
fn patterns(root: &Path) -> Result<Vec<String>> {
    const PAGE: &str = "docs/hermes-patterns.md";
    let page =
        fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let outdated = bisim::campaign::patterns_outdated(&page).into_iter();
    Ok(outdated.map(|what| format!("{PAGE}: {what}")).collect())
}

fn metadata() -> Result<Value> {
    let bytes = cmd::output(cmd::cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
    serde_json::from_slice(&bytes).context("cargo metadata")
}

/// Arrows between our packages that [`ARROWS`] does not name.
fn arrows(metadata: &Value) -> Vec<String> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let packages = metadata.get("packages").and_then(Value::as_array);
    let packages: Vec<&Value> = packages.into_iter().flatten().collect();
    let ours: Vec<String> = packages.iter().filter_map(|p| text(p, "name")).collect();
    let mut findings = Vec::new();
    for package in packages {
        let Some(from) = text(package, "name") else {
            continue;
        };
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == from) else {
            findings.push(format!("package {from} is not in the map of arrows"));
            continue;
        };
        let dependencies = package.get("dependencies").and_then(Value::as_array);
        for dependency in dependencies.into_iter().flatten() {
            let Some(to) = text(dependency, "name") else {
                continue;
            };
            if ours.contains(&to) && !allowed.contains(&to.as_str()) {
                findings.push(format!("new arrow {from} -> {to}"));
            }
            let for_tests = text(dependency, "kind").as_deref() == Some("dev");
            if from == "hermitcrab-core" && !for_tests {
                findings.push(format!("the core depends on {to}; it depends on nothing"));
            }
        }
    }
    findings
}

/// Rings of modules where there must be none.
fn rings(package: &str, files: &[(String, String)]) -> Result<Vec<String>> {
    let read = |(name, text): &(String, String)| {
        let names = Names::read(name, text);
        let names = names.with_context(|| format!("cannot read {package}{name}"))?;
        anyhow::Ok((name.clone(), names))
    };
    let files: Vec<_> = files.iter().map(read).collect::<Result<_>>()?;
    Ok(rings_of(package, &files))
}

/// Rings among what these files name.
fn rings_of(package: &str, files: &[(String, Names)]) -> Vec<String> {
    let mut findings = Vec::new();
    for arrows in Arrows::of(files) {
        for ring in arrows.rings() {
            let told = arrows.told(&ring);
            findings.push(format!(
                "{package}: modules name each other in a ring, {told}"
            ));
        }
    }
    findings
}

/// What is wrong in one source file.
fn in_file(name: &str, text: &str) -> Vec<String> {
    // Spelled apart, so that this file does not find itself.
    let ignore = concat!("#[", "ignore");
    let should_panic = concat!("#[", "should_panic");
    let allow_unsafe = concat!("(unsafe", "_code");
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let code = line.trim_start();
        let place = format!("{name}:{}", index + 1);
        if code.starts_with(ignore) {
            findings.push(format!(
                "{place}: a test that is not run; print `SKIPPED: reason`"
            ));
        }
        if code.starts_with(should_panic) {
            findings.push(format!("{place}: assert the result instead of a panic"));
        }
        let lifts =
            code.contains(allow_unsafe) && !code.contains("forbid") && !code.contains("deny");
        if lifts && name != UNSAFE_FILE && !code.starts_with("//") {
            findings.push(format!("{place}: unsafe code lives in {UNSAFE_FILE}"));
        }
    }
    findings
}

/// What the documents of the tree name and is not there.
fn named(root: &Path, functions: &BTreeSet<String>) -> Result<Vec<String>> {
    let mut pages = Vec::new();
    files_below(root, "md", &mut pages)?;
    let index = root.join(named::INDEX);
    let beside = pages.iter().filter(|page| page.parent() == index.parent());
    let decisions: Vec<String> = beside
        .filter(|page| **page != index)
        .filter_map(|page| Some(page.file_name()?.to_string_lossy().into_owned()))
        .collect();
    let mut findings = Vec::new();
    for page in pages {
        let text =
            fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
        let name = page.strip_prefix(root).unwrap_or(&page).to_string_lossy();
        findings.extend(named::missing(root, &name, &text, functions));
        if name == named::INDEX {
            findings.extend(named::unlisted(&text, &decisions));
        }
    }
    Ok(findings)
}

/// All files with this ending below `dir`, without build output and what is hidden.
fn files_below(dir: &Path, ending: &str, files: &mut Vec<PathBuf>) -> Result<()> {
    if !dir.is_dir() {
        return Ok(());
    }
    let entries = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    for entry in entries {
        let path = entry
            .with_context(|| format!("cannot list {}", dir.display()))?
            .path();
        let passed_over =
            |name: &std::ffi::OsStr| name == "target" || name.as_encoded_bytes().starts_with(b".");
        if path.is_dir() {
            if !path.file_name().is_some_and(passed_over) {
                files_below(&path, ending, files)?;
            }
        } else if path.extension().is_some_and(|e| e == ending) {
            files.push(path);
        }
    }
    files.sort();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_against_the_direction_is_found() {
        let metadata = serde_json::json!({"packages": [
            {"name": "hermitcrab-core",
             "dependencies": [{"name": "proptest", "kind": "dev"}, {"name": "serde"}]},
            {"name": "hermitcrab-sandbox", "dependencies": [{"name": "hermitcrab-core"}]},
            {"name": "hermes-shim", "dependencies": [{"name": "hermitcrab-core"}]},
            {"name": "newcomer", "dependencies": []},
        ]});
        assert_eq!(
            arrows(&metadata),
            [
                "the core depends on serde; it depends on nothing",
                "new arrow hermes-shim -> hermitcrab-core",
                "package newcomer is not in the map of arrows",
            ]
        );
    }

    #[test]
    fn the_arrows_of_this_workspace_are_the_drawn_ones() {
        assert_eq!(arrows(&metadata().unwrap()), Vec::<String>::new());
    }

    #[test]
    fn a_ring_of_modules_is_found_and_there_is_none() {
        for (package, planted, told) in [
            (
                "agent/core/src/",
                "fn planted(_: &crate::session::Session) {}\n",
                "digest -> session (digest.rs:",
            ),
            (
                "agent/sandbox/src/",
                "fn planted(_: &crate::DirCap) {}\n",
                "digest -> dircap (digest.rs:",
            ),
            (
                "agent/src/",
                "fn planted(_: &crate::runtime::Runtime) {}\n",
                "digest -> runtime (digest.rs:",
            ),
            (
                "oracle/src/",
                "fn planted(_: &crate::campaign::Fate) {}\n",
                "glob -> campaign (glob.rs:",
            ),
        ] {
            assert!(WITHOUT_RINGS.contains(&package));
            let root = cmd::root().join(package);
            let mut paths = Vec::new();
            files_below(&root, "rs", &mut paths).unwrap();
            let read = |path: &PathBuf| {
                let name = path.strip_prefix(&root).unwrap().to_string_lossy();
                let text = fs::read_to_string(path).unwrap();
                let names = Names::read(&name, &text).unwrap();
                (name.into_owned(), names)
            };
            let mut files: Vec<_> = paths.iter().map(read).collect();
            assert_eq!(rings_of(package, &files), Vec::<String>::new());
            let (module, _) = told.split_once(' ').unwrap();
            let (name, names) = files
                .iter_mut()
                .find(|(name, _)| name.strip_suffix(".rs") == Some(module))
                .unwrap();
            let text = fs::read_to_string(root.join(&*name)).unwrap() + planted;
            *names = Names::read(name, &text).unwrap();
            let found = rings_of(package, &files);
            assert_eq!(found.len(), 1, "{package} {found:?}");
            assert!(found[0].contains(told), "{found:?}");
        }
    }

    #[test]
    fn hidden_tests_and_unsafe_outside_its_file_are_found() {
        let text = concat!(
            "    #[",
            "ignore]\n#[",
            "should_panic]\n#![allow(unsafe",
            "_code)]\n"
        );
        assert_eq!(in_file("agent/src/lib.rs", text).len(), 3);
        assert_eq!(in_file(UNSAFE_FILE, text).len(), 2);
        assert!(in_file("agent/core/src/lib.rs", "#![forbid(unsafe_code)]\n").is_empty());
    }
}
