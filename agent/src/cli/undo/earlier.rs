//! What earlier versions kept of what editors' sessions and jobs did: each in a journal of
//! its own, of which sessions that came later know nothing.

use std::path::Path;

use hermitcrab_sandbox::{Journal, journal::Kept};

use super::{describe, is_here, listed};
use crate::{
    audit::beside::{self, Place, Whose},
    cli::as_json::print_json,
    cli::{Trouble, open::Ground, say},
    exit,
    runtime::{Runtime, RuntimeError},
    screen::on_one_line,
};

/// Shows what of it can be taken back here, or everywhere, and how.
pub(super) fn show(
    runtime: &Runtime,
    ground: &Ground,
    everywhere: bool,
    json: bool,
) -> Result<(), Trouble> {
    let unknown = |why: &dyn std::fmt::Display| (why.to_string(), exit::ENVIRONMENT);
    let places = beside::every(&ground.state_dir).map_err(|(above, error)| {
        unknown(&format_args!(
            "cannot tell what is kept in `{}`: {error}",
            above.display()
        ))
    })?;
    let is_apart = |place: &Place| match place.whose {
        Whose::Own => false,
        Whose::Editor | Whose::Job => Journal::is_at(&place.dir),
    };
    for place in places.into_iter().filter(is_apart) {
        match kept(&place.dir) {
            Ok(mut commits) => {
                commits.retain(|commit| everywhere || is_here(runtime, ground, commit));
                match json {
                    true => commits.iter().rev().for_each(|commit| {
                        print_json(&listed::commit(commit, Some(&place.dir)));
                    }),
                    false => tell(&place, &commits),
                }
            }
            // The others are there all the same.
            Err(why) => say(&why),
        }
    }
    Ok(())
}

fn kept(dir: &Path) -> Result<Vec<Kept>, String> {
    let (journal, _) = Journal::open(dir).map_err(|error| RuntimeError::from(error).to_string())?;
    journal.list().map_err(|error| error.to_string())
}

fn tell(place: &Place, commits: &[Kept]) {
    if commits.is_empty() {
        return;
    }
    crate::cli::tell(&format!(
        "kept by an earlier version in {}; `hermitcrab undo ID --state-dir {}` takes one of these back:",
        place.name,
        on_one_line(&place.dir.display().to_string())
    ));
    for commit in commits.iter().rev() {
        describe(commit);
    }
}
