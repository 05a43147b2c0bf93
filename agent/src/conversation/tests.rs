//! A conversation comes back as it was, is listed without what was said, and is cut where it is too long.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use super::{
    About, Conversation, FILE, Keeper, Mark, OLDER_FILE, Shelf, When, all, is_id, lines, new_id,
    own_file,
};
use crate::model::{Message, ProposedCall};

fn keep(said: &Conversation, dir: &Path) {
    let kept = Keeper::default().keep(dir, said, 0, When::After);
    kept.expect("kept");
}

fn user(words: &str) -> Message {
    Message::User(words.to_owned())
}

fn answer(text: &str) -> Message {
    Message::Assistant {
        text: text.to_owned(),
        calls: Vec::new(),
    }
}

fn result(text: &str) -> Message {
    Message::Tool {
        call: "c".into(),
        tool: "terminal".into(),
        text: text.to_owned(),
    }
}

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
    history.mark = Some(Mark::of((u64::MAX, 7)));
    keep(&history, &dir);
    keep(&history, &dir);
    assert_eq!(Conversation::look(&dir), Some(history.clone()));
    assert_eq!(history.title.as_deref(), Some("first line"));
    assert!(history.has_data());
    let about = About {
        cwd: history.cwd.clone(),
        title: history.title.clone(),
        updated: history.updated.clone(),
        started: history.started,
        bytes: std::fs::metadata(dir.join(FILE)).expect("file").len(),
    };
    assert_eq!(all(Shelf::Editor, state.path()), [(id, about)]);
    assert_eq!(all(Shelf::Terminal, state.path()), []);
    let mode = std::fs::metadata(dir.join(FILE))
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
    let (text, _) = history.text(usize::MAX, 0);
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
    history.note(&[
        Message::User("first".into()),
        result(&"x".repeat(1000)),
        answer("done"),
        Message::User("second".into()),
        answer("done, too"),
        Message::User("third".into()),
        answer("as well"),
    ]);
    let look = |bytes_max: usize, end_bytes_max: usize| {
        let (text, _) = history.text(bytes_max, end_bytes_max);
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
    history.note(&[user("words")]);
    assert!(!history.has_data());
    keep(&history, state.path());
    let look = || Conversation::look(state.path()).expect("history");
    assert!(!look().has_data());
    history.has_read = true;
    keep(&history, state.path());
    assert!(look().has_data());
    // Written by a version that did not say so.
    let file = state.path().join(FILE);
    let text = std::fs::read_to_string(&file).expect("text");
    let older = text.replace("\"read\":true,", "");
    assert_ne!(older, text);
    std::fs::write(&file, older).expect("written");
    assert!(look().has_data());
}

#[test]
fn what_an_older_version_kept_is_forgotten_with_the_rest() {
    let dir = tempfile::tempdir().expect("directory");
    for name in [FILE, OLDER_FILE] {
        own_file::put_whole(dir.path(), name, b"words").expect("written");
    }
    super::forget(dir.path()).expect("forgotten");
    let left = std::fs::read_dir(dir.path()).expect("read").count();
    assert_eq!(left, 0);
    // There is nothing any more, which is what was wanted.
    super::forget(dir.path()).expect("forgotten");
}

#[test]
fn what_an_older_version_kept_is_read_listed_and_gone_on_with() {
    let state = tempfile::tempdir().expect("directory");
    let id = new_id().expect("id");
    let dir = Shelf::Terminal.dir_of(state.path(), &id);
    std::fs::create_dir_all(&dir).expect("directory");
    let text = r#"{"cwd":"/w","read":false,"title":"t","updated":"2026-01-02T03:04:00Z","messages":[{"user":"words"},{"assistant":"yes","calls":[]}]}"#;
    own_file::put_whole(&dir, OLDER_FILE, text.as_bytes()).expect("written");
    let mut said = Conversation::look(&dir).expect("a conversation");
    assert_eq!(said.messages, [user("words"), answer("yes")]);
    let listed = all(Shelf::Terminal, state.path());
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].1.updated, "2026-01-02T03:04:00Z");
    said.note(&[user("words"), answer("yes"), user("more")]);
    keep(&said, &dir);
    assert!(!dir.join(OLDER_FILE).exists());
    assert_eq!(Conversation::look(&dir), Some(said));
    super::forget(&dir).expect("forgotten");
    assert!(all(Shelf::Terminal, state.path()).is_empty());
}

#[test]
fn what_is_added_turn_by_turn_reads_as_what_is_written_whole() {
    let state = tempfile::tempdir().expect("directory");
    let dir = state.path();
    let mut keeper = Keeper::default();
    let mut said = Conversation::new("/w".into());
    let mut all = vec![Message::System("place".into()), user("first")];
    let mut add = |all: &[Message], has_read: bool, when: When| {
        let unchanged = said.note(all);
        said.has_read |= has_read;
        said.mark = Some(Mark::of((5, all.len() as u64)));
        keeper.keep(dir, &said, unchanged, when).expect("kept");
        assert_eq!(Conversation::look(dir).as_ref(), Some(&said));
    };
    add(&all, false, When::Within);
    all.push(result("what was read"));
    add(&all, true, When::Within);
    all.push(answer("held back"));
    all.push(user("check it"));
    all.push(answer("in other words"));
    add(&all, false, When::Within);
    // The reminder goes with its turn.
    all.drain(3..5);
    add(&all, false, When::After);
    add(&all, false, When::After);
    all.push(user("second"));
    add(&all, false, When::After);
    // Somebody took the file away meanwhile: nothing of it is lost.
    std::fs::remove_file(dir.join(FILE)).expect("gone");
    all.push(answer("done"));
    add(&all, false, When::After);
}

#[test]
fn what_was_being_written_when_the_program_ended_is_left_out_and_nothing_else() {
    let mut said = Conversation::new("/w".into());
    said.note(&[user("first"), answer("yes"), user("second")]);
    let (text, _) = said.text(usize::MAX, 0);
    let second = text.find("{\"user\":\"second").expect("there");
    for cut in second..text.len() {
        let read = lines::read(&text.as_bytes()[..cut]).expect("a conversation");
        assert_eq!(read.messages, said.messages[..2], "{cut}");
    }
    let room = [text.as_bytes(), &[0; 40]].concat();
    assert_eq!(lines::read(&room), Some(said.clone()));
    // What is damaged in its midst is not taken for shorter than it was.
    let damaged = text.replace("{\"assistant\"", "{assistant\"");
    assert_eq!(lines::read(damaged.as_bytes()), None);
    assert_eq!(lines::read(b""), None);
}

#[test]
fn what_was_read_stays_read_when_its_words_are_replaced() {
    let text = "{\"cwd\":\"/w\",\"updated\":\"u\",\"read\":false}\n\
                {\"tool\":\"t\",\"call\":\"c\",\"text\":\"x\"}\n{\"from\":0}\n{\"user\":\"y\"}\n";
    let said = lines::read(text.as_bytes()).expect("a conversation");
    assert_eq!(said.messages, [user("y")]);
    assert!(said.has_data());
}

#[test]
fn what_is_no_id_never_becomes_a_path() {
    for id in ["", "..", "../x", "0123", &"g".repeat(32), &"A".repeat(32)] {
        assert!(!is_id(id), "{id}");
    }
}
