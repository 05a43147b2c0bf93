//! The part of the page that is there without scripts.

use std::fmt::Write as _;

use hermitcrab_core::letters::is_unseen;

use super::Page;
use crate::result::Summary;
use crate::verdict::{KINDS, Kind};

/// How the page colours a verdict.
pub(super) const fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Equal | Kind::EqualMasked => "same",
        Kind::Stricter | Kind::Attenuated => "named",
        Kind::Baselined | Kind::Inconclusive => "open",
        Kind::StricterUnnamed | Kind::Different => "fail",
        Kind::BeyondGrant | Kind::Weaker | Kind::BothUnsafe => "unsafe",
    }
}

/// Text as text.
pub(crate) fn text(out: &mut String, text: &str) {
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // What is not seen, or turns the order of the others, is told by its number.
            '\n' | '\t' => out.push(letter),
            letter if letter.is_control() || is_unseen(letter) => {
                out.extend(letter.escape_unicode());
            }
            other => out.push(other),
        }
    }
}

/// What the run was, in a line of facts.
pub(super) fn facts(out: &mut String, page: &Page<'_>) {
    let summary = page.summary;
    let mut facts = vec![
        format!("{} of {} cases ran", summary.ran, summary.chosen),
        format!("Hermes {}", summary.hermes),
        format!("hermitcrab {}", summary.agent),
        format!("{:.1} s", summary.wall_ms as f64 / 1000.0),
        format!("made {}", page.made),
    ];
    if summary.exit != 0 {
        facts.push(format!("exit code {}", summary.exit));
    }
    // It has the headline where nothing fails.
    if summary.exit != 0 {
        facts.extend(summary.headline.sentence(&summary.hermes));
    }
    let not_run = summary.not_run.iter();
    facts.extend(not_run.map(|(reason, count)| format!("{count} did not run: {reason}")));
    facts.extend(
        summary
            .faults
            .iter()
            .map(|fault| format!("catalogue: {} {}: {}", fault.kind, fault.entry, fault.why)),
    );
    for fact in facts {
        out.push_str("<li>");
        text(out, &fact);
        out.push_str("</li>");
    }
}

/// All verdicts in one bar, and what each of them says.
pub(super) fn verdicts(out: &mut String, summary: &Summary) {
    let skipped = summary.skipped.values().sum::<usize>();
    let all = summary.ran + skipped;
    let of = |kind| summary.count(|one| one == kind);
    let used = KINDS.into_iter().filter(|kind| of(*kind) > 0);
    out.push_str("<div class=\"share\" aria-hidden=\"true\">");
    for kind in used.clone() {
        part(out, kind, of(kind), all);
    }
    out.push_str("</div><ul class=\"kinds\">");
    for kind in used {
        let (count, word) = (of(kind), kind.word());
        let share = share_of(count, all);
        let _ = write!(
            out,
            "<li class=\"{}\" data-kind=\"{word}\"><b>{count}</b><em>{word}</em><small>{share}: {}</small></li>",
            class(kind),
            kind.means(),
        );
    }
    if skipped > 0 {
        let share = share_of(skipped, all);
        let _ = write!(
            out,
            "</ul><p class=\"facts\">{skipped} more did not run ({share}), and have not passed</p>"
        );
    } else {
        out.push_str("</ul>");
    }
}

/// One of a bar's parts.
fn part(out: &mut String, kind: Kind, count: usize, all: usize) {
    let share = count as f64 * 100.0 / all.max(1) as f64;
    if share > 0.0 {
        let _ = write!(
            out,
            "<i class=\"{}\" style=\"width:{share:.2}%\"></i>",
            class(kind)
        );
    }
}

/// In percent, rounded; what is few is never told as none, nor what is not all as all.
fn share_of(count: usize, all: usize) -> String {
    match (count, all.max(1)) {
        (0, _) => "0.0 %".to_owned(),
        (count, all) if count >= all => "100 %".to_owned(),
        (count, all) if count * 1000 < all => "less than 0.1 %".to_owned(),
        (count, all) => {
            let tenths = ((count * 2000 + all) / (all * 2)).min(999);
            format!("{}.{} %", tenths / 10, tenths % 10)
        }
    }
}

/// Suites by verdicts, with a bar for each suite.
pub(super) fn suites(out: &mut String, summary: &Summary) {
    let used: Vec<Kind> = KINDS
        .into_iter()
        .filter(|kind| summary.count(|one| one == *kind) > 0)
        .collect();
    out.push_str("<table id=\"suites\"><thead><tr><th scope=\"col\">suite</th>");
    for kind in &used {
        let _ = write!(out, "<th scope=\"col\">{}</th>", kind.word());
    }
    out.push_str("<th scope=\"col\">not run</th><th scope=\"col\">all</th></tr></thead><tbody>");
    let mut names: Vec<&String> = summary
        .suites
        .keys()
        .chain(summary.skipped.keys())
        .collect();
    names.sort();
    names.dedup();
    for name in names {
        let counts = summary.suites.get(name);
        let count = |kind| counts.and_then(|c| c.get(&kind)).copied().unwrap_or(0);
        let skipped = summary.skipped.get(name).copied().unwrap_or(0);
        let all = used.iter().map(|kind| count(*kind)).sum::<usize>() + skipped;
        out.push_str("<tr data-suite=\"");
        text(out, name);
        out.push_str("\"><th scope=\"row\"><span>");
        text(out, name);
        out.push_str("</span><span class=\"bar\" aria-hidden=\"true\">");
        for kind in &used {
            part(out, *kind, count(*kind), all);
        }
        out.push_str("</span></th>");
        for kind in &used {
            match count(*kind) {
                0 => out.push_str("<td class=\"none\">·</td>"),
                number => {
                    let _ = write!(
                        out,
                        "<td data-kind=\"{}\"><span class=\"n {}\">{number}</span></td>",
                        kind.word(),
                        class(*kind)
                    );
                }
            }
        }
        let _ = write!(out, "<td>{skipped}</td><td>{all}</td></tr>");
    }
    out.push_str("</tbody></table>");
}

#[cfg(test)]
mod tests {
    use super::share_of;

    #[test]
    fn shares_are_rounded_and_add_up_as_people_add_them() {
        let check = |count, all, said: &str| assert_eq!(share_of(count, all), said);
        check(8, 14, "57.1 %");
        check(6, 14, "42.9 %");
        check(0, 14, "0.0 %");
        check(14, 14, "100 %");
        check(1, 9_999, "less than 0.1 %");
        check(9_999, 10_000, "99.9 %");
        check(0, 0, "0.0 %");
    }
}
