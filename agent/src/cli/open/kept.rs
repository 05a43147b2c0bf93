//! What earlier sessions left: standing grants, and references to them.

use std::{io::Read as _, path::Path};

use hermitcrab_core::rules::Isolation;

use super::Ground;
use crate::{
    approvals::{Desk, DeskUser, SharedDesk},
    cli::{Trouble, say},
    exit,
    given_file::{self, Pipes},
    ports::UserPort,
    runtime::{Runtime, RuntimeError, TakenIn},
    store::State,
};

/// Longer than any reference is.
const REFERENCE_BYTES_MAX: u64 = 64 << 10;

/// What is kept for the workspace, if it can be trusted; if not, the person is
/// told and it counts as nothing.
pub(super) fn desk(
    ground: &Ground,
    state: Option<State>,
    isolation: Isolation,
) -> Option<SharedDesk> {
    match ground.keeper(state?, isolation) {
        Ok(keeper) => Some(Desk::shared(keeper)),
        Err((message, _)) => {
            say(&message);
            None
        }
    }
}

/// The user, who may answer for good where there is a desk to keep that.
pub(super) fn asked_through(
    desk: Option<&SharedDesk>,
    user: Box<dyn UserPort>,
) -> Box<dyn UserPort> {
    match desk {
        Some(desk) => Box::new(DeskUser::new(desk.clone(), user)),
        None => user,
    }
}

/// Nothing kept counts without being said to.
pub(super) fn tell(taken_in: &TakenIn, desk: &SharedDesk) {
    if !taken_in.adopted.is_empty() {
        let names: Vec<String> = taken_in
            .adopted
            .iter()
            .map(|(id, _)| id.to_string())
            .collect();
        say(&format!(
            "kept from before and counting here: {} (see `hermitcrab caps`)",
            names.join(", ")
        ));
    }
    for (id, why) in &taken_in.refused {
        say(&format!("{id} does not count here: {why}"));
    }
    let desk = desk.borrow();
    let waiting: Vec<String> = desk
        .keeper
        .due()
        .map(|(kept, due)| format!("{} ({due})", kept.standing.id))
        .collect();
    if !waiting.is_empty() {
        say(&format!(
            "waiting to be confirmed with `hermitcrab caps confirm`: {}",
            waiting.join(", ")
        ));
    }
}

/// Takes in what a reference leads to. It is read from a file, never from the
/// command line, where other users could see it.
pub(super) fn redeem(runtime: &mut Runtime, desk: &SharedDesk, file: &Path) -> Result<(), Trouble> {
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin().take(REFERENCE_BYTES_MAX))
    } else {
        given_file::text(file, REFERENCE_BYTES_MAX, Pipes::Read)
    }
    .map_err(|error| {
        (
            format!("cannot read the reference in `{}`: {error}", file.display()),
            exit::USAGE,
        )
    })?;
    let found = {
        let keeper = &desk.borrow().keeper;
        keeper
            .redeem(text.trim())
            .map(|standing| (standing, keeper.here().clone()))
    };
    let ledger = |error: RuntimeError| (error.to_string(), exit::LEDGER);
    match found {
        Ok((standing, here)) => match runtime.adopt(&standing, &here).map_err(ledger)? {
            Ok(_) => Ok(()),
            Err(denial) => Err((denial.to_string(), exit::REFUSED)),
        },
        Err(denial) => {
            runtime
                .note(format!("refused: {} presented at the start", denial.code()))
                .map_err(ledger)?;
            runtime.end_session().map_err(ledger)?;
            Err((
                format!(
                    "{denial} ({}): {}",
                    denial.code(),
                    denial.code().next_step()
                ),
                exit::REFUSED,
            ))
        }
    }
}
