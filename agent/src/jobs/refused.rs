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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Cancel;

    /// One call after the other ends with its code; the last ones after the job was called off.
    fn refused(codes: &[DenialCode], after_the_end: &[DenialCode]) -> Refusals {
        let cancel = Cancel::default();
        let mut watching = Watching::until(Switch(cancel.clone()));
        let call = ProposedCall {
            id: "1".to_owned(),
            tool: "write_file".to_owned(),
            arguments: "{}".to_owned(),
        };
        let mut end = |code: &DenialCode| {
            let mut result = ToolResult {
                text: format!(r#"{{"error":"because of {code}"}}"#),
                fate: Fate::Refused(*code),
            };
            let _ = watching.ended(AgentId::FIRST, &call, &mut result);
        };
        codes.iter().for_each(&mut end);
        cancel.throw();
        after_the_end.iter().for_each(&mut end);
        watching.refused()
    }

    #[test]
    fn a_call_that_is_called_off_with_its_job_was_refused_by_nobody() {
        let told = refused(&[DenialCode::NoCap], &[DenialCode::Revoked]);
        assert_eq!(
            told.lines,
            ["a call of `write_file` was refused: because of no-cap"]
        );
        let told = refused(&[], &[DenialCode::NoCap, DenialCode::Revoked]);
        assert!(told.lines.is_empty() && !told.lacks_grants);
    }

    #[test]
    fn a_grant_is_spoken_of_where_one_would_have_helped_and_only_there() {
        for code in [
            DenialCode::NoCap,
            DenialCode::EffectNotCovered,
            DenialCode::UntrustedFlow,
            DenialCode::NoAnswer,
        ] {
            assert!(refused(&[code], &[]).lacks_grants, "{code}");
        }
        for code in [
            DenialCode::Protected,
            DenialCode::LimitReached,
            DenialCode::BadArguments,
            DenialCode::Expired,
        ] {
            let told = refused(&[code], &[]);
            assert!(!told.lacks_grants && told.lines.len() == 1, "{code}");
        }
    }

    #[test]
    fn of_many_refusals_some_are_told_and_the_rest_is_counted() {
        let of = |count| refused(&vec![DenialCode::NoCap; count], &[]).lines;
        assert_eq!(of(TOLD_MAX).len(), TOLD_MAX);
        assert_eq!(of(TOLD_MAX + 1).last().unwrap(), "1 more call was refused");
        assert_eq!(
            of(TOLD_MAX + 5).last().unwrap(),
            "5 more calls were refused"
        );
        assert_eq!(of(TOLD_MAX + 5).len(), TOLD_MAX + 1);
    }
}
