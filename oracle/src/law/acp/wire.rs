//! The two streams between a conversation and the server.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use hermitcrab::acp::{Service, serve};
use serde_json::Value;

/// Longer than any answer takes on a machine that does something else as well.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// The client's end.
pub struct Wire {
    to: Option<Sender<Vec<u8>>>,
    from: Receiver<Result<Value, String>>,
    server: Option<JoinHandle<Result<(), String>>>,
}

impl Wire {
    pub fn to_server(service: Service) -> Self {
        let (to, input) = channel();
        let (output, from) = channel();
        let input = Input {
            from: input,
            piece: Vec::new(),
        };
        let output = Output {
            to: output,
            line: Vec::new(),
        };
        Self {
            to: Some(to),
            from,
            server: Some(std::thread::spawn(move || serve(service, input, output))),
        }
    }

    pub fn send(&self, line: &[u8]) {
        if let Some(to) = &self.to {
            // A server that ended is noticed by whoever waits for its answer.
            let _ = to.send([line, b"\n"].concat());
        }
    }

    pub fn tell(&self, message: &Value) {
        self.send(message.to_string().as_bytes());
    }

    /// The next message; `None` if the server ended.
    pub fn next(&self) -> Result<Option<Value>, String> {
        match self.from.recv_timeout(SILENCE_MAX) {
            Ok(message) => message.map(Some),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err("the server fell silent".to_owned()),
        }
    }

    /// The client goes away. What comes still is dropped.
    pub fn hang_up(&mut self) -> Result<(), String> {
        self.to = None;
        while self.next()?.is_some() {}
        let Some(server) = self.server.take() else {
            return Ok(());
        };
        match server.join() {
            Ok(ended) => ended,
            Err(_) => Err("the server broke down".to_owned()),
        }
    }
}

struct Input {
    from: Receiver<Vec<u8>>,
    piece: Vec<u8>,
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.piece.is_empty() {
            // The end of the stream, once nobody sends any more.
            self.piece = self.from.recv().unwrap_or_default();
        }
        let count = (&self.piece[..]).read(into)?;
        self.piece.drain(..count);
        Ok(count)
    }
}

struct Output {
    to: Sender<Result<Value, String>>,
    line: Vec<u8>,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for byte in bytes {
            if *byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                let message = serde_json::from_slice(&line)
                    .map_err(|error| format!("a line that is no JSON: {error}"));
                // A conversation that ended early reads nothing more.
                let _ = self.to.send(message);
            } else {
                self.line.push(*byte);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
