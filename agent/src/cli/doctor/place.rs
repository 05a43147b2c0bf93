//! Whether commands work where they are to work.
//!
//! What isolates them is tried out in an empty directory of its own. The workspace may lie
//! on another file system: one without overlays, one that does not answer, one nobody may
//! write. So one command that does nothing is run on a copy of the workspace itself, as a
//! session would run it. Nothing of it is kept, in the workspace or in the ledger.
//! Without a ledger nothing runs, so the state directory is looked at, too.

use std::{path::Path, time::Duration};

use hermitcrab_core::rules::Isolation;
use rustix::fs::{Access, AtFlags, CWD, StatVfsMountFlags};

use crate::{
    cli::{exec, open, say},
    exit,
    runtime::{Fate, TypedCommand},
};

/// How long a command that does nothing may take.
const WITHIN: Duration = Duration::from_secs(30);

/// Says whether commands work in the workspace, and whether what they change can be kept.
pub(super) fn tried(ground: &open::Ground, isolation: Isolation) -> Result<(), u8> {
    let place = crate::screen::visible(&ground.workspace.display().to_string());
    if let Err(why) = works(ground, isolation) {
        say(&format!("commands do not work in `{place}`: {why}"));
        return Err(exit::ENVIRONMENT);
    }
    println!(
        "workspace: commands work in `{place}`{}",
        kept(&ground.workspace)
    );
    Ok(())
}

/// Whether records can be written. Where they cannot, no session begins.
pub(super) fn records(state_dir: &Path) -> Result<(), u8> {
    // What is not there yet is made in the directory above it.
    let there = state_dir.ancestors().find(|dir| dir.exists());
    let why = match there.and_then(unwritable) {
        Some(why) => why,
        None => return Ok(()),
    };
    let dir = crate::screen::visible(&state_dir.display().to_string());
    say(&format!(
        "nothing can be recorded in `{dir}`, so nothing runs: {why}; `--state-dir DIR` names another"
    ));
    Err(exit::ENVIRONMENT)
}

/// Why nothing can be written below a directory, if that can be seen without trying.
fn unwritable(dir: &Path) -> Option<&'static str> {
    let disk = rustix::fs::statvfs(dir).ok()?;
    if disk.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Some("its file system is read-only");
    }
    if rustix::fs::accessat(CWD, dir, Access::WRITE_OK, AtFlags::EACCESS).is_err() {
        return Some("you may not write there");
    }
    (disk.f_blocks > 0 && disk.f_bavail == 0).then_some("its disk is full")
}

fn works(ground: &open::Ground, isolation: Isolation) -> Result<(), String> {
    let mut runtime = open::to_try(ground, isolation).map_err(|(why, _)| why)?;
    let agent = runtime.first_agent();
    let report = runtime.run_typed(
        agent,
        &TypedCommand {
            command: "true",
            timeout: Some(WITHIN),
            reads: None,
            apart: false,
        },
    );
    let run = report.came?;
    match (report.fate, exec::status(run.ending)) {
        (Fate::Ran, 0) => Ok(()),
        (Fate::Ran, status) => Err(format!("`true` ended with status {status} there")),
        (fate, _) => Err(crate::cli::chat::fate(&fate)),
    }
}

/// What stands against keeping what a command changed, if anything does.
fn kept(workspace: &Path) -> String {
    unwritable(workspace).map_or_else(String::new, |why| {
        format!("; {why}, so what they write there cannot be kept")
    })
}
