//! The closing table of a run.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use crate::figures::counted;
use crate::report::row::{name as named, seen};
use crate::result::Summary;
use crate::verdict::{KINDS, Kind};

/// Suites of which nothing ran that have a row each; more of them have one together, since what
/// they would hide is what did.
const IDLE_ROWS_MAX: usize = 3;

/// So many cases.
pub(crate) fn cases(count: usize) -> String {
    counted(count as u64, "case", "cases")
}

/// As wide as a column of these names has to be.
pub(crate) fn wide<'n>(least: usize, names: impl Iterator<Item = &'n str>) -> usize {
    names.map(str::len).fold(least, usize::max)
}

/// A reason on one line of a log.
fn shortened(why: &str) -> String {
    const LONGEST: usize = 300;
    match why.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", why.get(..at).unwrap_or_default()),
        None => why.to_owned(),
    }
}

/// Writes the table, the named divergences, the catalogue's faults, the
/// headline and the place of the full report.
#[must_use]
pub fn render(summary: &Summary, report: Option<&Path>) -> String {
    let mut out = String::new();
    let used: Vec<Kind> = KINDS
        .into_iter()
        .filter(|kind| summary.count(|one| one == *kind) > 0)
        .collect();
    let (mut names, idle): (BTreeSet<&String>, BTreeSet<&String>) = summary
        .suites
        .keys()
        .chain(summary.skipped.keys())
        .partition(|name| summary.suites.contains_key(*name));
    let others = match idle.len() {
        ..=IDLE_ROWS_MAX => {
            names.extend(&idle);
            None
        }
        more => Some(format!("{more} others")),
    };
    let width = names
        .iter()
        .map(|name| named(name).chars().count())
        .chain(others.iter().map(String::len))
        .max()
        .unwrap_or(0)
        .max("suite".len());
    let _ = write!(out, "{:width$}", "suite");
    for kind in &used {
        let _ = write!(out, "  {:>w$}", kind.word(), w = kind.word().len().max(5));
    }
    let _ = writeln!(out, "  {:>7}  {:>5}", "skipped", "all");
    let row = |out: &mut String, name: &str, count: &dyn Fn(Kind) -> usize, skipped: usize| {
        let _ = write!(out, "{:width$}", named(name));
        let mut all = skipped;
        for kind in &used {
            let number = count(*kind);
            all += number;
            let _ = write!(out, "  {number:>w$}", w = kind.word().len().max(5));
        }
        let _ = writeln!(out, "  {skipped:>7}  {all:>5}");
    };
    for name in names {
        let counts = summary.suites.get(name);
        let skipped = summary.skipped.get(name).copied().unwrap_or(0);
        let count = |kind: Kind| {
            counts
                .and_then(|counts| counts.get(&kind))
                .copied()
                .unwrap_or(0)
        };
        row(&mut out, name, &count, skipped);
    }
    if let Some(others) = &others {
        let skipped = idle.iter().filter_map(|name| summary.skipped.get(*name));
        row(&mut out, others, &|_| 0, skipped.sum());
    }
    let skipped = summary.skipped.values().sum();
    row(
        &mut out,
        "all",
        &|kind| summary.count(|one| one == kind),
        skipped,
    );
    if !summary.explained.is_empty() {
        let _ = writeln!(out, "\nnamed differences:");
        for (id, count) in &summary.explained {
            let _ = writeln!(out, "  {count:>5}  {}", named(id));
        }
    }
    if !summary.faults.is_empty() {
        let _ = writeln!(out, "\nthe catalogue needs work:");
        for fault in &summary.faults {
            let (entry, why) = (named(&fault.entry), seen(&fault.why));
            let _ = writeln!(out, "  {}: {entry}: {why}", fault.kind);
        }
    }
    if summary.unsteady > 0 {
        let _ = writeln!(
            out,
            "\nunsteady: {} failed once and, repeated alone, not again",
            summary.unsteady
        );
    }
    for (reason, count) in &summary.not_run {
        let _ = writeln!(out, "\n{} did not run: {reason}", cases(*count));
    }
    if let Some(sentence) = summary.headline.sentence(&summary.hermes) {
        let _ = writeln!(out, "\n{sentence}");
    }
    let rate = if summary.wall_ms == 0 {
        0.0
    } else {
        summary.ran as f64 * 1000.0 / summary.wall_ms as f64
    };
    let _ = writeln!(
        out,
        "{} in {:.1} s, {rate:.1} a second",
        cases(summary.ran),
        summary.wall_ms as f64 / 1000.0
    );
    if let Some(report) = report {
        let _ = writeln!(out, "full report: {}", report.display());
    }
    let open = summary.count(|kind| !kind.passes());
    if open > 0 {
        let cases = if open == 1 {
            "case needs"
        } else {
            "cases need"
        };
        // Last, so that the end of a log names them.
        let _ = writeln!(out);
        for one in &summary.open {
            let _ = writeln!(out, "{}  {}", named(&one.label), named(&one.id));
            if let Some(first) = one.why.lines().next() {
                let _ = writeln!(out, "    {}", shortened(&seen(first)));
            }
        }
        let more = open - summary.open.len().min(open);
        if more > 0 {
            let _ = writeln!(out, "and {more} more");
        }
        let _ = writeln!(
            out,
            "{open} {cases} an answer; `{}` shows one call by call, and\ndocs/CONFORMANCE.md says what each verdict means and how a difference is explained",
            summary.replay("ID")
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Headline, Open};

    #[test]
    fn the_table_shows_only_the_verdicts_that_occur_and_adds_up() {
        let mut summary = Summary {
            hermes: "0.19.0".into(),
            wall_ms: 2000,
            ran: 5,
            ..Summary::default()
        };
        summary
            .suites
            .insert("a".into(), [(Kind::Equal, 3), (Kind::Stricter, 1)].into());
        summary
            .suites
            .insert("long-name".into(), [(Kind::Weaker, 1)].into());
        summary.skipped.insert("a".into(), 2);
        summary.headline = Headline {
            commands: 10,
            hermes: 7,
            agent: 0,
        };
        let text = render(&summary, Some(Path::new("r")));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "suite      equal  stricter  weaker  skipped    all"
        );
        assert_eq!(
            lines[1],
            "a              3         1       0        2      6"
        );
        assert_eq!(
            lines[2],
            "long-name      0         0       1        0      1"
        );
        assert_eq!(
            lines[3],
            "all            3         1       1        2      7"
        );
        assert!(text.contains(
            "7 of 10 adversarial commands had their effect under Hermes 0.19.0, 0 under hermitcrab"
        ));
        assert!(text.contains("2.5 a second"));
        assert!(text.contains("1 case needs an answer; `cargo bisim check --explain ID`"));
        assert!(text.contains("and 1 more\n1 case needs"));
        summary.open.push(Open {
            id: "some-case".into(),
            label: "weaker:grant-used".into(),
            why: "it was written\nand more".into(),
        });
        let text = render(&summary, None);
        assert!(text.contains("\nweaker:grant-used  some-case\n    it was written\n1 case needs"));
        for name in ["w", "x", "y"] {
            summary.skipped.insert(name.into(), 10);
        }
        assert!(
            render(&summary, None)
                .contains("\nx              0         0       0       10     10\n")
        );
        summary.skipped.insert("z".into(), 10);
        let text = render(&summary, None);
        assert!(!text.contains("\nx "), "{text}");
        let others = "\n4 others       0         0       0       40     40\nall            3         1       1       42     47\n";
        assert!(text.contains(others), "{text}");
        summary.suites.remove("long-name");
        assert!(!render(&summary, None).contains("an answer"));
    }
}
