//! The gates that read the code without building a program: lints and documents.
//!
//! Why one directory of their own: reading needs what other packages declare and not their
//! code, which a compiler lays down apart from what it builds. In a directory of its own that is
//! made once for all of them, and for models in files, too, whose empty llama.cpp no real build
//! may find.

use anyhow::Result;

use super::beside::behind;
use super::{End, cargo, in_turn, step};
use crate::models::{self, Unbuilt};

const DENY: [&str; 3] = ["--", "-D", "warnings"];

/// What a person builds by themselves is what the second reads. No test and no bench is
/// there only without faults.
pub(super) fn clippy() -> Result<End> {
    let unbuilt = models::unbuilt()?;
    let everything = [
        "--all-targets",
        "--features",
        "bisim/planted-faults,hermitcrab/llama",
    ];
    in_turn([lint(&unbuilt, &everything), lint(&unbuilt, &[])])
}

fn lint(unbuilt: &Unbuilt, more: &[&str]) -> std::process::Command {
    let mut lint = cargo(&["clippy", "--workspace", "--target-dir"]);
    lint.arg(&unbuilt.dir).args(more).args(DENY);
    behind(unbuilt.without_cmake(&mut lint))
}

/// What depends on the architecture is in the sandbox, in what makes worlds, and in what is
/// bound to Python. None needs a compiler of C, so the library of Rust is all that has to be
/// there. What stands above them knows no processor, and reading it would take minutes.
pub(super) fn arm() -> Result<End> {
    const TARGET: &str = "aarch64-unknown-linux-gnu";
    if let Err(missing) = crate::kernels::ensure_library(TARGET) {
        return Ok(End::Skipped(missing.to_string()));
    }
    let mut lint = cargo(&["clippy", "--all-targets"]);
    for package in ["hermitcrab-sandbox", "bisim-world", "hermes-shim"] {
        lint.args(["--package", package]);
    }
    lint.args(["--target", TARGET, "--target-dir"])
        .arg(models::unbuilt()?.dir)
        .args(DENY);
    step(&mut behind(&lint))
}

pub(super) fn docs() -> Result<End> {
    let mut docs = cargo(&["doc", "--workspace", "--no-deps", "--target-dir"]);
    docs.arg(models::unbuilt()?.dir);
    step(&mut behind(docs.env("RUSTDOCFLAGS", "-D warnings")))
}
