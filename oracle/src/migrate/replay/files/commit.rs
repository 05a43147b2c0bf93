//! A workspace as it was when a session began: the last commit before that.
//!
//! Git is only asked for objects by name. Nothing of the repository's own
//! configuration that would run a program is in what is asked, nothing is
//! fetched, and nothing is written.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use bisim_world::protocol::FileSpec;

use super::{BYTES_MAX, FILE_BYTES_MAX, FILES_MAX, LEFT_OUT, Workspace, spec};

/// The last commit before a time, in seconds since 1970; `None` without one.
pub(super) fn before(root: &Path, started: f64) -> Option<String> {
    // Times are positive and far from the end of what fits.
    let seconds = started as u64;
    let asked = format!("--before=@{seconds}");
    let out = git(root, &["rev-list", "-1", &asked, "HEAD"])?;
    let name = String::from_utf8(out).ok()?.trim().to_owned();
    let is_name = name.len() >= 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    (seconds > 0 && is_name).then_some(name)
}

/// The files of a commit below the directory.
pub(super) fn files(root: &Path, commit: &str) -> Option<Workspace> {
    let listed = git(root, &["ls-tree", "-r", "-z", "-l", commit])?;
    let mut workspace = Workspace {
        name: commit.to_owned(),
        ..Workspace::default()
    };
    let (mut bytes, mut wanted) = (0_u64, Vec::new());
    for line in listed
        .split(|byte| *byte == 0)
        .filter(|line| !line.is_empty())
    {
        let Some(entry) = std::str::from_utf8(line).ok().and_then(entry) else {
            workspace.cut = true;
            continue;
        };
        let left_out = entry.path.split('/').any(|part| LEFT_OUT.contains(&part));
        let fits = !left_out
            && entry.size <= FILE_BYTES_MAX
            && bytes.saturating_add(entry.size) <= BYTES_MAX
            && wanted.len() < FILES_MAX;
        if fits {
            bytes += entry.size;
            wanted.push(entry);
        } else {
            workspace.cut = true;
        }
    }
    let contents = contents(root, &wanted)?;
    workspace.files = wanted
        .iter()
        .zip(contents)
        .map(|(entry, content)| FileSpec {
            mode: entry.runs.then_some(0o755),
            ..spec(entry.path, content)
        })
        .collect();
    Some(workspace)
}

struct Entry<'l> {
    path: &'l str,
    object: &'l str,
    size: u64,
    runs: bool,
}

/// `mode kind object size<TAB>path`, if it is a file.
fn entry(line: &str) -> Option<Entry<'_>> {
    let (about, path) = line.split_once('\t')?;
    let mut words = about.split_ascii_whitespace();
    let (mode, kind, object, size) = (words.next()?, words.next()?, words.next()?, words.next()?);
    (kind == "blob" && mode.starts_with("100")).then_some(())?;
    Some(Entry {
        path,
        object,
        size: size.parse().ok()?,
        runs: mode == "100755",
    })
}

/// The contents of objects, in order.
fn contents(root: &Path, wanted: &[Entry<'_>]) -> Option<Vec<Vec<u8>>> {
    let mut child = command(root, &["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .spawn()
        .ok()?;
    let names: String = wanted
        .iter()
        .flat_map(|entry| [entry.object, "\n"])
        .collect();
    // A few hundred names fit into a pipe, so this does not wait for the answers.
    let mut stdin = child.stdin.take()?;
    stdin.write_all(names.as_bytes()).ok()?;
    drop(stdin);
    let out = child.wait_with_output().ok()?.stdout;
    let mut rest = out.as_slice();
    wanted
        .iter()
        .map(|entry| {
            let line = rest.iter().position(|byte| *byte == b'\n')?;
            let size = usize::try_from(entry.size).ok()?;
            let content = rest.get(line + 1..)?.get(..size)?.to_vec();
            rest = rest.get(line + 1 + size + 1..)?;
            Some(content)
        })
        .collect()
}

fn git(root: &Path, words: &[&str]) -> Option<Vec<u8>> {
    let out = command(root, words).stdin(Stdio::null()).output().ok()?;
    out.status.success().then_some(out.stdout)
}

fn command(root: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args(["--no-pager", "--no-optional-locks", "--no-replace-objects"])
        .args([
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.hooksPath=/dev/null",
        ])
        .args(words)
        .current_dir(root)
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::super::{Workspace, Workspaces};
    use crate::migrate::history::Session;
    use bisim_world::protocol::FileKind;

    fn git(root: &Path, at: u64, words: &[&str]) -> bool {
        Command::new("git")
            .args(["-c", "user.name=u", "-c", "user.email=u@example.com"])
            .args(words)
            .current_dir(root)
            .env("GIT_AUTHOR_DATE", format!("@{at} +0000"))
            .env("GIT_COMMITTER_DATE", format!("@{at} +0000"))
            .output()
            .is_ok_and(|out| out.status.success())
    }

    fn text(workspace: &Workspace, name: &str) -> Option<String> {
        workspace.files.iter().find_map(|file| match &file.kind {
            FileKind::Text(text) if file.path.ends_with(name) => Some(text.clone()),
            _ => None,
        })
    }

    #[test]
    fn a_session_gets_the_commit_before_it_and_else_what_is_there_now() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        if !git(&root, 0, &["init", "-q"]) {
            println!("SKIPPED: no git on the path");
            return;
        }
        for (at, words) in [(1_000_000_000, "old\n"), (1_100_000_000, "new\n")] {
            std::fs::create_dir_all(root.join("src")).unwrap();
            std::fs::write(root.join("src/a.txt"), words).unwrap();
            std::fs::write(root.join("b.bin"), [0xff_u8, 0, b'\n']).unwrap();
            assert!(git(&root, at, &["add", "-A"]));
            assert!(git(&root, at, &["commit", "-q", "-m", "x"]));
        }
        std::fs::write(root.join("src/a.txt"), "not committed\n").unwrap();
        let mut workspaces = Workspaces::new(Some(&root));
        let mut seen = |cwd: Option<&str>, started: f64| {
            let session = Session {
                cwd: cwd.map(str::to_owned),
                started,
                ..Session::default()
            };
            text(&workspaces.of(&session), "src/a.txt")
        };
        let here = root.to_str().unwrap().to_owned();
        assert_eq!(seen(Some(&here), 1_050_000_000.0).as_deref(), Some("old\n"));
        assert_eq!(seen(None, 1_200_000_000.0).as_deref(), Some("new\n"));
        // Before the first commit, or without a time: what is there.
        assert_eq!(
            seen(None, 900_000_000.0).as_deref(),
            Some("not committed\n")
        );
        assert_eq!(seen(None, 0.0).as_deref(), Some("not committed\n"));
        // Somewhere else: nothing of it.
        assert_eq!(seen(Some("/elsewhere"), 1_200_000_000.0), None);
        assert_eq!(
            workspaces.used.get("the last commit before the session"),
            Some(&2)
        );
    }
}
