//! The cases that make trouble, and what each must be seen to do.

use bisim_world::protocol::{
    Context, Drive, FileKind, FileSpec, Held, Job, RawTrace, Step, UserModel, WorldSpec,
};
use serde_json::json;

/// Where every case leaves the trace that must be seen: the finding.
const FOUND: &str = "/home/u/proj/found";
/// Where what makes the trouble stands.
const SCRIPT: &str = "/home/u/proj/t.sh";
/// What a case that does not end by itself may take.
const DEADLINE_MS: u64 = 1_500;
/// The same on a machine that is busy, when the first was too short to begin.
const DEADLINE_LONG_MS: u64 = 60_000;
/// The program that stands in the world while a worker is to be killed.
pub(super) const WAITING: &str = "sleep";

/// A kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    None,
    ForkBomb,
    MemoryHog,
    EndlessOutput,
    IgnoresSignals,
    DoubleForks,
    FullDisk,
    WorkerKilled,
    ZygoteKilled,
    ObserverKilled,
}

impl Trouble {
    pub(super) const ALL: [Self; 10] = [
        Self::None,
        Self::ForkBomb,
        Self::WorkerKilled,
        Self::MemoryHog,
        Self::EndlessOutput,
        Self::ZygoteKilled,
        Self::IgnoresSignals,
        Self::DoubleForks,
        Self::ObserverKilled,
        Self::FullDisk,
    ];

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::None => "no trouble",
            Self::ForkBomb => "a fork bomb",
            Self::MemoryHog => "a memory hog",
            Self::EndlessOutput => "endless output",
            Self::IgnoresSignals => "SIGTERM ignored",
            Self::DoubleForks => "double forks",
            Self::FullDisk => "a full disk",
            Self::WorkerKilled => "the worker killed",
            Self::ZygoteKilled => "its zygote killed",
            Self::ObserverKilled => "a world's observer killed",
        }
    }

    /// Whether somebody outside kills a process of the harness meanwhile.
    pub(super) const fn kills(self) -> bool {
        matches!(
            self,
            Self::WorkerKilled | Self::ZygoteKilled | Self::ObserverKilled
        )
    }

    /// What is run. Each is bounded by itself or by the world's limits.
    const fn script(self) -> &'static str {
        match self {
            Self::None => "echo fine",
            // The shell waits longer and longer where it gets no process.
            Self::ForkBomb => "b() { b | b & }; b; sleep 600",
            Self::MemoryHog => "perl -e 'push @a, \"x\" x (16 << 20) for 1 .. 16; sleep 600'",
            Self::EndlessOutput => "yes",
            Self::IgnoresSignals => "trap '' TERM INT HUP QUIT; while :; do sleep 1; done",
            Self::DoubleForks => {
                "(setsid sleep 600 > /dev/null 2>&1 &); \
                 (setsid sh -c '(sleep 600 &); sleep 600' > /dev/null 2>&1 &); echo left"
            }
            Self::FullDisk => "dd if=/dev/zero of=big bs=1M count=200; : > more; echo full",
            Self::WorkerKilled | Self::ZygoteKilled | Self::ObserverKilled => "sleep 600",
        }
    }
}

/// How patient a case is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    Usual,
    Busy,
}

/// The finding first, then the trouble.
pub(super) fn job(trouble: Trouble, pace: Pace) -> Job {
    let call = |command: String| Step::Call {
        tool: "terminal".to_owned(),
        args: json!({ "command": command }),
        by: None,
    };
    let held = |id: &str, verb: &str, on: &str| Held {
        id: id.to_owned(),
        verb: verb.to_owned(),
        on: on.to_owned(),
        uses: None,
        seconds: None,
        holder: None,
        hermes: None,
    };
    Job {
        world: Some(WorldSpec {
            cwd: "/home/u/proj".to_owned(),
            files: vec![FileSpec {
                path: SCRIPT.to_owned(),
                kind: FileKind::Text(format!("{}\n", trouble.script())),
                mode: None,
            }],
            flip: None,
            serves: None,
            conversations: Vec::new(),
        }),
        context: Context::Interactive,
        user: UserModel::GrantOnce,
        held: vec![
            held("files", "fs.*", "/home/u/proj"),
            held("programs", "proc.exec", "*"),
        ],
        rules: Vec::new(),
        settings: serde_json::Map::new(),
        drive: Drive::Calls,
        script: vec![
            call(format!("echo x > {FOUND}")),
            call(format!("bash {SCRIPT}")),
        ],
        deadline_ms: match (pace, trouble.kills()) {
            (Pace::Usual, false) => DEADLINE_MS,
            (Pace::Usual, true) | (Pace::Busy, _) => DEADLINE_LONG_MS,
        },
    }
}

/// Whether the trace tells of the finding.
pub(super) fn is_found(trace: &RawTrace) -> bool {
    trace.effects.iter().any(|effect| effect.path == FOUND)
}
