//! The project's history, made by git itself so that it is a real repository.
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::{AtStage, WorldError};

/// Makes `/home/u/proj` a repository with eight commits, a tag, a bare origin,
/// an uncommitted change, an empty directory and an untracked file.
pub(super) fn build(root: &Path) -> Result<(), WorldError> {
    let project = root.join("home/u/proj");
    let git = |arguments: &[&str]| run(&project, arguments);
    git(&["init", "-q", "-b", "main"])?;
    // Sample hooks and descriptions depend on the git installation.
    for path in [".git/hooks", ".git/description", ".git/info/exclude"] {
        let place = project.join(path);
        let removed = if place.is_dir() {
            fs::remove_dir_all(&place)
        } else {
            fs::remove_file(&place)
        };
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(WorldError::new("make repository", error));
            }
            _ => {}
        }
    }
    fs::create_dir_all(project.join(".git/hooks")).at("make repository")?;
    let write = |path: &str, text: &str| fs::write(project.join(path), text).at("make repository");
    write(".gitignore", "build/\n*.log\n")?;
    git(&["add", "-A"])?;
    git(&["commit", "-qm", "start"])?;
    for number in 1..=6 {
        write(
            &format!("docs/note{number}.md"),
            &format!("note {number}\n"),
        )?;
        git(&["add", "-A"])?;
        git(&["commit", "-qm", &format!("note {number}")])?;
    }
    git(&["tag", "v1"])?;
    git(&["branch", "feature"])?;
    write("docs/note7.md", "note 7\n")?;
    git(&["add", "-A"])?;
    git(&["commit", "-qm", "note 7"])?;
    git(&["clone", "-q", "--bare", "/home/u/proj", "/srv/git/proj.git"])?;
    git(&["remote", "add", "origin", "/srv/git/proj.git"])?;
    write("file1", "v1\nuncommitted\n")?;
    write("untracked.txt", "untracked work\n")?;
    fs::create_dir_all(project.join("empty")).at("make repository")
}

fn run(project: &Path, arguments: &[&str]) -> Result<(), WorldError> {
    let stage = format!("git {}", arguments.join(" "));
    let output = Command::new("git")
        .args(arguments)
        .current_dir(project)
        .env_clear()
        .envs(crate::environment::ENVIRONMENT)
        .envs([
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"),
            ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"),
        ])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| WorldError::new(&stage, format!("{error}; worlds need git in /usr")))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(WorldError::new(
            stage,
            String::from_utf8_lossy(&output.stderr).trim(),
        ))
    }
}
