//! What there is to read before a conversation's work begins, as far as it may be read.
//!
//! Only whether it is there is looked at, without a question; none of it is read here, so
//! nothing that lies in a directory says anything before its agent asks for it.

use hermitcrab_core::{authority::Verb, grant::AgentId, tool::Tool};
use hermitcrab_sandbox::dircap::Kind;

use super::{Hands, Runtime, result::ChangeSummary};

/// Files that say how work is done in a directory, in the order in which Hermes takes the
/// first there is (`build_context_files_prompt`).
const INSTRUCTIONS: [&str; 7] = [
    ".hermes.md",
    "HERMES.md",
    "AGENTS.md",
    "agents.md",
    "CLAUDE.md",
    "claude.md",
    ".cursorrules",
];
/// What `memory` keeps.
const NOTES: [&str; 2] = ["~/.hermes/memories/MEMORY.md", "~/.hermes/memories/USER.md"];
/// Where skills lie.
const SKILLS: &str = "~/.hermes/skills";

/// What there is to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beginning {
    /// The file in the agent's directory that says how work is done there.
    pub instructions: Option<&'static str>,
    /// Files of notes from earlier sessions.
    pub notes: Vec<&'static str>,
    /// Whether there are skills.
    pub has_skills: bool,
}

impl Runtime {
    /// What there is for this agent to read before it begins.
    pub fn beginning(&mut self, agent: AgentId) -> Beginning {
        let (mut questions, mut changes) = (Vec::new(), ChangeSummary::default());
        let by = (agent, Tool::ReadFile);
        let found = self.with_hands(by, &mut questions, &mut changes, |hands| Ok(found(hands)));
        // What cannot be recorded was not seen.
        found.unwrap_or_default()
    }
}

fn found(hands: &mut Hands<'_>) -> Beginning {
    let mut there = |path: &&'static str| {
        let Ok(place) = hands.resolve(path) else {
            return false;
        };
        hands.freely(Verb::FsRead, &place) && hands.kind_freely(&place) == Some(Kind::File)
    };
    let instructions = INSTRUCTIONS.into_iter().find(&mut there);
    let notes = NOTES.into_iter().filter(&mut there).collect();
    let skills = hands.resolve(SKILLS).ok();
    let names = skills.and_then(|place| hands.names_freely(&place));
    Beginning {
        instructions,
        notes,
        has_skills: names.is_some_and(|names| names.iter().any(|entry| entry.kind == Kind::Dir)),
    }
}
