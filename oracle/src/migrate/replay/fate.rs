//! What became of one call, in the words of somebody who is moving.

use bisim_world::protocol::{EffectKind, FsEffect, StepOutcome, StepTrace};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::place::WORK;
use crate::migrate::history::Call;
use crate::relation::{Finding, StepJudgement};

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The same result and the same effects.
    Same,
    /// Hermes acts, the agent asks, refuses or does less.
    Stricter,
    /// Hermes asks or refuses by spelling, the agent acts inside the grants.
    Attenuated,
    /// Both act, and something differs.
    Changed,
    /// The agent did what nothing covers. This must not happen.
    Unsafe,
    /// The replay says nothing about it.
    NotReplayed,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 6] = [
        Self::Same,
        Self::Stricter,
        Self::Attenuated,
        Self::Changed,
        Self::Unsafe,
        Self::NotReplayed,
    ];

    /// Its words.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Stricter => "would ask or refuse",
            Self::Attenuated => "runs where Hermes asks or refuses",
            Self::Changed => "differs",
            Self::Unsafe => "unsafe",
            Self::NotReplayed => "not replayable",
        }
    }
}

/// How the reason begins where the harness gave none.
const NO_VERDICT: &str = "no verdict: ";

/// Why a call says nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unreplayable {
    /// Its tool needs something no world has.
    Tool(&'static str),
    /// Nothing was recorded about what came of it.
    NoResult,
    /// It reached for the network.
    Network,
    /// It ran this program, which a world has a stand-in for.
    StandIn(String),
    /// A file or program it found then is not in the world.
    Missing(&'static str),
    /// It came out differently for a reason that is not known.
    Surroundings,
    /// It took too long.
    TooLong,
    /// The harness gave no verdict.
    Harness(String),
    /// The time for the replay was spent.
    Budget,
}

impl Unreplayable {
    /// For counting and for people.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Tool(why) => (*why).to_owned(),
            Self::NoResult => "no result of it was recorded".to_owned(),
            Self::Network => "it reaches for the network, and a world has none".to_owned(),
            Self::StandIn(program) => {
                format!("it runs `{program}`, for which a world has only a stand-in")
            }
            Self::Missing(what) => format!("{what} it found then is not known now"),
            Self::Surroundings => {
                "under Hermes itself it does not come out as recorded: its surroundings are not known"
                    .to_owned()
            }
            Self::TooLong => "it takes longer than a replay waits".to_owned(),
            Self::Harness(word) => format!("{NO_VERDICT}{word}"),
            Self::Budget => "the time for the replay was spent".to_owned(),
        }
    }
}

/// A capability that a call needed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub struct Need {
    /// `fs.modify` and the like.
    pub verb: String,
    /// Below the workspace with `./`, else absolute.
    pub on: String,
}

impl Need {
    /// What an effect needed.
    #[must_use]
    pub fn of(effect: &FsEffect) -> Self {
        let verb = match effect.kind {
            EffectKind::Created => "fs.create",
            EffectKind::Modified | EffectKind::Metadata => "fs.modify",
            EffectKind::Deleted => "fs.delete",
        };
        let on = match effect.path.strip_prefix(WORK) {
            Some("") => ".".to_owned(),
            Some(below) if below.starts_with('/') => format!(".{below}"),
            _ => effect.path.clone(),
        };
        Self {
            verb: verb.to_owned(),
            on,
        }
    }
}

/// The directory both places are below.
#[must_use]
pub fn shared(one: &str, two: &str) -> String {
    let same: Vec<&str> = one
        .split('/')
        .zip(two.split('/'))
        .take_while(|(one, two)| one == two)
        .map(|(part, _)| part)
        .collect();
    same.join("/")
}

/// One call, judged.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Outcome {
    /// What became of it.
    pub class: Class,
    /// The tool.
    pub tool: String,
    /// The call in a line; not yet without secrets.
    pub call: String,
    /// Why, for a person; not yet without secrets.
    pub why: String,
    /// What its effects under Hermes need here.
    pub needs: Vec<Need>,
    /// Those of them that no proposed grant covers.
    pub missing: Vec<Need>,
    /// The agent's code, where it asked or refused.
    pub code: String,
    /// Whether the difference, if it is one, is known and harmless.
    #[serde(default)]
    pub is_known: bool,
}

impl Outcome {
    /// The same without secrets.
    #[must_use]
    pub fn cleaned(&self, clean: &dyn Fn(&str) -> String) -> Self {
        let needs = |needs: &[Need]| {
            let cleaned = needs.iter().map(|need| Need {
                verb: need.verb.clone(),
                on: clean(&need.on),
            });
            cleaned.collect()
        };
        Self {
            class: self.class,
            tool: clean(&self.tool),
            call: clean(&self.call),
            why: clean(&self.why),
            needs: needs(&self.needs),
            missing: needs(&self.missing),
            code: self.code.clone(),
            is_known: self.is_known,
        }
    }

    /// Whether nothing was seen because the oracle itself failed.
    #[must_use]
    pub fn is_without_verdict(&self) -> bool {
        self.class == Class::NotReplayed && self.why.starts_with(NO_VERDICT)
    }

    /// A call that says nothing.
    #[must_use]
    pub fn unreplayed(call: &Call, reason: &Unreplayable) -> Self {
        Self {
            class: Class::NotReplayed,
            tool: call.tool.clone(),
            call: line(call),
            why: reason.reason(),
            needs: Vec::new(),
            missing: Vec::new(),
            code: String::new(),
            is_known: false,
        }
    }
}

/// A call in a line.
#[must_use]
pub fn line(call: &Call) -> String {
    let text = |name: &str| call.args.get(name).and_then(Value::as_str);
    text("command")
        .or_else(|| text("pattern"))
        .or_else(|| text("path"))
        .or_else(|| text("code"))
        .map_or_else(|| call.args.to_string(), str::to_owned)
}

/// The class of a judged step.
#[must_use]
pub fn class(finding: Finding) -> Option<Class> {
    match finding {
        Finding::Equal | Finding::EqualMasked => Some(Class::Same),
        Finding::Stricter => Some(Class::Stricter),
        Finding::Attenuated => Some(Class::Attenuated),
        Finding::Different => Some(Class::Changed),
        Finding::Weaker | Finding::BeyondGrant | Finding::BothUnsafe => Some(Class::Unsafe),
        Finding::Inconclusive => None,
    }
}

/// The code of the agent's refusal, from a judgement's words.
#[must_use]
pub fn code(judged: &StepJudgement) -> String {
    judged
        .agent
        .split(':')
        .nth(2)
        .unwrap_or_default()
        .to_owned()
}

/// Why two results differ, without the pieces of them: a piece of a secret is
/// not known for one, and would not be struck out.
#[must_use]
pub fn without_content(why: &str) -> &str {
    if why.starts_with("the result differs") {
        why.split(": hermes ").next().unwrap_or(why)
    } else {
        why
    }
}

/// Whether Hermes' replay of a call is what was recorded, as far as that can be
/// told: a call that was refused or asked about is not held against its record.
///
/// # Errors
/// Why the replay says nothing.
pub fn faithful(call: &Call, live: &StepTrace) -> Result<(), Unreplayable> {
    match live.outcome {
        StepOutcome::Ran | StepOutcome::ToolError => {}
        StepOutcome::RanDiscarded(_)
        | StepOutcome::Refused(_)
        | StepOutcome::AskedRefused(_)
        | StepOutcome::Pending
        | StepOutcome::Raised(_)
        | StepOutcome::Unsupported(_) => return Ok(()),
    }
    let recorded = call.result.as_deref().unwrap_or_default();
    let (then, now) = (parsed(recorded), parsed(&live.text));
    let refused_then =
        text(&then, "error").starts_with("BLOCKED") || text(&then, "status") == "blocked";
    if refused_then {
        return Ok(());
    }
    let same = match call.tool.as_str() {
        "terminal" => then.get("exit_code") == now.get("exit_code"),
        "execute_code" => text(&then, "status") == text(&now, "status"),
        _ => failed(&then) == failed(&now),
    };
    let said = live.text.to_ascii_lowercase();
    if same {
        return match missed(&recorded.to_ascii_lowercase(), &said) {
            Some(what) => Err(Unreplayable::Missing(what)),
            None => Ok(()),
        };
    }
    Err(
        if now.get("exit_code").and_then(Value::as_i64) == Some(127)
            || said.contains("command not found")
        {
            Unreplayable::Missing("a program")
        } else if said.contains("no such file")
            || said.contains("not found")
            || said.contains("no module named")
        {
            Unreplayable::Missing("a file")
        } else {
            Unreplayable::Surroundings
        },
    )
}

/// What a call misses now that it did not miss then, by what it says: in a pipe, or where the
/// command goes on, the exit status tells nothing of it.
fn missed(then: &str, now: &str) -> Option<&'static str> {
    [
        ("not a git repository", "a repository"),
        ("command not found", "a program"),
        ("no such file or directory", "a file"),
    ]
    .into_iter()
    .find(|(words, _)| now.contains(words) && !then.contains(words))
    .map(|(_, what)| what)
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn failed(value: &Value) -> bool {
    value.get("error").is_some_and(|error| !error.is_null())
        || value.get("success") == Some(&Value::Bool(false))
}

#[cfg(test)]
mod tests {
    use bisim_world::protocol::{StepOutcome, StepTrace};
    use serde_json::json;

    use super::{Unreplayable, faithful, without_content};
    use crate::migrate::history::Call;

    fn check(
        recorded: serde_json::Value,
        outcome: StepOutcome,
        live: serde_json::Value,
    ) -> Result<(), Unreplayable> {
        let call = Call {
            id: String::new(),
            tool: "terminal".into(),
            args: json!({"command": "x"}),
            result: Some(recorded.to_string()),
            cut: false,
        };
        let mut seen = StepTrace::of(outcome);
        seen.text = live.to_string();
        faithful(&call, &seen)
    }

    #[test]
    fn pieces_of_results_stay_out_of_the_reasons() {
        let why = "the result differs at `/output[3]`: hermes \"half a sec\", the agent \"\"";
        assert_eq!(without_content(why), "the result differs at `/output[3]`");
        assert_eq!(without_content("the same"), "the same");
    }

    #[test]
    fn a_replay_that_hermes_itself_does_not_repeat_says_nothing() {
        let ok = json!({"exit_code": 0, "output": "3"});
        assert_eq!(
            check(ok.clone(), StepOutcome::Ran, json!({"exit_code": 0})),
            Ok(())
        );
        assert_eq!(
            check(ok.clone(), StepOutcome::Ran, json!({"exit_code": 127})),
            Err(Unreplayable::Missing("a program"))
        );
        assert_eq!(
            check(
                ok.clone(),
                StepOutcome::Ran,
                json!({"exit_code": 1, "output": "cat: a: No such file or directory"})
            ),
            Err(Unreplayable::Missing("a file"))
        );
        assert_eq!(
            check(ok.clone(), StepOutcome::Ran, json!({"exit_code": 3})),
            Err(Unreplayable::Surroundings)
        );
        // A pipe hides the status of what failed in it.
        let git = "fatal: not a git repository (or any of the parent directories): .git\n0";
        let now = json!({"exit_code": 0, "output": git});
        assert_eq!(
            check(ok.clone(), StepOutcome::Ran, now.clone()),
            Err(Unreplayable::Missing("a repository"))
        );
        assert_eq!(check(now.clone(), StepOutcome::Ran, now), Ok(()));
        assert_eq!(
            check(
                ok.clone(),
                StepOutcome::Ran,
                json!({"exit_code": 0, "output": "sort: a: No such file or directory"})
            ),
            Err(Unreplayable::Missing("a file"))
        );
        // What would be asked now was answered then.
        assert_eq!(
            check(
                ok,
                StepOutcome::AskedRefused("denied".into()),
                json!({"exit_code": -1})
            ),
            Ok(())
        );
        let blocked = json!({"exit_code": -1, "error": "BLOCKED: x"});
        assert_eq!(
            check(blocked, StepOutcome::Ran, json!({"exit_code": 0})),
            Ok(())
        );
    }
}
