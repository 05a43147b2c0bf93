//! `cargo xtask kernels`: the tests of the sandbox and of worlds under other kernels.
//!
//! Why: what a sandbox can do is decided by the kernel, and people have others than
//! whoever develops here. Most have control groups of version 2 alone; many have a
//! kernel whose tmpfs keeps no attributes, or an older Landlock. Each kernel starts in a
//! virtual machine that sees this machine's files below a layer of its own, so the very
//! test programs built here run there. Nothing there can change this machine.
//!
//! The machine is emulated, not accelerated: that works everywhere, also inside another
//! virtual machine, and a test takes a few seconds.

mod foreign;
mod machine;
mod package;
mod packages;
mod processor;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::cmd::{self, Passed};
use crate::test;

use self::machine::Kind;
use self::packages::Packages;
pub use self::processor::{Processor, ensure_library};

/// What is tested where nothing else is said: what asks most of a kernel, and what knows the
/// processor.
const PACKAGES: [&str; 2] = ["hermitcrab-sandbox", "bisim-world"];

/// Arguments of `cargo xtask kernels`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A kernel: the beginning of a version of Debian's packages, or a directory with
    /// `boot/vmlinuz-*` and `lib/modules/*` (may be repeated).
    #[arg(long, default_values = ["6.1", "6.12"])]
    kernel: Vec<String>,
    /// The kind of processor the machines have.
    #[arg(long, value_enum, default_value_t = Processor::OWN)]
    processor: Processor,
    /// The packages to test (may be repeated).
    #[arg(short, long, default_values = PACKAGES)]
    package: Vec<String>,
    /// A machine that runs longer than this many minutes is ended and has failed.
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// Only tests whose name contains one of these.
    filter: Vec<String>,
}

/// Whether machines of this kind can be made here; says what to install.
pub fn ready(processor: Processor) -> Result<()> {
    machine::tools(processor)?;
    processor.ensure_compiles()
}

/// Builds the tests, and runs them under each kernel.
pub fn run(args: &Args) -> Result<Passed> {
    let processor = args.processor;
    ready(processor)?;
    let dir = cmd::root().join("target/xtask/kernels");
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let packages = Packages::of(processor, &dir);
    let kind = Kind {
        processor,
        files: match processor.is_foreign() {
            true => foreign::files(&packages, &dir)?,
            false => PathBuf::from("/"),
        },
    };
    let list = dir.join(format!("programs-{processor}.json"));
    test::build::write_programs(&args.package, processor.target(), &list)?;
    let runner = runner(processor)?;
    let mut passed = Passed::Yes;
    for name in &args.kernel {
        let kernel = package::find(name, &packages, &dir)?;
        println!("=== Linux {} on {processor}", kernel.version);
        let tests = machine::Tests {
            list: list.clone(),
            runner: runner.clone(),
            filter: args.filter.clone(),
        };
        let patience = Duration::from_secs(args.minutes.saturating_mul(60));
        let mut summary = machine::run(&kind, &kernel, &dir, &tests, patience)?;
        if !summary.exists() {
            // An emulated processor of a busy machine lets a kernel stumble now and then
            // while it starts. What brings it down by itself does so twice.
            println!("the machine ended without a result, and is started once more");
            summary = machine::run(&kind, &kernel, &dir, &tests, patience)?;
        }
        if skipped_or_failed(&summary)? {
            passed = Passed::No;
        }
    }
    Ok(passed)
}

/// This program, as the machine can run it.
fn runner(processor: Processor) -> Result<PathBuf> {
    let built = cmd::root().join("target");
    let Some(target) = processor.target() else {
        return Ok(built.join("debug/xtask"));
    };
    let mut build = cmd::cargo();
    target.given(build.args(["build", "-p", "xtask"]));
    ensure!(
        cmd::status(&mut build)? == Passed::Yes,
        "what runs the tests there does not build"
    );
    Ok(built.join(target.triple).join("debug/xtask"))
}

/// A skip is a failure here: the kernels are chosen for having what the tests need.
fn skipped_or_failed(summary: &Path) -> Result<bool> {
    ensure!(
        summary.exists(),
        "the machine ended without a result; what it said is above"
    );
    let counts = test::read_summary(summary)?;
    let (passed, failed) = (counts.passed, counts.failed);
    ensure!(passed > 0 || failed > 0, "no test has such a name");
    Ok(failed > 0 || counts.unexplained > 0)
}
