//! What a server's answer looks like to a model.

use serde_json::{Value, json};

use super::{Piece, Utility, tool_name, without_secrets};

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
    /// What the text is made of, where some of it is no text.
    parts: Vec<Part>,
}

/// One of the lines of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Words(String),
    Piece(Piece),
}

impl Part {
    /// As it is told where nothing is kept.
    fn unkept(&self) -> String {
        match self {
            Self::Words(words) => words.clone(),
            Self::Piece(piece) => piece.unkept(None),
        }
    }
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
        parts: Vec::new(),
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
            parts: Vec::new(),
        }
    }

    /// The same, of these lines; what is no text is named.
    pub(super) fn made_of(parts: Vec<Part>, data: Option<&Value>) -> Self {
        let lines: Vec<String> = parts.iter().map(Part::unkept).collect();
        let text = lines.join("\n");
        let shown = shown(&text, data);
        let has_pieces = parts.iter().any(|part| matches!(part, Part::Piece(_)));
        Self {
            parts: if has_pieces { parts } else { Vec::new() },
            ..Self::heard(text, data.cloned(), shown)
        }
    }

    /// The same, of a server that had no part in it.
    #[must_use]
    pub fn unheard(mut self) -> Self {
        self.is_heard = false;
        self
    }

    /// What of it is no text, in order.
    pub fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.parts.iter().filter_map(|part| match part {
            Part::Words(_) => None,
            Part::Piece(piece) => Some(piece),
        })
    }

    /// The same, with what `keep` says of each piece that is no text.
    #[must_use]
    pub fn kept(mut self, mut keep: impl FnMut(&Piece) -> String) -> Self {
        if self.parts.is_empty() {
            return self;
        }
        let told = |part| match part {
            Part::Words(words) => words,
            Part::Piece(piece) => keep(&piece),
        };
        let lines: Vec<String> = std::mem::take(&mut self.parts)
            .into_iter()
            .map(told)
            .collect();
        let text = lines.join("\n");
        self.shown = shown(&text, self.data.as_ref());
        self.text = text;
        self
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
        let parts = blocks.iter().filter_map(|block| part(server, block));
        Self::made_of(parts.collect(), data)
    }
}

/// A text, and data beside it, as a model is given them.
fn shown(text: &str, data: Option<&Value>) -> Value {
    match data {
        Some(data) if text.is_empty() => json!({ "result": data }),
        Some(data) => json!({"result": text, "structuredContent": data}),
        None => json!({ "result": text }),
    }
}

/// A block as text, whatever it is.
pub(super) fn block_in_words(server: &str, block: &Value) -> String {
    part(server, block).map_or_else(String::new, |part| part.unkept())
}

/// The words of a block, if it has any.
fn words(block: &Value) -> Option<&str> {
    [&block["text"], &block["resource"]["text"]]
        .into_iter()
        .filter_map(Value::as_str)
        .find(|text| !text.is_empty())
}

/// A block as a line of the result.
pub(super) fn part(server: &str, block: &Value) -> Option<Part> {
    if let Some(text) = words(block) {
        return Some(Part::Words(text.to_owned()));
    }
    if block["type"] == "resource_link" {
        return link(server, block).map(Part::Words);
    }
    match Piece::of(block)? {
        Ok(piece) => Some(Part::Piece(piece)),
        Err(why) => Some(Part::Words(why)),
    }
}

/// Words about something the server has, and how to have it.
fn link(server: &str, block: &Value) -> Option<String> {
    let of = |key: &str| {
        let value = block[key].as_str()?;
        (!value.is_empty()).then_some(value)
    };
    let mut about = format!("uri={}", of("uri")?);
    for key in ["name", "mimeType"] {
        if let Some(value) = of(key) {
            about.push_str(&format!(", {key}={value}"));
        }
    }
    let reader = tool_name(server, Utility::ReadResource.name());
    Some(format!(
        "[MCP resource link: {about} \u{2014} fetch it with {reader}]"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Answer;

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
    fn what_is_kept_is_told_in_its_place_with_the_data_beside_it() {
        let result = json!({
            "content": [
                {"type": "text", "text": "a"},
                {"type": "resource", "resource": {"uri": "f:b", "blob": "AA=="}},
                {"type": "text", "text": "c"}],
            "structuredContent": {"n": 1}});
        let mut seen = Vec::new();
        let answer = Answer::of("desk", &result).kept(|piece| {
            seen.push(piece.bytes().to_vec());
            "kept".to_owned()
        });
        assert_eq!(seen, [[0]]);
        assert_eq!(answer.text, "a\nkept\nc");
        assert_eq!(
            answer.shown,
            json!({"result": "a\nkept\nc", "structuredContent": {"n": 1}})
        );
        // Of what failed, and of what has no such pieces, nothing is asked.
        for plain in [
            json!({"isError": true, "content": [
                {"type": "resource", "resource": {"uri": "f:b", "blob": "AA=="}}]}),
            json!({"content": [{"type": "text", "text": "a"}]}),
        ] {
            let answer = Answer::of("desk", &plain);
            let kept = answer.clone().kept(|_| "kept".to_owned());
            assert_eq!(kept, answer);
        }
    }
}
