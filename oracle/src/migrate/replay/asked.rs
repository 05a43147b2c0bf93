//! Why the agent would ask or refuse, and the grant that each reason comes down to.
//!
//! Calls are alike when the same verbs are missing in the same directories. The
//! grant of a reason is drawn as close around the places as it can be; whether it
//! really lets such a call through is for a replay to say, never for this file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fate::{Need, Outcome, shared};

/// A directory above fewer names than this is too much to be named in one grant
/// outside the workspace: `/home/u` is somebody's all.
const OUTSIDE_DEPTH_MIN: usize = 3;

/// A reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Asked {
    /// The missing capabilities, or the agent's code.
    pub reason: String,
    /// Calls that are asked about for it.
    pub calls: u64,
    /// What would let them through; nothing, where no grant is what is missing.
    pub grants: Vec<Need>,
    /// Whether that was seen.
    pub proof: Proof,
    /// What was seen instead.
    pub why: String,
}

/// What a replay under the grants of a reason came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// The call runs.
    Proven,
    /// It is not asked about, and does something else than under Hermes.
    OtherResult,
    /// It is asked about or refused all the same.
    StillAsks,
    /// No grant is what is missing.
    NoGrant,
    /// The agent did what the grant does not cover. This must not happen.
    Unsafe,
    /// It was not replayed again.
    #[default]
    NotTried,
}

impl Proof {
    /// For people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Proven => "proven: it runs",
            Self::OtherResult => "not enough: it runs and does something else",
            Self::StillAsks => "not enough",
            Self::NoGrant => "no grant is what is missing",
            Self::Unsafe => "unsafe: it does what the grant does not cover",
            Self::NotTried => "not tried",
        }
    }
}

/// Why a call is asked about, the same for calls that are alike.
#[must_use]
pub fn reason(outcome: &Outcome) -> String {
    let by = match outcome.tool.as_str() {
        "terminal" | "execute_code" => "a command",
        tool => tool,
    };
    let labels: Vec<String> = drawn(wanted(outcome)).into_keys().collect();
    let labels = labels.join(", ");
    if !outcome.missing.is_empty() {
        return format!("{labels}, by {by}");
    }
    let code = match outcome.code.as_str() {
        "" => "the agent asks about it".to_owned(),
        code => format!("the agent\u{2019}s reason `{code}`"),
    };
    if labels.is_empty() {
        format!("{code}, by {by}")
    } else {
        format!("{code} in spite of a grant ({labels}), by {by}")
    }
}

/// What a grant would have to be on: what is missing, else what the call does
/// under a grant that was not enough.
fn wanted(outcome: &Outcome) -> &[Need] {
    if outcome.missing.is_empty() {
        &outcome.needs
    } else {
        &outcome.missing
    }
}

/// The missing capabilities with their places drawn together, by what they are called.
fn drawn(missing: &[Need]) -> BTreeMap<String, Need> {
    let mut groups: BTreeMap<(&str, bool), Vec<&Need>> = BTreeMap::new();
    for need in missing {
        let inside = need.on.starts_with('.');
        groups.entry((&need.verb, inside)).or_default().push(need);
    }
    let mut all = BTreeMap::new();
    for ((verb, inside), needs) in groups {
        let together = needs
            .iter()
            .map(|need| need.on.clone())
            .reduce(|one, two| shared(&one, &two))
            .unwrap_or_default();
        let names = together.split('/').filter(|name| !name.is_empty()).count();
        if needs.len() > 1 && (inside || names >= OUTSIDE_DEPTH_MIN) {
            let label = format!("{verb} in {together}");
            fold(&mut all, label, verb, &together);
            continue;
        }
        for need in needs {
            let folder = need.on.rsplit_once('/').map_or(".", |(folder, _)| folder);
            let folder = if folder.is_empty() { "/" } else { folder };
            fold(&mut all, format!("{verb} in {folder}"), verb, &need.on);
        }
    }
    all
}

fn fold(all: &mut BTreeMap<String, Need>, label: String, verb: &str, on: &str) {
    all.entry(label)
        .and_modify(|known| known.on = shared(&known.on, on))
        .or_insert_with(|| Need {
            verb: verb.to_owned(),
            on: on.to_owned(),
        });
}

/// Adds up reasons.
#[derive(Default)]
pub(super) struct Reasons(BTreeMap<String, (u64, BTreeMap<String, Need>)>);

impl Reasons {
    /// More are one: a list that long says nothing.
    const MAX: usize = 1_000;

    /// Adds a call that is asked about.
    pub(super) fn add(&mut self, outcome: &Outcome) {
        let mut reason = reason(outcome);
        if self.0.len() >= Self::MAX && !self.0.contains_key(&reason) {
            reason = "one of many more".to_owned();
            self.0.entry(reason).or_default().0 += 1;
            return;
        }
        let (calls, places) = self.0.entry(reason).or_default();
        *calls += 1;
        for (label, need) in drawn(wanted(outcome)) {
            let (verb, on) = (need.verb, need.on);
            fold(places, label, &verb, &on);
        }
    }

    /// The reasons, the one with the most calls first.
    pub(super) fn finish(self) -> Vec<Asked> {
        let mut all: Vec<Asked> = self
            .0
            .into_iter()
            .map(|(reason, (calls, places))| Asked {
                reason,
                calls,
                proof: if places.is_empty() {
                    Proof::NoGrant
                } else {
                    Proof::NotTried
                },
                grants: places.into_values().collect(),
                why: String::new(),
            })
            .collect();
        all.sort_by(|one, two| (two.calls, &one.reason).cmp(&(one.calls, &two.reason)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::{Proof, Reasons, reason};
    use crate::migrate::replay::{Class, Need, Outcome};

    fn outcome(missing: &[(&str, &str)]) -> Outcome {
        let missing: Vec<Need> = missing
            .iter()
            .map(|(verb, on)| Need {
                verb: (*verb).into(),
                on: (*on).into(),
            })
            .collect();
        Outcome {
            class: Class::Stricter,
            tool: "terminal".into(),
            call: String::new(),
            why: String::new(),
            needs: missing.clone(),
            missing,
            code: String::new(),
            is_known: false,
        }
    }

    #[test]
    fn calls_with_the_same_reason_share_a_grant_drawn_close_around_their_places() {
        let mut reasons = Reasons::default();
        for file in ["/srv/data/x/a", "/srv/data/x/b"] {
            reasons.add(&outcome(&[("fs.create", file)]));
        }
        reasons.add(&outcome(&[("fs.create", "/home/u/one")]));
        reasons.add(&outcome(&[
            ("fs.delete", "./build"),
            ("fs.delete", "./build/a"),
        ]));
        reasons.add(&outcome(&[]));
        let all = reasons.finish();
        let said: Vec<(&str, u64, Vec<&str>)> = all
            .iter()
            .map(|one| {
                let on = one.grants.iter().map(|grant| grant.on.as_str());
                (one.reason.as_str(), one.calls, on.collect())
            })
            .collect();
        assert_eq!(
            said,
            [
                (
                    "fs.create in /srv/data/x, by a command",
                    2,
                    vec!["/srv/data/x"]
                ),
                ("fs.create in /home/u, by a command", 1, vec!["/home/u/one"]),
                ("fs.delete in ./build, by a command", 1, vec!["./build"]),
                ("the agent asks about it, by a command", 1, vec![]),
            ]
        );
        assert_eq!(all[3].proof, Proof::NoGrant);
        assert_eq!(all[0].proof, Proof::NotTried);
    }

    #[test]
    fn places_far_apart_are_not_drawn_into_everything() {
        let far = outcome(&[("fs.create", "/etc/a"), ("fs.create", "/home/u/b")]);
        assert_eq!(
            reason(&far),
            "fs.create in /etc, fs.create in /home/u, by a command"
        );
    }
}
