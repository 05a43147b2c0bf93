//! `cargo xtask mutants --together`: one build that holds every mutant, and for
//! each the tests that reach it.
//!
//! The tree is copied below `target/mutants`, the mutants are woven into the
//! copy ([`weave`]), and what the compiler does not take is taken out again. A
//! run without any mutant says which tests reach which; a mutant that none
//! reaches survives without a run. What cannot be woven is left to
//! cargo-mutants, which builds anew for each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::weave::{self, Mutant};
use super::{Of, Outcomes, Place, list};
use crate::cmd;

/// The copy, seen from the root of the workspace.
const TREE: &str = "target/mutants/woven";
/// The switch as it stands in the copy.
const SWITCH: &str = include_str!("switch.rs.txt");
/// Processor seconds one run of tests may take; a mutant may loop for ever.
const SECONDS_MAX: &str = "30";
/// Bytes one run of tests may hold.
const BYTES_MAX: &str = "6442450944";
/// Compiling again and again ends some day: each time takes at least one away.
const ROUNDS_MAX: usize = 100;
/// A mutant is first tried on this many of the tests that reach it.
const FIRST_TESTS: usize = 4;

/// What was found.
pub(super) struct Found {
    pub(super) counts: Outcomes,
    /// What survives, as cargo-mutants names it.
    pub(super) survivors: Vec<String>,
    /// What could not be woven, by the same names.
    pub(super) left: Vec<String>,
}

/// Tries every mutant that can be woven.
pub(super) fn run(of: Of) -> Result<Found> {
    let place = of.place();
    let mutants = list(of)?;
    let tree = cmd::root().join(TREE);
    copy(&cmd::root(), &tree)?;
    let unviable = weave_all(&place, &mutants, &tree)?;
    let tests = tests(&place, &tree)?;
    let reach = reach(&tests, &tree)?;
    let mut found = Found {
        counts: Outcomes::default(),
        survivors: Vec::new(),
        left: Vec::new(),
    };
    for (number, mutant) in mutants.iter().enumerate() {
        if unviable.contains(&number) {
            found.counts.unviable += 1;
        } else if !woven(&tree, mutant, number)? {
            found.left.push(mutant.name.clone());
        } else if noticed(number, reach.get(&number))? {
            found.counts.caught += 1;
        } else {
            println!("survives: {}", mutant.name);
            found.counts.missed += 1;
            found.survivors.push(mutant.name.clone());
        }
    }
    Ok(found)
}

/// Copies what git knows of, or would if it was told; what is the same stays, so
/// that a second run compiles little.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut git = Command::new("git");
    git.current_dir(from).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let listed = git.output().context("cannot start git")?;
    ensure!(listed.status.success(), "git cannot list the workspace");
    for name in listed.stdout.split(|byte| *byte == 0) {
        let name = std::str::from_utf8(name).context("a file's name is not UTF-8")?;
        let (old, new) = (from.join(name), to.join(name));
        // A file that was removed and not yet committed is listed all the same.
        if name.is_empty() || !old.is_file() {
            continue;
        }
        write(&new, &fs::read(&old).with_context(|| cannot("read", &old))?)?;
    }
    Ok(())
}

fn cannot(what: &str, path: &Path) -> String {
    format!("cannot {what} {}", path.display())
}

/// Writes what is not there yet.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| cannot("make", parent))?;
    }
    fs::write(path, bytes).with_context(|| cannot("write", path))
}

/// A cargo command in the copy, with builds that are quick to make and to run.
fn cargo(tree: &Path) -> Command {
    let mut cargo = cmd::cargo();
    cargo.current_dir(tree);
    for (name, value) in [("DEBUG", "0"), ("OPT_LEVEL", "1")] {
        cargo.env(format!("CARGO_PROFILE_DEV_{name}"), value);
        cargo.env(format!("CARGO_PROFILE_TEST_{name}"), value);
    }
    cargo.env("CARGO_TARGET_DIR", tree.join("target"));
    cargo.stderr(Stdio::null());
    cargo
}

/// Weaves, asks the compiler, takes out what it refuses, until it refuses
/// nothing. Returns what it refused.
fn weave_all(place: &Place, mutants: &[Mutant], tree: &Path) -> Result<BTreeSet<usize>> {
    let mut refused = BTreeSet::new();
    let mut constant = BTreeSet::new();
    for _ in 0..ROUNDS_MAX {
        for path in sources(&cmd::root().join(place.sources))? {
            let path = path.strip_prefix(cmd::root())?;
            let text = fs::read_to_string(cmd::root().join(path))?;
            let mine: Vec<weave::Numbered<'_>> = mutants
                .iter()
                .enumerate()
                .filter(|(number, mutant)| {
                    Path::new(&mutant.file) == path && !refused.contains(number)
                })
                .collect();
            let mut woven = weave::file(&text, &mine, &constant)
                .with_context(|| format!("cannot weave into {}", path.display()))?;
            if path == Path::new(place.sources).join("lib.rs") {
                woven = with_switch(&woven);
            }
            write(&tree.join(path), woven.as_bytes())?;
        }
        let switch = SWITCH.replace("COUNT", &mutants.len().max(1).to_string());
        let path = tree.join(place.sources).join("mutant_switch.rs");
        write(&path, switch.as_bytes())?;
        let mut check = cargo(tree);
        check.args([
            "check",
            "--lib",
            "-p",
            place.package,
            "--message-format",
            "json",
        ]);
        let checked = check.output().context("cannot start cargo")?;
        if checked.status.success() {
            return Ok(refused);
        }
        let before = refused.len() + constant.len();
        let mut last = String::new();
        for error in messages(&checked.stdout, "compiler-message") {
            blame(&error["message"], tree, &mut refused, &mut constant);
            last = error["message"]["rendered"].to_string();
        }
        ensure!(
            refused.len() + constant.len() > before,
            "the compiler refuses the woven tree for another reason: {last}"
        );
    }
    anyhow::bail!("the compiler still refuses the woven tree after {ROUNDS_MAX} rounds")
}

/// The sources of a crate.
fn sources(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| cannot("list", dir))? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    Ok(found)
}

/// The root module with the switch beside the others; the switch needs `std`.
fn with_switch(root: &str) -> String {
    let std = if root.contains("#![no_std]") {
        "extern crate std;\n"
    } else {
        ""
    };
    let root = root.replace("#![no_std]", "");
    format!("#![allow(warnings)]\n{root}\n{std}pub mod mutant_switch;\n")
}

/// The lines of cargo's report of one kind.
fn messages(report: &[u8], reason: &str) -> Vec<Value> {
    report
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .filter(|message: &Value| message["reason"] == reason)
        .collect()
}

/// Which mutant an error is about: the innermost whose marks are around it. A
/// function that a constant needs cannot be changed at all.
fn blame(
    error: &Value,
    tree: &Path,
    refused: &mut BTreeSet<usize>,
    constant: &mut BTreeSet<String>,
) {
    if error["level"] != "error" {
        return;
    }
    if error["code"]["code"] == "E0015" {
        let told = error["message"].as_str().unwrap_or_default();
        let path = told.split('`').nth(1).unwrap_or_default();
        // Of a type's function the type, too: other types have one of that name.
        let mut names = path.rsplit("::");
        let name = names.next().unwrap_or_default();
        let name = match names
            .next()
            .filter(|owner| owner.starts_with(char::is_uppercase))
        {
            Some(owner) => format!("{owner}::{name}"),
            None => name.to_owned(),
        };
        constant.insert(name);
        return;
    }
    for span in error["spans"].as_array().into_iter().flatten() {
        let (Some(file), Some(at)) = (span["file_name"].as_str(), span["byte_start"].as_u64())
        else {
            continue;
        };
        let text = fs::read_to_string(tree.join(file)).unwrap_or_default();
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        if span["is_primary"] == true
            && let Some(number) = around(&text, at)
        {
            refused.insert(number);
        }
    }
}

/// The number of the innermost marks around a place.
fn around(text: &str, at: usize) -> Option<usize> {
    let mut before = text.get(..at)?;
    while let Some(begin) = before.rfind("/*m") {
        let inside = begin + "/*m".len();
        let rest = text.get(inside..)?;
        let number: Option<usize> = rest.split("*/").next()?.parse().ok();
        if let Some(number) = number
            && let (_, end) = weave::marks(number)
            && rest.find(&end).is_some_and(|end| inside + end >= at)
        {
            return Some(number);
        }
        before = text.get(..begin)?;
    }
    None
}

/// Whether a mutant stands in the woven tree.
fn woven(tree: &Path, mutant: &Mutant, number: usize) -> Result<bool> {
    let path = tree.join(&mutant.file);
    let text = fs::read_to_string(&path).with_context(|| cannot("read", &path))?;
    Ok(text.contains(&weave::marks(number).0))
}

/// A test.
#[derive(Clone, Debug)]
struct Test {
    program: PathBuf,
    /// Where cargo would run it.
    package: PathBuf,
    name: String,
}

/// Builds the tests and lists them.
fn tests(place: &Place, tree: &Path) -> Result<Vec<Test>> {
    let mut build = cargo(tree);
    build.args([
        "test",
        "--no-run",
        "-p",
        place.package,
        "--message-format",
        "json",
    ]);
    build.args(place.tests);
    let built = build.output().context("cannot start cargo")?;
    ensure!(
        built.status.success(),
        "the tests do not build in the woven tree"
    );
    let package = tree.join(place.package_dir());
    let mut tests = Vec::new();
    for artifact in messages(&built.stdout, "compiler-artifact") {
        let Some(program) = artifact["executable"].as_str().map(PathBuf::from) else {
            continue;
        };
        let mut list = Command::new(&program);
        list.args(["--list", "--format", "terse"])
            .current_dir(&package);
        let listed = list.output().context("cannot start the tests")?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let names = listed
            .lines()
            .filter_map(|line| line.strip_suffix(": test"));
        tests.extend(names.filter(|name| place.runs(name)).map(|name| Test {
            program: program.clone(),
            package: package.clone(),
            name: name.to_owned(),
        }));
    }
    ensure!(!tests.is_empty(), "there are no tests to run");
    Ok(tests)
}

/// Runs tests of one program, bounded; whether they pass.
fn passes(tests: &[&Test], setting: (&str, &str)) -> Result<bool> {
    let Some(first) = tests.first() else {
        return Ok(true);
    };
    let mut run = Command::new("prlimit");
    run.arg(format!("--cpu={SECONDS_MAX}"));
    run.arg(format!("--as={BYTES_MAX}"));
    run.arg("--core=0").arg(&first.program);
    run.args(["--exact", "-q"])
        .args(tests.iter().map(|test| &test.name));
    run.env(setting.0, setting.1)
        .env("PROPTEST_MAX_SHRINK_ITERS", "0");
    run.env("PROPTEST_FAILURE_PERSISTENCE", "off");
    run.current_dir(&first.package)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = run.status().context("cannot start prlimit")?;
    Ok(status.success())
}

/// Which tests reach which mutant, the quickest first.
fn reach<'t>(tests: &'t [Test], tree: &Path) -> Result<BTreeMap<usize, Vec<&'t Test>>> {
    let seen = tree.join("target").join("seen.txt");
    let shown = seen.to_str().context("a path that is not UTF-8")?;
    let mut timed = Vec::new();
    for test in tests {
        // What an earlier test reached is not this one's.
        match fs::remove_file(&seen) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {shown}"));
            }
            Ok(()) | Err(_) => {}
        }
        let before = cmd::children_cpu();
        let passed = passes(&[test], ("MUTANTS_SEEN", shown))?;
        ensure!(passed, "`{}` fails without any mutant", test.name);
        let took = cmd::children_cpu().saturating_sub(before);
        let seen = match fs::read_to_string(&seen) {
            // It reached none.
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            seen => seen.with_context(|| format!("cannot read {shown}"))?,
        };
        let seen: Vec<usize> = seen.lines().filter_map(|line| line.parse().ok()).collect();
        timed.push((took, test, seen));
    }
    timed.sort_by_key(|(took, _, _)| *took);
    let mut reach: BTreeMap<usize, Vec<&Test>> = BTreeMap::new();
    for (_, test, seen) in timed {
        for number in seen {
            reach.entry(number).or_default().push(test);
        }
    }
    Ok(reach)
}

/// Whether a test that reaches it notices a mutant: a few at first, then more at once.
fn noticed(number: usize, reached: Option<&Vec<&Test>>) -> Result<bool> {
    let mut rest = reached.map_or(&[][..], Vec::as_slice);
    let mut size = FIRST_TESTS;
    let number = number.to_string();
    while !rest.is_empty() {
        let (now, later) = rest.split_at(size.min(rest.len()));
        let programs: BTreeSet<&PathBuf> = now.iter().map(|test| &test.program).collect();
        for program in programs {
            let of: Vec<&Test> = now
                .iter()
                .copied()
                .filter(|test| test.program == *program)
                .collect();
            if !passes(&of, ("MUTANT_ON", &number))? {
                return Ok(true);
            }
        }
        rest = later;
        size = size.saturating_mul(3);
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_about_the_innermost_mutant_around_it() {
        let text = "a /*m1*/ b /*m22*/ c /*e22*/ d /*e1*/ e";
        for (letter, expected) in [("a", None), ("b", Some(1)), ("c", Some(22)), ("d", Some(1))] {
            assert_eq!(
                around(text, text.find(letter).unwrap()),
                expected,
                "{letter}"
            );
        }
        assert_eq!(around(text, text.len() - 1), None);
        assert_eq!(around(text, text.len() + 1), None);
    }

    #[test]
    fn a_function_that_a_constant_needs_is_named_by_the_compiler() {
        let (mut refused, mut constant) = (BTreeSet::new(), BTreeSet::new());
        let error = serde_json::json!({
            "level": "error",
            "code": {"code": "E0015"},
            "message": "cannot call non-const associated function `time::Millis::get` in constants",
            "spans": [],
        });
        blame(&error, Path::new("/nowhere"), &mut refused, &mut constant);
        assert_eq!(constant, BTreeSet::from(["Millis::get".to_owned()]));
        assert!(refused.is_empty());
    }

    #[test]
    fn the_switch_stands_beside_the_modules_and_may_use_the_standard_library() {
        let woven = with_switch("//! Doc.\n#![no_std]\n#![forbid(unsafe_code)]\nmod a;\n");
        assert!(!woven.contains("no_std"));
        assert!(woven.ends_with("mod a;\n\nextern crate std;\npub mod mutant_switch;\n"));
        assert!(!with_switch("mod a;\n").contains("extern crate std"));
    }
}
