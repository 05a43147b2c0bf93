//! A command as it stands in a row of the page.

/// Longer commands are shortened.
const LETTERS_MAX: usize = 90;

/// A command as one cell, its control letters visible.
pub(super) fn code(command: &str) -> String {
    let mut short: String = command
        .chars()
        .take(LETTERS_MAX)
        .flat_map(|letter| match letter {
            '\n' => vec!['\u{21b5}'],
            '\t' => vec!['\u{21e5}'],
            '|' => vec!['\\', '|'],
            letter if letter.is_control() => vec!['\u{fffd}'],
            letter => vec![letter],
        })
        .collect();
    if command.chars().count() > LETTERS_MAX {
        short.push_str(" ...");
    }
    let fence = if short.contains('`') { "``" } else { "`" };
    let gap = if short.contains('`') { " " } else { "" };
    format!("{fence}{gap}{short}{gap}{fence}")
}
