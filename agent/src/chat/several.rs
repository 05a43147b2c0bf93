//! The calls of one answer: those that have nothing to do with each other at
//! the same time, all others one after the other.
//!
//! The core says which is which, as the compared agent does. Results go back in
//! the order of the calls, whatever order they ended in. This must never run a
//! call that waits for a person or starts agents beside another: such calls are
//! barriers.

use hermitcrab_core::batch::Lane;
use serde_json::Value;

use super::{CALLS_PER_ANSWER_MAX, Chat, ChatError, ChatTurn, Ports, arguments, result_of};
use crate::{
    model::{Message, ProposedCall},
    runtime::{Proposal, Runtime, ToolResult},
};

/// The calls without those that say once more what an earlier one of the same
/// answer says, letter by letter: such a call is a slip, and is made once.
pub(super) fn each_once(calls: Vec<ProposedCall>) -> Vec<ProposedCall> {
    let mut once: Vec<ProposedCall> = Vec::with_capacity(calls.len());
    for call in calls {
        let is_said = once
            .iter()
            .any(|known| known.tool == call.tool && known.arguments == call.arguments);
        if !is_said {
            once.push(call);
        }
    }
    once
}

impl Chat {
    /// Makes the calls of one answer and tells the model what came of each.
    pub(super) fn answer(
        &mut self,
        runtime: &mut Runtime,
        port: &mut Ports<'_>,
        mut calls: Vec<ProposedCall>,
        turn: &mut ChatTurn,
    ) -> Result<(), ChatError> {
        let too_many = calls.split_off(calls.len().min(CALLS_PER_ANSWER_MAX));
        let mut rest = calls.into_iter();
        for (lane, many) in self.pieces(runtime, rest.as_slice()) {
            let piece: Vec<ProposedCall> = rest.by_ref().take(many).collect();
            if lane == Lane::Parallel && port.watch.goes_on() {
                self.act_together(runtime, port, piece, turn)?;
                continue;
            }
            for call in piece {
                let text = if port.watch.goes_on() {
                    self.act(runtime, port, &call, turn)?
                } else {
                    ToolResult::error("stopped by the user; this call was not run").text
                };
                self.tell(call, text);
            }
        }
        for call in too_many {
            let text = ToolResult::error("too many calls in one answer; this one was not run").text;
            self.tell(call, text);
        }
        Ok(())
    }

    /// The pieces of a batch: how each runs, and how many calls it has.
    fn pieces(&self, runtime: &mut Runtime, calls: &[ProposedCall]) -> Vec<(Lane, usize)> {
        if calls.len() < 2 {
            return vec![(Lane::Sequential, calls.len())];
        }
        let named: Vec<(&str, &str)> = calls
            .iter()
            .map(|call| (call.tool.as_str(), call.arguments.as_str()))
            .collect();
        runtime
            .batch_plan(self.agent, &named)
            .into_iter()
            .map(|segment| (segment.lane, segment.calls))
            .collect()
    }

    fn act_together(
        &mut self,
        runtime: &mut Runtime,
        port: &mut Ports<'_>,
        calls: Vec<ProposedCall>,
        turn: &mut ChatTurn,
    ) -> Result<(), ChatError> {
        // A call whose arguments are no object is a barrier and not here.
        let read: Vec<Value> = calls
            .iter()
            .map(|call| arguments(&call.arguments).unwrap_or_default())
            .collect();
        for (call, arguments) in calls.iter().zip(&read) {
            port.watch.begins(runtime, self.agent, call, arguments);
        }
        let proposals: Vec<Proposal<'_>> = calls
            .iter()
            .zip(&read)
            .map(|(call, arguments)| (call.tool.as_str(), arguments))
            .collect();
        let reports = runtime.call_together(self.agent, &proposals);
        for ((call, arguments), report) in calls.into_iter().zip(&read).zip(reports) {
            let questions = report.questions.len();
            let result = (result_of(report), questions);
            let text = self.ended(runtime, port, &call, arguments, result, turn)?;
            self.tell(call, text);
        }
        Ok(())
    }

    fn tell(&mut self, call: ProposedCall, text: String) {
        self.messages.push(Message::Tool {
            call: call.id,
            tool: call.tool,
            text,
        });
    }
}
