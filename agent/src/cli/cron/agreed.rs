//! Whether somebody agreed to where a job works.
//!
//! Whoever writes the list of jobs chooses each one's directory, and a run reads what
//! is in it and reports. So a run reads only where whoever has it run reads anyway,
//! what the configuration opens to every session, or the directory of a job that the
//! person granted something as it is: they were shown where that one works.

use std::path::Path;

use super::{
    super::{Trouble, Where, open, quoted::quoted},
    jobs,
};
use crate::{
    exit,
    runtime::{Job, led_elsewhere, lexical, real, tilde_expanded},
    screen::on_one_line,
    store::State,
};

/// Looks whether a run may work on this ground.
pub(super) fn look(base: &Where, job: &Job, ground: &open::Ground) -> Result<(), Trouble> {
    let named = jobs::text(job, "workdir");
    if named.is_empty() || is_below(base, ground) || is_configured(ground) {
        return Ok(());
    }
    if let Ok(Some(state)) = State::look(&ground.state_dir) {
        let keeper = ground.keeper(state, ground.isolation()?)?;
        if keeper.live().next().is_some() {
            return Ok(());
        }
    }
    let dir = ground.workspace.to_string_lossy();
    let (shown, word) = (on_one_line(&dir), on_one_line(&quoted(&dir)));
    let id = on_one_line(&quoted(jobs::text(job, "id")));
    let message = format!(
        "nobody agreed to the job working in `{shown}`, and so it is not run; `hermitcrab cron grant {id} \
         fs.read={word}` agrees to this job as it is, `hermitcrab config add-directory {word}` to every \
         session reading there"
    );
    Err((message, exit::REFUSED))
}

/// It lies where whoever has the jobs run works, if that is a place to work in.
fn is_below(base: &Where, ground: &open::Ground) -> bool {
    open::ground(base).is_ok_and(|base| ground.workspace.starts_with(&base.workspace))
}

/// It lies where every session reads, wherever that works.
fn is_configured(ground: &open::Ground) -> bool {
    let nowhere = Path::new("");
    let configured = ground.admin.grants(nowhere);
    configured
        .chain(ground.config.grants(nowhere))
        .filter(|words| matches!(words.verb.as_str(), "fs.read" | "fs.*"))
        .filter_map(|words| lexical(&tilde_expanded(&words.on, &ground.places.home)))
        .filter(|place| led_elsewhere(place, &ground.places.home).is_none())
        .any(|place| ground.workspace.starts_with(real(&place)))
}
