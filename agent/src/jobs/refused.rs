//! What was refused to the model of a job, for the person who reads what the job came to.
//!
//! What for: nobody is there to be asked, and a model may say that something is done that was
//! refused. Why here: only who watches its turn hears of each call.

use hermitcrab_core::{grant::AgentId, outcome::DenialCode};
use serde_json::Value;

use super::limit::Switch;
use crate::{
    chat::{Then, Watch},
    model::ProposedCall,
    runtime::{Fate, Refusals, ToolResult},
};

/// Refusals that are told one by one; how many more there were is told with them.
const TOLD_MAX: usize = 8;

/// Watches a turn that ends by a switch.
pub(super) struct Watching {
    switch: Switch,
    refused: Vec<String>,
    more: usize,
    lacks_grants: bool,
}

impl Watching {
    pub(super) fn until(switch: Switch) -> Self {
        Self {
            switch,
            refused: Vec::new(),
            more: 0,
            lacks_grants: false,
        }
    }

    /// A line for each refusal, and whether a grant would have prevented one.
    pub(super) fn refused(self) -> Refusals {
        let Self {
            refused: mut lines,
            more,
            lacks_grants,
            ..
        } = self;
        match more {
            0 => {}
            1 => lines.push("1 more call was refused".to_owned()),
            more => lines.push(format!("{more} more calls were refused")),
        }
        Refusals {
            lines,
            lacks_grants,
        }
    }
}

impl Watch for Watching {
    fn ended(&mut self, _: AgentId, call: &ProposedCall, result: &mut ToolResult) -> Then {
        let (Fate::RanDiscarded(code) | Fate::Refused(code) | Fate::AskedRefused(code)) =
            &result.fate
        else {
            return Then::Done;
        };
        // One that is called off with its job was refused by nobody.
        if !self.switch.goes_on() {
            return Then::Done;
        }
        self.lacks_grants |= matches!(
            code,
            DenialCode::NoCap
                | DenialCode::EffectNotCovered
                | DenialCode::UntrustedFlow
                | DenialCode::NoAnswer
        );
        if self.refused.len() == TOLD_MAX {
            self.more += 1;
            return Then::Done;
        }
        let told = serde_json::from_str::<Value>(&result.text).ok();
        let why = told
            .as_ref()
            .and_then(|told| told.get("error")?.as_str())
            .map_or_else(|| code.to_string(), str::to_owned);
        self.refused
            .push(format!("a call of `{}` was refused: {why}", call.tool));
        Then::Done
    }

    fn goes_on(&mut self) -> bool {
        self.switch.goes_on()
    }
}
