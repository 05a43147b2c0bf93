//! A turn that the end of its program cut off: its calls get results, so that it can be
//! gone on with.
//!
//! A model's server takes no call without a result. What is told in its place must be true:
//! that its outcome is not known, and what the ledger says of the calls that were begun.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use serde_json::json;

use super::{Conversation, Mark};
use crate::{
    audit::{
        index,
        show::{self, Selection},
    },
    model::{Message, ProposedCall},
};

/// Calls on record that are told one by one.
const TOLD_MAX: usize = 8;

/// How somebody comes to go on with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Nobody else has it open: whoever did has ended.
    Over,
    /// It is copied, and whoever had it may still be at it.
    Copied,
}

impl Conversation {
    /// Gives a result to each call that has none. `ledgers` are the directories in one of
    /// which its last session has its ledger.
    pub fn close_calls(&mut self, ledgers: &[PathBuf], taken: Taken) {
        if open_calls(&self.messages).is_empty() {
            return;
        }
        let told = told(self.mark, ledgers, taken);
        // From the last to the first: what is put in moves only what comes after it.
        for (place, call) in open_calls(&self.messages).into_iter().rev() {
            let result = Message::Tool {
                call: call.id,
                tool: call.tool,
                text: json!({ "error": told }).to_string(),
            };
            self.times.resize(self.messages.len(), None);
            self.messages.insert(place, result);
            self.times.insert(place, None);
        }
    }
}

/// Each call without a result, and where its result belongs.
fn open_calls(messages: &[Message]) -> Vec<(usize, ProposedCall)> {
    let mut open = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        let Message::Assistant { calls, .. } = message else {
            continue;
        };
        let after = messages.get(place + 1..).unwrap_or_default();
        let mut results: Vec<&str> = after
            .iter()
            .map_while(|message| match message {
                Message::Tool { call, .. } => Some(call.as_str()),
                _ => None,
            })
            .collect();
        let end = place + 1 + results.len();
        for call in calls {
            match results.iter().position(|result| *result == call.id) {
                Some(known) => {
                    results.swap_remove(known);
                }
                None => open.push((end, call.clone())),
            }
        }
    }
    open
}

/// What is told in place of a result.
fn told(mark: Option<Mark>, ledgers: &[PathBuf], taken: Taken) -> String {
    let mut words = match taken {
        Taken::Over => "the program ended before the outcome of this call was known",
        Taken::Copied => {
            "this conversation was taken up before the outcome of this call was known, and whoever made it may still \
             be at it"
        }
    }
    .to_owned();
    let known = mark.and_then(|mark| {
        let ledger = ledgers
            .iter()
            .find(|ledger| has_session(ledger, mark.session))?;
        on_record(ledger, mark)
    });
    // Writing to a string cannot fail.
    let _ = match known {
        None => write!(
            words,
            "; nor is there a record of it. Look at what is there before you do it again"
        ),
        Some(calls) if calls.is_empty() => {
            write!(
                words,
                ". By the ledger it was not begun, so nothing was done for it"
            )
        }
        Some(calls) => {
            let listed: Vec<String> = calls.iter().take(TOLD_MAX).cloned().collect();
            let more = match calls.len().saturating_sub(TOLD_MAX) {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            write!(
                words,
                ". The ledger has of the calls begun since the last known result: {}{more}. Look at what is there before \
                 you do it again",
                listed.join("; ")
            )
        }
    };
    words
}

fn has_session(ledger: &Path, session: u64) -> bool {
    let wanted = session.to_string();
    index::entries(ledger)
        .iter()
        .any(|entry| entry.session == wanted)
}

/// What a session's ledger says of the calls from this one on; `None` if it cannot be read.
fn on_record(ledger: &Path, mark: Mark) -> Option<Vec<String>> {
    let wanted = Selection {
        session: Some(mark.session.to_string()),
        follow: false,
    };
    let mut calls: BTreeMap<u64, (String, String)> = BTreeMap::new();
    show::selected(ledger, &wanted, |record| {
        let mut words = record.text.split([' ', ':']);
        let number = words
            .next()
            .and_then(|word| word.strip_prefix("call"))
            .and_then(|number| number.parse().ok())
            .filter(|number| *number >= mark.calls);
        let Some(number) = number else {
            return ControlFlow::Continue(());
        };
        match record.kind.as_str() {
            // `call7 by agent0 terminal from …`
            "intent" => {
                let tool = words.nth(2).unwrap_or_default().to_owned();
                let begun = "was begun, and its end is not recorded: what it did may stand";
                calls.entry(number).or_insert((tool, begun.to_owned()));
            }
            "refused" | "outcome" => {
                let became = words.next().unwrap_or_default();
                let entry = calls.entry(number).or_default();
                entry.1 = format!("{}: {became}", record.kind);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })
    .ok()?;
    let worded = |(tool, became): (String, String)| {
        if tool.is_empty() {
            format!("a call, {became}")
        } else {
            format!("{tool}, {became}")
        }
    };
    Some(calls.into_values().map(worded).collect())
}
