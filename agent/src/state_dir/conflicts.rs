//! What commands made of files that somebody else changed meanwhile.
//!
//! What for: such a file is left as somebody else saved it, and what the command made of it
//! is in nobody's way here, for a person to bring together with the other. It is no
//! authority and nothing reads it again. It must never grow without an end, and never lose
//! a version without saying which: where the disk is full the oldest commands' versions go
//! for those of the newest, if that is enough, and what is not kept is named.

use std::{
    fmt,
    fs::{DirBuilder, File},
    io::{self, Read as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Component, Path, PathBuf},
};

use super::{
    own_file,
    room::{Room, is_lacking},
};

/// The directory, in the agent's own.
const DIR_NAME: &str = "conflicts";
/// Of so many commands it is kept; that of the oldest goes.
const COMMANDS_MAX: usize = 16;
/// Files of one command at most, and how long they may be together.
const FILES_MAX: usize = 1000;
const BYTES_MAX: u64 = 64 << 20;
/// Names told of those that are not kept.
const NAMES_TOLD_MAX: usize = 12;

/// What was kept of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aside {
    /// Where; each file below it under the name it has outside, from the root.
    pub at: PathBuf,
    /// How many files.
    pub files: usize,
    /// Those of which nothing is kept.
    pub missed: Vec<Missed>,
    /// Where versions of older commands were, which went as the disk was full.
    pub gave_way: Vec<PathBuf>,
}

/// A name of which no version is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The name it has outside.
    pub name: PathBuf,
    /// Why.
    pub why: Why,
}

/// Why a version is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is a link, and holds nothing itself.
    NoFile,
    /// It is longer than what is kept of one command.
    TooLong,
    /// So many others are kept.
    TooMany,
    /// The disk has no room for this many bytes; how much it has, if that is known.
    NoRoom(u64, Option<Room>),
    /// The system failed, in these words.
    Failed(String),
}

/// Keeps files under the names they have outside.
///
/// # Errors
/// Nothing can be kept; why, and what to do.
pub fn keep(state_dir: &Path, files: Vec<(PathBuf, io::Result<File>)>) -> Result<Aside, String> {
    let dir = state_dir.join(DIR_NAME);
    keep_in(&dir, files).map_err(|error| match Room::at(&dir) {
        Some(room) if is_lacking(&error) => {
            format!("{error}: {room}; make room there, then run the command again")
        }
        Some(_) | None => error.to_string(),
    })
}

fn keep_in(dir: &Path, files: Vec<(PathBuf, io::Result<File>)>) -> io::Result<Aside> {
    own_file::state_dir(dir).map_err(own_error)?;
    let _held = own_file::hold(dir).map_err(own_error)?;
    let numbers = numbers(dir)?;
    let number = numbers.last().map_or(1, |last| last.saturating_add(1));
    let mut keeper = Keeper {
        older: numbers,
        aside: Aside {
            at: dir.join(number.to_string()),
            files: 0,
            missed: Vec::new(),
            gave_way: Vec::new(),
        },
        room: BYTES_MAX,
        dir: dir.to_owned(),
    };
    for (name, file) in files {
        match file
            .map_err(|error| Why::of(&error))
            .and_then(|file| keeper.put(&name, &file))
        {
            Ok(bytes) => {
                keeper.room = keeper.room.saturating_sub(bytes);
                keeper.aside.files += 1;
            }
            Err(why) => keeper.aside.missed.push(Missed { name, why }),
        }
    }
    let Keeper {
        mut older, aside, ..
    } = keeper;
    if aside.files == 0 {
        remove_all(&aside.at)?;
        return Ok(aside);
    }
    let opened = File::open(dir)?;
    rustix::fs::syncfs(&opened).map_err(|error| {
        // What is there is left: it is all there is.
        let error = io::Error::from(error);
        let told = format!("`{}` may lack some of it: {error}", aside.at.display());
        io::Error::new(error.kind(), told)
    })?;
    older.push(number);
    let surplus = older.len().saturating_sub(COMMANDS_MAX);
    for old in older.iter().take(surplus) {
        // What stays is tried again with the next one.
        let _removed = remove_all(&dir.join(old.to_string()));
    }
    Ok(aside)
}

/// Whoever keeps what one command made.
struct Keeper {
    dir: PathBuf,
    /// The commands before it, oldest first.
    older: Vec<u64>,
    aside: Aside,
    /// Bytes that may still be kept of this one.
    room: u64,
}

impl Keeper {
    /// Keeps a file, if need be in the place of what is kept of older commands.
    fn put(&mut self, name: &Path, file: &File) -> Result<u64, Why> {
        if self.aside.files >= FILES_MAX {
            return Err(Why::TooMany);
        }
        let needed = file.metadata().map_err(|error| Why::of(&error))?.len();
        if needed > self.room {
            return Err(Why::TooLong);
        }
        loop {
            match put(&self.aside.at, name, file, needed) {
                Ok(bytes) => return Ok(bytes),
                Err(error) if is_lacking(&error) => {
                    let room = Room::at(&self.dir);
                    if !self.give_way(needed, room.as_ref()) {
                        return Err(Why::NoRoom(needed, room));
                    }
                }
                Err(error) => return Err(Why::of(&error)),
            }
        }
    }

    /// Removes what is kept of as many older commands as it takes, the oldest first; none,
    /// where not even all of them are enough.
    fn give_way(&mut self, needed: u64, room: Option<&Room>) -> bool {
        /// What the directories of a name may take.
        const NAMES_BYTES: u64 = 64 << 10;
        let needed = needed.saturating_add(NAMES_BYTES);
        // What is free and was refused all the same is others', or beyond a quota.
        let free = room.map_or(0, |room| room.free_bytes);
        let mut freed = if free >= needed { 0 } else { free };
        let mut going = 0;
        for old in &self.older {
            if freed >= needed {
                break;
            }
            freed = freed.saturating_add(bytes_of(&self.dir.join(old.to_string())));
            going += 1;
        }
        if freed < needed {
            return false;
        }
        let gone: Vec<u64> = self.older.drain(..going).collect();
        for old in gone {
            let at = self.dir.join(old.to_string());
            let _part_may_stay = remove_all(&at);
            self.aside.gave_way.push(at);
        }
        going > 0
    }
}

/// How much of the disk lies below a directory, as far as that can be seen.
fn bytes_of(dir: &Path) -> u64 {
    let mut bytes = 0_u64;
    let mut left = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(seen) = entry.metadata() else { continue };
            bytes = bytes.saturating_add(seen.blocks().saturating_mul(512));
            if seen.is_dir() {
                left.push(entry.path());
            }
        }
    }
    bytes
}

fn remove_all(dir: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn own_error(error: own_file::OwnFileError) -> io::Error {
    match error {
        own_file::OwnFileError::Io(_, error) if is_lacking(&error) => error,
        other => io::Error::other(other.to_string()),
    }
}

impl Why {
    fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidInput => Self::NoFile,
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFile => f.write_str("no file"),
            Self::TooLong => write!(f, "{BYTES_MAX} bytes are kept of one command"),
            Self::TooMany => write!(f, "{FILES_MAX} files are kept of one command"),
            Self::NoRoom(needed, room) => {
                write!(f, "{needed} bytes long, and ")?;
                match room {
                    Some(room) => room.fmt(f),
                    None => f.write_str("the disk is full"),
                }
            }
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl Aside {
    /// What is not kept, each with why, and what can be done so that it is the next time.
    pub fn tell_missed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, missed) in self.missed.iter().take(NAMES_TOLD_MAX).enumerate() {
            let between = if place == 0 { "" } else { ", " };
            write!(f, "{between}`{}` ({})", missed.name.display(), missed.why)?;
        }
        match self.missed.len().saturating_sub(NAMES_TOLD_MAX) {
            0 => {}
            more => write!(f, " and {more} more")?,
        }
        let is_full = |missed: &Missed| matches!(missed.why, Why::NoRoom(..));
        if self.missed.iter().any(is_full) {
            f.write_str("; make room there, then run the command again")?;
        }
        Ok(())
    }

    /// Whose versions went, if any had to.
    pub fn tell_gave_way(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.gave_way.is_empty() {
            return Ok(());
        }
        let gone: Vec<String> = self
            .gave_way
            .iter()
            .map(|at| format!("`{}`", at.display()))
            .collect();
        write!(
            f,
            ". The disk is full, so what was kept there of earlier commands is removed: {}",
            gone.join(", ")
        )
    }
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

fn put(at: &Path, name: &Path, file: &File, length: u64) -> io::Result<u64> {
    // A name outside leads nowhere else in here.
    let parts = name.components().filter_map(|part| match part {
        Component::Normal(part) => Some(part),
        _ => None,
    });
    let path = at.join(parts.collect::<PathBuf>());
    let put = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path.parent().unwrap_or(at))
        .and_then(|()| {
            let copy = own_file::create_new(&path).map_err(own_error)?;
            copied(file, length, copy).inspect_err(|_| {
                let _part = std::fs::remove_file(&path);
            })
        });
    if put.is_err() {
        // Nor do directories stay that were made for it.
        for above in path.ancestors().skip(1) {
            if !above.starts_with(at) || std::fs::remove_dir(above).is_err() {
                break;
            }
        }
    }
    put
}

fn copied(mut file: &File, length: u64, mut copy: File) -> io::Result<u64> {
    // It may be the second time.
    io::Seek::rewind(&mut file)?;
    io::copy(&mut file.take(length), &mut copy)
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
                missed: vec![Missed {
                    name: PathBuf::from("/w/link"),
                    why: Why::NoFile,
                }],
                gave_way: Vec::new(),
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
        let why: Vec<&Why> = aside.missed.iter().map(|missed| &missed.why).collect();
        assert_eq!((aside.files, why), (0, vec![&Why::TooLong]));
        assert!(!aside.at.exists());
    }
}
