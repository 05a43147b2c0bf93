//! Doing what a plan's step asks for, by the same gate as everything else.

use hermitcrab_core::{
    grant::AgentId,
    label::Label,
    session::{Call, Event},
    tool::Tool,
};

use super::{
    Runtime,
    hands::Hands,
    result::{Asked, ChangeSummary},
    turn::Stop,
};

/// Data that decides something about what is to be done.
#[derive(Clone, Debug)]
pub struct Steering {
    /// What travels with it.
    pub label: Label,
    /// Where it came from, for the user who is asked.
    pub note: String,
}

impl Runtime {
    /// Lets one action of a plan have its reach. With `steering` every change
    /// needs a grant that vouches for such data, or the user's yes.
    ///
    /// # Errors
    /// Why it did not come to an end.
    pub fn act<R>(
        &mut self,
        by: AgentId,
        tool: Tool,
        steering: Option<Steering>,
        questions: &mut Vec<Asked>,
        act: impl FnOnce(&mut Hands<'_>) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        let mut changes = ChangeSummary::default();
        let (answered, asked_before) = (self.given_by_answers(by), questions.len());
        self.steering = steering;
        let mut is_overtaken = false;
        let done = self.with_hands((by, tool), questions, &mut changes, |hands| {
            let done = hands.look_after().and_then(|()| act(hands));
            is_overtaken = hands.is_overtaken;
            done
        });
        self.steering = None;
        if is_overtaken && questions.len() > asked_before {
            self.void_answers(by, &answered);
        }
        if let Err(error) = self.settle_wishes() {
            self.told.push(error.to_string());
        }
        done
    }
}

impl Hands<'_> {
    /// A call as the session is told of it: with the data that steers it.
    pub(super) fn called(&self, call: Call) -> Event {
        told(self.runtime.steering.as_ref(), call)
    }
}

/// A call as the session is told of it: with the data that steers it, if any does.
pub(super) fn told(steering: Option<&Steering>, call: Call) -> Event {
    match steering {
        Some(steering) => Event::SteeredCall {
            call,
            by_data: steering.label.clone(),
        },
        None => Event::Call(call),
    }
}
