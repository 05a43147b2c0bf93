//! `cargo xtask kernels`: the sandbox's tests under other kernels.
//!
//! Why: what a sandbox can do is decided by the kernel, and people have others than
//! whoever develops here. Most have control groups of version 2 alone; many have a
//! kernel whose tmpfs keeps no attributes, or an older Landlock. Each kernel starts in a
//! virtual machine that sees this machine's files below a layer of its own, so the very
//! test programs built here run there. Nothing there can change this machine.
//!
//! The machine is emulated, not accelerated: that works everywhere, also inside another
//! virtual machine, and a test takes a few seconds.

mod machine;
mod package;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::cmd::{self, Passed};
use crate::test;

pub use machine::tools as ready;

/// What is tested where nothing else is said.
const PACKAGE: &str = "hermitcrab-sandbox";

/// Arguments of `cargo xtask kernels`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A kernel: the beginning of a version of Debian's packages, or a directory with
    /// `boot/vmlinuz-*` and `lib/modules/*` (may be repeated).
    #[arg(long, default_values = ["6.1", "6.12"])]
    kernel: Vec<String>,
    /// The packages to test (may be repeated).
    #[arg(short, long, default_value = PACKAGE)]
    package: Vec<String>,
    /// A machine that runs longer than this many minutes is ended and has failed.
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// Only tests whose name contains one of these.
    filter: Vec<String>,
}

/// Builds the tests, and runs them under each kernel.
pub fn run(args: &Args) -> Result<Passed> {
    machine::tools()?;
    let dir = cmd::root().join("target/xtask/kernels");
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let list = dir.join("programs.json");
    test::build::write_programs(&args.package, &list)?;
    let mut passed = Passed::Yes;
    for name in &args.kernel {
        let kernel = package::find(name, &dir)?;
        println!("=== Linux {}", kernel.version);
        let summary = machine::run(
            &kernel,
            &dir,
            &machine::Tests {
                list: list.clone(),
                filter: args.filter.clone(),
            },
            Duration::from_secs(args.minutes.saturating_mul(60)),
        )?;
        if skipped_or_failed(&summary)? {
            passed = Passed::No;
        }
    }
    Ok(passed)
}

/// A skip is a failure here: the kernels are chosen for having what the tests need.
fn skipped_or_failed(summary: &Path) -> Result<bool> {
    ensure!(
        summary.exists(),
        "the machine ended without a result; what it said is above"
    );
    let counts = test::read_summary(summary)?;
    ensure!(counts.passed > 0, "no test has such a name");
    Ok(counts.failed > 0 || counts.unexplained > 0)
}
