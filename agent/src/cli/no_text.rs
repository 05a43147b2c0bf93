//! Words of a command line, and lines of the input, that are no text.
//!
//! Names of files are bytes, and options that are a path take every name. A grant, a command
//! and a request are shown, asked about and kept as text, so they are typed as text.

use std::{
    ffi::{OsStr, OsString},
    io::{self, BufRead},
    os::unix::ffi::OsStrExt as _,
};

use crate::screen::on_one_line;

/// What is said of them: which they are, and how what they mean is reached.
pub(super) fn told(words: &[OsString]) -> String {
    let named: Vec<String> = words
        .iter()
        .filter(|word| word.to_str().is_none())
        .map(|word| format!("`{}`", spelled(word)))
        .collect();
    let (which, are) = match named.as_slice() {
        [] => ("a word of the command line".to_owned(), "is"),
        [one] => (one.clone(), "is"),
        many => (many.join(", "), "are"),
    };
    format!(
        "{which} {are} not UTF-8, and what is granted, run or asked for is named in text. A grant on the directory \
         around such a file holds it, too (`--grant fs.modify=DIR`), and a line for the shell reaches it by a pattern \
         (`exec -- 'rm caf?.txt'`); `--workspace` and `--state-dir` take any name"
    )
}

/// What is said of a line of the input: nothing of it is worked on, since half of a command is
/// another command.
pub(super) const LINE: &str = "a line that is not UTF-8 was left out, and nothing of it was done; \
    say it again with the terminal, or the file, in UTF-8";

/// A line that is no text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoText;

/// The next line without its end, and nothing at the end of the input.
///
/// # Errors
/// It cannot be read.
pub(super) fn line(from: &mut impl BufRead) -> io::Result<Option<Result<String, NoText>>> {
    let mut line = Vec::new();
    if from.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let text = String::from_utf8(line).map_err(|_| NoText);
    Ok(Some(text.map(|line| {
        line.trim_end_matches(['\n', '\r']).to_owned()
    })))
}

/// A word with its bytes that are no text as numbers.
fn spelled(word: &OsStr) -> String {
    let mut out = String::new();
    for chunk in word.as_bytes().utf8_chunks() {
        out.push_str(&on_one_line(chunk.valid()));
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn it_is_said_which_word_it_is_and_how_what_it_means_is_reached() {
        let words = [
            &b"exec"[..],
            b"--grant",
            b"fs.modify=./n\xe9\xc3\xa9\x1b\xff",
        ]
        .map(|word| OsString::from_vec(word.to_vec()));
        let said = told(&words);
        assert!(
            said.starts_with("`fs.modify=./n\\xe9\u{e9}\\u{1b}\\xff` is not UTF-8"),
            "{said}"
        );
        assert!(said.contains("`--grant fs.modify=DIR`"), "{said}");
    }

    #[test]
    fn a_line_that_is_no_text_ends_at_its_own_end_and_the_next_one_is_read() {
        let mut input = &b"one\r\ngr\xfc\xdfe\nthree"[..];
        let mut next = || line(&mut input).unwrap();
        assert_eq!(next(), Some(Ok("one".to_owned())));
        assert_eq!(next(), Some(Err(NoText)));
        assert_eq!(next(), Some(Ok("three".to_owned())));
        assert_eq!(next(), None);
    }
}
