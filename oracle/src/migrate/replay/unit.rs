//! A few calls of one session, to be run one after the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::migrate::history::{Call, Session};

use super::files::Workspace;
use super::place::Places;

/// Calls that go into one world.
pub const CALLS_MAX: usize = 8;

/// Calls in order, and what is known of the files before them.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Whose they are.
    pub session: Session,
    /// The project it was in, as the host has it, where that is known.
    pub project: Option<String>,
    /// Its places.
    pub places: Places,
    /// What the session started from.
    pub workspace: Arc<Workspace>,
    /// The calls, with places of a world.
    pub calls: Vec<Call>,
    /// Files of a world that are known from earlier calls.
    pub known: BTreeMap<String, String>,
}

impl Unit {
    /// A digest of all that its outcome depends on, beside the terms (`under`).
    #[must_use]
    pub fn key(&self, under: &[u8; 32]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(under);
        hash.update(self.session.context().word());
        hash.update(format!(";{};", self.workspace.name));
        for (path, text) in &self.known {
            hash.update(format!("{}:{path}{}:{text}", path.len(), text.len()));
        }
        for call in &self.calls {
            let line = serde_json::json!([call.tool, call.args, call.result]).to_string();
            hash.update(format!("{}:{line}", line.len()));
        }
        hash.finalize().into()
    }

    /// Its first calls, and no more.
    #[must_use]
    pub fn up_to(&self, calls: usize) -> Self {
        let mut first = self.clone();
        first.calls.truncate(calls);
        first
    }
}

/// Why a tool's calls are not replayed at all; `None` if they are.
#[must_use]
pub fn never(tool: &str) -> Option<&'static str> {
    match tool {
        "terminal" | "read_file" | "write_file" | "patch" | "search_files" | "execute_code"
        | "todo" => None,
        "process" => Some("it names a background process of that time"),
        "delegate_task" | "mixture_of_agents" => Some("it needs a model"),
        // Its answers are ranks over all that was ever said, and its arguments name messages by
        // numbers of the database they were in.
        "session_search" => {
            Some("it looks through earlier conversations, which no world of a replay holds")
        }
        "memory" | "cronjob" | "skill_manage" | "skills_list" | "skill_view" | "clarify" => {
            Some("it is about Hermes' own state or its user, not about the workspace")
        }
        _ if tool.starts_with("web") || tool.starts_with("browser") => Some("it needs the network"),
        _ => Some("it is a service outside or a tool the agent does not have"),
    }
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::tool::Tool;

    use super::never;

    #[test]
    fn a_search_of_earlier_conversations_is_counted_apart_from_other_state() {
        let why = never("session_search").unwrap();
        assert!(why.contains("earlier conversations"), "{why}");
        let others = Tool::all_offered().filter(|tool| *tool != Tool::SessionSearch);
        for tool in others {
            assert_ne!(never(tool.as_str()), Some(why), "{tool}");
        }
    }
}
