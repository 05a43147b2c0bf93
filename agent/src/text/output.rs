//! From a command's bytes to the text the model sees.
//!
//! Long output keeps its beginning (where errors often are) and, with more
//! room, its end. The limit counts letters, not bytes.

use crate::text::{ansi, pytext, redact};

/// Letters of output a result may hold.
pub const LETTERS_MAX: usize = 50_000;

/// Share of the room given to the beginning, in percent.
const HEAD_PERCENT: usize = 40;

fn notice(omitted: usize, total: usize) -> String {
    format!(
        "\n\n... [OUTPUT TRUNCATED - {} chars omitted out of {} total] ...\n\n",
        pytext::thousands(omitted as u64),
        pytext::thousands(total as u64)
    )
}

/// The output followed by `suffix`, cut to [`LETTERS_MAX`] letters.
///
/// `total` is the number of letters there were; `output` may already lack its
/// middle, as long as it holds enough of both ends.
#[must_use]
pub fn capped(output: &str, total: usize, suffix: &str) -> String {
    let available = LETTERS_MAX.saturating_sub(suffix.chars().count());
    if total <= available {
        return format!("{output}{suffix}");
    }
    // The notice names how much is left out, which depends on its own length:
    // a few rounds settle it.
    let mut text = String::new();
    for _ in 0..4 {
        let room = available.saturating_sub(text.len());
        let head = room * HEAD_PERCENT / 100;
        let next = notice(total.saturating_sub(room), total);
        let settled = next == text;
        text = next;
        if settled || head == 0 {
            break;
        }
    }
    let room = available.saturating_sub(text.len());
    let head = room * HEAD_PERCENT / 100;
    format!(
        "{}{text}{}{suffix}",
        pytext::head(output, head),
        pytext::tail(output, room - head)
    )
}

/// Control sequences removed, ends trimmed, secrets masked.
#[must_use]
pub fn cleaned(output: &str, command: &str) -> String {
    let plain = ansi::strip(output);
    redact::masked_output(pytext::strip(&plain), command)
}

/// A text behind a mark on each of its lines, so that none of them begins a part of its own.
#[must_use]
pub fn behind(text: &str, mark: char) -> String {
    let breaks = |letter: char| {
        matches!(
            letter,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'
                ..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let text = text.replace("\r\n", "\n");
    let lines = text.trim_end_matches(breaks).split(breaks);
    let lines: Vec<String> = lines.map(|line| format!("{mark} {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{LETTERS_MAX, capped, cleaned};

    #[test]
    fn short_output_is_whole() {
        assert_eq!(capped("abc", 3, "!"), "abc!");
    }

    #[test]
    fn long_output_keeps_both_ends_within_the_limit() {
        let long: String = (0..20_000).map(|n| format!("{n}\n")).collect();
        let total = long.chars().count();
        let shown = capped(&long, total, "");
        assert_eq!(shown.chars().count(), LETTERS_MAX);
        assert!(shown.starts_with("0\n1\n") && shown.ends_with("19999\n"));
        assert!(
            shown.contains("omitted out of 108,890 total] ..."),
            "{total}"
        );
    }

    #[test]
    fn the_model_sees_plain_trimmed_text() {
        assert_eq!(cleaned("\n \u{1b}[31mred\u{1b}[0m \n", "ls"), "red");
    }
}
