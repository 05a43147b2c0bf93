//! The words of a command as a simple reader sees them: enough to know a
//! project's own command again, and never enough to decide about one.

/// What becomes of quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quoting {
    /// They are taken off, and a backslash takes the next letter as it is.
    Posix,
    /// They stay, and a backslash is a letter.
    Kept,
}

/// The parts between `&&`, `||` and `;`, wherever these stand, each in words. A
/// part that does not end properly is left out.
pub(super) fn segments(command: &str, quoting: Quoting) -> Vec<Vec<String>> {
    command
        .replace("&&", ";")
        .replace("||", ";")
        .split(';')
        .filter_map(|segment| words(segment.trim(), quoting))
        .filter(|words| !words.is_empty())
        .collect()
}

fn words(text: &str, quoting: Quoting) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, quoting) {
            (' ' | '\t' | '\r' | '\n', _) => words.extend(word.take()),
            ('\\', Quoting::Posix) => word.get_or_insert_default().push(letters.next()?),
            ('\'' | '"', Quoting::Posix) => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        end if end == letter => break,
                        '\\' if letter == '"' => {
                            let next = letters.next()?;
                            if !matches!(next, '"' | '\\') {
                                word.push('\\');
                            }
                            word.push(next);
                        }
                        other => word.push(other),
                    }
                }
            }
            // A quote within a word is a letter of it.
            ('\'' | '"', Quoting::Kept) if word.is_none() => {
                let mut quoted = String::from(letter);
                loop {
                    let next = letters.next()?;
                    quoted.push(next);
                    if next == letter {
                        break;
                    }
                }
                words.push(quoted);
            }
            (letter, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::{Quoting, segments};

    #[test]
    fn parts_are_cut_everywhere_and_words_by_their_quotes() {
        for (text, quoting, expected) in [
            (
                "a  b&&c || d;",
                Quoting::Posix,
                vec![vec!["a", "b"], vec!["c"], vec!["d"]],
            ),
            (
                r#"a'b c'd "e\"f\g" \h"#,
                Quoting::Posix,
                vec![vec!["ab cd", r#"e"f\g"#, "h"]],
            ),
            (
                r#""a b"c d"e"#,
                Quoting::Kept,
                vec![vec!["\"a b\"", "c", "d\"e"]],
            ),
            ("''", Quoting::Posix, vec![vec![""]]),
            ("'a; b'", Quoting::Posix, vec![]),
            ("a \\", Quoting::Posix, vec![]),
            ("a \\", Quoting::Kept, vec![vec!["a", "\\"]]),
            ("# a", Quoting::Posix, vec![vec!["#", "a"]]),
        ] {
            assert_eq!(segments(text, quoting), expected, "{text}");
        }
    }
}
