//! Bytes into lines, each of them bounded.
//!
//! The protocol is one JSON value a line. A line that is too long is not kept
//! in memory: it is read past, and only its `id` is picked out on the way, so
//! that whoever waits for an answer gets one. This module must never hold more
//! than one bounded line, and never hand on text that is not UTF-8.

mod ids;

use serde_json::Value;

use self::ids::IdScan;
use crate::text::bulk;

/// The longest line that is taken.
pub const FRAME_BYTES_MAX: usize = 32 << 20;

/// What a line came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A line, without its end.
    Line(String),
    /// A line that is not handed on.
    Refused {
        /// The request it was, as far as that can be told; `None` if it was
        /// none or cannot be answered.
        id: Option<Value>,
        /// Why.
        why: Why,
    },
}

/// Why a line is not handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is longer than [`FRAME_BYTES_MAX`].
    TooLong,
    /// It is not UTF-8.
    NotText,
    /// It holds more than [`bulk::VALUES_MAX`] values.
    TooMany,
}

impl Why {
    /// The code of the answer.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::TooLong | Self::TooMany => -32600,
            Self::NotText => -32700,
        }
    }

    /// The words of the answer.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::TooLong => "the message is longer than 32 MiB and was not read",
            Self::NotText => "the message is not UTF-8",
            Self::TooMany => "the message holds more than 524288 values and was not read",
        }
    }
}

/// Cuts bytes into lines.
#[derive(Debug)]
pub struct Decoder {
    bytes_max: usize,
    line: Vec<u8>,
    past: Option<IdScan>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(FRAME_BYTES_MAX)
    }
}

impl Decoder {
    /// One whose lines are at most this long.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            line: Vec::new(),
            past: None,
        }
    }

    /// Takes the next bytes and hands each line that ended to `take`.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Frame)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (piece, ended) = match piece.strip_suffix(b"\n") {
                Some(piece) => (piece, true),
                None => (piece, false),
            };
            self.add(piece);
            if ended && let Some(frame) = self.end() {
                take(frame);
            }
        }
    }

    /// The bytes are over; what began as a line is one.
    pub fn finish(&mut self) -> Option<Frame> {
        self.end()
    }

    fn add(&mut self, piece: &[u8]) {
        if let Some(scan) = &mut self.past {
            scan.push(piece);
        } else if self.line.len().saturating_add(piece.len()) > self.bytes_max {
            let mut scan = IdScan::default();
            scan.push(&std::mem::take(&mut self.line));
            scan.push(piece);
            self.past = Some(scan);
        } else {
            self.line.extend_from_slice(piece);
        }
    }

    fn end(&mut self) -> Option<Frame> {
        if let Some(scan) = self.past.take() {
            return Some(Frame::Refused {
                id: scan.id(),
                why: Why::TooLong,
            });
        }
        let mut line = std::mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        Some(match String::from_utf8(line) {
            Ok(line) if bulk::is_too_much(line.as_bytes()) => {
                let mut scan = IdScan::default();
                scan.push(line.as_bytes());
                Frame::Refused {
                    id: scan.id(),
                    why: Why::TooMany,
                }
            }
            Ok(line) => Frame::Line(line),
            Err(error) => {
                let mut scan = IdScan::default();
                scan.push(error.as_bytes());
                Frame::Refused {
                    id: scan.id(),
                    why: Why::NotText,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Decoder, Frame, Why};
    use crate::text::bulk;

    fn decoded(bytes_max: usize, pieces: &[&[u8]]) -> Vec<Frame> {
        let mut decoder = Decoder::new(bytes_max);
        let mut frames = Vec::new();
        for piece in pieces {
            decoder.push(piece, |frame| frames.push(frame));
        }
        frames.extend(decoder.finish());
        frames
    }

    #[test]
    fn lines_are_the_same_however_the_bytes_come() {
        let text = b"{\"a\":1}\r\n\n  \n[2]\n{\"cut";
        let whole = decoded(64, &[text]);
        let lines = ["{\"a\":1}", "[2]", "{\"cut"].map(|line| Frame::Line(line.into()));
        assert_eq!(whole, lines);
        let single: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(decoded(64, &single), whole);
    }

    #[test]
    fn a_line_that_is_too_long_is_answered_by_its_id_and_the_next_one_read() {
        let long = format!(
            "{{\"params\":{{\"id\":9,\"x\":\"{}\"}},\"method\":\"m\",\"id\":\"seven\"}}\n{{\"ok\":1}}\n",
            "\\\"y".repeat(50)
        );
        for size in [1, 7, 1000] {
            let pieces: Vec<&[u8]> = long.as_bytes().chunks(size).collect();
            assert_eq!(
                decoded(40, &pieces),
                [
                    Frame::Refused {
                        id: Some(json!("seven")),
                        why: Why::TooLong
                    },
                    Frame::Line("{\"ok\":1}".into())
                ]
            );
        }
    }

    #[test]
    fn a_line_of_too_many_values_is_not_taken_apart_and_is_answered() {
        assert_eq!(bulk::VALUES_MAX, 524_288, "as it is said");
        let many = "[0],".repeat(bulk::VALUES_MAX);
        let line = format!("{{\"id\":7,\"method\":\"m\",\"params\":[{many}0]}}\n{{\"ok\":1}}\n");
        assert_eq!(
            decoded(super::FRAME_BYTES_MAX, &[line.as_bytes()]),
            [
                Frame::Refused {
                    id: Some(json!(7)),
                    why: Why::TooMany
                },
                Frame::Line("{\"ok\":1}".into())
            ]
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_and_answered_where_they_can_be() {
        assert_eq!(
            decoded(64, &[b"{\"id\":3,\"method\":\"\xff\"}\n"]),
            [Frame::Refused {
                id: Some(json!(3)),
                why: Why::NotText
            }]
        );
        assert_eq!(
            decoded(64, &[b"\xff\xfe\n"]),
            [Frame::Refused {
                id: None,
                why: Why::NotText
            }]
        );
    }
}
