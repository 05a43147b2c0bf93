//! What travels between the oracle and a subject's worker process.
//!
//! Both subjects (the real Hermes behind the shim, and the agent) are driven
//! by the same messages, so that a case cannot mean two things. Frames are a
//! little-endian `u32` length followed by that many bytes of JSON.

use std::io::{self, Read, Write};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

mod conversation;
mod flip;
mod part;
mod restart;
mod rule;
mod serves;
mod user;

pub use conversation::{Conversation, ConversationSource, Said};
pub use flip::{Flip, When};
pub use part::Part;
pub use restart::{Cut, Damage, Harm, Kept, Restart};
pub use rule::{Decision, Rule};
pub use serves::Serves;
pub use user::{Answer, Happened, Meanwhile, Mode, SILENCE, UserModel, Word};

/// Bumped whenever a message changes meaning; both sides refuse another one.
pub const PROTOCOL_VERSION: u32 = 1;
/// The longest frame either side accepts, in bytes.
pub const FRAME_BYTES_MAX: u32 = 64 * 1024 * 1024;

/// From the oracle to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// First message; the worker answers with [`Reply::Hello`].
    Hello {
        /// The oracle's [`PROTOCOL_VERSION`].
        protocol: u32,
    },
    /// Run one case; answered by [`Reply::Done`] or [`Reply::Failed`].
    Run {
        /// Echoed in the reply.
        id: u64,
        /// What to run.
        job: Box<Job>,
    },
    /// End the worker; it exits with status 0 and answers nothing.
    Shutdown,
}

/// From a worker to the oracle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// The worker is ready.
    Hello {
        /// The worker's [`PROTOCOL_VERSION`].
        protocol: u32,
        /// `hermes` or `hermitcrab`.
        subject: String,
        /// The subject's own version, as it states it.
        version: String,
    },
    /// The job ran, whatever the subject did in it.
    Done {
        /// The request's id.
        id: u64,
        /// What was seen.
        trace: Box<RawTrace>,
    },
    /// The harness (not the subject) failed: the case is inconclusive.
    Failed {
        /// The request's id.
        id: u64,
        /// The stage that failed, such as `mount overlay`.
        stage: String,
        /// Why, for a person.
        message: String,
    },
}

/// One case, as a worker sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// `None`: only pure probes, run in the worker itself without a world.
    pub world: Option<WorldSpec>,
    /// The surroundings Hermes' approval gate distinguishes.
    pub context: Context,
    /// How the user answers.
    pub user: UserModel,
    /// The grants of the case: capabilities for the agent, approvals for Hermes.
    #[serde(default)]
    pub held: Vec<Held>,
    /// What its user wrote down about the agent, above every grant. Hermes has no such thing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// Hermes configuration, dotted key to value (`approvals.mode`, `approvals.deny`, ...).
    #[serde(default)]
    pub settings: serde_json::Map<String, Value>,
    /// Who makes the calls.
    #[serde(default, skip_serializing_if = "Drive::is_calls")]
    pub drive: Drive,
    /// The calls, in order.
    pub script: Vec<Step>,
    /// Wall-clock limit of the whole job in milliseconds; reaching it is [`End::TimedOut`].
    pub deadline_ms: u64,
}

/// The tree a case starts from: the standard template plus these entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorldSpec {
    /// Absolute path inside the world; the session's working directory and workspace.
    pub cwd: String,
    /// Added to (or replacing parts of) the template, in order.
    #[serde(default)]
    pub files: Vec<FileSpec>,
    /// Two names that change places while each step runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flip: Option<Flip>,
    /// A server of tools on the world's loopback, for as long as the script runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serves: Option<Serves>,
    /// What was said before the case begins, as each subject keeps it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversations: Vec<Conversation>,
}

/// One entry of a world's tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// Absolute path inside the world. Missing parents are created.
    pub path: String,
    /// What it is.
    #[serde(flatten)]
    pub kind: FileKind,
    /// Permission bits; default 0644 for files, 0755 for directories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

/// The kinds of tree entry a case may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A directory (the value is ignored; write `true`).
    Dir(bool),
    /// A regular file with this UTF-8 text.
    Text(String),
    /// A regular file with these bytes, base64.
    Base64(String),
    /// A symbolic link with this target.
    Symlink(String),
    /// A hard link to this (absolute, already existing) path.
    Hardlink(String),
    /// A named pipe (write `true`).
    Fifo(bool),
    /// A regular file of so many zero bytes that take no room.
    Sparse(u64),
    /// A directory that another (absolute, already existing) one is mounted on.
    Mount(String),
    /// A directory on a disk of its own, with room for so many bytes more (whole pages).
    Room(u64),
    /// A directory that is mounted read-only, with all that is in it (write `true`).
    ReadOnly(bool),
}

/// Which of Hermes' approval surroundings a case runs in.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// No interactive, gateway or cron flag: a script, batch or library use.
    Headless,
    /// A person at a terminal.
    Interactive,
    /// A chat gateway with a notifier.
    Gateway,
    /// An editor that speaks the agent client protocol: edits are gated too.
    Acp,
    /// A scheduled job; nobody is there.
    Cron,
}

impl Context {
    /// Every context.
    pub const ALL: [Self; 5] = [
        Self::Headless,
        Self::Interactive,
        Self::Gateway,
        Self::Acp,
        Self::Cron,
    ];

    /// Its word in vectors, catalogue and workers.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Headless => "headless",
            Self::Interactive => "interactive",
            Self::Gateway => "gateway",
            Self::Acp => "acp",
            Self::Cron => "cron",
        }
    }

    /// Whether there is somebody who can be asked.
    pub const fn has_user(self) -> bool {
        match self {
            Self::Interactive | Self::Gateway | Self::Acp => true,
            Self::Headless | Self::Cron => false,
        }
    }
}

/// Who makes the calls of a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Drive {
    /// The harness calls the tools one by one.
    #[default]
    Calls,
    /// A scripted model does, in the subject's own conversation loop; a child
    /// is started by the model's own call for it.
    Conversation,
    /// A client of an editor's protocol does, over the subject's own server and
    /// with a scripted model; every step is a probe of [`crate::wire`].
    Wire,
}

impl Drive {
    /// Whether it is the usual one.
    pub const fn is_calls(&self) -> bool {
        matches!(self, Self::Calls)
    }
}

/// One grant of a case, in words both subjects understand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// Names the grant in the script (`revoke`, `spawn`).
    pub id: String,
    /// `fs.read`, `fs.create`, `proc.exec`, ... as in the agent's taxonomy; `fs.*` for all file verbs.
    pub verb: String,
    /// What it is on: an absolute directory or file path of the world, a program, a `host:port`; `*` for `proc.exec`.
    pub on: String,
    /// Uses before it is exhausted; absent: not limited by count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses: Option<u64>,
    /// Lifetime in seconds; absent: the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Who holds it; absent: the session's own agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// The nearest thing Hermes has to this grant; absent: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hermes: Option<Standing>,
}

/// A standing approval of Hermes, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Classes of its detector, approved for the session.
    Session(Vec<String>),
    /// Classes of its detector, approved for good.
    Always(Vec<String>),
    /// Command texts on its permanent list.
    Commands(Vec<String>),
    /// A session mode of an editor: `accept_edits` or `dont_ask`.
    Mode(String),
}

impl Step {
    /// The child whose call this is; `None` of calls of the first agent and of all other steps.
    #[must_use]
    pub fn by(&self) -> Option<&str> {
        match self {
            Self::Call { by, .. } => by.as_deref(),
            Self::Probe { .. }
            | Self::Grant(_)
            | Self::Revoke { .. }
            | Self::Advance { .. }
            | Self::EndSession {}
            | Self::Restart(_)
            | Self::Spawn { .. } => None,
        }
    }

    /// The call this step cuts off, if it does.
    #[must_use]
    pub fn cut(&self) -> Option<&Cut> {
        match self {
            Self::Restart(restart) => restart.during.as_deref(),
            Self::Call { .. }
            | Self::Probe { .. }
            | Self::Grant(_)
            | Self::Revoke { .. }
            | Self::Advance { .. }
            | Self::EndSession {}
            | Self::Spawn { .. } => None,
        }
    }

    /// The grant this step adds, if it adds one.
    #[must_use]
    pub const fn granted(&self) -> Option<&Held> {
        match self {
            Self::Grant(held) => Some(held),
            Self::Call { .. }
            | Self::Probe { .. }
            | Self::Revoke { .. }
            | Self::Advance { .. }
            | Self::EndSession {}
            | Self::Restart(_)
            | Self::Spawn { .. } => None,
        }
    }

    /// The child this step starts, if it starts one.
    #[must_use]
    pub const fn started(&self) -> Option<&str> {
        match self {
            Self::Spawn { child, .. } => Some(child.as_str()),
            Self::Call { .. }
            | Self::Probe { .. }
            | Self::Grant(_)
            | Self::Revoke { .. }
            | Self::Advance { .. }
            | Self::EndSession {}
            | Self::Restart(_) => None,
        }
    }
}

/// One step of a script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// The model calls a tool.
    Call {
        /// `terminal`, `read_file`, ...
        tool: String,
        /// The JSON arguments, as the model wrote them.
        args: Value,
        /// A child made by `spawn`; absent: the session's own agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// A single decision function is asked directly (no tool runs).
    Probe {
        /// The vocabulary of `docs/CONFORMANCE.md`, e.g. `validate_within_dir`.
        name: String,
        /// Its input, by probe.
        input: Value,
    },
    /// A grant is added in mid-script.
    Grant(Held),
    /// The granter revokes a grant by name.
    Revoke {
        /// The [`Held::id`].
        grant: String,
    },
    /// The injected clock moves on.
    Advance {
        /// How far.
        seconds: u64,
    },
    /// The session ends; a new one begins for later steps.
    EndSession {},
    /// The program ends without a word, something becomes of what it keeps on
    /// the disk, and it is started again.
    Restart(Restart),
    /// A child is delegated to.
    Spawn {
        /// Names the child for `by`.
        child: String,
        /// The grants passed on by name; nothing else is.
        #[serde(default)]
        forward: Vec<String>,
    },
}

/// Everything seen while a job ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawTrace {
    /// One per step that was started, in order.
    pub steps: Vec<StepTrace>,
    /// What the tree differs in from the template at the end, sorted by path.
    pub effects: Vec<FsEffect>,
    /// Connections and datagrams that reached the world's sink.
    pub network: Vec<NetAttempt>,
    /// Command lines of tripwire programs that were run.
    pub tripwires: Vec<String>,
    /// How it ended.
    pub end: End,
    /// CPU time of the worker's share and its children, in microseconds.
    pub cpu_us: u64,
    /// Wall time in microseconds.
    pub wall_us: u64,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All steps ran.
    Finished,
    /// The deadline passed; later steps are missing.
    TimedOut,
    /// The subject died; the text says how (`signal 9`, `exit 3`).
    Died(String),
}

/// What one step did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepTrace {
    /// What became of the request.
    pub outcome: StepOutcome,
    /// The exact text the model would be given; empty for steps that give none.
    #[serde(default)]
    pub text: String,
    /// A probe's answer; `null` for other steps.
    #[serde(default)]
    pub answer: Value,
    /// What the user was asked, in order.
    #[serde(default)]
    pub questions: Vec<QuestionTrace>,
    /// The tree's difference from the template after this step, sorted by path.
    #[serde(default)]
    pub effects: Vec<FsEffect>,
    /// Where the step was looked at before it was over, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

impl StepTrace {
    /// A trace with this outcome and nothing else.
    pub fn of(outcome: StepOutcome) -> Self {
        Self {
            outcome,
            text: String::new(),
            answer: Value::Null,
            questions: Vec::new(),
            effects: Vec::new(),
            parts: Vec::new(),
        }
    }
}

/// The fate of one step, coarse enough for both subjects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// It ran and what it did stands (a command's exit status does not matter here).
    Ran,
    /// It ran, but what it did was discarded (the agent's copy-on-write view).
    RanDiscarded(String),
    /// Refused without asking; a stable code.
    Refused(String),
    /// The user was asked and the answer was no (or none came); a stable code.
    AskedRefused(String),
    /// It waits for an answer that nobody gives in this world.
    Pending,
    /// The tool ran and reported a failure of its own (missing file, bad argument).
    ToolError,
    /// The subject raised; the text is for a person.
    Raised(String),
    /// The subject has no such tool, probe or step; a stable reason.
    Unsupported(String),
}

/// One question the user was shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionTrace {
    /// What was shown.
    pub shown: String,
    /// The answer given.
    pub answer: String,
    /// What happened between the question and the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meanwhile: Vec<Happened>,
}

/// One difference from the template.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FsEffect {
    /// Absolute path in the world; bytes that are not UTF-8 are written `\xNN`.
    pub path: String,
    /// What happened to it.
    pub kind: EffectKind,
    /// SHA-256 of the new content (files), the target (links); empty otherwise.
    #[serde(default)]
    pub digest: String,
    /// New size in bytes (files).
    #[serde(default)]
    pub size: u64,
    /// New permission bits.
    #[serde(default)]
    pub mode: u32,
}

/// The kinds of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// It was not there.
    Created,
    /// Content differs (or the kind of entry does).
    Modified,
    /// It is gone.
    Deleted,
    /// Only permission bits, owner or extended attributes differ.
    Metadata,
}

/// Something reached the sink.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetAttempt {
    /// `tcp` or `udp`.
    pub protocol: String,
    /// Destination port.
    pub port: u16,
    /// The first bytes sent, escaped and cut to 200 characters.
    pub head: String,
}

/// Writes one frame and flushes. It is given to the pipe whole, so that a writer who is
/// killed leaves no beginning of a short one behind.
///
/// # Errors
/// The message is longer than [`FRAME_BYTES_MAX`], or the pipe fails.
pub fn write_frame<T: Serialize>(pipe: &mut impl Write, message: &T) -> io::Result<()> {
    const LENGTH_BYTES: usize = size_of::<u32>();
    let mut frame = vec![0; LENGTH_BYTES];
    serde_json::to_writer(&mut frame, message).map_err(io::Error::other)?;
    let length = u32::try_from(frame.len().saturating_sub(LENGTH_BYTES))
        .ok()
        .filter(|length| *length <= FRAME_BYTES_MAX)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "frame too long"))?;
    if let Some(head) = frame.first_chunk_mut::<LENGTH_BYTES>() {
        *head = length.to_le_bytes();
    }
    pipe.write_all(&frame)?;
    pipe.flush()
}

/// Reads one frame; `None` at a clean end of input.
///
/// # Errors
/// A cut or oversized frame, JSON that is not a `T`, or a failing pipe.
pub fn read_frame<T: DeserializeOwned>(pipe: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0_u8; 4];
    match pipe.read(&mut length[..1])? {
        0 => return Ok(None),
        _ => pipe.read_exact(&mut length[1..])?,
    }
    let length = u32::from_le_bytes(length);
    if length > FRAME_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "frame too long"));
    }
    let mut body = Vec::new();
    let got = pipe.take(u64::from(length)).read_to_end(&mut body)?;
    if got as u64 != u64::from(length) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&body)
        .map(Some)
        .map_err(io::Error::other)
}
