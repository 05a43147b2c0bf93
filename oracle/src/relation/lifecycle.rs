//! Steps that act on nothing but what is held: grants, revocations,
//! delegation, the clock, the end of a session.
//!
//! What Hermes cannot express at all is no difference of the step itself; it
//! shows in the calls that follow, which are judged as always. Which notions
//! Hermes lacks is a closed list of named rules: anything else it does not
//! support leaves the case without a verdict.

use super::Finding;
use crate::observation::{Class, Level, StepSeen};

/// Something a grant has and an approval of Hermes has not.
struct Notion {
    /// The code Hermes' worker gives such a step.
    code: &'static str,
    /// The rule's name.
    rule: &'static str,
    /// Why the step itself is no difference.
    why: &'static str,
}

const NOTIONS_HERMES_LACKS: [Notion; 8] = [
    Notion {
        code: "no-such-grant",
        rule: "hermes-grants-by-answers",
        why: "hermes knows standing answers by class, command or mode, and nothing like this grant",
    },
    Notion {
        code: "no-revocation",
        rule: "hermes-answers-stand",
        why: "hermes keeps a standing answer until the session ends or its settings are edited",
    },
    Notion {
        code: "no-expiry",
        rule: "hermes-answers-do-not-age",
        why: "hermes' standing answers have no deadline",
    },
    Notion {
        code: "no-ledger",
        rule: "hermes-keeps-no-ledger",
        why: "hermes keeps no record whose loss or damage it would notice",
    },
    Notion {
        code: "no-seal",
        rule: "hermes-seals-nothing",
        why: "hermes' settings are taken as they are found",
    },
    Notion {
        code: "no-mode",
        rule: "hermes-is-told-no-mode-meanwhile",
        why: "hermes' sessions cannot be told from elsewhere to refuse what they would ask about",
    },
    Notion {
        code: "no-end-of-an-agent",
        rule: "hermes-children-are-not-ended-meanwhile",
        why: "a child of hermes' holds nothing of its own that could be ended while it asks",
    },
    Notion {
        code: "no-uses",
        rule: "hermes-answers-are-not-counted",
        why: "hermes counts no uses: its other calls spend nothing while it asks",
    },
];

/// There is no such grant or agent, or none any more: ending it changes nothing for anybody.
const NOT_THERE: [&str; 2] = ["unknown-grant", "unknown-agent"];

fn notion_of(code: &str) -> Option<&'static Notion> {
    NOTIONS_HERMES_LACKS
        .iter()
        .find(|notion| notion.code == code)
}

/// What was to happen while somebody was asked and did not, so that the case does not show
/// what it is about.
pub(super) fn did_not_happen(hermes: &StepSeen, agent: &StepSeen) -> Option<String> {
    let of = |seen: &StepSeen, is_known: fn(&str) -> bool| {
        let all = seen.meanwhile.iter().flatten();
        let mut lacking = all.map(|happened| happened.lacks.clone());
        lacking.find(|lacks| {
            !lacks.is_empty() && !NOT_THERE.contains(&lacks.as_str()) && !is_known(lacks)
        })
    };
    let told = |who: &str, lacks: &str| {
        format!("what was to happen while {who} user was asked did not: {lacks}")
    };
    let of_agent = of(agent, |_| false).map(|lacks| told("the agent's", &lacks));
    of_agent.or_else(|| {
        of(hermes, |lacks| notion_of(lacks).is_some()).map(|lacks| told("hermes'", &lacks))
    })
}

/// Judges a step that grants, revokes, delegates, ends a session or moves the clock.
pub(super) fn judge(hermes: &StepSeen, agent: &StepSeen) -> (Finding, String) {
    match (hermes.class, agent.class) {
        (_, Class::Unsupported) => (
            Finding::Inconclusive,
            format!("the agent has no such step: {}", agent.code),
        ),
        (Class::Unsupported, _) => match notion_of(&hermes.code) {
            Some(notion) => (
                Finding::Equal,
                format!("rule `{}`: {}", notion.rule, notion.why),
            ),
            None => (
                Finding::Inconclusive,
                format!("hermes does not support it: {}", hermes.code),
            ),
        },
        (left, right) if left == right => (Finding::Equal, "both followed".to_owned()),
        (_, right) if right.level() < Level::Act => (
            Finding::Stricter,
            format!("the agent {} it: {}", right.word(), agent.code),
        ),
        (left, right) => (
            Finding::Different,
            format!("hermes {}, the agent {}", left.word(), right.word()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bisim_world::protocol::{Happened, Meanwhile};
    use serde_json::Value;

    fn seen(class: Class, code: &str) -> StepSeen {
        StepSeen {
            class,
            code: code.to_owned(),
            questions: Vec::new(),
            meanwhile: Vec::new(),
            value: Value::Null,
            delta: Vec::new(),
            parts: Vec::new(),
            canaries: Vec::new(),
        }
    }

    #[test]
    fn a_notion_hermes_lacks_is_named_by_a_rule() {
        for notion in &NOTIONS_HERMES_LACKS {
            let (finding, why) = judge(
                &seen(Class::Unsupported, notion.code),
                &seen(Class::Ran, ""),
            );
            assert_eq!(finding, Finding::Equal);
            assert!(why.contains(notion.rule), "{why}");
        }
    }

    #[test]
    fn what_did_not_happen_while_the_user_was_asked_gives_no_verdict() {
        let lacking = |lacks: &str| StepSeen {
            questions: vec![("create a".to_owned(), "once".to_owned())],
            meanwhile: vec![vec![Happened {
                what: Meanwhile::EndSession {},
                lacks: lacks.to_owned(),
            }]],
            ..seen(Class::Ran, "")
        };
        for (hermes, agent, told) in [
            ("", "", None),
            ("no-mode", "unknown-grant", None),
            ("unknown-grant", "", None),
            ("", "unknown-agent", None),
            (
                "",
                "no-mode",
                Some("the agent's user was asked did not: no-mode"),
            ),
            (
                "no-such",
                "",
                Some("hermes' user was asked did not: no-such"),
            ),
        ] {
            let found = did_not_happen(&lacking(hermes), &lacking(agent));
            let as_told = found
                .as_deref()
                .map(|why| why.split_once("while ").unwrap().1);
            assert_eq!(as_told, told, "{hermes} {agent}");
        }
    }

    #[test]
    fn anything_else_hermes_does_not_support_gives_no_verdict() {
        for code in ["", "needs-a-world", "no-such-probe"] {
            let (finding, _) = judge(&seen(Class::Unsupported, code), &seen(Class::Ran, ""));
            assert_eq!(finding, Finding::Inconclusive, "{code}");
        }
    }

    #[test]
    fn a_step_the_agent_refuses_is_stricter_also_where_hermes_failed() {
        let agent = seen(Class::Refused, "unknown-grant");
        for hermes in [Class::Ran, Class::ToolError] {
            let (finding, _) = judge(&seen(hermes, ""), &agent);
            assert_eq!(finding, Finding::Stricter);
        }
    }
}
