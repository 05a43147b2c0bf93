//! What generated cases of all kinds share: where they are said, and a case
//! before it says what is its own.
//!
//! A kind of specimen adds its files, grants and script; the settings, the
//! deadline and who judges are the same for all, so that two kinds differ in
//! nothing but what they hunt with.

use bisim_world::protocol::Flip;
use bisim_world::protocol::{Context, FileSpec, Step, UserModel};
use serde_json::{Map, json};

use crate::case::{CaseFile, Expect, Must, Source, WorldPatch};

/// A person at a terminal as often as all the others together.
pub const CONTEXTS: [Context; 8] = [
    Context::Interactive,
    Context::Gateway,
    Context::Interactive,
    Context::Cron,
    Context::Interactive,
    Context::Acp,
    Context::Interactive,
    Context::Headless,
];

/// Where notes are kept, which whoever makes them holds.
pub const MEMORIES: &str = "/home/u/.hermes/memories";
/// The same, of skills.
pub const SKILLS: &str = "/home/u/.hermes/skills";
/// The same, of jobs.
pub const JOBS: &str = "/home/u/.hermes/cron";

/// The context a name does not say.
pub const USUAL: Context = Context::Interactive;

/// How long one case may take.
const DEADLINE_MS: u64 = 60_000;

/// What is written behind a name to say where it is.
#[must_use]
pub fn suffix(context: Context) -> String {
    match context {
        USUAL => String::new(),
        other => format!("@{}", other.word()),
    }
}

/// A name without what is written behind it, and where that says it is; `None` for
/// words that mean nothing, and for the usual context, which is not written.
#[must_use]
pub fn split(name: &str) -> Option<(&str, Context)> {
    let Some((name, word)) = name.split_once('@') else {
        return Some((name, USUAL));
    };
    let mut said = Context::ALL.into_iter().filter(|known| *known != USUAL);
    let context = said.find(|known| known.word() == word)?;
    Some((name, context))
}

/// A case judged by the relation alone, whose user denies every prompt and who holds
/// nothing; `row` is the name it is made again from.
#[must_use]
pub fn case_file(row: String, context: Context, script: Vec<Step>) -> CaseFile {
    let mut settings = Map::new();
    settings.insert("approvals.mode".to_owned(), json!("manual"));
    settings.insert("lsp.enabled".to_owned(), json!(false));
    CaseFile {
        id: String::new(),
        comment: String::new(),
        flags: Vec::new(),
        source: Some(Source {
            from: "campaign".to_owned(),
            row,
            note: String::new(),
        }),
        world: None,
        context: Some(context),
        user: Some(UserModel::DenyAll),
        drive: None,
        held: Some(Vec::new()),
        rules: None,
        settings,
        script,
        deadline_ms: Some(DEADLINE_MS),
        hermes: None,
        agent: None,
        expect: Some(either("the relation alone judges")),
        recorded: std::collections::BTreeMap::new(),
    }
}

/// Nothing is asked of the agent by the case itself, for this reason.
#[must_use]
pub fn either(reason: &str) -> Expect {
    Expect {
        agent: Must::Either,
        reason: reason.to_owned(),
        effects: None,
        steps: None,
    }
}

/// These entries beside the template's.
#[must_use]
pub fn world(files: Vec<FileSpec>, flip: Option<Flip>) -> Option<WorldPatch> {
    Some(WorldPatch {
        cwd: None,
        files,
        flip,
        serves: None,
        conversations: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_every_context_but_the_usual_and_no_other_words() {
        for context in Context::ALL {
            let name = format!("x+y~1{}", suffix(context));
            assert_eq!(split(&name), Some(("x+y~1", context)));
        }
        assert_eq!(split("x@interactive"), None);
        assert_eq!(split("x@nowhere"), None);
        assert_eq!(split("x@cron@cron"), None);
    }

    #[test]
    fn half_of_all_is_said_at_a_terminal_and_every_context_is_dealt() {
        let usual = CONTEXTS.iter().filter(|known| **known == USUAL);
        assert_eq!(usual.count() * 2, CONTEXTS.len());
        assert!(Context::ALL.iter().all(|known| CONTEXTS.contains(known)));
    }
}
