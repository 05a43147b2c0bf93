//! What was said to a model and by it, kept so that it can be gone on with: in an
//! editor, or at a terminal.
//!
//! Words only: no grant, answer or mode survives a session, and everything a
//! conversation holds counts again as read when it is taken up.

mod cut_off;
mod keeper;
mod lines;

use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    time::SystemTime,
};

use rustix::fs::FlockOperation;

pub use self::{
    cut_off::Taken,
    keeper::{Keeper, When},
};
use crate::{
    ambient,
    audit::beside,
    model::Message,
    state_dir::own_file::{self, Access},
};

/// Where a conversation was had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shelf {
    /// In an editor, whose sessions have a directory each.
    Editor,
    /// At a terminal.
    Terminal,
}

impl Shelf {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Terminal, Self::Editor];

    /// Where such conversations are.
    fn dir(self, state_dir: &Path) -> PathBuf {
        state_dir.join(match self {
            Self::Editor => beside::EDITORS_DIR_NAME,
            Self::Terminal => "conversations",
        })
    }

    /// The directory of one.
    #[must_use]
    pub fn dir_of(self, state_dir: &Path, id: &str) -> PathBuf {
        self.dir(state_dir).join(id)
    }
}

/// What a conversation is kept as.
const FILE: &str = "conversation.jsonl";
/// What older versions kept one as, all of it in one line.
const OLDER_FILE: &str = "conversation.json";
/// The longest conversation that is kept, and so the longest that is taken up again.
const BYTES_MAX: usize = 64 << 20;
/// Of a longer one, so much of its end is kept.
const END_BYTES_MAX: usize = BYTES_MAX / 2;
/// What a session is about, with a directory of any length.
const ABOUT_BYTES_MAX: u64 = 64 << 10;
/// How things stand, which is what the last line says after a turn.
const STANDING_BYTES_MAX: u64 = 4 << 10;
/// Letters that are kept of what was typed last; each takes six bytes at most.
const ASKED_LETTERS_MAX: usize = 400;
/// Letters of a title.
const TITLE_LETTERS_MAX: usize = 80;

/// A conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversation {
    /// Where it worked.
    pub cwd: PathBuf,
    /// What it was about.
    pub title: Option<String>,
    /// When it was written last, for people.
    pub updated: String,
    /// When it began, in milliseconds since 1970; unknown of what older versions kept.
    pub started: Option<u64>,
    /// The model it was had with last.
    pub model: Option<String>,
    /// What its user typed last, the beginning of it: what is said for them may have words
    /// of the agent's own around it, or be nothing else.
    pub asked: Option<String>,
    /// What was said; without what the model is told about its place.
    pub messages: Vec<Message>,
    /// When each of them was said, as far as that is known, in milliseconds since 1970.
    pub times: Vec<Option<u64>>,
    /// Its agent has read what neither its user nor its own model wrote.
    pub has_read: bool,
    /// Up to where the session it was had in last has told of its calls.
    pub mark: Option<Mark>,
}

/// A place in what a session did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The session, by the number its ledger has for it.
    pub session: u64,
    /// How many calls it had made.
    pub calls: u64,
}

impl Mark {
    /// Of a session, by its number and its calls so far.
    #[must_use]
    pub const fn of((session, calls): (u64, u64)) -> Self {
        Self { session, calls }
    }
}

/// Whether an id is one that was given out: it becomes a name in a directory.
#[must_use]
pub fn is_id(id: &str) -> bool {
    id.len() == 32
        && id
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A new id.
///
/// # Errors
/// The system has no randomness.
pub fn new_id() -> io::Result<String> {
    Ok(format!(
        "{:016x}{:016x}",
        ambient::session_number()?,
        ambient::session_number()?
    ))
}

impl Conversation {
    /// One that begins now.
    #[must_use]
    pub fn new(cwd: PathBuf) -> Self {
        Self {
            cwd,
            ..Self::default()
        }
    }

    /// Whether it was written once: one that begins now was not.
    #[must_use]
    pub fn was_kept(&self) -> bool {
        !self.updated.is_empty()
    }

    /// Its user says this.
    pub fn ask(&mut self, words: &str) {
        let mut asked: String = words.chars().take(ASKED_LETTERS_MAX).collect();
        if asked.len() < words.len() {
            asked.push('…');
        }
        self.asked = Some(asked);
    }

    /// Notes what was said up to now; how many of the first messages are as they were.
    pub fn note(&mut self, messages: &[Message]) -> usize {
        let said = || {
            let mut all = messages.iter();
            std::iter::from_fn(move || all.find(|one| !matches!(one, Message::System(_))))
        };
        let both = self.messages.iter().zip(said());
        let unchanged = both.take_while(|(before, now)| before == now).count();
        let now = ambient::wall_time().as_millis();
        if !self.was_kept() {
            self.started = Some(now);
        }
        self.messages.truncate(unchanged);
        self.times.resize(unchanged, None);
        self.messages.extend(said().skip(unchanged).cloned());
        self.times.resize(self.messages.len(), Some(now));
        self.updated = for_people(now / 1000);
        if self.title.is_none() {
            self.title = self.messages.iter().find_map(|message| match message {
                Message::User(words) => Some(
                    words
                        .lines()
                        .next()
                        .unwrap_or_default()
                        .chars()
                        .take(TITLE_LETTERS_MAX)
                        .collect(),
                ),
                _ => None,
            });
        }
        unchanged
    }

    /// What was said, and when as far as that is known.
    pub fn timed(&self) -> impl Iterator<Item = (&Message, Option<u64>)> {
        let times = self.times.iter().copied().chain(std::iter::repeat(None));
        self.messages.iter().zip(times)
    }

    /// Whether something is in it that neither the user nor the model wrote.
    #[must_use]
    pub fn has_data(&self) -> bool {
        let mut messages = self.messages.iter();
        self.has_read
            || messages.any(|message| matches!(message, Message::Tool { .. } | Message::Told(_)))
    }

    /// As it is kept, in so many bytes, and how many messages at its beginning are left
    /// out: those that would make it longer than what can be taken up again.
    fn text(&self, bytes_max: usize, end_bytes_max: usize) -> (String, usize) {
        let messages: Vec<String> = self
            .timed()
            .map(|(message, at)| lines::message(message, at))
            .collect();
        let text = lines::head(self, self.has_read) + &messages.concat();
        if text.len() <= bytes_max {
            return (text, 0);
        }
        drop(text);
        let end = self.end(&messages, end_bytes_max);
        // What was read is not unread because nobody can say any more what it was.
        let text = lines::head(self, self.has_data()) + &end.concat();
        (text, messages.len() - end.len())
    }

    /// The last turns that take so many bytes together at most.
    fn end<'t>(&self, texts: &'t [String], bytes_max: usize) -> &'t [String] {
        let mut bytes = 0_usize;
        let mut from = texts.len();
        let both = texts.iter().zip(&self.messages).enumerate();
        for (place, (text, message)) in both.rev() {
            bytes = bytes.saturating_add(text.len());
            if bytes > bytes_max {
                break;
            }
            if matches!(message, Message::User(_) | Message::Told(_)) {
                from = place;
            }
        }
        texts.get(from..).unwrap_or_default()
    }

    /// What is kept in a session's directory; `None` if nothing usable is.
    #[must_use]
    pub fn look(dir: &Path) -> Option<Self> {
        let mut bytes = Vec::new();
        let most = u64::try_from(BYTES_MAX).ok()?;
        kept(dir)?.take(most).read_to_end(&mut bytes).ok()?;
        lines::read(&bytes)
    }
}

/// The file of a conversation, for reading.
fn kept(dir: &Path) -> Option<File> {
    let open = |name| own_file::open(&dir.join(name), Access::Read);
    match open(FILE) {
        Err(error) if error.is_missing() => open(OLDER_FILE).ok(),
        opened => opened.ok(),
    }
}

/// A moment, to the minute.
fn for_people(seconds: u64) -> String {
    format!("{}:00Z", ambient::date(seconds).replace(' ', "T"))
}

/// Keeps every other program away from a conversation at a terminal until the file is
/// closed; `None` if one has it.
///
/// # Errors
/// The directory cannot be opened.
pub fn hold(dir: &Path) -> io::Result<Option<File>> {
    let file = File::open(dir)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Forgets what was said; that there is nothing is no error.
///
/// # Errors
/// The disk's.
pub fn forget(dir: &Path) -> io::Result<()> {
    for name in [FILE, OLDER_FILE] {
        match fs::remove_file(dir.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// What a conversation is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Where it worked.
    pub cwd: PathBuf,
    /// Its title.
    pub title: Option<String>,
    /// When it was written last, for people.
    pub updated: String,
    /// When it began, in milliseconds since 1970, where its first line says it.
    pub started: Option<u64>,
    /// In so many bytes it is kept.
    pub bytes: u64,
}

impl About {
    /// Of what is kept in a conversation's directory, without what was said: there can be
    /// many, and long ones. When it was written last comes along, to the moment.
    fn look(dir: &Path) -> Option<(Self, Option<SystemTime>)> {
        let mut file = kept(dir)?;
        let seen = file.metadata().ok()?;
        let mut about = Self::of_beginning(&mut file)?;
        about.bytes = seen.len();
        let written = seen.modified().ok();
        let from = seen.len().saturating_sub(STANDING_BYTES_MAX);
        file.seek(SeekFrom::Start(from)).ok()?;
        let mut end = Vec::new();
        file.take(STANDING_BYTES_MAX).read_to_end(&mut end).ok()?;
        let since = written.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        match (lines::read_updated(&end), since) {
            (Some(updated), _) => about.updated = updated,
            // In the midst of a turn, or where one was cut off.
            (None, Some(since)) if end.last() == Some(&b'\n') => {
                about.updated = for_people(since.as_secs());
            }
            (None, _) => {}
        }
        Some((about, written))
    }

    fn of_beginning(kept: impl io::Read) -> Option<Self> {
        let mut beginning = Vec::new();
        kept.take(ABOUT_BYTES_MAX)
            .read_to_end(&mut beginning)
            .ok()?;
        lines::read_about(&beginning).map(|about| Self {
            cwd: about.cwd,
            title: about.title,
            updated: about.updated,
            started: about.started,
            bytes: 0,
        })
    }
}

/// Every conversation of a shelf, the newest first.
#[must_use]
pub fn all(shelf: Shelf, state_dir: &Path) -> Vec<(String, About)> {
    let mut found: Vec<_> = fs::read_dir(shelf.dir(state_dir))
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let id = entry.file_name().into_string().ok()?;
            if !is_id(&id) {
                return None;
            }
            let (about, written) = About::look(&entry.path())?;
            Some((id, about, written))
        })
        .collect();
    // For people a minute is enough, and not to tell which of two came last.
    found.sort_by(|(one, left, before), (other, right, after)| {
        (&right.updated, after)
            .cmp(&(&left.updated, before))
            .then_with(|| one.cmp(other))
    });
    found
        .into_iter()
        .map(|(id, about, _)| (id, about))
        .collect()
}

#[cfg(test)]
mod tests;
