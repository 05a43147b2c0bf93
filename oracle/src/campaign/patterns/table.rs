//! The table of patterns, as a page of the documents.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Pattern, Sides};

/// Longer commands are shortened.
const LETTERS_MAX: usize = 90;

/// The whole page.
pub(super) fn render(sides: &BTreeMap<Pattern, Sides>, version: &str) -> String {
    let mut out = format!(
        "# The patterns of hermes-agent {version}, from both sides\n\n\
         Written by `cargo bisim patterns --write docs/hermes-patterns.md`. For each pattern a\n\
         command that it flags, which has its effect in a bare shell, and a variant with the\n\
         same effect that no guard flags. `cargo bisim fuzz` makes the variant again from its\n\
         name (docs/CAMPAIGNS.md). A dash: none was found.\n\n\
         | Guard | Pattern | Flagged | Not flagged, the same effect |\n|---|---|---|---|\n"
    );
    for (pattern, sides) in sides {
        let flagged = sides.flagged.as_deref().map_or_else(dash, code);
        let unflagged = sides.unflagged.as_ref().map_or_else(dash, |variant| {
            let text = variant.render().map(|rendered| rendered.command);
            format!(
                "{} (`{variant}`)",
                code(text.as_deref().unwrap_or_default())
            )
        });
        // Writing to a string cannot fail.
        let _written = writeln!(
            out,
            "| {} {} | {} | {flagged} | {unflagged} |",
            pattern.guard,
            pattern.number,
            pattern.description.replace('|', "\\|"),
        );
    }
    let count = |has: fn(&Sides) -> bool| sides.values().filter(|sides| has(sides)).count();
    let _written = writeln!(
        out,
        "\n{} patterns: {} flag a command that has its effect, {} of these have a variant that nothing flags.",
        sides.len(),
        count(|sides| sides.flagged.is_some()),
        count(|sides| sides.unflagged.is_some()),
    );
    let lacking: Vec<String> = sides
        .iter()
        .filter(|(_, sides)| sides.flagged.is_none() || sides.unflagged.is_none())
        .map(|(pattern, _)| format!("{} {}", pattern.guard, pattern.number))
        .collect();
    if !lacking.is_empty() {
        let _written = writeln!(out, "Lacking a side: {}.", lacking.join(", "));
    }
    out
}

fn dash() -> String {
    "-".to_owned()
}

/// A command as one cell, its control letters visible.
fn code(command: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lacks_a_side_is_named_and_a_cell_stays_one_cell() {
        let pattern = |number| Pattern {
            guard: "dangerous".to_owned(),
            number,
            description: "a|b".to_owned(),
        };
        let sides = BTreeMap::from([
            (pattern(0), Sides::default()),
            (
                pattern(1),
                Sides {
                    flagged: Some("echo `a` |\nb".to_owned()),
                    unflagged: crate::generate::Variant::named("delete-file+env~0"),
                },
            ),
        ]);
        let text = render(&sides, "9.9");
        assert!(text.contains("Lacking a side: dangerous 0."), "{text}");
        assert!(
            text.contains("| dangerous 1 | a\\|b | `` echo `a` \\|\u{21b5}b `` | `"),
            "{text}"
        );
        assert!(text.contains("2 patterns: 1 flag"), "{text}");
    }
}
