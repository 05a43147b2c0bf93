//! What a server tells of its resources and prompts, as a model is given it.
//!
//! What is no text is a piece of a resource as of a tool's answer; in a prompt it is
//! named.

use serde_json::{Map, Value, json};

use super::{
    answer::{Answer, Part, block_in_words, part},
    fitted,
    utility::Utility,
};
use crate::text::{pyjson, pytext};

/// The answer to such a request, from what was said in the protocol's spelling.
#[must_use]
pub fn told(server: &str, utility: Utility, said: &Value) -> Answer {
    let all = |name: &str| said[name].as_array().map_or(&[][..], Vec::as_slice);
    let listed = |entry: fn(&Value) -> Value| {
        let name = utility.kind().name();
        let shown = json!({ name: all(name).iter().map(entry).collect::<Value>() });
        Answer::heard(pyjson::text(&shown), Some(shown.clone()), shown)
    };
    match utility {
        Utility::ListResources => listed(resource),
        Utility::ListPrompts => listed(prompt),
        Utility::ReadResource => {
            let blocks = all("contents");
            let parts = blocks.iter().filter_map(|of| content(server, of));
            Answer::made_of(parts.collect(), None)
        }
        Utility::GetPrompt => messages(server, said),
    }
}

/// Whatever of these fields has words in it, in this order.
fn with_words(entry: &mut Map<String, Value>, of: &Value, fields: &[&str]) {
    for field in fields {
        match &of[*field] {
            Value::String(words) if !words.is_empty() => {
                entry.insert((*field).to_owned(), words.clone().into());
            }
            _ => {}
        }
    }
}

fn resource(of: &Value) -> Value {
    let mut entry = Map::new();
    entry.insert("uri".to_owned(), of["uri"].clone());
    entry.insert("name".to_owned(), of["name"].clone());
    with_words(&mut entry, of, &["description", "mimeType"]);
    entry.into()
}

fn prompt(of: &Value) -> Value {
    let mut entry = Map::new();
    entry.insert("name".to_owned(), of["name"].clone());
    with_words(&mut entry, of, &["description"]);
    if let Some(arguments) = of["arguments"].as_array().filter(|all| !all.is_empty()) {
        let arguments = arguments.iter().map(|of| {
            let mut argument = Map::new();
            argument.insert("name".to_owned(), of["name"].clone());
            with_words(&mut argument, of, &["description"]);
            // Nothing, where it is not said.
            argument.insert("required".to_owned(), of["required"].clone());
            Value::Object(argument)
        });
        entry.insert("arguments".to_owned(), arguments.collect());
    }
    entry.into()
}

/// A part of a resource; a text may be empty and is a line all the same.
fn content(server: &str, of: &Value) -> Option<Part> {
    match &of["text"] {
        Value::String(text) => Some(Part::Words(text.clone())),
        _ => part(server, &json!({"type": "resource", "resource": of})),
    }
}

fn messages(server: &str, said: &Value) -> Answer {
    let all = said["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let told: Vec<(Value, String)> = all
        .iter()
        .map(|message| {
            let role = message["role"].clone();
            (role, block_in_words(server, &message["content"]))
        })
        .collect();
    let text: Vec<&str> = told.iter().map(|(_, words)| words.as_str()).collect();
    let text = text.join("\n");
    let list: Value = told
        .into_iter()
        .map(|(role, content)| json!({"role": role, "content": content}))
        .collect();
    let mut shown = Map::new();
    shown.insert("messages".to_owned(), list);
    with_words(&mut shown, said, &["description"]);
    let shown = Value::Object(shown);
    Answer::heard(text, Some(shown.clone()), shown)
}

/// Takes from an answer what is more than so many letters, with a word about it.
pub fn fit(shown: &mut Value, letters_max: usize) {
    let Value::Object(parts) = shown else { return };
    let mut cut = None;
    for (name, part) in parts.iter_mut() {
        match (name.as_str(), part) {
            ("result" | "error", Value::String(text)) => *text = fitted(text, letters_max),
            ("resources" | "prompts" | "messages", Value::Array(entries)) => {
                cut = first_of(entries, letters_max);
            }
            _ => {}
        }
    }
    if let Some(cut) = cut {
        parts.insert("cut".to_owned(), cut.into());
    }
}

/// Keeps the entries that have room; the words about the others. The first that
/// has none is kept as far as it goes, if it is a message.
fn first_of(entries: &mut Vec<Value>, letters_max: usize) -> Option<String> {
    let count = |entry: &Value| pyjson::text(entry).chars().count();
    let mut left = letters_max;
    let mut kept = entries.len();
    for (place, entry) in entries.iter_mut().enumerate() {
        let letters = count(entry);
        if letters <= left {
            left -= letters;
            continue;
        }
        kept = place;
        if let Some(Value::String(text)) = entry.get_mut("content") {
            *text = fitted(text, left);
            kept += 1;
        }
        break;
    }
    let all = entries.len();
    entries.truncate(kept);
    let number = |count: usize| pytext::thousands(u64::try_from(count).unwrap_or(u64::MAX));
    (kept < all).then(|| format!("{} of {} are shown", number(kept), number(all)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Utility, fit, told};

    fn check(utility: Utility, said: Value, shown: Value) {
        assert_eq!(told("desk", utility, &said).shown, shown, "{said}");
    }

    #[test]
    fn a_list_says_what_there_is_and_nothing_of_what_is_not_said() {
        check(
            Utility::ListResources,
            json!({"resources": [
                {"uri": "a:1", "name": "one", "title": "One", "description": "", "size": 3},
                {"uri": "a:2", "name": "", "mimeType": "text/plain", "description": "two"}]}),
            json!({"resources": [
                {"uri": "a:1", "name": "one"},
                {"uri": "a:2", "name": "", "description": "two", "mimeType": "text/plain"}]}),
        );
        check(
            Utility::ListPrompts,
            json!({"prompts": [
                {"name": "plain", "arguments": []},
                {"name": "p", "description": "d", "arguments": [
                    {"name": "a", "required": true, "description": "x"}, {"name": "b"}]}]}),
            json!({"prompts": [
                {"name": "plain"},
                {"name": "p", "description": "d", "arguments": [
                    {"name": "a", "description": "x", "required": true}, {"name": "b", "required": null}]}]}),
        );
        check(Utility::ListPrompts, json!({}), json!({"prompts": []}));
    }

    #[test]
    fn the_parts_of_a_resource_are_lines_and_what_is_no_text_is_named() {
        check(
            Utility::ReadResource,
            json!({"contents": [{"uri": "a:1", "text": "x"}, {"uri": "a:1", "text": ""},
                {"uri": "a:1", "blob": "AA==", "mimeType": "application/pdf"}, {"uri": "a:2", "blob": ""}]}),
            json!({"result": "x\n\n[MCP embedded resource could not be cached: application/pdf]\n\
                              [MCP embedded resource could not be cached: a:2]"}),
        );
        check(
            Utility::ReadResource,
            json!({"contents": []}),
            json!({"result": ""}),
        );
    }

    #[test]
    fn the_messages_of_a_prompt_are_told_with_who_says_them() {
        let says = |content: Value| json!({"role": "user", "content": content});
        check(
            Utility::GetPrompt,
            json!({"description": "d", "messages": [
                {"role": "assistant", "content": {"type": "text", "text": ""}},
                says(json!({"type": "image", "mimeType": "image/png", "data": "AA=="})),
                says(json!({"type": "resource", "resource": {"uri": "a:1", "text": "inside"}})),
                says(json!({"type": "resource_link", "uri": "a:1", "name": "one"}))]}),
            json!({"messages": [
                {"role": "assistant", "content": ""},
                {"role": "user", "content": "[MCP image not kept: image/png]"},
                {"role": "user", "content": "inside"},
                {"role": "user", "content":
                    "[MCP resource link: uri=a:1, name=one \u{2014} fetch it with mcp__desk__read_resource]"}],
                "description": "d"}),
        );
        check(
            Utility::GetPrompt,
            json!({"messages": []}),
            json!({"messages": []}),
        );
    }

    #[test]
    fn what_is_too_long_is_told_as_far_as_there_is_room() {
        let mut shown = json!({"resources": ["aaaa", "bbbb", "cccc"]});
        fit(&mut shown, 12);
        assert_eq!(
            shown,
            json!({"resources": ["aaaa", "bbbb"], "cut": "2 of 3 are shown"})
        );
        let mut shown = json!({"resources": ["aaaa"], "description": "d"});
        fit(&mut shown, 12);
        assert_eq!(shown, json!({"resources": ["aaaa"], "description": "d"}));
        let message = |text: &str| json!({"role": "user", "content": text});
        let mut shown = json!({"messages": [message("a"), message(&"b".repeat(99)), message("c")]});
        fit(&mut shown, 50);
        let told = shown["messages"][1]["content"].as_str().expect("a text");
        assert!(told.contains("of 99 letters are shown]"), "{told}");
        assert_eq!(shown["cut"], "2 of 3 are shown");
        let mut shown = json!({"result": "abcd"});
        fit(&mut shown, 3);
        assert_eq!(shown["result"], "abc\n[cut: 3 of 4 letters are shown]");
    }
}
