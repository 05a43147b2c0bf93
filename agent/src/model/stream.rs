//! An answer that comes in pieces: server-sent events, each a JSON object with
//! some more of the words or of a call's arguments.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Finish, ModelError, ModelReply, ProposedCall, full, wire};
use crate::text::bulk;

/// Calls in one answer that are listened to; more is no answer but a flood.
const CALLS_MAX: usize = 1024;

/// An answer so far.
#[derive(Debug, Default)]
pub struct Pieces {
    line: Vec<u8>,
    text: String,
    calls: BTreeMap<u64, Call>,
    refusal: String,
    /// How long the words and arguments are together.
    bytes: usize,
    tokens: (u64, u64),
    finish: Option<Finish>,
    is_done: bool,
}

#[derive(Debug, Default)]
struct Call {
    id: Option<String>,
    tool: String,
    arguments: String,
}

impl Pieces {
    /// Takes more bytes in; new words go to `heard`, those that came together at once: a
    /// fast backend says a letter at a time, and each telling has its price.
    ///
    /// # Errors
    /// They are not what they should be.
    pub fn take(&mut self, bytes: &[u8], heard: &mut dyn FnMut(&str)) -> Result<(), ModelError> {
        let mut said = String::new();
        let taken = self.take_lines(bytes, &mut |words| said.push_str(words));
        if !said.is_empty() {
            heard(&said);
        }
        taken
    }

    fn take_lines(&mut self, bytes: &[u8], heard: &mut dyn FnMut(&str)) -> Result<(), ModelError> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.event(&line, heard)?;
            }
        }
        Ok(())
    }

    /// How many bytes the answer has so far, without what they were wrapped in, and with
    /// what is not taken apart yet.
    pub fn bytes(&self) -> usize {
        self.bytes.saturating_add(self.line.len())
    }

    /// The words so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The words of the last call that is being written.
    pub fn last_arguments(&self) -> &str {
        self.calls
            .last_key_value()
            .map_or("", |(_, call)| &call.arguments)
    }

    /// Whether the backend said that it is over.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    fn event(&mut self, line: &[u8], heard: &mut dyn FnMut(&str)) -> Result<(), ModelError> {
        let line = std::str::from_utf8(line)
            .map_err(|_| ModelError::Unreadable("it is not UTF-8".to_owned()))?;
        // Comments, names of events and blank lines carry nothing.
        let Some(data) = line.strip_prefix("data:") else {
            return Ok(());
        };
        let data = data.trim();
        if data == "[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        if bulk::is_too_much(data.as_bytes()) {
            return Err(wire::too_much("a piece of it"));
        }
        let event: Value = serde_json::from_str(data)
            .map_err(|error| ModelError::Unreadable(format!("a piece of it: {error}")))?;
        if event.get("error").is_some_and(|error| !error.is_null()) {
            // llama.cpp's server says so with status 200, where words were to come.
            return Err(full::full(200, data).unwrap_or_else(|| {
                let words = wire::complaint(data);
                ModelError::Unreadable(format!("the backend broke off: {words}"))
            }));
        }
        let count = |name: &str| event.pointer(name).and_then(Value::as_u64);
        if let (Some(read), Some(written)) = (
            count("/usage/prompt_tokens"),
            count("/usage/completion_tokens"),
        ) {
            self.tokens = (read, written);
        }
        let Some(choice) = event.pointer("/choices/0") else {
            return Ok(());
        };
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(wire::finish(Some(reason)));
        }
        let Some(delta) = choice.get("delta") else {
            return Ok(());
        };
        if let Some(words) = delta.get("content").and_then(Value::as_str)
            && !words.is_empty()
        {
            self.text.push_str(words);
            self.bytes = self.bytes.saturating_add(words.len());
            heard(words);
        }
        if let Some(words) = delta.get("refusal").and_then(Value::as_str) {
            self.refusal.push_str(words);
            self.bytes = self.bytes.saturating_add(words.len());
        }
        let calls = delta.get("tool_calls").and_then(Value::as_array);
        for (place, piece) in calls.into_iter().flatten().enumerate() {
            self.call(place, piece)?;
        }
        Ok(())
    }

    fn call(&mut self, place: usize, piece: &Value) -> Result<(), ModelError> {
        let place = u64::try_from(place).unwrap_or(u64::MAX);
        let mut index = piece.get("index").and_then(Value::as_u64).unwrap_or(place);
        // Ollama gives several calls one number; their names tell them apart.
        let id = piece.get("id").and_then(Value::as_str).unwrap_or_default();
        let is_other = |known: &str| !id.is_empty() && known != id;
        let known = self.calls.get(&index).and_then(|call| call.id.as_deref());
        if known.is_some_and(is_other) {
            let last = self.calls.keys().next_back();
            index = last.map_or(index, |last| last.saturating_add(1));
        }
        if self.calls.len() >= CALLS_MAX && !self.calls.contains_key(&index) {
            return Err(ModelError::Unreadable(
                "it proposes too many calls".to_owned(),
            ));
        }
        let call = self.calls.entry(index).or_default();
        let length = |call: &Call| {
            let id = call.id.as_ref().map_or(0, String::len);
            let words = call.tool.len().saturating_add(call.arguments.len());
            words.saturating_add(id)
        };
        let before = length(call);
        if let Some(id) = piece.get("id").and_then(Value::as_str) {
            call.id = Some(id.to_owned());
        }
        if let Some(name) = piece.pointer("/function/name").and_then(Value::as_str) {
            call.tool.push_str(name);
        }
        match piece.pointer("/function/arguments") {
            None | Some(Value::Null) => {}
            Some(Value::String(more)) => call.arguments.push_str(more),
            Some(other) => call.arguments.push_str(&other.to_string()),
        }
        let more = length(call).saturating_sub(before);
        self.bytes = self.bytes.saturating_add(more);
        Ok(())
    }

    /// The whole answer, once nothing more comes.
    ///
    /// # Errors
    /// It stopped in the middle.
    pub fn whole(mut self) -> Result<ModelReply, ModelError> {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.event(&line, &mut |_| {})?;
        }
        if !self.is_done && self.finish.is_none() {
            let why = "it stops in the middle, where its connection ended; ask again";
            return Err(ModelError::Unreadable(why.to_owned()));
        }
        if !self.refusal.is_empty() {
            return Err(ModelError::Declined(wire::one_line(&self.refusal)));
        }
        let mut calls = Vec::new();
        for (place, call) in self.calls.into_values().enumerate() {
            if call.tool.is_empty() {
                let why = "it proposes a call without a name";
                return Err(ModelError::Unreadable(why.to_owned()));
            }
            wire::check_arguments(&call.arguments)?;
            calls.push(ProposedCall {
                id: wire::call_id(call.id.as_deref(), place),
                tool: call.tool,
                arguments: call.arguments,
            });
        }
        Ok(ModelReply {
            text: self.text,
            calls,
            tokens: self.tokens,
            finish: self.finish.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{ModelError, Pieces};

    fn read(text: &str, chunk: usize) -> (Result<crate::model::ModelReply, ModelError>, String) {
        let mut pieces = Pieces::default();
        let mut heard = String::new();
        for bytes in text.as_bytes().chunks(chunk) {
            if let Err(error) = pieces.take(bytes, &mut |words| heard.push_str(words)) {
                return (Err(error), heard);
            }
        }
        (pieces.whole(), heard)
    }

    const WHOLE: &str = concat!(
        ": ping\n\n",
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\r\n\r\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"gr\u{fc}\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"n\",\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"todo\",\"arguments\":\"{\\\"x\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\":1}\"}}]},\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":6}}\n\n",
        "data: [DONE]\n\n",
    );

    #[test]
    fn pieces_make_a_whole_however_they_are_cut() {
        for chunk in [1, 2, 3, 7, 4096] {
            let (reply, heard) = read(WHOLE, chunk);
            let reply = reply.expect("whole");
            assert_eq!(
                (reply.text.as_str(), heard.as_str()),
                ("gr\u{fc}n", "gr\u{fc}n")
            );
            assert_eq!(reply.calls[0].arguments, "{\"x\":1}");
            assert_eq!((reply.calls[0].id.as_str(), reply.tokens), ("a", (5, 6)));
        }
    }

    #[test]
    fn words_that_come_together_are_told_at_once_and_those_before_an_error_all_the_same() {
        let letter = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
        let heard = |text: &str| {
            let (mut pieces, mut heard) = (Pieces::default(), Vec::new());
            let taken = pieces.take(text.as_bytes(), &mut |words| heard.push(words.to_owned()));
            (taken.is_ok(), heard)
        };
        assert_eq!(heard(&letter.repeat(500)), (true, vec!["x".repeat(500)]));
        assert_eq!(heard(": ping\n\n"), (true, Vec::new()));
        let broken = letter.repeat(3) + "data: {\n" + letter;
        assert_eq!(heard(&broken), (false, vec!["xxx".to_owned()]));
    }

    #[test]
    fn all_that_is_kept_of_a_call_counts() {
        let event = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"12345\",\"function\":{\"name\":\"abc\",\"arguments\":\"{}\"}}]}}]}\n\n";
        let mut pieces = Pieces::default();
        pieces.take(event.as_bytes(), &mut |_| {}).expect("taken");
        assert_eq!(pieces.bytes(), 10);
    }

    #[test]
    fn what_breaks_off_is_no_answer() {
        let cut = WHOLE
            .split("data: {\"choices\":[{\"delta\":{\"tool")
            .next()
            .expect("a part");
        for text in [
            cut,
            "",
            "data: {\"choices\":[{\"de\n",
            "data: {\"error\": \"full\"}\n",
        ] {
            assert!(
                matches!(read(text, 9).0, Err(ModelError::Unreadable(_))),
                "{text}"
            );
        }
    }
}
