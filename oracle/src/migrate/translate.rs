//! What Hermes was told to let through or to stop, in capabilities.
//!
//! Hermes keeps classes of spelling: one "always" lets a whole class of commands
//! through, in every session, for ever. Here it becomes a proposal: a grant on the
//! workspace that ends, or a denial, or the reason why there is nothing to say.
//! Nothing is granted by translating; a proposal counts when the user has put it
//! into the configuration.

mod allowed;
mod denied;
mod models;
mod modes;
mod rest;
mod servers;

use serde::{Deserialize, Serialize};

pub use self::models::ProposedModel;
pub use self::servers::ProposedServer;
use super::settings::Settings;

/// A proposed grant lasts a working day, and ends with its session before that.
pub const GRANT_SECONDS: u64 = 12 * 60 * 60;

/// One thing that was said to Hermes, and what becomes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Proposal {
    /// Its name in the plan and in the configuration.
    pub id: String,
    /// Where it stands in Hermes' configuration.
    pub from: String,
    /// What it says there.
    pub said: String,
    /// What it means to Hermes.
    pub in_hermes: String,
    /// What it would mean here.
    pub here: String,
    /// What the user must decide; empty if there is nothing to decide.
    pub confirm: String,
    /// Grants, none of which is given yet.
    pub grants: Vec<ProposedGrant>,
    /// Denials: they only take away, so they are in the configuration at once.
    pub denials: Vec<ProposedDenial>,
    /// A setting that takes nothing more than Hermes did.
    pub setting: Option<(String, String)>,
    /// A server of tools as it would be named; naming it permits nothing.
    #[serde(default)]
    pub server: Option<ProposedServer>,
    /// The model as it would be named; naming it is a grant to talk to it.
    #[serde(default)]
    pub model: Option<ProposedModel>,
    /// The standing approval of Hermes that the grants stand for, in a replay.
    pub standing: Option<bisim_world::protocol::Standing>,
}

/// A grant that could be given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct ProposedGrant {
    /// `fs.delete` and the like.
    pub verb: String,
    /// `.` for the workspace, a place below it, or a peer.
    pub on: String,
    /// How long it lasts.
    pub seconds: u64,
    /// The projects in which it was seen to be needed; nothing of one that was said of all.
    #[serde(default)]
    pub seen_in: Vec<String>,
}

impl ProposedGrant {
    /// A grant on a place, for a working day.
    #[must_use]
    pub fn new(verb: &str, on: &str) -> Self {
        Self {
            verb: verb.to_owned(),
            on: on.to_owned(),
            seconds: GRANT_SECONDS,
            seen_in: Vec::new(),
        }
    }
}

/// A denial.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ProposedDenial {
    /// `fs.delete` and the like.
    pub verbs: Vec<String>,
    /// What it is about.
    pub about: About,
}

impl ProposedDenial {
    /// Whether nothing at all is reached while it stands.
    fn is_every_peer(&self) -> bool {
        let about = matches!(&self.about, About::On(place) if place == "*");
        about && self.verbs.iter().any(|verb| verb == "net.connect")
    }
}

/// What a denial is about.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// A place, or `*` for everything.
    On(String),
    /// Files of this name anywhere.
    Named(String),
    /// A network peer.
    Host(String),
}

/// Translates all of a configuration.
#[must_use]
pub fn translate(settings: &Settings) -> Vec<Proposal> {
    let mut all = Vec::new();
    all.push(models::proposal(&settings.model));
    all.extend(modes::proposals(settings));
    all.extend(
        settings
            .allowlist
            .iter()
            .enumerate()
            .map(|(place, entry)| allowed::proposal(place + 1, entry)),
    );
    all.extend(
        settings
            .deny
            .iter()
            .enumerate()
            .map(|(place, glob)| denied::proposal(place + 1, glob)),
    );
    all.extend(rest::proposals(settings));
    let closing = |one: &&Proposal| one.denials.iter().any(ProposedDenial::is_every_peer);
    let closed: Vec<String> = all
        .iter()
        .filter(closing)
        .map(|one| one.id.clone())
        .collect();
    all.extend(servers::proposals(&settings.servers, &closed));
    all
}
