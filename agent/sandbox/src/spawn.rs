//! Running a command where it can do no harm.
//!
//! A command gets a private root, its own user, mount, pid, net, ipc, uts and
//! cgroup namespaces, no capability, no network and a copy-on-write view of
//! the directories it is given. What it did to them comes back as a
//! [`ChangeSet`]; nothing has happened outside until that is committed.
//!
//! This module must never run anything when a step of building the sandbox
//! failed, and never wait for a descendant of the command after its end: the
//! end of the command is its status, not the end of its output.
//!
//! What it does not protect against: faults of the kernel, timing channels,
//! and use of processor time and memory below the limits of [`Limits`]. Where
//! control groups cannot be had, those of the command as a whole do not hold,
//! and [`Confined`] says so.

pub(crate) mod channel;
pub(crate) mod copier;
pub(crate) mod fence;
pub(crate) mod filter;
pub(crate) mod finishing;
pub(crate) mod grace;
pub(crate) mod ground;
pub(crate) mod init;
pub(crate) mod interpreter;
pub(crate) mod killer;
pub(crate) mod networks;
pub(crate) mod output;
mod place;
pub(crate) mod pool;
pub(crate) mod ready;
pub(crate) mod reaper;
mod renames;
pub(crate) mod root;
pub(crate) mod running;
pub(crate) mod spec;
pub(crate) mod stage;
pub(crate) mod streams;
pub(crate) mod supervisor;
pub(crate) mod underway;
pub(crate) mod zygote;

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermitcrab_core::Permit;
use hermitcrab_core::authority::{Object, Program, Verb};
use hermitcrab_core::outcome::{Denial, DenialCode};

pub use self::filter::{RefusedCall, filter_for_later, filter_this_thread, refused_calls};
pub use self::finishing::Finishing;
pub use self::grace::Grace;
pub use self::interpreter::Interpreters;
pub use self::killer::Killer;
pub use self::output::Captured;
pub use self::place::never_shown;
pub use self::pool::PoolSize;
pub use self::running::Running;
pub use self::streams::{Input, Output, Stream, Streams};
pub use self::underway::{Outside, SoFar, Underway};
pub use crate::step::{Step, StepError};
use hermitcrab_core::limits::ACTIONS_PER_TURN_MAX;
use hermitcrab_core::rules::Withheld;

use crate::changeset::ChangeSet;
use crate::confined::Confined;
use crate::dircap::DirCap;
use crate::layers::{LayerStore, Prefer};
use crate::mechanism::MechanismSet;
use crate::net::{Attempt, Network};
use crate::program::SpawnerProgram;
use crate::spawn::spec::ShownFile;

/// What a call the filter kills for ends a process with.
const SIGSYS: i32 = nix::libc::SIGSYS;

/// Where a command finds its inputs and leaves what the caller reads back.
pub const EXCHANGE_DIR: &str = root::EXCHANGE_DIR;

/// Starts confined commands. Clones share one spawner process, which is
/// started when it is needed and ends with the last clone.
#[derive(Clone, Debug)]
pub struct Sandbox {
    pool: Arc<pool::Pool>,
}

/// Says how a [`Sandbox`] is to be.
#[derive(Clone, Debug)]
pub struct Builder {
    program: SpawnerProgram,
    pool: PoolSize,
    without: MechanismSet,
    copies: Copies,
    layers: Option<(LayerStore, Prefer)>,
    shown: Vec<ShownFile>,
}

/// Which copy-on-write views are copies of their directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copies {
    /// All, even where an overlay can be mounted.
    pub all: bool,
    /// Those in which the command of root would be a stranger, because owners cannot be
    /// translated there.
    pub for_owners: bool,
}

impl Default for Copies {
    fn default() -> Self {
        Self {
            all: false,
            for_owners: true,
        }
    }
}

/// How a directory is shown to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewMode {
    /// Writes go to a private layer and come back as a change set.
    CopyOnWrite,
    /// Writes are refused.
    ReadOnly,
}

/// One directory a command sees.
#[derive(Debug)]
pub struct View<'a> {
    /// The directory.
    pub dir: &'a DirCap,
    /// The absolute path the command finds it at; its own path, usually, so
    /// that paths in the output mean the same inside and outside.
    pub at: PathBuf,
    /// What the command can do there.
    pub mode: ViewMode,
    /// What of it is not shown: it is there, and cannot be opened, changed or removed.
    pub withheld: Withheld,
}

/// Ceilings for one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long it may run before everything it started is killed.
    pub timeout: Duration,
    /// How it is asked to end before, when that time is over.
    pub grace: Grace,
    /// Processes and threads at once.
    pub processes_max: u64,
    /// Descriptors of one process.
    pub open_files_max: u64,
    /// Size of one file. No less than all layers may hold on disk: they bound what is written,
    /// and of a file that only gets another name or mode a layer takes all at once.
    pub file_bytes_max: u64,
    /// Private memory of one process, `None` for no ceiling.
    pub data_bytes_max: Option<u64>,
    /// Size of the private layer of one view, in memory.
    pub view_bytes_max: u64,
    /// Files in the private layer of one view, in memory.
    pub view_inodes_max: u64,
    /// Size of all its private layers together, where they lie on disk.
    pub disk_bytes_max: u64,
    /// Files in them.
    pub disk_names_max: u64,
    /// Size of /tmp with the shared memory and [`EXCHANGE_DIR`], and of each
    /// private directory.
    pub tmp_bytes_max: u64,
    /// Memory of everything the command starts, temporary files included.
    pub memory_bytes_max: u64,
    /// Processor time of everything it starts, in hundredths of one processor.
    pub cpu_percent_max: u32,
    /// Bytes kept of each output stream.
    pub output_bytes_max: usize,
}

/// Files in the private layer of one view in memory, if nobody says otherwise: no more
/// than can be decided at once, for what cannot is discarded when all is done.
const VIEW_INODES_MAX: u64 = 200_000;
const _: () = assert!(VIEW_INODES_MAX <= ACTIONS_PER_TURN_MAX as u64);

/// Size of all private layers together on disk, if nobody says otherwise.
const DISK_BYTES_MAX: u64 = 8 << 30;

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            grace: Grace::None,
            processes_max: 100,
            open_files_max: 1024,
            file_bytes_max: DISK_BYTES_MAX,
            data_bytes_max: None,
            view_bytes_max: 512 << 20,
            view_inodes_max: VIEW_INODES_MAX,
            disk_bytes_max: DISK_BYTES_MAX,
            disk_names_max: 2_000_000,
            tmp_bytes_max: 256 << 20,
            memory_bytes_max: 512 << 20,
            cpu_percent_max: 50,
            output_bytes_max: 1 << 20,
        }
    }
}

/// A command and its surroundings. Nothing is inherited from the caller.
#[derive(Debug)]
pub struct Command<'a> {
    /// The program and its arguments; a program without a slash is looked for
    /// in the command's own PATH, inside.
    pub argv: Vec<Vec<u8>>,
    /// The whole environment.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// The working directory, inside.
    pub cwd: PathBuf,
    /// The directories it sees besides the system's.
    pub views: Vec<View<'a>>,
    /// Empty writable directories that vanish afterwards, besides /tmp.
    pub private_dirs: Vec<PathBuf>,
    /// Files it finds in [`EXCHANGE_DIR`]: plain name and content.
    pub inputs: Vec<(String, Vec<u8>)>,
    /// Whether both outputs go to one stream, in the order written.
    pub merge_stderr: bool,
    /// What of the network it has; see [`Network`].
    pub network: Network,
    /// Its ceilings.
    pub limits: Limits,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// Its time was over; everything it had started was killed.
    TimedOut,
    /// The kernel killed it because its memory was used up.
    OutOfMemory,
    /// It wrote more to disk than its layers may hold, or than the disk has left for
    /// it; everything it had started was killed, and of what it changed nothing is kept.
    OutOfRoom,
    /// The whole sandbox was killed by somebody else.
    Killed,
}

impl Ending {
    /// Whether the kernel ended it for a call that no honest program makes,
    /// such as mounting or tracing; see [`refused_calls`].
    #[must_use]
    pub const fn is_refused_by_kernel(self) -> bool {
        matches!(self, Self::Signalled(SIGSYS))
    }
}

/// A command that ended, and what it left.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// Its standard output (and error, when merged).
    pub stdout: Captured,
    /// Its standard error.
    pub stderr: Captured,
    /// What it did to each copy-on-write view, in the order of the views.
    pub changes: Vec<ChangeSet>,
    /// What it left in [`EXCHANGE_DIR`].
    pub exchange: Exchange,
    /// What held it, as told by the processes that built its sandbox.
    pub confined: Confined,
    /// What it tried to reach through the proxy, and what became of that.
    pub attempts: Vec<Attempt>,
    /// What it and everything it started used.
    pub usage: Usage,
    /// How long it took, sandbox included.
    pub elapsed: Duration,
}

/// What a command and everything it started used. Nothing, if the sandbox was
/// killed as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in programs.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// Most memory one process had at once.
    pub peak_resident_bytes: u64,
}

/// The files a command left for the caller.
#[derive(Debug)]
pub struct Exchange {
    dir: OwnedFd,
}

/// A command that could not be run.
#[derive(Debug)]
pub enum SpawnError {
    /// The permit is for something else.
    Denied(Denial),
    /// A step failed; nothing ran, or what ran was killed.
    Step(StepError),
    /// What the command did could not be read back.
    ChangeSet(crate::changeset::ChangeSetError),
}

impl Builder {
    /// Which program is started as the spawner.
    #[must_use]
    pub fn spawner(mut self, program: SpawnerProgram) -> Self {
        self.program = program;
        self
    }

    /// How many sandboxes are kept ready.
    #[must_use]
    pub fn pool(mut self, size: PoolSize) -> Self {
        self.pool = size;
        self
    }

    /// Leaves mechanisms out, to see that others hold without them.
    ///
    /// For the tests of this package: only a spawner made for it obeys, and an
    /// agent's own program is none, see [`crate::spawner`].
    #[doc(hidden)]
    #[must_use]
    pub fn without(mut self, without: MechanismSet) -> Self {
        self.without = without;
        self
    }

    /// Makes every copy-on-write view by copying the directory, as is done by
    /// itself where no overlay can be mounted; to see that this works, too.
    ///
    /// The same is held back and shown, at the price of the copy: nothing is
    /// kept ready, and a directory beyond the ceilings is refused
    /// ([`Step::CopyView`]).
    #[must_use]
    pub fn copied_views(mut self, copied: bool) -> Self {
        self.copies.all = copied;
        self
    }

    /// Whether a copy-on-write view is copied where its owners cannot be translated, as
    /// is done usually.
    ///
    /// It matters to an agent of root's alone, on file systems that take no id map. There
    /// a command has the rights of a stranger to a directory that is not copied: it can
    /// write what everybody may, and read that. One beyond the ceilings of a copy is not,
    /// and [`Confined::missing`] says so.
    #[must_use]
    pub fn copied_for_owners(mut self, copied: bool) -> Self {
        self.copies.for_owners = copied;
        self
    }

    /// Where the layers of copy-on-write views may lie besides memory, and whether
    /// they do where memory would do as well.
    ///
    /// On disk a layer is as big as [`Limits::disk_bytes_max`] says, and no view is
    /// copied for want of attributes in memory. Where it cannot lie there, it lies
    /// in memory, and [`Confined::missing`] says why.
    #[must_use]
    pub fn layers(mut self, store: LayerStore, prefer: Prefer) -> Self {
        self.layers = Some((store, prefer));
        self
    }

    /// Every sandbox shows this file, which nobody can write, at this absolute place,
    /// unless a directory it shows lies over it.
    ///
    /// It is there for service: in a place where none can be made there is none.
    #[must_use]
    pub fn showing(mut self, at: PathBuf, text: &str) -> Self {
        self.shown.push(ShownFile {
            at: at.into_os_string().into_vec(),
            text: text.as_bytes().to_vec(),
        });
        self
    }

    /// A sandbox as described; nothing is started yet.
    #[must_use]
    pub fn build(self) -> Sandbox {
        Sandbox {
            pool: Arc::new(pool::Pool::new(
                self.program,
                self.pool,
                self.without,
                self.copies,
                self.layers,
                self.shown,
            )),
        }
    }
}

impl Sandbox {
    /// The running program as its own spawner, and a small pool. Its `main` begins with
    /// [`maybe_run_as_child`](crate::maybe_run_as_child).
    #[must_use]
    pub fn builder() -> Builder {
        Builder {
            program: SpawnerProgram::Own,
            pool: PoolSize::default(),
            without: MechanismSet::NONE,
            copies: Copies::default(),
            layers: None,
            shown: Vec::new(),
        }
    }

    /// With this program as the spawner.
    #[must_use]
    pub fn new(program: SpawnerProgram) -> Self {
        Self::builder().spawner(program).build()
    }

    /// Starts a command and returns without waiting for it. A sandbox that
    /// cannot be built shows when the result is waited for.
    ///
    /// # Errors
    /// The permit is for something else, or the spawner cannot be started; in
    /// both cases nothing ran.
    pub fn spawn(
        &self,
        permit: Permit<'_>,
        command: &Command<'_>,
        streams: Streams,
    ) -> Result<Running, SpawnError> {
        let allowed = permit.verb() == Verb::ProcExec
            && matches!(
                permit.object(),
                Object::Program(Program::AnyInView | Program::InView(_))
            );
        if !allowed {
            return Err(SpawnError::Denied(Denial::new(
                DenialCode::PermitMismatch,
                format_args!("{permit:?} spent on a command"),
            )));
        }
        let _spent = permit.spend();
        Ok(Running::start(&self.pool, command, streams)?)
    }

    /// Runs a command to its end (or to its timeout) and returns what it did.
    ///
    /// # Errors
    /// The permit is for something else, or the sandbox could not be built; in
    /// both cases nothing ran.
    pub fn run(&self, permit: Permit<'_>, command: &Command<'_>) -> Result<Finished, SpawnError> {
        self.spawn(permit, command, Streams::default())?.wait()
    }

    /// Runs a command of this package's own, which no permit is needed for.
    pub(crate) fn run_own(&self, command: &Command<'_>) -> Result<Finished, SpawnError> {
        Running::start(&self.pool, command, Streams::default())?.wait()
    }

    /// Returns when what was used is replaced: for tests that count.
    #[doc(hidden)]
    pub fn settle(&self) {
        self.pool.settle();
    }

    /// The processes that serve the sandbox and are no command's: the spawner
    /// and everything below it that has not been given a command.
    #[must_use]
    pub fn helpers(&self) -> Vec<u32> {
        self.pool.helpers()
    }
}

impl Exchange {
    /// Reads a file by its plain name, at most `bytes_max` of it.
    ///
    /// # Errors
    /// There is none, it is not a regular file, or it is longer.
    pub fn read(&self, name: &str, bytes_max: usize) -> io::Result<Vec<u8>> {
        crate::dircap::read_plain(&self.dir, name.as_bytes(), bytes_max)
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(denial) => write!(f, "{}", denial.code().wording()),
            Self::Step(error) => error.fmt(f),
            Self::ChangeSet(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SpawnError {}

impl From<StepError> for SpawnError {
    fn from(error: StepError) -> Self {
        Self::Step(error)
    }
}
