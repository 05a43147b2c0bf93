//! The words a person at a terminal answers a question with, and what they mean.
//!
//! Only the words offered mean yes. Anything else is explained and asked about
//! again a few times, so that a slip of the finger does not throw away what a
//! command has done; it never becomes a yes.

mod below;
mod summed;

use std::{fmt::Write as _, path::Path};

use hermitcrab_core::{
    action::Action,
    approval::{Question, Reply, Scope},
    authority::{Extent, Object, Reversibility, Verb},
};

pub use below::Below;
pub use summed::{grant_of_most, in_all};

use crate::ports::{Keep, Prompt};

/// How often one question is put to somebody who answers with other words.
pub const TRIES_MAX: u32 = 3;
/// Files and directories one answer may delete without a second word.
const DELETED_MAX: usize = 20;
/// Of so many files below one directory a grant for all of it is worth a word.
const FILES_FOR_A_GRANT: usize = 3;

/// The words offered, but for `deny`.
#[must_use]
pub const fn offered(widest: Scope, below: Option<&Below>) -> &'static str {
    match (widest, below) {
        (Scope::Once, _) => "once, ",
        (Scope::Session, None) => "once, session, ",
        (Scope::Session, Some(_)) => "once, session, below, ",
        (Scope::Always, None) => "once, session, always, repeat, never, ",
        (Scope::Always, Some(_)) => "once, session, below, always, repeat, never, ",
    }
}

/// Whether all that lies below a place is asked about as well.
#[must_use]
pub fn extent(question: &Question) -> Extent {
    let is_tree = |action: &Action| {
        let extent = Extent::Tree;
        matches!(action.object(), Object::Dir { extent: asked, .. } if *asked == extent)
    };
    if question.uncovered().any(is_tree) {
        Extent::Tree
    } else {
        Extent::Alone
    }
}

/// What each word offered means, where so much of a place is asked about; `below` is offered
/// where there is such a directory.
#[must_use]
pub fn explained(widest: Scope, extent: Extent, below: Option<&Below>) -> String {
    let session = match extent {
        Extent::Alone => "yes, also to the same effects on the same names in this session",
        Extent::Tree => {
            "yes, also to the same effects in this session, on the same places and all in them"
        }
    };
    let words = [
        (Scope::Once, "once", "yes, this one time"),
        (Scope::Session, "session", session),
        (
            Scope::Always,
            "always",
            "yes, the same from now on, in other sessions, too; `caps` lists and ends it",
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
        if let (Some(below), "session") = (below, word) {
            let _ = writeln!(text, "  below    yes, and in this session to {below}");
        }
    }
    text
}

/// What a line at the terminal means; only the words offered mean yes.
#[must_use]
pub fn said(line: &str, widest: Scope, below: Option<&Below>) -> (Reply, Keep) {
    match (line, below) {
        ("below", Some(below)) if widest > Scope::Once => {
            let held = Keep::Hold(below.clone().granted());
            (Reply::Yes(Scope::Session), held)
        }
        (words, _) => said_to_what_is_shown(words, widest),
    }
}

fn said_to_what_is_shown(line: &str, widest: Scope) -> (Reply, Keep) {
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

/// What to type for a word that may be meant as a yes: it does not say how far that goes, so
/// it is none.
#[must_use]
pub fn meant(word: &str) -> &'static str {
    match word.to_ascii_lowercase().as_str() {
        "y" | "yes" | "ok" => ": `once` is a yes to this, this one time",
        _ => "",
    }
}

/// What a yes for all of a directory lets be done, for a second look at it.
#[must_use]
pub fn held(below: &Below) -> String {
    format!("unasked until this session ends or `revoke` ends it: {below}")
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

/// Where several files below one directory are asked about: the grants that would hold
/// all below it, for whoever asks what can be answered.
#[must_use]
pub fn grants_for_all(prompt: &Prompt<'_>) -> Option<String> {
    let below = Below::of(prompt).filter(|below| below.names() >= FILES_FOR_A_GRANT)?;
    let grants = below.typed()?;
    Some(format!(
        "  to hold all below one directory, and not be asked: `grant {grants}` at the prompt, `--grant` of `exec`, `hermitcrab caps grant` to keep it\n"
    ))
}

/// Where something beside the workspace is looked at: the grants that hold the directory it
/// is in. That is no answer to a question about one name; it is said in full by who wants it.
#[must_use]
pub fn grants_to_look(prompt: &Prompt<'_>, workspace: &Path) -> Option<String> {
    let below = Below::of(prompt)?.looked_at_beside(workspace)?;
    let grants = below.typed()?;
    Some(format!(
        "  to have all of that directory looked at, and not be asked: `grant {grants}` at the prompt, `hermitcrab caps grant` to keep it\n"
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
    use hermitcrab_core::authority::Extent;

    use super::{Keep, Reply, Scope, explained, offered, said};

    #[test]
    fn only_the_words_offered_mean_yes() {
        let check = |line: &str, widest: Scope, reply: Reply, keep: Keep| {
            assert_eq!(said(line, widest, None), (reply, keep), "{line}");
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
        for line in ["y", "yes", "ok", "Once", "always!", "deny it", "?", "below"] {
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
            let explained = explained(widest, Extent::Alone, None);
            let words: Vec<&str> = explained
                .lines()
                .filter_map(|line| line.split_whitespace().next())
                .collect();
            let offered = format!("{}deny", offered(widest, None));
            assert_eq!(words, offered.split(", ").collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_answer_about_all_of_a_place_is_not_said_to_be_about_names() {
        let said = |extent| explained(Scope::Always, extent, None);
        assert!(said(Extent::Alone).contains("on the same names in this session"));
        assert!(said(Extent::Tree).contains("on the same places and all in them"));
        assert!(!said(Extent::Tree).contains("names"));
    }
}
