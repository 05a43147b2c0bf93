//! The calls of one answer: those that have nothing to do with each other at
//! the same time, all others one after the other.
//!
//! The core says which is which, as the compared agent does. Results go back in
//! the order of the calls, whatever order they ended in. This must never run a
//! call that waits for a person or starts agents beside another: such calls are
//! barriers.

use hermitcrab_core::{batch::Lane, tool::Tool};
use serde_json::Value;

use super::{
    CALLS_PER_ANSWER_MAX, Chat, ChatError, ChatTurn, Ports,
    calls::{arguments, result_of},
};
use crate::{
    mcp,
    model::{Message, ProposedCall},
    runtime::{Proposal, Runtime, ToolResult},
};

/// The calls without those that say once more what an earlier one of the same
/// answer says, letter by letter: such a call is a slip, and is made once. So
/// are calls beyond those of one answer that may hand out work. What is told
/// instead of a call stays with it.
pub(super) fn each_once(
    calls: Vec<ProposedCall>,
    instead: Vec<Option<String>>,
    handing_out_max: usize,
) -> (Vec<ProposedCall>, Vec<Option<String>>) {
    let mut once: Vec<(ProposedCall, Option<String>)> = Vec::with_capacity(calls.len());
    let mut handing_out = 0_usize;
    for (call, instead) in calls.into_iter().zip(instead) {
        if call.tool == Tool::DelegateTask.as_str() {
            handing_out += 1;
            if handing_out > handing_out_max {
                continue;
            }
        }
        let is_said = once
            .iter()
            .any(|(known, _)| known.tool == call.tool && known.arguments == call.arguments);
        if !is_said {
            once.push((call, instead));
        }
    }
    once.into_iter().unzip()
}

/// What is told of calls beyond those that are run.
fn left_out(calls: usize) -> String {
    let noun = if calls == 1 { "call" } else { "calls" };
    format!(
        "{calls} {noun} of one answer not run: of an answer the first {CALLS_PER_ANSWER_MAX} are"
    )
}

impl Chat {
    /// Makes the calls of one answer and tells the model what came of each.
    pub(super) fn answer(
        &mut self,
        runtime: &mut Runtime,
        port: &mut Ports<'_>,
        calls: Vec<ProposedCall>,
        instead: Vec<Option<String>>,
        turn: &mut ChatTurn,
    ) -> Result<(), ChatError> {
        let mut made = Vec::with_capacity(calls.len());
        for (call, instead) in calls.into_iter().zip(instead) {
            match instead {
                None => made.push(call),
                Some(text) => {
                    port.watch.begins(runtime, self.agent, &call, &Value::Null);
                    let text = self.not_made(port, &call, text, turn);
                    self.tell(call, text);
                }
            }
        }
        let mut calls = made;
        let too_many = calls.split_off(calls.len().min(CALLS_PER_ANSWER_MAX));
        let mut rest = calls.into_iter();
        for (lane, many) in self.pieces(runtime, rest.as_slice()) {
            let piece: Vec<ProposedCall> = rest.by_ref().take(many).collect();
            if lane == Lane::Parallel && port.watch.goes_on() {
                self.act_together(runtime, port, piece, turn)?;
                self.stands(runtime, port);
                continue;
            }
            for call in piece {
                let text = if port.watch.goes_on() {
                    mcp::framed(&call.tool, self.act(runtime, port, &call, turn)?)
                } else {
                    ToolResult::error("stopped by the user; this call was not run").text
                };
                self.tell(call, text);
                self.stands(runtime, port);
            }
        }
        if !too_many.is_empty() {
            turn.left_out = turn.left_out.saturating_add(too_many.len());
            port.watch.noted(self.agent, &left_out(too_many.len()));
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
        let refused: Vec<Option<String>> = calls
            .iter()
            .zip(&read)
            .map(|(call, arguments)| self.loops.refused(&call.tool, arguments))
            .collect();
        // What is not made is over before the others begin: questions are about these, one
        // after the other, and belong to them by their place.
        let mut not_made = Vec::with_capacity(calls.len());
        for ((call, arguments), text) in calls.iter().zip(&read).zip(&refused) {
            not_made.push(text.clone().map(|text| {
                port.watch.begins(runtime, self.agent, call, arguments);
                self.not_made(port, call, text, turn)
            }));
        }
        for ((call, arguments), not_made) in calls.iter().zip(&read).zip(&not_made) {
            if not_made.is_none() {
                port.watch.begins(runtime, self.agent, call, arguments);
            }
        }
        let proposals: Vec<Proposal<'_>> = calls
            .iter()
            .zip(&read)
            .zip(&not_made)
            .filter(|(_, not_made)| not_made.is_none())
            .map(|((call, arguments), _)| (call.tool.as_str(), arguments))
            .collect();
        let mut reports = runtime.call_together(self.agent, &proposals).into_iter();
        for ((call, arguments), not_made) in calls.into_iter().zip(&read).zip(not_made) {
            let text = match not_made {
                Some(text) => text,
                None => match reports.next() {
                    Some(report) => {
                        let questions = report.questions.len();
                        let result = (result_of(report), questions);
                        self.ended(runtime, port, &call, arguments, result, turn)?
                    }
                    None => {
                        let text = ToolResult::error("this call was not run").text;
                        self.not_made(port, &call, text, turn)
                    }
                },
            };
            let text = mcp::framed(&call.tool, text);
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
