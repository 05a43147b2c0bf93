//! `engine`: the layout for OSS-Fuzz and ClusterFuzzLite, run here the way their images do.
//!
//! What for: a build script that only ever ran in our own gate is not known to work in theirs.
//! Here it gets a checkout of what is committed, their variables and flags, and clang; then each
//! target is asked what their `bad_build_check` asks (is it instrumented, with that sanitizer and no
//! other, does it start, does it survive its seeds) and runs for some seconds in a directory where
//! nothing of the source is, with its seeds out of the archive and its dictionary. What needs their
//! image is said at the end and never taken as done.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::ci::lacks_for_fuzzing;
use crate::cmd::{self, Passed, Show};

/// Where all of it lies, below the root.
const PLACE: &str = "target/engine";
/// Fewer edges than this, and their check takes a target for one that is only partly instrumented.
const EDGES_MIN: u64 = 100;
/// Fewer calls into the sanitizer than this, and their check takes a target for one without it.
const SANITIZER_CALLS_MIN: usize = 1000;
/// What every C and C++ compiler is told in their image.
const FLAGS: &str =
    "-O1 -fno-omit-frame-pointer -gline-tables-only -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION";
/// What every Rust compiler is.
const RUST: &str = "--cfg fuzzing -Cdebuginfo=1 -Cforce-frame-pointers";

/// What `engine` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What the engine asks for.
    #[arg(long, value_enum, default_value = "address")]
    sanitizer: Sanitizer,
    /// How long each target runs after the checks.
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// Leave what was built where it is, below target/engine.
    #[arg(long)]
    keep: bool,
}

/// What the layout can be built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Sanitizer {
    /// What `project.yaml` names.
    Address,
    /// For speed.
    #[value(name = "none")]
    Without,
}

impl Sanitizer {
    const fn word(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Without => "none",
        }
    }

    /// For C and C++, and for Rust.
    const fn flags(self) -> (&'static str, &'static str) {
        match self {
            Self::Address => (
                "-fsanitize=address -fsanitize-address-use-after-scope -fsanitize=fuzzer-no-link",
                "-Zsanitizer=address",
            ),
            Self::Without => ("-fsanitize=fuzzer-no-link", ""),
        }
    }
}

/// Builds, checks and runs.
pub fn run(args: &Args) -> Result<Passed> {
    if let Some(what) = lacks_for_fuzzing() {
        bail!("{what}");
    }
    let root = cmd::root();
    let place = root.join(PLACE);
    let left_over = place.exists().then(|| fs::remove_dir_all(&place));
    left_over
        .transpose()
        .with_context(|| format!("cannot clear {}", place.display()))?;
    let passed = in_place(&root, &place, args)?;
    if !args.keep {
        fs::remove_dir_all(&place).with_context(|| format!("cannot clear {}", place.display()))?;
    }
    Ok(passed)
}

fn in_place(root: &Path, place: &Path, args: &Args) -> Result<Passed> {
    let source = place.join("src");
    let checkout = source.join("hermitcrab");
    fs::create_dir_all(&checkout).context("cannot make the checkout")?;
    // What is committed, as their image copies it.
    let archive = place.join("head.tar");
    for command in [
        Command::new("git")
            .current_dir(root)
            .args(["archive", "--output"])
            .arg(&archive)
            .arg("HEAD"),
        Command::new("tar")
            .arg("xf")
            .arg(&archive)
            .arg("-C")
            .arg(&checkout),
        Command::new("cp")
            .arg(checkout.join(".clusterfuzzlite/build.sh"))
            .arg(&source),
    ] {
        if let Passed::No = cmd::status(command)? {
            return Ok(Passed::No);
        }
    }
    let out = place.join("out");
    fs::create_dir_all(&out).context("cannot make $OUT")?;
    let has_clang = cmd::is_installed("clang");
    if let Passed::No = cmd::status(&mut build(place, args.sanitizer, has_clang))? {
        return Ok(Passed::No);
    }
    let mut bad = Vec::new();
    let targets = targets(&checkout)?;
    for target in &targets {
        match check(&out, target, args) {
            Ok(told) => println!("{target:<16} {told}"),
            Err(why) => {
                println!("{target:<16} BAD: {why:#}");
                bad.push(target);
            }
        }
    }
    println!("{} targets, {} bad", targets.len(), bad.len());
    println!("not done here, as it needs their image or their machines:");
    for what in not_done(&checkout, has_clang) {
        println!("- {what}");
    }
    Ok(Passed::when(bad.is_empty() && !targets.is_empty()))
}

/// Their `compile`, as far as it is about a project in Rust.
fn build(place: &Path, sanitizer: Sanitizer, has_clang: bool) -> Command {
    let (c, rust) = sanitizer.flags();
    let mut build = Command::new("bash");
    bisim::nested_cargo::apart(&mut build)
        .arg("-eu")
        .arg(place.join("src/build.sh"))
        .current_dir(place.join("src/hermitcrab"))
        .env("SRC", place.join("src"))
        .env("OUT", place.join("out"))
        .env("WORK", place.join("work"))
        .env("FUZZING_ENGINE", "libfuzzer")
        .env("FUZZING_LANGUAGE", "rust")
        .env("ARCHITECTURE", "x86_64")
        .env("SANITIZER", sanitizer.word())
        .env("RUSTUP_TOOLCHAIN", "nightly")
        .env("RUSTFLAGS", format!("{RUST} {rust}"))
        .env_remove("FUZZ_BUILD");
    // Their flags are clang's; another compiler knows neither of them.
    if has_clang {
        build
            .env("CC", "clang")
            .env("CXX", "clang++")
            .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", "clang")
            .env("CFLAGS", format!("{FLAGS} {c}"))
            .env("CXXFLAGS", format!("{FLAGS} {c} -stdlib=libc++"))
            .env("CUSTOM_LIBFUZZER_STD_CXX", "c++");
    }
    build
}

/// What every target is asked; what it said, or what is wrong with it.
fn check(out: &Path, target: &str, args: &Args) -> Result<String> {
    let program = out.join(target);
    // Their runner has nothing but $OUT, and each run a directory for temporary files.
    let temporary = out.with_file_name("tmp").join(target);
    let seeds = temporary.join("seeds");
    fs::create_dir_all(&seeds).context("cannot make a place for the seeds")?;
    let zip = out.join(format!("{target}_seed_corpus.zip"));
    let unpacked = cmd::output(
        Command::new("python3")
            .args(["-m", "zipfile", "-e"])
            .arg(&zip)
            .arg(&seeds),
    );
    unpacked.context("its seeds cannot be unpacked")?;
    let seed_count = fs::read_dir(&seeds)
        .context("its seeds cannot be listed")?
        .count();
    anyhow::ensure!(seed_count > 0, "its archive of seeds is empty");
    let engine = |more: &[&str], seeds: Option<&PathBuf>| -> Result<String> {
        let mut run = Command::new(&program);
        run.current_dir(out).env("TMPDIR", &temporary);
        run.args(["-rss_limit_mb=2560", "-timeout=25"])
            .args(more)
            .args(seeds);
        let words = out.join(format!("{target}.dict"));
        if words.exists() {
            run.arg(format!("-dict={}", words.display()));
        }
        let artifacts = format!("-artifact_prefix={}/", temporary.display());
        run.arg(artifacts);
        let (passed, said) = cmd::status_and_tail(&mut run, Show::Nothing)?;
        anyhow::ensure!(
            passed == Passed::Yes,
            "`{}` failed:\n{said}",
            cmd::show(&run)
        );
        Ok(said)
    };
    let started = engine(&["-seed=1337", "-runs=4"], None)?;
    anyhow::ensure!(
        started.contains("Done 4 runs"),
        "it does not come to four runs:\n{started}"
    );
    let edges = edges(&started).with_context(|| format!("it tells of no counters:\n{started}"))?;
    anyhow::ensure!(
        edges >= EDGES_MIN,
        "{edges} edges only: it is hardly instrumented"
    );
    let calls = sanitizer_calls(&program)?;
    match args.sanitizer {
        Sanitizer::Address => anyhow::ensure!(
            calls >= SANITIZER_CALLS_MIN,
            "{calls} calls into AddressSanitizer: it is built without"
        ),
        Sanitizer::Without => {
            anyhow::ensure!(
                calls == 0,
                "{calls} calls into AddressSanitizer nobody asked for"
            );
        }
    }
    engine(&["-runs=0"], Some(&seeds))?;
    let grown = temporary.join("grown");
    fs::create_dir_all(&grown).context("cannot make a place for what is found")?;
    let (grown, seconds) = (
        grown.display().to_string(),
        format!("-max_total_time={}", args.seconds),
    );
    let ran = engine(&[&seconds, &grown], Some(&seeds))?;
    let done = ran.lines().rev().find(|line| line.starts_with("Done "));
    let done = done.context("it did not come to its end")?;
    Ok(format!(
        "{edges} edges, {calls} calls of the sanitizer, {seed_count} seeds; {done}"
    ))
}

/// `INFO: Loaded 1 modules   (9 inline 8-bit counters): 9 [..]`
fn edges(said: &str) -> Option<u64> {
    let line = said
        .lines()
        .find(|line| line.starts_with("INFO: Loaded") && line.contains("counters"))?;
    let (_, rest) = line.rsplit_once("): ")?;
    rest.split(' ').next()?.parse().ok()
}

/// How often a program calls AddressSanitizer.
fn sanitizer_calls(program: &Path) -> Result<usize> {
    let code = cmd::output(
        Command::new("objdump")
            .args(["-d", "--no-show-raw-insn"])
            .arg(program),
    )?;
    let calls = String::from_utf8_lossy(&code);
    Ok(calls
        .lines()
        .filter(|line| line.contains("call") && line.contains("<__asan_"))
        .count())
}

fn targets(checkout: &Path) -> Result<Vec<String>> {
    let dir = checkout.join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let path = entry.context("cannot list the targets")?.path();
        names.extend(
            path.file_stem()
                .map(|stem| stem.to_string_lossy().into_owned()),
        );
    }
    names.sort();
    Ok(names)
}

fn not_done(checkout: &Path, has_clang: bool) -> Vec<String> {
    let file = fs::read_to_string(checkout.join(".clusterfuzzlite/Dockerfile")).unwrap_or_default();
    let named = |word: &str| {
        let line = file.lines().find_map(|line| line.strip_prefix(word));
        line.unwrap_or("(none is named)").to_owned()
    };
    let mut list = vec![
        format!("the image was not built: {}", named("FROM ")),
        format!(
            "its compiler is {}, the one here `nightly`",
            named("ENV RUSTUP_TOOLCHAIN=")
        ),
        "the engine is the one libfuzzer-sys brings, and not the image's own library".to_owned(),
        "nothing was uploaded, deduplicated or bisected".to_owned(),
    ];
    if !has_clang {
        list.push("there is no clang here, so code in C had no sanitizer and no counters (`apt-get install clang libc++-dev libc++abi-dev`)".to_owned());
    }
    list
}

#[cfg(test)]
mod tests {
    use super::{edges, targets};
    use crate::cmd;

    #[test]
    fn the_number_of_edges_is_read_from_what_the_engine_says() {
        let said = "INFO: Seed: 1337\nINFO: Loaded 1 modules   (73 inline 8-bit counters): 73 [0x1, 0x2), \nINFO: Loaded 1 PC tables (73 PCs): 73 [0x3,0x4), ";
        assert_eq!(edges(said), Some(73));
        assert_eq!(edges("INFO: Seed: 1337"), None);
    }

    #[test]
    fn the_compiler_of_the_image_is_named_and_every_target_has_seeds() {
        let root = cmd::root();
        let image = std::fs::read_to_string(root.join(".clusterfuzzlite/Dockerfile")).unwrap();
        assert!(image.contains("\nENV RUSTUP_TOOLCHAIN=nightly-"), "{image}");
        let targets = targets(&root).unwrap();
        assert!(!targets.is_empty());
        for target in targets {
            let seeds = root.join("fuzz/seeds").join(&target);
            assert!(seeds.read_dir().unwrap().next().is_some(), "{target}");
        }
    }
}
