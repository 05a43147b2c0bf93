//! A record as a line of JSON, and back.

use std::{borrow::Cow, io::Write as _};

use data_encoding::HEXLOWER;
use hermitcrab_core::{audit::Record, digest::Digest, time::Instant};
use serde::Deserialize;

/// How long two digests, two numbers and the names of the fields are, about.
const FRAME_BYTES: usize = 224;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    seq: u64,
    at_ms: u64,
    // Borrowed: a ledger that is checked has two for each record.
    #[serde(borrow)]
    prev: Cow<'a, str>,
    kind: String,
    text: String,
    #[serde(borrow)]
    digest: Cow<'a, str>,
}

// What stands between the fields of a line, in their order. Digests need no escapes.
const SEQ: &str = "{\"seq\":";
const AT_MS: &str = ",\"at_ms\":";
const PREV: &str = ",\"prev\":\"";
const KIND: &str = "\",\"kind\":";
const TEXT: &str = ",\"text\":";
const DIGEST: &str = ",\"digest\":\"";
const END: &str = "\"}";

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
    lines.reserve(FRAME_BYTES + record.kind.len() + record.text.len());
    let (mut prev, mut digest) = ([0; DIGITS], [0; DIGITS]);
    // Texts always have a JSON form, and memory takes all that is written.
    let _written = write!(lines, "{SEQ}{}{AT_MS}{}", record.seq, record.at.as_millis());
    lines.extend_from_slice(PREV.as_bytes());
    lines.extend_from_slice(digits(&record.prev, &mut prev).as_bytes());
    lines.extend_from_slice(KIND.as_bytes());
    let _written = serde_json::to_writer(&mut *lines, &record.kind);
    lines.extend_from_slice(TEXT.as_bytes());
    let _written = serde_json::to_writer(&mut *lines, &record.text);
    lines.extend_from_slice(DIGEST.as_bytes());
    lines.extend_from_slice(digits(&record.digest, &mut digest).as_bytes());
    lines.extend_from_slice(END.as_bytes());
}

/// The record of a line; `None` if it is none.
pub fn record(line: &[u8]) -> Option<Record> {
    as_written(line).or_else(|| as_json(line))
}

/// The record of any line that says one: fields may stand in any order, with blanks.
fn as_json(line: &[u8]) -> Option<Record> {
    let line: Line<'_> = serde_json::from_slice(line).ok()?;
    Some(Record {
        seq: line.seq,
        at: Instant::from_millis(line.at_ms),
        prev: digest(line.prev.as_bytes())?,
        kind: line.kind,
        text: line.text,
        digest: digest(line.digest.as_bytes())?,
    })
}

/// The same of a line that looks as [`put_line`] writes it, which nearly every line does;
/// `None` says nothing of others. A large ledger is read through at each start.
fn as_written(line: &[u8]) -> Option<Record> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let (seq, rest) = number(line.strip_prefix(SEQ.as_bytes())?)?;
    let (at_ms, rest) = number(rest.strip_prefix(AT_MS.as_bytes())?)?;
    let (prev, rest) = rest
        .strip_prefix(PREV.as_bytes())?
        .split_at_checked(DIGITS)?;
    let rest = rest.strip_prefix(KIND.as_bytes())?.strip_prefix(b"\"")?;
    let letters = rest.iter().take_while(|byte| is_of_kind(**byte)).count();
    let (kind, rest) = rest.split_at_checked(letters)?;
    let rest = rest.strip_prefix(b"\"")?.strip_prefix(TEXT.as_bytes())?;
    let rest = rest.strip_suffix(END.as_bytes())?;
    let (rest, last) = rest.split_at_checked(rest.len().checked_sub(DIGITS)?)?;
    // Whole JSON by itself: no text that ends before it does.
    let text = rest.strip_suffix(DIGEST.as_bytes())?;
    if !text.starts_with(b"\"") || !text.ends_with(b"\"") {
        return None;
    }
    Some(Record {
        seq,
        at: Instant::from_millis(at_ms),
        prev: digest(prev)?,
        kind: String::from(std::str::from_utf8(kind).ok()?),
        text: serde_json::from_slice(text).ok()?,
        digest: digest(last)?,
    })
}

/// The number at the beginning, as JSON has it, and what follows it.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(digits)?;
    if digits.len() > 1 && digits.starts_with(b"0") {
        return None;
    }
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((number, rest))
}

const fn is_of_kind(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte == b'-'
}

/// The letters of a digest.
const DIGITS: usize = 64;

fn digits<'a>(digest: &Digest, place: &'a mut [u8; DIGITS]) -> &'a str {
    HEXLOWER.encode_mut(digest.as_bytes(), place);
    // Letters and digits are always a text.
    std::str::from_utf8(place).unwrap_or_default()
}

fn digest(text: &[u8]) -> Option<Digest> {
    let mut bytes = [0; DIGITS / 2];
    // It panics where there is no room for what is read.
    let fits = text.len() == DIGITS;
    fits.then_some(())?;
    HEXLOWER.decode_mut(text, &mut bytes).ok()?;
    Some(Digest::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::{audit::Record, digest::Digest, time::Instant};

    use super::{as_json, as_written, line, record};

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

    fn of_every_kind() -> impl Iterator<Item = Record> {
        let texts = [
            "",
            "session=7",
            "é \"x\"\n\\",
            "\u{1f600}\u{202e}\u{1}",
            "\",\"digest\":\"",
        ];
        let kinds = ["opened", "agents-ended", "", "a\"b"];
        let both = texts
            .into_iter()
            .flat_map(move |text| kinds.map(|kind| (text, kind)));
        both.zip([0, 9, 10, u64::MAX].into_iter().cycle())
            .map(|((text, kind), number)| Record {
                seq: number,
                at: Instant::from_millis(number),
                prev: Digest::from_bytes([0x9a; 32]),
                kind: kind.into(),
                text: text.into(),
                digest: Digest::from_bytes([0xf0; 32]),
            })
    }

    #[test]
    fn a_line_is_the_json_of_its_fields_in_their_order() {
        for one in of_every_kind() {
            let value = serde_json::json!({
                "seq": one.seq,
                "at_ms": one.at.as_millis(),
                "prev": one.prev.to_string(),
                "kind": one.kind,
                "text": one.text,
                "digest": one.digest.to_string(),
            });
            assert_eq!(line(&one), value.to_string());
        }
    }

    /// What is read as it is written is what any reader of JSON makes of it: of each line,
    /// of each with one byte changed, left out or put in, and with another end.
    #[test]
    fn both_ways_to_read_a_line_say_the_same() {
        let (mut quick, mut slow) = (0_u32, 0_u32);
        let mut check = |line: &[u8]| {
            let read = as_json(line);
            if let Some(written) = as_written(line) {
                let line = String::from_utf8_lossy(line);
                assert_eq!(Some(&written), read.as_ref(), "{line}");
                quick += 1;
            } else if read.is_some() {
                slow += 1;
            }
            assert_eq!(record(line), read);
        };
        let bytes = *b"\"\\ 0af-G\n,:{}.e\0\x7f\xff";
        for one in of_every_kind() {
            let line = line(&one).into_bytes();
            for end in [&b""[..], b"\n", b" ", b"\n\n", b"}", b"\r\n"] {
                check(&[line.as_slice(), end].concat());
            }
            for (at, _) in line.iter().enumerate() {
                let (head, tail) = line.split_at(at);
                check(&[head, &tail[1..]].concat());
                check(tail);
                for byte in bytes {
                    check(&[head, &[byte], tail].concat());
                    check(&[head, &[byte], &tail[1..]].concat());
                }
            }
        }
        assert!(quick > 1_000 && slow > 1_000, "{quick} {slow}");
    }
}
