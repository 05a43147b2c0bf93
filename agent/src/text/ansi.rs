//! Taking terminal control sequences out of output.
//!
//! Covers ECMA-48: control sequences, operating system commands, device
//! control and other strings, two-letter escapes and the 8-bit controls. An
//! unfinished sequence loses only what is surely part of it.

/// The text without control sequences.
#[must_use]
pub fn strip(text: &str) -> String {
    if !text
        .chars()
        .any(|letter| letter == '\u{1b}' || ('\u{80}'..='\u{9f}').contains(&letter))
    {
        return text.to_owned();
    }
    let letters: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        let length = match letter {
            '\u{1b}' => escape(letters.get(at + 1..).unwrap_or_default()).map(|rest| rest + 1),
            '\u{9b}' => {
                Some(control(letters.get(at + 1..).unwrap_or_default()).map_or(1, |rest| rest + 1))
            }
            '\u{9d}' => {
                let rest = letters.get(at + 1..).unwrap_or_default();
                Some(string_end(rest, &['\u{7}', '\u{9c}']).map_or(1, |rest| rest + 1))
            }
            '\u{80}'..='\u{9f}' => Some(1),
            _ => None,
        };
        match length {
            Some(length) => at += length,
            None => {
                out.push(letter);
                at += 1;
            }
        }
    }
    out
}

fn run(letters: &[char], from: usize, range: std::ops::RangeInclusive<char>) -> usize {
    letters
        .iter()
        .skip(from)
        .take_while(|letter| range.contains(letter))
        .count()
}

/// Length of parameters, intermediates and the final letter.
fn control(rest: &[char]) -> Option<usize> {
    let parameters = run(rest, 0, '\u{30}'..='\u{3f}');
    let intermediates = run(rest, parameters, '\u{20}'..='\u{2f}');
    let last = parameters + intermediates;
    rest.get(last)
        .filter(|letter| ('\u{40}'..='\u{7e}').contains(*letter))
        .map(|_| last + 1)
}

/// Length up to and including the first of `ends`, or `ESC \`.
fn string_end(rest: &[char], ends: &[char]) -> Option<usize> {
    rest.iter().enumerate().find_map(|(at, letter)| {
        if ends.contains(letter) {
            return Some(at + 1);
        }
        let terminator = *letter == '\u{1b}' && rest.get(at + 1) == Some(&'\\');
        (terminator && !ends.contains(&'\u{9c}')).then_some(at + 2)
    })
}

/// Length of what follows an escape letter and belongs to it.
fn escape(rest: &[char]) -> Option<usize> {
    let first = *rest.first()?;
    let after = rest.get(1..).unwrap_or_default();
    let long = match first {
        '[' => control(after),
        ']' => string_end(after, &['\u{7}']),
        'P' | 'X' | '^' | '_' => string_end(after, &[]),
        '\u{20}'..='\u{2f}' => {
            let intermediates = run(rest, 0, '\u{20}'..='\u{2f}');
            return rest
                .get(intermediates)
                .filter(|letter| ('\u{30}'..='\u{7e}').contains(*letter))
                .map(|_| intermediates + 1);
        }
        _ => None,
    };
    match long {
        Some(length) => Some(length + 1),
        None => ('\u{30}'..='\u{7e}').contains(&first).then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::strip;

    fn check(input: &str, expected: &str) {
        assert_eq!(strip(input), expected, "{input:?}");
    }

    #[test]
    fn plain_text_is_untouched() {
        check("a\tb é\n", "a\tb é\n");
    }

    #[test]
    fn colours_titles_and_strings_go() {
        check("\u{1b}[1;31mred\u{1b}[0m", "red");
        check("\u{1b}]0;title\u{7}x\u{1b}]8;;u\u{1b}\\y", "xy");
        check("\u{1b}Pdata\u{1b}\\z", "z");
        check("\u{1b}(Bx\u{1b}cy", "xy");
        check("\u{9b}1mx\u{85}y", "xy");
    }

    #[test]
    fn an_unfinished_sequence_loses_only_its_start() {
        check("\u{1b}[1", "1");
        check("a\u{1b}", "a\u{1b}");
    }
}
