//! Letters that a person does not see, or sees as others.
//!
//! What is approved is what was shown, so nothing shown may hold a letter that
//! leaves no mark, looks like a space, or turns the order of the others. This is
//! the one list of them; it must never decide what a name leads to.

/// Does it leave no mark where it stands, or turn the order of the letters around it?
///
/// Those that Unicode gives a renderer leave to ignore (`Default_Ignorable_Code_Point`),
/// those that end lines or mark interlines, and those whose own sign is blank: Braille's cell
/// without dots, hieroglyphs' blanks and joiners, Khitan's filler, music's null notehead.
#[must_use]
pub const fn is_unseen(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{13441}'..='\u{13442}'
            | '\u{16fe4}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d159}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Does it look like a space and is none? In a text it is one of somebody's script;
/// in a name it makes two names look alike.
#[must_use]
pub fn is_like_a_space(letter: char) -> bool {
    letter != ' ' && letter.is_whitespace() && !letter.is_control()
}

#[cfg(test)]
mod tests {
    use super::{is_like_a_space, is_unseen};

    #[test]
    fn a_blank_of_any_script_is_unseen_and_what_leaves_a_mark_is_not() {
        let unseen = [
            '\u{200b}',
            '\u{202e}',
            '\u{2800}',
            '\u{3164}',
            '\u{13430}',
            '\u{1343f}',
            '\u{13442}',
            '\u{16fe4}',
            '\u{1d159}',
            '\u{e0041}',
        ];
        for letter in unseen {
            assert!(is_unseen(letter), "{letter:?}");
        }
        for seen in [
            'a',
            ' ',
            '\u{1342f}',
            '\u{13443}',
            '\u{16fe3}',
            '\u{1d158}',
            '\u{601}',
        ] {
            assert!(!is_unseen(seen), "{seen:?}");
        }
        assert!(is_like_a_space('\u{a0}') && !is_like_a_space(' ') && !is_like_a_space('\n'));
    }
}
