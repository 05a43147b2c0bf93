//! From a judged case to its verdict.
//!
//! The relation says what differs; this says whether somebody has explained
//! it, whether the case's own expectation is met, and whether the facts
//! recorded with the case still hold.

use serde::{Deserialize, Serialize};

use crate::case::{AtMost, Case, EffectWord, ExpectedEffects, Must, Recorded};
use crate::holdings::below;
use crate::known::{Catalogue, Fault};
use crate::observation::{Class, Observation};
use crate::relation::{Finding, Judgement};

pub mod stated;

/// The classes of verdict, from harmless to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The same.
    Equal,
    /// The same but for noise.
    EqualMasked,
    /// Stricter, explained.
    Stricter,
    /// Acted where Hermes refuses by spelling, explained, inside the grants.
    Attenuated,
    /// Differs, and somebody owns it until a date.
    Baselined,
    /// No verdict is possible.
    Inconclusive,
    /// Stricter, unexplained.
    StricterUnnamed,
    /// Benign behaviour differs.
    Different,
    /// The effect exceeds what is held.
    BeyondGrant,
    /// Did what Hermes refused or asked for.
    Weaker,
    /// Both let it through.
    BothUnsafe,
}

/// All kinds, in order.
pub const KINDS: [Kind; 11] = [
    Kind::Equal,
    Kind::EqualMasked,
    Kind::Stricter,
    Kind::Attenuated,
    Kind::Baselined,
    Kind::Inconclusive,
    Kind::StricterUnnamed,
    Kind::Different,
    Kind::BeyondGrant,
    Kind::Weaker,
    Kind::BothUnsafe,
];

impl Kind {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::EqualMasked => "equal-masked",
            Self::Stricter => "stricter",
            Self::Attenuated => "attenuated",
            Self::Baselined => "baselined",
            Self::Inconclusive => "inconclusive",
            Self::StricterUnnamed => "stricter-unnamed",
            Self::Different => "different",
            Self::BeyondGrant => "beyond-grant",
            Self::Weaker => "weaker",
            Self::BothUnsafe => "both-unsafe",
        }
    }

    /// What it says about the agent, in a sentence without its stop.
    #[must_use]
    pub const fn means(self) -> &'static str {
        match self {
            Self::Equal => "the same result and effects",
            Self::EqualMasked => "the same but for what Hermes itself does not repeat",
            Self::Stricter => "the agent did less, for a reason that is written down",
            Self::Attenuated => "the agent ran inside the grants what Hermes refuses by spelling",
            Self::Baselined => "an ordinary difference somebody answers for until a date",
            Self::Inconclusive => "no verdict: a side did not end or does not repeat itself",
            Self::StricterUnnamed => "the agent did less, and nobody has written down why",
            Self::Different => "ordinary work came out differently than under Hermes",
            Self::BeyondGrant => "the agent did what nothing it holds covers",
            Self::Weaker => "the agent did what Hermes refuses or asks for, or what it must deny",
            Self::BothUnsafe => "both did what nothing that is held covers",
        }
    }

    /// Whether a gate passes it (inconclusive: up to a stated number).
    #[must_use]
    pub const fn passes(self) -> bool {
        match self {
            Self::Equal
            | Self::EqualMasked
            | Self::Stricter
            | Self::Attenuated
            | Self::Baselined => true,
            Self::Inconclusive
            | Self::StricterUnnamed
            | Self::Different
            | Self::BeyondGrant
            | Self::Weaker
            | Self::BothUnsafe => false,
        }
    }

    /// Whether it is the kind no baseline can excuse.
    #[must_use]
    pub const fn is_unsafe(self) -> bool {
        matches!(self, Self::BeyondGrant | Self::Weaker | Self::BothUnsafe)
    }
}

/// The reason of an `inconclusive` case that failed once and not again.
pub const UNSTEADY: &str = "unsteady";
/// The fingerprint of a verdict that comes from what the case itself expects.
pub const EXPECTATION: &str = "expectation";

/// The verdict on one case.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Verdict {
    /// The class.
    pub kind: Kind,
    /// Catalogue entries that explain it, or the reason of `inconclusive`.
    pub ids: Vec<String>,
    /// Why, one line for a person.
    pub why: String,
    /// The kind of difference, for grouping; empty if there is none.
    pub fingerprint: String,
    /// Faults of the catalogue found by this case.
    pub faults: Vec<Fault>,
}

impl Verdict {
    /// `stricter:<id>`, `inconclusive:<reason>`, `equal`.
    #[must_use]
    pub fn label(&self) -> String {
        if self.ids.is_empty() {
            self.kind.word().to_owned()
        } else {
            format!("{}:{}", self.kind.word(), self.ids.join("+"))
        }
    }

    /// Whether the case failed once and not again.
    #[must_use]
    pub fn is_unsteady(&self) -> bool {
        self.kind == Kind::Inconclusive && self.ids.iter().any(|id| id == UNSTEADY)
    }

    /// No verdict, for a stated reason.
    #[must_use]
    pub fn inconclusive(reason: &str, why: impl Into<String>) -> Self {
        Self {
            kind: Kind::Inconclusive,
            ids: vec![reason.to_owned()],
            why: why.into(),
            fingerprint: String::new(),
            faults: Vec::new(),
        }
    }
}

/// Decides.
#[must_use]
pub fn decide(
    case: &Case,
    version: &str,
    judgement: &Judgement,
    hermes: &Observation,
    agent: &Observation,
    catalogue: &Catalogue,
) -> Verdict {
    let mut verdict = Verdict {
        kind: Kind::Equal,
        ids: Vec::new(),
        why: judgement
            .steps
            .last()
            .map_or_else(|| "nothing ran".to_owned(), |step| step.why.clone()),
        fingerprint: String::new(),
        faults: Vec::new(),
    };
    for step in &judgement.steps {
        let (kind, id) = match step.finding {
            Finding::Equal => (Kind::Equal, None),
            Finding::EqualMasked => (Kind::EqualMasked, None),
            Finding::BeyondGrant => (Kind::BeyondGrant, None),
            Finding::Weaker => (Kind::Weaker, None),
            Finding::BothUnsafe => (Kind::BothUnsafe, None),
            Finding::Inconclusive => (Kind::Inconclusive, Some(reason_of(&step.why))),
            Finding::Stricter | Finding::Attenuated | Finding::Different => {
                explain(case, version, step, catalogue, &mut verdict.faults)
            }
        };
        if kind > verdict.kind {
            verdict.kind = kind;
            verdict.why = if judgement.steps.len() > 1 {
                format!("step {}: {}", step.step + 1, step.why)
            } else {
                step.why.clone()
            };
            verdict.fingerprint = step.fingerprint();
            verdict.ids.clear();
        }
        if kind == verdict.kind
            && let Some(id) = id
            && !verdict.ids.contains(&id)
        {
            verdict.ids.push(id);
        }
    }
    if let Some((kind, why)) = expectation(case, judgement, hermes, agent)
        // What a case states itself is said where both are as bad: it has no other name.
        && kind >= verdict.kind
    {
        verdict.kind = kind;
        verdict.ids.clear();
        verdict.why = why;
        verdict.fingerprint = EXPECTATION.to_owned();
    }
    if let Some(recorded) = case.recorded.get(version)
        && let Some(why) = recorded_differs(recorded, judgement, hermes)
        && verdict.kind < Kind::Inconclusive
    {
        verdict = Verdict {
            faults: verdict.faults,
            ..Verdict::inconclusive("recorded-differs", why)
        };
    }
    verdict
}

fn explain(
    case: &Case,
    version: &str,
    step: &crate::relation::StepJudgement,
    catalogue: &Catalogue,
    faults: &mut Vec<Fault>,
) -> (Kind, Option<String>) {
    let matching: Vec<_> = catalogue
        .entries
        .iter()
        .filter(|entry| entry.catches(version, case, step))
        .collect();
    for entry in &matching {
        if !entry.describes(step) {
            faults.push(Fault {
                entry: entry.id.clone(),
                kind: "overbroad".into(),
                why: format!(
                    "catches `{}`, and none of its fingerprints is `{}`; narrow its scope, or \
                     add that one if its reason holds there",
                    case.id,
                    step.fingerprint()
                ),
            });
        }
    }
    if matching.len() > 1 {
        let ids: Vec<_> = matching.iter().map(|entry| entry.id.as_str()).collect();
        faults.push(Fault {
            entry: ids.join(", "),
            kind: "ambiguous".into(),
            why: format!("all explain `{}`: {}", case.id, step.fingerprint()),
        });
    }
    match (matching.first(), step.finding) {
        (Some(entry), Finding::Stricter) => (Kind::Stricter, Some(entry.id.clone())),
        (Some(entry), Finding::Attenuated) => (Kind::Attenuated, Some(entry.id.clone())),
        (Some(entry), _) => (Kind::Baselined, Some(entry.id.clone())),
        (None, Finding::Stricter) => (Kind::StricterUnnamed, None),
        (None, Finding::Attenuated) => (Kind::Weaker, None),
        (None, _) => (Kind::Different, None),
    }
}

/// A short stable word for why there is no verdict.
fn reason_of(why: &str) -> String {
    for (start, word) in [
        ("hermes disagrees", "hermes-unstable"),
        ("the agent died", "agent-died"),
        ("hermes died", "hermes-died"),
        ("the agent reached", "agent-timed-out"),
        ("the agent does not", "agent-unsupported"),
        ("the agent has no", "agent-unsupported"),
        ("hermes does not", "hermes-unsupported"),
        ("the case asks", "asked-wrongly"),
    ] {
        if why.starts_with(start) {
            return word.to_owned();
        }
    }
    "other".to_owned()
}

/// What the case itself demands of the agent; `None` if it is met.
fn expectation(
    case: &Case,
    judgement: &Judgement,
    hermes: &Observation,
    agent: &Observation,
) -> Option<(Kind, String)> {
    let last = agent.steps.last();
    let class = last.map_or(Class::Raised, |step| step.class);
    match case.expect.agent {
        Must::MustPermit => {
            let same_failure = hermes
                .steps
                .last()
                .is_some_and(|step| matches!(step.class, Class::ToolError | Class::Ran));
            let met = match class {
                Class::Ran | Class::ProbePermit | Class::ProbeValue => true,
                Class::ToolError => same_failure,
                Class::Discarded
                | Class::Refused
                | Class::AskedRefused
                | Class::Pending
                | Class::Raised
                | Class::Unsupported
                | Class::Hung
                | Class::Died
                | Class::ProbeAsk
                | Class::ProbeDeny => false,
            };
            if !met {
                return Some((
                    Kind::Different,
                    format!("must permit, but for the agent it is `{}`", class.word()),
                ));
            }
            let missing: Vec<_> = hermes
                .effects
                .iter()
                .filter(|effect| {
                    !judgement
                        .hermes_outside
                        .contains(&crate::holdings::describe(effect))
                        && !agent
                            .effects
                            .iter()
                            .any(|one| one.path == effect.path && one.kind == effect.kind)
                })
                .map(crate::holdings::describe)
                .collect();
            if !missing.is_empty() {
                return Some((
                    Kind::Different,
                    format!("must permit, but only hermes {}", missing.join(", ")),
                ));
            }
        }
        Must::MustDeny => {
            if !judgement.agent_outside.is_empty() {
                return Some((
                    Kind::BeyondGrant,
                    format!(
                        "must deny, but the agent {}",
                        judgement.agent_outside.join(", ")
                    ),
                ));
            }
            let executes = judgement
                .steps
                .last()
                .is_some_and(|step| step.what == "probe:classify_command");
            // A command may run in its view as long as nothing comes of it.
            if class == Class::ProbePermit && !(executes && agent.effects.is_empty()) {
                return Some((Kind::Weaker, "must deny, but the agent permits".to_owned()));
            }
        }
        Must::Either => {}
    }
    if let Some(ExpectedEffects::AtMost(AtMost { at_most })) = &case.expect.effects {
        let more: Vec<_> = agent
            .effects
            .iter()
            .filter(|effect| !at_most.iter().any(|path| below(&effect.path, path)))
            .map(crate::holdings::describe)
            .collect();
        if !more.is_empty() {
            return Some((
                Kind::Weaker,
                format!("more than the case allows: the agent {}", more.join(", ")),
            ));
        }
    }
    if let Some(expected) = &case.expect.effects {
        let met = match expected {
            ExpectedEffects::Word(EffectWord::None) => agent.effects.is_empty(),
            ExpectedEffects::Word(EffectWord::Some) => !agent.effects.is_empty(),
            ExpectedEffects::AtMost(_) => true,
            ExpectedEffects::Paths(paths) => {
                let mut paths = paths.clone();
                paths.sort();
                let mut seen: Vec<_> = agent
                    .effects
                    .iter()
                    .map(|effect| effect.path.clone())
                    .collect();
                seen.sort();
                paths == seen
            }
        };
        if !met {
            return Some((Kind::Different, stated::otherwise(expected, &agent.effects)));
        }
    }
    for (index, expected) in case.expect.steps.iter().flatten().enumerate() {
        let seen = agent.steps.get(index);
        let (word, code) = expected
            .split_once(':')
            .map_or((expected.as_str(), None), |(word, code)| (word, Some(code)));
        let met = word == "*"
            || seen.is_some_and(|seen| {
                seen.class.word() == word && code.is_none_or(|code| seen.code == code)
            });
        if !met {
            let seen = seen.map_or_else(
                || "did not get there".to_owned(),
                |seen| format!("{}:{}", seen.class.word(), seen.code),
            );
            // Acting where a refusal is stated is never a mere difference.
            let acted = agent
                .steps
                .get(index)
                .is_some_and(|seen| matches!(seen.class, Class::Ran | Class::ProbePermit));
            let kind = if acted
                && matches!(
                    word,
                    "refused" | "asked-refused" | "discarded" | "deny" | "ask"
                ) {
                Kind::Weaker
            } else {
                Kind::Different
            };
            return Some((
                kind,
                format!(
                    "step {}: the case states {expected}, the agent {seen}",
                    index + 1
                ),
            ));
        }
    }
    None
}

/// How the live run contradicts what was recorded; `None` if it does not.
fn recorded_differs(
    recorded: &Recorded,
    judgement: &Judgement,
    hermes: &Observation,
) -> Option<String> {
    let has = |name: &String| bisim_world::enter::has_program(name);
    if recorded.not_compared.is_some() || recorded.lacked.iter().any(has) {
        return None;
    }
    let last = hermes.steps.last()?;
    if let Some(outcome) = &recorded.outcome
        && outcome.replace('_', "-") != last.class.word()
    {
        return Some(format!(
            "recorded {outcome}, live hermes {}",
            last.class.word()
        ));
    }
    if let Some(answer) = &recorded.answer {
        for (key, expected) in answer.iter().filter(|(_, expected)| !expected.is_null()) {
            let live = match key.as_str() {
                "decision" => serde_json::Value::String(match last.class {
                    Class::ProbeValue => "none".to_owned(),
                    class => class.word().to_owned(),
                }),
                "value" => last.value.clone(),
                other => last.value.get(other).cloned().unwrap_or_default(),
            };
            if live != *expected {
                return Some(format!("recorded {key} {expected}, live hermes {live}"));
            }
        }
    }
    if let Some(had) = recorded.had_effect {
        let has = !judgement.hermes_outside.is_empty();
        if had != has {
            let word = |had: bool| if had { "an effect" } else { "no effect" };
            return Some(format!(
                "recorded {}, live hermes had {}",
                word(had),
                word(has)
            ));
        }
    }
    if let Some(paths) = &recorded.effects {
        let changed = |path: &str| {
            hermes
                .effects
                .iter()
                .any(|effect| crate::holdings::below(path, &effect.path))
        };
        let missing: Vec<_> = paths
            .keys()
            .filter(|path| !changed(path))
            .map(String::as_str)
            .collect();
        if !missing.is_empty() {
            return Some(format!(
                "recorded a change of {}, live there is none",
                missing.join(", ")
            ));
        }
        if paths.is_empty() && !hermes.effects.is_empty() {
            let seen: Vec<_> = hermes
                .effects
                .iter()
                .map(crate::holdings::describe)
                .collect();
            return Some(format!(
                "recorded no change, live hermes {}",
                seen.join(", ")
            ));
        }
    }
    let flag = |name: &str, recorded: Option<bool>, live: bool| {
        recorded
            .filter(|recorded| *recorded != live)
            .map(|recorded| format!("recorded {name} {recorded}, live {live}"))
    };
    flag("network", recorded.network, !hermes.network.is_empty()).or_else(|| {
        let leaked = hermes.steps.iter().any(|step| !step.canaries.is_empty());
        flag("secret in the output", recorded.secret_in_output, leaked)
    })
}

#[cfg(test)]
mod tests;
