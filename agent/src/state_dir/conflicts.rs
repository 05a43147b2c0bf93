//! What commands made of files that somebody else changed meanwhile.
//!
//! What for: such a file is left as somebody else saved it, and what the command made of it
//! is in nobody's way here, for a person to bring together with the other. It is no
//! authority and nothing reads it again. It must never grow without an end.

use std::{
    fs::{DirBuilder, File},
    io::{self, Read as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Component, Path, PathBuf},
};

use super::own_file;

/// The directory, in the agent's own.
const DIR_NAME: &str = "conflicts";
/// Of so many commands it is kept; that of the oldest goes.
const COMMANDS_MAX: usize = 16;
/// Files of one command at most, and how long they may be together.
const FILES_MAX: usize = 1000;
const BYTES_MAX: u64 = 64 << 20;

/// What was kept of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aside {
    /// Where; each file below it under the name it has outside, from the root.
    pub at: PathBuf,
    /// How many files.
    pub files: usize,
    /// How many others: they are too long, too many, or no files, or the disk has no room.
    pub missed: usize,
}

/// Keeps files under the names they have outside.
///
/// # Errors
/// Nothing can be kept.
pub fn keep(state_dir: &Path, files: Vec<(PathBuf, io::Result<File>)>) -> Result<Aside, io::Error> {
    let dir = state_dir.join(DIR_NAME);
    own_file::state_dir(&dir).map_err(|error| io::Error::other(error.to_string()))?;
    let _held = own_file::hold(&dir).map_err(|error| io::Error::other(error.to_string()))?;
    let mut numbers = numbers(&dir)?;
    let number = numbers.last().map_or(1, |last| last.saturating_add(1));
    let at = dir.join(number.to_string());
    DirBuilder::new().mode(0o700).create(&at)?;
    let mut aside = Aside {
        at,
        files: 0,
        missed: 0,
    };
    let mut room = BYTES_MAX;
    for (name, file) in files {
        let kept = file.and_then(|file| {
            if aside.files >= FILES_MAX {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            put(&aside.at, &name, &file, room)
        });
        match kept {
            Ok(bytes) => {
                room = room.saturating_sub(bytes);
                aside.files += 1;
            }
            Err(_) => aside.missed += 1,
        }
    }
    if aside.files == 0 {
        std::fs::remove_dir_all(&aside.at)?;
        return Ok(aside);
    }
    let opened = File::open(&dir)?;
    rustix::fs::syncfs(&opened)?;
    numbers.push(number);
    let surplus = numbers.len().saturating_sub(COMMANDS_MAX);
    for old in numbers.iter().take(surplus) {
        // What stays is tried again with the next one.
        let _removed = std::fs::remove_dir_all(dir.join(old.to_string()));
    }
    Ok(aside)
}

/// The commands of which something is kept, oldest first.
fn numbers(dir: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn put(at: &Path, name: &Path, file: &File, room: u64) -> io::Result<u64> {
    // A name outside leads nowhere else in here.
    let parts = name.components().filter_map(|part| match part {
        Component::Normal(part) => Some(part),
        _ => None,
    });
    let path = at.join(parts.collect::<PathBuf>());
    if file.metadata()?.len() > room {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    if let Some(above) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(above)?;
    }
    let failed = |error: own_file::OwnFileError| io::Error::other(error.to_string());
    let mut copy = own_file::create_new(&path).map_err(failed)?;
    let copied = io::copy(&mut file.take(room), &mut copy);
    if copied.is_err() {
        let _removed = std::fs::remove_file(&path);
    }
    copied
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn opened(dir: &Path, text: &str) -> io::Result<File> {
        let path = dir.join(text);
        std::fs::write(&path, text).expect("written");
        File::open(path)
    }

    #[test]
    fn files_lie_under_the_names_they_have_outside_and_the_oldest_go() {
        let temp = tempfile::tempdir().expect("directory");
        let state = temp.path().join("state");
        for round in 1..=COMMANDS_MAX + 2 {
            let files = vec![
                (PathBuf::from("/w/a/b.txt"), opened(temp.path(), "theirs")),
                (PathBuf::from("/w/../../../out"), opened(temp.path(), "x")),
                (
                    PathBuf::from("/w/link"),
                    Err(io::ErrorKind::InvalidInput.into()),
                ),
            ];
            let aside = keep(&state, files).expect("kept");
            let expected = Aside {
                at: state.join(DIR_NAME).join(round.to_string()),
                files: 2,
                missed: 1,
            };
            assert_eq!(aside, expected);
            let text = std::fs::read_to_string(aside.at.join("w/a/b.txt"));
            assert_eq!(text.expect("text"), "theirs");
            assert!(aside.at.join("w/out").is_file());
            let mode = |path: &Path| {
                let seen = std::fs::metadata(path).expect("there");
                seen.permissions().mode() & 0o777
            };
            assert_eq!(mode(&aside.at), 0o700);
            assert_eq!(mode(&aside.at.join("w/a")), 0o700);
            assert_eq!(mode(&aside.at.join("w/a/b.txt")), 0o600);
        }
        let left = numbers(&state.join(DIR_NAME)).expect("listed");
        let expected: Vec<u64> = (3..=18).collect();
        assert_eq!(left, expected);
    }

    #[test]
    fn what_is_too_long_is_counted_and_nothing_is_left_of_it() {
        let temp = tempfile::tempdir().expect("directory");
        let state = temp.path().join("state");
        let long = temp.path().join("long");
        let file = File::create(&long).expect("made");
        file.set_len(BYTES_MAX + 1).expect("longer");
        let files = vec![(PathBuf::from("/w/long"), File::open(&long))];
        let aside = keep(&state, files).expect("looked at");
        assert_eq!((aside.files, aside.missed), (0, 1));
        assert!(!aside.at.exists());
    }
}
