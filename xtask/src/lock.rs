//! `cargo xtask lock`: the hash-pinned closure of one Hermes version.
//!
//! The oracle installs Hermes from such a file only, so that a run next year
//! compares with the same code as a run today. The file never names an index,
//! so that mirrors can be used.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::cmd::{self, Passed};

/// Where a lock file is wanted to work; also the marker it is resolved under.
const MARKER: &str = "sys_platform == 'linux' and platform_python_implementation == 'CPython' \
                      and python_full_version < '3.14'";

/// Arguments of `cargo xtask lock`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The version of hermes-agent.
    #[arg(long)]
    hermes: String,
    /// The `uv` program that resolves.
    #[arg(long, default_value = "uv")]
    uv: PathBuf,
}

/// Resolve, strip what does not vary, write `shim/hermes/hermes-agent-<version>.lock`.
pub fn run(args: &Args) -> Result<Passed> {
    let version = &args.hermes;
    ensure!(
        version.split('.').all(|part| part.parse::<u32>().is_ok()),
        "`{version}` is not a version such as 0.19.0"
    );
    let dir = tempfile::tempdir().context("cannot make a temporary directory")?;
    let wanted = dir.path().join("wanted.txt");
    let resolved = dir.path().join("resolved.txt");
    // The extra is what Hermes speaks to editors with; its edit gate is compared too.
    fs::write(
        &wanted,
        format!("hermes-agent[acp]=={version} ; {MARKER}\n"),
    )
    .with_context(|| format!("cannot write {}", wanted.display()))?;

    let mut uv = Command::new(&args.uv);
    uv.args([
        "pip",
        "compile",
        "--quiet",
        "--universal",
        "--generate-hashes",
    ])
    .args(["--python-version", "3.11", "--no-build"])
    .args(["--no-emit-index-url", "--no-emit-find-links"])
    .args(["--no-header", "--no-annotate", "--output-file"])
    .args([&resolved, &wanted]);
    cmd::output(&mut uv)?;

    let text = fs::read_to_string(&resolved)
        .with_context(|| format!("cannot read {}", resolved.display()))?;
    let path = cmd::root()
        .join("shim/hermes")
        .join(format!("hermes-agent-{version}.lock"));
    fs::write(&path, lock_text(version, &text))
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(Passed::Yes)
}

/// The resolver's answer with our header and without the marker every line shares.
fn lock_text(version: &str, resolved: &str) -> String {
    let mut text = format!(
        "# hermes-agent {version} and its whole dependency closure, every file pinned by digest.\n\
         # For CPython 3.11 to 3.13 on Linux; wheels only, nothing is built on the user's machine.\n\
         # Made by `cargo xtask lock --hermes {version}`; never edited by hand.\n"
    );
    for line in resolved.lines() {
        match line.split_once(" ; ") {
            Some((pin, _)) => {
                text.push_str(pin);
                text.push_str(" \\");
            }
            None => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_stripped_and_digests_kept() {
        let resolved = "a==1 ; python_full_version < '3.14' \\\n    --hash=sha256:00\n";
        let text = lock_text("0.19.0", resolved);
        assert!(
            text.ends_with("\na==1 \\\n    --hash=sha256:00\n"),
            "{text}"
        );
    }

    #[test]
    fn every_pin_of_every_lock_file_has_a_digest() {
        let dir = cmd::root().join("shim/hermes");
        let mut seen = 0;
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "lock") {
                continue;
            }
            seen += 1;
            let text = fs::read_to_string(&path).unwrap();
            assert!(!text.contains("://"), "{} names an address", path.display());
            let mut lines = text.lines().filter(|l| !l.starts_with('#')).peekable();
            while let Some(line) = lines.next() {
                if line.starts_with(' ') {
                    assert!(line.trim_start().starts_with("--hash=sha256:"), "{line}");
                    continue;
                }
                assert!(line.contains("=="), "{line}");
                assert!(line.ends_with(" \\"), "{line}");
                let next = lines.peek().copied().unwrap_or("");
                assert!(next.trim_start().starts_with("--hash=sha256:"), "{line}");
            }
        }
        assert!(seen > 0, "no lock file");
    }
}
