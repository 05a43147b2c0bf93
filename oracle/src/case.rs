//! Cases: the unit of the vectors, as files write them and as the oracle runs them.
//!
//! A suite file holds defaults and cases; [`Case`] is one case with the
//! defaults merged in, so that nothing later asks where a value came from.
//! Nothing here reads files (see [`crate::suite`]) or judges.

use std::collections::BTreeMap;

use bisim_world::protocol::Conversation;
use bisim_world::protocol::Flip;
use bisim_world::protocol::Serves;
use bisim_world::protocol::{
    Context, Drive, FileSpec, Held, Job, Rule, Step, UserModel, WorldSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The schema version this build reads.
pub const SCHEMA_VERSION: u32 = 1;
/// A job's wall-clock limit when neither the case nor the suite states one.
pub const DEADLINE_MS_DEFAULT: u64 = 20_000;
/// The probe that has a conversation make several calls of one answer.
pub const BATCH_PROBE: &str = "tool_batch";
/// The standard workspace of a world.
pub const CWD_DEFAULT: &str = "/home/u/proj";
/// Settings with this prefix are for the agent; Hermes never sees them.
pub const AGENT_SETTING_PREFIX: &str = "hermitcrab.";

/// A file of `vectors/suites/` or `vectors/regressions/`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SuiteFile {
    /// Must be [`SCHEMA_VERSION`].
    pub schema: u32,
    /// The suite's name; the file's name without its ending.
    pub suite: String,
    /// What the suite is about.
    pub description: String,
    /// What each flag used by the cases means.
    #[serde(default)]
    pub flags: BTreeMap<String, Flag>,
    /// Values for what a case leaves out.
    #[serde(default)]
    pub defaults: Defaults,
    /// The cases, in order.
    pub cases: Vec<CaseFile>,
}

/// A flag explains itself once.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flag {
    /// The kind of defect, such as `spelling` or `containment`.
    pub kind: String,
    /// What the flag says about a case.
    pub description: String,
    /// What it means to get such a case wrong.
    #[serde(default)]
    pub effect: String,
}

/// A suite's defaults.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// See [`CaseFile::context`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// See [`CaseFile::user`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserModel>,
    /// See [`CaseFile::drive`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive: Option<Drive>,
    /// See [`CaseFile::world`]; its files come before the case's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<WorldPatch>,
    /// See [`CaseFile::held`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Vec<Held>>,
    /// See [`CaseFile::rules`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<Rule>>,
    /// Merged with the case's settings, key by key.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
    /// See [`CaseFile::deadline_ms`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// See [`CaseFile::hermes`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hermes: Option<Leg>,
    /// See [`CaseFile::agent`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Leg>,
    /// See [`CaseFile::expect`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// See [`CaseFile::source`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

/// One case, as a file writes it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaseFile {
    /// Unique over all suites.
    pub id: String,
    /// What the case shows, for a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// Names from the suite's flag table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Where the case comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The world it starts from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<WorldPatch>,
    /// The approval surroundings; default interactive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// How the user answers; default deny all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserModel>,
    /// Who makes the calls; default the harness, one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive: Option<Drive>,
    /// The grants; replaces the suite's default list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Vec<Held>>,
    /// What the agent's user wrote down, above every grant; replaces the suite's default
    /// list. What it withholds is granted to neither side, and Hermes is told nothing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<Rule>>,
    /// Hermes configuration by dotted key, and `hermitcrab.*` for the agent.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
    /// The calls and probes, in order.
    pub script: Vec<Step>,
    /// Wall-clock limit of one run of the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// How Hermes' side is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hermes: Option<Leg>,
    /// How the agent's side is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Leg>,
    /// What the agent must do, whatever Hermes does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// What a Hermes release was seen doing, by version.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub recorded: BTreeMap<String, Recorded>,
}

/// A world, where the parts left out come from the suite's defaults.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorldPatch {
    /// The session's directory and workspace; default `/home/u/proj`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Added to the standard tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileSpec>,
    /// Two names that change places while each step runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flip: Option<Flip>,
    /// A server of tools on the world's loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serves: Option<Serves>,
    /// Conversations that were had before; the suite's come before the case's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversations: Vec<Conversation>,
}

/// How one subject runs a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Leg {
    /// `false`: the script is probes of pure functions, asked without a world.
    pub world: bool,
}

/// Where a case comes from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// A file, an upstream thread, or `hand`.
    pub from: String,
    /// The row in it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub row: String,
    /// More, for a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// What the agent must do.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The expectation.
    pub agent: Must,
    /// Why; mandatory for `either`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What the agent's world must differ in at the end; absent: not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<ExpectedEffects>,
    /// The agent's outcome of each step: `ran`, `discarded`, `refused`,
    /// `asked-refused`, `pending`, `tool-error`, optionally `:code`; `*` for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<String>>,
}

/// The three expectations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Must {
    /// The last call runs and its effect is really there; a probe permits.
    MustPermit,
    /// No effect outside what is held; a probe does not permit.
    MustDeny,
    /// Both are right; the reason says why.
    Either,
}

/// What the agent's world must differ in at the end.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "`effects` is \"none\", \"some\", a list of absolute paths, or {\"at_most\": [paths]}"
)]
pub enum ExpectedEffects {
    /// A word.
    Word(EffectWord),
    /// Exactly these paths, absolute.
    Paths(Vec<String>),
    /// No more than these.
    AtMost(AtMost),
}

/// The most that may change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AtMost {
    /// These paths, absolute, and what is below them.
    pub at_most: Vec<String>,
}

/// Words for [`ExpectedEffects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EffectWord {
    /// Nothing changed.
    None,
    /// Something changed.
    Some,
}

/// What a Hermes release was seen doing when the case was recorded.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Of the last step's probe answer, the keys that must be the same live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Map<String, Value>>,
    /// The last step's outcome word (see [`Expect::steps`], without code).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Whether anything outside the grants happened: files, network, tripwires, canaries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub had_effect: Option<bool>,
    /// Paths that changed; each must change live as well, or lie below one that does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<BTreeMap<String, String>>,
    /// How many paths changed; `effects` may list only the first. Not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects_total: Option<u64>,
    /// Whether anything reached the sink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
    /// Whether a canary was in what the model was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_in_output: Option<bool>,
    /// Whether the detector flags the text. Not compared: the outcome is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flagged: Option<bool>,
    /// Whether the floor blocks the text. Not compared: the outcome is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardline: Option<bool>,
    /// Why the facts are not compared with the live run; absent: they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
    /// Programs that were not installed where the case was recorded. Where a world has one
    /// of them, the command does what it could not do then, and the facts are not compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacked: Vec<String>,
    /// Further facts, never compared.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub facts: Map<String, Value>,
}

/// One case, ready to run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Case {
    /// Unique over all suites.
    pub id: String,
    /// The suite it belongs to.
    pub suite: String,
    /// What it shows.
    pub comment: String,
    /// Its flags.
    pub flags: Vec<String>,
    /// Where it comes from.
    pub source: Source,
    /// What both subjects run; the world is always stated here.
    pub job: Job,
    /// Whether Hermes needs a world.
    pub hermes: Leg,
    /// Whether the agent needs a world.
    pub agent: Leg,
    /// What the agent must do.
    pub expect: Expect,
    /// What Hermes was seen doing, by version.
    pub recorded: BTreeMap<String, Recorded>,
}

impl Case {
    /// Merges a case with its suite's defaults.
    #[must_use]
    pub fn resolve(suite: &str, defaults: &Defaults, file: CaseFile) -> Self {
        let default_world = defaults.world.clone().unwrap_or_default();
        let own_world = file.world.unwrap_or_default();
        let mut files = default_world.files;
        files.extend(own_world.files);
        let mut conversations = default_world.conversations;
        conversations.extend(own_world.conversations);
        let flip = own_world.flip.or(default_world.flip);
        let serves = own_world.serves.or(default_world.serves);
        let cwd = own_world
            .cwd
            .or(default_world.cwd)
            .unwrap_or_else(|| CWD_DEFAULT.to_owned());
        let mut settings = defaults.settings.clone();
        settings.extend(file.settings);
        let in_world = Leg { world: true };
        Self {
            id: file.id,
            suite: suite.to_owned(),
            comment: file.comment,
            flags: file.flags,
            source: file
                .source
                .or_else(|| defaults.source.clone())
                .unwrap_or_else(|| Source {
                    from: "hand".to_owned(),
                    row: String::new(),
                    note: String::new(),
                }),
            job: Job {
                world: Some(WorldSpec {
                    cwd,
                    files,
                    flip,
                    serves,
                    conversations,
                }),
                context: file
                    .context
                    .or(defaults.context)
                    .unwrap_or(Context::Interactive),
                user: file
                    .user
                    .or_else(|| defaults.user.clone())
                    .unwrap_or(UserModel::DenyAll),
                held: file
                    .held
                    .or_else(|| defaults.held.clone())
                    .unwrap_or_default(),
                rules: file
                    .rules
                    .or_else(|| defaults.rules.clone())
                    .unwrap_or_default(),
                settings,
                drive: file.drive.or(defaults.drive).unwrap_or_default(),
                script: file.script,
                deadline_ms: file
                    .deadline_ms
                    .or(defaults.deadline_ms)
                    .unwrap_or(DEADLINE_MS_DEFAULT),
            },
            hermes: file.hermes.or(defaults.hermes).unwrap_or(in_world),
            agent: file.agent.or(defaults.agent).unwrap_or(in_world),
            expect: file
                .expect
                .or_else(|| defaults.expect.clone())
                .unwrap_or_else(|| Expect {
                    agent: Must::Either,
                    reason: "the relation alone judges".to_owned(),
                    effects: None,
                    steps: None,
                }),
            recorded: file.recorded,
        }
    }

    /// What Hermes' worker is given.
    #[must_use]
    pub fn hermes_job(&self) -> Job {
        let mut job = self.leg_job(self.hermes);
        job.rules.clear();
        job.settings
            .retain(|key, _| !key.starts_with(AGENT_SETTING_PREFIX));
        job
    }

    /// What the agent's worker is given.
    #[must_use]
    pub fn agent_job(&self) -> Job {
        self.leg_job(self.agent)
    }

    /// The session's directory and workspace.
    #[must_use]
    pub fn cwd(&self) -> &str {
        self.job
            .world
            .as_ref()
            .map_or(CWD_DEFAULT, |world| world.cwd.as_str())
    }

    fn leg_job(&self, leg: Leg) -> Job {
        let mut job = self.job.clone();
        if !leg.world {
            job.world = None;
        }
        job
    }
}

/// The JSON schema of a suite file.
#[must_use]
pub fn schema() -> Value {
    schemars::schema_for!(SuiteFile).to_value()
}
