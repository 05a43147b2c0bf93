//! The editor's protocol, in two ways.
//!
//! From bytes to bytes, with no session behind it: whoever opens a session is
//! told that there is none, so nothing can be run, read or written; a directory
//! that a request names is looked for.
//!
//! And, behind [`TALK`], as a [conversation](talk) with real
//! sessions over a directory that is made for it and goes with it. Its model
//! proposes edits only, so no program is started.

mod book;
mod ground;
mod talk;
mod turn;
mod wire;

use std::{
    io::{Cursor, Write},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hermitcrab::acp::{Service, frame, serve};
use serde_json::Value;

use super::Verdict;

/// Keeps what is written.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What a conversation begins with; no line of the protocol does.
const TALK: &[u8] = b"converse";

pub fn check(bytes: &[u8]) -> Verdict {
    match bytes.strip_prefix(TALK) {
        Some(choices) => talk::check(choices),
        None => bytes_are_answered(bytes),
    }
}

fn bytes_are_answered(bytes: &[u8]) -> Verdict {
    lines_do_not_depend_on_pieces(bytes)?;
    let service = Service {
        opener: Arc::new(|_, _| Err("no session is opened here".to_owned())),
        ask_within: Duration::from_secs(1),
        words_within: Duration::from_secs(1),
        state_dir: PathBuf::from("/nonexistent"),
    };
    let out = Kept::default();
    // A connection may end with an error; what it wrote counts either way.
    let _ = serve(service, Cursor::new(bytes.to_vec()), out.clone());
    let out = out.0.lock().unwrap_or_else(PoisonError::into_inner);
    let asked = bytes.split(|byte| *byte == b'\n').count();
    let mut answers = 0;
    for line in out
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let answer: Value = serde_json::from_slice(line)
            .map_err(|error| format!("a line that is no JSON: {error}"))?;
        if answer.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(format!("not JSON-RPC 2.0: {answer}"));
        }
        if answer.get("result").is_some() == answer.get("error").is_some() {
            return Err(format!("neither an answer nor a refusal: {answer}"));
        }
        answers += 1;
    }
    if answers > asked {
        return Err(format!("{answers} answers to {asked} lines"));
    }
    Ok(())
}

fn lines_do_not_depend_on_pieces(bytes: &[u8]) -> Verdict {
    const SHORT: usize = 48;
    let decoded = |size: usize| {
        let mut decoder = frame::Decoder::new(SHORT);
        let mut frames = Vec::new();
        for piece in bytes.chunks(size) {
            decoder.push(piece, |frame| frames.push(frame));
        }
        frames.extend(decoder.finish());
        frames
    };
    let whole = decoded(bytes.len().max(1));
    for size in [1, 3, 64] {
        if decoded(size) != whole {
            return Err(format!("in pieces of {size} bytes the lines are others"));
        }
    }
    let is_long = |frame: &frame::Frame| match frame {
        frame::Frame::Line(line) => line.len() > SHORT,
        frame::Frame::Refused { .. } => false,
    };
    if whole.iter().any(is_long) {
        return Err("a line is longer than it may be".to_owned());
    }
    Ok(())
}
