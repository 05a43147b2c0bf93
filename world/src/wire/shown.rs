//! What a question shows, and what an answer looks like on the wire.

use serde_json::{Value, json};

use super::client::Client;

/// Between a word that comes late and what the client did before.
const AFTER: &str = "-after-";

/// The files of a question: path, old text, new text. What is shown otherwise
/// is no file.
pub(super) fn files(question: &Value) -> Value {
    let content = question
        .pointer("/params/toolCall/content")
        .and_then(Value::as_array);
    content
        .into_iter()
        .flatten()
        .filter(|part| part.get("type").and_then(Value::as_str) == Some("diff"))
        .map(|part| {
            let text = |name: &str| part.get(name).cloned().unwrap_or(Value::Null);
            json!({"path": text("path"), "old": text("oldText"), "new": text("newText")})
        })
        .collect()
}

/// All a question shows.
pub(super) fn in_words(question: &Value) -> String {
    let call = question.pointer("/params/toolCall");
    let title = call
        .and_then(|call| call.get("title"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    let content = call.and_then(|call| call.get("content"));
    let content = content.map(Value::to_string).unwrap_or_default();
    format!("{title}\n{content}")
}

/// What a word says of its user's mind. One that comes after something else would have begun, and
/// did not because the session works, is not late.
pub(super) fn said(word: &str) -> &str {
    word.strip_suffix("-after-load").unwrap_or(word)
}

/// Answers a question with a user's word.
///
/// `once`, `session` and `deny` press the button of that kind (one that says
/// yes if there is no other); `cancelled` closes the dialog, `cancel` ends the
/// turn first; `error` and `malformed` are a client that breaks down. Any other
/// word is sent as the id of an option. With `-after-cancel`, `-after-close` or `-after-load`
/// behind it the word comes late: the client has sent that before.
pub(super) fn answered(
    client: &mut Client,
    question: &Value,
    word: &str,
    (session, cwd): (&str, &str),
) {
    let (word, first) = match word.split_once(AFTER) {
        Some((word, first)) => (word, Some(first)),
        None => (word, (word == "cancel").then_some(word)),
    };
    let params = match first {
        Some("load") => json!({"sessionId": session, "cwd": cwd, "mcpServers": []}),
        _ => json!({"sessionId": session}),
    };
    if let Some(first) = first {
        let mut line = json!({
            "jsonrpc": "2.0", "method": format!("session/{first}"), "params": params,
        });
        // Nobody waits for what comes of it.
        if let (Some(line), true) = (line.as_object_mut(), first != "cancel") {
            line.insert("id".to_owned(), json!(format!("late-{first}")));
        }
        client.line(&line.to_string());
    }
    let outcome = match word {
        "cancel" | "cancelled" => json!({"outcome": {"outcome": "cancelled"}}),
        "malformed" => json!({"outcome": {"outcome": "granted"}}),
        word => json!({"outcome": {"outcome": "selected", "optionId": button(question, word)}}),
    };
    let id = question.get("id").cloned().unwrap_or(Value::Null);
    let answer = match word {
        "error" => json!({
            "jsonrpc": "2.0",
            "id": id,
            "error": {"code": -32603, "message": "the dialog broke down"},
        }),
        _ => json!({"jsonrpc": "2.0", "id": id, "result": outcome}),
    };
    client.line(&answer.to_string());
}

fn button(question: &Value, word: &str) -> String {
    let options: Vec<(&str, &str)> = question
        .pointer("/params/options")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|option| {
            Some((
                option.get("optionId")?.as_str()?,
                option.get("kind")?.as_str()?,
            ))
        })
        .collect();
    let of_kind = |kind: &str| {
        options
            .iter()
            .find(|(_, of)| *of == kind)
            .map(|(id, _)| (*id).to_owned())
    };
    let for_session = options
        .iter()
        .find(|(id, _)| id.contains("session"))
        .map(|(id, _)| (*id).to_owned());
    match word {
        "once" => of_kind("allow_once"),
        "session" => for_session.or_else(|| of_kind("allow_once")),
        "deny" => of_kind("reject_once"),
        other => Some(other.to_owned()),
    }
    .unwrap_or_else(|| word.to_owned())
}

/// Whether a result says that a call was made and did what it was to do, in
/// the fields both subjects' results have.
pub(super) fn is_done(told: &str) -> bool {
    // What else follows a result's JSON is advice for the model.
    let mut values = serde_json::Deserializer::from_str(told).into_iter::<Value>();
    let Some(Ok(result)) = values.next() else {
        return !told.is_empty();
    };
    let said = |name: &str| result.get(name).and_then(Value::as_str).unwrap_or_default();
    said("error").is_empty()
        && result.get("success") != Some(&Value::Bool(false))
        && !matches!(said("status"), "error" | "blocked" | "approval_required")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{button, files, is_done};

    #[test]
    fn a_users_word_presses_the_button_it_means() {
        let question = json!({"params": {"options": [
            {"optionId": "a", "kind": "allow_once"},
            {"optionId": "for_session", "kind": "allow_always"},
            {"optionId": "n", "kind": "reject_once"},
        ]}});
        assert_eq!(button(&question, "once"), "a");
        assert_eq!(button(&question, "session"), "for_session");
        assert_eq!(button(&question, "deny"), "n");
        assert_eq!(button(&question, "no-such-option"), "no-such-option");
        assert_eq!(button(&json!({}), "once"), "once");
    }

    #[test]
    fn only_diffs_are_files() {
        let question = json!({"params": {"toolCall": {"content": [
            {"type": "content", "content": {"type": "text", "text": "words"}},
            {"type": "diff", "path": "/a", "newText": "n"},
        ]}}});
        assert_eq!(
            files(&question),
            json!([{"path": "/a", "old": null, "new": "n"}])
        );
    }

    #[test]
    fn a_result_with_an_error_in_it_is_not_done() {
        assert!(is_done("{\"bytes_written\": 2}"));
        assert!(is_done("{\"output\": \"x\", \"error\": null}\n\nadvice"));
        assert!(is_done("plain words"));
        for no in [
            "",
            "{\"error\": \"no\"}",
            "{\"success\": false}",
            "{\"status\": \"blocked\"}",
        ] {
            assert!(!is_done(no), "{no}");
        }
    }
}
