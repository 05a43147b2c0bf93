//! Carrying out a locked plan: the machine says what is next, the actions do it.
//!
//! Here the core's machine, the actions and the user are joined. What comes
//! back from an action is data for a slot; nothing in it reaches the plan.
//! This module must never choose a step, repeat one of its own accord, or take
//! a text for anything but a value.

pub mod pick;

use hermitcrab_core::plan::{
    Failure, Kind, Level, Machine, Plan, Raw, Toolbox, Type, Value,
    eval::Moment,
    interp::{Concern, Next, Reply, Status, ToolCall},
};

use crate::{
    actions::{self, Did, Trouble, Way},
    planner::show,
    runtime::{Asked, Inquiry, Runtime, Steering},
    values::{json, whole_text},
};

/// What is to become of a call that is about to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Go {
    /// Make it.
    On,
    /// Leave it out.
    Over,
    /// End the plan here.
    Stop,
}

/// Looks on, and may hold a step back.
pub trait Onlooker {
    /// A call is about to be made.
    fn before(&mut self, runtime: &mut Runtime, call: &ToolCall) -> Go;
    /// A step is about to ask the user for a value.
    fn asks(&mut self, _step: &str) {}
    /// Is nothing more to be done, although no call is waiting to be made?
    fn is_over(&mut self) -> bool {
        false
    }
    /// A call was made.
    fn after(&mut self, call: &ToolCall, result: Result<&Did, &Trouble>);
    /// The plan says something.
    fn say(&mut self, text: &str);
    /// Does the user say yes to this value, shown whole?
    fn confirm(&mut self, value: &Value) -> bool;
    /// Is a text, shown in full, to be planned with these tools? The plan, if
    /// the user approves the text and then the plan.
    fn delegate(&mut self, runtime: &mut Runtime, text: &str, tools: &Toolbox) -> Option<Plan>;
    /// A model was to pick data out of a text for this step, and there is none.
    fn unpicked(&mut self, step: &str, trouble: &Trouble);
    /// The plan made of such a text is over.
    fn further_ended(&mut self, _machine: &Machine) {}
}

/// Picks data out of text: a model without tools, memory or reach.
pub trait Picker {
    /// The answer as data; whether it is of the schema is looked at later.
    ///
    /// # Errors
    /// There is none.
    fn pick(
        &mut self,
        runtime: &mut Runtime,
        text: &str,
        ask: &str,
        schema: &Type,
    ) -> Result<Raw, Trouble>;
}

/// Where there is no model.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPicker;

impl Picker for NoPicker {
    fn pick(&mut self, _: &mut Runtime, _: &str, _: &str, _: &Type) -> Result<Raw, Trouble> {
        Err(Trouble::new(
            Failure::NobodyToAsk,
            "no model is configured that could read it; `models.quarantined` names one",
        ))
    }
}

/// Carries a plan out to its end.
pub fn run(
    runtime: &mut Runtime,
    plan: Plan,
    onlooker: &mut dyn Onlooker,
    picker: &mut dyn Picker,
) -> Machine {
    let mut machine = Machine::new(plan);
    let mut making_way = None;
    loop {
        if onlooker.is_over() {
            machine.cancel();
        }
        match machine.go_on() {
            Next::Done => return machine,
            Next::Call(call) => {
                let way = match making_way.take().as_ref() == Some(&call.step) {
                    true => Way::IsMade,
                    false => Way::IsThere,
                };
                match onlooker.before(runtime, &call) {
                    Go::On => {
                        let mut questions: Vec<Asked> = Vec::new();
                        let gives = machine.plan().toolbox().get(&call.tool);
                        let gives = gives.map_or(Kind::Never, |tool| tool.result.kind.clone());
                        let what = (&call, &gives, way);
                        let did = actions::act(runtime, what, steering(&call), &mut questions);
                        onlooker.after(&call, did.as_ref());
                        machine.supply(reply(did));
                    }
                    Go::Over => machine.leave_out(),
                    Go::Stop => machine.cancel(),
                }
            }
            Next::MakeDirectory(call) => {
                // Together with what is to lie in it: one step is one commit, to be taken back
                // as one.
                making_way = Some(call.step);
                machine.supply(Reply::Result(Raw::Nothing));
            }
            Next::Extract {
                step,
                from,
                ask,
                schema,
            } => {
                let text = whole_text(&from);
                let reply = match picker.pick(runtime, &text, &ask, &schema) {
                    Ok(raw) => Reply::Result(raw),
                    Err(trouble) => {
                        onlooker.unpicked(&step, &trouble);
                        Reply::Failed(trouble.failure)
                    }
                };
                machine.supply(reply);
            }
            Next::AskUser {
                step,
                question,
                schema,
            } => {
                onlooker.asks(&step);
                let reply = ask_user(runtime, question, &schema, onlooker);
                if !onlooker.is_over() {
                    machine.supply(reply);
                }
            }
            Next::Confirm { value, .. } => {
                let yes = onlooker.confirm(&value);
                machine.supply(if yes {
                    Reply::Result(Raw::Nothing)
                } else {
                    Reply::Failed(Failure::Refused)
                });
            }
            Next::Delegate { text, tools, .. } => {
                let text = whole_text(&text);
                // Nothing the plan at hand could not call itself.
                let tools = machine.plan().toolbox().only(&tools);
                match onlooker.delegate(runtime, &text, &tools) {
                    // A plan made from a text delegates no further.
                    Some(inner) if !delegates(inner.steps()) => {
                        let inner = run(runtime, inner, onlooker, &mut *picker);
                        onlooker.further_ended(&inner);
                        let failed = inner
                            .reports()
                            .iter()
                            .any(|report| matches!(report.status, Status::Failed(_)));
                        machine.supply(if failed {
                            Reply::Failed(Failure::Broken)
                        } else {
                            Reply::Result(Raw::Nothing)
                        });
                    }
                    Some(_) | None => machine.supply(Reply::Failed(Failure::Refused)),
                }
            }
            Next::Say { text, .. } => onlooker.say(&whole_text(&text)),
        }
    }
}

fn delegates(steps: &[hermitcrab_core::plan::Step]) -> bool {
    use hermitcrab_core::plan::What;
    steps
        .iter()
        .any(|step| matches!(step.what, What::Delegate { .. }) || step.what.blocks().any(delegates))
}

fn reply(did: Result<Did, Trouble>) -> Reply {
    match did {
        Ok(did) if did.already => Reply::Already(did.result),
        Ok(did) => Reply::Result(did.result),
        Err(trouble) => Reply::Failed(trouble.failure),
    }
}

/// What the session is told of the data that steers a call.
fn steering(call: &ToolCall) -> Option<Steering> {
    (!call.concerns.is_empty()).then(|| Steering {
        label: call.steered_by.label(),
        note: call
            .concerns
            .iter()
            .map(concern)
            .collect::<Vec<_>>()
            .join("\n"),
    })
}

/// Where the data came from, in a line.
#[must_use]
pub fn concern(concern: &Concern) -> String {
    let from = if concern.from.is_empty() {
        "the plan".to_owned()
    } else {
        format!("step {}", concern.from.join(", "))
    };
    if let Some(reader) = &concern.reader {
        let what = match &concern.argument {
            Some(argument) => format!("`{argument}`"),
            None => "that this happens at all".to_owned(),
        };
        return format!(
            "{what} came from {from} and is not for {} to see",
            show::quoted(reader)
        );
    }
    match &concern.argument {
        Some(argument) => format!(
            "`{argument}` was not written in the plan: it came from {from} ({})",
            concern.level.as_str()
        ),
        None => format!(
            "that this happens at all was decided by data from {from} ({})",
            concern.level.as_str()
        ),
    }
}

/// How often a person is asked for a value before what they type counts as none.
const ASKED_MAX: usize = 3;
/// Letters of an answer that are told again.
const ANSWER_LETTERS_MAX: usize = 60;

/// Asks for a value, and again where what came is of another form: a slip of the fingers would
/// otherwise end all that depends on it.
fn ask_user(
    runtime: &mut Runtime,
    question: String,
    schema: &Type,
    onlooker: &mut dyn Onlooker,
) -> Reply {
    let choices = match &schema.kind {
        Kind::Choice(words) => Some(words.clone()),
        Kind::Truth => Some(vec!["yes".to_owned(), "no".to_owned()]),
        _ => None,
    };
    let by = runtime.first_agent();
    let wanted = match form(schema) {
        Some(form) => format!("{question} ({form})"),
        None => question,
    };
    let mut asking = Inquiry {
        question: wanted.clone(),
        choices,
    };
    for _ in 0..ASKED_MAX {
        let answer = match runtime.clarify(by, &asking) {
            Ok(Some(answer)) => answer,
            Ok(None) => return Reply::Failed(Failure::NobodyToAsk),
            Err(_) => return Reply::Failed(Failure::Refused),
        };
        if let Some(raw) = typed_in(&answer, schema) {
            return Reply::Result(raw);
        }
        if onlooker.is_over() {
            break;
        }
        let said: String = answer.trim().chars().take(ANSWER_LETTERS_MAX).collect();
        asking.question = format!("`{said}` is no answer here; {wanted}");
    }
    Reply::Failed(Failure::NotEnoughInformation)
}

/// What is to be typed, where it is not any text.
fn form(schema: &Type) -> Option<String> {
    let form = match &schema.kind {
        Kind::Whole => "a whole number".to_owned(),
        Kind::Number => "a number".to_owned(),
        Kind::Time => "a date as 2026-01-31, or with a time, 2026-01-31T08:30".to_owned(),
        Kind::List(item) => match form(item) {
            Some(item) => format!("one or more, with commas between them, each {item}"),
            None => "one or more, with commas between them".to_owned(),
        },
        Kind::Optional(item) => match form(item) {
            Some(item) => format!("{item}, or nothing"),
            None => "or nothing".to_owned(),
        },
        Kind::Truth | Kind::Text | Kind::Path | Kind::Choice(_) => return None,
        Kind::Never | Kind::Nothing | Kind::Record(_) => return None,
    };
    Some(form)
}

/// What a person typed, as a value of this type.
fn typed_in(answer: &str, schema: &Type) -> Option<Raw> {
    let answer = answer.trim();
    let value = match &schema.kind {
        Kind::Truth => match answer {
            "yes" | "y" => Raw::Truth(true),
            "no" | "n" => Raw::Truth(false),
            _ => return None,
        },
        Kind::Whole => Raw::Whole(answer.parse().ok()?),
        Kind::Number => Raw::Number(answer.parse().ok()?),
        Kind::Optional(_) if answer.is_empty() => Raw::Nothing,
        Kind::Optional(item) => return typed_in(answer, item),
        Kind::List(item) => Raw::List(
            answer
                .split(',')
                .map(|part| typed_in(part, item))
                .collect::<Option<_>>()?,
        ),
        Kind::Choice(words) if !words.iter().any(|word| word == answer) => return None,
        Kind::Time if Moment::parse(answer).is_none() => return None,
        Kind::Text | Kind::Path | Kind::Time | Kind::Choice(_) => Raw::Text(answer.to_owned()),
        Kind::Never | Kind::Nothing | Kind::Record(_) => return None,
    };
    Some(value)
}

/// A call as it will be made, in a line.
#[must_use]
pub fn call_line(call: &ToolCall) -> String {
    let mut out = call.tool.clone();
    for (name, value) in &call.args {
        out.push(' ');
        out.push_str(name);
        out.push('=');
        out.push_str(&match value.as_text() {
            Some(text) => show::quoted(text),
            None => show::quoted(&json(&value.raw()).to_string()),
        });
        let level = value.whole_tag().level();
        if level < Level::User {
            out.push_str(&format!(" ({})", level.as_str()));
        }
    }
    out
}
