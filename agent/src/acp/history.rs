//! What was said in a session, kept beside its ledger, so that it can be gone
//! on with.
//!
//! Words only: no grant, answer or mode survives a session, and everything a
//! conversation holds counts again as read when it is taken up.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    ambient,
    audit::{self, LedgerError},
    model::{Message, ProposedCall},
    state_dir::own_file::{self, Access},
};

/// Where the sessions of clients are, in the state directory.
const DIR: &str = "acp";
/// What a conversation is kept as.
const FILE: &str = "conversation.json";
/// The longest conversation that is taken up again.
const BYTES_MAX: u64 = 64 << 20;
/// Letters of a title.
const TITLE_LETTERS_MAX: usize = 80;

/// A session that was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
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
    /// It is gone on with without being shown.
    pub is_silent: bool,
}

/// The directory of a session.
#[must_use]
pub fn dir_of(state_dir: &Path, id: &str) -> PathBuf {
    state_dir.join(DIR).join(id)
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

impl History {
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

    /// Keeps it in a session's directory, whole or not at all.
    ///
    /// # Errors
    /// The disk's.
    pub fn keep(&self, dir: &Path) -> io::Result<()> {
        let text = json!({
            "cwd": self.cwd.to_string_lossy(),
            "title": self.title,
            "updated": self.updated,
            "read": self.has_read,
            "messages": self.messages.iter().map(written).collect::<Vec<_>>(),
        })
        .to_string();
        own_file::put_whole(dir, FILE, text.as_bytes())
            .map_err(|error| io::Error::other(error.to_string()))
    }

    /// What is kept in a session's directory; `None` if nothing usable is.
    #[must_use]
    pub fn look(dir: &Path) -> Option<Self> {
        let file = own_file::open(&dir.join(FILE), Access::Read).ok()?;
        let mut text = String::new();
        file.take(BYTES_MAX).read_to_string(&mut text).ok()?;
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
            is_silent: false,
        })
    }
}

/// Forgets what was said in a session; that there is nothing is no error.
///
/// No session works on it meanwhile: one that did would keep it anew.
///
/// # Errors
/// `busy`: another program has the session open. The disk's.
pub fn forget(dir: &Path) -> Result<(), LedgerError> {
    let _nobody_has_it = audit::hold(dir)?;
    super::waiting::forget(dir);
    let file = dir.join(FILE);
    match fs::remove_file(&file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LedgerError::Io(file, error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Every session that is kept, the newest first.
#[must_use]
pub fn all(state_dir: &Path) -> Vec<(String, History)> {
    let mut found: Vec<(String, History)> = fs::read_dir(state_dir.join(DIR))
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let id = entry.file_name().into_string().ok()?;
            if !is_id(&id) {
                return None;
            }
            Some((id, History::look(&entry.path())?))
        })
        .collect();
    found.sort_by(|(one, left), (other, right)| {
        right
            .updated
            .cmp(&left.updated)
            .then_with(|| one.cmp(other))
    });
    found
}

fn written(message: &Message) -> Value {
    match message {
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
    }
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

    use super::{History, all, dir_of, is_id, new_id};
    use crate::model::{Message, ProposedCall};

    #[test]
    fn a_conversation_comes_back_as_it_was() {
        let state = tempfile::tempdir().expect("directory");
        let id = new_id().expect("id");
        assert!(is_id(&id));
        let dir = dir_of(state.path(), &id);
        std::fs::create_dir_all(&dir).expect("directory");
        let mut history = History::new("/w".into());
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
        assert_eq!(History::look(&dir), Some(history.clone()));
        assert_eq!(history.title.as_deref(), Some("first line"));
        assert!(history.has_data());
        assert_eq!(all(state.path()), [(id, history)]);
        let mode = std::fs::metadata(dir.join("conversation.json"))
            .expect("file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_was_attached_to_a_prompt_was_read_and_stays_so() {
        let state = tempfile::tempdir().expect("directory");
        let mut history = History::new("/w".into());
        history.note(&[Message::User("words".into())]);
        assert!(!history.has_data());
        history.keep(state.path()).expect("kept");
        let look = || History::look(state.path()).expect("history");
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
