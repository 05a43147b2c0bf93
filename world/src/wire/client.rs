//! The client's end of the wire: lines of JSON out, lines of JSON in.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// How long an answer is waited for. A job's own deadline is longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// What came of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Came {
    /// Its result.
    Result(Value),
    /// An error, by its code.
    Error(i64),
    /// The server ended.
    Gone,
    /// Nothing, for long.
    Nothing,
}

impl Came {
    /// For a value that is compared: results of requests differ by nature.
    pub(super) fn in_a_word(&self) -> String {
        match self {
            Self::Result(_) => "a result".to_owned(),
            Self::Error(code) => format!("error {code}"),
            Self::Gone => "the server is gone".to_owned(),
            Self::Nothing => "no answer".to_owned(),
        }
    }
}

/// The client.
pub(super) struct Client {
    input: Box<dyn Write + Send>,
    lines: Receiver<Value>,
    requests: u64,
}

impl Client {
    /// A client at these ends.
    pub(super) fn over(
        input: impl Write + Send + 'static,
        output: impl Read + Send + 'static,
    ) -> Self {
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                let Ok(value) = serde_json::from_str(&line) else {
                    continue;
                };
                if send.send(value).is_err() {
                    return;
                }
            }
        });
        Self {
            input: Box::new(input),
            lines,
            requests: 0,
        }
    }

    /// Sends a line as it is.
    pub(super) fn line(&mut self, text: &str) {
        // A server that is gone is noticed where an answer is waited for.
        let _ = self
            .input
            .write_all(format!("{text}\n").as_bytes())
            .and_then(|()| self.input.flush());
    }

    /// Sends a request; [`Client::answer`] waits for what comes of it.
    pub(super) fn request(&mut self, method: &str, params: Value) {
        self.requests += 1;
        let id = self.requests;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.line(&request.to_string());
    }

    /// Waits for what comes of the last request. Each question of the server is
    /// handed over; a text that comes back from there ends the waiting.
    pub(super) fn answer(
        &mut self,
        asked: impl FnMut(&mut Self, &Value) -> Option<String>,
    ) -> Came {
        let id = Value::from(self.requests);
        self.wait(&id, asked)
    }

    /// Waits for what comes of the request with this id.
    pub(super) fn answer_to(&mut self, id: &Value) -> Came {
        self.wait(id, |_, _| None)
    }

    fn wait(
        &mut self,
        id: &Value,
        mut asked: impl FnMut(&mut Self, &Value) -> Option<String>,
    ) -> Came {
        loop {
            let message = match self.lines.recv_timeout(PATIENCE) {
                Ok(message) => message,
                Err(RecvTimeoutError::Disconnected) => return Came::Gone,
                Err(RecvTimeoutError::Timeout) => return Came::Nothing,
            };
            match message.get("method").and_then(Value::as_str) {
                Some("session/request_permission") => {
                    if let Some(why) = asked(self, &message) {
                        eprintln!("{why}");
                        return Came::Nothing;
                    }
                }
                // Updates, and requests this client never offered to serve.
                Some(_) => {}
                None if message.get("id") == Some(id) => {
                    return match message.get("result") {
                        Some(result) => Came::Result(result.clone()),
                        None => Came::Error(
                            message
                                .pointer("/error/code")
                                .and_then(Value::as_i64)
                                .unwrap_or_default(),
                        ),
                    };
                }
                None => {}
            }
        }
    }
}
