//! Structured actions: what a plan may do, as typed operations.
//!
//! Each is carried out on directory capabilities, or as a program with a list
//! of words; none is ever rendered to a line of a shell. Each says what it
//! needs, how risky it is and how it is undone. Every effect passes the one
//! gate through [`Hands`]. This module must never decide, and must never act
//! on a path in another spelling than the one that was decided about.

pub mod failure;
mod files;
mod organize;
mod outside;
pub mod risk;
mod run;
pub mod signatures;

use hermitcrab_core::{
    plan::{Failure, Kind, Raw, Value, interp::ToolCall},
    tool::Tool,
};

use crate::runtime::{Asked, Hands, Runtime, Steering, Stop};

pub use self::{organize::CATEGORIES, risk::Risk, signatures::toolbox};

/// How an action ended well.
#[derive(Clone, Debug, PartialEq)]
pub struct Did {
    /// What it yields.
    pub result: Raw,
    /// Whether it was so already.
    pub already: bool,
    /// How it is undone, in a line; `None` where there is nothing to undo.
    pub undo: Option<String>,
    /// What was done, in a line.
    pub told: String,
}

impl Did {
    fn new(result: Raw, told: String) -> Self {
        Self {
            result,
            already: false,
            undo: None,
            told,
        }
    }

    fn undone_by(mut self, how: &str) -> Self {
        self.undo = Some(how.to_owned());
        self
    }

    /// The journal holds what was there, and where.
    fn kept(self) -> Self {
        self.undone_by("`hermitcrab undo`")
    }
}

/// Why an action came to nothing: for the rules, and for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// For the rules.
    pub failure: Failure,
    /// For a person.
    pub words: String,
}

impl Trouble {
    pub(crate) fn new(failure: Failure, words: impl Into<String>) -> Self {
        Self {
            failure,
            words: words.into(),
        }
    }
}

type Acted = Result<Did, Trouble>;

/// Does a call of this tool run a program, which does what it does whatever the plan says of it?
#[must_use]
pub fn runs_a_program(tool: &str) -> bool {
    tool == "run_command"
}

/// What becomes of a directory that is missing on the way to what is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It is to be there.
    IsThere,
    /// It is made with the change, in the same commit.
    IsMade,
}

/// Does what a call of a plan asks for; `gives` is what the plan expects back.
pub fn act(
    runtime: &mut Runtime,
    (call, gives, way): (&ToolCall, &Kind, Way),
    steering: Option<Steering>,
    questions: &mut Vec<Asked>,
) -> Acted {
    if runtime.is_outside(&call.tool) {
        return outside::call(runtime, call, gives, steering, questions);
    }
    let tool = match runs_a_program(&call.tool) {
        true => Tool::Terminal,
        false => Tool::Directory,
    };
    let by = runtime.first_agent();
    let mut acted = None;
    let done = runtime.act(by, tool, steering, questions, |hands| {
        acted = Some(one(hands, call, way));
        Ok(())
    });
    match (done, acted) {
        (Err(stop), _) => Err(failure::of(&stop)),
        (Ok(()), Some(acted)) => acted,
        (Ok(()), None) => Err(Trouble::new(Failure::Broken, "nothing was done")),
    }
}

fn one(hands: &mut Hands<'_>, call: &ToolCall, way: Way) -> Acted {
    match call.tool.as_str() {
        "list_files" => files::list(hands, call),
        "find_files" => files::find(hands, call),
        "read_file" => files::read(hands, call),
        "file_info" => files::info(hands, call),
        "create_file" => files::create(hands, call, way),
        "create_directory" => files::make_directory(hands, call),
        "copy_file" => files::copy(hands, call, way),
        "move_file" => files::move_one(hands, call, way),
        "move_files" => files::move_many(hands, call, way),
        "delete_files" => files::delete(hands, call),
        "organize_by_type" => organize::organize(hands, call),
        "run_command" => run::run(hands, call),
        _ => Err(Trouble::new(Failure::Broken, "there is no such action")),
    }
}

/// A text argument; the check promised it where the action needs it.
fn text<'c>(call: &'c ToolCall, name: &str) -> Result<&'c str, Trouble> {
    call.arg(name)
        .and_then(Value::as_text)
        .ok_or_else(|| Trouble::new(Failure::NoValue, format!("`{name}` is missing")))
}

fn text_or<'c>(call: &'c ToolCall, name: &str, other: &'c str) -> &'c str {
    call.arg(name).and_then(Value::as_text).unwrap_or(other)
}

fn texts(call: &ToolCall, name: &str) -> Vec<String> {
    use hermitcrab_core::plan::Datum;
    match call.arg(name).map(|value| &value.datum) {
        Some(Datum::List(items)) => items
            .iter()
            .filter_map(Value::as_text)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}

fn truth(call: &ToolCall, name: &str) -> bool {
    use hermitcrab_core::plan::Datum;
    matches!(
        call.arg(name).map(|value| &value.datum),
        Some(Datum::Truth(true))
    )
}

fn whole(number: usize) -> Raw {
    Raw::Whole(i64::try_from(number).unwrap_or(i64::MAX))
}

fn record(fields: Vec<(&str, Raw)>) -> Raw {
    Raw::Record(
        fields
            .into_iter()
            .map(|(name, raw)| (name.to_owned(), raw))
            .collect(),
    )
}

fn stopped(stop: Stop) -> Trouble {
    failure::of(&stop)
}
