//! Which findings have one cause.
//!
//! A finding is told by its verdict, by a code for what went wrong, and by the
//! operators that are left once everything else is left out. Findings with the
//! same of these are one bucket: a person looks at one of them. What Hermes did
//! besides and which tool was used are left out, for one fault is seen through
//! many of both. `bisim selftest --buckets` measures how often a bucket mixes
//! causes, and how often a cause is spread over buckets, on faults whose cause
//! is known because they were planted.

use serde::{Deserialize, Serialize};

use super::named;
use crate::case::Case;
use crate::generate::Specimen;
use crate::relation::StepJudgement;
use crate::result::CaseResult;
use crate::verdict::Kind;

/// What is seen of a finding, as far as it tells causes apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Symptom {
    /// How bad it is.
    pub verdict: Kind,
    /// The kind of step.
    pub what: String,
    /// What Hermes did there.
    pub hermes: String,
    /// What the agent did there.
    pub agent: String,
    /// What the agent's user answered there.
    pub answers: Vec<String>,
    /// What happened outside the grants, by kind, or why it differs.
    pub effects: Vec<String>,
    /// The smallest specimen with the same verdict.
    pub smallest: String,
    /// Its families.
    pub families: Vec<String>,
}

impl Symptom {
    /// What is seen of a result that is a finding.
    #[must_use]
    pub fn of(case: &Case, result: &CaseResult, smallest: &Specimen) -> Self {
        let (kind, step) = named::worst(case, result).unwrap_or((result.verdict.kind, None));
        let asked = step
            .and_then(|step| result.agent.as_ref()?.steps.get(step.step))
            .map(|seen| seen.questions.iter().map(|asked| asked.answer.clone()));
        let outside = result.judgement.iter().flat_map(|all| &all.agent_outside);
        let mut effects: Vec<String> = outside
            .filter_map(|effect| effect.split_whitespace().next().map(str::to_owned))
            .collect();
        effects.sort_unstable();
        effects.dedup();
        let part = |part: fn(&StepJudgement) -> &String| step.map(part).cloned();
        Self {
            verdict: kind,
            what: part(|step| &step.what).unwrap_or_default(),
            hermes: part(|step| &step.hermes).unwrap_or_default(),
            agent: part(|step| &step.agent).unwrap_or_else(|| result.verdict.why.clone()),
            answers: asked.into_iter().flatten().collect(),
            effects,
            smallest: smallest.to_string(),
            families: smallest.classes().into_iter().map(str::to_owned).collect(),
        }
    }

    /// The bucket: verdict, code, operators.
    #[must_use]
    pub fn bucket(&self) -> String {
        format!(
            "{} | {} | {}",
            self.verdict.word(),
            self.agent,
            self.families.join(" ")
        )
    }
}

/// The bucket of an input that breaks a law: which law, and what it says without the
/// values it says it of.
#[must_use]
pub fn of_law(law: &str, why: &str) -> String {
    let plain = |word: &&str| word.bytes().all(|letter| letter.is_ascii_lowercase());
    let words: Vec<&str> = why.split([' ', ',', ':']).filter(plain).collect();
    format!("broken | {law} | {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::of_law;

    #[test]
    fn a_broken_law_is_told_without_the_values_it_is_told_of() {
        let one = of_law("session", "cap:3 was used after its end");
        assert_eq!(one, of_law("session", "cap:17 was used after its end"));
        assert_ne!(one, of_law("session", "cap:3 is expired"));
        assert_ne!(one, of_law("batch", "cap:3 was used after its end"));
    }
}
