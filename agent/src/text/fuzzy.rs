//! Finding the text a model meant when it quotes a file imprecisely.
//!
//! Tried in order, from exact to vague; the first way that finds anything
//! decides. A vague match that is ambiguous, or whose quoting looks damaged in
//! transport, is an error and never a guess. Pure: text in, text out.

mod find;
mod replace;

use crate::text::{
    difflib::{self, Effort},
    pytext,
    redact::{Mask, masked},
};

/// A part of the file's text, in bytes.
pub type Span = (usize, usize);

/// The result of a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// The new text.
    Text(String),
    /// Why nothing was replaced, in words for the model.
    Not(String),
}

/// What to do when the text occurs more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrences {
    /// More than one is an error.
    One,
    /// All are replaced.
    All,
}

/// In longer texts only what is quoted to the letter is found: the vague ways take many times
/// a text's room, and time that grows with it.
const VAGUE_BYTES_MAX: usize = 64 << 20;
/// What is said of a text that long in which the quotation is not.
const TOO_LONG_FOR_VAGUE: &str = "Could not find a match for old_string in the file, which is longer than 64 MiB: of such a file \
                                  only text quoted to the letter is replaced";

/// What is said where the lines of both are so many that holding them against each other
/// would take minutes, in which nobody could call it off.
const TOO_MUCH_TO_COMPARE: &str = "Could not find a match for old_string in the file; comparing all its lines with the file's takes too \
                                   long: quote fewer lines, or quote them to the letter";

/// In so many places of a longer text something is replaced at once.
const PLACES_MAX: usize = 1 << 20;
/// So many bytes more it may have after that.
const GROWTH_BYTES_MAX: usize = 64 << 20;

/// What is wrong with the number of places in a long text, told before they are collected.
fn too_many_places(
    content: &str,
    old: &str,
    new: &str,
    occurrences: Occurrences,
) -> Option<String> {
    let count = content.matches(old).count();
    if occurrences == Occurrences::One {
        return (count > 1).then(|| several(count));
    }
    let growth = new.len().saturating_sub(old.len()).saturating_mul(count);
    (count > PLACES_MAX || growth > GROWTH_BYTES_MAX).then(|| {
        format!(
            "Found {count} matches for old_string in a file longer than 64 MiB: that is more than is replaced at once. \
             Use `terminal` (`sed -i`) for it."
        )
    })
}

fn several(count: usize) -> String {
    format!(
        "Found {count} matches for old_string. Provide more context to make it unique, or use replace_all=True."
    )
}

/// Replaces `old` by `new` in `content`.
#[must_use]
pub fn replace(content: &str, old: &str, new: &str, occurrences: Occurrences) -> Replaced {
    replace_counted(content, old, new, occurrences).0
}

/// Replaces like [`replace`], and says at how many places.
#[must_use]
pub fn replace_counted(
    content: &str,
    old: &str,
    new: &str,
    occurrences: Occurrences,
) -> (Replaced, usize) {
    replace_within(content, old, new, occurrences, &mut Effort::default())
}

/// The same, of many that have one measure together.
pub fn replace_within(
    content: &str,
    old: &str,
    new: &str,
    occurrences: Occurrences,
    effort: &mut Effort,
) -> (Replaced, usize) {
    let not = |problem: String| (Replaced::Not(problem), 0);
    if old.is_empty() {
        return not("old_string cannot be empty".into());
    }
    if old == new {
        return not("old_string and new_string are identical".into());
    }
    let is_long = content.len() > VAGUE_BYTES_MAX;
    for way in find::Way::ALL {
        if is_long {
            if way != find::Way::Exact {
                return not(TOO_LONG_FOR_VAGUE.into());
            }
            if let Some(problem) = too_many_places(content, old, new, occurrences) {
                return not(problem);
            }
        }
        let spans = way.find(content, old, effort);
        // Of several places some may have been overlooked, and all of them matter.
        if way != find::Way::Exact && effort.is_spent() {
            return not(TOO_MUCH_TO_COMPARE.into());
        }
        if spans.is_empty() {
            continue;
        }
        if spans.len() > 1 && occurrences == Occurrences::One {
            return not(several(spans.len()));
        }
        if way != find::Way::Exact
            && let Some(problem) = replace::damaged_quotes(content, &spans, old, new)
        {
            return not(problem);
        }
        let mut effective = replace::control_letters_restored(content, &spans, new);
        if way == find::Way::PlainLetters {
            effective = replace::letters_kept(content, &spans, old, &effective);
        }
        let reindent_from = (way != find::Way::Exact).then_some(old);
        let count = spans.len();
        let text = replace::apply(content, spans, &effective, reindent_from);
        return (Replaced::Text(text), count);
    }
    not("Could not find a match for old_string in the file".into())
}

/// Sections of the file most like what was looked for, as text to append to a
/// "Could not find" message; empty for other messages or when nothing is near.
#[must_use]
pub fn nearest_sections(problem: &str, old: &str, content: &str) -> String {
    const AROUND: usize = 2;
    const SECTIONS: usize = 3;
    let has_none = !problem.starts_with("Could not find") || problem == TOO_MUCH_TO_COMPARE;
    if has_none || content.len() > VAGUE_BYTES_MAX {
        return String::new();
    }
    let old_lines = pytext::lines(old);
    let lines = pytext::lines(content);
    let Some(anchor) = old_lines
        .iter()
        .map(|line| pytext::strip(line))
        .find(|line| !line.is_empty())
    else {
        return String::new();
    };
    // No more than a hint, for which somebody waits.
    let mut effort = Effort::of_a_question();
    let mut scored: Vec<(f64, usize)> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| !pytext::strip(line).is_empty())
        .filter_map(|(at, line)| {
            if effort.is_spent() {
                return None;
            }
            let line = pytext::strip(line);
            let score = difflib::alike_within(anchor, line, |score| score > 0.3, &mut effort);
            Some((score?, at))
        })
        .collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0));
    let mut seen = Vec::new();
    let mut sections = Vec::new();
    for (_, at) in scored.into_iter().take(SECTIONS) {
        let part = (
            at.saturating_sub(AROUND),
            lines.len().min(at + old_lines.len() + AROUND),
        );
        if seen.contains(&part) {
            continue;
        }
        seen.push(part);
        let shown: Vec<String> = lines
            .iter()
            .enumerate()
            .skip(part.0)
            .take(part.1 - part.0)
            .map(|(number, line)| format!("{:4}| {line}", number + 1))
            .collect();
        sections.push(shown.join("\n"));
    }
    if sections.is_empty() {
        return String::new();
    }
    // Nobody asked to read these lines: what is masked in a file that is read is masked here.
    format!(
        "\n\nDid you mean one of these sections?\n{}",
        masked(&sections.join("\n---\n"), Mask::Sentinel)
    )
}

#[cfg(test)]
mod tests {
    use super::{
        Effort, Occurrences, Replaced, TOO_MUCH_TO_COMPARE, nearest_sections, replace,
        replace_within,
    };

    fn check(content: &str, old: &str, new: &str, expected: &str) {
        assert_eq!(
            replace(content, old, new, Occurrences::One),
            Replaced::Text(expected.into()),
            "{old:?} -> {new:?} in {content:?}"
        );
    }

    fn refused(content: &str, old: &str, new: &str, part: &str) {
        match replace(content, old, new, Occurrences::One) {
            Replaced::Not(problem) => assert!(problem.contains(part), "{problem}"),
            Replaced::Text(text) => panic!("replaced: {text:?}"),
        }
    }

    #[test]
    fn exact_text_is_replaced() {
        check("one\ntwo\n", "two", "TWO", "one\nTWO\n");
    }

    #[test]
    fn all_occurrences_do_not_overlap() {
        assert_eq!(
            replace("aaaa", "aa", "b", Occurrences::All),
            Replaced::Text("bb".into())
        );
    }

    #[test]
    fn lines_match_whatever_their_indentation_and_the_file_keeps_its_own() {
        check(
            "if x:\n        a = 1\n        b = 2\n",
            "a = 1\nb = 2",
            "a = 3\nb = 4",
            "if x:\n        a = 3\n        b = 4\n",
        );
        check("  a  =  1\n", "a = 1", "a = 2", "  a = 2\n");
    }

    #[test]
    fn blanks_match_as_one_and_those_at_the_end_of_the_text_but_for_the_first_stay() {
        check("a  b  ", "a b ", "c", "c ");
        check("a  b\t\t", "a b ", "c", "c");
        check("a  b  \n", "a b \n", "c\n", "c\n");
        // Blanks in front of the match stay, as the indentation of what is put there.
        check("x  a  b\n", "a b", "c", "x  c\n");
        check("x\t a  b\n", "a b", "c", "x\t c\n");
        check("one   two   three", "one two three", "1  2", "1  2");
    }

    #[test]
    fn typographic_letters_survive_a_plain_quotation() {
        check(
            "x \u{2014} \u{201c}y\u{201d} z\n",
            "x -- \"y\" z",
            "x -- \"y\" w",
            "x \u{2014} \u{201c}y\u{201d} w\n",
        );
    }

    #[test]
    fn first_and_last_line_anchor_a_block() {
        check(
            "fn a() {\n    let one = 1;\n    let two = 22;\n}\n",
            "fn a() {\n    let one = 1;\n    let two = 2;\n}",
            "fn a() {}",
            "fn a() {}\n",
        );
    }

    #[test]
    fn ambiguity_absence_and_sameness_are_refused() {
        refused("a a", "a", "b", "Found 2 matches");
        refused("abc", "qqqq", "b", "Could not find");
        refused("abc", "a", "a", "identical");
        refused("abc", "", "a", "empty");
    }

    #[test]
    fn quotes_escaped_in_transport_are_refused() {
        refused(
            "  say('it')\n",
            "say(\\'it\\')",
            "say(\\'no\\')",
            "Escape-drift",
        );
    }

    #[test]
    fn near_sections_are_shown_with_numbers() {
        assert_eq!(
            nearest_sections("Could not find x", "nope", "one\nTWO\nthree\n"),
            "\n\nDid you mean one of these sections?\n   1| one\n   2| TWO\n   3| three"
        );
        assert_eq!(nearest_sections("Found 2", "one", "one\n"), "");
    }

    #[test]
    fn what_takes_too_long_to_compare_is_refused_and_what_is_quoted_to_the_letter_is_found() {
        let lines: String = (0..3000)
            .map(|line| format!("some line {}\n", line % 7))
            .collect();
        let begins = lines.get(..14_000).unwrap_or_default();
        for content in [lines.clone(), "a\n".repeat(20_000)] {
            let old = content.get(..4_000).unwrap_or_default();
            for old in [
                // Similar in all of its lines but one; the same in all but the last.
                format!("x\n{old}y"),
                format!("{old}y"),
                old.replace('m', "n") + "\ny",
            ] {
                let mut effort = Effort::of_a_question();
                effort.spend(49_000_000);
                let (found, _) =
                    replace_within(&content, &old, "new", Occurrences::One, &mut effort);
                assert_eq!(found, Replaced::Not(TOO_MUCH_TO_COMPARE.into()));
            }
        }
        let mut effort = Effort::of_a_question();
        effort.spend(usize::MAX);
        let marked = format!("{begins}one\ntwo\n{begins}");
        let marked_off = replace_within(&marked, "one\ntwo", "", Occurrences::One, &mut effort);
        assert_eq!(marked_off.0, Replaced::Text(format!("{begins}\n{begins}")));
    }
}
