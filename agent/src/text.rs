//! Texts and a model's values, read and written as the compared agent does it.
//!
//! Pure: text in, text out. Nothing here knows a tool, a session or a file, so that
//! whatever makes words for a model can use it, the runtime as well as the tools.

pub mod ansi;
pub mod args;
pub mod bulk;
pub mod difflib;
pub mod fence;
pub mod fuzzy;
pub mod gitconfig;
pub mod gitindex;
pub mod glob;
pub mod json;
pub mod letters;
pub mod output;
pub mod pyjson;
pub mod pytext;
pub mod redact;
pub mod rows;
pub mod visible;
pub mod whole_diff;

/// Line and column, both from 1, of a byte offset.
#[must_use]
pub fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    (line, column)
}

/// Why something that wants a thread of its own cannot be, and what its user can look at.
#[must_use]
pub fn no_thread(of: &str, error: &std::io::Error) -> String {
    format!(
        "no thread can be started for {of}: {error}; see `ulimit -u`, and what the container or service it runs in allows"
    )
}

/// A reason without the number of the call or the question at its end, which names nothing
/// its user has seen.
#[must_use]
pub fn unnumbered(reason: &str) -> &str {
    let named = reason.strip_suffix('`').and_then(|reason| {
        let (reason, name) = reason.rsplit_once(": `")?;
        let number = ["call", "question"]
            .iter()
            .find_map(|kind| name.strip_prefix(kind))?;
        (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(reason)
    });
    named.unwrap_or(reason)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_reason_names_no_number_its_reader_has_not_seen() {
        for (reason, expected) in [
            ("the grant was revoked: `call13`", "the grant was revoked"),
            ("nobody answered: `question0`", "nobody answered"),
            ("no such file: `call`", "no such file: `call`"),
            ("no such file: `call7.txt`", "no such file: `call7.txt`"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(super::unnumbered(reason), expected);
        }
    }
}
