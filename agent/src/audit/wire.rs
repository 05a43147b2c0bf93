//! A record as a line of JSON, and back.

use std::borrow::Cow;

use data_encoding::HEXLOWER;
use hermitcrab_core::{audit::Record, digest::Digest, time::Instant};
use serde::{Deserialize, Serialize};

/// How long two digests, two numbers and the names of the fields are, about.
const FRAME_BYTES: usize = 224;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    seq: u64,
    at_ms: u64,
    // Borrowed: a ledger that is checked has two for each record.
    #[serde(borrow)]
    prev: Cow<'a, str>,
    kind: Cow<'a, str>,
    text: Cow<'a, str>,
    #[serde(borrow)]
    digest: Cow<'a, str>,
}

/// The record in one line, without its end.
pub fn line(record: &Record) -> String {
    let mut line = Vec::new();
    put_line(record, &mut line);
    String::from_utf8(line).unwrap_or_default()
}

/// The same for whoever reads several ledgers: one of another than the first says which.
pub fn line_of(ledger: &str, record: &Record) -> String {
    let line = line(record);
    match line.strip_suffix('}') {
        Some(open) if !ledger.is_empty() => {
            let ledger = serde_json::Value::from(ledger);
            format!("{open},\"ledger\":{ledger}}}")
        }
        Some(_) | None => line,
    }
}

/// Puts the line of a record, without its end, behind what is there.
pub(super) fn put_line(record: &Record, lines: &mut Vec<u8>) {
    let (mut prev, mut digest) = ([0; DIGITS], [0; DIGITS]);
    let line = Line {
        seq: record.seq,
        at_ms: record.at.as_millis(),
        prev: Cow::Borrowed(digits(&record.prev, &mut prev)),
        kind: Cow::Borrowed(&record.kind),
        text: Cow::Borrowed(&record.text),
        digest: Cow::Borrowed(digits(&record.digest, &mut digest)),
    };
    lines.reserve(FRAME_BYTES + record.kind.len() + record.text.len());
    // Texts and numbers always have a JSON form, and memory takes all that is written.
    let _written = serde_json::to_writer(lines, &line);
}

/// The record of a line; `None` if it is none.
pub fn record(line: &[u8]) -> Option<Record> {
    let line: Line<'_> = serde_json::from_slice(line).ok()?;
    Some(Record {
        seq: line.seq,
        at: Instant::from_millis(line.at_ms),
        prev: digest(&line.prev)?,
        kind: line.kind.into_owned(),
        text: line.text.into_owned(),
        digest: digest(&line.digest)?,
    })
}

/// The letters of a digest.
const DIGITS: usize = 64;

fn digits<'a>(digest: &Digest, place: &'a mut [u8; DIGITS]) -> &'a str {
    HEXLOWER.encode_mut(digest.as_bytes(), place);
    // Letters and digits are always a text.
    std::str::from_utf8(place).unwrap_or_default()
}

fn digest(text: &str) -> Option<Digest> {
    let mut bytes = [0; DIGITS / 2];
    // It panics where there is no room for what is read.
    let fits = text.len() == DIGITS;
    fits.then_some(())?;
    HEXLOWER.decode_mut(text.as_bytes(), &mut bytes).ok()?;
    Some(Digest::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::{audit::Record, digest::Digest, time::Instant};

    use super::{line, record};

    #[test]
    fn a_record_survives_the_way_to_disk_and_back() {
        let original = Record {
            seq: 7,
            at: Instant::from_millis(12),
            prev: Digest::from_bytes([1; 32]),
            kind: "note".into(),
            text: "é \"x\"\n".into(),
            digest: Digest::from_bytes([2; 32]),
        };
        let text = line(&original);
        assert!(!text.contains('\n'));
        assert_eq!(record(text.as_bytes()), Some(original));
        assert_eq!(record(b"{}"), None);
        for digest in ["", "02", "0z"] {
            let other = text.replace(&"02".repeat(32), digest);
            assert_ne!(other, text);
            assert_eq!(record(other.as_bytes()), None, "{digest}");
        }
        let upper = text.replacen("02", "0A", 1).replace("01", "0B");
        assert_eq!(record(upper.as_bytes()), None, "capital letters");
    }

    #[test]
    fn a_digest_may_be_written_with_escapes() {
        let one = Record {
            seq: 0,
            at: Instant::from_millis(0),
            prev: Digest::from_bytes([0x11; 32]),
            kind: "note".into(),
            text: "x".into(),
            digest: Digest::from_bytes([0x22; 32]),
        };
        let text = line(&one).replacen("11", "\\u00311", 1);
        assert!(text.contains("\\u0031"), "{text}");
        assert_eq!(record(text.as_bytes()), Some(one));
    }
}
