//! A plan as the JSON it is read from, so that a person can change it.
//!
//! What this writes, [`super::draft::read`] reads back as the same steps.

use hermitcrab_core::plan::{Expr, Hop, Kind, Plan, Step, Type, What};
use serde_json::{Map, Value, json};

use super::draft;
use crate::values;

/// The whole plan.
#[must_use]
pub fn plan(plan: &Plan) -> Value {
    json!({"version": draft::VERSION, "summary": plan.summary(), "steps": steps(plan.steps())})
}

fn steps(of: &[Step]) -> Value {
    Value::Array(of.iter().map(step).collect())
}

fn step(step: &Step) -> Value {
    let mut out = match &step.what {
        What::Call { tool, with } => json!({"call": tool, "with": fields(with)}),
        What::Let(value) => json!({"let": expr(value)}),
        What::ForEach {
            list,
            name,
            at_most,
            steps: inner,
            gives,
        } => {
            let mut out = json!({"for_each": expr(list), "as": name, "do": steps(inner)});
            if let Some(bound) = at_most {
                put(&mut out, "at_most", (*bound).into());
            }
            if let Some(gives) = gives {
                put(&mut out, "gives", expr(gives));
            }
            out
        }
        What::If {
            test,
            then,
            or_else,
        } => json!({"if": expr(test), "then": steps(then), "else": steps(or_else)}),
        What::Extract {
            from,
            ask,
            schema: form,
        } => json!({"extract": expr(from), "ask": ask, "schema": schema(form)}),
        What::AskUser {
            question,
            schema: form,
        } => json!({"ask_user": question, "schema": schema(form)}),
        What::Confirm(value) => json!({"confirm": expr(value)}),
        What::Delegate { from, tools } => json!({"delegate": expr(from), "tools": tools}),
        What::Answer(value) => json!({"answer": expr(value)}),
        What::Fail(text) => json!({"fail": text}),
    };
    put(&mut out, "id", step.id.as_str().into());
    if !step.after.is_empty() {
        put(&mut out, "after", step.after.clone().into());
    }
    out
}

fn put(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(fields) = object {
        fields.insert(key.to_owned(), value);
    }
}

fn fields(of: &[(String, Expr)]) -> Value {
    let fields: Map<String, Value> = of
        .iter()
        .map(|(name, value)| (name.clone(), expr(value)))
        .collect();
    Value::Object(fields)
}

fn exprs(of: &[Expr]) -> Value {
    Value::Array(of.iter().map(expr).collect())
}

fn expr(of: &Expr) -> Value {
    match of {
        Expr::Literal(raw) => values::json(raw),
        Expr::Ref { name, path } => {
            let mut out = name.clone();
            for hop in path {
                match hop {
                    Hop::Field(field) => {
                        out.push('.');
                        out.push_str(field);
                    }
                    Hop::At(place) => out.push_str(&format!("[{place}]")),
                }
            }
            json!({ "$": out })
        }
        Expr::List(items) => exprs(items),
        Expr::Record(of) => json!({ "record": fields(of) }),
        Expr::Text(parts) => json!({ "text": exprs(parts) }),
        Expr::Apply(builtin, of) => json!({"fn": builtin.as_str(), "of": exprs(of)}),
        Expr::Over {
            over,
            list,
            name,
            body,
        } => json!({"fn": over.as_str(), "of": expr(list), "as": name, "by": expr(body)}),
    }
}

fn schema(of: &Type) -> Value {
    match &of.kind {
        Kind::Never | Kind::Nothing => Value::Null,
        Kind::Truth => "truth".into(),
        Kind::Whole => "whole".into(),
        Kind::Number => "number".into(),
        Kind::Text => "text".into(),
        Kind::Path => "path".into(),
        Kind::Time => "time".into(),
        Kind::Choice(words) => json!({ "one_of": words }),
        Kind::List(item) => json!([schema(item)]),
        Kind::Optional(item) => json!({ "maybe": schema(item) }),
        Kind::Record(fields) => Value::Object(
            fields
                .iter()
                .map(|(name, field)| (name.clone(), schema(field)))
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hermitcrab_core::plan::{FlowRules, check};

    use super::plan;
    use crate::{actions, planner::draft};

    #[test]
    fn what_is_written_is_read_back_as_the_same_steps() {
        let text = r#"{"version": 1, "summary": "all of it", "steps": [
            {"id": "f", "call": "list_files", "with": {"path": "in", "all": true}},
            {"id": "l", "let": {"fn": "filter", "of": {"$": "f.entries"}, "as": "e", "by": {"fn": "gt", "of": [{"$": "e.size"}, 2]}}},
            {"id": "n", "for_each": {"$": "l"}, "as": "i", "at_most": 7, "do": [
                {"id": "r", "call": "read_file", "with": {"path": {"$": "i.path"}}, "after": ["f"]}
            ], "gives": {"record": {"t": {"$": "r.text"}, "k": -1.5}}},
            {"id": "x", "extract": {"text": ["a", {"$": "n[0].t"}]}, "ask": "who",
             "schema": {"who": {"maybe": "text"}, "how": [{"one_of": ["a", "b"]}], "when": "time", "n": "whole"}},
            {"id": "c", "confirm": {"$": "x.n"}},
            {"id": "q", "ask_user": "sure?", "schema": "truth"},
            {"id": "b", "if": {"$": "q"}, "then": [{"id": "s", "answer": "yes"}], "else": [{"id": "z", "fail": "no"}]},
            {"id": "d", "delegate": {"$": "n[0].t"}, "tools": ["read_file"]},
            {"id": "w", "call": "create_file", "with": {"path": "o", "text": "x"}}
        ]}"#;
        let read = |text: &[u8]| draft::read(text).expect("a draft");
        let draft = read(text.as_bytes());
        let locked = check(
            draft.clone(),
            Arc::new(actions::toolbox()),
            FlowRules::STRICT,
        )
        .expect("a plan");
        assert_eq!(read(plan(&locked).to_string().as_bytes()), draft);
    }
}
