//! A record as a line of JSON, and back.

use std::borrow::Cow;

use data_encoding::HEXLOWER;
use hermitcrab_core::{audit::Record, digest::Digest, time::Instant};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    seq: u64,
    at_ms: u64,
    prev: Cow<'a, str>,
    kind: Cow<'a, str>,
    text: Cow<'a, str>,
    digest: Cow<'a, str>,
}

/// The record in one line, without its end.
pub fn line(record: &Record) -> String {
    let line = Line {
        seq: record.seq,
        at_ms: record.at.as_millis(),
        prev: HEXLOWER.encode(record.prev.as_bytes()).into(),
        kind: Cow::Borrowed(&record.kind),
        text: Cow::Borrowed(&record.text),
        digest: HEXLOWER.encode(record.digest.as_bytes()).into(),
    };
    // Texts and numbers always have a JSON form.
    serde_json::to_string(&line).unwrap_or_default()
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

fn digest(text: &str) -> Option<Digest> {
    let bytes = HEXLOWER.decode(text.as_bytes()).ok()?;
    bytes.try_into().ok().map(Digest::from_bytes)
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
    }
}
