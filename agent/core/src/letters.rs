//! Letters that a person does not see, or sees as others.
//!
//! What is approved is what was shown, so nothing shown may hold a letter that
//! leaves no mark, looks like a space, or turns the order of the others. This is
//! the one list of them; it must never decide what a name leads to.

/// Does it leave no mark where it stands, or turn the order of the letters around it?
///
/// Those that Unicode gives a renderer leave to ignore (`Default_Ignorable_Code_Point`),
/// those that end lines or mark interlines, and Braille's cell without dots.
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
            | '\u{1bca0}'..='\u{1bca3}'
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
