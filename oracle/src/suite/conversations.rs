//! What is wrong with the conversations of a case: each would be found by one subject only,
//! or by both as something else than it says.

use std::collections::BTreeSet;

use bisim_world::protocol::Drive;

use crate::canon::MESSAGES_MAX;
use crate::case::Case;

/// The longest title that Hermes takes.
const TITLE_LETTERS_MAX: usize = 100;

/// Every problem of a case's conversations.
pub(super) fn lint(case: &Case, wrong: &mut Vec<String>) {
    let world = case.job.world.as_ref();
    let conversations = world.map_or(&[][..], |world| &world.conversations);
    if conversations.is_empty() {
        return;
    }
    if case.job.drive == Drive::Wire {
        wrong.push(
            "conversations are not put where the program that `wire` starts keeps its own; \
             drive the case otherwise"
                .to_owned(),
        );
    }
    let (mut ids, mut titles) = (BTreeSet::new(), BTreeSet::new());
    let mut before = (0, "");
    for one in conversations {
        let mut problem = |what: &str| wrong.push(format!("conversation `{}` {what}", one.id));
        if !is_id(&one.id) {
            problem("has an id that is not 32 hexadecimal digits in small letters");
        }
        if !ids.insert(&one.id) {
            problem("is there twice");
        }
        if let Some(title) = &one.title {
            if title.chars().count() > TITLE_LETTERS_MAX || title.is_empty() {
                problem("has a title that Hermes does not take: 1 to 100 letters");
            }
            if !titles.insert(title) {
                problem("has the title of another one");
            }
        }
        if one.messages.len() > MESSAGES_MAX {
            problem("has more messages than are told apart from those of the next one");
        }
        // Where two things are equally good, Hermes goes by the order they were entered in,
        // of which the agent knows no more than when they began and what they are called.
        let now = (one.started, one.id.as_str());
        if now < before {
            problem("began before the one in front of it: sort them by beginning and id");
        }
        before = now;
    }
}

fn is_id(id: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    id.len() == 32 && id.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::lint;
    use crate::case::{Case, Defaults};

    fn said(drive: &str, conversations: &Value) -> String {
        let file = json!({"id": "a", "drive": drive, "script": [],
            "world": {"conversations": conversations}});
        let file = serde_json::from_value(file).unwrap();
        let mut wrong = Vec::new();
        lint(&Case::resolve("s", &Defaults::default(), file), &mut wrong);
        wrong.join("; ")
    }

    #[test]
    fn conversations_that_would_not_be_the_same_for_both_are_found() {
        let one = |id: &str, started: u64, title: &str| json!({"id": id.repeat(32), "source": "cli", "started": started, "title": title});
        for (drive, conversations, part) in [
            ("calls", json!([one("g", 1, "t")]), "32 hexadecimal"),
            ("calls", json!([one("ab", 1, "t")]), "32 hexadecimal"),
            (
                "calls",
                json!([one("a", 1, "t"), one("a", 1, "u")]),
                "twice",
            ),
            (
                "calls",
                json!([one("a", 1, "t"), one("b", 1, "t")]),
                "title of another",
            ),
            ("calls", json!([one("a", 1, "")]), "1 to 100"),
            ("calls", json!([one("a", 1, &"x".repeat(101))]), "1 to 100"),
            (
                "calls",
                json!([one("b", 1, "t"), one("a", 1, "u")]),
                "sort them",
            ),
            (
                "calls",
                json!([one("a", 2, "t"), one("b", 1, "u")]),
                "sort them",
            ),
            ("wire", json!([one("a", 1, "t")]), "`wire`"),
        ] {
            let said = said(drive, &conversations);
            assert!(said.contains(part), "{conversations}: {said}");
        }
        let fine = json!([one("a", 1, "t"), one("b", 1, "u"), one("0", 2, "v")]);
        assert_eq!(said("calls", &fine), "");
        assert_eq!(said("wire", &json!([])), "");
    }
}
