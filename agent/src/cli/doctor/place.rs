//! Whether commands work where they are to work.
//!
//! What isolates them is tried out in an empty directory of its own. The workspace may lie
//! on another file system: one without overlays, one that does not answer, one nobody may
//! write. So one command that does nothing is run on a copy of the workspace itself, as a
//! session would run it. Nothing of it is kept, in the workspace or in the ledger.

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
fn kept(workspace: &Path) -> &'static str {
    let is_read_only = rustix::fs::statvfs(workspace)
        .is_ok_and(|disk| disk.f_flag.contains(StatVfsMountFlags::RDONLY));
    if is_read_only {
        return "; its file system is read-only, so nothing they change can be kept";
    }
    match rustix::fs::accessat(CWD, workspace, Access::WRITE_OK, AtFlags::EACCESS) {
        Ok(()) => "",
        Err(_) => "; you may not write there, so nothing they make can be kept",
    }
}
