//! What is said over the socket: a line of JSON each way.

use serde::{Deserialize, Serialize};

/// What somebody wants of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Tell what is held, by whom, and what waits for an answer.
    List,
    /// End a grant and everything derived from it.
    Revoke {
        /// Its number.
        grant: u32,
        /// Answer only when nothing runs on it any more.
        drain: bool,
    },
    /// Grant something to the session's first agent, as this program.
    Grant {
        /// Such as `fs.create`.
        verb: String,
        /// A place, absolute and without links; `*` for any program in the view.
        on: String,
        /// How long, in seconds; left out: as long as a session's grants.
        seconds: Option<u64>,
    },
    /// Pass a grant on to an agent, undiminished.
    Forward {
        /// Its number.
        grant: u32,
        /// The agent's.
        agent: u32,
    },
    /// End an agent, what it holds, and every agent it started.
    EndAgent {
        /// Its number.
        agent: u32,
    },
    /// From here on ask about everything, nothing, or not at all.
    Mode {
        /// `approve_all`, `prompt` or `reject_all`.
        mode: String,
    },
    /// Make a grant of a proposal, exactly as it was listed.
    Accept {
        /// Its number.
        proposal: u32,
        /// The digest listed with it.
        digest: String,
    },
    /// Turn a proposal down.
    Decline {
        /// Its number.
        proposal: u32,
    },
    /// Forget the answers that are repeated in this session.
    Forget,
    /// End the session and everything that runs in it.
    End,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "came", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// It is done; these grants ended or were made.
    Done {
        /// Their numbers.
        grants: Vec<u32>,
    },
    /// The session refuses.
    Refused {
        /// The stable code.
        code: String,
        /// For a person.
        why: String,
    },
    /// What [`Request::List`] asked for.
    Listing(Listing),
}

/// A session as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// Its number.
    pub session: String,
    /// Where it works.
    pub workspace: String,
    /// Whether an editor opened it.
    #[serde(default)]
    pub is_an_editors: bool,
    /// When its user is asked.
    pub mode: String,
    /// How many calls run.
    pub running: usize,
    /// Its agents, the first one first.
    pub agents: Vec<AgentRow>,
    /// Every grant that was made, oldest first.
    pub grants: Vec<GrantRow>,
    /// What waits for somebody to accept it.
    pub proposals: Vec<ProposalRow>,
}

/// One agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRow {
    /// Its number.
    pub agent: u32,
    /// Whether it is over.
    pub ended: bool,
}

/// One grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantRow {
    /// Its number.
    pub grant: u32,
    /// Who holds it.
    pub agent: u32,
    /// `live`, `orphaned`, `revoked`, `expired` or `exhausted`.
    pub state: String,
    /// How it came to be.
    pub origin: String,
    /// The grant it was derived from.
    pub from: Option<u32>,
    /// What it allows.
    pub what: String,
    /// How often it can still be used; left out: not counted.
    pub uses_left: Option<u64>,
    /// How long it still lasts, in seconds.
    pub seconds_left: u64,
}

/// One proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposalRow {
    /// Its number.
    pub proposal: u32,
    /// Who proposes it.
    pub judge: String,
    /// Who would hold it.
    pub agent: u32,
    /// What it would allow.
    pub what: String,
    /// Of what is listed here; to be repeated with a yes.
    pub digest: String,
}
