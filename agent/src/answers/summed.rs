//! The sum of a question that is longer than a screen: how much it is, and where.
//!
//! All of it stands above. Who builds something reads hundreds of names in one directory
//! and has to find the two that lie elsewhere; the sum, beside the question, names them.

use std::collections::BTreeMap;

use hermitcrab_core::{
    authority::Verb,
    standing::{PortableCap, PortableObject},
};

use super::count;
use crate::{ports::Prompt, text::visible::named};

/// Lines a person sees at once; what is longer is summed up below.
const LINES_AT_ONCE: usize = 30;
/// So many places are named; of more, those with the fewest names.
const PLACES_MAX: usize = 6;

/// Where what is shown is longer than a screen: how much it is, in lines that
/// stand beside the question. One long line takes as many `rows` as many short ones.
#[must_use]
pub fn in_all(prompt: &Prompt<'_>, rows: usize) -> Option<String> {
    let lines = prompt.shown.trim_end().lines().count();
    let changes: Vec<String> = [
        (Verb::FsCreate, "created"),
        (Verb::FsModify, "changed"),
        (Verb::FsDelete, "deleted"),
    ]
    .into_iter()
    .map(|(verb, word)| (count(prompt, verb), word))
    .filter(|(number, _)| *number > 0)
    .map(|(number, word)| format!("{number} {word}"))
    .collect();
    let long = match rows > lines {
        true => format!("{lines} lines in {rows} rows"),
        false => format!("{lines} lines"),
    };
    let places = places(prompt.portable)
        .map(|places| format!("\nof these, {places}"))
        .unwrap_or_default();
    (rows.max(lines) > LINES_AT_ONCE && !changes.is_empty()).then(|| {
        format!(
            "{long}; files and directories: {}{places}",
            changes.join(", ")
        )
    })
}

/// How many names lie where, below the directory that all of them share; `None` for a
/// single name, and if something is no file.
fn places(caps: &[Option<PortableCap>]) -> Option<String> {
    let mut names: Vec<Vec<&[u8]>> = Vec::new();
    for cap in caps {
        let PortableObject::Place(place) = cap.as_ref()?.object() else {
            return None;
        };
        names.push(place.components().collect());
    }
    names.sort_unstable();
    names.dedup();
    let (first, last) = (names.first()?, names.last()?);
    let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    // How many names, and whether the first is all of it: a file, or an empty directory.
    let mut parts: BTreeMap<&[u8], (usize, bool)> = BTreeMap::new();
    for name in &names {
        let Some(part) = name.get(shared) else {
            continue;
        };
        let (number, is_alone) = parts.entry(part).or_insert((0, true));
        *number += 1;
        *is_alone &= name.len() == shared + 1;
    }
    if parts.len() < 2 {
        return None;
    }
    let mut parts: Vec<(usize, bool, &[u8])> = parts
        .into_iter()
        .map(|(part, (number, is_alone))| (number, is_alone, part))
        .collect();
    parts.sort_by_key(|(number, _, part)| (*number, *part));
    let more = parts.len().saturating_sub(PLACES_MAX);
    let mut told: Vec<String> = parts
        .iter()
        .take(PLACES_MAX)
        .map(|(number, is_alone, part)| {
            let part = named(&String::from_utf8_lossy(part));
            match is_alone {
                true => part,
                false => format!("{number} in {part}"),
            }
        })
        .collect();
    if more > 0 {
        let rest: usize = parts.iter().skip(PLACES_MAX).map(|(n, ..)| n).sum();
        told.push(format!("{rest} in {more} more places"));
    }
    let above = first.get(..shared).unwrap_or_default().join(&b'/');
    let above = named(&format!("/{}", String::from_utf8_lossy(&above)));
    Some(format!("in {above}: {}", told.join(", ")))
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::path::RelPath;

    use super::*;

    fn of(asked: &[&str]) -> Option<String> {
        let cap = |place: &&str| {
            let place = RelPath::parse(place.as_bytes()).unwrap();
            Some(PortableCap::new(Verb::FsCreate, PortableObject::Place(place)).unwrap())
        };
        places(&asked.iter().map(cap).collect::<Vec<_>>())
    }

    #[test]
    fn the_few_elsewhere_are_named_before_the_many() {
        let built: Vec<String> = (0..40).map(|n| format!("w/target/o{n}")).collect();
        let mut asked: Vec<&str> = built.iter().map(String::as_str).collect();
        asked.extend(["w/target", "w/Cargo.lock", "w/src/a.rs", "w/src/b/c.rs"]);
        let told = of(&asked);
        assert_eq!(
            told.as_deref(),
            Some("in /w: Cargo.lock, 2 in src, 41 in target")
        );
        // A name asked about twice, as where it is made and changed, is one name.
        asked.push("w/Cargo.lock");
        assert_eq!(of(&asked), told);
    }

    #[test]
    fn of_many_places_those_with_the_fewest_names_are_told() {
        let mut asked: Vec<String> = (0..8).map(|n| format!("w/d{n}/x")).collect();
        asked.push("w/d7/y".to_owned());
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let told = of(&asked).unwrap();
        assert!(told.contains("1 in d0, 1 in d1"), "{told}");
        assert!(told.ends_with("3 in 2 more places"), "{told}");
    }

    #[test]
    fn one_place_or_what_is_no_file_is_told_nowhere() {
        assert_eq!(of(&["w/out", "w/out/x"]), None);
        assert_eq!(of(&["w/x"]), None);
        assert_eq!(of(&[]), None);
        assert_eq!(places(&[None]), None);
    }

    #[test]
    fn a_name_reads_like_nothing_else() {
        let told = of(&["w/a, 9 in b", "w/\u{1b}[2J"]).unwrap();
        assert!(told.contains("\"a, 9 in b\""), "{told}");
        assert!(!told.contains('\u{1b}'), "{told}");
    }
}
