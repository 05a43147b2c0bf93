//! One page with everything a run saw, for a browser without a network.
//!
//! The page is one file. What cases hold is hostile text, so it never becomes
//! markup: it travels packed (gzip, then base64) and the script only ever sets
//! it as text. The table of suites is written here, so that a reader without
//! scripts has it too.

mod case;
mod pack;
mod table;

pub(crate) use table::text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::case::Case;
use crate::exit::{self, Unwritten};
use crate::known::Catalogue;
use crate::report::history::Entry;
use crate::result::{CaseResult, Summary};
use crate::suite::Suites;
use crate::verdict::{KINDS, Kind};

const FRAME: &str = include_str!("html/page.html");
/// How a page of this program looks.
pub(crate) const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = concat!(
    include_str!("html/words.js"),
    include_str!("html/case.js"),
    include_str!("html/plots.js"),
    include_str!("html/page.js"),
);
/// The page inside its directory.
pub const FILE: &str = "index.html";

/// What a page is made from.
#[derive(Clone, Copy, Debug)]
pub struct Page<'p> {
    /// `YYYY-MM-DD`.
    pub made: &'p str,
    /// The run.
    pub summary: &'p Summary,
    /// Its cases.
    pub results: &'p [CaseResult],
    /// What the cases are, and what the named differences say.
    pub vectors: (&'p Suites, &'p Catalogue),
    /// Earlier runs, oldest first.
    pub history: &'p [Entry],
    /// Campaigns to show beside it.
    pub campaigns: &'p [Value],
}

/// Writes the page into a directory; its path.
///
/// # Errors
/// The directory or the file cannot be written.
pub fn write(page: &Page<'_>, place: &Path) -> Result<PathBuf, Unwritten> {
    let text = render(page).map_err(|message| Unwritten {
        message,
        code: exit::INTERNAL,
    })?;
    let path = place.join(FILE);
    std::fs::create_dir_all(place)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|error| {
            let cannot = format!("cannot write `{}`", path.display());
            Unwritten::new(&cannot, &error, "directory with --html")
        })?;
    Ok(path)
}

/// The page's text.
///
/// # Errors
/// Something in the results is not JSON.
pub fn render(page: &Page<'_>) -> Result<String, String> {
    let (suites, catalogue) = page.vectors;
    let cases: BTreeMap<&str, &Case> = suites
        .cases
        .iter()
        .map(|case| (case.id.as_str(), case))
        .collect();
    let mut packs: BTreeMap<&str, BTreeMap<&str, Value>> = BTreeMap::new();
    let mut rows = Vec::new();
    for result in page.results {
        let kind = KINDS.iter().position(|kind| *kind == result.verdict.kind);
        rows.push(json!([
            result.id,
            result.suite,
            kind,
            result.label,
            result.explained_by,
            // Why is looked for where something is wrong.
            (!result.verdict.kind.passes()).then_some(&result.verdict.why),
        ]));
        packs.entry(&result.suite).or_default().insert(
            &result.id,
            case::tell(cases.get(result.id.as_str()).copied(), result),
        );
    }
    let packed: BTreeMap<&str, Value> = packs
        .iter()
        .map(|(name, cases)| {
            let about = suites.descriptions.get(*name);
            Ok((*name, json!({ "about": about, "pack": pack::pack(cases)? })))
        })
        .collect::<Result<_, String>>()?;
    let kinds: Vec<Value> = KINDS
        .iter()
        .map(|kind| {
            json!({
                "word": kind.word(),
                "class": table::class(*kind),
                "passes": kind.passes(),
            })
        })
        .collect();
    let used = |id: &String| page.results.iter().any(|r| r.explained_by.contains(id));
    let named: BTreeMap<&str, [&str; 3]> = catalogue
        .entries
        .iter()
        .filter(|entry| used(&entry.id))
        .map(|entry| {
            let told = [&entry.justification, &entry.owner, &entry.review_by];
            (entry.id.as_str(), told.map(String::as_str))
        })
        .collect();
    let data = pack::pack(&json!({
        "kinds": kinds,
        "suites": packed,
        "named": named,
        "rows": rows,
        "history": page.history,
        "again": page.summary.again,
        "campaigns": page.campaigns,
    }))?;
    // Nothing of the frame is ever searched again once hostile text is in it.
    let mut out = String::with_capacity(data.len() + 64 * 1024);
    let mut rest = FRAME;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let (name, after) = after
            .split_once("}}")
            .ok_or("the page's frame has an open field")?;
        match name {
            "style" => out.push_str(STYLE),
            "script" => out.push_str(SCRIPT),
            "data" => out.push_str(&data),
            "title" => table::text(&mut out, &title(page)),
            "headline" => table::text(&mut out, &headline(page)),
            "facts" => table::facts(&mut out, page),
            "state" => table::text(&mut out, state(page.summary).0),
            "state-class" => out.push_str(state(page.summary).1),
            "verdicts" => table::verdicts(&mut out, page.summary),
            "suites" => table::suites(&mut out, page.summary),
            other => return Err(format!("the page's frame has a field `{other}`")),
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn title(page: &Page<'_>) -> String {
    let fails = if page.summary.exit == 0 {
        ""
    } else {
        "fails: "
    };
    format!("{fails}hermitcrab and Hermes {}", page.summary.hermes)
}

/// What became of the run, and its colour.
fn state(summary: &Summary) -> (&'static str, &'static str) {
    match summary.exit {
        _ if summary.ran == 0 => ("nothing ran", "open"),
        crate::exit::CONFORM => ("conforms", "same"),
        crate::exit::UNSAFE => ("unsafe", "unsafe"),
        _ => ("does not conform", "fail"),
    }
}

/// What somebody who opens the page wants to know first: whether it conforms, and if not, why.
fn headline(page: &Page<'_>) -> String {
    let summary = page.summary;
    if summary.exit == 0 && summary.ran == 0 {
        return "no case ran, so nothing is known".to_owned();
    }
    if summary.exit == 0 {
        return summary
            .headline
            .sentence(&summary.hermes)
            .unwrap_or_else(|| "every case that ran conforms".to_owned());
    }
    let cases = |wanted: fn(Kind) -> bool| summary.count(wanted);
    let reasons = [
        (cases(Kind::is_unsafe), "in which the agent is unsafe"),
        (
            cases(|kind| matches!(kind, Kind::Different | Kind::StricterUnnamed)),
            "that nobody has explained",
        ),
        (
            cases(|kind| kind == Kind::Inconclusive),
            "without a verdict",
        ),
        (summary.not_run.values().sum(), "that did not run"),
    ];
    let mut told: Vec<String> = reasons
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", super::table::cases(count)))
        .collect();
    match summary.faults.len() {
        0 => {}
        1 => told.push("1 fault of the catalogue".to_owned()),
        count => told.push(format!("{count} faults of the catalogue")),
    }
    format!("it does not conform: {}", told.join(", "))
}

#[cfg(test)]
mod browser;
#[cfg(test)]
pub(crate) mod tests;
