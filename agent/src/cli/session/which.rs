//! Which of the sessions that run is meant.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::trouble;
use crate::{
    ambient,
    audit::beside,
    cli::Trouble,
    control::{Connection, ControlError, Listing, Reply, Request},
    exit,
    screen::visible,
};

/// How long a session may take to say what it is: one that is stopped never does.
const PATIENCE: Duration = Duration::from_secs(5);

/// A session that runs and answers.
#[derive(Debug)]
pub struct Running {
    /// The conversation with it.
    pub to: Connection,
    /// What it was when it was found.
    pub listing: Listing,
}

impl Running {
    /// What tells it from others where nothing else does: an editor's, or where it runs.
    pub fn whose(&self) -> String {
        if self.listing.is_an_editors {
            return " (an editor's)".to_owned();
        }
        let Some(process) = self.to.process() else {
            return " (its process is not seen from here)".to_owned();
        };
        match ambient::terminal_of(process) {
            Some(terminal) => format!(" (process {process} on {terminal})"),
            None => format!(" (process {process})"),
        }
    }
}

/// How somebody says which one is meant.
#[derive(Debug)]
pub struct Meant<'a> {
    /// The beginning of its number.
    pub number: Option<&'a str>,
    /// A directory it works in.
    pub workspace: Option<PathBuf>,
}

impl Meant<'_> {
    /// Whether anything was said of it.
    pub const fn is_said(&self) -> bool {
        self.number.is_some() || self.workspace.is_some()
    }

    fn is(&self, listing: &Listing) -> bool {
        let numbered = |number: &str| listing.session.starts_with(number);
        let works_in = |place: &Path| place.starts_with(&listing.workspace);
        self.number.is_none_or(numbered) && self.workspace.as_deref().is_none_or(works_in)
    }
}

/// Every session with a ledger in this state directory, beside it, or of an editor, that is
/// meant; and why one does not answer, if there is such a one.
///
/// # Errors
/// None of them answers, or none of those that run is meant; that none runs is no error.
pub fn running(
    state_dir: &Path,
    meant: &Meant<'_>,
) -> Result<(Vec<Running>, Option<ControlError>), Trouble> {
    let (mut found, mut silent) = (Vec::new(), None);
    let row = beside::all(state_dir).into_iter().map(|(_, place)| place);
    for place in row.chain(beside::of_editors(state_dir)) {
        let asked = Connection::open(&place).and_then(|mut to| {
            match to.ask_within(PATIENCE, &Request::List)? {
                Reply::Listing(listing) => Ok(Running { to, listing }),
                other => Err(ControlError::Garbled(format!("{other:?}"))),
            }
        });
        match asked {
            Ok(session) => found.push(session),
            Err(ControlError::NoSession(_)) => {}
            // It may have ended meanwhile; the others are there all the same.
            Err(error) => silent = Some(error),
        }
    }
    if found.is_empty() {
        return match silent {
            Some(error) => Err(trouble(&error)),
            None => Ok((found, None)),
        };
    }
    let (those, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|one| meant.is(&one.listing));
    if those.is_empty() {
        let all = named(&others);
        return Err((
            format!("none of the sessions that run is meant:{all}"),
            exit::USAGE,
        ));
    }
    Ok((those, silent))
}

/// The only one; of several, the only one that works where the person is.
///
/// # Errors
/// Several may be meant.
pub fn one(mut found: Vec<Running>, here: &Path) -> Result<Running, Trouble> {
    if found.len() > 1 {
        let is_here = |one: &Running| here.starts_with(&one.listing.workspace);
        if found.iter().filter(|one| is_here(one)).count() == 1 {
            found.retain(is_here);
        }
    }
    match (found.pop(), found.as_slice()) {
        (Some(only), []) => Ok(only),
        (last, _) => {
            found.extend(last);
            let all = named(&found);
            let message = format!("several sessions run; name one with `--session NUMBER`:{all}");
            Err((message, exit::USAGE))
        }
    }
}

fn named(sessions: &[Running]) -> String {
    sessions
        .iter()
        .map(|one| {
            let Listing {
                session, workspace, ..
            } = &one.listing;
            format!("\n  {session}  {}{}", visible(workspace), one.whose())
        })
        .collect()
}
