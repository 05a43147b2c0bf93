//! Whole conversations of the agent, with models that say what a case says.
//!
//! The script names each agent by the first line of its task; its model gives
//! the next answer the script has for it. The user begins, and says what the
//! case has them say besides when the model has answered. The value holds what
//! each model was told, and the first one's last words.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

use bisim_world::protocol::Context;
use bisim_world::script;
use hermitcrab::chat::Chat;
use hermitcrab::model::{Message, ModelError, ModelPort, ModelReply, ModelRequest, ProposedCall};
use hermitcrab::runtime::{Counts, GrantWords, Guard, Reminder, WorkLimits};
use serde_json::{Map, Value, json};

use super::input::field;
use crate::canon::CONVERSATION;
use crate::subject::agent_world::{AgentWorld, Between, ProbeError};

/// What the first message of a conversation begins with says whose it is.
const MARK: &str = "case conversation of ";
const PARENT: &str = "parent";
const MODEL: &str = "scripted";
/// What a model says for whom the script has no more answers.
const NOTHING_MORE: &str = "done";

/// Asks the agent one of the questions of this family.
///
/// # Errors
/// See [`ProbeError`].
pub(super) fn answer(
    world: &AgentWorld<'_>,
    name: &str,
    input: &Value,
) -> Result<Value, ProbeError> {
    if name != CONVERSATION {
        return Err(ProbeError::Unknown);
    }
    let mut models = Shared(Rc::new(RefCell::new(Models {
        answers: answers(input)?,
        between: world.between(),
        ..Models::default()
    })));
    let of_jobs = (
        MODEL.to_owned(),
        Box::new(models.clone()) as Box<dyn ModelPort>,
    );
    let jobs = world.jobs(Some(of_jobs)).map_err(ProbeError::Failed)?;
    let settings = &world.job().settings;
    let limits = limits(settings);
    let guard = guard(settings);
    let names_unwritten = settings
        .get("display.file_mutation_verifier")
        .and_then(Value::as_bool)
        .unwrap_or(true);
    let reminder = reminder(settings, world.job().context);
    let besides = besides(input)?;
    let last_words = world.with_runtime(|runtime| {
        let first = runtime.first_agent();
        runtime
            .grant(first, &GrantWords::new("model.send", MODEL))
            .map_err(|error| error.to_string())?;
        runtime.run_jobs_through(Box::new(jobs));
        let mut chat = Chat::new(runtime, MODEL)
            .with_limits(limits)
            .guarded(guard)
            .naming_unwritten(names_unwritten)
            .reminding(reminder);
        let mut last_words = String::new();
        for words in std::iter::once(format!("{MARK}{PARENT}")).chain(besides) {
            last_words = chat
                .turn(runtime, &mut models, &words)
                .map_err(|error| error.to_string())?
                .text;
        }
        Ok(last_words)
    })?;
    let last_words = last_words.map_err(ProbeError::Failed)?;
    let agents: Map<String, Value> = std::mem::take(&mut models.0.borrow_mut().told)
        .into_iter()
        .map(|(actor, (requests, told))| (actor, json!({"requests": requests, "told": told})))
        .collect();
    Ok(json!({
        "decision": "none",
        "value": {"last_words": last_words, "agents": agents},
    }))
}

/// The models of all agents of a conversation.
#[derive(Default)]
struct Models {
    answers: HashMap<String, VecDeque<Answer>>,
    told: BTreeMap<String, (u32, Vec<Value>)>,
    between: Option<Between>,
}

/// An answer the script has.
struct Answer {
    text: String,
    /// Identity, tool and arguments; these may stand for what an earlier result holds.
    calls: Vec<(String, String, Value)>,
}

impl Answer {
    /// What is answered to whom these results were given.
    fn given(self, results: &[String]) -> ModelReply {
        let calls = self.calls.into_iter().map(|(id, tool, arguments)| {
            let arguments = match script::value(&arguments, results) {
                Value::String(text) => text,
                table => table.to_string(),
            };
            ProposedCall {
                id,
                tool,
                arguments,
            }
        });
        ModelReply {
            text: self.text,
            calls: calls.collect(),
            tokens: (1, 1),
            ..ModelReply::default()
        }
    }
}

/// The same models for the conversation and for the jobs that it runs.
#[derive(Clone)]
struct Shared(Rc<RefCell<Models>>);

impl ModelPort for Shared {
    fn complete(&mut self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        self.0.borrow_mut().complete(request)
    }
}

impl ModelPort for Models {
    fn complete(&mut self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        if let Some(between) = &self.between {
            between
                .end_part()
                .map_err(|error| ModelError::Unreachable(error.to_string()))?;
        }
        let actor = request
            .messages
            .iter()
            .find_map(|message| match message {
                Message::User(words) => Some(actor(words)),
                Message::System(_)
                | Message::Told(_)
                | Message::Assistant { .. }
                | Message::Tool { .. } => None,
            })
            .flatten()
            .ok_or_else(|| ModelError::Unreachable("a conversation of nobody".to_owned()))?;
        let told = self.told.entry(actor.clone()).or_default();
        told.0 += 1;
        told.1 = request.messages.iter().filter_map(heard).collect();
        let answer = self
            .answers
            .get_mut(&actor)
            .and_then(VecDeque::pop_front)
            .unwrap_or_else(|| Answer {
                text: NOTHING_MORE.to_owned(),
                calls: Vec::new(),
            });
        Ok(answer.given(&results(&request)))
    }
}

fn results(request: &ModelRequest<'_>) -> Vec<String> {
    let texts = request.messages.iter().filter_map(|message| match message {
        Message::Tool { text, .. } => Some(text.clone()),
        Message::System(_) | Message::User(_) | Message::Told(_) | Message::Assistant { .. } => {
            None
        }
    });
    texts.collect()
}

fn actor(words: &str) -> Option<String> {
    let (_, name) = words.split_once(MARK)?;
    name.lines().next().map(|name| name.trim().to_owned())
}

/// One entry of a conversation: who speaks, the words, the tools called.
fn heard(message: &Message) -> Option<Value> {
    match message {
        Message::System(_) => None,
        Message::User(words) | Message::Told(words) => Some(json!({"user": words})),
        Message::Tool { text, .. } => Some(json!({"tool": text})),
        Message::Assistant { text, calls } => {
            let calls: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
            Some(json!({"said": text, "calls": calls}))
        }
    }
}

/// What the user says after their first words.
fn besides(input: &Value) -> Result<Vec<String>, ProbeError> {
    let Some(said) = input.get("user") else {
        return Ok(Vec::new());
    };
    serde_json::from_value(said.clone())
        .map_err(|error| ProbeError::BadInput(format!("`user`: {error}")))
}

fn answers(input: &Value) -> Result<HashMap<String, VecDeque<Answer>>, ProbeError> {
    let wrong = |what: &str| ProbeError::BadInput(format!("the script: {what}"));
    let script = field(input, "script")?
        .as_object()
        .ok_or_else(|| wrong("no object"))?;
    let mut number = 0_u32;
    let mut all = HashMap::new();
    for (actor, said) in script {
        let said = said.as_array().ok_or_else(|| wrong("no list of answers"))?;
        let mut replies = VecDeque::new();
        for one in said {
            let mut calls = Vec::new();
            for call in one
                .get("calls")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                number += 1;
                calls.push((
                    format!("call_{number}"),
                    super::input::text(call, "name")?.to_owned(),
                    field(call, "arguments")?.clone(),
                ));
            }
            let text = one.get("text").and_then(Value::as_str);
            replies.push_back(Answer {
                text: text.unwrap_or_default().to_owned(),
                calls,
            });
        }
        all.insert(actor.clone(), replies);
    }
    Ok(all)
}

fn number(settings: &Map<String, Value>, name: &str) -> Option<u32> {
    settings
        .get(name)
        .and_then(Value::as_u64)
        .and_then(|number| u32::try_from(number).ok())
}

/// The bounds on agents that start agents, under the names Hermes gives them.
fn limits(settings: &Map<String, Value>) -> WorkLimits {
    let usual = WorkLimits::default();
    WorkLimits {
        depth_max: number(settings, "delegation.max_spawn_depth").unwrap_or(usual.depth_max),
        tasks_max: number(settings, "delegation.max_concurrent_children")
            .and_then(|number| usize::try_from(number).ok())
            .unwrap_or(usual.tasks_max),
        rounds_max: number(settings, "delegation.max_iterations").unwrap_or(usual.rounds_max),
    }
}

/// Whether a model is reminded of checks, likewise; `auto` is yes where code is
/// worked on, and no where people talk about other things as well (Hermes'
/// `verification_stop._session_is_messaging_surface`).
fn reminder(settings: &Map<String, Value>, context: Context) -> Reminder {
    let usual = Reminder::default();
    let by_place = usual.is_wanted && context != Context::Gateway;
    Reminder {
        is_wanted: match settings.get("agent.verify_on_stop") {
            Some(Value::Bool(is_wanted)) => *is_wanted,
            Some(Value::String(word)) => match word.trim().to_lowercase().as_str() {
                "0" | "false" | "no" | "off" => false,
                "1" | "true" | "yes" | "on" => true,
                _ => by_place,
            },
            _ => by_place,
        },
        advises: settings
            .get("agent.verify_guidance")
            .and_then(Value::as_bool)
            .unwrap_or(usual.advises),
    }
}

/// When a model that goes round in circles is told and ended, likewise.
fn guard(settings: &Map<String, Value>) -> Guard {
    let truth = |name: &str, usual| {
        settings
            .get(&format!("tool_loop_guardrails.{name}"))
            .and_then(Value::as_bool)
            .unwrap_or(usual)
    };
    let counts = |table: &str, usual: Counts| {
        let count = |name: &str, usual| {
            number(settings, &format!("tool_loop_guardrails.{table}.{name}")).unwrap_or(usual)
        };
        Counts {
            same_call: count("exact_failure", usual.same_call),
            same_tool: count("same_tool_failure", usual.same_tool),
            same_answer: count("idempotent_no_progress", usual.same_answer),
        }
    };
    let usual = Guard::default();
    Guard {
        warns: truth("warnings_enabled", usual.warns),
        stops: truth("hard_stop_enabled", usual.stops),
        told: counts("warn_after", usual.told),
        ended: counts("hard_stop_after", usual.ended),
    }
}
