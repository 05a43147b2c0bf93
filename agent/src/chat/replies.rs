//! What becomes of one answer of a model.
//!
//! Its calls are made, or it is told why not, or the turn ends. Whether a call is
//! allowed is none of this: every call that is made passes the monitor.

use super::{
    Chat, ChatError, ChatTurn, Offered, Ports, TurnEnd, several,
    slips::{self, Next},
};
use crate::{
    model::{Finish, Message, ModelReply, ProposedCall},
    runtime::Runtime,
};

/// What a model is asked when its rounds are spent.
const SUM_UP: &str = "You've reached the maximum number of tool-calling iterations allowed. Please provide a final \
                      response summarizing what you've found and accomplished so far, without calling any more tools.";
/// What a call without a name is called.
const NAMELESS: &str = "invalid_tool_call";
/// Its last words if it has none then.
const NO_SUMMARY: &str = "I reached the iteration limit and couldn't generate a summary.";

impl Chat {
    /// Does what an answer is good for; how the turn ends, if it ends by it.
    pub(super) fn carry_out(
        &mut self,
        runtime: &mut Runtime,
        port: &mut Ports<'_>,
        reply: ModelReply,
        next: Next,
        turn: &mut ChatTurn,
    ) -> Result<Option<TurnEnd>, ChatError> {
        match next {
            Next::Again => return Ok(None),
            Next::Nudge { said, told } => {
                self.messages.push(said_alone(said));
                self.messages.push(Message::Told(told.to_owned()));
                return Ok(None);
            }
            Next::End(words) => {
                // Its words are those for what was cut off, whatever is wrong with it.
                if reply.finish != Finish::CutOff
                    && let Some(why) = slips::unreadable(&reply.calls)
                {
                    port.watch.noted(self.agent, &why);
                }
                let is_silence = words == slips::SAID_NOTHING && reply.finish != Finish::CutOff;
                port.watch.said(self.agent, &words);
                turn.text = words;
                if !reply.calls.is_empty() {
                    return Ok(Some(TurnEnd::GaveUp));
                }
                self.messages.push(said_alone(slips::NOTHING));
                return Ok(Some(match is_silence {
                    true => TurnEnd::Silent,
                    false => end_of(reply.finish),
                }));
            }
            Next::Make(_) | Next::Tell(_) => {}
        }
        port.watch.said(self.agent, &reply.text);
        turn.text.clone_from(&reply.text);
        if reply.calls.is_empty() {
            self.messages.push(said_alone(&reply.text));
            let goes_on = self.remind(runtime, &reply.text)?;
            return Ok((!goes_on).then_some(end_of(reply.finish)));
        }
        let (mut calls, instead) = match next {
            Next::Tell(told) => (reply.calls, told.into_iter().map(Some).collect()),
            Next::Make(instead) => several::each_once(reply.calls, instead, self.limits.tasks_max),
            Next::Again | Next::Nudge { .. } | Next::End(_) => return Ok(None),
        };
        for call in calls.iter_mut().filter(|call| call.tool.trim().is_empty()) {
            // A conversation with a nameless call is taken by no model.
            NAMELESS.clone_into(&mut call.tool);
        }
        self.messages.push(Message::Assistant {
            text: reply.text,
            calls: calls.clone(),
        });
        self.stands(runtime, port);
        self.answer(runtime, port, calls, instead, turn)?;
        let Some(words) = self.loops.ended() else {
            return Ok(None);
        };
        port.watch.said(self.agent, &words);
        self.messages.push(said_alone(&words));
        turn.text = words;
        Ok(Some(TurnEnd::Halted))
    }

    /// The names that are tools here. Calls of names that nearly are get them, and
    /// what is nearly JSON becomes it.
    pub(super) fn known(&self, runtime: &Runtime, calls: &mut [ProposedCall]) -> Vec<String> {
        let offers = self.offers(runtime);
        let mut known: Vec<String> = offers
            .into_iter()
            .map(|offer| offer.name.into_owned())
            .collect();
        for call in &*calls {
            if runtime.is_of_a_server(&call.tool) && !known.contains(&call.tool) {
                known.push(call.tool.clone());
            }
        }
        known.sort();
        for call in calls {
            if let Some(right) = slips::put_right(&call.arguments) {
                call.arguments = right;
            }
            if !known.contains(&call.tool)
                && let Some(meant) = slips::meant(&call.tool, &known)
            {
                call.tool.clone_from(meant);
            }
        }
        known
    }

    /// Names what was to be written in this turn and was not, below the last
    /// words. The conversation does not have it: it is for whoever reads these.
    pub(super) fn name_unwritten(&mut self, port: &mut Ports<'_>, turn: &mut ChatTurn) {
        let footer = std::mem::take(&mut self.unwritten).footer();
        let Some(footer) = footer.filter(|_| self.names_unwritten && !turn.text.is_empty()) else {
            return;
        };
        port.watch.said(self.agent, &footer);
        let words = turn.text.trim_end().to_owned();
        turn.text = format!("{words}\n\n{footer}");
    }

    /// Asks for last words when the rounds are spent; no tool is on offer any more.
    pub(super) fn sum_up(
        &mut self,
        runtime: &mut Runtime,
        port: &mut Ports<'_>,
        turn: &mut ChatTurn,
    ) -> Result<(), ChatError> {
        self.messages.push(Message::Told(SUM_UP.to_owned()));
        let text = match self.ask(runtime, port, Offered::Nothing) {
            // What was done is done, whether or not there are words for it.
            Err(ChatError::Model(_)) => String::new(),
            reply => reply?.text,
        };
        let words = match text.trim() {
            "" => NO_SUMMARY,
            words => words,
        };
        port.watch.said(self.agent, words);
        self.messages.push(said_alone(words));
        words.clone_into(&mut turn.text);
        turn.end = TurnEnd::RoundsSpent;
        Ok(())
    }
}

/// How a turn ends with this answer.
const fn end_of(finish: Finish) -> TurnEnd {
    match finish {
        Finish::Ended | Finish::Withheld => TurnEnd::Answered,
        Finish::CutOff => TurnEnd::CutOff,
    }
}

fn said_alone(words: &str) -> Message {
    Message::Assistant {
        text: words.to_owned(),
        calls: Vec::new(),
    }
}
