//! Why a decision would come out as it would, without making it.

use super::Session;
use crate::action::Action;
use crate::approval::Stance;
use crate::authority::{Cap, Object, Verb};
use crate::grant::{AgentId, GrantId};
use crate::outcome::DenialCode;
use crate::rules::{Judgement, RuleRef};
use crate::tool::Tool;

/// What would happen, by which rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Allowed, asked or refused.
    pub stance: Stance,
    /// The code of the refusal or the reason of the question.
    pub code: Option<DenialCode>,
    /// The rule that decides: one of the program, one of a file and line, the mode, or the grant.
    pub rule: RuleRef,
    /// The grant that would be used.
    pub grant: Option<GrantId>,
}

impl Session {
    /// What would become of one action of an agent now. Charges nothing.
    #[must_use]
    pub fn explain(&self, by: AgentId, tool: Tool, action: &Action) -> Explanation {
        let judgement = self.rules.judge(tool, action);
        if let Judgement::Deny(code, rule) = judgement {
            return Explanation {
                stance: Stance::Deny,
                code: Some(code),
                rule,
                grant: None,
            };
        }
        let (code, rule) = match (self.table.choose(by, action.cap(), self.now), judgement) {
            (Ok(grant), Judgement::Plain) => {
                return Explanation {
                    stance: Stance::Allow,
                    code: None,
                    rule: RuleRef::builtin("builtin.held"),
                    grant: Some(grant),
                };
            }
            // Where nobody can be asked, a grant is what is looked at first.
            (Err(code), Judgement::Ask(_, rule)) if !self.may_ask(by) => (code, rule),
            // Asked about each time: that nothing is held is not why, and a grant would not help.
            (_, Judgement::Ask(code, rule)) => (code, rule),
            (Err(code), Judgement::Plain) => {
                let stance = self.mode_on(action);
                let rule = RuleRef::builtin(match stance {
                    Stance::Allow => "builtin.mode-allows",
                    Stance::Ask => "builtin.not-held",
                    Stance::Deny => "builtin.mode-refuses",
                });
                if stance == Stance::Allow && self.may_ask(by) {
                    return Explanation {
                        stance,
                        code: None,
                        rule,
                        grant: None,
                    };
                }
                (code, rule)
            }
            // Left above, and stays a refusal if it ever comes here.
            (_, Judgement::Deny(code, rule)) => (code, rule),
        };
        let stance = if self.may_ask(by) {
            Stance::Ask
        } else {
            Stance::Deny
        };
        Explanation {
            stance,
            code: Some(code),
            rule,
            grant: None,
        }
    }

    fn may_ask(&self, by: AgentId) -> bool {
        Cap::new(Verb::UserAsk, Object::Session)
            .is_ok_and(|cap| self.table.choose(by, &cap, self.now).is_ok())
    }
}
