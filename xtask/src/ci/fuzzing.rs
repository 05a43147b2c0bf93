//! The gate `fuzz`: the targets build, and survive a short run.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};

use super::beside::{self, Beside};
use super::{End, ended, step};
use crate::cmd::{self, Passed, Show};

/// How long each target runs.
const FUZZ_SECONDS: u32 = 5;

/// What building fuzz targets needs and this machine lacks, and how to get it.
pub(crate) fn lacks_for_fuzzing() -> Option<&'static str> {
    let needs = [
        (
            ["+nightly", "--version"],
            "the nightly toolchain is not installed (`rustup toolchain install nightly`)",
        ),
        (
            ["fuzz", "--version"],
            "cargo-fuzz is not installed (`cargo install cargo-fuzz --locked`)",
        ),
    ];
    let is_missing = |args: [&str; 2]| {
        !Command::new("cargo")
            .args(args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    needs
        .into_iter()
        .find(|(args, _)| is_missing(*args))
        .map(|(_, what)| what)
}

/// Where the targets of the gate are, below the root.
const OUT: &str = "target/fuzz-out";

/// Begins to compile the targets behind the gates that come next. Those wait for worlds and
/// leave a third of the processors idle; the nightly compiler has directories of its own, so
/// neither waits for the other. Nothing is begun where the gate will be skipped.
pub(super) fn compiled_beside() -> Result<Option<Beside>> {
    if lacks_for_fuzzing().is_some() {
        return Ok(None);
    }
    Beside::start(&mut beside::behind(&build(&cmd::root())), "fuzz").map(Some)
}

/// The same script builds the targets for the engines that run campaigns. No sanitizer: the
/// targets hold safe code. Not optimised: the smoke is short, and the build is most of it.
fn build(root: &Path) -> Command {
    let mut build = Command::new(root.join(".clusterfuzzlite/build.sh"));
    bisim::nested_cargo::apart(&mut build)
        .env_remove("RUSTUP_TOOLCHAIN")
        .env("OUT", root.join(OUT))
        .env("FUZZ_BUILD", "--dev --sanitizer none");
    build
}

/// The fuzz targets need the nightly compiler and cargo-fuzz, and have their own workspace.
/// Where they are being compiled already, that is waited for.
pub(super) fn fuzz(compiled: Option<Beside>) -> Result<End> {
    if let Some(what) = lacks_for_fuzzing() {
        return Ok(End::Skipped(what.to_owned()));
    }
    let root = cmd::root();
    let targets = fuzz_targets(&root)?;
    if targets.is_empty() {
        return Ok(End::failed("fuzz/fuzz_targets holds no target"));
    }
    let built = match compiled {
        Some(begun) => begun.end()?,
        None => step(&mut build(&root))?,
    };
    let End::Passed = built else {
        return Ok(built);
    };
    let out = root.join(OUT);
    let ran = at_once(&targets, |target| smoke(&root, &out, target));
    for (target, ran) in targets.iter().zip(ran) {
        let (passed, shown, tail) = ran?;
        if passed == Passed::No {
            println!("$ {shown}\n{tail}");
            return Ok(ended(passed, &shown, tail));
        }
        let done = tail.lines().rev().find(|line| line.starts_with("Done "));
        println!("{target:<16} {}", done.unwrap_or("ran"));
    }
    Ok(End::Passed)
}

/// A short run of one target: whether it survived, the command, and what it said last.
fn smoke(root: &Path, out: &Path, target: &str) -> Result<(Passed, String, String)> {
    // The seeds are read only; what the run finds goes into a directory that git ignores.
    let grown = root.join("fuzz/corpus").join(target);
    std::fs::create_dir_all(&grown).with_context(|| format!("cannot make {}", grown.display()))?;
    let mut run = Command::new(out.join(target));
    run.current_dir(root)
        .arg(&grown)
        .arg(root.join("fuzz/seeds").join(target))
        .arg(format!("-max_total_time={FUZZ_SECONDS}"))
        .args(["-timeout=10", "-rss_limit_mb=2048", "-print_funcs=0"]);
    let words = root.join(format!("fuzz/dictionaries/{target}.dict"));
    if words.exists() {
        run.arg(format!("-dict={}", words.display()));
    }
    // An engine talks at length, which only matters when it found something.
    let shown = cmd::show(&run);
    let (passed, tail) = cmd::status_and_tail(&mut run, Show::Nothing)?;
    Ok((passed, shown, tail))
}

/// Does the work for every item, as many at once as there are processors; the results are in
/// the items' order.
fn at_once<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let next = AtomicUsize::new(0);
    let (work, next) = (&work, &next);
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..workers.min(items.len()))
            .map(|_| {
                scope.spawn(move || {
                    let mut own = Vec::new();
                    loop {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        let Some(item) = items.get(place) else {
                            return own;
                        };
                        own.push((place, work(item)));
                    }
                })
            })
            .collect();
        running
            .into_iter()
            .flat_map(|one| {
                one.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

fn fuzz_targets(root: &Path) -> Result<Vec<String>> {
    let dir = root.join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in
        std::fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))?
    {
        let path = entry
            .with_context(|| format!("cannot list {}", dir.display()))?
            .path();
        if path.extension().is_some_and(|e| e == "rs")
            && let Some(stem) = path.file_stem()
        {
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_at_once_is_told_in_the_order_it_was_given() {
        let items: Vec<u64> = (0..40).collect();
        let done = at_once(&items, |item| {
            if item % 7 == 0 {
                std::thread::yield_now();
            }
            item * 2
        });
        assert_eq!(done, (0..40).map(|item| item * 2).collect::<Vec<_>>());
        assert_eq!(at_once(&[] as &[u64], |item| *item), Vec::<u64>::new());
    }
}
