//! A plan as a person reads it: numbered steps, what each needs, what data will decide.

use std::{fmt::Write as _, path::Path};

use hermitcrab_core::{
    authority::Name,
    letters::{is_like_a_space, is_unseen},
    plan::{
        Expr, Hop, Kind, Notice, Plan, Raw, Reach, Seer, Step, Type, What,
        signature::READER_COMMANDS,
    },
};

use super::vocabulary;
use crate::actions::risk;

/// Longer texts are cut in the line of a step; whoever is to approve it sees them whole below.
const SHOWN_LETTERS: usize = 100;

fn show_letter(out: &mut String, letter: char) {
    if is_unseen(letter) || is_like_a_space(letter) {
        out.extend(letter.escape_unicode());
    } else {
        out.extend(letter.escape_debug());
    }
}

/// Text that cannot draw on a terminal, quoted, and cut if it is long.
#[must_use]
pub fn quoted(text: &str) -> String {
    let letters = text.chars().count();
    let mut out = String::from("\"");
    for letter in text.chars().take(SHOWN_LETTERS) {
        match letter {
            '"' => out.push_str("\\\""),
            letter => show_letter(&mut out, letter),
        }
    }
    out.push('"');
    if letters > SHOWN_LETTERS {
        let _ = write!(out, "... ({letters} letters)");
    }
    out
}

/// A text that [`quoted`] cuts, whole, under the name of what it is; nothing for a shorter one.
#[must_use]
pub fn whole(name: &str, text: &str) -> String {
    match text.chars().nth(SHOWN_LETTERS) {
        Some(_) => format!("{name}:\n{}", quoted_lines(text)),
        None => String::new(),
    }
}

/// A text as it is, each line with a mark before it, and nothing in it that
/// draws on a terminal.
#[must_use]
pub fn quoted_lines(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        out.push_str("  > ");
        for letter in line.chars() {
            match letter {
                '"' | '\'' | '\\' => out.push(letter),
                letter => show_letter(&mut out, letter),
            }
        }
        out.push('\n');
    }
    out
}

/// An expression as a person reads it.
#[must_use]
pub fn expr(of: &Expr) -> String {
    let list = |parts: &[Expr], by: &str| parts.iter().map(expr).collect::<Vec<_>>().join(by);
    match of {
        Expr::Literal(raw) => literal(raw),
        Expr::Ref { name, path } => {
            let mut out = name.clone();
            for hop in path {
                let _ = match hop {
                    Hop::Field(field) => write!(out, ".{field}"),
                    Hop::At(place) => write!(out, "[{place}]"),
                };
            }
            out
        }
        Expr::List(parts) => format!("[{}]", list(parts, ", ")),
        Expr::Record(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, field)| format!("{name}: {}", expr(field)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        Expr::Text(parts) => list(parts, " + "),
        Expr::Apply(builtin, of) => format!("{}({})", builtin.as_str(), list(of, ", ")),
        Expr::Over {
            over,
            list,
            name,
            body,
        } => format!(
            "{}({}, {name} -> {})",
            over.as_str(),
            expr(list),
            expr(body)
        ),
    }
}

fn literal(raw: &Raw) -> String {
    match raw {
        Raw::Nothing => "nothing".to_owned(),
        Raw::Truth(truth) => truth.to_string(),
        Raw::Whole(whole) => whole.to_string(),
        Raw::Number(number) => number.to_string(),
        Raw::Text(text) => quoted(text),
        Raw::List(parts) => {
            let parts: Vec<String> = parts.iter().map(literal).collect();
            format!("[{}]", parts.join(", "))
        }
        Raw::Record(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, field)| format!("{name}: {}", literal(field)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

/// The form of an answer as a person reads it, in the words a plan has for it. The texts one
/// chooses among are the plan's own, and become part of whatever the answer fills.
fn form(of: &Type) -> String {
    vocabulary::told(of, &|of| match &of.kind {
        Kind::Choice(words) => {
            let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            Some(format!("one of {}", words.join(", ")))
        }
        Kind::Optional(item) => Some(format!("maybe {}", form(item))),
        _ => None,
    })
}

/// The texts that the line of a step cuts.
#[must_use]
pub fn long_texts(step: &Step) -> Vec<&str> {
    let mut texts = Vec::new();
    match &step.what {
        What::Call { with, .. } => {
            for (_, value) in with {
                texts_in(value, &mut texts);
            }
        }
        What::ForEach { list, gives, .. } => {
            texts_in(list, &mut texts);
            if let Some(gives) = gives {
                texts_in(gives, &mut texts);
            }
        }
        What::Let(value)
        | What::If { test: value, .. }
        | What::Confirm(value)
        | What::Delegate { from: value, .. }
        | What::Answer(value) => texts_in(value, &mut texts),
        What::Extract { from, ask, schema } => {
            texts_in(from, &mut texts);
            texts.push(ask);
            words_in(schema, &mut texts);
        }
        What::AskUser { question, schema } => {
            texts.push(question);
            words_in(schema, &mut texts);
        }
        What::Fail(text) => texts.push(text),
    }
    texts.retain(|text| text.chars().nth(SHOWN_LETTERS).is_some());
    texts
}

fn words_in<'e>(of: &'e Type, texts: &mut Vec<&'e str>) {
    match &of.kind {
        Kind::Choice(words) => texts.extend(words.iter().map(String::as_str)),
        Kind::List(item) | Kind::Optional(item) => words_in(item, texts),
        Kind::Record(fields) => fields.iter().for_each(|(_, field)| words_in(field, texts)),
        Kind::Never
        | Kind::Nothing
        | Kind::Truth
        | Kind::Whole
        | Kind::Number
        | Kind::Text
        | Kind::Path
        | Kind::Time => {}
    }
}

fn texts_in<'e>(of: &'e Expr, texts: &mut Vec<&'e str>) {
    match of {
        Expr::Literal(raw) => raw_texts(raw, texts),
        Expr::Ref { .. } => {}
        Expr::List(parts) | Expr::Text(parts) | Expr::Apply(_, parts) => {
            for part in parts {
                texts_in(part, texts);
            }
        }
        Expr::Record(fields) => {
            for (_, field) in fields {
                texts_in(field, texts);
            }
        }
        Expr::Over { list, body, .. } => {
            texts_in(list, texts);
            texts_in(body, texts);
        }
    }
}

fn raw_texts<'e>(raw: &'e Raw, texts: &mut Vec<&'e str>) {
    match raw {
        Raw::Text(text) => texts.push(text),
        Raw::List(parts) => parts.iter().for_each(|part| raw_texts(part, texts)),
        Raw::Record(fields) => fields.iter().for_each(|(_, field)| raw_texts(field, texts)),
        Raw::Nothing | Raw::Truth(_) | Raw::Whole(_) | Raw::Number(_) => {}
    }
}

/// What a step does, in a line.
#[must_use]
pub fn what(step: &Step) -> String {
    match &step.what {
        What::Call { tool, with } => {
            let mut out = tool.clone();
            for (name, value) in with {
                let _ = write!(out, " {name}={}", expr(value));
            }
            out
        }
        What::Let(value) => format!("is {}", expr(value)),
        What::ForEach {
            list,
            name,
            at_most,
            gives,
            ..
        } => {
            let bound = at_most.unwrap_or(hermitcrab_core::plan::limits::LOOP_TURNS_DEFAULT);
            let gives = match gives {
                Some(gives) => format!(", each giving {}", expr(gives)),
                None => String::new(),
            };
            format!("for each {name} of {}, at most {bound}{gives}:", expr(list))
        }
        What::If { test, .. } => format!("if {}:", expr(test)),
        What::Extract { from, ask, schema } => format!(
            "a model without tools picks {} out of {}: {}",
            form(schema),
            expr(from),
            quoted(ask)
        ),
        What::AskUser { question, schema } if schema.kind == Kind::Text => {
            format!("ask you: {}", quoted(question))
        }
        What::AskUser { question, schema } => {
            format!("ask you for {}: {}", form(schema), quoted(question))
        }
        What::Confirm(value) => format!("show you {} and go on with your yes", expr(value)),
        What::Delegate { from, tools } => format!(
            "show you {} and, if you approve, plan it with {}",
            expr(from),
            tools.join(", ")
        ),
        What::Answer(text) => format!("say {}", expr(text)),
        What::Fail(text) => format!("end with {}", quoted(text)),
    }
}

/// The steps a step uses, by name.
#[must_use]
pub fn uses(step: &Step) -> Vec<&str> {
    let mut names: Vec<&str> = step.after.iter().map(String::as_str).collect();
    let mut visit = |name| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    match &step.what {
        What::Call { with, .. } => {
            for (_, value) in with {
                value.names(&mut visit);
            }
        }
        What::ForEach {
            list,
            name,
            steps,
            gives,
            ..
        } => {
            list.names(&mut visit);
            // Of what it gives, what comes about within it is not earlier.
            if let Some(gives) = gives {
                gives.names(&mut |used| {
                    if used != name && find(steps, used).is_none() {
                        visit(used);
                    }
                });
            }
        }
        What::Let(value)
        | What::If { test: value, .. }
        | What::Extract { from: value, .. }
        | What::Confirm(value)
        | What::Delegate { from: value, .. }
        | What::Answer(value) => value.names(&mut visit),
        What::AskUser { .. } | What::Fail(_) => {}
    }
    names
}

/// The whole plan.
#[must_use]
pub fn plan(plan: &Plan, workspace: &Path) -> String {
    let mut out = String::new();
    if !plan.summary().is_empty() {
        let summary: String = plan.summary().chars().take(300).collect();
        let _ = writeln!(out, "{}", summary.escape_debug());
    }
    block(plan, plan.steps(), workspace, 0, &mut out);
    let _ = match plan.calls_at_most() {
        1 => writeln!(out, "at most 1 call"),
        calls => writeln!(out, "at most {calls} calls"),
    };
    for notice in plan.notices() {
        let _ = writeln!(out, "note: {}", self::notice(notice, plan));
    }
    blocked(plan.steps(), workspace, &mut out);
    out
}

/// Why it will not be carried out, if so.
fn blocked(steps: &[Step], workspace: &Path, out: &mut String) {
    for step in steps {
        if let Some((place, why)) = risk::never(step, workspace) {
            let (id, place) = (&step.id, quoted(place));
            let _ = writeln!(
                out,
                "note: {id} is about {place}, which is {why}: the plan will not be carried out"
            );
        }
        for block in step.what.blocks() {
            blocked(block, workspace, out);
        }
    }
}

/// How many steps there are, those in blocks included.
#[must_use]
pub fn count(steps: &[Step]) -> usize {
    let blocks = |step: &Step| step.what.blocks().map(count).sum::<usize>();
    steps.iter().map(|step| 1 + blocks(step)).sum()
}

/// What data will decide, or who would see it, and what follows.
#[must_use]
pub fn notice(notice: &Notice, plan: &Plan) -> String {
    let from = notice.from.join(", ");
    let Some(unseen) = &notice.unseen else {
        let what = match &notice.argument {
            Some(argument) => format!("`{argument}` of {}", notice.step),
            None => format!("whether {} happens", notice.step),
        };
        return format!(
            "{what} will be decided by data from {from} ({}): you will be asked",
            notice.level.as_str()
        );
    };
    let whom = match unseen.only_for.iter().map(Name::as_str).collect::<Vec<_>>() {
        nobody if nobody.is_empty() => "nobody".to_owned(),
        names => names.join(", "),
    };
    let what = match &notice.argument {
        Some(argument) => format!("`{argument}` of {}", notice.step),
        None => format!("what decides {}", notice.step),
    };
    let does = find(plan.steps(), &notice.step).map(|step| &step.what);
    let is_command = match does {
        Some(What::Call { tool, .. }) => plan.toolbox().get(tool).is_some_and(|tool| {
            let commands = Reach::Reader(READER_COMMANDS.to_owned());
            tool.reaches.contains(&commands)
        }),
        _ => false,
    };
    match &unseen.seer {
        Seer::Reader(_) if matches!(does, Some(What::Extract { .. })) => format!(
            "{} would have a model read data from {from}, which is for {whom} only: it will be refused",
            notice.step
        ),
        Seer::Reader(_) if is_command => format!(
            "{what} comes from {from} and is for {whom} only, not for commands: it will be refused"
        ),
        Seer::Reader(name) => format!(
            "{what} comes from {from} and is for {whom} only, not for {} to see: you will be asked",
            quoted(name)
        ),
        Seer::NamedBy(argument) => format!(
            "{what} comes from {from} and is for {whom} only; if `{argument}` names anybody else, you will be asked"
        ),
    }
}

/// The step of this name.
fn find<'p>(steps: &'p [Step], id: &str) -> Option<&'p Step> {
    steps.iter().find_map(|step| {
        if step.id == id {
            return Some(step);
        }
        step.what.blocks().find_map(|block| find(block, id))
    })
}

fn block(plan: &Plan, steps: &[Step], workspace: &Path, depth: usize, out: &mut String) {
    for step in steps {
        let number = plan
            .number(&step.id)
            .map_or(0, |number| u32::from(number) + 1);
        let _ = write!(
            out,
            "{number:>3}. {}{}: {}",
            "  ".repeat(depth),
            step.id,
            what(step)
        );
        let is_call = matches!(step.what, What::Call { .. });
        if is_call {
            let _ = write!(
                out,
                "  [{}]",
                risk::of(step, workspace, plan.toolbox()).as_str()
            );
        }
        let earlier: Vec<String> = uses(step)
            .into_iter()
            .filter_map(|name| plan.number(name))
            .map(|number| (u32::from(number) + 1).to_string())
            .collect();
        if !earlier.is_empty() {
            let _ = write!(out, "  after {}", earlier.join(", "));
        }
        out.push('\n');
        let wants: Vec<String> = plan
            .wants()
            .iter()
            .filter(|want| want.step == step.id)
            .map(|want| match &want.on {
                Some(on) => format!("{} {}", want.verb, quoted(on)),
                None => want.verb.to_string(),
            })
            .collect();
        if !wants.is_empty() {
            let _ = writeln!(out, "     {}needs {}", "  ".repeat(depth), wants.join(", "));
        }
        let fed: Vec<String> = plan
            .fed()
            .iter()
            .filter(|fed| fed.step == step.id)
            .map(|fed| {
                let argument = fed.argument.as_deref().unwrap_or_default();
                let from = fed.from.join(", ");
                format!("`{argument}` from {from} ({})", fed.level.as_str())
            })
            .collect();
        if !fed.is_empty() {
            let _ = writeln!(out, "     {}takes {}", "  ".repeat(depth), fed.join("; "));
        }
        for text in long_texts(step) {
            let indent = "  ".repeat(depth);
            let _ = writeln!(out, "     {indent}{}", quoted(text));
            for line in quoted_lines(text).lines() {
                let _ = writeln!(out, "     {indent}{line}");
            }
        }
        match &step.what {
            What::If { then, or_else, .. } => {
                block(plan, then, workspace, depth + 1, out);
                if !or_else.is_empty() {
                    let _ = writeln!(out, "     {}else:", "  ".repeat(depth));
                    block(plan, or_else, workspace, depth + 1, out);
                }
            }
            What::ForEach { steps, .. } => block(plan, steps, workspace, depth + 1, out),
            What::Call { .. }
            | What::Let(_)
            | What::Extract { .. }
            | What::AskUser { .. }
            | What::Confirm(_)
            | What::Delegate { .. }
            | What::Answer(_)
            | What::Fail(_) => {}
        }
    }
}
