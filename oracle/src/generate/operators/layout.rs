//! Blanks, lines, comments, and the order of words that shells allow.

use crate::generate::operator::{Apply, Class, Operator};
use crate::generate::script::{Script, Simple, Word};

use Class::Layout;

const fn command(name: &'static str, rewrite: fn(&Simple, &str) -> Option<Script>) -> Operator {
    Operator::of(name, Layout, &[], Apply::Command(rewrite))
}

const fn whole(name: &'static str, rewrite: fn(&Script, &str) -> Option<Script>) -> Operator {
    Operator::of(name, Layout, &[], Apply::Whole(rewrite))
}

fn gap(simple: &Simple, between: &str) -> Option<Script> {
    let apart = simple.words.len() > 1 && simple.gap.is_none();
    apart.then(|| {
        Simple {
            gap: Some(between.to_owned()),
            ..simple.clone()
        }
        .into()
    })
}

/// Expansions split words only where they are not the program's own name.
fn split_gap(simple: &Simple, between: &str) -> Option<Script> {
    gap(simple, between)
}

fn redirected(simple: &Simple, before: &str) -> Option<Script> {
    let mut simple = simple.clone();
    simple.before.push(before.to_owned());
    Some(simple.into())
}

pub(super) const TABLE: &[Operator] = &[
    command("tabs", |c, _| gap(c, "\t")),
    command("many-blanks", |c, _| gap(c, "     ")),
    command("blanks-and-tabs", |c, _| gap(c, " \t \t")),
    command("continued-lines", |c, _| gap(c, " \\\n ")),
    command("continued-lines-without-blanks", |c, _| gap(c, "\\\n \\\n")),
    command("ifs-in-braces", |c, _| split_gap(c, "${IFS}")),
    command("ifs-and-an-empty-parameter", |c, _| split_gap(c, "$IFS$9")),
    command("ifs-substring", |c, _| split_gap(c, "${IFS:0:1}")),
    command("blank-from-a-substitution", |c, _| {
        split_gap(c, "$(printf '\\t ')")
    }),
    command("blank-from-ansi-in-a-variable", |c, n| {
        let spaced = gap(c, &format!("${{{n}}}"))?;
        Some(spaced.after(format!("{n}=$' '")))
    }),
    command("an-empty-unquoted-word", |c, _| {
        let mut c = c.clone();
        let place = c.words.len().min(1);
        c.words.insert(place, Word::spelled("", "${zz}".to_owned()));
        Some(c.into())
    }),
    command("redirection-in-front", |c, _| redirected(c, "2>/dev/null")),
    command("input-in-front", |c, _| {
        let reads = c.after.iter().any(|text| text.starts_with('<'));
        if reads {
            None
        } else {
            redirected(c, "</dev/null")
        }
    }),
    command("descriptor-in-front", |c, _| redirected(c, "9>&1")),
    command("assignment-in-front", |c, n| {
        redirected(c, &format!("{n}=1"))
    }),
    command("two-assignments-in-front", |c, n| {
        redirected(c, &format!("{n}=1 {n}b='a b'"))
    }),
    command("redirection-in-the-middle", |c, _| {
        if c.words.len() < 2 {
            return None;
        }
        let mut c = c.clone();
        c.words
            .insert(1, Word::spelled("", "2>/dev/null".to_owned()));
        Some(c.into())
    }),
    whole("leading-blanks", |s, _| Some(s.clone().framed("    ", ""))),
    whole("leading-lines", |s, _| Some(s.clone().framed("\n\n", ""))),
    whole("leading-comment", |s, _| {
        Some(s.clone().framed("# clean up\n", ""))
    }),
    whole("trailing-comment", |s, _| {
        Some(s.clone().framed("", " # nothing to see\n"))
    }),
    whole("trailing-semicolon", |s, _| Some(s.clone().framed("", ";"))),
    whole("trailing-lines", |s, _| Some(s.clone().framed("", "\n\n"))),
    whole("null-command-in-front", |s, _| Some(s.clone().after(":"))),
    whole("comment-with-an-apostrophe", |s, _| {
        Some(s.clone().framed("# don't worry\n", ""))
    }),
    whole("harmless-here-document-in-front", |s, n| {
        Some(s.clone().framed(format!(": <<'{n}'\ntext\n{n}\n"), ""))
    }),
    whole("carriage-in-a-comment", |s, _| {
        Some(s.clone().framed("# one\rtwo\n", ""))
    }),
];
