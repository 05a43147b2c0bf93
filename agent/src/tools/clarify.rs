//! `clarify`: asks the user something the model cannot know.
//!
//! The answer is the user's own words. It is no yes to anything: a question of
//! this tool never makes a grant.

use serde_json::{Map, Value, json};

use crate::{
    runtime::{Inquiry, ToolResult},
    text::{args, pytext},
};

/// Choices put to the user at most.
const CHOICES_MAX: usize = 4;
/// What a choice's words may be called when a model sends an object.
const LABELS: [&str; 4] = ["label", "description", "text", "title"];

/// Reads a call.
///
/// # Errors
/// The result that says what is wrong with it.
pub fn read(given: &Value) -> Result<Inquiry, ToolResult> {
    // A conversation's own tools are given their arguments as they are.
    let given = given.as_object().cloned().unwrap_or_default();
    let question = match given.get("question") {
        Some(Value::String(question)) if !pytext::strip(question).is_empty() => {
            pytext::strip(question).to_owned()
        }
        None | Some(Value::Null | Value::String(_)) => {
            return Err(ToolResult::error("Question text is required."));
        }
        other if !args::truthy(other) => {
            return Err(ToolResult::error("Question text is required."));
        }
        other => {
            return Err(ToolResult::error(&format!(
                "[TOOL_ERROR] Tool execution failed: AttributeError: '{}' object has no attribute 'strip'",
                args::type_name(other)
            )));
        }
    };
    let choices = match given.get("choices") {
        None | Some(Value::Null) => None,
        Some(Value::Array(choices)) => {
            let flat: Vec<String> = choices
                .iter()
                .map(flat)
                .filter(|choice| !choice.is_empty())
                .take(CHOICES_MAX)
                .collect();
            (!flat.is_empty()).then_some(flat)
        }
        Some(_) => return Err(ToolResult::error("choices must be a list of strings.")),
    };
    Ok(Inquiry { question, choices })
}

/// A choice as the words a person picks.
fn flat(choice: &Value) -> String {
    match choice {
        Value::Null => String::new(),
        Value::String(text) => pytext::strip(text).to_owned(),
        Value::Object(fields) => labelled(fields),
        Value::Array(parts) => {
            let parts: Vec<String> = parts.iter().map(flat).collect();
            pytext::strip(&parts.join(" ")).to_owned()
        }
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
    }
}

fn labelled(fields: &Map<String, Value>) -> String {
    LABELS
        .iter()
        .filter_map(|label| fields.get(*label).and_then(Value::as_str))
        .map(pytext::strip)
        .find(|text| !text.is_empty())
        .unwrap_or_default()
        .to_owned()
}

/// The result with the user's words; `None` if there is nobody to ask.
#[must_use]
pub fn worded(asking: &Inquiry, answer: Option<&str>) -> ToolResult {
    match answer {
        Some(answer) => ToolResult::ran(&json!({
            "question": asking.question,
            "choices_offered": asking.choices,
            "user_response": pytext::strip(answer),
        })),
        None => ToolResult::error("Clarify tool is not available in this execution context."),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Inquiry, read, worded};

    fn check(given: &Value, expected: Result<(&str, Option<&[&str]>), &str>) {
        match (read(given), expected) {
            (Ok(asking), Ok((question, choices))) => {
                let choices = choices.map(|c| c.iter().map(|c| (*c).to_owned()).collect());
                assert_eq!(
                    asking,
                    Inquiry {
                        question: question.to_owned(),
                        choices
                    },
                    "{given}"
                );
            }
            (Err(result), Err(part)) => assert!(result.text.contains(part), "{}", result.text),
            (got, expected) => panic!("{given}: {got:?}, not {expected:?}"),
        }
    }

    #[test]
    fn questions_and_choices_are_read_in_the_forms_models_send() {
        check(&json!({"question": " Which? "}), Ok(("Which?", None)));
        check(
            &json!({"question": "q", "choices": ["a", " b ", "", null, 5]}),
            Ok(("q", Some(&["a", "b", "5"]))),
        );
        check(
            &json!({"question": "q", "choices": "[\"a\", \"b\"]"}),
            Err("choices must be a list of strings."),
        );
        check(
            &json!({"question": "q", "choices": [{"label": "L"}, {"name": "n"}, ["x", "y"], {"text": "T"}]}),
            Ok(("q", Some(&["L", "x y", "T"]))),
        );
        check(
            &json!({"question": "q", "choices": ["1", "2", "3", "4", "5"]}),
            Ok(("q", Some(&["1", "2", "3", "4"]))),
        );
        check(&json!({"question": "q", "choices": []}), Ok(("q", None)));
    }

    #[test]
    fn a_call_without_a_question_says_so() {
        for given in [
            json!({}),
            json!({"question": "  "}),
            json!({"question": null}),
            json!([]),
        ] {
            check(&given, Err("Question text is required."));
        }
        check(
            &json!({"question": 5}),
            Err("'int' object has no attribute"),
        );
    }

    #[test]
    fn an_answer_is_trimmed_and_nobody_is_an_error() {
        let asking = Inquiry {
            question: "q".into(),
            choices: None,
        };
        assert_eq!(
            worded(&asking, Some(" yes\n")).text,
            r#"{"question": "q", "choices_offered": null, "user_response": "yes"}"#
        );
        assert!(worded(&asking, None).text.contains("not available"));
    }
}
