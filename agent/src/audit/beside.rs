//! Ledgers beside the first one, for sessions that run at the same time.
//!
//! A ledger has one writer: each record continues the one before. So whoever finds
//! the first ledger of a state directory taken writes the first free one of a row
//! beside it, each in a directory of its own, with its own key and anchor. They stay,
//! as the first one does, and serve again. What is kept beyond a session and what can
//! be undone is common to all and lies in the state directory itself.

use std::path::{Path, PathBuf};

/// Where the row is, in the state directory.
pub const DIR_NAME: &str = "beside";
/// Where those of editors' sessions are, by numbers of their own.
pub const EDITORS_DIR_NAME: &str = "acp";
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
}
