//! The words a person at a terminal answers a question with, and what they mean.
//!
//! Only the words offered mean yes. Anything else is explained and asked about
//! again a few times, so that a slip of the finger does not throw away what a
//! command has done; it never becomes a yes.

use std::fmt::Write as _;

use hermitcrab_core::{
    approval::{Reply, Scope},
    authority::{Reversibility, Verb},
    standing::PortableObject,
};

use crate::ports::{Keep, Prompt};

/// How often one question is put to somebody who answers with other words.
pub const TRIES_MAX: u32 = 3;
/// Files and directories one answer may delete without a second word.
const DELETED_MAX: usize = 20;
/// Of so many files below one directory a grant for all of it is worth a word.
const FILES_FOR_A_GRANT: usize = 3;
/// Lines a person sees at once; what is longer is summed up below.
const LINES_AT_ONCE: usize = 30;

/// The words offered, but for `deny`.
#[must_use]
pub const fn offered(widest: Scope) -> &'static str {
    match widest {
        Scope::Once => "once, ",
        Scope::Session => "once, session, ",
        Scope::Always => "once, session, always, repeat, never, ",
    }
}

/// What each word offered means.
#[must_use]
pub fn explained(widest: Scope) -> String {
    let words = [
        (Scope::Once, "once", "yes, this one time"),
        (
            Scope::Session,
            "session",
            "yes, also to the same effects in this session",
        ),
        (
            Scope::Always,
            "always",
            "yes, also from now on; `caps` lists and ends it",
        ),
        (
            Scope::Always,
            "repeat",
            "yes to exactly this, now and later",
        ),
        (Scope::Always, "never", "no to exactly this, now and later"),
        (
            Scope::Once,
            "deny",
            "no, nothing is kept; an empty line is a no, too",
        ),
    ];
    let mut text = String::new();
    for (scope, word, meaning) in words {
        if scope <= widest {
            // Writing to a string does not fail.
            let _ = writeln!(text, "  {word:<8} {meaning}");
        }
    }
    text
}

/// What a line at the terminal means; only the words offered mean yes.
#[must_use]
pub fn said(line: &str, widest: Scope) -> (Reply, Keep) {
    match line {
        "" | "n" | "no" => (Reply::No, Keep::Nothing),
        // Yes or no to exactly this, now and when it is asked again.
        "repeat" if widest == Scope::Always => (Reply::Yes(Scope::Once), Keep::Repeat),
        "never" if widest == Scope::Always => (Reply::No, Keep::Repeat),
        words => match Reply::parse(words) {
            Reply::Yes(scope) if scope > widest => {
                (Reply::Unknown(words.to_owned()), Keep::Nothing)
            }
            reply => (reply, Keep::Nothing),
        },
    }
}

/// Why an answer is worth a second look, if it is.
#[must_use]
pub fn risk(prompt: &Prompt<'_>) -> Option<String> {
    let mut uncovered = prompt.question.uncovered();
    let deleted = count(prompt, Verb::FsDelete);
    if uncovered.any(|action| action.cap().reversibility() == Reversibility::Irrevocable) {
        Some("this cannot be undone from here".to_owned())
    } else if deleted > DELETED_MAX {
        Some(format!("this deletes {deleted} files and directories"))
    } else {
        None
    }
}

/// Where what is shown is longer than a screen: how much it is, in a line that
/// stands beside the question.
#[must_use]
pub fn in_all(prompt: &Prompt<'_>) -> Option<String> {
    let lines = prompt.shown.trim_end().lines().count();
    let changes: Vec<String> = [
        (Verb::FsCreate, "created"),
        (Verb::FsModify, "changed"),
        (Verb::FsDelete, "deleted"),
    ]
    .into_iter()
    .map(|(verb, word)| (count(prompt, verb), word))
    .filter(|(number, _)| *number > 0)
    .map(|(number, word)| format!("{number} {word}"))
    .collect();
    (lines > LINES_AT_ONCE && !changes.is_empty()).then(|| {
        format!(
            "{lines} lines; files and directories: {}",
            changes.join(", ")
        )
    })
}

/// Where several files below one directory are asked about: the grants that would hold
/// all below it, for whoever asks what can be answered.
#[must_use]
pub fn grants_for_all(prompt: &Prompt<'_>) -> Option<String> {
    let mut verbs = Vec::new();
    let mut above: Option<Vec<&[u8]>> = None;
    for cap in prompt.portable {
        let cap = cap.as_ref()?;
        let PortableObject::Place(place) = cap.object() else {
            return None;
        };
        if !Verb::FILES.contains(&cap.verb()) {
            return None;
        }
        if !verbs.contains(&cap.verb()) {
            verbs.push(cap.verb());
        }
        // Of several names that are not the same what they share is a directory.
        let names: Vec<&[u8]> = place.components().collect();
        let shared = above.take().unwrap_or_else(|| names.clone());
        let alike = shared
            .iter()
            .zip(&names)
            .take_while(|(one, other)| one == other);
        above = Some(alike.map(|(one, _)| *one).collect());
    }
    let above =
        above.filter(|above| prompt.portable.len() >= FILES_FOR_A_GRANT && !above.is_empty())?;
    let dir = String::from_utf8(above.join(&b'/')).ok()?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+@".contains(letter);
    if prompt.question.widest() == Scope::Once || !dir.chars().all(is_plain) {
        return None;
    }
    let grants: Vec<String> = verbs.iter().map(|verb| format!("{verb}=/{dir}")).collect();
    Some(format!(
        "  to hold all below one directory, and not be asked: `grant {}` at the prompt, `--grant` of `exec`\n",
        grants.join(" ")
    ))
}

fn count(prompt: &Prompt<'_>, verb: Verb) -> usize {
    prompt
        .question
        .uncovered()
        .filter(|action| action.verb() == verb)
        .count()
}

#[cfg(test)]
mod tests {
    use super::{Keep, Reply, Scope, explained, offered, said};

    #[test]
    fn only_the_words_offered_mean_yes() {
        let check = |line: &str, widest: Scope, reply: Reply, keep: Keep| {
            assert_eq!(said(line, widest), (reply, keep), "{line}");
        };
        check("once", Scope::Once, Reply::Yes(Scope::Once), Keep::Nothing);
        check(
            "always",
            Scope::Always,
            Reply::Yes(Scope::Always),
            Keep::Nothing,
        );
        check(
            "repeat",
            Scope::Always,
            Reply::Yes(Scope::Once),
            Keep::Repeat,
        );
        check("never", Scope::Always, Reply::No, Keep::Repeat);
        for line in ["", "n", "no", "deny"] {
            check(line, Scope::Always, Reply::No, Keep::Nothing);
        }
        for line in ["y", "yes", "ok", "Once", "always!", "deny it", "?"] {
            let unknown = Reply::Unknown(line.to_owned());
            check(line, Scope::Always, unknown, Keep::Nothing);
        }
        // What is asked about each time is not kept, whatever is typed.
        for line in ["repeat", "never", "always", "session"] {
            let unknown = Reply::Unknown(line.to_owned());
            check(line, Scope::Once, unknown, Keep::Nothing);
        }
    }

    #[test]
    fn exactly_the_words_offered_are_explained() {
        for widest in [Scope::Once, Scope::Session, Scope::Always] {
            let explained = explained(widest);
            let words: Vec<&str> = explained
                .lines()
                .filter_map(|line| line.split_whitespace().next())
                .collect();
            let offered = format!("{}deny", offered(widest));
            assert_eq!(words, offered.split(", ").collect::<Vec<_>>());
        }
    }
}
