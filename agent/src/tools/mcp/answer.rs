//! What a server's answer looks like to a model.

use serde_json::{Value, json};

use super::{Utility, tool_name, without_secrets};

/// An answer in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The tool's result as a model is given it.
    pub shown: Value,
    /// The text alone, for whoever reads it as data.
    pub text: String,
    /// What came as data beside it.
    pub data: Option<Value>,
    /// Whether the server says that it did not work, or gave no answer.
    pub is_error: bool,
    /// Whether the server had a part in it at all.
    pub is_heard: bool,
}

/// An answer that is none, and why.
#[must_use]
pub fn failed(why: &str) -> Answer {
    let text = without_secrets(why);
    Answer {
        shown: json!({ "error": text }),
        text,
        data: None,
        is_error: true,
        is_heard: true,
    }
}

/// A server that says it cannot do what it was asked.
#[must_use]
pub fn refused(why: &str) -> Answer {
    failed(&format!("MCP call failed: McpError: {why}"))
}

/// What is told instead of a call to a server that failed again and again.
#[must_use]
pub fn unreachable_words(server: &str, failures: u32, seconds: u64) -> String {
    format!(
        "MCP server '{server}' is unreachable after {failures} consecutive failures. Auto-retry available in \
         ~{seconds}s. Do NOT retry this tool yet \u{2014} use alternative approaches or ask the user to check the MCP \
         server."
    )
}

impl Answer {
    /// What a server said, and not that it failed.
    pub(super) const fn heard(text: String, data: Option<Value>, shown: Value) -> Self {
        Self {
            shown,
            text,
            data,
            is_error: false,
            is_heard: true,
        }
    }

    /// Reads the result of a call of this server as the protocol spells it.
    #[must_use]
    pub fn of(server: &str, result: &Value) -> Self {
        let blocks = result["content"].as_array().map_or(&[][..], Vec::as_slice);
        let data = result
            .get("structuredContent")
            .filter(|data| !data.is_null());
        if result["isError"] == true {
            let said: String = blocks.iter().filter_map(words).collect();
            let mut answer = failed(if said.is_empty() {
                "MCP tool returned an error"
            } else {
                &said
            });
            answer.data = data.cloned();
            return answer;
        }
        let parts: Vec<String> = blocks
            .iter()
            .filter_map(|block| part(server, block))
            .collect();
        let text = parts.join("\n");
        let shown = match data {
            Some(data) if text.is_empty() => json!({ "result": data }),
            Some(data) => json!({"result": text, "structuredContent": data}),
            None => json!({ "result": text }),
        };
        Self::heard(text, data.cloned(), shown)
    }
}

/// A block as text, whatever it is.
pub(super) fn block_in_words(server: &str, block: &Value) -> String {
    part(server, block).unwrap_or_default()
}

/// The words of a block, if it has any.
fn words(block: &Value) -> Option<&str> {
    [&block["text"], &block["resource"]["text"]]
        .into_iter()
        .filter_map(Value::as_str)
        .find(|text| !text.is_empty())
}

/// A block as a line of the result. What is no text is named and not kept.
pub(super) fn part(server: &str, block: &Value) -> Option<String> {
    if let Some(text) = words(block) {
        return Some(text.to_owned());
    }
    let of = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let kind = block["type"].as_str().unwrap_or_default();
    match kind {
        "image" | "audio" => Some(format!("[MCP {kind} not kept: {}]", of(block, "mimeType"))),
        "resource_link" => {
            let uri = of(block, "uri");
            let mut about = format!("uri={uri}");
            for (key, called) in [("name", "name"), ("mimeType", "mimeType")] {
                let value = of(block, key);
                if !value.is_empty() {
                    about.push_str(&format!(", {called}={value}"));
                }
            }
            let reader = tool_name(server, Utility::ReadResource.name());
            (!uri.is_empty())
                .then(|| format!("[MCP resource link: {about} \u{2014} fetch it with {reader}]"))
        }
        "resource" => {
            let resource = &block["resource"];
            let blob = resource["blob"].as_str()?;
            let called = match of(resource, "mimeType") {
                mime if mime.is_empty() => of(resource, "uri"),
                mime => mime,
            };
            let why = if is_base64(blob) { "cached" } else { "decoded" };
            Some(format!(
                "[MCP embedded resource could not be {why}: {called}]"
            ))
        }
        _ => None,
    }
}

/// Whether bytes can be made of a text, as Python's decoder sees it: letters that
/// mean nothing are passed over, what stands after the padding as well.
fn is_base64(text: &str) -> bool {
    let (mut quad, mut pads) = (0, 0);
    if !text.is_ascii() {
        return false;
    }
    for letter in text.bytes() {
        match letter {
            b'=' if quad >= 2 => {
                pads += 1;
                if quad + pads >= 4 {
                    return true;
                }
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => {
                pads = 0;
                quad = (quad + 1) % 4;
            }
            _ => {}
        }
    }
    quad == 0
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Answer, is_base64};

    fn check(result: Value, shown: Value) {
        assert_eq!(Answer::of("desk", &result).shown, shown, "{result}");
    }

    #[test]
    fn text_and_data_of_an_answer_are_both_told() {
        let text = |text: &str| json!({"type": "text", "text": text});
        check(
            json!({"content": [text("a"), text(""), text("b")]}),
            json!({"result": "a\nb"}),
        );
        check(json!({"content": []}), json!({"result": ""}));
        check(
            json!({"content": [text("a")], "structuredContent": {"n": 1}}),
            json!({"result": "a", "structuredContent": {"n": 1}}),
        );
        check(
            json!({"content": [], "structuredContent": {"n": 1}}),
            json!({"result": {"n": 1}}),
        );
    }

    #[test]
    fn an_error_is_one_text_without_keys_and_never_none() {
        let result = json!({"isError": true, "content": [
            {"type": "text", "text": "bad "},
            {"type": "resource", "resource": {"uri": "x:y", "text": "token=abc"}}]});
        check(result, json!({"error": "bad [REDACTED]"}));
        check(
            json!({"isError": true, "content": []}),
            json!({"error": "MCP tool returned an error"}),
        );
    }

    #[test]
    fn what_is_no_text_is_named() {
        check(
            json!({"content": [
                {"type": "image", "mimeType": "image/png", "data": "AA=="},
                {"type": "resource_link", "uri": "f:a", "name": "a"},
                {"type": "resource", "resource": {"uri": "f:b", "blob": "AA=="}},
                {"type": "later"}]}),
            json!({"result": "[MCP image not kept: image/png]\n[MCP resource link: uri=f:a, name=a \u{2014} fetch it with \
                              mcp__desk__read_resource]\n[MCP embedded resource could not be cached: f:b]"}),
        );
    }

    #[test]
    fn what_no_bytes_can_be_made_of_is_told_from_what_is_not_kept() {
        // What the decoder of Python 3.11 says of each.
        for (text, is_one) in [
            ("", true),
            ("AAEC", true),
            ("AA==", true),
            ("A A\n=%=", true),
            ("AA==AAA", true),
            ("====", true),
            ("%", true),
            ("A", false),
            ("AA", false),
            ("AA=", false),
            ("AA=A", false),
            ("A===", false),
            ("AAEC\u{e9}", false),
        ] {
            assert_eq!(is_base64(text), is_one, "{text:?}");
        }
        check(
            json!({"content": [{"type": "resource", "resource": {"uri": "f:b", "blob": "A"}}]}),
            json!({"result": "[MCP embedded resource could not be decoded: f:b]"}),
        );
    }
}
