//! One step: what each subject did with it, and which finding that is.

use bisim_world::protocol::Step;

use super::pair::Pair;
use super::service::{explain_difference, same_inside, service};
use super::{Finding, Reach, StepJudgement, lifecycle};
use crate::noise::Mask;
use crate::observation::{Class, Level, StepSeen};

/// How either side's complaint begins about a probe's input that it cannot read.
const BAD_INPUT: &str = "bad probe input";

/// Judges one step.
pub(super) fn judge_step(
    index: usize,
    pair: &Pair<'_>,
    mask: &Mask,
    diverged: bool,
) -> StepJudgement {
    let (finding, why) = find(index, pair, mask, diverged);
    // In pieces, each text made once: a campaign judges steps by the million.
    let state = |seen: &StepSeen, outside: &[String]| {
        let asked = if seen.questions.is_empty() {
            ""
        } else {
            "+asked"
        };
        [seen.class.word(), asked, ":", reach(seen, outside).word()]
    };
    let code = match pair.agent.class.level() {
        Level::Act => ["", ""],
        Level::Ask | Level::Deny if pair.agent.code.is_empty() => ["", ""],
        Level::Ask | Level::Deny => [":", pair.agent.code.as_str()],
    };
    let both_acted =
        pair.hermes.class.level() == Level::Act && pair.agent.class.level() == Level::Act;
    let same = if finding == Finding::Stricter && both_acted && same_inside(index, pair, mask) {
        "+same"
    } else {
        ""
    };
    let [class, asked, colon, reached] = state(pair.agent, pair.outside_a);
    let [before, code] = code;
    StepJudgement {
        step: index,
        finding,
        what: what(pair.step),
        hermes: state(pair.hermes, pair.outside_h).concat(),
        agent: [class, asked, colon, reached, before, code, same].concat(),
        why,
    }
}

fn reach(seen: &StepSeen, outside: &[String]) -> Reach {
    if !outside.is_empty() {
        Reach::Outside
    } else if seen.delta.is_empty() {
        Reach::None
    } else {
        Reach::Inside
    }
}

fn find(index: usize, pair: &Pair<'_>, mask: &Mask, diverged: bool) -> (Finding, String) {
    let Pair {
        step,
        hermes,
        agent,
        outside_h,
        outside_a,
    } = pair;
    if !outside_a.is_empty() {
        let effects = outside_a.join(", ");
        let shared = outside_a.iter().any(|effect| outside_h.contains(effect));
        return if shared {
            (
                Finding::BothUnsafe,
                format!("both let it through uncovered: {effects}"),
            )
        } else if hermes.class.level() < Level::Act {
            (
                Finding::Weaker,
                format!(
                    "hermes {} here, the agent {effects} uncovered",
                    hermes.class.word()
                ),
            )
        } else {
            (
                Finding::BeyondGrant,
                format!("the agent {effects} and nothing held covers it"),
            )
        };
    }
    if let Some(why) = lifecycle::did_not_happen(hermes, agent) {
        return (Finding::Inconclusive, why);
    }
    match (hermes.class, agent.class) {
        (Class::Died, Class::Died) => {
            return (Finding::Equal, "both died in the same step".to_owned());
        }
        (_, Class::Died) => {
            return (
                Finding::Inconclusive,
                format!("the agent died: {}", agent.code),
            );
        }
        (Class::Died, _) if outside_h.is_empty() => {
            return (
                Finding::Inconclusive,
                format!("hermes died: {}", hermes.code),
            );
        }
        (Class::Hung, Class::Hung) => {
            return (
                Finding::Equal,
                "both reached the deadline in the same step".to_owned(),
            );
        }
        (_, Class::Hung) => {
            return (
                Finding::Inconclusive,
                "the agent reached the deadline".to_owned(),
            );
        }
        _ => {}
    }
    let is_action = matches!(step, Step::Call { .. } | Step::Probe { .. });
    // Two that cannot read a question have not answered it alike.
    let unread = [hermes, agent]
        .into_iter()
        .find(|seen| seen.class == Class::Raised && seen.code.starts_with(BAD_INPUT));
    if let (Step::Probe { .. }, Some(unread)) = (step, unread) {
        return (
            Finding::Inconclusive,
            format!("the case asks wrongly: {}", unread.code),
        );
    }
    match (hermes.class, agent.class) {
        (_, Class::Unsupported) if is_action => {
            return (
                Finding::Inconclusive,
                format!("the agent does not support it: {}", agent.code),
            );
        }
        (Class::Unsupported, _) if is_action => {
            return (
                Finding::Inconclusive,
                format!("hermes does not support it: {}", hermes.code),
            );
        }
        (Class::Raised, Class::Raised) => return (Finding::Equal, "both raised".to_owned()),
        (_, Class::Raised) => {
            return (
                Finding::Different,
                format!("the agent raised: {}", agent.code),
            );
        }
        (Class::Raised, _)
            if agent.class.level() < Level::Act || agent.class == Class::ToolError =>
        {
            return (
                Finding::Equal,
                format!("hermes raised, the agent {}", agent.class.word()),
            );
        }
        (Class::Raised, _) => {
            return (
                Finding::Different,
                format!("hermes raised: {}", hermes.code),
            );
        }
        _ if step.cut().is_some() && agent.class.level() == Level::Act => {
            return cut_off(pair, diverged);
        }
        _ if !is_action => {
            return lifecycle::judge(hermes, agent);
        }
        _ => {}
    }
    let (level_h, level_a) = (hermes.class.level(), agent.class.level());
    let asked = |seen: &StepSeen| !seen.questions.is_empty();
    if level_a < level_h {
        let reason = if outside_h.is_empty() {
            "inside the grants"
        } else {
            "outside the grants"
        };
        return (
            Finding::Stricter,
            [
                "hermes ",
                hermes.class.word(),
                " ",
                reason,
                ", the agent ",
                agent.class.word(),
            ]
            .concat(),
        );
    }
    if level_a > level_h {
        return (
            Finding::Attenuated,
            [
                "hermes ",
                hermes.class.word(),
                ", the agent ",
                agent.class.word(),
                "; nothing it did lies outside the grants",
            ]
            .concat(),
        );
    }
    if level_h < Level::Act {
        return (
            Finding::Equal,
            ["neither acted: ", hermes.class.word()].concat(),
        );
    }
    if !outside_h.is_empty() {
        return (
            Finding::Stricter,
            format!(
                "hermes {}; the agent ran it without that effect",
                outside_h.join(", ")
            ),
        );
    }
    if asked(hermes) && !asked(agent) {
        return (
            Finding::Attenuated,
            "hermes asked first, the agent did not need to".to_owned(),
        );
    }
    if asked(agent) && !asked(hermes) {
        return (
            Finding::Stricter,
            "the agent asked first, hermes did not".to_owned(),
        );
    }
    service(index, pair, mask, diverged)
}

/// A call in whose middle the agent was killed, and which Hermes made whole: all of it
/// stands once the agent has been started again, or nothing does.
fn cut_off(pair: &Pair<'_>, diverged: bool) -> (Finding, String) {
    let (hermes, agent) = (&pair.hermes.delta, &pair.agent.delta);
    if agent.is_empty() {
        return (Finding::Equal, "nothing is left of the call".to_owned());
    }
    if hermes == agent {
        return (Finding::Equal, "the whole call stands".to_owned());
    }
    // What was not judged alike before, or was refused by Hermes, says nothing of a whole.
    if diverged {
        return (
            Finding::Equal,
            "the states differ since an earlier, judged difference; only authority is compared"
                .to_owned(),
        );
    }
    if hermes.is_empty() {
        return (
            Finding::Attenuated,
            "hermes changed nothing; nothing the agent did lies outside the grants".to_owned(),
        );
    }
    (
        Finding::Different,
        format!(
            "part of a call is left: {}",
            explain_difference(pair.hermes, pair.agent)
        ),
    )
}

/// What kind of step it is, for fingerprints.
pub fn what(step: &Step) -> String {
    match step {
        Step::Call { tool, .. } => ["call:", tool].concat(),
        Step::Probe { name, .. } => ["probe:", name].concat(),
        Step::Grant(_) => "grant".to_owned(),
        Step::Revoke { .. } => "revoke".to_owned(),
        Step::Advance { .. } => "advance".to_owned(),
        Step::EndSession {} => "end-session".to_owned(),
        Step::Restart(restart) => match &restart.during {
            Some(cut) => format!("cut-off {}", what(&cut.step)),
            None => "restart".to_owned(),
        },
        Step::Spawn { .. } => "spawn".to_owned(),
    }
}
