//! Which source a verdict is of.
//!
//! Versions change with releases and the vectors with cases; what is judged changes with each
//! commit. Parts of one run that were made of different ones are not one run.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

/// How long git may take for an answer: nobody who stops a run waits for it, and what is not
/// known in that time is not said.
const GIT_MAX: Duration = Duration::from_secs(4);
/// Letters of a digest that tell one set of changes from another.
const LETTERS: usize = 12;

/// The commit of the checkout this program was built in, and behind a `+` a digest of what was
/// changed there since; empty where that cannot be told, as for a source that git does not keep.
#[must_use]
pub fn built_from() -> String {
    of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap_or_default()
}

fn of(root: &Path) -> Option<String> {
    // A source that was unpacked somewhere in another repository is not of that.
    let top = git(root, &["rev-parse", "--show-toplevel"])?;
    let top = PathBuf::from(String::from_utf8(top).ok()?.trim_end());
    if top.canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let head = git(root, &["rev-parse", "--verify", "HEAD"])?;
    let head = String::from_utf8(head).ok()?.trim_end().to_owned();
    let changed = git(
        root,
        &["diff", "--no-ext-diff", "--no-textconv", "--binary", "HEAD"],
    )?;
    if changed.is_empty() {
        return Some(head);
    }
    let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(&changed));
    Some(format!("{head}+{}", digest.get(..LETTERS)?))
}

fn git(root: &Path, words: &[&str]) -> Option<Vec<u8>> {
    let mut git = Command::new("git")
        .args([
            "--no-pager",
            "--no-optional-locks",
            "-c",
            "core.fsmonitor=false",
        ])
        .args(words)
        // A hook of another repository that runs this says which one that is.
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let (tell, told) = mpsc::channel();
    let mut out = git.stdout.take()?;
    std::thread::spawn(move || {
        let mut all = Vec::new();
        // Whoever asked may have gone on by now.
        let _told = tell.send(out.read_to_end(&mut all).map(|_| all));
    });
    let all = told.recv_timeout(GIT_MAX).ok().and_then(Result::ok);
    if all.is_none() {
        // It may have ended by itself just now.
        let _killed = git.kill();
    }
    let status = git.wait().ok()?;
    all.filter(|_| status.success())
}

/// What speaks against putting these together; where one of them does not say it, nothing does.
#[must_use]
pub fn differ(one: &str, other: &str) -> bool {
    !one.is_empty() && !other.is_empty() && one != other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_and_what_was_changed_since_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let run = |words: &[&str]| {
            let who = ["-c", "user.name=u", "-c", "user.email=u@example.com"];
            let done = Command::new("git")
                .args(who)
                .args(words)
                .current_dir(dir.path())
                .output()
                .unwrap();
            assert!(done.status.success(), "{done:?}");
        };
        assert_eq!(of(dir.path()), None);
        run(&["init", "--quiet"]);
        assert_eq!(of(dir.path()), None);
        let file = dir.path().join("a");
        std::fs::write(&file, "one\n").unwrap();
        run(&["add", "a"]);
        run(&["commit", "--quiet", "-m", "a"]);
        let clean = of(dir.path()).unwrap();
        assert!(clean.len() >= 40 && !clean.contains('+'), "{clean}");
        // What git does not keep, such as a report, changes nothing.
        std::fs::write(dir.path().join("report"), "x").unwrap();
        assert_eq!(of(dir.path()).unwrap(), clean);
        let mut seen = vec![clean.clone()];
        for text in ["two\n", "three\n"] {
            std::fs::write(&file, text).unwrap();
            let changed = of(dir.path()).unwrap();
            assert!(changed.starts_with(&format!("{clean}+")), "{changed}");
            assert!(!seen.contains(&changed), "{seen:?}");
            seen.push(changed);
        }
        let within = dir.path().join("unpacked");
        std::fs::create_dir(&within).unwrap();
        assert_eq!(of(&within), None);
    }
}
