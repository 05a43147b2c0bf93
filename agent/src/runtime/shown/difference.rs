//! What of a file's content is told, line by line.

use std::borrow::Cow;

use hermitcrab_core::digest::Digest;

use super::{
    super::{visible::escaped, words::in_bytes},
    SHOWN_BYTES_MAX,
};
use crate::text::difflib::{self, Effort};

/// One byte in so many may be none of a text that is shown as one.
const ODD_SHARE: usize = 8;
/// So many may be in any case.
const ODD_BYTES: usize = 64;

/// `path` must be on one line already, see [`one_line`]. The differences of one question
/// share a measure of `effort`: however many files there are, the person is asked soon.
pub(super) fn difference(
    path: &str,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    effort: &mut Effort,
) -> String {
    let sizes = || match (before.map(<[u8]>::len), after.map(<[u8]>::len)) {
        (Some(old), Some(new)) => format!("{path}: {} become {}", in_bytes(old), in_bytes(new)),
        (None, Some(new)) => format!("{path}: new, {}", in_bytes(new)),
        (Some(old), None) => format!("{path}: {} go", in_bytes(old)),
        (None, None) => format!("{path}: nothing"),
    };
    match in_lines(path, before, after, effort) {
        Some(diff) if !diff.is_empty() => diff,
        Some(_) => format!("{}\n", sizes()),
        None => format!("{}, not shown as text\n", sizes()),
    }
}

/// The difference line by line, if both are texts; nothing if there is none.
fn in_lines(
    path: &str,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    effort: &mut Effort,
) -> Option<String> {
    fn text(side: Option<&[u8]>) -> Option<Cow<'_, str>> {
        side.map_or(Some(Cow::Borrowed("")), legible)
    }
    let (before, old, new) = match (text(before), text(after)) {
        (Some(old), Some(new)) => (before, old, new),
        // What is to be there is shown, whatever was.
        (None, Some(new)) if after.is_some() => (None, Cow::Borrowed(""), new),
        _ => return None,
    };
    let (old, new) = (lines(&old), lines(&new));
    let names = (
        before.map_or("/dev/null", |_| path),
        after.map_or("/dev/null", |_| path),
    );
    let diff = difflib::unified_within(
        &old.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
        &new.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
        names,
        effort,
    );
    Some(escaped(&diff))
}

/// A line about a file, and below it what changes in it. The digest is told as well where
/// that does not show each letter as it is: only then does it say something more.
pub(super) fn with_content(
    head: &str,
    path: &str,
    digest: &Digest,
    (before, after): (Option<&[u8]>, Option<&[u8]>),
    effort: &mut Effort,
) -> String {
    let is_exact = |bytes: &[u8]| match legible(bytes) {
        Some(Cow::Borrowed(text)) => escaped(text) == text,
        Some(Cow::Owned(_)) | None => false,
    };
    match in_lines(path, before, after, effort) {
        Some(diff) if [before, after].into_iter().flatten().all(is_exact) => {
            format!("{head}\n{diff}")
        }
        Some(diff) => format!("{head}, sha256 {digest}\n{diff}"),
        None => format!("{head}, sha256 {digest}, not shown as text\n"),
    }
}

/// A content as text: as it is, or, where nearly all of it is one, with the bytes that
/// are none by their numbers. A byte or two must not hide what is read all the same by
/// whoever runs it.
pub(super) fn legible(bytes: &[u8]) -> Option<Cow<'_, str>> {
    if bytes.len() > SHOWN_BYTES_MAX {
        return None;
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && !bytes.contains(&0)
    {
        return Some(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(bytes.len());
    let mut odd = 0_usize;
    let mut number = |out: &mut String, byte: u8| {
        odd += 1;
        out.push_str(&format!("\\x{byte:02x}"));
    };
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\0' => number(&mut out, 0),
                letter => out.push(letter),
            }
        }
        for byte in chunk.invalid() {
            number(&mut out, *byte);
        }
    }
    (odd <= ODD_BYTES.max(bytes.len() / ODD_SHARE)).then_some(Cow::Owned(out))
}

/// Lines as a terminal has them: each ends with a newline, so that none is told on
/// the line of another. One that has none in the file says so.
pub(super) fn lines(text: &str) -> Vec<Cow<'_, str>> {
    let line = |line| match str::strip_suffix(line, '\n') {
        Some(_) => Cow::Borrowed(line),
        None => Cow::Owned(format!("{line}\n\\ no newline at the end\n")),
    };
    text.split_inclusive('\n').map(line).collect()
}
