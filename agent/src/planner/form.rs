//! The form of an answer about a text, for backends that hold a model to one:
//! as a JSON schema and as a GBNF grammar, both made from the type asked for.
//!
//! As in [`super::schema`], strings are printable ASCII with escapes and of
//! bounded length, and so are lists. The answer is checked in full all the same.

use std::fmt::Write as _;

use hermitcrab_core::plan::{Kind, Type};
use serde_json::{Map, Value, json};

use crate::model::Schema;

/// Letters of a text made under the grammar.
const LETTERS_MAX: usize = 1_000;
/// Items of a list made under the grammar.
const ITEMS_MAX: usize = 64;

/// What an answer has to be like: enough was said and this is the data, or not.
#[must_use]
pub fn answer(wanted: &Type) -> Schema {
    let enough = json!({"type": "object", "additionalProperties": false, "required": ["enough", "data"],
        "properties": {"enough": {"const": true}, "data": json_schema(wanted)}});
    let not = json!({"type": "object", "additionalProperties": false, "required": ["enough"],
        "properties": {"enough": {"const": false}}});
    let mut rules = Rules::default();
    let data = rules.of(wanted);
    let grammar = format!(
        "root ::= \"{{\\\"enough\\\":\" (\"false}}\" | \"true,\\\"data\\\":\" {data} \"}}\")\n{}\
         string ::= \"\\\"\" letter{{0,{LETTERS_MAX}}} \"\\\"\"\n\
         letter ::= [ !#-\\[\\]-~] | \"\\\\\" ([\"\\\\/bnrt] | \"u00\" [0-7] [0-9a-f])\n\
         whole ::= \"-\"? (\"0\" | [1-9] [0-9]{{0,14}})\n\
         digit ::= [0-9]\n\
         time ::= \"\\\"\" digit{{4,4}} \"-\" [0-1] digit \"-\" [0-3] digit (\"T\" [0-2] digit \":\" [0-5] digit)? \"\\\"\"\n",
        rules.text
    );
    Schema {
        name: "answer".to_owned(),
        json: json!({ "anyOf": [enough, not] }),
        grammar: Some(grammar),
    }
}

fn json_schema(wanted: &Type) -> Value {
    match &wanted.kind {
        Kind::Never | Kind::Nothing => json!({"type": "null"}),
        Kind::Truth => json!({"type": "boolean"}),
        Kind::Whole => json!({"type": "integer"}),
        Kind::Number => json!({"type": "number"}),
        Kind::Text | Kind::Path | Kind::Time => json!({"type": "string"}),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::List(item) => json!({"type": "array", "items": json_schema(item)}),
        Kind::Optional(item) => json!({"anyOf": [json_schema(item), {"type": "null"}]}),
        Kind::Record(fields) => {
            let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
            let properties: Map<String, Value> = fields
                .iter()
                .map(|(name, field)| (name.clone(), json_schema(field)))
                .collect();
            json!({"type": "object", "additionalProperties": false, "required": names, "properties": properties})
        }
    }
}

/// Rules that were needed on the way.
#[derive(Default)]
struct Rules {
    text: String,
    count: usize,
}

impl Rules {
    /// The name of a rule, or an expression, for values of a type.
    fn of(&mut self, wanted: &Type) -> String {
        match &wanted.kind {
            Kind::Never | Kind::Nothing => "\"null\"".to_owned(),
            Kind::Truth => "(\"true\" | \"false\")".to_owned(),
            Kind::Whole => "whole".to_owned(),
            Kind::Number => "(whole (\".\" digit{1,9})?)".to_owned(),
            Kind::Text | Kind::Path => "string".to_owned(),
            Kind::Time => "time".to_owned(),
            Kind::Choice(words) => {
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                format!("({})", words.join(" | "))
            }
            Kind::List(item) => {
                let item = self.of(item);
                let more = ITEMS_MAX - 1;
                self.rule(&format!("\"[\" ({item} (\",\" {item}){{0,{more}}})? \"]\""))
            }
            Kind::Optional(item) => {
                let item = self.of(item);
                self.rule(&format!("\"null\" | {item}"))
            }
            Kind::Record(fields) => {
                let mut body = String::from("\"{\"");
                for (place, (name, field)) in fields.iter().enumerate() {
                    let comma = if place > 0 { "\",\" " } else { "" };
                    let value = self.of(field);
                    // Writing to a string does not fail.
                    let _ = write!(body, " {comma}{} \":\" {value}", quoted(name));
                }
                body.push_str(" \"}\"");
                self.rule(&body)
            }
        }
    }

    fn rule(&mut self, body: &str) -> String {
        self.count = self.count.saturating_add(1);
        let name = format!("r{}", self.count);
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{name} ::= {body}");
        name
    }
}

/// A JSON string as a text of the grammar.
fn quoted(word: &str) -> String {
    let mut json = Value::from(word).to_string();
    // Letters beyond ASCII are written as JSON escapes, which stay bytes of one kind.
    if !json.is_ascii() {
        let mut plain = String::new();
        for letter in json.chars() {
            if letter.is_ascii() {
                plain.push(letter);
            } else {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    // Writing to a string does not fail.
                    let _ = write!(plain, "\\u{unit:04x}");
                }
            }
        }
        json = plain;
    }
    format!("\"{}\"", json.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::plan::{Kind, Level};

    use super::{answer, quoted};

    #[test]
    fn words_are_written_as_the_grammar_and_json_want_them() {
        assert_eq!(quoted("a"), r#""\"a\"""#);
        assert_eq!(quoted("a\"b"), r#""\"a\\\"b\"""#);
        assert_eq!(quoted("\u{fc}"), r#""\"\\u00fc\"""#);
    }

    #[test]
    fn every_part_of_a_form_is_in_both() {
        let low = |kind: Kind| kind.at(Level::Untrusted);
        let text = || low(Kind::Text);
        let wanted = low(Kind::Record(vec![
            ("who".into(), low(Kind::Optional(Box::new(text())))),
            (
                "how".into(),
                low(Kind::List(Box::new(low(Kind::Choice(vec!["a".into()]))))),
            ),
        ]));
        let schema = answer(&wanted);
        let json = schema.json.to_string();
        let grammar = schema.grammar.expect("a grammar");
        for part in ["who", "how", "enough"] {
            assert!(
                json.contains(part) && grammar.contains(part),
                "{part}\n{grammar}"
            );
        }
        // Every rule that is named is there.
        for rule in ["r1", "r2", "r3", "string", "letter"] {
            assert!(
                grammar.contains(&format!("{rule} ::= ")),
                "{rule}\n{grammar}"
            );
        }
    }
}
