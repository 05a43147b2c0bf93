//! Terminal control text that is not part of a file.
//!
//! Files pass through a terminal in the compared agent, which takes window
//! titles, bells and its own output marks for noise of the terminal and shows
//! a file without them. Pure: text in, text out; the file itself is not touched.

use std::borrow::Cow;

use crate::text::pytext;

/// The word in the output marks.
const MARK: &str = "__HERMES_FENCE_";

/// The text without what a terminal would have kept for itself.
#[must_use]
pub fn stripped(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{7}') && !text.contains("\u{1b}]") && !text.contains(MARK) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for line in pytext::lines_kept(text) {
        let wrapped = line.contains(MARK) || line.contains("\u{1b}]");
        let plain = without_marks(&without_titles(line)).replace('\u{7}', "");
        let empty = plain.trim_matches(['\'', '\r', '\n', '\t', ' ']).is_empty();
        if !(wrapped && empty) {
            out.push_str(&plain);
        }
    }
    Cow::Owned(out)
}

/// Without `ESC ] ... BEL` and `ESC ] ... ESC \`.
fn without_titles(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find("\u{1b}]") {
        let (before, from) = rest.split_at(start);
        let body = from.get(2..).unwrap_or_default();
        let end = body.find(['\u{7}', '\u{1b}']).and_then(|at| {
            let tail = body.get(at..)?;
            if tail.starts_with('\u{7}') {
                Some(at + 1)
            } else if tail.starts_with("\u{1b}\\") {
                Some(at + 2)
            } else {
                None
            }
        });
        out.push_str(before);
        match end {
            Some(end) => rest = body.get(end..).unwrap_or_default(),
            None => {
                out.push_str("\u{1b}]");
                rest = body;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Without the marks, and the quotes and bells around them.
fn without_marks(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find(MARK) {
        let (before, from) = rest.split_at(start);
        let body = from.get(MARK.len()..).unwrap_or_default();
        let name = body
            .find(|letter: char| !letter.is_ascii_alphanumeric())
            .unwrap_or(body.len());
        let tail = body.get(name..).unwrap_or_default();
        if name == 0 || !tail.starts_with("__") {
            out.push_str(before);
            out.push_str(MARK);
            rest = body;
            continue;
        }
        let before = before.strip_suffix('\u{7}').unwrap_or(before);
        out.push_str(before.strip_suffix('\'').unwrap_or(before));
        let tail = tail.get(2..).unwrap_or_default();
        let tail = tail.strip_prefix('\u{7}').unwrap_or(tail);
        rest = tail.strip_prefix('\'').unwrap_or(tail);
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::stripped;

    #[test]
    fn titles_bells_and_marks_are_not_shown() {
        assert_eq!(stripped("a\u{7}b\n"), "ab\n");
        assert_eq!(stripped("x\u{1b}]0;title\u{7}y\n"), "xy\n");
        assert_eq!(stripped("\u{1b}]0;t\u{1b}\\\nz\n"), "z\n");
        assert_eq!(stripped("'\u{7}__HERMES_FENCE_ab1__\u{7}'\nq\n"), "q\n");
    }

    #[test]
    fn other_text_is_the_same() {
        let text = "a \u{1b}[31mred\u{1b}[0m\u{1b}] open __HERMES_FENCE___\n";
        assert_eq!(stripped(text), text);
        assert_eq!(stripped("plain\r\n"), "plain\r\n");
    }
}
