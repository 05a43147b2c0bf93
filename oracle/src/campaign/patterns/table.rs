//! The table of patterns, as a page of the documents.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::cell::code;
use super::made_of::MadeOf;
use super::{Pattern, Sides};

/// The whole page.
pub(super) fn render(sides: &BTreeMap<Pattern, Sides>, version: &str, made_of: &MadeOf) -> String {
    let mut out = format!(
        "# The patterns of hermes-agent {version}, from both sides\n\n\
         Written by `cargo bisim patterns --write docs/hermes-patterns.md`; do not edit. For each\n\
         pattern a command that it flags, which has its effect in a bare shell, and a variant with\n\
         the same effect that no guard flags. `cargo bisim replay NAME` runs the variant again, from\n\
         its name (docs/CAMPAIGNS.md). A dash: none was found.\n\n\
         {}\n\n\
         | Guard | Pattern | Flagged | Not flagged, the same effect |\n|---|---|---|---|\n",
        made_of.told()
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
        let made_of = MadeOf {
            seed: 1,
            lacking: ["zsh"].into(),
        };
        let text = render(&sides, "9.9", &made_of);
        assert!(text.contains("on a machine without `zsh`: "), "{text}");
        assert!(text.contains("Lacking a side: dangerous 0."), "{text}");
        assert!(
            text.contains("| dangerous 1 | a\\|b | `` echo `a` \\|\u{21b5}b `` | `"),
            "{text}"
        );
        assert!(text.contains("2 patterns: 1 flag"), "{text}");
    }
}
