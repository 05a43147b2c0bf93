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
    match in_lines((path, path), before, after, effort) {
        Some(diff) if !diff.is_empty() => diff,
        Some(_) => format!("{}\n", sizes()),
        None => format!("{}, not shown as text\n", sizes()),
    }
}

/// The difference line by line, if both are texts; nothing if there is none. The names are
/// those of before and after.
fn in_lines<'b>(
    (old_path, path): (&str, &str),
    before: Option<&'b [u8]>,
    after: Option<&'b [u8]>,
    effort: &mut Effort,
) -> Option<String> {
    let text = |path: &str, side: Option<&'b [u8]>| match side {
        None => Some(Cow::Borrowed("")),
        Some(bytes) => legible_at(path, bytes),
    };
    let (before, old, new) = match (text(old_path, before), text(path, after)) {
        (Some(old), Some(new)) => (before, old, new),
        // What is to be there is shown, whatever was.
        (None, Some(new)) if after.is_some() => (None, Cow::Borrowed(""), new),
        _ => return None,
    };
    let (old, new) = (lines(&old), lines(&new));
    let names = (
        before.map_or("/dev/null", |_| old_path),
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
    sides: (Option<&[u8]>, Option<&[u8]>),
    effort: &mut Effort,
) -> String {
    with_content_of(head, (path, path), digest, sides, effort)
}

/// The same of a file that had another name before.
pub(super) fn with_content_of(
    head: &str,
    (old_path, path): (&str, &str),
    digest: &Digest,
    (before, after): (Option<&[u8]>, Option<&[u8]>),
    effort: &mut Effort,
) -> String {
    let is_exact = |bytes: &[u8]| match legible_at(path, bytes) {
        Some(Cow::Borrowed(text)) => escaped(text) == text,
        Some(Cow::Owned(_)) | None => false,
    };
    match in_lines((old_path, path), before, after, effort) {
        Some(diff) if [before, after].into_iter().flatten().all(is_exact) => {
            format!("{head}\n{diff}")
        }
        Some(diff) => format!("{head}, sha256 {digest}\n{diff}"),
        None => format!("{head}, sha256 {digest}, not shown as text\n"),
    }
}

/// The content of a file as text, unless it is an object of a repository, which nobody reads
/// as one.
pub(super) fn legible_at<'b>(path: &str, bytes: &'b [u8]) -> Option<Cow<'b, str>> {
    match is_git_object(path, bytes) {
        true => None,
        false => legible(bytes),
    }
}

/// What git keeps below its `objects`, by the place, the name and how it begins: short ones
/// have too few odd bytes to be told by these. A file that is only put there is none, and a
/// script of that name would begin with what no shell takes for a command.
fn is_git_object(path: &str, bytes: &[u8]) -> bool {
    let mut parts = path.rsplit('/');
    let (Some(name), Some(dir)) = (parts.next(), parts.next()) else {
        return false;
    };
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if parts.next() != Some("objects") {
        return false;
    }
    let is_loose = dir.len() == 2 && is_hex(dir) && matches!(name.len(), 38 | 62) && is_hex(name);
    if is_loose {
        // What packs it says so in two bytes, of which a multiple of 31 is made.
        return matches!(bytes, [0x78, second, ..] if (0x7800 + u32::from(*second)) % 31 == 0)
            && inflates_to_an_object(bytes);
    }
    let begins: &[u8] = match name.rsplit_once('.') {
        Some((_, "pack")) => b"PACK\0\0\0",
        Some((_, "idx")) => b"\xfftOc",
        Some((_, "rev")) => b"RIDX\0\0\0",
        _ => return false,
    };
    dir == "pack" && name.starts_with("pack-") && bytes.starts_with(begins)
}

/// Whether it is packed as an object is: its kind, its length, a zero byte.
fn inflates_to_an_object(bytes: &[u8]) -> bool {
    let mut head = [0_u8; 8];
    let mut inflated = flate2::read::ZlibDecoder::new(bytes);
    let is_read = std::io::Read::read_exact(&mut inflated, &mut head).is_ok();
    let kinds: [&[u8]; 4] = [b"blob ", b"tree ", b"commit ", b"tag "];
    is_read && kinds.iter().any(|kind| head.starts_with(kind))
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
