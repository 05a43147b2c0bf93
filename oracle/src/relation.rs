//! The relation between Hermes and the agent: authority refinement.
//!
//! What Hermes does is *may*, what it does inside the case's grants is
//! *must*; every step is judged against both and against ground truth. The
//! relation is a value, it is pure, it never panics, and it says why.

use bisim_world::protocol::{RawTrace, Step};
use serde::Serialize;

use crate::canon::same_value;
use crate::case::Case;
use crate::holdings::{Approval, Holdings};
use crate::noise::{self, Mask};
use crate::observation::{Canary, Class, Level, Observation, StepSeen, observe};

/// What the relation is given.
#[derive(Clone, Copy, Debug)]
pub struct Legs<'a> {
    /// The case.
    pub case: &'a Case,
    /// Hermes' run.
    pub hermes: &'a RawTrace,
    /// Hermes' run once more, if noise was looked for.
    pub hermes_again: Option<&'a RawTrace>,
    /// The agent's run.
    pub agent: &'a RawTrace,
    /// The secrets of the worlds.
    pub canaries: &'a [Canary],
}

/// A relation: a name, what it means, and how a case is judged by it.
#[derive(Clone, Copy, Debug)]
pub struct Relation {
    /// Its name.
    pub name: &'static str,
    /// What it demands.
    pub doc: &'static str,
    /// The judge.
    pub judge: fn(&Legs<'_>) -> Judgement,
}

/// The relation `bisim check` uses.
pub const AUTHORITY_REFINEMENT: Relation = Relation {
    name: "authority-refinement",
    doc: "no effect beyond what is held and what Hermes may do; the same service where Hermes stays \
          inside the grants; every other difference is named",
    judge,
};

/// How one step compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The same.
    Equal,
    /// The same but for noise.
    EqualMasked,
    /// No judgement is possible.
    Inconclusive,
    /// The agent did less, or asked.
    Stricter,
    /// The agent acted where Hermes asked or refused; nothing left the grants.
    Attenuated,
    /// Benign behaviour differs.
    Different,
    /// The agent did, uncovered, what Hermes refused or asked for.
    Weaker,
    /// The agent's effect exceeds what is held.
    BeyondGrant,
    /// Both let an uncovered effect through.
    BothUnsafe,
}

/// One step, judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepJudgement {
    /// Index into the script.
    pub step: usize,
    /// The finding.
    pub finding: Finding,
    /// `call:terminal`, `probe:validate_within_dir`, `spawn`, ...
    pub what: String,
    /// Hermes' class and reach, such as `ran:outside` or `refused:none`.
    pub hermes: String,
    /// The agent's class, code and reach, such as `discarded:none:rejected-by-user`.
    pub agent: String,
    /// The reasoning, one line.
    pub why: String,
}

impl StepJudgement {
    /// What kind of difference this is, stable over cases.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        format!("{} {} -> {}", self.what, self.hermes, self.agent)
    }
}

/// A whole case, judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// Step by step, in order; the last may stand for what came after all steps.
    pub steps: Vec<StepJudgement>,
    /// What Hermes did outside the grants.
    pub hermes_outside: Vec<String>,
    /// What the agent did outside the grants.
    pub agent_outside: Vec<String>,
}

impl Judgement {
    /// The worst finding.
    #[must_use]
    pub fn worst(&self) -> Finding {
        self.steps
            .iter()
            .map(|step| step.finding)
            .max()
            .unwrap_or(Finding::Equal)
    }

    /// Whether a noise run could change the result.
    #[must_use]
    pub fn wants_noise_run(&self) -> bool {
        matches!(self.worst(), Finding::Different)
    }
}

/// How far effects reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    None,
    Inside,
    Outside,
}

impl Reach {
    const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Inside => "inside",
            Self::Outside => "outside",
        }
    }
}

fn judge(legs: &Legs<'_>) -> Judgement {
    let script = &legs.case.job.script;
    let hermes = observe(script, legs.hermes, legs.canaries);
    let agent = observe(script, legs.agent, legs.canaries);
    let mask = legs
        .hermes_again
        .map(|again| noise::mask(&hermes, &observe(script, again, legs.canaries)))
        .unwrap_or_default();
    judge_seen(legs.case, &hermes, &agent, &mask)
}

/// Judges two observations.
#[must_use]
pub fn judge_seen(
    case: &Case,
    hermes: &Observation,
    agent: &Observation,
    mask: &Mask,
) -> Judgement {
    let mut held_hermes = Holdings::new(case);
    let mut held_agent = Holdings::new(case);
    let mut judgement = Judgement {
        steps: Vec::new(),
        hermes_outside: Vec::new(),
        agent_outside: Vec::new(),
    };
    let last_action = case
        .job
        .script
        .iter()
        .rposition(|step| matches!(step, Step::Call { .. } | Step::Probe { .. }))
        .unwrap_or(0);
    let mut diverged = false;
    for (index, step) in case.job.script.iter().enumerate() {
        let (seen_h, seen_a) = (hermes.steps.get(index), agent.steps.get(index));
        let (Some(seen_h), Some(seen_a)) = (seen_h, seen_a) else {
            if seen_h.is_none() && seen_a.is_none() {
                break;
            }
            // One side was cut earlier; that step has been judged. What the
            // other still does is held against the grants alone.
            if let Some(seen_a) = seen_a {
                let outside = held_agent.outside(step, seen_a, Approval::ShownPaths);
                beyond(&mut judgement, index, step, outside);
            }
            held_hermes.follow(step);
            held_agent.follow(step);
            continue;
        };
        let mut outside_h = held_hermes.outside(step, seen_h, Approval::WholeCall);
        let mut outside_a = held_agent.outside(step, seen_a, Approval::ShownPaths);
        held_hermes.follow(step);
        held_agent.follow(step);
        if index == last_action {
            // Network, tripwires and late effects are seen for the whole run only.
            outside_h.extend(late(
                &mut held_hermes,
                hermes,
                step,
                seen_h,
                Approval::WholeCall,
            ));
            outside_a.extend(late(
                &mut held_agent,
                agent,
                step,
                seen_a,
                Approval::ShownPaths,
            ));
        }
        let pair = Pair {
            step,
            hermes: seen_h,
            agent: seen_a,
            outside_h: &outside_h,
            outside_a: &outside_a,
        };
        let judged = judge_step(index, &pair, mask, diverged);
        diverged |= seen_h.delta != seen_a.delta || seen_h.class.level() != seen_a.class.level();
        judgement.steps.push(judged);
        judgement.hermes_outside.extend(outside_h);
        judgement.agent_outside.extend(outside_a);
    }
    if let Some(unstable) = &mask.unstable {
        judgement.steps.push(StepJudgement {
            step: 0,
            finding: Finding::Inconclusive,
            what: "run".to_owned(),
            hermes: "unstable".to_owned(),
            agent: String::new(),
            why: format!("hermes disagrees with itself: {unstable}"),
        });
    }
    judgement
}

fn late(
    holdings: &mut Holdings,
    seen: &Observation,
    step: &Step,
    last: &StepSeen,
    approval: Approval,
) -> Vec<String> {
    let after = StepSeen {
        delta: seen.late.clone(),
        canaries: Vec::new(),
        ..last.clone()
    };
    let mut outside = holdings.outside(step, &after, approval);
    let world = holdings.outside_world(seen);
    if !(approval == Approval::WholeCall && last.asked_yes()) {
        outside.extend(world);
    }
    outside
}

fn beyond(judgement: &mut Judgement, index: usize, step: &Step, outside: Vec<String>) {
    if !outside.is_empty() {
        judgement.steps.push(StepJudgement {
            step: index,
            finding: Finding::BeyondGrant,
            what: what(step),
            hermes: "cut".to_owned(),
            agent: Reach::Outside.word().to_owned(),
            why: format!(
                "the agent {} and nothing held covers it",
                outside.join(", ")
            ),
        });
        judgement.agent_outside.extend(outside);
    }
}

struct Pair<'a> {
    step: &'a Step,
    hermes: &'a StepSeen,
    agent: &'a StepSeen,
    outside_h: &'a [String],
    outside_a: &'a [String],
}

fn judge_step(index: usize, pair: &Pair<'_>, mask: &Mask, diverged: bool) -> StepJudgement {
    let (finding, why) = find(index, pair, mask, diverged);
    let state = |seen: &StepSeen, outside: &[String]| {
        let asked = if seen.questions.is_empty() {
            ""
        } else {
            "+asked"
        };
        format!(
            "{}{asked}:{}",
            seen.class.word(),
            reach(seen, outside).word()
        )
    };
    let code = match pair.agent.class.level() {
        Level::Act => String::new(),
        Level::Ask | Level::Deny if pair.agent.code.is_empty() => String::new(),
        Level::Ask | Level::Deny => format!(":{}", pair.agent.code),
    };
    let both_acted =
        pair.hermes.class.level() == Level::Act && pair.agent.class.level() == Level::Act;
    let same = if finding == Finding::Stricter && both_acted && same_inside(index, pair, mask) {
        "+same"
    } else {
        ""
    };
    StepJudgement {
        step: index,
        finding,
        what: what(pair.step),
        hermes: state(pair.hermes, pair.outside_h),
        agent: format!("{}{code}{same}", state(pair.agent, pair.outside_a)),
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
        _ if !is_action => {
            return lifecycle(hermes, agent);
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
            format!(
                "hermes {} {reason}, the agent {}",
                hermes.class.word(),
                agent.class.word()
            ),
        );
    }
    if level_a > level_h {
        return (
            Finding::Attenuated,
            format!(
                "hermes {}, the agent {}; nothing it did lies outside the grants",
                hermes.class.word(),
                agent.class.word()
            ),
        );
    }
    if level_h < Level::Act {
        return (
            Finding::Equal,
            format!("neither acted: {}", hermes.class.word()),
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

/// Whether only what lies outside the grants is missing from the agent's run.
fn same_inside(index: usize, pair: &Pair<'_>, mask: &Mask) -> bool {
    let inside: Vec<_> = pair
        .hermes
        .delta
        .iter()
        .filter(|effect| !pair.outside_h.contains(&crate::holdings::describe(effect)))
        .collect();
    let value = |seen: &StepSeen| mask.apply(index, &seen.value);
    same_value(&value(pair.hermes), &value(pair.agent)) && inside.into_iter().eq(&pair.agent.delta)
}

/// Both acted inside the grants: the same result and effects are owed.
fn service(index: usize, pair: &Pair<'_>, mask: &Mask, diverged: bool) -> (Finding, String) {
    let Pair { hermes, agent, .. } = pair;
    // Rule `tool-error-is-a-result`: both acted, so what they report decides.
    let exact = hermes.class.level() == agent.class.level()
        && same_value(&hermes.value, &agent.value)
        && hermes.delta == agent.delta;
    if exact {
        return (Finding::Equal, "the same result and effects".to_owned());
    }
    let contents = |seen: &StepSeen| -> Vec<_> {
        seen.delta
            .iter()
            .map(|effect| {
                let noisy = mask.contents.contains(&effect.path);
                let digest = if noisy { "" } else { effect.digest.as_str() };
                (
                    effect.path.clone(),
                    effect.kind,
                    digest.to_owned(),
                    effect.mode,
                )
            })
            .collect()
    };
    let masked = hermes.class.level() == agent.class.level()
        && same_value(
            &mask.apply(index, &hermes.value),
            &mask.apply(index, &agent.value),
        )
        && contents(hermes) == contents(agent);
    if masked && !mask.is_empty() {
        return (
            Finding::EqualMasked,
            "the same but for what hermes itself varies in".to_owned(),
        );
    }
    if diverged {
        return (
            Finding::Equal,
            "the states differ since an earlier, judged difference; only authority is compared"
                .to_owned(),
        );
    }
    (Finding::Different, explain_difference(hermes, agent))
}

fn explain_difference(hermes: &StepSeen, agent: &StepSeen) -> String {
    if hermes.class != agent.class {
        return format!(
            "hermes {}, the agent {}",
            hermes.class.word(),
            agent.class.word()
        );
    }
    if !same_value(&hermes.value, &agent.value) {
        return match first_difference(&hermes.value, &agent.value, String::new()) {
            Some((at, left, right)) => {
                format!("the result differs at `{at}`: hermes {left}, the agent {right}")
            }
            None => "the result differs".to_owned(),
        };
    }
    let only = |one: &StepSeen, two: &StepSeen| -> Vec<String> {
        one.delta
            .iter()
            .filter(|effect| !two.delta.contains(effect))
            .map(|effect| {
                let digest: String = effect.digest.chars().take(8).collect();
                format!(
                    "{} [{digest} {} bytes mode {:o}]",
                    crate::holdings::describe(effect),
                    effect.size,
                    effect.mode
                )
            })
            .collect()
    };
    format!(
        "the effects differ: only hermes: {}; only the agent: {}",
        or_nothing(&only(hermes, agent)),
        or_nothing(&only(agent, hermes))
    )
}

fn or_nothing(list: &[String]) -> String {
    if list.is_empty() {
        "nothing".to_owned()
    } else {
        list.join(", ")
    }
}

/// The first place two values differ in, with both sides cut short.
fn first_difference(
    left: &serde_json::Value,
    right: &serde_json::Value,
    at: String,
) -> Option<(String, String, String)> {
    use serde_json::Value;
    match (left, right) {
        (Value::Object(one), Value::Object(two)) if one.keys().eq(two.keys()) => one
            .iter()
            .zip(two.values())
            .find_map(|((key, one), two)| first_difference(one, two, format!("{at}/{key}"))),
        (Value::Object(one), Value::Object(two)) => {
            let keys = |map: &serde_json::Map<String, Value>| {
                map.keys().cloned().collect::<Vec<_>>().join(",")
            };
            Some((
                format!("{at}/"),
                format!("has keys {}", keys(one)),
                format!("has keys {}", keys(two)),
            ))
        }
        (Value::Array(one), Value::Array(two)) if one.len() == two.len() => one
            .iter()
            .zip(two)
            .enumerate()
            .find_map(|(index, (one, two))| first_difference(one, two, format!("{at}/{index}"))),
        (left, right) if same_value(left, right) => None,
        (Value::String(one), Value::String(two)) => {
            let same = one
                .chars()
                .zip(two.chars())
                .take_while(|(one, two)| one == two)
                .count();
            let tail = |text: &str| -> String {
                format!(
                    "{:?}",
                    text.chars()
                        .skip(same.saturating_sub(12))
                        .take(80)
                        .collect::<String>()
                )
            };
            Some((format!("{at}[{same}]"), tail(one), tail(two)))
        }
        (left, right) => {
            let cut = |value: &Value| value.to_string().chars().take(120).collect::<String>();
            Some((at, cut(left), cut(right)))
        }
    }
}

/// Grants, revocations, delegation, the clock: what one side cannot express
/// shows in the calls that follow.
fn lifecycle(hermes: &StepSeen, agent: &StepSeen) -> (Finding, String) {
    match (hermes.class, agent.class) {
        (_, Class::Unsupported) => (
            Finding::Inconclusive,
            format!("the agent has no such step: {}", agent.code),
        ),
        (Class::Unsupported, _) => (
            Finding::Equal,
            format!("hermes has no such notion: {}", hermes.code),
        ),
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

fn what(step: &Step) -> String {
    match step {
        Step::Call { tool, .. } => format!("call:{tool}"),
        Step::Probe { name, .. } => format!("probe:{name}"),
        Step::Grant(_) => "grant".to_owned(),
        Step::Revoke { .. } => "revoke".to_owned(),
        Step::Advance { .. } => "advance".to_owned(),
        Step::EndSession {} => "end-session".to_owned(),
        Step::Spawn { .. } => "spawn".to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
