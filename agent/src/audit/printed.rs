//! A record as a person reads it: on one line that cannot draw, with the time of day, and with
//! paths where the ledger has the session's own names.
//!
//! Records carry the machine's clock, which counts from its start and is set by nobody. When a
//! session began by the calendar stands in a note of it, and from there the time of its other
//! records is counted; the few before that note have none.
//!
//! A session knows a directory by a number, and its records say `dir0:notes.txt`. Which
//! directory that is stands in a note of the session. The file stays as it was written;
//! what is checked, compared and handed to programs has the session's names.

use std::collections::BTreeMap;

use hermitcrab_core::audit::Record;
use jiff::{SignedDuration, Timestamp};

use super::{read, show};
use crate::screen::visible;

/// What a note says of a directory, between its name and its path.
const IS: &str = " is /";

/// What a note says of when the session began, before the moment.
const BEGUN: &str = "begun ";
/// A digest of nothing, as records spell it.
const NO_DIGEST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

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
    /// When the session at hand noted that it began, by the machine's clock in milliseconds
    /// and by the calendar.
    begun: Option<(u64, Timestamp)>,
}

impl Printed {
    /// The record for a person: its number, when it was written, what it is and what it says.
    pub fn line(&mut self, record: &Record) -> String {
        let text = self.text(record);
        let when = self.moment(record.at.as_millis()).unwrap_or_default();
        format!("{:>6} {when:<20} {:<9} {text}", record.seq, record.kind)
    }

    /// The record's text for a person.
    fn text(&mut self, record: &Record) -> String {
        let opened = read::session_opened(record);
        if opened.is_some() {
            *self = Self::default();
        }
        let text = match (record.kind.as_str(), opened) {
            ("note", _) => {
                self.hear(record);
                record.text.clone()
            }
            // As `hermitcrab session` names it.
            (_, Some(number)) => record.text.replacen(number, &show::named(number), 1),
            ("granted" | "forwarded", None) => {
                self.spelled(&self.with_its_end(&record.text, record.at.as_millis()))
            }
            (_, None) => self.spelled(&without_no_digest(&record.text)),
        };
        visible(&text).replace('\n', " ")
    }

    /// A moment of the machine's clock by the calendar, if it is known what that was.
    fn moment(&self, at_ms: u64) -> Option<String> {
        let (began_ms, began) = self.begun?;
        let since = i64::try_from(at_ms)
            .ok()?
            .checked_sub(i64::try_from(began_ms).ok()?)?;
        let moment = began.checked_add(SignedDuration::from_millis(since)).ok()?;
        Some(moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    }

    /// What was granted, with the end of it as a person counts.
    fn with_its_end(&self, text: &str, now_ms: u64) -> String {
        let spelled = || {
            let (before, rest) = text.split_once(" until ")?;
            let (until, after) = rest.split_once("ms:")?;
            let until: u64 = until.parse().ok()?;
            let end = match self.moment(until) {
                Some(moment) => format!("until {moment}"),
                None => format!("for {} seconds", until.checked_sub(now_ms)? / 1000),
            };
            Some(format!("{before} {end}:{after}"))
        };
        spelled().unwrap_or_else(|| text.to_owned())
    }

    /// A note of another kind begins with other words.
    fn hear(&mut self, record: &Record) {
        let note = record.text.as_str();
        if let Some(began) = note.strip_prefix(BEGUN) {
            // Only the first says it of the session: what others note is no clock.
            let moment = began.split(' ').next().and_then(|began| began.parse().ok());
            let here = moment.map(|moment| (record.at.as_millis(), moment));
            self.begun = self.begun.or(here);
            return;
        }
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

/// The text without digests of nothing, which most looks at files have.
fn without_no_digest(text: &str) -> String {
    text.replace(&format!("{NO_DIGEST} "), "")
        .replace(&format!(" {NO_DIGEST}"), "")
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
        check("opened", "session=5", "session=0000000000000005");
        check("granted", "fs.read dir0:a", "fs.read dir0:a");
    }

    #[test]
    fn when_something_was_allowed_and_until_when_is_told_by_the_calendar() {
        let mut printed = Printed::default();
        let mut line = |at: u64, kind: &str, text: &str| {
            let record = Record {
                at: Instant::from_millis(at),
                ..record(kind, text)
            };
            printed.line(&record)
        };
        let granted = "grant1 to agent0 by user uses uncounted until 3605000ms: fs.read dir0:a";
        let before = line(4_500, "granted", granted);
        assert!(before.contains(" for 3600 seconds: fs.read"), "{before}");
        assert!(line(4_500, "opened", "session=17").ends_with("session=0000000000000011"));
        let begun = line(5_000, "note", "begun 2026-01-31T23:59:59Z in /w, prompt");
        assert!(begun.contains(" 2026-01-31T23:59:59Z note "), "{begun}");
        let answered = line(7_000, "answered", "question0 once shown 5efe");
        assert_eq!(
            answered,
            "     0 2026-02-01T00:00:01Z answered  question0 once shown 5efe"
        );
        let granted = line(7_000, "granted", granted);
        assert!(
            granted.contains(" until 2026-02-01T00:59:59Z: "),
            "{granted}"
        );
        // A note that only sounds so moves no clock.
        let _heard = line(8_000, "note", "begun 1999-01-01T00:00:00Z in /w, prompt");
        let done = line(9_000, "outcome", &format!("call0 done {}", "0".repeat(64)));
        assert_eq!(done, "     0 2026-02-01T00:00:03Z outcome   call0 done");
        // Another session has another beginning.
        assert!(line(9_500, "opened", "session=18").starts_with("     0                      "));
    }
}
