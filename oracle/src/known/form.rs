//! What is wrong with a catalogue before anything runs: its form, its dates against today, and
//! words in it that nothing goes by.
//!
//! A word of a scope that is mistyped makes an entry explain less than was meant, or, where it
//! was to leave something out, more.

use std::borrow::Cow;
use std::collections::BTreeSet;

use hermitcrab::config::keys::nearest;

use super::{Catalogue, Entry, Fault};
use crate::case::Case;
use crate::glob::glob;
use crate::observation::Class;
use crate::relation::what;

/// What is wrong with a catalogue on its own: form, and dates against today, where one is given.
#[must_use]
pub fn lint(catalogue: &Catalogue, today: Option<&str>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut ids = BTreeSet::new();
    for entry in &catalogue.entries {
        let mut fault = |kind: &'static str, why: &str| {
            faults.push(Fault {
                entry: entry.id.clone(),
                kind: Cow::Borrowed(kind),
                why: why.to_owned(),
            });
        };
        if !ids.insert(&entry.id) {
            fault("malformed", "the id is used twice");
        }
        for (name, text) in [
            ("id", &entry.id),
            ("justification", &entry.justification),
            ("owner", &entry.owner),
        ] {
            if text.trim().is_empty() {
                fault("malformed", &format!("`{name}` is empty"));
            }
        }
        if entry.versions.is_empty() || entry.fingerprints.is_empty() {
            fault(
                "malformed",
                "`versions` and `fingerprints` need at least one value",
            );
        }
        if entry.witness.matches.is_empty() || entry.witness.nomatch.is_empty() {
            fault(
                "malformed",
                "`witness` needs at least one case in `match` and one in `nomatch`",
            );
        }
        dates(entry, today, &mut fault);
    }
    faults
}

fn dates(entry: &Entry, today: Option<&str>, fault: &mut dyn FnMut(&'static str, &str)) {
    let mut are_dates = true;
    for (name, text) in [("opened", &entry.opened), ("review_by", &entry.review_by)] {
        if !is_date(text) {
            are_dates = false;
            fault(
                "malformed",
                &format!("`{name}` is `{text}`, which is no day; days are written YYYY-MM-DD"),
            );
        }
    }
    let Some(today) = today.filter(|_| are_dates) else {
        return;
    };
    let review_by = entry.review_by.as_str();
    if review_by < today {
        fault(
            "expired",
            &format!(
                "was to be reviewed by {review_by}; if its reason still holds, set a later `review_by`, otherwise delete it"
            ),
        );
    } else if a_year_after(today).is_some_and(|year| review_by > year.as_str()) {
        fault(
            "malformed",
            &format!(
                "is to be reviewed by {review_by} only; an entry is looked at again within a year"
            ),
        );
    }
    if entry.opened.as_str() > today {
        fault(
            "malformed",
            &format!("was opened on {}, which is still to come", entry.opened),
        );
    }
}

/// The entries whose day is still to come and no more than a month away, and what to say of them:
/// a gate that fails from one day to the next should not be the first to tell.
#[must_use]
pub fn due(catalogue: &Catalogue, today: &str) -> Option<String> {
    const NAMED_MAX: usize = 3;
    let month = a_month_after(today)?;
    let is_due = |entry: &&Entry| {
        let by = entry.review_by.as_str();
        is_date(by) && today <= by && by <= month.as_str()
    };
    let due: Vec<&Entry> = catalogue.entries.iter().filter(is_due).collect();
    let first = due.iter().map(|entry| entry.review_by.as_str()).min()?;
    let named = due.iter().take(NAMED_MAX).map(|entry| entry.id.as_str());
    let mut named = named.collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = due.len().checked_sub(NAMED_MAX) {
        named.push_str(&format!(" and {more} more"));
    }
    Some(format!(
        "known differences to be reviewed within a month, the first by {first}, after which the run fails: {named}"
    ))
}

/// The day of the next month that has the name of this one, for comparing.
fn a_month_after(day: &str) -> Option<String> {
    let (year, rest) = day.split_at_checked(4)?;
    let year: u32 = year.parse().ok()?;
    let month: u32 = rest.get(1..3)?.parse().ok()?;
    let day = rest.get(3..)?;
    Some(match month {
        12 => format!("{:04}-01{day}", year + 1),
        month => format!("{year:04}-{:02}{day}", month + 1),
    })
}

/// Whether a text is a day of the calendar, written YYYY-MM-DD.
fn is_date(text: &str) -> bool {
    let has_form = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    let number = |from: usize, to: usize| text.get(from..to).and_then(|part| part.parse().ok());
    let (Some(year), Some(month), Some(day)) = (number(0, 4), number(5, 7), number(8, 10)) else {
        return false;
    };
    has_form && (1..=days_of(year, month)).contains(&day)
}

fn days_of(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => 0,
    }
}

/// The day of the next year that has the name of this one, for comparing.
fn a_year_after(day: &str) -> Option<String> {
    let (year, rest) = day.split_at_checked(4)?;
    let year: u32 = year.parse().ok()?;
    Some(format!("{:04}{rest}", year + 1))
}

/// What entries name that is none of these cases, of what they are made of, or of these
/// releases.
#[must_use]
pub fn strangers(catalogue: &Catalogue, cases: &[Case], releases: &[&str]) -> Vec<Fault> {
    let known = Known::of(cases);
    let mut faults = Vec::new();
    for entry in &catalogue.entries {
        let mut fault = |what: &str, word: &str, is: &str, meant: Option<&str>| {
            let meant =
                meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
            faults.push(Fault {
                entry: entry.id.clone(),
                kind: Cow::Borrowed("malformed"),
                why: format!("{what} names `{word}`, which {is}{meant}"),
            });
        };
        let scope = &entry.scope;
        // Flags are named; of everything else `*` may stand for a part.
        let is_named: fn(&str, &str) -> bool = |word, flag| word == flag;
        for (what, words, there, fits, is) in [
            (
                "scope.suites",
                &scope.suites,
                &known.suites,
                glob as fn(&str, &str) -> bool,
                "is no suite",
            ),
            (
                "scope.flags",
                &scope.flags,
                &known.flags,
                is_named,
                "no case has",
            ),
            (
                "scope.without_flags",
                &scope.without_flags,
                &known.flags,
                is_named,
                "no case has",
            ),
            ("scope.cases", &scope.cases, &known.ids, glob, "is no case"),
            (
                "scope.contexts",
                &scope.contexts,
                &known.contexts,
                glob,
                "no case runs in",
            ),
            (
                "scope.steps",
                &scope.steps,
                &known.steps,
                glob,
                "is a step of no case",
            ),
        ] {
            let is_there = |word: &&String| there.iter().any(|one| fits(word, one));
            for word in words.iter().filter(|word| !is_there(word)) {
                fault(
                    what,
                    word,
                    is,
                    nearest(word, there.iter().map(String::as_str)),
                );
            }
        }
        for (what, words) in [
            ("scope.hermes", &scope.hermes),
            ("scope.agent", &scope.agent),
        ] {
            for word in words.iter().filter(|word| !begins_with_a_class(word)) {
                fault(what, word, "begins with nothing a step comes to", None);
            }
        }
        for release in entry
            .versions
            .iter()
            .filter(|one| !releases.contains(&one.as_str()))
        {
            let is = "is no release that can be compared with";
            fault(
                "versions",
                release,
                is,
                nearest(release, releases.iter().copied()),
            );
        }
    }
    faults
}

/// What cases are made of.
#[derive(Default)]
struct Known {
    suites: BTreeSet<String>,
    flags: BTreeSet<String>,
    ids: BTreeSet<String>,
    contexts: BTreeSet<String>,
    steps: BTreeSet<String>,
}

impl Known {
    fn of(cases: &[Case]) -> Self {
        let mut known = Self {
            contexts: bisim_world::protocol::Context::ALL
                .iter()
                .map(|context| context.word().to_owned())
                .collect(),
            ..Self::default()
        };
        for case in cases {
            known.suites.insert(case.suite.clone());
            known.flags.extend(case.flags.iter().cloned());
            known.ids.insert(case.id.clone());
            known.steps.extend(case.job.script.iter().map(what));
        }
        known
    }
}

/// Whether one side of a fingerprint begins with what a step can come to.
fn begins_with_a_class(side: &str) -> bool {
    let word = side.split([':', '+', '*']).next().unwrap_or_default();
    let is_part = side
        .get(word.len()..)
        .is_some_and(|rest| rest.starts_with('*'));
    Class::ALL.iter().any(|class| match is_part {
        true => class.word().starts_with(word),
        false => class.word() == word,
    })
}
