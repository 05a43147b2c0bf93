//! What was said to a model and by it, kept so that it can be gone on with: in an
//! editor, or at a terminal.
//!
//! Words only: no grant, answer or mode survives a session, and everything a
//! conversation holds counts again as read when it is taken up.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use rustix::fs::FlockOperation;
use serde_json::{Value, json};

use crate::{
    ambient,
    audit::beside,
    model::{Message, ProposedCall},
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
const FILE: &str = "conversation.json";
/// The longest conversation that is kept, and so the longest that is taken up again.
const BYTES_MAX: usize = 64 << 20;
/// Of a longer one, so much of its end is kept.
const END_BYTES_MAX: usize = BYTES_MAX / 2;
/// What comes right before what was said; what a session is about comes before it.
const SAID: &[u8] = b",\"messages\":[";
/// What a session is about, with a directory of any length.
const ABOUT_BYTES_MAX: u64 = 64 << 10;
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
    /// What was said; without what the model is told about its place.
    pub messages: Vec<Message>,
    /// Its agent has read what neither its user nor its own model wrote.
    pub has_read: bool,
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

    /// Notes what was said up to now.
    pub fn note(&mut self, messages: &[Message]) {
        self.messages = messages
            .iter()
            .filter(|message| !matches!(message, Message::System(_)))
            .cloned()
            .collect();
        let seconds = ambient::wall_time().as_millis() / 1000;
        self.updated = format!("{}:00Z", ambient::date(seconds).replace(' ', "T"));
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
    }

    /// Whether something is in it that neither the user nor the model wrote.
    #[must_use]
    pub fn has_data(&self) -> bool {
        let mut messages = self.messages.iter();
        self.has_read || messages.any(|message| matches!(message, Message::Tool { .. }))
    }

    /// Keeps it in a session's directory, whole or not at all; of one too long to be taken
    /// up again, its end.
    ///
    /// # Errors
    /// The disk's.
    pub fn keep(&self, dir: &Path) -> io::Result<()> {
        let text = self.text(BYTES_MAX, END_BYTES_MAX);
        own_file::put_whole(dir, FILE, text.as_bytes())
            .map_err(|error| io::Error::other(error.to_string()))
    }

    /// As it is kept, in so many bytes; in fewer, where that would be more.
    fn text(&self, bytes_max: usize, end_bytes_max: usize) -> String {
        let messages: Vec<String> = self.messages.iter().map(written).collect();
        let text = self.around(&messages, self.has_read);
        if text.len() <= bytes_max {
            return text;
        }
        drop(text);
        // What was read is not unread because nobody can say any more what it was.
        self.around(self.end(&messages, end_bytes_max), self.has_data())
    }

    /// The facts, which come first so that they can be read without what was said.
    fn around(&self, messages: &[String], has_read: bool) -> String {
        let facts = json!({
            "cwd": self.cwd.to_string_lossy(),
            "title": self.title,
            "updated": self.updated,
            "read": has_read,
        })
        .to_string();
        let facts = facts.trim_end_matches('}');
        let said = String::from_utf8_lossy(SAID);
        format!("{facts}{said}{}]}}", messages.join(","))
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
            if matches!(message, Message::User(_)) {
                from = place;
            }
        }
        texts.get(from..).unwrap_or_default()
    }

    /// What is kept in a session's directory; `None` if nothing usable is.
    #[must_use]
    pub fn look(dir: &Path) -> Option<Self> {
        let file = own_file::open(&dir.join(FILE), Access::Read).ok()?;
        let mut text = String::new();
        let most = u64::try_from(BYTES_MAX).ok()?;
        file.take(most).read_to_string(&mut text).ok()?;
        let value: Value = serde_json::from_str(&text).ok()?;
        let word = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let messages: Vec<Message> = value
            .get("messages")?
            .as_array()?
            .iter()
            .map(read)
            .collect::<Option<_>>()?;
        Some(Self {
            cwd: PathBuf::from(word("cwd")?),
            title: word("title"),
            updated: word("updated")?,
            // One of which nobody can say what was read for it counts as read.
            has_read: value
                .get("read")
                .and_then(Value::as_bool)
                .unwrap_or(!messages.is_empty()),
            messages,
        })
    }
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
    match fs::remove_file(dir.join(FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
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
}

impl About {
    /// Of what is kept in a conversation's directory, without what was said: there can be
    /// many, and long ones.
    fn look(dir: &Path) -> Option<Self> {
        let file = own_file::open(&dir.join(FILE), Access::Read).ok()?;
        match Self::of_beginning(file) {
            Some(about) => Some(about),
            // Written by a version that had another order.
            None => Conversation::look(dir).map(|kept| Self {
                cwd: kept.cwd,
                title: kept.title,
                updated: kept.updated,
            }),
        }
    }

    fn of_beginning(kept: impl io::Read) -> Option<Self> {
        let mut beginning = Vec::new();
        kept.take(ABOUT_BYTES_MAX)
            .read_to_end(&mut beginning)
            .ok()?;
        // Within a string its quotes would not stand alone.
        let end = beginning
            .windows(SAID.len())
            .position(|part| part == SAID)?;
        beginning.truncate(end);
        beginning.push(b'}');
        let value: Value = serde_json::from_slice(&beginning).ok()?;
        let word = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            cwd: PathBuf::from(word("cwd")?),
            title: word("title"),
            updated: word("updated")?,
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
            let written = fs::metadata(entry.path().join(FILE)).and_then(|seen| seen.modified());
            Some((id, About::look(&entry.path())?, written.ok()))
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

fn written(message: &Message) -> String {
    let value = match message {
        Message::System(text) => json!({"system": text}),
        Message::User(text) => json!({"user": text}),
        Message::Assistant { text, calls } => {
            let calls: Vec<Value> = calls
                .iter()
                .map(|call| json!([call.id, call.tool, call.arguments]))
                .collect();
            json!({"assistant": text, "calls": calls})
        }
        Message::Tool { call, tool, text } => json!({"tool": tool, "call": call, "text": text}),
    };
    value.to_string()
}

fn read(value: &Value) -> Option<Message> {
    let word = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    if let Some(words) = word("user") {
        return Some(Message::User(words));
    }
    if let Some(tool) = word("tool") {
        return Some(Message::Tool {
            call: word("call")?,
            tool,
            text: word("text")?,
        });
    }
    let mut calls = Vec::new();
    for call in value.get("calls")?.as_array()? {
        let part = |place: usize| call.get(place).and_then(Value::as_str).map(str::to_owned);
        calls.push(ProposedCall {
            id: part(0)?,
            tool: part(1)?,
            arguments: part(2)?,
        });
    }
    Some(Message::Assistant {
        text: word("assistant")?,
        calls,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::{About, Conversation, FILE, Shelf, all, is_id, new_id, own_file};
    use crate::model::{Message, ProposedCall};

    #[test]
    fn a_conversation_comes_back_as_it_was() {
        let state = tempfile::tempdir().expect("directory");
        let id = new_id().expect("id");
        assert!(is_id(&id));
        let dir = Shelf::Editor.dir_of(state.path(), &id);
        std::fs::create_dir_all(&dir).expect("directory");
        let mut history = Conversation::new("/w".into());
        history.note(&[
            Message::System("never kept".into()),
            Message::User("first line\nsecond".into()),
            Message::Assistant {
                text: "t".into(),
                calls: vec![ProposedCall {
                    id: "c".into(),
                    tool: "todo".into(),
                    arguments: "{".into(),
                }],
            },
            Message::Tool {
                call: "c".into(),
                tool: "todo".into(),
                text: "{}".into(),
            },
        ]);
        history.keep(&dir).expect("kept");
        history.keep(&dir).expect("kept again");
        assert_eq!(Conversation::look(&dir), Some(history.clone()));
        assert_eq!(history.title.as_deref(), Some("first line"));
        assert!(history.has_data());
        let about = About {
            cwd: history.cwd.clone(),
            title: history.title.clone(),
            updated: history.updated.clone(),
        };
        assert_eq!(all(Shelf::Editor, state.path()), [(id, about)]);
        assert_eq!(all(Shelf::Terminal, state.path()), []);
        let mode = std::fs::metadata(dir.join("conversation.json"))
            .expect("file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_a_session_is_about_is_read_without_what_was_said() {
        let mut history = Conversation::new("/w/,\"messages\":[".into());
        let mut messages = vec![Message::User(",\"messages\":[ in a title".into())];
        messages.resize(20_000, Message::User("something that was said".into()));
        history.note(&messages);
        let text = history.text(usize::MAX, 0);
        let mut read = 0;
        let from = Counting(text.as_bytes(), &mut read);
        let about = About::of_beginning(from).expect("a session");
        assert_eq!((about.cwd, about.title), (history.cwd, history.title));
        assert!(read <= 64 << 10, "{read} bytes of {}", text.len());
    }

    /// Counts what is read of it.
    struct Counting<'c>(&'c [u8], &'c mut usize);

    impl std::io::Read for Counting<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let got = self.0.read(into)?;
            *self.1 += got;
            Ok(got)
        }
    }

    #[test]
    fn of_a_conversation_too_long_to_be_taken_up_again_the_last_turns_are_kept() {
        let state = tempfile::tempdir().expect("directory");
        let mut history = Conversation::new("/w".into());
        let answer = |text: &str| Message::Assistant {
            text: text.to_owned(),
            calls: Vec::new(),
        };
        let result = |text: String| Message::Tool {
            call: "c".into(),
            tool: "terminal".into(),
            text,
        };
        history.note(&[
            Message::User("first".into()),
            result("x".repeat(1000)),
            answer("done"),
            Message::User("second".into()),
            answer("done, too"),
            Message::User("third".into()),
            answer("as well"),
        ]);
        let look = |bytes_max: usize, end_bytes_max: usize| {
            let text = history.text(bytes_max, end_bytes_max);
            own_file::put_whole(state.path(), FILE, text.as_bytes()).expect("written");
            let kept = Conversation::look(state.path()).expect("a conversation");
            (kept.messages, kept.has_read)
        };
        assert_eq!(look(2000, 200), (history.messages.clone(), false));
        let (messages, has_read) = look(1000, 200);
        assert_eq!(messages, history.messages[3..]);
        assert!(has_read, "what is not there any more was read");
        assert_eq!(look(1000, 90).0, history.messages[5..]);
        // No turn at all is short enough.
        assert_eq!(look(1000, 5), (Vec::new(), true));
    }

    #[test]
    fn what_was_attached_to_a_prompt_was_read_and_stays_so() {
        let state = tempfile::tempdir().expect("directory");
        let mut history = Conversation::new("/w".into());
        history.note(&[Message::User("words".into())]);
        assert!(!history.has_data());
        history.keep(state.path()).expect("kept");
        let look = || Conversation::look(state.path()).expect("history");
        assert!(!look().has_data());
        history.has_read = true;
        history.keep(state.path()).expect("kept");
        assert!(look().has_data());
        // Written by a version that did not say so.
        let file = state.path().join("conversation.json");
        let text = std::fs::read_to_string(&file).expect("text");
        let older = text.replace("\"read\":true,", "");
        assert_ne!(older, text);
        std::fs::write(&file, older).expect("written");
        assert!(look().has_data());
    }

    #[test]
    fn what_is_no_id_never_becomes_a_path() {
        for id in ["", "..", "../x", "0123", &"g".repeat(32), &"A".repeat(32)] {
            assert!(!is_id(id), "{id}");
        }
    }
}
