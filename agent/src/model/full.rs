//! Whether a backend refuses a conversation for its length, and what it says of it.
//!
//! The form of chat completions has no word for this. Three things are said in its place:
//! a kind or code of its own (`exceed_context_size_error` of llama.cpp's server, with both
//! counts; `context_length_exceeded` of OpenAI), a status (413), or a sentence, of which
//! there are about as many as there are backends. What is not known for a refusal of this
//! sort stays a refusal.

use serde_json::Value;

use super::{ModelError, wire};

/// Kinds and codes that mean this and nothing else.
const CODES: [&str; 3] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "context_exceeded",
];
/// Parts of sentences that mean this, in small letters.
const SENTENCES: [&str; 9] = [
    "maximum context length",
    "exceed context window",
    "exceeds the context window",
    "exceeds the available context size",
    "exceeds the model's context",
    "exceeds context length",
    "prompt is too long",
    "input is too long",
    "reduce the length of the messages",
];
/// What stands before how many tokens the model holds.
const HOLDS: [&str; 4] = [
    "maximum context length is ",
    "maximum context length of ",
    "context window of ",
    " tokens > ",
];
/// What stands before how many tokens the conversation has.
const TAKES: [&str; 6] = [
    "resulted in ",
    "you requested ",
    "request has ",
    "too long: ",
    "requested tokens (",
    "prompt contains ",
];

/// The refusal as one for length, if it is one.
pub(super) fn full(status: u16, body: &str) -> Option<ModelError> {
    if !matches!(status, 200 | 400 | 413 | 422 | 500) {
        return None;
    }
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let error = value.get("error").unwrap_or(&value);
    let is_code = ["code", "type"].iter().any(|name| {
        let code = error.get(name).and_then(Value::as_str);
        code.is_some_and(|code| CODES.contains(&code))
    });
    let words = wire::complaint(body).to_lowercase();
    if !is_code && status != 413 && !SENTENCES.iter().any(|part| words.contains(part)) {
        return None;
    }
    let said = |name: &str| error.get(name).and_then(Value::as_u64);
    Some(ModelError::Full {
        takes: said("n_prompt_tokens").or_else(|| after(&words, &TAKES)),
        holds: said("n_ctx").or_else(|| after(&words, &HOLDS)),
    })
}

/// The number right behind one of these words.
fn after(words: &str, before: &[&str]) -> Option<u64> {
    before.iter().find_map(|before| {
        let (_, rest) = words.split_once(before)?;
        let digits = rest.split(|letter: char| !letter.is_ascii_digit() && letter != ',');
        digits.into_iter().next()?.replace(',', "").parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_for_length_are_told_from_others_with_what_they_say_of_it() {
        let full = |takes, holds| Some(ModelError::Full { takes, holds });
        for (status, body, expected) in [
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size. try increasing it","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}"#,
                full(Some(14_429), Some(8_192)),
            ),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, 8192 in the completion).","type":"invalid_request_error","code":"invalid_request_error"}}"#,
                full(Some(131_134), Some(131_072)),
            ),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 4097 tokens. However, your messages resulted in 6988 tokens.","code":"context_length_exceeded"}}"#,
                full(Some(6_988), Some(4_097)),
            ),
            (
                400,
                r#"{"error":{"message":"prompt is too long: 215,000 tokens > 200,000 maximum"}}"#,
                full(Some(215_000), Some(200_000)),
            ),
            (
                500,
                r#"{"detail":"Requested tokens (2285) exceed context window of 2048"}"#,
                full(Some(2_285), Some(2_048)),
            ),
            (413, "Request Entity Too Large", full(None, None)),
            (
                400,
                r#"{"error":{"code":"context_length_exceeded"}}"#,
                full(None, None),
            ),
            (400, r#"{"error":{"message":"unknown model"}}"#, None),
            (
                401,
                r#"{"error":{"message":"maximum context length"}}"#,
                None,
            ),
            (500, "", None),
        ] {
            assert_eq!(super::full(status, body), expected, "{status} {body}");
        }
    }
}
