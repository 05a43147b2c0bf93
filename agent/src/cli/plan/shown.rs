//! A plan's steps as they happen, for a person or for a program.

use std::{collections::BTreeMap, io::IsTerminal as _};

use hermitcrab_core::plan::{
    Failure, Machine, Plan, Toolbox, Value as Datum,
    interp::{Status, ToolCall},
};
use serde_json::{Value, json};

use super::{
    each_risk,
    further::{self, Further},
    person::{About, Person},
    print,
};
use crate::{
    actions::{self, Did, Risk},
    cli::{as_json::print_json, say},
    executor::{self, Go, Onlooker},
    exit,
    planner::show,
    runtime::Runtime,
    values,
};

/// Shows each step as it happens.
pub(super) struct Shown<'f> {
    pub risks: BTreeMap<String, Risk>,
    pub json: bool,
    /// Ask before each step of this risk or more.
    pub each: Option<Risk>,
    /// How a text becomes a plan.
    pub further: Further<'f>,
}

/// Letters of an answer that are told again.
const ANSWER_LETTERS_MAX: usize = 60;

/// What each answer to a step means.
const EXPLAINED: &str = "\
what is answered here:
  y  do this step; what is not granted is still asked about
  n  leave this step out and go on; any other word is a no, too
  q  leave this one and all after it out";

impl Onlooker for Shown<'_> {
    fn is_over(&mut self) -> bool {
        self.further.how.cancel.is_thrown()
    }

    fn before(&mut self, _: &mut Runtime, call: &ToolCall) -> Go {
        let risk = self.risks.get(&call.step).copied().unwrap_or(Risk::High);
        if self.json {
            print_json(&calling(call));
        }
        if self.each.is_none_or(|from| risk < from) {
            return Go::On;
        }
        let Some(mut person) = Person::open(self.further.how) else {
            return Go::Stop;
        };
        let mut question = format!("{}: {}\n", call.step, executor::call_line(call));
        for (name, value) in &call.args {
            // What was put together meanwhile stood nowhere in the plan.
            question.push_str(&show::whole(name, &values::whole_text(value)));
        }
        for concern in &call.concerns {
            question.push_str(&executor::concern(concern));
            question.push('\n');
        }
        question.push_str("do this? y, n, q to end here [n]: ");
        loop {
            match person.line(About::Step, &question).as_deref() {
                Some("y" | "yes") => return Go::On,
                Some("q" | "quit") | None => return Go::Stop,
                Some("?") if matches!(person, Person::Terminal(_)) => eprintln!("{EXPLAINED}"),
                Some("n" | "no" | "") => return Go::Over,
                Some(other) => {
                    // A program behind the pipe knows that anything else is a no.
                    if matches!(person, Person::Terminal(_)) {
                        let other: String = other.chars().take(ANSWER_LETTERS_MAX).collect();
                        eprintln!(
                            "`{}` is no answer here, which counts as no; `?` explains the answers",
                            plain(&other)
                        );
                    }
                    return Go::Over;
                }
            }
        }
    }

    fn after(&mut self, call: &ToolCall, result: Result<&Did, &actions::Trouble>) {
        if self.json {
            let told = match result {
                Ok(did) => {
                    json!({"told": did.told, "undo": did.undo, "already": did.already})
                }
                Err(trouble) => {
                    json!({"failure": trouble.failure.as_str(), "told": trouble.words})
                }
            };
            let (step, at, tool) = (&call.step, &call.at, &call.tool);
            print_json(
                &json!({"v": 1, "type": "call", "step": step, "at": at, "tool": tool, "came": told}),
            );
            return;
        }
        match result {
            Ok(did) => {
                let mark = if did.already { "=" } else { "+" };
                let undo = match &did.undo {
                    Some(undo) => format!("; to undo: {}", plain(undo)),
                    None => String::new(),
                };
                print(&format!("{mark} {}: {}{undo}", call.step, plain(&did.told)));
            }
            Err(trouble) => {
                print(&format!("! {}: {}", call.step, plain(&trouble.words)));
            }
        }
    }

    fn unpicked(&mut self, step: &str, trouble: &actions::Trouble) {
        if self.json {
            let came = json!({"failure": trouble.failure.as_str(), "told": trouble.words});
            print_json(&json!({"v": 1, "type": "extract", "step": step, "came": came}));
        } else {
            print(&format!("! {step}: {}", plain(&trouble.words)));
        }
    }

    fn say(&mut self, text: &str) {
        if self.json {
            print_json(&json!({"v": 1, "type": "say", "text": text}));
        } else {
            // A person tells it from what this program says; a file or a program gets it as it is.
            let margin = if std::io::stdout().is_terminal() {
                "| "
            } else {
                ""
            };
            for line in text.split('\n') {
                print(&format!("{margin}{}", plain(line)));
            }
        }
    }

    fn confirm(&mut self, value: &Datum) -> bool {
        further::confirmed(self.further.how, &values::whole_text(value))
    }

    fn delegate(&mut self, runtime: &mut Runtime, text: &str, tools: &Toolbox) -> Option<Plan> {
        let plan = further::plan(&self.further, runtime, text, tools)?;
        each_risk(&plan, plan.steps(), runtime.workspace(), &mut self.risks);
        Some(plan)
    }
}

/// A line with the text of others in it, which must not draw on the terminal.
fn plain(line: &str) -> String {
    let line = line.escape_debug().to_string();
    line.replace("\\\"", "\"").replace("\\'", "'")
}

/// Why a step came to nothing, where no call of its said so before.
const fn in_words(failure: Failure) -> &'static str {
    match failure {
        Failure::BadResult => ": what came is not of the form that is asked for",
        Failure::NoValue => ": its value cannot be computed",
        Failure::NotEnoughInformation => ": what came does not say it",
        Failure::NobodyToAsk => ": nobody is there who could be asked",
        _ => "",
    }
}

/// A call that is about to be made, for programs.
fn calling(call: &ToolCall) -> Value {
    let args = call
        .args
        .iter()
        .map(|(name, value)| (name.clone(), values::json(&value.raw())));
    let concerns: Vec<Value> = call
        .concerns
        .iter()
        .map(|concern| {
            json!({"argument": concern.argument, "level": concern.level.as_str(), "from": concern.from, "reader": concern.reader})
        })
        .collect();
    json!({
        "v": 1, "type": "calling", "step": call.step, "at": call.at, "tool": call.tool,
        "with": Value::Object(args.collect()), "concerns": concerns,
    })
}

/// What became of every step, and the exit code for it.
pub(super) fn summed_up(machine: &Machine, as_json: bool) -> u8 {
    let (mut done, mut failed, mut skipped, mut refused) = (0, 0, 0, 0);
    for report in machine.reports() {
        match &report.status {
            Status::Done | Status::Already => done += 1,
            Status::Failed(Failure::Refused | Failure::Cancelled) => refused += 1,
            Status::Failed(_) => failed += 1,
            Status::Skipped(_) => skipped += 1,
        }
        if as_json {
            let failure = match &report.status {
                Status::Failed(failure) => Some(failure.as_str()),
                _ => None,
            };
            let because = match &report.status {
                Status::Skipped(because) => Some(because),
                _ => None,
            };
            print(
                &json!({"v": 1, "type": "step", "step": report.step, "at": report.at,
                    "status": report.status.as_str(), "failure": failure, "because": because})
                .to_string(),
            );
        } else if let Status::Skipped(because) = &report.status {
            print(&format!(
                "- {}: skipped, because {because} came to nothing",
                report.step
            ));
        } else if let Status::Failed(failure) = &report.status {
            let status = report.status.as_str();
            let code = failure.to_string();
            let why = match code == status {
                true => String::new(),
                false => format!(" ({code}){}", in_words(*failure)),
            };
            print(&format!("- {}: {status}{why}", report.step));
        }
    }
    if as_json {
        print_json(
            &json!({"v": 1, "type": "end", "done": done, "failed": failed, "refused": refused, "skipped": skipped}),
        );
    } else {
        print(&format!(
            "{done} done, {failed} failed, {refused} refused, {skipped} skipped"
        ));
    }
    let is_refused = |status: &Status| *status == Status::Failed(Failure::Refused);
    if !as_json
        && machine
            .reports()
            .iter()
            .any(|report| is_refused(&report.status))
    {
        say(
            "`--grant VERB=PLACE` lets a step do what was refused for want of a grant; `--dry-run` says before what each one lacks",
        );
    }
    if refused > 0 {
        exit::REFUSED
    } else if failed + skipped > 0 {
        exit::TOOL_FAILED
    } else {
        exit::OK
    }
}
