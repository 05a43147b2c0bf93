//! Looking for bearers' names in a text that is about to leave.
//!
//! A name may have come into a text by way of a file or a command's output. A
//! run of base32 letters long enough is looked up, in any case of letters and
//! at any place in the run; what is found is struck out.

use std::borrow::Cow;

use super::object_ref::LETTERS;

/// What stands in place of a name.
const STRUCK_OUT: &str = "[a capability's name was removed here]";

/// A text without names, and how many there were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleaned<'t> {
    /// The text.
    pub text: Cow<'t, str>,
    /// How many names were removed.
    pub removed: usize,
}

/// Removes from a text every name for which `is_live` says yes.
pub fn clean<'t>(text: &'t str, is_live: impl Fn(&str) -> bool) -> Cleaned<'t> {
    let mut out = String::new();
    let mut kept_from = 0;
    let mut removed = 0;
    let mut at = 0;
    while let Some(window) = next_window(text, at) {
        let lower = window.letters.to_ascii_lowercase();
        if is_live(&lower) {
            out.push_str(text.get(kept_from..window.from).unwrap_or_default());
            out.push_str(STRUCK_OUT);
            removed += 1;
            at = window.from + LETTERS;
            kept_from = at;
        } else {
            at = window.from + 1;
        }
    }
    if removed == 0 {
        return Cleaned {
            text: Cow::Borrowed(text),
            removed,
        };
    }
    out.push_str(text.get(kept_from..).unwrap_or_default());
    Cleaned {
        text: Cow::Owned(out),
        removed,
    }
}

struct Window<'t> {
    from: usize,
    letters: &'t str,
}

/// The next place, from `at` on, where enough base32 letters follow one another.
fn next_window(text: &str, at: usize) -> Option<Window<'_>> {
    let bytes = text.as_bytes();
    let mut from = at;
    let mut end = at;
    loop {
        if end - from == LETTERS {
            let letters = text.get(from..end)?;
            return Some(Window { from, letters });
        }
        match bytes.get(end) {
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'2'..=b'7') => end += 1,
            Some(_) => {
                end += 1;
                from = end;
            }
            None => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{STRUCK_OUT, clean};
    use crate::handles::ObjectRef;

    #[test]
    fn a_live_name_is_struck_out_wherever_it_stands() {
        let name = ObjectRef::draw().expect("randomness").reveal();
        let letters = name.strip_prefix("/object/").expect("prefix").to_owned();
        let is_live = |text: &str| text == letters;
        for (text, removed) in [
            (format!("see {name}."), 1),
            (letters.to_ascii_uppercase(), 1),
            (format!("abc{letters}def"), 1),
            (format!("{letters}{letters}"), 2),
            (format!("é{name}\n{name}é"), 2),
            (letters[1..].to_owned(), 0),
            ("nothing here".to_owned(), 0),
        ] {
            let cleaned = clean(&text, is_live);
            assert_eq!(cleaned.removed, removed, "{text}");
            assert!(!cleaned.text.to_ascii_lowercase().contains(&letters));
            if removed == 0 {
                assert_eq!(cleaned.text, text);
            }
        }
        let cleaned = clean(&name, is_live);
        assert_eq!(cleaned.text, format!("/object/{STRUCK_OUT}"));
    }
}
