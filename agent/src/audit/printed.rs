//! A record as a person reads it: on one line that cannot draw, and with paths where the
//! ledger has the session's own names.
//!
//! A session knows a directory by a number, and its records say `dir0:notes.txt`. Which
//! directory that is stands in a note of the session. The file stays as it was written;
//! what is checked, compared and handed to programs has the session's names.

use std::collections::BTreeMap;

use hermitcrab_core::audit::Record;

use super::read;
use crate::screen::visible;

/// What a note says of a directory, between its name and its path.
const IS: &str = " is /";

/// The note that says which directory this is; `path` is absolute and cannot draw.
#[must_use]
pub fn note_of_dir(dir: &str, path: &str) -> String {
    format!("{dir} is {path}")
}

/// Words records as they come, in the order in which they were written.
#[derive(Debug, Default)]
pub struct Printed {
    /// The directories of the session at hand.
    dirs: BTreeMap<String, String>,
}

impl Printed {
    /// The record's text for a person.
    pub fn text(&mut self, record: &Record) -> String {
        if read::session_opened(record).is_some() {
            self.dirs.clear();
        }
        let text = if record.kind == "note" {
            self.hear(&record.text);
            record.text.clone()
        } else {
            self.spelled(&record.text)
        };
        visible(&text).replace('\n', " ")
    }

    /// A note of another kind begins with other words.
    fn hear(&mut self, note: &str) {
        let Some((dir, path)) = note.split_once(IS) else {
            return;
        };
        let number = dir.strip_prefix("dir").unwrap_or_default();
        if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
            self.dirs.insert(dir.to_owned(), format!("/{path}"));
        }
    }

    /// The text with the path of each place behind a verb for files.
    fn spelled(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(" dir") {
            let (before, from) = rest.split_at(at + 1);
            out.push_str(before);
            rest = from;
            // A place is told alone, or all of it.
            let before = before.trim_end();
            let before = before.strip_suffix(" only").unwrap_or(before);
            let before = before.strip_suffix(" all of").unwrap_or(before);
            let verb = before.rsplit(' ').next().unwrap_or_default();
            let known = from
                .split_once(':')
                .filter(|_| verb.starts_with("fs."))
                .and_then(|(dir, below)| Some((self.dirs.get(dir)?, below)));
            let Some((path, below)) = known else {
                continue;
            };
            out.push_str(path);
            rest = match below.strip_prefix('.') {
                // The directory itself.
                Some(after) if after.is_empty() || after.starts_with([',', ' ']) => after,
                _ => {
                    if !path.ends_with('/') {
                        out.push('/');
                    }
                    below
                }
            };
        }
        out + rest
    }
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::{audit::Record, digest::Digest, time::Instant};

    use super::{Printed, note_of_dir};

    fn record(kind: &str, text: &str) -> Record {
        Record {
            seq: 0,
            at: Instant::from_millis(0),
            prev: Digest::NONE,
            kind: kind.to_owned(),
            text: text.to_owned(),
            digest: Digest::NONE,
        }
    }

    #[test]
    fn places_are_paths_where_the_session_says_which() {
        let mut printed = Printed::default();
        let mut check = |kind: &str, text: &str, expected: &str| {
            assert_eq!(printed.text(&record(kind, text)), expected);
        };
        check(
            "granted",
            "grant1: fs.read dir0:.",
            "grant1: fs.read dir0:.",
        );
        let note = note_of_dir("dir0", "/w");
        check("note", &note, "dir0 is /w");
        check("note", "dir1 is /", "dir1 is /");
        check("granted", "grant1: fs.read dir0:.", "grant1: fs.read /w");
        check(
            "intent",
            "call0: 00 fs.read dir0:a b.txt, 00 fs.delete dir1:etc/.x, 00 fs.list dir2:y",
            "call0: 00 fs.read /w/a b.txt, 00 fs.delete /etc/.x, 00 fs.list dir2:y",
        );
        check(
            "refused",
            "no-cap: fs.modify dir0:.env",
            "no-cap: fs.modify /w/.env",
        );
        // What is no place stays as it is, and what would draw is shown.
        check("refused", "x dir0:a", "x dir0:a");
        check(
            "granted",
            "grant1: fs.read only dir0:a, fs.list dir0:b",
            "grant1: fs.read only /w/a, fs.list /w/b",
        );
        check(
            "intent",
            "call0: 00 fs.delete all of dir0:a",
            "call0: 00 fs.delete all of /w/a",
        );
        check(
            "note",
            "a dry run: dir0 is /etc\n\u{1b}[2J",
            "a dry run: dir0 is /etc \\u{1b}[2J",
        );
        check("granted", "fs.read dir0:a", "fs.read /w/a");
        check("opened", "session=5", "session=5");
        check("granted", "fs.read dir0:a", "fs.read dir0:a");
    }
}
