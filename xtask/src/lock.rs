//! `cargo xtask lock`: the hash-pinned closure of one version of Hermes or of
//! AgentDojo.
//!
//! Either is installed from such a file only, so that a run next year compares
//! with the same code as a run today. The file never names an index, so that
//! mirrors can be used.

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
    #[arg(
        long,
        required_unless_present = "agentdojo",
        conflicts_with = "agentdojo"
    )]
    hermes: Option<String>,
    /// The version of agentdojo instead.
    #[arg(long)]
    agentdojo: Option<String>,
    /// The `uv` program that resolves.
    #[arg(long, default_value = "uv")]
    uv: PathBuf,
}

/// What is locked.
struct Locked {
    package: &'static str,
    /// What the resolver is asked for: the package, with its extras.
    wanted: &'static str,
    flag: &'static str,
    dir: &'static str,
}

// The extras are what Hermes speaks to editors and to servers of tools with; its edit gate
// and its calls of such servers are compared, too.
const HERMES: Locked = Locked {
    package: "hermes-agent",
    wanted: "hermes-agent[acp,mcp]",
    flag: "hermes",
    dir: "shim/hermes",
};
const AGENTDOJO: Locked = Locked {
    package: "agentdojo",
    wanted: "agentdojo",
    flag: "agentdojo",
    dir: "xtask/agentdojo",
};

/// Resolve, strip what does not vary, write the lock file of one version.
pub fn run(args: &Args) -> Result<Passed> {
    let (of, version) = match (&args.hermes, &args.agentdojo) {
        (Some(version), _) => (HERMES, version),
        (None, Some(version)) => (AGENTDOJO, version),
        (None, None) => anyhow::bail!("nothing is to be locked"),
    };
    ensure!(
        version.split('.').all(|part| part.parse::<u32>().is_ok()),
        "`{version}` is not a version such as 0.19.0"
    );
    let dir = tempfile::tempdir().context("cannot make a temporary directory")?;
    let wanted = dir.path().join("wanted.txt");
    let resolved = dir.path().join("resolved.txt");
    fs::write(&wanted, format!("{}=={version} ; {MARKER}\n", of.wanted))
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
        .join(of.dir)
        .join(format!("{}-{version}.lock", of.package));
    fs::write(&path, lock_text(&of, version, &text))
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(Passed::Yes)
}

/// The resolver's answer with our header and without the marker every line shares.
fn lock_text(of: &Locked, version: &str, resolved: &str) -> String {
    let (package, flag) = (of.package, of.flag);
    let mut text = format!(
        "# {package} {version} and its whole dependency closure, every file pinned by digest.\n\
         # For CPython 3.11 to 3.13 on Linux; wheels only, nothing is built on the user's machine.\n\
         # Made by `cargo xtask lock --{flag} {version}`; never edited by hand.\n"
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
        let text = lock_text(&HERMES, "0.19.0", resolved);
        assert!(
            text.ends_with("\na==1 \\\n    --hash=sha256:00\n"),
            "{text}"
        );
    }

    #[test]
    fn every_pin_of_every_lock_file_has_a_digest() {
        let mut seen = 0;
        let entries = [HERMES, AGENTDOJO]
            .into_iter()
            .flat_map(|of| fs::read_dir(cmd::root().join(of.dir)).unwrap());
        for entry in entries {
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
