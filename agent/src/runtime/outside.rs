//! Tools of servers outside, as a plan's steps call them.
//!
//! The way out is the same as for a model's calls and so is the gate. What
//! differs is what stands for what was read: a plan's values carry their own
//! levels, so the session is told of the data that steers this one call, and
//! not of everything any call has brought back.

use hermitcrab_core::{
    grant::AgentId,
    outcome::{Denial, DenialCode},
};
use serde_json::Value;

use super::{Runtime, external::Request, planned::Steering, result::Asked};

/// Bytes of an answer that a plan can hold.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// What a tool outside gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// Its text.
    pub text: String,
    /// What it sent as data, if it did.
    pub data: Option<Value>,
    /// Whether it says that it did not work.
    pub failed: bool,
}

impl Runtime {
    /// Is this the name of a tool of a declared server, as plans spell it?
    #[must_use]
    pub fn is_outside(&self, tool: &str) -> bool {
        tool.split_once('.')
            .is_some_and(|(server, _)| self.server(server).is_some())
    }

    /// Calls `server.tool` for a step of a plan. With `steering` it needs a
    /// grant that vouches for such data, or the user's yes.
    ///
    /// # Errors
    /// The refusal.
    pub fn call_outside(
        &mut self,
        by: AgentId,
        tool: &str,
        args: &Value,
        steering: Option<Steering>,
        questions: &mut Vec<Asked>,
    ) -> Result<Given, Denial> {
        let unknown = || Denial::new(DenialCode::UnknownTool, tool);
        let (server, inner) = tool.split_once('.').ok_or_else(unknown)?;
        let server = self.server(server).cloned().ok_or_else(unknown)?;
        let request = Request::of(server.wanted(inner), args)
            .map_err(|why| Denial::new(DenialCode::BadArguments, why))?;
        self.steering = steering;
        let answer = self.asked_outside(by, &server, &request, questions);
        self.steering = None;
        if let Err(error) = self.settle_wishes() {
            self.told.push(error.to_string());
        }
        let answer = answer?;
        if answer.text.len() > ANSWER_BYTES_MAX {
            let about = format_args!("{ANSWER_BYTES_MAX} bytes of one answer; ask for less");
            return Err(Denial::new(DenialCode::LimitReached, about));
        }
        Ok(Given {
            text: answer.text,
            data: answer.data,
            failed: answer.is_error,
        })
    }
}
