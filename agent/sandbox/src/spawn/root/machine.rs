//! The machine's root in place of a private one, for the tests that leave that out.
//!
//! What for: to see which of the other mechanisms hold a command that sees the whole
//! machine. A spawner that leaves nothing out never comes here.
//!
//! Everything is there as the machine has it, to be written and with its devices; but what
//! a command has for itself lies over it: its directories for temporary files, what it
//! exchanges with the agent, its processes and its views.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::mount::mount_bind_recursive;

use super::places::{NEW, OLD};
use crate::step::{AtStep, Step, StepError};

/// Below these something of the command's own lies, which is left out here.
const SHARED: [(&str, &[&str]); 3] = [
    ("", &["proc", "run", "tmp", "var"]),
    ("run", &["hermitcrab"]),
    ("var", &["tmp"]),
];

/// Shows it in the template.
pub(super) fn show() -> Result<(), StepError> {
    for (dir, own) in SHARED {
        let to = Path::new(NEW).join(dir);
        fs::create_dir_all(&to).at(Step::PrivateRoot, dir)?;
        for entry in fs::read_dir(Path::new(OLD).join(dir)).at(Step::PrivateRoot, dir)? {
            let entry = entry.at(Step::PrivateRoot, dir)?;
            if !own.iter().any(|own| entry.file_name() == *own) {
                let on = || entry.path().display().to_string();
                show_one(&entry, &to.join(entry.file_name())).at(Step::PrivateRoot, on())?;
            }
        }
    }
    Ok(())
}

fn show_one(entry: &fs::DirEntry, target: &Path) -> std::io::Result<()> {
    let kind = entry.file_type()?;
    if kind.is_symlink() {
        return symlink(fs::read_link(entry.path())?, target);
    }
    if kind.is_dir() {
        fs::create_dir(target)?;
    } else {
        fs::write(target, b"")?;
    }
    mount_bind_recursive(entry.path(), target).map_err(Into::into)
}
