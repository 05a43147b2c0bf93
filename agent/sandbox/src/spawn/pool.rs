//! The agent's end: the spawner process, and sandboxes that wait for a command.
//!
//! A sandbox is used for one command and thrown away. What makes it quick is
//! only that it was built before: for surroundings that recur, the pool keeps
//! a few ready. Nothing is kept for surroundings seen once.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::net::Shutdown;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::channel::{Channel, Received};
use super::interpreter::{Recipe, Started};
use super::spec::Report;
use super::step::{AtStep, Step, StepError};
use crate::ambient::CHILD_ARGUMENT;
use crate::profile::MechanismSet;
use crate::spawner::SpawnerProgram;

/// How long a waiting sandbox is used; it gives up by itself some time later.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Surroundings remembered at once.
const SHELVES_MAX: usize = 8;

/// How many sandboxes are kept ready, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSize {
    /// Ready at once for the same surroundings; none turns the pool off.
    pub ready_max: usize,
    /// How often surroundings must have been used before any is kept for them.
    pub after_uses: u32,
    /// For how many interpreters, those used last, a sandbox is kept in which
    /// it is started already; none turns that off.
    pub interpreters_max: usize,
    /// Whether a sandbox may get an empty network that served another one,
    /// and was seen to be as it was made; else every network is new.
    pub recycled_network: bool,
}

impl Default for PoolSize {
    fn default() -> Self {
        Self {
            ready_max: 2,
            after_uses: 1,
            interpreters_max: 2,
            recycled_network: true,
        }
    }
}

impl PoolSize {
    /// Every sandbox is built when it is needed.
    pub const OFF: Self = Self {
        ready_max: 0,
        after_uses: 0,
        interpreters_max: 0,
        recycled_network: true,
    };
}

/// A spawner process and what it has prepared.
#[derive(Debug)]
pub(crate) struct Pool {
    program: SpawnerProgram,
    size: PoolSize,
    without: MechanismSet,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    spawner: Option<Spawner>,
    /// Spawners started so far; the number of the last one.
    generation: u64,
    shelves: Vec<Shelf>,
    null: Option<OwnedFd>,
}

/// What is ready for the same surroundings; the last used is the last.
#[derive(Debug)]
struct Shelf {
    key: Vec<u8>,
    uses: u32,
    ready: VecDeque<Waiting>,
    /// The interpreters used last, the last of all first.
    recipes: VecDeque<Recipe>,
}

/// A sandbox that was asked for, built or not yet.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub control: Channel,
    /// Of the spawner that makes it.
    pub generation: u64,
    /// Reports that were taken from the conversation already.
    pub heard: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
    /// The interpreter that waits in it, if one was started.
    pub started: Option<Started>,
    asked: Instant,
}

#[derive(Debug)]
struct Spawner {
    child: Child,
    control: Channel,
}

/// How long a spawner may take to end what it made once it is let go.
const END_TIMEOUT: Timespec = Timespec {
    tv_sec: 4,
    tv_nsec: 0,
};

impl Pool {
    pub(crate) fn new(program: SpawnerProgram, size: PoolSize, without: MechanismSet) -> Self {
        Self {
            program,
            size,
            without,
            inner: Mutex::default(),
        }
    }

    /// What is left out of every sandbox, in tests.
    pub(crate) fn without(&self) -> MechanismSet {
        self.without
    }

    /// How it was asked to be.
    pub(crate) fn size(&self) -> PoolSize {
        self.size
    }

    /// A sandbox with these surroundings, ready or on its way. The interpreter
    /// of the recipe may have been started in it, and no other.
    pub(crate) fn take(&self, key: &[u8], recipe: Option<&Recipe>) -> Result<Waiting, StepError> {
        let mut inner = self.lock();
        inner.forget_a_dead_spawner();
        let shelf = inner.shelf(key);
        shelf.uses = shelf.uses.saturating_add(1);
        if let Some(recipe) = recipe {
            while let Some(mut waiting) = shelf.pop(|started| started.is_for(recipe)) {
                if waiting.is_usable() && !waiting.has_failed() {
                    return Ok(waiting);
                }
            }
        }
        while let Some(waiting) = shelf.pop_plain() {
            if waiting.is_usable() {
                return Ok(waiting);
            }
        }
        self.ask(&mut inner, key)
    }

    /// Has what was used replaced. A failure shows when one is needed.
    /// The recipe is that of a command which could be started.
    pub(crate) fn refill(&self, key: &[u8], recipe: Option<&Recipe>) {
        let mut inner = self.lock();
        inner.forget_a_dead_spawner();
        if let Some(recipe) = recipe {
            inner
                .shelf(key)
                .remember(recipe, self.size.interpreters_max);
        }
        while let Some(wanted) = inner.shelf(key).wanted(self.size) {
            let Ok(mut waiting) = self.ask(&mut inner, key) else {
                break;
            };
            let started = match &wanted {
                Some(recipe) => inner.null().and_then(|null| waiting.start(recipe, null)),
                None => Ok(()),
            };
            if started.is_err() {
                break;
            }
            inner.shelf(key).ready.push_back(waiting);
        }
        for shelf in &mut inner.shelves {
            shelf
                .ready
                .retain(|waiting| waiting.asked.elapsed() < IDLE_MAX);
        }
    }

    /// Whether the spawner with this number is gone.
    pub(crate) fn is_gone(&self, generation: u64) -> bool {
        let inner = self.lock();
        inner.generation != generation
            || inner
                .spawner
                .as_ref()
                .is_none_or(|spawner| hung_up(&spawner.control))
    }

    /// Ends the spawner with this number and, through the kernel, all that it made.
    pub(crate) fn end(&self, generation: u64) {
        let mut inner = self.lock();
        if inner.generation == generation {
            inner.drop_spawner();
        }
    }

    /// The processes that are no command's: the spawner, its zygotes, and the
    /// sandboxes that wait.
    pub(crate) fn helpers(&self) -> Vec<u32> {
        let mut inner = self.lock();
        let Some(spawner) = &inner.spawner else {
            return Vec::new();
        };
        let mut helpers = vec![spawner.child.id()];
        helpers.extend(children(spawner.child.id()));
        for waiting in inner
            .shelves
            .iter_mut()
            .flat_map(|shelf| shelf.ready.iter_mut())
        {
            let Some(first) = waiting.first_process() else {
                continue;
            };
            helpers.push(first);
            helpers.extend(children(first));
        }
        helpers
    }

    /// An input that is always at its end.
    pub(crate) fn null(&self) -> Result<OwnedFd, StepError> {
        self.lock().null()
    }

    fn ask(&self, inner: &mut Inner, key: &[u8]) -> Result<Waiting, StepError> {
        let (ours, theirs) = Channel::pair().at(Step::StartSpawner, "socketpair")?;
        let mut again = true;
        loop {
            let spawner = match &inner.spawner {
                Some(spawner) => spawner,
                None => {
                    inner.generation = inner.generation.saturating_add(1);
                    inner.spawner.insert(start(&self.program)?)
                }
            };
            match spawner.control.send(key, &[theirs.as_fd()]) {
                Ok(()) => {
                    return Ok(Waiting {
                        control: ours,
                        generation: inner.generation,
                        heard: VecDeque::new(),
                        started: None,
                        asked: Instant::now(),
                    });
                }
                // It died since it was looked at; a new one gets one try.
                Err(error) if again && error.kind() == io::ErrorKind::BrokenPipe => {
                    again = false;
                    inner.drop_spawner();
                }
                Err(error) => return Err(StepError::new(Step::Talk, "request", error)),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here is left half done by a panic elsewhere.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn null(&mut self) -> Result<OwnedFd, StepError> {
        if self.null.is_none() {
            let flags = OFlags::RDWR | OFlags::CLOEXEC;
            let opened = rustix::fs::open("/dev/null", flags, Mode::empty());
            self.null = Some(opened.at(Step::StartSpawner, "/dev/null")?);
        }
        match &self.null {
            Some(null) => null.try_clone().at(Step::StartSpawner, "/dev/null"),
            None => Err(StepError::new(
                Step::StartSpawner,
                "/dev/null",
                io::ErrorKind::NotFound,
            )),
        }
    }

    fn forget_a_dead_spawner(&mut self) {
        if self
            .spawner
            .as_ref()
            .is_some_and(|spawner| hung_up(&spawner.control))
        {
            self.drop_spawner();
        }
    }

    fn drop_spawner(&mut self) {
        self.spawner = None;
        // Whatever it made has died with it.
        self.shelves
            .iter_mut()
            .for_each(|shelf| shelf.ready.clear());
    }

    /// The shelf for these surroundings, which becomes the last.
    fn shelf(&mut self, key: &[u8]) -> &mut Shelf {
        let shelf = match self.shelves.iter().position(|shelf| shelf.key == key) {
            Some(place) => self.shelves.remove(place),
            None => {
                if self.shelves.len() >= SHELVES_MAX {
                    self.shelves.remove(0);
                }
                Shelf {
                    key: key.to_vec(),
                    uses: 0,
                    ready: VecDeque::new(),
                    recipes: VecDeque::new(),
                }
            }
        };
        self.shelves.push_mut(shelf)
    }
}

impl Shelf {
    /// Makes this interpreter the one used last.
    fn remember(&mut self, recipe: &Recipe, recipes_max: usize) {
        self.recipes.retain(|known| known != recipe);
        self.recipes.push_front(recipe.clone());
        self.recipes.truncate(recipes_max);
        let recipes = &self.recipes;
        self.ready.retain(|waiting| {
            let started = waiting.started.as_ref();
            started.is_none_or(|started| recipes.iter().any(|recipe| started.is_for(recipe)))
        });
    }

    /// Takes the first in which such an interpreter was started.
    fn pop(&mut self, wanted: impl Fn(&Started) -> bool) -> Option<Waiting> {
        let place = self
            .ready
            .iter()
            .position(|waiting| waiting.started.as_ref().is_some_and(&wanted))?;
        self.ready.remove(place)
    }

    /// Takes the first in which nothing was started.
    fn pop_plain(&mut self) -> Option<Waiting> {
        let place = self
            .ready
            .iter()
            .position(|waiting| waiting.started.is_none())?;
        self.ready.remove(place)
    }

    /// What to make ready next: a started interpreter, or a plain sandbox.
    fn wanted(&self, size: PoolSize) -> Option<Option<Recipe>> {
        if self.uses <= size.after_uses {
            return None;
        }
        let missing = self.recipes.iter().find(|recipe| {
            !self.ready.iter().any(|waiting| {
                let started = waiting.started.as_ref();
                started.is_some_and(|started| started.is_for(recipe))
            })
        });
        if let Some(recipe) = missing {
            return Some(Some(recipe.clone()));
        }
        let plain = self
            .ready
            .iter()
            .filter(|waiting| waiting.started.is_none());
        (plain.count() < size.ready_max).then_some(None)
    }
}

impl Waiting {
    fn is_usable(&self) -> bool {
        self.asked.elapsed() < IDLE_MAX && !hung_up(&self.control)
    }

    /// Has it start an interpreter; it will once it is built.
    fn start(&mut self, recipe: &Recipe, null: OwnedFd) -> Result<(), StepError> {
        let (started, inside) = recipe.start(null)?;
        self.control
            .send(&recipe.opening().encode(), &inside.descriptors())
            .at(Step::Talk, "interpreter")?;
        self.started = Some(started);
        Ok(())
    }

    fn hear(&mut self) {
        while let Ok(Received::Frame(frame, descriptors)) = self.control.receive_now() {
            self.heard.push_back((frame, descriptors));
        }
    }

    /// Whether it said already that it cannot be used.
    fn has_failed(&mut self) -> bool {
        self.hear();
        self.heard
            .iter()
            .any(|(frame, _)| match Report::decode(frame) {
                Ok(Report::Grouped(_) | Report::Made { .. } | Report::Ready(_)) => false,
                Ok(Report::Failed(_) | Report::Retired | Report::Ended(..)) | Err(_) => true,
            })
    }

    /// The first process of the sandbox, if it has one by now.
    fn first_process(&mut self) -> Option<u32> {
        self.hear();
        self.heard
            .iter()
            .find_map(|(frame, _)| match Report::decode(frame) {
                Ok(Report::Made { init, .. }) => Some(init),
                _ => None,
            })
    }
}

/// The children of a process, as the kernel lists them.
fn children(of: u32) -> Vec<u32> {
    let path = format!("/proc/{of}/task/{of}/children");
    let listed = std::fs::read_to_string(path).unwrap_or_default();
    listed
        .split_ascii_whitespace()
        .filter_map(|id| id.parse().ok())
        .collect()
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // It ends by itself when it is let go, and takes its groups away; one
        // that does not is killed.
        let _let_go = rustix::net::shutdown(self.control.as_fd(), Shutdown::Both);
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(Ok(process)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
            let mut wanted = [PollFd::new(&process, PollFlags::IN)];
            let _waited = poll(&mut wanted, Some(&END_TIMEOUT));
        }
        // It can only fail for a process that is gone.
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn start(program: &SpawnerProgram) -> Result<Spawner, StepError> {
    let path = program.path();
    let (ours, theirs) = Channel::pair().at(Step::StartSpawner, "socketpair")?;
    let child = std::process::Command::new(&path)
        .arg(CHILD_ARGUMENT)
        .env_clear()
        .stdin(Stdio::from(theirs.into_socket()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A ^C is for whoever holds the terminal, who then ends what is to end.
        .process_group(0)
        .spawn()
        .at(Step::StartSpawner, path.display().to_string())?;
    Ok(Spawner {
        child,
        control: ours,
    })
}

/// Whether every holder of the other end is gone.
fn hung_up(channel: &Channel) -> bool {
    let mut wanted = [PollFd::from_borrowed_fd(
        channel.as_fd(),
        PollFlags::empty(),
    )];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut wanted, Some(&now)).is_err()
        || wanted
            .first()
            .is_none_or(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR))
}
