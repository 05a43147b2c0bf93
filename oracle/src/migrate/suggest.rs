//! The least that would have covered what was recorded.
//!
//! Every call that changed something needed capabilities on places. Candidates
//! are those places and the directories above them, inside the workspace. What
//! covers the most for its reach is taken first; then what has become
//! superfluous goes, and what is left is drawn as close around the places as it
//! can be. A place outside the workspace is named, and never suggested.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::replay::{Need, Wanted, shared};
use super::translate::{GRANT_SECONDS, ProposedGrant};

/// More grants than this are no suggestion but a list.
const GRANTS_MAX: usize = 64;

/// What is suggested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Suggestion {
    /// The grants, the one that frees the most calls first.
    pub grants: Vec<ProposedGrant>,
    /// Questions left with none of them, with the first, with the first two, ...
    pub curve: Vec<u64>,
    /// Places outside the workspace that calls changed, and how many did.
    pub outside: BTreeMap<String, u64>,
}

impl Suggestion {
    /// How many of the grants leave at most that share (in percent) of the questions.
    #[must_use]
    pub fn enough_for(&self, percent: u64) -> Option<usize> {
        let all = *self.curve.first()?;
        let left_max = all.saturating_mul(100 - percent.min(100)) / 100;
        self.curve.iter().position(|left| *left <= left_max)
    }
}

/// Whether a place is the directory or below it; both are below the workspace.
fn below(place: &str, directory: &str) -> bool {
    place
        .strip_prefix(directory)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a grant is enough for a need.
pub(super) fn covers(grant: &Need, need: &Need) -> bool {
    grant.verb == need.verb && below(&need.on, &grant.on)
}

fn inside(need: &Need) -> bool {
    need.on == "." || need.on.starts_with("./")
}

/// Suggests grants for what calls needed, each with the projects it is for.
#[must_use]
pub fn suggest(wanted: &Wanted) -> Suggestion {
    let mut suggestion = least_of(&wanted.calls);
    for grant in &mut suggestion.grants {
        let whole = Need {
            verb: grant.verb.clone(),
            on: grant.on.clone(),
        };
        let seen: BTreeSet<&String> = wanted
            .projects
            .iter()
            .filter(|(need, _)| covers(&whole, need))
            .flat_map(|(_, projects)| projects)
            .collect();
        grant.seen_in = seen.into_iter().cloned().collect();
    }
    suggestion
}

fn least_of(needs: &BTreeMap<Vec<Need>, u64>) -> Suggestion {
    let mut suggestion = Suggestion::default();
    let mut calls: Vec<(&[Need], u64)> = Vec::new();
    let mut total = 0_u64;
    for (wanted, count) in needs {
        total += count;
        for need in wanted.iter().filter(|need| !inside(need)) {
            let place = format!("{} on {}", need.verb, need.on);
            *suggestion.outside.entry(place).or_default() += count;
        }
        // A call that reaches outside is asked about whatever is granted inside.
        if wanted.iter().all(inside) {
            calls.push((wanted, *count));
        }
    }
    let chosen = narrowed(&least(choose(&calls), &calls), &calls);
    let left = |grants: &[Need]| {
        let freed: u64 = calls
            .iter()
            .filter(|(wanted, _)| free(wanted, grants))
            .map(|(_, count)| count)
            .sum();
        total - freed
    };
    // In the order in which each frees the most.
    let mut rest = chosen;
    let mut ordered: Vec<Need> = Vec::new();
    suggestion.curve.push(left(&[]));
    while !rest.is_empty() {
        let best = (0..rest.len())
            .min_by_key(|place| {
                let with: Vec<Need> = ordered.iter().chain(rest.get(*place)).cloned().collect();
                left(&with)
            })
            .unwrap_or_default();
        ordered.push(rest.remove(best));
        suggestion.curve.push(left(&ordered));
    }
    suggestion.grants = ordered
        .into_iter()
        .map(|need| ProposedGrant {
            verb: need.verb,
            on: need.on,
            seconds: GRANT_SECONDS,
            seen_in: Vec::new(),
        })
        .collect();
    suggestion
}

fn free(wanted: &[Need], grants: &[Need]) -> bool {
    wanted
        .iter()
        .all(|need| grants.iter().any(|grant| covers(grant, need)))
}

/// The places themselves and every directory above them.
fn candidates(calls: &[(&[Need], u64)]) -> BTreeSet<Need> {
    let mut all = BTreeSet::new();
    for need in calls.iter().flat_map(|(wanted, _)| wanted.iter()) {
        let mut place = need.on.as_str();
        loop {
            let candidate = Need {
                verb: need.verb.clone(),
                on: place.to_owned(),
            };
            if !all.insert(candidate) {
                break;
            }
            match place.rsplit_once('/') {
                Some((above, _)) => place = above,
                None => break,
            }
        }
    }
    all
}

/// Greedily: what covers the most of what is still uncovered, for its reach.
fn choose(calls: &[(&[Need], u64)]) -> Vec<Need> {
    let mut open: BTreeMap<&Need, u64> = BTreeMap::new();
    for (wanted, count) in calls {
        for need in *wanted {
            *open.entry(need).or_default() += count;
        }
    }
    let candidates = candidates(calls);
    let mut chosen = Vec::new();
    while !open.is_empty() && chosen.len() < GRANTS_MAX {
        let best = candidates.iter().max_by_key(|candidate| {
            let covered: u64 = open
                .iter()
                .filter(|(need, _)| covers(candidate, need))
                .map(|(_, count)| count)
                .sum();
            // Reach has its price: the whole workspace must be worth two of its
            // directories, and a directory more than one of its files.
            let depth = candidate.on.matches('/').count();
            let worth = covered.saturating_mul(depth.min(2) as u64 + 1);
            (worth, depth, std::cmp::Reverse((*candidate).clone()))
        });
        let Some(best) = best else {
            break;
        };
        open.retain(|need, _| !covers(best, need));
        chosen.push(best.clone());
    }
    chosen
}

/// Without those that no call needs.
fn least(mut chosen: Vec<Need>, calls: &[(&[Need], u64)]) -> Vec<Need> {
    let mut place = chosen.len();
    while let Some(last) = place.checked_sub(1) {
        place = last;
        let mut without = chosen.clone();
        without.remove(place);
        let as_good = calls
            .iter()
            .all(|(wanted, _)| free(wanted, &without) || !free(wanted, &chosen));
        if as_good {
            chosen = without;
        }
    }
    chosen
}

/// Each drawn down to the deepest directory that holds all it is needed for.
fn narrowed(chosen: &[Need], calls: &[(&[Need], u64)]) -> Vec<Need> {
    chosen
        .iter()
        .map(|grant| {
            let places = calls
                .iter()
                .flat_map(|(wanted, _)| wanted.iter())
                .filter(|need| covers(grant, need))
                .map(|need| need.on.as_str());
            let common = places.fold(None, |common: Option<String>, place| {
                Some(match common {
                    None => place.to_owned(),
                    Some(common) => shared(&common, place),
                })
            });
            Need {
                verb: grant.verb.clone(),
                on: common.unwrap_or_else(|| grant.on.clone()),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{Need, Suggestion, Wanted, covers, free, inside, least_of, suggest};

    fn need(verb: &str, on: &str) -> Need {
        Need {
            verb: verb.into(),
            on: on.into(),
        }
    }

    fn grants(suggestion: &Suggestion) -> Vec<Need> {
        suggestion
            .grants
            .iter()
            .map(|grant| need(&grant.verb, &grant.on))
            .collect()
    }

    #[test]
    fn one_directory_covers_its_files_and_nothing_above_is_taken() {
        let needs = BTreeMap::from([
            (vec![need("fs.create", "./src/a")], 5),
            (vec![need("fs.create", "./src/b")], 4),
            (vec![need("fs.modify", "./notes.md")], 3),
            (vec![need("fs.modify", "/etc/hosts")], 2),
        ]);
        let made = least_of(&needs);
        assert_eq!(
            grants(&made),
            [need("fs.create", "./src"), need("fs.modify", "./notes.md")]
        );
        assert_eq!(made.curve, [14, 5, 2]);
        assert_eq!(
            made.outside,
            BTreeMap::from([("fs.modify on /etc/hosts".into(), 2)])
        );
        assert_eq!(made.enough_for(80), Some(2));
        assert_eq!(made.enough_for(95), None);
    }

    #[test]
    fn a_suggested_grant_names_the_projects_it_was_needed_in() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let wanted = Wanted {
            calls: BTreeMap::from([
                (vec![need("fs.create", "./src/a")], 5),
                (vec![need("fs.create", "./src/b")], 4),
                (vec![need("fs.modify", "./notes.md")], 3),
            ]),
            projects: BTreeMap::from([
                (need("fs.create", "./src/a"), set(&["/p", "/q"])),
                (need("fs.create", "./src/b"), set(&["/r"])),
                (need("fs.modify", "./notes.md"), set(&["/q"])),
            ]),
        };
        let made = suggest(&wanted);
        let seen: Vec<_> = made
            .grants
            .iter()
            .map(|grant| (grant.on.as_str(), grant.seen_in.join(" ")))
            .collect();
        assert_eq!(
            seen,
            [
                ("./src", "/p /q /r".to_owned()),
                ("./notes.md", "/q".to_owned())
            ]
        );
    }

    fn any_needs() -> impl Strategy<Value = BTreeMap<Vec<Need>, u64>> {
        let one = ("fs\\.(create|delete)", "(\\.|/etc)(/[ab]){0,3}")
            .prop_map(|(verb, on)| need(&verb, &on));
        let call = prop::collection::btree_set(one, 1..4).prop_map(|set| set.into_iter().collect());
        prop::collection::btree_map(call, 1_u64..9, 0..8)
    }

    proptest! {
        #[test]
        fn all_inside_is_covered_nothing_is_superfluous_and_the_curve_falls(needs in any_needs()) {
            let made = least_of(&needs);
            let grants = grants(&made);
            let calls: Vec<&Vec<Need>> = needs.keys().filter(|call| call.iter().all(inside)).collect();
            for call in &calls {
                prop_assert!(free(call, &grants));
            }
            for place in 0..grants.len() {
                let mut without = grants.clone();
                let gone = without.remove(place);
                prop_assert!(calls.iter().any(|call| !free(call, &without)));
                // As close as it can be: no directory below it would do.
                let used: Vec<_> = calls.iter().flat_map(|call| call.iter()).filter(|need| covers(&gone, need)).collect();
                let deeper = used.iter().all(|need| need.on.starts_with(&format!("{}/a", gone.on)));
                prop_assert!(!deeper || used.is_empty());
            }
            prop_assert!(grants.iter().all(inside));
            prop_assert!(made.curve.windows(2).all(|pair| pair[0] >= pair[1]));
            prop_assert_eq!(made.curve.len(), grants.len() + 1);
        }
    }

    #[test]
    fn a_grant_is_for_its_place_and_what_lies_below_and_for_no_other_of_a_like_name() {
        let grant = need("fs.modify", "./notes");
        for (verb, place, is_covered) in [
            ("fs.modify", "./notes", true),
            ("fs.modify", "./notes/a.md", true),
            ("fs.modify", "./notes2", false),
            ("fs.modify", "./notes.md", false),
            ("fs.modify", "./no", false),
            ("fs.modify", ".", false),
            ("fs.delete", "./notes", false),
        ] {
            let wanted = need(verb, place);
            assert_eq!(covers(&grant, &wanted), is_covered, "{wanted:?}");
        }
    }
}
