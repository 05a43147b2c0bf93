//! What a model types into a command that runs on a terminal of its own.
//!
//! Such a command may have been let reach peers before its agent had read anything, and goes
//! on reaching them. What is typed into it is as good as sent there: it is decided about like
//! whatever else is sent, by what is held at that moment and what was read by then.

use std::sync::Arc;

use hermitcrab_core::{
    action::Action, authority::Object, authority::Verb, digest::Digest, outcome::Outcome,
    session::Call, tool::Tool,
};

use super::super::{hands::Hands, turn::Stop, visible::marked};
use crate::digest::sha256;

impl Hands<'_> {
    /// The peers a command gets that is started now.
    pub(super) fn reached_from_now(&self) -> Vec<Object> {
        self.network(Tool::Terminal, Digest::NONE)
            .into_iter()
            .filter(|action| action.verb() == Verb::NetConnect)
            .map(|action| action.object().clone())
            .collect()
    }

    /// Types this on the terminal of one; `None` if it has no terminal.
    ///
    /// # Errors
    /// It reaches somebody to whom this may not be sent.
    pub fn type_into(&mut self, id: &str, text: &str) -> Result<Option<std::io::Result<()>>, Stop> {
        let Some(job) = self.own_job(id) else {
            return Ok(None);
        };
        let (shared, command) = (Arc::clone(&job.shared), job.command.clone());
        let reaches = job.reaches.clone();
        let Some(terminal) = shared.terminal() else {
            return Ok(None);
        };
        if reaches.is_empty() || text.is_empty() {
            return Ok(Some(terminal.write(text.as_bytes())));
        }
        let peers: Vec<String> = reaches.iter().map(ToString::to_string).collect();
        let digest = sha256(text.as_bytes());
        let actions: Result<Vec<Action>, _> = reaches
            .into_iter()
            .map(|peer| Action::new(Verb::NetConnect, peer, digest))
            .collect();
        let event = self.called(Call {
            by: self.by,
            tool: Tool::Process,
            actions: actions.map_err(|error| Stop::Broken(error.to_string()))?,
        });
        let shown = format!(
            "type into the command: {}\nwhich reaches {}\nthis:\n{}",
            marked(&command),
            peers.join(", "),
            marked(text),
        );
        let (mut turn, _) = self.turn();
        let (call, done) = turn.begin(
            event,
            |_| shown,
            |permits| {
                for permit in permits {
                    let _spent = permit.spend();
                }
                terminal.write(text.as_bytes())
            },
        )?;
        let outcome = match &done {
            Ok(()) => Outcome::Done(Digest::NONE),
            Err(_) => Outcome::Failed,
        };
        turn.finish(call, outcome)?;
        Ok(Some(done))
    }

    /// Ends the input on the terminal of one; `None` if it has no terminal.
    pub fn end_input(&mut self, id: &str) -> Option<std::io::Result<()>> {
        let job = self.own_job(id)?;
        Some(job.shared.terminal()?.end())
    }
}
