//! Ledgers beside the first one, for sessions that run at the same time.
//!
//! A ledger has one writer: each record continues the one before. So whoever finds
//! the first ledger of a state directory taken writes the first free one of a row
//! beside it, each in a directory of its own, with its own key and anchor. They stay,
//! as the first one does, and serve again. What is kept beyond a session and what can
//! be undone is common to all and lies in the state directory itself.
//!
//! Editors' sessions and jobs have a ledger each, in directories of their own. Whoever
//! asks what is on record, or whether it holds, means these as well ([`every`]).

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::screen::on_one_line;

/// Where the row is, in the state directory.
pub const DIR_NAME: &str = "beside";
/// Where those of editors' sessions are, by numbers of their own.
pub const EDITORS_DIR_NAME: &str = "acp";
/// Where those of jobs are, by the jobs' names.
pub const JOBS_DIR_NAME: &str = "jobs";
/// How many sessions there can be beside the first.
pub const MOST: u32 = 64;

/// The directory of a ledger by its place in the row; 0 is the state directory.
#[must_use]
pub fn place(state_dir: &Path, number: u32) -> PathBuf {
    match number {
        0 => state_dir.to_owned(),
        number => state_dir.join(DIR_NAME).join(number.to_string()),
    }
}

/// The state directory, and every directory beside it that there is, with their numbers.
#[must_use]
pub fn all(state_dir: &Path) -> Vec<(u32, PathBuf)> {
    let is_there = |place: &Path| place.symlink_metadata().is_ok();
    let row = (1..=MOST)
        .map(|number| (number, place(state_dir, number)))
        .filter(|(_, place)| is_there(place));
    let first = (0, state_dir.to_owned());
    std::iter::once(first)
        .chain(
            is_there(&state_dir.join(DIR_NAME))
                .then_some(row)
                .into_iter()
                .flatten(),
        )
        .collect()
}

/// The directories of the sessions of editors, of those that run and those that were.
#[must_use]
pub fn of_editors(state_dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(state_dir.join(EDITORS_DIR_NAME));
    let mut found: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    found.sort_unstable();
    found
}

/// Whose ledger it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    /// Of the person's own sessions: the first, or one of the row.
    Own,
    /// Of an editor's session.
    Editor,
    /// Of a job.
    Job,
}

/// Where a ledger is, or was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Whose it is.
    pub whose: Whose,
    /// What it is called beside others, such as `beside/2`; nothing if it is the first.
    pub name: String,
    /// Its directory.
    pub dir: PathBuf,
}

impl Place {
    /// The first.
    #[must_use]
    pub fn first(state_dir: &Path) -> Self {
        Self {
            whose: Whose::Own,
            name: String::new(),
            dir: state_dir.to_owned(),
        }
    }

    /// Whether it is the first.
    #[must_use]
    pub const fn is_first(&self) -> bool {
        self.name.is_empty()
    }
}

/// The directories of all ledgers of a state directory: the first, those of the row, of
/// editors' sessions and of jobs.
///
/// # Errors
/// It cannot be told what there is: in this directory, for this reason.
pub fn every(state_dir: &Path) -> Result<Vec<Place>, (PathBuf, io::Error)> {
    let of_row = |(number, dir)| match number {
        0 => Place::first(state_dir),
        number => Place {
            whose: Whose::Own,
            name: format!("{DIR_NAME}/{number}"),
            dir,
        },
    };
    let mut places: Vec<Place> = all(state_dir).into_iter().map(of_row).collect();
    for (whose, shelf) in [
        (Whose::Editor, EDITORS_DIR_NAME),
        (Whose::Job, JOBS_DIR_NAME),
    ] {
        let above = state_dir.join(shelf);
        let found = within(&above).map_err(|error| (above, error))?;
        places.extend(found.into_iter().map(|dir| {
            let own = dir.file_name().unwrap_or_default().to_string_lossy();
            Place {
                whose,
                name: format!("{shelf}/{}", on_one_line(&own)),
                dir,
            }
        }));
    }
    Ok(places)
}

/// Everything in a directory that is one, or that leads somewhere: this is refused by
/// whoever looks into it, and not passed over.
fn within(above: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(above) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if !entry.file_type()?.is_file() {
            found.push(entry.path());
        }
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_directory_comes_first_and_then_what_is_there() {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path();
        assert_eq!(all(state), [(0, state.to_owned())]);
        for number in [2, 64, 65] {
            std::fs::create_dir_all(state.join("beside").join(number.to_string())).unwrap();
        }
        std::fs::create_dir(state.join("beside/other")).unwrap();
        let numbers: Vec<u32> = all(state).into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [0, 2, 64]);
        assert_eq!(place(state, 2), state.join("beside/2"));
    }

    #[test]
    fn editors_sessions_are_apart_from_the_row() {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path();
        assert_eq!(of_editors(state), [] as [PathBuf; 0]);
        for id in ["b", "a"] {
            std::fs::create_dir_all(state.join("acp").join(id)).unwrap();
        }
        assert_eq!(
            of_editors(state),
            ["a", "b"].map(|id| state.join("acp").join(id))
        );
        assert_eq!(all(state), [(0, state.to_owned())]);
    }

    #[test]
    fn every_ledger_is_one_of_those_of_a_person_of_editors_and_of_jobs() {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path();
        assert_eq!(every(state).unwrap(), [Place::first(state)]);
        for dir in ["jobs/c", "acp/b", "acp/a\u{1b}", "beside/2", "elsewhere/d"] {
            std::fs::create_dir_all(state.join(dir)).unwrap();
        }
        std::fs::write(state.join("acp/notes"), "").unwrap();
        std::os::unix::fs::symlink("/", state.join("jobs/leads")).unwrap();
        let found = every(state).unwrap();
        let names: Vec<&str> = found.iter().map(|place| &*place.name).collect();
        assert_eq!(
            names,
            [
                "",
                "beside/2",
                "acp/a\\u{1b}",
                "acp/b",
                "jobs/c",
                "jobs/leads"
            ]
        );
        assert!(found[0].is_first() && !found[1].is_first());
        // What cannot be told is no sign that nothing is there.
        std::fs::remove_dir_all(state.join("jobs")).unwrap();
        std::fs::write(state.join("jobs"), "").unwrap();
        assert_eq!(every(state).unwrap_err().0, state.join("jobs"));
    }
}
