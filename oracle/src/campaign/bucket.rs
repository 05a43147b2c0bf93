//! Which findings have one cause.
//!
//! A finding is told by its verdict, by a code for what went wrong, and by the
//! operators that are left once everything else is left out. Findings with the
//! same of these are one bucket: a person looks at one of them.
//!
//! A verdict counts as unsafe or not: which kind of unsafe it is depends on what
//! Hermes did. The code is what the agent decided: that it asks, whatever its user
//! says to it, or the code of its refusal; else what the user had answered, how far
//! its effects reached, that it came to another outcome, or where its answer differs.
//! Of the operators those count that end or pass on authority. A spelling, a place or
//! a tool is not told: nothing decides by them, and one fault is seen through many.
//! `bisim selftest --buckets` measures how often a bucket mixes causes, and how often
//! a cause is spread over buckets, on faults whose cause is known because they were
//! planted.

use bisim_world::protocol::{RawTrace, StepOutcome, StepTrace};
use hermitcrab_core::outcome::DenialCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// What the agent's user answered, up to there.
    pub answers: Vec<String>,
    /// What happened outside the grants, by kind.
    pub effects: Vec<String>,
    /// Where the agent's answer differs from Hermes', and how.
    pub differs: Vec<String>,
    /// What the agent said, where it did not start or raised.
    pub said: String,
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
        let at = step.map_or(usize::MAX, |step| step.step);
        let asked = result.agent.iter().flat_map(|trace| trace.steps.iter());
        let asked = asked.take(at.saturating_add(1)).flat_map(|s| &s.questions);
        let mut answers: Vec<String> = asked.map(|asked| asked.answer.clone()).collect();
        answers.dedup();
        let there = |trace: &Option<RawTrace>| trace.as_ref()?.steps.get(at).cloned();
        let (hermes, agent) = (there(&result.hermes), there(&result.agent));
        let mut differs = Vec::new();
        if let (Some(hermes), Some(agent)) = (&hermes, &agent) {
            compare(&value(hermes), &value(agent), "", &mut differs);
        }
        differs.sort_unstable();
        differs.dedup();
        let said = agent.map_or_else(String::new, |agent| match agent.outcome {
            StepOutcome::Refused(code) if code == NOT_STARTED => agent.text,
            StepOutcome::Raised(why) => why,
            _ => String::new(),
        });
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
            answers,
            effects,
            differs,
            said,
            smallest: smallest.to_string(),
            families: smallest.classes().into_iter().map(str::to_owned).collect(),
        }
    }

    /// The bucket: verdict, code, operators.
    #[must_use]
    pub fn bucket(&self) -> String {
        let verdict = if self.verdict.is_unsafe() {
            "unsafe"
        } else {
            "differs"
        };
        let operators: Vec<&str> = self
            .families
            .iter()
            .map(String::as_str)
            .filter(|family| self.verdict.is_unsafe() && ENDS.contains(family))
            .collect();
        format!("{verdict} | {} | {}", self.code(), operators.join(" "))
    }

    /// Whether the two differ in whether it worked, or the agent did nothing where
    /// Hermes did: all else follows from that.
    fn is_another_outcome(&self) -> bool {
        let says = |how: &String| {
            let mut words = how.split(' ');
            words.any(|word| OUTCOMES.contains(&word))
        };
        let (hermes, agent) = (Did::of(&self.hermes), Did::of(&self.agent));
        // A question on the way changes no outcome.
        let bare = |class: &'_ str| class.trim_end_matches("+asked").to_owned();
        let did_nothing = agent.class == "ran" && agent.reach == "none" && hermes.reach != "none";
        self.differs.iter().any(says) || bare(hermes.class) != bare(agent.class) || did_nothing
    }

    fn code(&self) -> String {
        if self.verdict.is_unsafe() {
            return match self.answers.last() {
                Some(answer) => format!("after {answer}"),
                None => reach(&self.effects).to_owned(),
            };
        }
        let did = Did::of(&self.agent);
        // What the user says to a question is not the agent's, nor is it that nobody can be
        // asked about what a command did.
        let is_nobody_there = did.class == "discarded" && did.code == Some(NOT_HELD);
        if did.class.contains("asked") || is_nobody_there {
            return "asks".to_owned();
        }
        match did.code {
            Some(code) if self.said.is_empty() => code.to_owned(),
            Some(code) => format!("{code} {}", plain(&self.said)),
            None if did.class == "raised" => raised(&self.said),
            None if self.is_another_outcome() => "another outcome".to_owned(),
            // It told the same, and did something else or asked.
            None if self.differs.is_empty() => did.class.to_owned(),
            None => self.differs.join(", "),
        }
    }
}

/// What became of a step, in its parts.
struct Did<'s> {
    class: &'s str,
    reach: &'s str,
    code: Option<&'s str>,
}

impl<'s> Did<'s> {
    fn of(whole: &'s str) -> Self {
        let mut parts = whole.splitn(3, ':');
        Self {
            class: parts.next().unwrap_or_default(),
            reach: parts.next().unwrap_or_default(),
            code: parts.next(),
        }
    }
}

/// What was raised: the refusal behind it, if that is told, else the words.
fn raised(said: &str) -> String {
    let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '-';
    let mut words = said.split(|letter| !is_part(letter));
    let code = words.find(|word| DenialCode::ALL.iter().any(|code| code.as_str() == *word));
    code.map_or_else(|| format!("raised {}", plain(said)), str::to_owned)
}

/// Where an answer says whether it worked.
const OUTCOMES: [&str; 2] = ["success", "error"];

/// The code of what is not held.
const NOT_HELD: &str = "no-cap";

/// The code of an agent that does not start.
const NOT_STARTED: &str = "not-started";

/// Families of operators that end or pass on authority.
const ENDS: [&str; 5] = [
    "clock",
    "delegation",
    "restart",
    "revocation",
    "session-end",
];

/// How far effects reached, the farthest.
fn reach(effects: &[String]) -> &'static str {
    let is = |kind: &str| effects.iter().any(|effect| effect == kind);
    if is("reached") {
        "reached a host"
    } else if is("leaked") {
        "leaked a secret"
    } else {
        "changed files"
    }
}

/// What a step told the model or the prober.
fn value(step: &StepTrace) -> Value {
    if step.answer.is_null() {
        read(&step.text)
    } else {
        step.answer.clone()
    }
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// The places at which two answers differ, and how.
fn compare(hermes: &Value, agent: &Value, place: &str, out: &mut Vec<String>) {
    match (hermes, agent) {
        (same, again) if same == again => {}
        (Value::Object(hermes), Value::Object(agent)) => {
            for (key, value) in hermes {
                match agent.get(key) {
                    Some(other) => compare(value, other, key, out),
                    None => out.push(format!("no {key}")),
                }
            }
            let more = agent.keys().filter(|key| !hermes.contains_key(*key));
            out.extend(more.map(|key| format!("also {key}")));
        }
        (Value::Array(hermes), Value::Array(agent)) => {
            if hermes.len() != agent.len() {
                out.push(format!("another number of {place}"));
            }
            for (one, other) in hermes.iter().zip(agent) {
                compare(one, other, place, out);
            }
        }
        (Value::String(hermes), Value::String(agent)) => {
            match (read(hermes), read(agent)) {
                (Value::String(_), _) | (_, Value::String(_)) => {}
                (hermes, agent) => return compare(&hermes, &agent, place, out),
            }
            let how = if hermes.starts_with(agent.as_str()) {
                "cut"
            } else {
                "another"
            };
            out.push(format!("{how} {place}"));
        }
        _ => out.push(format!("another {place}")),
    }
}

/// Its words, without values.
fn plain(what: &str) -> String {
    let is_word =
        |word: &&str| !word.is_empty() && word.bytes().all(|letter| letter.is_ascii_lowercase());
    let words: Vec<&str> = what.split([' ', ',', ':']).filter(is_word).collect();
    words.join(" ")
}

/// The bucket of an input that breaks a law: which law, and what it says before it says
/// of what.
#[must_use]
pub fn of_law(law: &str, why: &str) -> String {
    let (what, _) = why.split_once(": ").unwrap_or((why, ""));
    format!("broken | {law} | {}", plain(what))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_broken_law_is_told_without_the_values_it_is_told_of() {
        let one = of_law("session", "cap:3 was used after its end");
        assert_eq!(one, of_law("session", "cap:17 was used after its end"));
        assert_ne!(one, of_law("session", "cap:3 is expired"));
        assert_ne!(one, of_law("batch", "cap:3 was used after its end"));
    }

    fn symptom(verdict: Kind, agent: &str) -> Symptom {
        Symptom {
            verdict,
            what: "call:write_file".to_owned(),
            hermes: "ran:outside".to_owned(),
            agent: agent.to_owned(),
            answers: Vec::new(),
            effects: Vec::new(),
            differs: Vec::new(),
            said: String::new(),
            smallest: "path:write+plain+all".to_owned(),
            families: vec!["plain".to_owned(), "restart".to_owned()],
        }
    }

    #[test]
    fn what_hermes_did_and_which_tool_was_used_do_not_make_another_bucket() {
        let one = symptom(Kind::Weaker, "ran:outside");
        let other = Symptom {
            what: "call:terminal".to_owned(),
            hermes: "asked-refused:none".to_owned(),
            families: vec!["encoding".to_owned(), "restart".to_owned()],
            ..symptom(Kind::BothUnsafe, "ran:outside")
        };
        assert_eq!(one.bucket(), "unsafe | changed files | restart");
        assert_eq!(one.bucket(), other.bucket());
    }

    #[test]
    fn answers_codes_effects_and_what_is_said_make_other_buckets() {
        let unsafe_one = symptom(Kind::Weaker, "ran+asked:outside");
        let asked = Symptom {
            answers: vec!["deny".to_owned()],
            ..unsafe_one.clone()
        };
        let leaked = Symptom {
            effects: vec!["changed".to_owned(), "leaked".to_owned()],
            ..unsafe_one.clone()
        };
        let refused = symptom(Kind::StricterUnnamed, "refused:none:no-cap");
        let asks = symptom(
            Kind::StricterUnnamed,
            "discarded+asked:none:rejected-by-user",
        );
        let closed = symptom(Kind::StricterUnnamed, "refused:none:not-started");
        let damaged = Symptom {
            said: "record 3 has another digest".to_owned(),
            ..closed.clone()
        };
        let cut = Symptom {
            hermes: "ran:none".to_owned(),
            differs: vec!["cut content".to_owned()],
            ..symptom(Kind::Different, "ran:none")
        };
        let lied = Symptom {
            differs: vec!["also success".to_owned(), "no content".to_owned()],
            ..cut.clone()
        };
        assert_eq!(lied.bucket(), "differs | another outcome | ");
        let buckets = [
            unsafe_one, asked, leaked, refused, closed, damaged, cut, asks,
        ];
        let buckets = buckets.map(|symptom| symptom.bucket());
        let different: std::collections::BTreeSet<&String> = buckets.iter().collect();
        assert_eq!(different.len(), buckets.len(), "{buckets:?}");
        assert_eq!(
            buckets[5],
            "differs | not-started record has another digest | "
        );
        assert_eq!(buckets[6], "differs | cut content | ");
    }

    #[test]
    fn an_agent_that_asks_is_one_bucket_whatever_its_user_says() {
        let asks = |agent: &str| symptom(Kind::StricterUnnamed, agent).bucket();
        let one = asks("asked-refused+asked:none:rejected-by-user");
        assert_eq!(one, "differs | asks | ");
        assert_eq!(one, asks("ran+asked:inside+same"));
        assert_eq!(one, asks("discarded+asked:none:rejected-by-user"));
        // Nobody was there to be asked about what the command did.
        assert_eq!(one, asks("discarded:none:no-cap"));
        assert_ne!(one, asks("discarded:none:denied-by-rule"));
        assert_ne!(one, asks("refused:none:no-cap"));
    }

    #[test]
    fn an_agent_that_raises_is_told_by_the_refusal_behind_it_or_by_its_words() {
        let raises = |said: &str| Symptom {
            said: said.to_owned(),
            ..symptom(Kind::Different, "raised:none")
        };
        let refused = raises("the conversation may not go to the model (no-cap): nothing allows");
        assert_eq!(refused.bucket(), "differs | no-cap | ");
        let other = raises("worker 7 ended: broken pipe");
        assert_eq!(
            other.bucket(),
            "differs | raised worker ended broken pipe | "
        );
    }

    #[test]
    fn nothing_done_where_hermes_did_is_another_outcome_for_calls_and_not_for_values() {
        let did = |hermes: &str, agent: &str| Symptom {
            hermes: hermes.to_owned(),
            differs: vec!["no diff".to_owned()],
            ..symptom(Kind::Different, agent)
        };
        let nothing = did("ran:inside", "ran:none");
        assert_eq!(nothing.bucket(), "differs | another outcome | ");
        assert_eq!(nothing.bucket(), did("hung:none", "ran:none").bucket());
        let less = "differs | no diff | ";
        assert_eq!(did("value:inside", "value:none").bucket(), less);
        assert_eq!(did("ran+asked:inside", "ran:inside").bucket(), less);
    }

    #[test]
    fn answers_are_compared_place_by_place() {
        let hermes = json!({"content": "one two", "size": 7, "error": "no", "of": ["a", "b"]});
        let agent = json!({"content": "one", "size": 3, "more": 1, "of": ["a"]});
        let mut differs = Vec::new();
        compare(&hermes, &agent, "", &mut differs);
        differs.sort_unstable();
        assert_eq!(
            differs,
            [
                "also more",
                "another number of of",
                "another size",
                "cut content",
                "no error"
            ]
        );
        let mut same = Vec::new();
        compare(&hermes, &hermes, "", &mut same);
        assert_eq!(same, [""; 0]);
    }
}
