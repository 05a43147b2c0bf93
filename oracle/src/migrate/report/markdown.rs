//! `migration.md`: the plan, for reading and for reviewing.

use std::fmt::Write as _;

use super::{Report, capitalised};
use crate::figures::{calls, grouped};
use crate::migrate::{
    replay::{Class, Replayed},
    translate::{About, Proposal},
};
use crate::report::publish::quoted;
use crate::report::row::name;

/// Rows of calls that are shown; the JSON has more.
const ROWS_MAX: usize = 200;

/// The plan's text.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    let summary = capitalised(&report.summary);
    // Writing into a string cannot fail, here and below.
    let _ = write!(
        out,
        "# From Hermes to hermitcrab\n\n{summary}.\n\nMade {} from `{}`, against hermes-agent {}. Nothing has been granted, and nothing in the home was changed.\n",
        report.made, report.home, report.hermes
    );
    if !report.notes.is_empty() || !report.changed_meanwhile.is_empty() {
        out.push_str("\n## Before you trust this\n\n");
        for note in &report.notes {
            let mark = if note.partial { "**missing:** " } else { "" };
            let _ = writeln!(out, "- {mark}{}: {}", code(&note.about), plain(&note.text));
        }
        for file in &report.changed_meanwhile {
            let _ = writeln!(
                out,
                "- {} changed while this ran; something else wrote to it, this did not.",
                code(file)
            );
        }
    }
    decide(&mut out, report);
    if let Some(replayed) = &report.replayed {
        replay(&mut out, report, replayed);
        table(
            &mut out,
            ("What a session's worlds started from", "Sessions"),
            &report.started_from,
        );
    }
    opinions(&mut out, report);
    suggestion(&mut out, report);
    out.push_str("\n## What Hermes was told, and what it means here\n");
    for proposal in &report.proposals {
        one(&mut out, proposal);
    }
    facts(&mut out, report);
    out
}

fn decide(out: &mut String, report: &Report) {
    out.push_str("\n## What you have to decide\n\n");
    let mut any = false;
    for proposal in report
        .proposals
        .iter()
        .filter(|one| !one.confirm.is_empty())
    {
        any = true;
        let _ = writeln!(
            out,
            "- [ ] `{}` ({}): {}.",
            proposal.id,
            code(&proposal.said),
            proposal.confirm
        );
    }
    if !any {
        out.push_str("Nothing.\n");
    }
    out.push_str(
        "\n`hermitcrab.toml` beside this page holds the denials, and every proposed grant as a comment; `migration.diff` shows what it changes. Take `#? ` away from a grant to give it.\n",
    );
}

fn replay(out: &mut String, report: &Report, replayed: &Replayed) {
    out.push_str(
        "\n## The recorded calls, replayed\n\n| What became of them | Calls | Share |\n|---|---:|---|\n",
    );
    for (class, count) in &replayed.classes {
        let share = if *class == Class::NotReplayed {
            String::new()
        } else {
            report.share(replayed, *class)
        };
        let count = count - replayed.unreached_of(*class);
        let _ = writeln!(out, "| {} | {} | {share} |", class.word(), grouped(count));
    }
    for (calls, what) in [
        (replayed.not_drawn, "not drawn for the sample"),
        (
            replayed.unreached(),
            "not reached: the same command again goes on",
        ),
    ] {
        if calls > 0 {
            let _ = writeln!(out, "| {what} | {} | |", grouped(calls));
        }
    }
    for line in report.how(replayed) {
        let _ = writeln!(out, "\n{line}");
    }
    asked(out, report, replayed);
    table(
        out,
        ("Why a call was not replayable", "Calls"),
        &replayed.not_replayed,
    );
    let shown: Vec<_> = replayed
        .rows
        .iter()
        .filter(|row| !matches!(row.class, Class::Same | Class::NotReplayed))
        .collect();
    if !shown.is_empty() {
        out.push_str("\n| Calls | Tool | Call | Became | Why |\n|---:|---|---|---|---|\n");
        for row in shown.iter().take(ROWS_MAX) {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} |",
                row.count,
                cell(&row.tool),
                cell(&row.call),
                row.class.word(),
                plain(&row.why)
            );
        }
        if shown.len() > ROWS_MAX {
            let _ = writeln!(
                out,
                "\n{} more are in `migration.json`.",
                shown.len() - ROWS_MAX
            );
        }
    }
}

/// Why the agent would ask, and what was seen under the grants that would change it.
fn asked(out: &mut String, report: &Report, replayed: &Replayed) {
    if replayed.asked.is_empty() {
        return;
    }
    out.push_str("\n| Why the agent would ask or refuse | Calls | What would let them through | Tried |\n|---|---:|---|---|\n");
    for one in replayed.asked.iter().take(ROWS_MAX) {
        let grants: Vec<String> = one
            .grants
            .iter()
            .map(|grant| format!("`{}` on {}", grant.verb, cell(&grant.on)))
            .collect();
        let _ = write!(
            out,
            "| {} | {} | {} | {}",
            plain(&one.reason),
            grouped(one.calls),
            grants.join(", "),
            one.proof.word()
        );
        if !one.why.is_empty() {
            let _ = write!(out, ": {}", plain(&one.why));
        }
        out.push_str(" |\n");
    }
    let Some(proved) = &report.proved else {
        return;
    };
    let _ = writeln!(out, "\n{}", proved.sentence());
    for grant in &proved.grants {
        let _ = writeln!(out, "- `{}` on {}", grant.verb, code(&grant.on));
    }
}

fn table(
    out: &mut String,
    (title, unit): (&str, &str),
    counts: &std::collections::BTreeMap<String, u64>,
) {
    if counts.is_empty() {
        return;
    }
    let mut rows: Vec<_> = counts.iter().collect();
    rows.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let _ = write!(out, "\n| {title} | {unit} |\n|---|---:|\n");
    for (reason, count) in rows.iter().take(ROWS_MAX) {
        let _ = writeln!(out, "| {} | {} |", plain(reason), grouped(**count));
    }
}

/// What differs from release to release.
fn opinions(out: &mut String, report: &Report) {
    let Some(replayed) = report
        .replayed
        .as_ref()
        .filter(|_| !report.opinions.is_empty())
    else {
        return;
    };
    let _ = write!(
        out,
        "\n## The same with other releases of Hermes\n\n| What became of them | {} |",
        report.hermes
    );
    for opinion in &report.opinions {
        let _ = write!(out, " {} |", opinion.version);
    }
    out.push_str("\n|---|---:|");
    out.push_str(&"---:|".repeat(report.opinions.len()));
    out.push('\n');
    for class in Class::ALL {
        let _ = write!(
            out,
            "| {} | {} |",
            class.word(),
            grouped(replayed.count(class))
        );
        for opinion in &report.opinions {
            let count = opinion.classes.get(&class).copied().unwrap_or_default();
            let _ = write!(out, " {} |", grouped(count));
        }
        out.push('\n');
    }
    if report
        .opinions
        .iter()
        .all(|opinion| opinion.rows.is_empty())
    {
        out.push_str("\nNo call is told apart by the release.\n");
        return;
    }
    out.push_str("\n| Release | Tool | Call | With it | Otherwise |\n|---|---|---|---|---|\n");
    for opinion in &report.opinions {
        for row in opinion.rows.iter().take(ROWS_MAX) {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} |",
                opinion.version,
                cell(&row.tool),
                cell(&row.call),
                plain(&row.with_it),
                plain(&row.otherwise)
            );
        }
    }
}

fn suggestion(out: &mut String, report: &Report) {
    let suggestion = &report.suggestion;
    if suggestion.grants.is_empty() && suggestion.outside.is_empty() {
        return;
    }
    out.push_str("\n## The least that covers what was recorded\n\n");
    if let Some(none) = suggestion.curve.first() {
        let _ = write!(
            out,
            "| Grants | The next one | Needed in | Questions left |\n|---:|---|---|---:|\n| 0 | | | {} |\n",
            grouped(*none)
        );
    }
    for (place, (grant, left)) in suggestion
        .grants
        .iter()
        .zip(suggestion.curve.iter().skip(1))
        .enumerate()
    {
        let _ = writeln!(
            out,
            "| {} | `{}` on {} for {} h | {} | {} |",
            place + 1,
            grant.verb,
            cell(&grant.on),
            grant.seconds / 3600,
            projects(&grant.seen_in),
            grouped(*left)
        );
    }
    if suggestion
        .grants
        .iter()
        .any(|grant| !grant.seen_in.is_empty())
    {
        out.push_str("\nIn the configuration a place that begins with `.` is one of whatever project is worked in. To give a grant in one project alone, run there `hermitcrab caps grant VERB=PLACE`; `hermitcrab.toml` has the lines.\n");
    }
    if let Some(enough) = suggestion.enough_for(95) {
        let _ = writeln!(
            out,
            "\n{enough} of them leave at most 5 % of the questions."
        );
    }
    if !suggestion.outside.is_empty() {
        out.push_str("\nOutside the workspace, so not suggested; grant by hand what you mean:\n\n");
        for (place, count) in suggestion.outside.iter().take(ROWS_MAX) {
            let _ = writeln!(out, "- {} ({})", code(place), calls(*count));
        }
    }
}

/// The projects a grant is for, not all of them where they are many.
fn projects(names: &[String]) -> String {
    const NAMED_MAX: usize = 5;
    let named: Vec<String> = names
        .iter()
        .take(NAMED_MAX)
        .map(|name| cell(name))
        .collect();
    match names.len().saturating_sub(NAMED_MAX) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn one(out: &mut String, proposal: &Proposal) {
    let _ = write!(
        out,
        "\n### `{}`: {}\n\n- It says: {}\n- In Hermes: {}.\n- Here: {}.\n",
        proposal.id,
        plain(&proposal.from),
        code(&proposal.said),
        plain(&proposal.in_hermes),
        proposal.here
    );
    for grant in &proposal.grants {
        let _ = writeln!(
            out,
            "- Proposed, not granted: `{}` on {}, for {} h.",
            grant.verb,
            code(&grant.on),
            grant.seconds / 3600
        );
    }
    for denial in &proposal.denials {
        let about = match &denial.about {
            About::On(place) => code(place),
            About::Named(name) => format!("files named {}", code(name)),
            About::Host(host) => code(host),
        };
        let _ = writeln!(out, "- Denied: `{}` on {about}.", denial.verbs.join("`, `"));
    }
    if let Some((key, value)) = &proposal.setting {
        let _ = writeln!(out, "- Set: `{key} = {value}`.");
    }
    if !proposal.confirm.is_empty() {
        let _ = writeln!(out, "- To confirm: {}.", proposal.confirm);
    }
}

fn facts(out: &mut String, report: &Report) {
    out.push_str("\n## What was read\n\n");
    let schema = report
        .database_schema
        .map_or_else(|| "none".to_owned(), |schema| schema.to_string());
    let _ = write!(
        out,
        "- {} sessions, {} calls ({} repeated in conversation files, {} not readable); schema of the database: {schema}\n- files: {}\n",
        grouped(report.counts.sessions),
        grouped(report.counts.calls),
        grouped(report.counts.repeated),
        grouped(report.counts.broken),
        list(&report.files),
    );
    for line in report.counts.why_unreadable() {
        let _ = writeln!(out, "- {}", plain(&line));
    }
    let _ = writeln!(
        out,
        "- names in `.env`, never a value: {}",
        list(&report.env_names)
    );
    for skill in &report.skills {
        let _ = writeln!(
            out,
            "- skill {}: {}",
            code(&skill.name),
            plain(&skill.description)
        );
    }
    for job in &report.jobs {
        let state = if job.enabled { "" } else { ", paused" };
        let _ = writeln!(
            out,
            "- job {} ({}), {}{state}: it will hold nothing until {} says so",
            code(&job.name),
            code(&job.schedule),
            code(&job.id),
            code(&format!(
                "hermitcrab cron grant {} VERB=PLACE",
                quoted(&job.id)
            ))
        );
    }
    if let Some(opened) = report.opened() {
        let _ = writeln!(out, "- {opened}");
    }
    let mut tools: Vec<_> = report.tools.iter().collect();
    tools.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (tool, count) in tools {
        let _ = writeln!(out, "- {} of {}", calls(*count), code(tool));
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names
        .iter()
        .map(|name| code(name))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Text of somebody else as code: no letter in it can become markup, and each is still there.
fn code(text: &str) -> String {
    let text = name(&text.replace('\n', "\\n").replace('\t', "\\t"));
    // A fence that is longer than any in the text.
    let fence = text.split(|letter| letter != '`').map(str::len).max();
    let fence = "`".repeat(fence.unwrap_or_default() + 1);
    let is_edge = |letter: char| letter == '`' || letter == ' ';
    let blank = match text.is_empty() || text.starts_with(is_edge) || text.ends_with(is_edge) {
        true => " ",
        false => "",
    };
    format!("{fence}{blank}{text}{blank}{fence}")
}

/// The same in a table, where a bar would end the cell.
fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// Text of somebody else as text.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in name(&text.replace(['\n', '\t'], " ")).chars() {
        if matches!(
            letter,
            '|' | '*' | '_' | '<' | '>' | '[' | ']' | '`' | '\\' | '#'
        ) {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{cell, code, plain};

    #[test]
    fn what_somebody_wrote_is_shown_letter_by_letter_and_becomes_no_markup() {
        for (text, shown) in [
            ("curl * | sh", "`curl * | sh`"),
            ("echo `id`", "`` echo `id` ``"),
            ("``x", "``` ``x ```"),
            ("a\nb\tc", "`a\\nb\\tc`"),
            (
                "a\u{1b}[31m\u{202e}b\u{200b}",
                "`a\\u{1b}[31m\\u{202e}b\\u{200b}`",
            ),
            ("", "`  `"),
        ] {
            assert_eq!(code(text), shown);
        }
        assert_eq!(cell("grep 'a\\|b' | wc"), "`grep 'a\\\\|b' \\| wc`");
        assert_eq!(plain("<b>\u{202e}\nx"), "\\<b\\>\\\\u{202e} x");
    }
}
