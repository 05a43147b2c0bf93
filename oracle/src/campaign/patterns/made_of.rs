//! What the page of patterns is made of, so that one can tell without Hermes whether it is today's.
//!
//! Which example stands in a row follows from the plain commands, the operators, the seed and the
//! programs of the machine. Whoever adds an operator changes many rows; the page would go on
//! showing others than its command makes, and nobody would notice.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use super::cell::code;
use crate::figures::counted;
use crate::generate::{Link, Operator, SEEDS, Salt, Seed, TARGETED, Variant, operators};

/// As many letters of a digest as tell two generators apart.
const LETTERS: usize = 16;
/// On so many plain commands each operator is looked at.
const LOOKS: usize = 3;
/// What stands before the digest on the page.
const MARK: &str = "(generator `";

/// From what a page was made.
#[derive(Clone, Debug)]
pub(super) struct MadeOf {
    /// Which variants were tried.
    pub seed: u64,
    /// Programs that were not there, so that what needs them was left out.
    pub lacking: BTreeSet<&'static str>,
}

impl MadeOf {
    /// In a sentence.
    pub(super) fn told(&self) -> String {
        let lacking: Vec<String> = self.lacking.iter().map(|one| format!("`{one}`")).collect();
        let machine = match lacking.as_slice() {
            [] => "with every program that one of them needs".to_owned(),
            some => format!("without {}", some.join(", ")),
        };
        format!(
            "Made of {} and {} {MARK}{}`), with `--seed {}`,\non a machine {machine}: the same of each makes the same page.",
            counted(seeds().count() as u64, "plain command", "plain commands"),
            counted(operators::all().count() as u64, "operator", "operators"),
            generator(),
            self.seed,
        )
    }
}

/// All plain commands of the page.
pub(super) fn seeds() -> impl Iterator<Item = &'static Seed> {
    SEEDS.iter().chain(TARGETED)
}

/// All programs that something on the page may need.
pub(super) fn needs() -> BTreeSet<&'static str> {
    let operators = operators::all().flat_map(|operator| operator.needs);
    operators
        .chain(seeds().flat_map(|seed| seed.needs))
        .copied()
        .collect()
}

/// A digest of the plain commands and of what the operators make of some of them.
fn generator() -> String {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    for seed in seeds() {
        add(seed.name);
        add(&seed.script().print());
        add(&format!("{:?}", seed.effect));
        seed.needs.iter().copied().for_each(&mut add);
    }
    for operator in operators::all() {
        add(operator.name);
        add(operator.class.as_str());
        operator.needs.iter().copied().for_each(&mut add);
        for made in made_by(operator) {
            add(&made);
        }
    }
    let mut digest = data_encoding::HEXLOWER.encode(&hash.finalize());
    digest.truncate(LETTERS);
    digest
}

/// What an operator makes of the first plain commands it fits.
fn made_by(operator: &'static Operator) -> impl Iterator<Item = String> {
    let alone = move |seed| {
        let salt = Salt(0);
        Variant::at_a_terminal(seed, vec![Link { operator, salt }]).render()
    };
    let rendered = seeds().filter_map(alone).take(LOOKS);
    rendered.map(|made| [made.before.concat(), made.command].concat())
}

/// What of a page is not as its command would make it today, as far as that can be told without
/// Hermes: each with the command that mends it.
#[must_use]
pub fn outdated(page: &str) -> Vec<String> {
    let again = "`cargo bisim patterns --write docs/hermes-patterns.md` writes it anew";
    let mut found = Vec::new();
    let named = page
        .split_once(MARK)
        .and_then(|(_, rest)| rest.split('`').next());
    let now = generator();
    match named {
        Some(named) if named == now => {}
        Some(named) => found.push(format!(
            "made by the generator `{named}`, and this one is `{now}`: an operator or a plain command is another; {again}"
        )),
        None => found.push(format!("it does not say what it was made of; {again}")),
    }
    let rows = page
        .lines()
        .filter(|row| row.starts_with("| dangerous") || row.starts_with("| hardline"));
    for row in rows {
        let Some(name) = row
            .strip_suffix("`) |")
            .and_then(|row| row.rsplit("(`").next())
        else {
            continue;
        };
        let shown = Variant::named(name).and_then(|variant| variant.render());
        let is_shown = |made: &str| row.contains(&format!(" {} (`", code(made)));
        if !shown.is_some_and(|made| is_shown(&made.command)) {
            found.push(format!(
                "`{name}` is another command than the page shows; {again}"
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(generator: &str, command: &str) -> String {
        format!(
            "# The patterns\n\nMade of them {MARK}{generator}`), with `--seed 1`.\n\n\
             | dangerous 0 | delete | `rm -f x` | {} (`delete-file+env~0`) |\n| hardline 1 | x | - | - |\n",
            code(command)
        )
    }

    #[test]
    fn a_page_of_another_generator_or_with_another_command_is_noticed() {
        let variant = Variant::named("delete-file+env~0").unwrap();
        let command = variant.render().unwrap().command;
        assert_eq!(
            outdated(&page(&generator(), &command)),
            Vec::<String>::new()
        );
        let other = outdated(&page("0123456789abcdef", &command)).join("\n");
        assert!(
            other.contains("made by the generator `0123456789abcdef`"),
            "{other}"
        );
        let moved = outdated(&page(&generator(), "env rm x")).join("\n");
        assert!(
            moved.contains("`delete-file+env~0` is another command"),
            "{moved}"
        );
        let silent = outdated("# The patterns\n").join("\n");
        assert!(
            silent.contains("does not say what it was made of"),
            "{silent}"
        );
    }

    #[test]
    fn what_a_page_says_of_itself_is_what_is_looked_for_in_it() {
        let mut made_of = MadeOf {
            seed: 7,
            lacking: BTreeSet::new(),
        };
        let told = made_of.told();
        assert_eq!(outdated(&told), Vec::<String>::new(), "{told}");
        assert!(told.contains("with `--seed 7`"), "{told}");
        assert!(
            told.contains("with every program that one of them needs"),
            "{told}"
        );
        made_of.lacking.extend(["busybox", "zsh"]);
        assert!(
            made_of
                .told()
                .contains("a machine without `busybox`, `zsh`:")
        );
    }
}
