//! Under which terms the recorded calls are run: what the translation proposes.
//!
//! The same for both subjects: a grant is a capability for the agent and, where
//! Hermes has something like it, an approval there. They must never hold more
//! than was proposed, but for the grants that are tried out.

use bisim_world::protocol::{Decision, Held, Rule};
use serde_json::{Map, Value, json};

use super::fate::Need;
use super::place::WORK;
use crate::migrate::settings::Settings;
use crate::migrate::translate::{About, GRANT_SECONDS, Proposal, ProposedDenial};

/// A place of the workspace (`./src`) or elsewhere, as a world has it.
fn in_world(place: &str) -> String {
    place
        .strip_prefix('.')
        .map_or_else(|| place.to_owned(), |below| format!("{WORK}{below}"))
}

/// Under which terms the calls are run: what the translation proposes.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    settings: Map<String, Value>,
    held: Vec<Held>,
    rules: Vec<Rule>,
    smart: bool,
}

impl Terms {
    /// The proposals as if the user had taken them all.
    #[must_use]
    pub fn new(settings: &Settings, proposals: &[Proposal]) -> Self {
        let mut map = Map::new();
        let mode = match settings.mode.as_deref() {
            Some("off") => "off",
            // A judge's model is not there; without one Hermes asks.
            Some(_) | None => "manual",
        };
        map.insert("approvals.mode".to_owned(), mode.into());
        map.insert("approvals.deny".to_owned(), settings.deny.clone().into());
        if let Some(mode) = &settings.cron_mode {
            map.insert("approvals.cron_mode".to_owned(), mode.as_str().into());
        }
        let held = proposals.iter().flat_map(held).collect();
        Self {
            settings: map,
            held,
            rules: rules(proposals),
            smart: matches!(settings.mode.as_deref(), Some("smart") | None),
        }
    }

    /// The same, and these grants besides.
    #[must_use]
    pub fn with(&self, grants: &[Need]) -> Self {
        let mut more = self.clone();
        more.held
            .extend(grants.iter().enumerate().map(|(place, grant)| Held {
                id: format!("tried-{place}"),
                verb: grant.verb.clone(),
                on: in_world(&grant.on),
                uses: None,
                seconds: Some(GRANT_SECONDS),
                holder: None,
                hermes: None,
            }));
        more
    }

    /// Tells terms apart, so that what was run under others is not taken for these.
    #[must_use]
    pub fn name(&self) -> String {
        json!([self.settings, self.held, self.rules]).to_string()
    }

    pub(super) fn held(&self) -> &[Held] {
        &self.held
    }

    pub(super) fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub(super) const fn settings(&self) -> &Map<String, Value> {
        &self.settings
    }

    /// Whether a model would judge what looks dangerous before the user is asked.
    pub(super) const fn is_smart(&self) -> bool {
        self.smart
    }

    /// Whether the grants cover a need.
    pub(super) fn covers(&self, need: &Need) -> bool {
        let path = in_world(&need.on);
        self.held
            .iter()
            .any(|held| held.verb == need.verb && crate::holdings::below(&path, &held.on))
    }
}

fn rules(proposals: &[Proposal]) -> Vec<Rule> {
    let denials = |proposal: &Proposal| {
        let rule = |denial: &ProposedDenial| {
            let mut rule = Rule {
                id: proposal.id.clone(),
                decision: Decision::Deny,
                verbs: denial.verbs.clone(),
                on: None,
                named: None,
                host: None,
            };
            match &denial.about {
                About::On(place) => rule.on = Some(place.clone()),
                About::Named(name) => rule.named = Some(name.clone()),
                About::Host(host) => rule.host = Some(host.clone()),
            }
            rule
        };
        proposal.denials.iter().map(rule).collect::<Vec<_>>()
    };
    proposals.iter().flat_map(denials).collect()
}

/// A proposal as both subjects hold it.
fn held(proposal: &Proposal) -> Vec<Held> {
    let mut all: Vec<Held> = proposal
        .grants
        .iter()
        .enumerate()
        .map(|(place, grant)| Held {
            id: format!("{}-{place}", proposal.id),
            verb: grant.verb.clone(),
            on: in_world(&grant.on),
            uses: None,
            seconds: Some(grant.seconds),
            holder: None,
            hermes: None,
        })
        .collect();
    if proposal.standing.is_some() && all.is_empty() {
        // Something the agent holds anyway, to carry what Hermes was told.
        all.push(Held {
            id: format!("{}-standing", proposal.id),
            verb: "fs.list".to_owned(),
            on: WORK.to_owned(),
            uses: None,
            seconds: None,
            holder: None,
            hermes: None,
        });
    }
    if let Some(first) = all.first_mut() {
        first.hermes.clone_from(&proposal.standing);
    }
    all
}
