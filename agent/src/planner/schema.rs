//! The form of a plan, for backends that hold a model to one: as a JSON schema
//! and as a GBNF grammar, both made from the tools' signatures.
//!
//! Schema converters allow every letter in a string, and a model that is held
//! to such a grammar may still produce bytes that are no text. So strings are
//! printable ASCII with escapes and of bounded length, and steps are unrolled:
//! the n-th has the name `s<n>` and refers only to steps before it. Whatever
//! comes is checked in full all the same.

use std::fmt::Write as _;

use hermitcrab_core::plan::{
    Kind, Param, Toolbox,
    builtin::{Builtin, Over},
};
use serde_json::{Value, json};

use super::draft;
use crate::actions;

/// Steps of a plan made under the grammar.
const STEPS_MAX: usize = 12;
/// Letters of a text made under the grammar.
const LETTERS_MAX: usize = 200;
/// Items of a list made under the grammar.
const ITEMS_MAX: usize = 8;

/// The form as a JSON schema: all of the language.
#[must_use]
pub fn json_schema(toolbox: &Toolbox) -> Value {
    let value = json!({"$ref": "#/$defs/value"});
    let block = json!({"$ref": "#/$defs/steps"});
    let mut steps: Vec<Value> = toolbox
        .all()
        .iter()
        .map(|tool| {
            let with: serde_json::Map<String, Value> = tool
                .params
                .iter()
                .map(|param| (param.name.clone(), value.clone()))
                .collect();
            let required: Vec<&str> = tool
                .params
                .iter()
                .filter(|param| param.required)
                .map(|param| param.name.as_str())
                .collect();
            let with = json!({
                "type": "object", "additionalProperties": false, "required": required, "properties": with,
            });
            step(&[("call", json!({"const": tool.name})), ("with", with)], &[])
        })
        .collect();
    let form = json!({});
    steps.extend([
        step(&[("let", value.clone())], &[]),
        step(
            &[
                ("for_each", value.clone()),
                ("as", name()),
                ("do", block.clone()),
            ],
            &[
                ("at_most", json!({"type": "integer"})),
                ("gives", value.clone()),
            ],
        ),
        step(
            &[("if", value.clone()), ("then", block.clone())],
            &[("else", block.clone())],
        ),
        step(
            &[
                ("extract", value.clone()),
                ("ask", text()),
                ("schema", form.clone()),
            ],
            &[],
        ),
        step(&[("ask_user", text())], &[("schema", form)]),
        step(&[("confirm", value.clone())], &[]),
        step(&[("answer", value.clone())], &[]),
        step(&[("fail", text())], &[]),
    ]);
    let functions: Vec<&str> = Builtin::ALL
        .iter()
        .map(|builtin| builtin.as_str())
        .collect();
    let overs: Vec<&str> = Over::ALL.iter().map(|over| over.as_str()).collect();
    let values = json!({"type": "array", "maxItems": 64, "items": value});
    let values = [
        text(),
        json!({"type": "number"}),
        json!({"type": "boolean"}),
        values.clone(),
        object(&[(
            "$",
            json!({"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_.\\[\\]]*$"}),
        )]),
        object(&[("text", values.clone())]),
        object(&[("fn", json!({ "enum": functions })), ("of", values)]),
        object(&[
            ("fn", json!({ "enum": overs })),
            ("of", value.clone()),
            ("as", name()),
            ("by", value),
        ]),
    ];
    json!({
        "type": "object", "additionalProperties": false, "required": ["version", "summary", "steps"],
        "properties": {"version": {"const": draft::VERSION}, "summary": text(), "steps": block},
        "$defs": {
            "value": {"anyOf": values},
            "steps": {"type": "array", "minItems": 1, "maxItems": 64, "items": {"anyOf": steps}},
        },
    })
}

fn object(fields: &[(&str, Value)]) -> Value {
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<String, Value> = fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties})
}

fn step(needed: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let mut fields = vec![("id", name())];
    fields.extend_from_slice(needed);
    let mut step = object(&fields);
    if let Some(properties) = step.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, value) in optional {
            properties.insert((*name).to_owned(), value.clone());
        }
    }
    step
}

fn name() -> Value {
    json!({"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,39}$"})
}

fn text() -> Value {
    json!({"type": "string", "maxLength": 20_000})
}

/// Whether [`gbnf`] can make anything of these tools: it is built around reading
/// and finding files.
#[must_use]
pub fn gbnf_fits(toolbox: &Toolbox) -> bool {
    let has = |name| toolbox.get(name).is_some();
    has("read_file") && has("find_files") && toolbox.all().len() == actions::toolbox().all().len()
}

/// A grammar of straight plans. What it lets through is a plan the check
/// accepts: a step that uses another comes right after one that gives a value
/// of that type.
#[must_use]
pub fn gbnf(toolbox: &Toolbox) -> String {
    let mut out = String::from(
        "root ::= \"{\\\"version\\\":1,\\\"summary\\\":\" string \",\\\"steps\\\":[\" s1 \"]}\"\n",
    );
    for number in 1..=STEPS_MAX {
        let head = format!("\"{{\\\"id\\\":\\\"s{number}\\\",\"");
        let next = number + 1;
        let (plain, text, list) = if number < STEPS_MAX {
            (
                format!(" (\",\" s{next})?"),
                format!(" (\",\" (s{next} | t{next}))?"),
                format!(" (\",\" (s{next} | l{next}))?"),
            )
        } else {
            Default::default()
        };
        let _ = writeln!(
            out,
            "s{number} ::= {head} (call | \"\\\"answer\\\":\" string) \"}}\"{plain} | {head} reads \"}}\"{text} | {head} finds \"}}\"{list}"
        );
        if number > 1 {
            let before = number - 1;
            let used = format!("\"{{\\\"$\\\":\\\"s{before}.text\\\"}}\"");
            let _ = writeln!(
                out,
                "t{number} ::= {head} (\"\\\"answer\\\":\" {used} | \"\\\"call\\\":\\\"create_file\\\",\\\"with\\\":{{\\\"path\\\":\" string \",\\\"text\\\":\" {used} \"}}\") \"}}\"{plain}"
            );
            let used = format!("\"{{\\\"$\\\":\\\"s{before}.paths\\\"}}\"");
            let _ = writeln!(
                out,
                "l{number} ::= {head} \"\\\"call\\\":\" (\"\\\"delete_files\\\",\\\"with\\\":{{\\\"paths\\\":\" {used} | \"\\\"move_files\\\",\\\"with\\\":{{\\\"into\\\":\" string \",\\\"paths\\\":\" {used}) \"}}}}\"{plain}"
            );
        }
    }
    let mut calls = Vec::new();
    for (place, tool) in toolbox.all().iter().enumerate() {
        let mut with = String::new();
        for param in tool.params.iter().filter(|param| param.required) {
            if !with.is_empty() {
                with.push_str(" \",\" ");
            }
            let _ = write!(with, "\"\\\"{}\\\":\" {}", param.name, rule(param));
        }
        let rule = match tool.name.as_str() {
            "read_file" => "reads".to_owned(),
            "find_files" => "finds".to_owned(),
            _ => {
                calls.push(format!("c{place}"));
                format!("c{place}")
            }
        };
        let _ = writeln!(
            out,
            "{rule} ::= \"\\\"call\\\":\\\"{}\\\",\\\"with\\\":{{\" {with} \"}}\"",
            tool.name
        );
    }
    let _ = writeln!(out, "call ::= {}", calls.join(" | "));
    let _ = write!(
        out,
        "strings ::= \"[\" (string (\",\" string){{0,{}}})? \"]\"\n\
         truth ::= \"true\" | \"false\"\n\
         whole ::= \"-\"? (\"0\" | [1-9] [0-9]{{0,8}})\n\
         string ::= \"\\\"\" letter{{0,{LETTERS_MAX}}} \"\\\"\"\n\
         letter ::= [ !#-\\[\\]-~] | \"\\\\\" ([\"\\\\/bnrt] | \"u00\" [0-7] [0-9a-f])\n",
        ITEMS_MAX - 1
    );
    out
}

fn rule(param: &Param) -> String {
    match &param.kind.kind {
        Kind::Truth => "truth".to_owned(),
        Kind::Whole | Kind::Number => "whole".to_owned(),
        Kind::List(_) => "strings".to_owned(),
        Kind::Choice(words) => {
            let words: Vec<String> = words
                .iter()
                .map(|word| format!("\"\\\"{word}\\\"\""))
                .collect();
            format!("({})", words.join(" | "))
        }
        Kind::Text
        | Kind::Path
        | Kind::Time
        | Kind::Never
        | Kind::Nothing
        | Kind::Record(_)
        | Kind::Optional(_) => "string".to_owned(),
    }
}
