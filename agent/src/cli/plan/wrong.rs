//! What is wrong with a text that was to be a plan, for whoever wrote it.
//!
//! A model is told steps and kinds of errors and nothing else. A person is told the
//! words of their own text as well, and what may have been meant.

#[cfg(test)]
mod tests;
mod written;

use hermitcrab_core::plan::{
    ErrorKind, Kind, PlanError, Role, Signature, Toolbox, Type,
    builtin::{Builtin, Over},
    check::is_name,
    limits::{BLOCK_DEPTH_MAX, CALLS_MAX, LOOP_TURNS_MAX, STEPS_MAX},
};
use serde_json::Value;

use self::written::{
    Object, arguments, head, is_value, kinds, known_before, names, objects, references,
    step_called, step_numbered, unreadable, used, values,
};
use crate::{
    config::keys::nearest,
    planner::{
        draft::{KEYS, KINDS, VERSION, schema_type},
        vocabulary,
    },
    screen::on_one_line,
};

/// Things told of one error.
const NAMES_MAX: usize = 5;
/// Letters of what somebody wrote that are told again.
const LETTERS_MAX: usize = 80;

/// All of it, a line for each error.
pub(super) fn wrong(errors: &[PlanError], text: &[u8], toolbox: &Toolbox) -> String {
    let whole: Value = serde_json::from_slice(text).unwrap_or_default();
    let line = |error: &PlanError| {
        let more = match (error.kind, &error.step) {
            (ErrorKind::NotJson, _) => place(text),
            (kind, Some(step)) => {
                let told = match step.strip_prefix('#').map(str::parse) {
                    Some(Ok(number)) => unnamed(kind, &whole, number),
                    _ => step_called(&whole, step)
                        .and_then(|written| words(kind, (step, written), &whole, toolbox)),
                };
                told.map(|words| format!(": {}", on_one_line(&words)))
            }
            (kind, None) => of_all(kind, &whole).map(|words| format!(": {}", on_one_line(&words))),
        };
        format!("  {error}{}", more.unwrap_or_default())
    };
    let lines: Vec<String> = errors.iter().map(line).collect();
    format!(
        "this is no plan; nothing was done:\n{}\n`hermitcrab plan --help` shows what one looks like, and `hermitcrab plan --actions` what may be called",
        lines.join("\n")
    )
}

fn place(text: &[u8]) -> Option<String> {
    if text.iter().all(u8::is_ascii_whitespace) {
        return Some(": it is empty".to_owned());
    }
    // What is read and passed over is told less exactly of.
    let error = serde_json::from_slice::<Value>(text).err()?;
    // Why and where, in words that hold nothing of the text.
    Some(format!(": {error}"))
}

/// What of a plan as a whole the error is about.
fn of_all(kind: ErrorKind, whole: &Value) -> Option<String> {
    let plan = match (kind, whole.as_object()) {
        (_, Some(plan)) => plan,
        (ErrorKind::NotAPlan, None) => {
            return Some(format!("it is {}, and no object `{{..}}`", kind_of(whole)));
        }
        (_, None) => return None,
    };
    match kind {
        ErrorKind::NotAPlan => {
            let summary = plan.get("summary").filter(|value| !value.is_string());
            let steps = match plan.get("steps") {
                None => Some("`steps` is missing".to_owned()),
                Some(Value::Array(_)) => None,
                Some(other) => Some(format!("`steps` is {}, and no list", kind_of(other))),
            };
            let summary =
                summary.map(|other| format!("`summary` is {}, and no text", kind_of(other)));
            listed([steps, summary].into_iter().flatten())
        }
        ErrorKind::Version => Some(match plan.get("version") {
            None => format!("`\"version\": {VERSION}` is missing"),
            Some(other) => format!("it says {}, and {VERSION} is known", quoted(other)),
        }),
        ErrorKind::UnknownKey => unknown_keys(plan, &KEYS),
        ErrorKind::TooManySteps => Some(format!("{STEPS_MAX} at most")),
        ErrorKind::TooDeep => Some(format!("{BLOCK_DEPTH_MAX} blocks in each other at most")),
        ErrorKind::TooManyCalls => Some(format!(
            "{CALLS_MAX} at most, with each loop at its `at_most`"
        )),
        _ => None,
    }
}

/// What of a step without a usable name the error is about.
fn unnamed(kind: ErrorKind, whole: &Value, number: usize) -> Option<String> {
    let step = step_numbered(whole, number)?;
    match (kind, step.get("id")) {
        (ErrorKind::BadName, None) => Some("`id` is missing".to_owned()),
        (ErrorKind::BadName, Some(Value::String(id))) if is_name(id) => None,
        (ErrorKind::BadName, Some(id)) => Some(format!("`id` is {}", quoted(id))),
        _ => None,
    }
}

/// What of a step the error is about, if that can be told.
fn words(
    kind: ErrorKind,
    (name, step): (&str, &Object),
    whole: &Value,
    toolbox: &Toolbox,
) -> Option<String> {
    let called = step.get("call").and_then(Value::as_str);
    let tool = called.and_then(|name| toolbox.get(name));
    match kind {
        ErrorKind::NotAPlan => listed(misshapen(step).into_iter()),
        ErrorKind::UnknownKey => {
            let known = known_keys(step);
            let own = unknown_keys(step, &known);
            let objects = objects(&values(step));
            own.or_else(|| listed(objects.into_iter().filter_map(beside)))
        }
        ErrorKind::BadName => match step.get("as") {
            Some(name) if name.as_str().is_some_and(is_name) => None,
            Some(name) => Some(format!("`as` is {}", quoted(name))),
            None => step
                .contains_key("for_each")
                .then(|| "`as`, which names the item, is missing".to_owned()),
        },
        ErrorKind::NameTaken => {
            let item = step.get("as").and_then(Value::as_str)?;
            step_called(whole, item).map(|_| format!("`as` is {item}, as a step is called"))
        }
        ErrorKind::UnknownTool => {
            let names = || toolbox.all().iter().map(|tool| tool.name.as_str());
            let handed = step.get("tools").and_then(Value::as_array);
            let handed = handed.into_iter().flatten().filter_map(Value::as_str);
            let unknown = called.into_iter().chain(handed);
            let unknown = unknown.filter(|name| toolbox.get(name).is_none());
            listed(unknown.map(|name| meant(name, names())))
        }
        ErrorKind::UnknownArgument => {
            let (given, tool) = (arguments(step)?, tool?);
            let unknown = given.keys().filter(|name| tool.param(name).is_none());
            let params = || tool.params.iter().map(|param| param.name.as_str());
            let is_near = |name: &String| nearest(name, params()).is_some();
            let all = given
                .keys()
                .all(|name| tool.param(name).is_some() || is_near(name));
            let told = listed(unknown.map(|name| meant(name, params())))?;
            Some(if all {
                told
            } else {
                format!("{told}; it is {}", vocabulary::takes(tool))
            })
        }
        ErrorKind::MissingArgument => {
            let given = arguments(step);
            let is_there = |name: &str| given.is_some_and(|given| given.contains_key(name));
            let params = tool?.params.iter();
            let missing = params.filter(|param| param.required && !is_there(&param.name));
            listed(missing.map(|param| format!("`{}`", param.name)))
        }
        ErrorKind::WrongType => mistyped(step, tool, whole, toolbox),
        ErrorKind::NotLiteral => {
            let params = tool?.params.iter();
            let programs = params.filter(|param| param.role == Role::Program);
            listed(programs.map(|param| format!("`{}`", param.name)))
        }
        ErrorKind::NotAList | ErrorKind::NotATruth => given(step, whole, toolbox),
        ErrorKind::UnknownFunction => {
            let functions = || {
                let builtins = Builtin::ALL.iter().map(|one| one.as_str());
                builtins.chain(Over::ALL.iter().map(|one| one.as_str()))
            };
            let written = objects(&values(step)).into_iter();
            let written = written.filter_map(|object| object.get("fn")?.as_str());
            let unknown = written.filter(|name| functions().all(|known| known != *name));
            listed(unknown.map(|name| meant(name, functions())))
        }
        ErrorKind::WrongCount => listed(objects(&values(step)).into_iter().filter_map(miscounted)),
        ErrorKind::BadReference => listed(unreadable(step).iter().map(|way| cut(way))),
        ErrorKind::UnknownReference => {
            let known = names(whole);
            let unknown = used(step).into_iter().filter(|name| !known.contains(name));
            listed(unknown.map(|name| meant(name, known.iter().copied())))
        }
        ErrorKind::ForwardReference => {
            let (before, all) = (known_before(whole, name), names(whole));
            let late = used(step).into_iter();
            let late = late.filter(|name| !before.contains(name) && all.contains(name));
            listed(late.map(|late| match is_after(whole, name, late) {
                true => format!("`{late}`"),
                false => format!(
                    "`{late}` is of a block; what a loop hands out is what its `gives` says"
                ),
            }))
        }
        ErrorKind::UnknownField => {
            let deep = references(step).into_iter().filter(|way| head(way) != *way);
            let ways: Vec<String> = deep.map(|way| format!("`{way}`")).collect();
            let ways = listed(ways.into_iter())?;
            Some(match given(step, whole, toolbox) {
                Some(given) => format!("{ways}; {given}"),
                None => ways,
            })
        }
        ErrorKind::BadSchema => {
            let form = step.get("schema");
            let form = form.map_or_else(|| "`schema` is missing".to_owned(), quoted);
            Some(format!(
                "{form}; a form is \"text\", \"whole\", \"number\", \"truth\", \"path\", \"time\", [FORM], {{NAME: FORM}}, {{\"one_of\": [..]}} or {{\"maybe\": FORM}}"
            ))
        }
        ErrorKind::TooManyCalls => {
            let turns = step.get("at_most").and_then(Value::as_u64)?;
            let too_many = turns > u64::from(LOOP_TURNS_MAX);
            too_many.then(|| format!("`at_most` is {turns}, and {LOOP_TURNS_MAX} is the most"))
        }
        ErrorKind::TooDeep => Some(format!("{BLOCK_DEPTH_MAX} blocks in each other at most")),
        ErrorKind::NotJson
        | ErrorKind::Version
        | ErrorKind::TwiceTheSameKey
        | ErrorKind::Empty
        | ErrorKind::TooManySteps
        | ErrorKind::TooLong
        | ErrorKind::BadTime
        | ErrorKind::BadPath => None,
    }
}

/// Whether one step stands behind another, and in no block that is over by then.
fn is_after(whole: &Value, step: &str, late: &str) -> bool {
    step == late || known_before(whole, late).contains(step)
}

/// The keys that a step may have.
fn known_keys(step: &Object) -> Vec<&'static str> {
    let mut known = vec!["id", "after"];
    for kind in kinds(step) {
        known.push(kind);
        let more = KINDS.iter().filter(|(name, _)| *name == kind);
        known.extend(more.flat_map(|(_, more)| more.iter().copied()));
    }
    known
}

fn unknown_keys(object: &Object, known: &[&str]) -> Option<String> {
    let unknown = object.keys().filter(|key| !known.contains(&key.as_str()));
    listed(unknown.map(|key| meant(key, known.iter().copied())))
}

/// What stands in a value beside what makes it one.
fn beside(object: &Object) -> Option<String> {
    let known: &[&str] = match () {
        () if object.contains_key("$") => &["$"],
        () if object.contains_key("record") => &["record"],
        () if object.contains_key("text") => &["text"],
        () if Over::parse(object.get("fn")?.as_str()?).is_some() => &["fn", "of", "as", "by"],
        () => &["fn", "of"],
    };
    unknown_keys(object, known)
}

/// What of a step has not the form it should have.
fn misshapen(step: &Object) -> Vec<String> {
    let kinds = kinds(step);
    let [kind] = kinds.as_slice() else {
        let all: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
        return vec![if kinds.is_empty() {
            format!("it has none of {}", all.join(", "))
        } else {
            format!("it has {}, and a step does one thing", kinds.join(" and "))
        }];
    };
    let is = |value: &Value, form: &str| match form {
        "list of texts" => value
            .as_array()
            .is_some_and(|all| all.iter().all(Value::is_string)),
        "list" => value.is_array(),
        "object" => value.is_object(),
        "whole number" => value
            .as_u64()
            .is_some_and(|bound| u32::try_from(bound).is_ok()),
        _ => value.is_string(),
    };
    // What a step of its kind may have and what it has to.
    let forms: &[(&str, &str, bool)] = match *kind {
        "call" => &[("call", "text", true), ("with", "object", false)],
        "for_each" => &[("do", "list", true), ("at_most", "whole number", false)],
        "if" => &[("then", "list", true), ("else", "list", false)],
        "extract" => &[("ask", "text", true)],
        "ask_user" => &[("ask_user", "text", true)],
        "delegate" => &[("tools", "list of texts", true)],
        "fail" => &[("fail", "text", true)],
        _ => &[],
    };
    let forms = forms.iter().chain(&[("after", "list of texts", false)]);
    let mut told: Vec<String> = forms
        .filter_map(|(key, form, needed)| match step.get(*key) {
            None => needed.then(|| format!("`{key}` is missing")),
            Some(value) if is(value, form) => None,
            Some(value) => Some(format!("`{key}` is {}, and no {form}", kind_of(value))),
        })
        .collect();
    for object in objects(&values(step)) {
        if !is_value(object) {
            let written = quoted(&Value::Object(object.clone()));
            told.push(format!(
                "{written} is no value; a record is {{\"record\": {{..}}}}"
            ));
        }
        for (key, form) in [("record", "object"), ("text", "list")] {
            if let Some(value) = object.get(key).filter(|value| !is(value, form)) {
                told.push(format!("`{key}` is {}, and no {form}", kind_of(value)));
            }
        }
    }
    told
}

/// Which argument is of another type, or, where only what was computed is, what is called.
fn mistyped(
    step: &Object,
    tool: Option<&Signature>,
    whole: &Value,
    toolbox: &Toolbox,
) -> Option<String> {
    let Some(tool) = tool else {
        let functions = objects(&values(step)).into_iter().filter_map(|object| {
            let name = object.get("fn")?.as_str()?;
            let doc = Builtin::parse(name).map(Builtin::doc);
            let doc = doc.or_else(|| Over::parse(name).map(Over::doc))?;
            Some(format!("`{name}` is {doc}"))
        });
        let told = [listed(functions), given(step, whole, toolbox)];
        let told: Vec<String> = told.into_iter().flatten().collect();
        return (!told.is_empty()).then(|| told.join("; "));
    };
    let wrong = arguments(step)?.iter().filter_map(|(name, value)| {
        let wanted = &tool.param(name)?.kind;
        (!may_be(value, wanted)).then(|| {
            format!(
                "`{name}` is {}, and no {}",
                kind_of(value),
                vocabulary::words(wanted)
            )
        })
    });
    let told = listed(wrong).unwrap_or_else(|| format!("it is {}", vocabulary::takes(tool)));
    Some(match given(step, whole, toolbox) {
        Some(given) => format!("{told}; {given}"),
        None => told,
    })
}

/// Whether what is written can be of a type; what is computed may be.
fn may_be(value: &Value, wanted: &Type) -> bool {
    match (value, &wanted.kind) {
        (Value::Object(_), _) => true,
        (value, Kind::Optional(item)) => value.is_null() || may_be(value, item),
        (Value::String(text), Kind::Choice(words)) => words.contains(text),
        (Value::String(_), Kind::Text | Kind::Path | Kind::Time) => true,
        (Value::Bool(_), Kind::Truth) | (Value::Number(_), Kind::Number) => true,
        (Value::Number(number), Kind::Whole) => number.as_i64().is_some(),
        (Value::Array(all), Kind::List(item)) => all.iter().all(|value| may_be(value, item)),
        _ => false,
    }
}

/// What the steps give that a step names, where it can be told from how they are written.
fn given(step: &Object, whole: &Value, toolbox: &Toolbox) -> Option<String> {
    let heads: std::collections::BTreeSet<&str> = references(step).into_iter().map(head).collect();
    listed(heads.into_iter().filter_map(|name| {
        let from = step_called(whole, name)?;
        let called = from.get("call").and_then(Value::as_str);
        let gives = match called.and_then(|tool| toolbox.get(tool)) {
            Some(tool) => vocabulary::words(&tool.result),
            None => vocabulary::words(&schema_type(from.get("schema")?, 0)?),
        };
        Some(format!("`{name}` gives {gives}"))
    }))
}

/// A function that is not given as many values as it takes.
fn miscounted(object: &Object) -> Option<String> {
    let name = object.get("fn")?.as_str()?;
    let (few, many) = Builtin::parse(name)?.count();
    let takes = if few == many {
        few.to_string()
    } else {
        format!("{few} to {many}")
    };
    match object.get("of") {
        Some(Value::Array(of)) if (few..=many).contains(&of.len()) => None,
        Some(Value::Array(of)) => Some(format!("`{name}` takes {takes}, and has {}", of.len())),
        Some(_) => Some(format!("`of` of `{name}` is no list")),
        None => Some(format!("`of` of `{name}` is missing")),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a truth",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn quoted(value: &Value) -> String {
    cut(&value.to_string())
}

/// What somebody wrote, in ticks and not longer than a line bears.
fn cut(text: &str) -> String {
    if text.chars().nth(LETTERS_MAX).is_none() {
        return format!("`{text}`");
    }
    let start: String = text.chars().take(LETTERS_MAX).collect();
    format!("`{start}` ...")
}

fn meant<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> String {
    match nearest(word, known) {
        Some(known) => format!("{}; is `{known}` meant?", cut(word)),
        None => cut(word),
    }
}

fn listed(names: impl Iterator<Item = String>) -> Option<String> {
    let names: Vec<String> = names.take(NAMES_MAX).collect();
    (!names.is_empty()).then(|| names.join(", "))
}
