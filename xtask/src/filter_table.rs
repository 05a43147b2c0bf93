//! `cargo xtask filter-table`: the system call filter as a page of the
//! documents, as the program itself prints it; with `--check`, only compared.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use crate::cmd::{self, Passed};

const PAGE: &str = "docs/system-calls.md";

/// What to do.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write nothing: fail if the page is not what the program prints
    #[arg(long)]
    check: bool,
}

/// Writes the page, or compares it.
pub fn run(args: &Args) -> Result<Passed> {
    let mut program = cmd::cargo();
    program.args(["run", "--quiet", "--package", "hermitcrab", "--"]);
    program.args(["doctor", "--system-calls"]);
    let output = program.output().context("cannot start cargo")?;
    ensure!(
        output.status.success(),
        "the program did not print its filter:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let path = cmd::root().join(PAGE);
    if !args.check {
        fs::write(&path, &output.stdout)
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote {PAGE}");
        return Ok(Passed::Yes);
    }
    let page = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    if page == output.stdout {
        println!("{PAGE} is what the program prints");
        Ok(Passed::Yes)
    } else {
        println!("{PAGE} is not what the program prints: run `cargo xtask filter-table`");
        Ok(Passed::No)
    }
}
