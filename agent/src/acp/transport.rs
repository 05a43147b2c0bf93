//! The two streams of the connection, each served by a thread of its own.
//!
//! What cannot be handed on is answered here and never reaches the protocol.
//! A client that sends faster than it is served waits.

use std::{
    io::{self, Read, Write},
    sync::mpsc as plain,
    thread,
    time::Duration,
};

use futures::{SinkExt as _, StreamExt as _, channel::mpsc, executor::block_on};
use serde_json::{Value, json};

use crate::{printing, text::no_thread};

use super::{
    complaint::shortened,
    frame::{Decoder, Frame},
};

/// Lines under way in one direction.
const LINES_UNDER_WAY: usize = 64;
/// How long the last lines may take to leave.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// Lines going out, lines coming in, and a way to wait for the last one.
pub struct Transport {
    /// Where lines are put that go out.
    pub outgoing: mpsc::Sender<String>,
    /// Where lines come from.
    pub incoming: mpsc::Receiver<io::Result<String>>,
    /// Told when everything has left.
    left: plain::Receiver<()>,
}

/// Waits until everything has left; not longer than is reasonable.
#[derive(Debug)]
pub struct Leaving(plain::Receiver<()>);

impl Leaving {
    /// Waits.
    pub fn wait(self) {
        // A client that does not read its last lines has had its time.
        let _ = self.0.recv_timeout(LEAVE_WITHIN);
    }
}

impl Transport {
    /// Serves two streams.
    ///
    /// # Errors
    /// There are no more threads.
    pub fn over(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let (outgoing, out) = mpsc::channel(LINES_UNDER_WAY);
        let (into, incoming) = mpsc::channel(LINES_UNDER_WAY);
        let (done, left) = plain::channel();
        let answers = outgoing.clone();
        let mut heard = into.clone();
        let lacking =
            |error: io::Error| io::Error::new(error.kind(), no_thread("the connection", &error));
        thread::Builder::new()
            .name("acp-read".into())
            .spawn(move || read(input, into, answers))
            .map_err(lacking)?;
        thread::Builder::new()
            .name("acp-write".into())
            .spawn(move || {
                // A client that cannot be told anything is as good as gone, also one that
                // still speaks.
                let written = write(output, out);
                printing::note(&written);
                if written.is_err() {
                    heard.close_channel();
                }
                // Nobody waits where the server went away first.
                let _ = done.send(());
            })
            .map_err(lacking)?;
        Ok(Self {
            outgoing,
            incoming,
            left,
        })
    }

    /// The parts.
    pub fn split(
        self,
    ) -> (
        mpsc::Sender<String>,
        mpsc::Receiver<io::Result<String>>,
        Leaving,
    ) {
        (self.outgoing, self.incoming, Leaving(self.left))
    }
}

fn read(
    mut input: impl Read,
    mut into: mpsc::Sender<io::Result<String>>,
    mut answers: mpsc::Sender<String>,
) {
    let mut decoder = Decoder::default();
    let mut buffer = vec![0_u8; 64 << 10];
    let mut open = true;
    while open {
        let count = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // As good as an end: nobody can be heard any more.
            Err(_) => break,
        };
        let mut frames = Vec::new();
        decoder.push(buffer.get(..count).unwrap_or_default(), |frame| {
            frames.push(frame);
        });
        open = frames
            .into_iter()
            .all(|frame| hand_on(frame, &mut into, &mut answers));
    }
    if open && let Some(frame) = decoder.finish() {
        hand_on(frame, &mut into, &mut answers);
    }
    // Whoever writes could close it as well, and has a way to.
    into.close_channel();
}

/// Whether anybody still listens.
fn hand_on(
    frame: Frame,
    into: &mut mpsc::Sender<io::Result<String>>,
    answers: &mut mpsc::Sender<String>,
) -> bool {
    match frame {
        Frame::Line(line) => block_on(into.send(Ok(line))).is_ok(),
        Frame::Refused { id, why } => {
            let answer = json!({
                "jsonrpc": "2.0",
                "id": id.unwrap_or(Value::Null),
                "error": {"code": why.code(), "message": why.words()},
            });
            block_on(answers.send(answer.to_string())).is_ok()
        }
    }
}

fn write(mut output: impl Write, mut lines: mpsc::Receiver<String>) -> io::Result<()> {
    while let Some(line) = block_on(lines.next()) {
        let mut line = shortened(line);
        line.push('\n');
        output.write_all(line.as_bytes())?;
        output.flush()?;
    }
    Ok(())
}
