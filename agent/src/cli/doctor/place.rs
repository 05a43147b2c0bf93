//! Whether commands work where they are to work.
//!
//! What isolates them is tried out in an empty directory of its own. The workspace may lie
//! on another file system: one without overlays, one that does not answer, one nobody may
//! write, one that holds no files at all. So one command that makes a directory and removes
//! it is run on a copy of the workspace itself, as a session would run it. Nothing of it is
//! kept, in the workspace or in the ledger.
//! Without a ledger nothing runs, so the state directory is looked at, too.

use std::{path::Path, time::Duration};

use hermitcrab_core::rules::Isolation;
use rustix::fs::{Access, AtFlags, CWD, FsWord, StatVfsMountFlags};

use crate::{
    cli::{exec, open, say, seen, tell},
    exit,
    runtime::{CommandInput, Fate, TypedCommand},
};

/// How long a command that does next to nothing may take.
const WITHIN: Duration = Duration::from_secs(30);
/// What that command is.
const TRIAL: &str = "ls > /dev/null || exit; \
                     made=$(mktemp -d ./.hermitcrab-probe-XXXXXXXX) && rmdir -- \"$made\" || exit 99";
/// Its status where it could list the names and make none.
const MAKES_NOTHING: u8 = 99;
/// File systems whose names are switches and reports of the kernel's, by what `statfs`
/// says of them (linux/magic.h): what is written there is no file.
const NO_FILES: [FsWord; 13] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x1cd1,      // devpts
    0x1980_0202, // mqueue
    0x4249_4e4d, // binfmt_misc
    0x6265_6570, // configfs
    0x6165_676c, // pstore
    0xcafe_4a11, // bpf
];

/// What commands can do in the workspace.
enum Works {
    /// Read and, on their copy, write.
    Whole,
    /// Read; and why nothing else, where that is known.
    ReadsOnly(Option<String>),
}

/// Says whether commands work in the workspace, and whether what they change can be kept.
pub(super) fn tried(ground: &open::Ground, isolation: Isolation) -> Result<(), u8> {
    let place = crate::screen::visible(&ground.workspace.display().to_string());
    let against = unwritable(&ground.workspace);
    match works(ground, isolation) {
        Ok(Works::Whole) => {
            let kept = against.map_or_else(String::new, |why| {
                format!("; {why}, so what they write there cannot be kept")
            });
            tell(&format!("workspace: commands work in `{place}`{kept}"));
            Ok(())
        }
        Ok(Works::ReadsOnly(strange)) => {
            let why = strange
                .or_else(|| against.map(str::to_owned))
                .unwrap_or_else(|| "nothing can be made there, not even on their copy".to_owned());
            tell(&format!(
                "workspace: commands can look at `{place}` and change nothing in it: {why}"
            ));
            Ok(())
        }
        Err(why) => {
            say(&format!("commands do not work in `{place}`: {why}"));
            Err(exit::ENVIRONMENT)
        }
    }
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
    let kind = rustix::fs::statfs(dir).ok()?.f_type;
    if NO_FILES.contains(&kind) {
        return Some("it is the kernel's own and takes no files");
    }
    let disk = rustix::fs::statvfs(dir).ok()?;
    if disk.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Some("its file system is read-only");
    }
    if rustix::fs::accessat(CWD, dir, Access::WRITE_OK, AtFlags::EACCESS).is_err() {
        return Some("you may not write there");
    }
    (disk.f_blocks > 0 && disk.f_bavail == 0).then_some("its disk is full")
}

fn works(ground: &open::Ground, isolation: Isolation) -> Result<Works, String> {
    let mut runtime = open::to_try(ground, isolation).map_err(|(why, _)| why)?;
    let agent = runtime.first_agent();
    let report = runtime.run_typed(
        agent,
        &TypedCommand {
            command: TRIAL,
            timeout: Some(WITHIN),
            given: CommandInput::Nothing,
            apart: false,
        },
    );
    let run = report.came?;
    match (report.fate, exec::status(run.ending)) {
        (Fate::Ran, 0) => Ok(Works::Whole),
        (Fate::Ran, MAKES_NOTHING) => Ok(Works::ReadsOnly(run.reasons.strange)),
        (Fate::Ran, status) => Err(format!("`ls` ended with status {status} there")),
        (fate, _) => Err(seen::fate(&fate)),
    }
}
