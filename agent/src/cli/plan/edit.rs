//! A plan in its user's editor, before they approve it.
//!
//! What comes back is read and checked like any plan, shown, and asked about
//! once more. The editor is the user's own program, started at their word and at
//! their terminal; it is not the agent's and is not confined.

use std::{
    fs::{self, File},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    process::Command,
    sync::Arc,
};

use hermitcrab_core::plan::{Plan, check};

use super::{
    person::{About, Person},
    wrong::wrong,
};
use crate::{
    ambient,
    cli::{Trouble, say},
    exit,
    given_file::{self, Pipes},
    planner::{draft, write},
};

/// The plan as its user leaves it; the same one if they change nothing.
pub(super) fn edited(plan: Plan, dir: &Path, person: &mut Person) -> Result<Plan, Trouble> {
    let failed = |error: std::io::Error| {
        (
            format!("the plan cannot be edited: {error}; nothing was done"),
            exit::ENVIRONMENT,
        )
    };
    let number = ambient::session_number().map_err(failed)?;
    let file = dir.join(format!("plan-{number:016x}.json"));
    let text = serde_json::to_string_pretty(&write::plan(&plan)).unwrap_or_default();
    fs::create_dir_all(dir).map_err(failed)?;
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&file)
        .and_then(|mut file| writeln!(file, "{text}"))
        .map_err(failed)?;
    let result = until_it_is_one(&plan, &file, person);
    // A file that stays holds nothing but the plan.
    let _ = fs::remove_file(&file);
    result.map_err(failed).map(|edited| edited.unwrap_or(plan))
}

/// Lets it be edited until it is a plan or its user gives up.
fn until_it_is_one(plan: &Plan, file: &Path, person: &mut Person) -> std::io::Result<Option<Plan>> {
    loop {
        let mut words = ambient::editor().into_iter();
        let Some(program) = words.next() else {
            return Ok(None);
        };
        let terminal = || File::options().read(true).write(true).open("/dev/tty");
        let status = Command::new(&program)
            .args(words)
            .arg(file)
            .stdin(terminal()?)
            .stdout(terminal()?)
            .status()?;
        if !status.success() {
            say(&format!(
                "`{program}` ended with {status}; the plan is as it was"
            ));
            return Ok(None);
        }
        let limit = u64::try_from(draft::DRAFT_BYTES_MAX + 1).unwrap_or(u64::MAX);
        let text = given_file::beginning(file, limit, Pipes::Refused)?;
        let toolbox = Arc::new(plan.toolbox().clone());
        match draft::read(&text).and_then(|draft| check(draft, Arc::clone(&toolbox), plan.rules()))
        {
            Ok(edited) => return Ok(Some(edited)),
            Err(errors) => {
                say(&wrong(&errors, &text, &toolbox));
                let again = person.line(About::Plan, "edit it again? y, n [n]: ");
                if again.as_deref() != Some("y") {
                    return Ok(None);
                }
            }
        }
    }
}
