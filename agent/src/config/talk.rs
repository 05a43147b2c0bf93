//! The table `[chat]`: a model that goes round in circles, and the agents it starts.
//!
//! None of it gives anybody authority: the counts say when a turn ends and how
//! much work may be handed out, never what that work may do.

use serde::Deserialize;

use super::settings::least;
use crate::runtime::{Counts, Guard, Reminder, Talk, WorkLimits};

/// The table.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatWords {
    /// End a turn that goes round in circles.
    #[serde(default)]
    pub stop_loops: Option<bool>,
    /// Say so to the model before.
    #[serde(default)]
    pub warn_loops: Option<bool>,
    /// Failures of exactly the same call after which it is not made again.
    #[serde(default)]
    pub same_call_max: Option<u32>,
    /// Failures of one tool in a row that end the turn.
    #[serde(default)]
    pub same_tool_max: Option<u32>,
    /// Equal answers after which the same question is not put again.
    #[serde(default)]
    pub same_answer_max: Option<u32>,
    /// Name the files that a turn was to change and did not.
    #[serde(default)]
    pub name_unwritten: Option<bool>,
    /// Remind a model that ends without a check of what it changed.
    #[serde(default)]
    pub ask_for_checks: Option<bool>,
    /// With advice on checking and cleaning.
    #[serde(default)]
    pub advise_on_checks: Option<bool>,
    /// Tasks one call may hand out.
    #[serde(default)]
    pub children_max: Option<u32>,
    /// How deep agents may start agents.
    #[serde(default)]
    pub children_depth_max: Option<u32>,
    /// Answers of the model a child's work may take.
    #[serde(default)]
    pub children_rounds_max: Option<u32>,
    /// Conversations at a terminal that are kept.
    #[serde(default)]
    pub conversations_kept: Option<u32>,
}

/// Conversations that are kept where nothing is said about it.
const CONVERSATIONS_KEPT: u32 = 200;

impl ChatWords {
    /// What is wrong with it, in words.
    ///
    /// # Errors
    /// The words.
    pub fn check(&self) -> Result<(), String> {
        let zero = [
            ("same_call_max", self.same_call_max),
            ("same_tool_max", self.same_tool_max),
            ("same_answer_max", self.same_answer_max),
            ("children_max", self.children_max),
            ("children_depth_max", self.children_depth_max),
            ("children_rounds_max", self.children_rounds_max),
        ]
        .into_iter()
        .find(|(_, value)| *value == Some(0));
        match zero {
            Some((name, _)) => Err(format!(
                "`chat.{name}` is 0, and counting begins at 1; leave it out for the usual value"
            )),
            None => Ok(()),
        }
    }

    /// How many conversations at a terminal are kept: as many as both allow.
    #[must_use]
    pub fn kept(&self, other: &Self) -> usize {
        let most = least(self.conversations_kept, other.conversations_kept);
        usize::try_from(most.unwrap_or(CONVERSATIONS_KEPT)).unwrap_or(usize::MAX)
    }

    /// What both say: either may stop more, and neither less than the other.
    #[must_use]
    pub fn both(&self, other: &Self) -> Talk {
        let (guard, work) = (Guard::default(), WorkLimits::default());
        let count = |one, other, usual| least(one, other).unwrap_or(usual);
        Talk {
            names_unwritten: either(self.name_unwritten, other.name_unwritten),
            reminder: Reminder {
                is_wanted: either(self.ask_for_checks, other.ask_for_checks),
                advises: either(self.advise_on_checks, other.advise_on_checks),
            },
            guard: Guard {
                warns: self.warn_loops.or(other.warn_loops).unwrap_or(guard.warns),
                stops: [self, other]
                    .iter()
                    .any(|words| words.stop_loops == Some(true)),
                ended: Counts {
                    same_call: count(
                        self.same_call_max,
                        other.same_call_max,
                        guard.ended.same_call,
                    ),
                    same_tool: count(
                        self.same_tool_max,
                        other.same_tool_max,
                        guard.ended.same_tool,
                    ),
                    same_answer: count(
                        self.same_answer_max,
                        other.same_answer_max,
                        guard.ended.same_answer,
                    ),
                },
                ..guard
            },
            work: WorkLimits {
                depth_max: count(
                    self.children_depth_max,
                    other.children_depth_max,
                    work.depth_max,
                ),
                tasks_max: least(self.children_max, other.children_max)
                    .and_then(|most| usize::try_from(most).ok())
                    .unwrap_or(work.tasks_max),
                rounds_max: count(
                    self.children_rounds_max,
                    other.children_rounds_max,
                    work.rounds_max,
                ),
            },
        }
    }
}

/// What is usual unless somebody says no: whoever wants it gets it.
fn either(one: Option<bool>, other: Option<bool>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one || other,
        (one, other) => one.or(other).unwrap_or(true),
    }
}

#[cfg(test)]
mod tests {
    use super::ChatWords;
    use crate::runtime::Talk;

    #[test]
    fn what_is_not_said_is_as_usual_and_of_two_words_the_stricter_counts() {
        let usual = ChatWords::default();
        assert_eq!(usual.both(&usual), Talk::default());
        let user = ChatWords {
            stop_loops: Some(false),
            same_call_max: Some(7),
            children_max: Some(2),
            ..usual.clone()
        };
        let admin = ChatWords {
            stop_loops: Some(true),
            same_call_max: Some(3),
            children_rounds_max: Some(9),
            ..usual.clone()
        };
        let both = user.both(&admin);
        assert!(both.guard.stops && both.guard.warns);
        assert_eq!(both.guard.ended.same_call, 3);
        assert_eq!((both.work.tasks_max, both.work.rounds_max), (2, 9));
        assert!(!user.both(&usual).guard.stops);
        let silent = ChatWords {
            name_unwritten: Some(false),
            ..usual.clone()
        };
        let naming = ChatWords {
            name_unwritten: Some(true),
            ..usual.clone()
        };
        assert!(!silent.both(&usual).names_unwritten);
        assert!(silent.both(&naming).names_unwritten && usual.both(&usual).names_unwritten);
        let off = ChatWords {
            ask_for_checks: Some(false),
            ..usual.clone()
        };
        assert!(!off.both(&usual).reminder.is_wanted);
        assert!(off.both(&usual).reminder.advises);
    }

    #[test]
    fn no_count_is_zero() {
        let words = ChatWords {
            children_depth_max: Some(0),
            ..ChatWords::default()
        };
        assert!(
            words
                .check()
                .is_err_and(|why| why.contains("chat.children_depth_max"))
        );
        assert_eq!(ChatWords::default().check(), Ok(()));
    }
}
