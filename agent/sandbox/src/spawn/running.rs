//! A command that runs: its output as it comes, its end, and ending it.
//!
//! It never waits for the end of the output: a descendant that holds a pipe
//! open holds up nobody. The end is the report of the sandbox's first process,
//! which it sends when nothing else is left inside.

mod asking;
mod finish;
mod room;
mod sleep;
mod stop;
mod surroundings;
mod unmade;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::asking::Asking;
use self::room::Room;
use self::stop::Stop;
use self::surroundings::surroundings;
use super::channel::{Channel, Received};
use super::interpreter::Recipe;
use super::killer::Killer;
use super::output::Collector;
use super::pool::Pool;
use super::spec::{self, Program, Report, UsageSpec};
use super::streams::{Input, Ours, Stream, Streams};
use super::underway::Underway;
use super::{Command, Ending, Finished, Grace, SpawnError, Usage, ViewMode};
use crate::cgroup::Holding;
use crate::changeset::clock::Since;
use crate::changeset::owners::Owners;
use crate::confined::Confined;
use crate::dircap::DirCap;
use crate::net::{AllowList, Attempt, Notice, Proxied, Proxy, SystemResolver};
use crate::step::{AtStep, Step, StepError};

/// The most views of a command. Each takes two descriptors of a message.
const VIEWS_MAX: usize = 100;

/// A command that was started. Dropping it kills the command.
#[derive(Debug)]
pub struct Running {
    pool: Arc<Pool>,
    key: Vec<u8>,
    /// How its interpreter could have been started before.
    recipe: Option<Recipe>,
    generation: u64,
    control: Channel,
    /// Reports taken from the conversation before the command was known.
    heard: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
    /// Whether the spawner took notice of it.
    is_noticed: bool,
    /// Its control groups, or why it has none.
    group: Option<Result<Arc<Holding>, String>>,
    /// Of the sandbox's first process, once it exists.
    first: Option<OwnedFd>,
    /// Its number, for as long as the descriptor says that it lives.
    first_number: Option<u32>,
    /// Of the process that becomes the command, once it waits.
    main: Option<OwnedFd>,
    killer: Killer,
    stdin: Option<OwnedFd>,
    stdout: Collector,
    stderr: Collector,
    /// Whether another sandbox for the same may wait for its command. One that is as
    /// old as what it shows may not.
    may_wait: bool,
    /// The copy-on-write views, in order.
    views: Vec<DirCap>,
    /// How owners in their layers are read, if they are not those of outside.
    owners: Option<Owners>,
    /// Their upper layers and the exchange directory, once they exist.
    layers: Vec<OwnedFd>,
    /// What the command sees of each.
    merged: Vec<OwnedFd>,
    /// Somebody's way to what it has made so far.
    underway: Option<Underway>,
    /// The way out, until the command ends: what it may reach, and the proxy.
    allow: Option<(AllowList, Notice)>,
    proxy: Option<Proxy>,
    attempts: Vec<Attempt>,
    /// What holds it, as told by the sandbox's first process.
    confined: Confined,
    failure: Option<StepError>,
    ended: Option<(spec::Ending, UsageSpec)>,
    /// Nobody in the sandbox can report any more.
    silent: bool,
    gone: bool,
    stop: Option<Stop>,
    /// It was asked to end.
    asked: Option<Asking>,
    started: Instant,
    /// By the clock that file systems stamp changes with.
    began: Since,
    deadline: Option<Instant>,
    /// How it is asked to end then.
    grace: Grace,
    orphans: bool,
    view_bytes_max: u64,
    room: Room,
}

impl Running {
    pub(crate) fn start(
        pool: &Arc<Pool>,
        command: &Command<'_>,
        streams: Streams,
    ) -> Result<Self, StepError> {
        if command.views.len() > VIEWS_MAX {
            let why = format!("a command can be shown {VIEWS_MAX} directories");
            let on = format!("{} directories", command.views.len());
            return Err(StepError::new(Step::ViewPlace, on, io::Error::other(why)));
        }
        let started = Instant::now();
        let began = Since::now();
        let (surroundings, not_on_disk) = surroundings(command, pool)?;
        let key = surroundings.encode();
        let first = surroundings.places.views.first();
        let owners = match first.map(|view| Owners::of(&view.whose)) {
            None => None,
            Some(owners) => owners?,
        };
        let mut views = Vec::new();
        for view in &command.views {
            if view.mode == ViewMode::CopyOnWrite {
                let held = view.dir.duplicate();
                views.push(held.at(Step::ViewSource, view.at.display().to_string())?);
            }
        }
        let program = Program {
            argv: command.argv.clone(),
            env: command.env.clone(),
            cwd: command.cwd.as_os_str().as_bytes().to_vec(),
            inputs: command
                .inputs
                .iter()
                .map(|(name, bytes)| (name.as_bytes().to_vec(), bytes.clone()))
                .collect(),
            merge_stderr: command.merge_stderr,
            on_terminal: matches!(streams.stdin, Input::Terminal(_)),
            interpreter: false,
            proxied: Proxied::by(command.network.allow()),
        };
        let bytes_max = command.limits.output_bytes_max;
        let (recipe, message) = if pool.size().interpreters_max > 0 && streams.are_usual() {
            Recipe::of(&program, pool.size().interpreters).unzip()
        } else {
            (None, None)
        };
        let mut waiting = pool.take(&key, recipe.as_ref())?;
        // One that failed while it was built says why, which is better than a
        // broken pipe; and it is heard below.
        let (ours, told) = match (waiting.started.take(), message) {
            (Some(started), Some(message)) => {
                let told = started.run(&message);
                (Ours::of(started, bytes_max), told)
            }
            _ => {
                let prepared = waiting.prepared.take();
                let (ours, theirs) = streams.open(prepared, command.merge_stderr, bytes_max)?;
                let told = waiting
                    .control
                    .send(&program.encode(), &theirs.descriptors());
                (ours, told)
            }
        };
        let mut running = Self {
            pool: Arc::clone(pool),
            key,
            recipe,
            generation: waiting.generation,
            control: waiting.control,
            heard: waiting.heard,
            is_noticed: false,
            group: None,
            first: None,
            first_number: None,
            main: None,
            killer: Killer::default(),
            stdin: ours.stdin,
            stdout: ours.stdout,
            stderr: ours.stderr,
            may_wait: !surroundings.places.withhold(),
            views,
            owners,
            layers: Vec::new(),
            merged: Vec::new(),
            underway: None,
            allow: command.network.has_peers().then(|| {
                (
                    command.network.allow().clone(),
                    command.network.notice().clone(),
                )
            }),
            proxy: None,
            attempts: Vec::new(),
            confined: Confined::default(),
            failure: None,
            ended: None,
            silent: false,
            gone: false,
            stop: None,
            asked: None,
            started,
            began,
            deadline: started.checked_add(command.limits.timeout),
            grace: command.limits.grace,
            orphans: surroundings.faults.orphans,
            view_bytes_max: command.limits.view_bytes_max,
            room: Room::new(&command.limits, not_on_disk),
        };
        // What was heard before does not show in the conversation again, and the
        // command may wait for it: the proxy is answered from here on.
        if !running.heard.is_empty() {
            running.listen()?;
        }
        match told {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) => {
                running.kill();
                return Err(StepError::new(Step::Talk, "command", error));
            }
        }
        Ok(running)
    }

    /// The writing end of the command's input, if it was asked for. Dropping
    /// it ends the input.
    pub fn take_stdin(&mut self) -> Option<OwnedFd> {
        self.stdin.take()
    }

    /// Kills the command and everything it started. Its end is waited for as
    /// for any other.
    pub fn kill(&mut self) {
        self.stop_for(Ending::Killed);
    }

    /// Asks the command to end, and kills it with everything it started if it has not
    /// when its grace is over. Its end is waited for as for any other.
    pub fn end(&mut self, grace: Grace) {
        self.ask_for(Ending::Killed, grace);
    }

    /// What kills it from any thread, while this one waits for its end.
    #[must_use]
    pub fn killer(&self) -> Killer {
        self.killer.clone()
    }

    /// A way to what it has made so far, for others than who waits for its end.
    ///
    /// # Errors
    /// No more descriptors can be had.
    pub fn underway(&mut self) -> io::Result<Underway> {
        if let Some(underway) = &self.underway {
            return Ok(underway.clone());
        }
        let owners = self.owners.clone();
        let made = Underway::new(&self.views, self.began.clone(), owners, self.view_bytes_max)?;
        if !self.layers.is_empty() {
            made.lies_in(&self.layers, &self.merged)?;
        }
        self.underway = Some(made.clone());
        Ok(made)
    }

    /// How long it has run, its sandbox included.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whom it tried to reach through the proxy so far, but for the first `known` attempts.
    #[must_use]
    pub fn tried_since(&self, known: usize) -> Vec<Attempt> {
        let tried = |proxy: &Proxy| proxy.tried_since(known);
        self.proxy.as_ref().map(tried).unwrap_or_default()
    }

    /// Waits for the end, and for what the command did.
    ///
    /// # Errors
    /// The sandbox could not be built, and nothing ran; or what was done could
    /// not be read.
    pub fn wait(self) -> Result<Finished, SpawnError> {
        self.wait_with(|_, _| {})
    }

    /// Waits, and shows each piece of captured output as it comes.
    ///
    /// # Errors
    /// As for [`Running::wait`].
    pub fn wait_with(
        mut self,
        mut show: impl FnMut(Stream, &[u8]),
    ) -> Result<Finished, SpawnError> {
        // What is over has nothing left that would wake who waits for it.
        while !self.is_over() {
            self.turn(None, &mut show)?;
        }
        self.finish(&mut show)
    }

    /// Waits at most `patience` for something to happen and shows new output.
    /// Returns whether the command has ended; then [`Running::wait`] returns
    /// without waiting.
    ///
    /// # Errors
    /// The kernel could not be asked.
    pub fn attend(
        &mut self,
        patience: Duration,
        mut show: impl FnMut(Stream, &[u8]),
    ) -> Result<bool, SpawnError> {
        if self.is_over() {
            return Ok(true);
        }
        Ok(self.turn(Some(patience), &mut show)?)
    }

    /// Whether its sandbox is made, or failed to be.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        !self.layers.is_empty() || self.failure.is_some() || self.is_over()
    }

    /// What to wait on for reading; see [`Running::next_deadline`].
    pub(crate) fn sources(&self) -> Vec<BorrowedFd<'_>> {
        let mut sources = Vec::with_capacity(4);
        if self.silent || self.stop.is_some() {
            sources.extend(self.first.as_ref().map(AsFd::as_fd));
        }
        if !self.silent {
            sources.push(self.control.as_fd());
        }
        sources.extend(self.stdout.pipe().map(AsFd::as_fd));
        sources.extend(self.stderr.pipe().map(AsFd::as_fd));
        sources
    }

    /// When something is due even if nothing can be read.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match (self.stop, self.asked) {
            (Some(stop), _) => stop.next(),
            (None, Some(asked)) => asked.next(),
            (None, None) => self.deadline,
        }
    }

    /// Waits once and looks at everything. Returns whether it is over.
    pub(crate) fn turn(
        &mut self,
        patience: Option<Duration>,
        show: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<bool, StepError> {
        if self.killer.was_asked() {
            self.stop_for(Ending::Killed);
        }
        let now = Instant::now();
        self.began.look();
        let is_due = self.next_deadline().is_some_and(|due| now >= due);
        if is_due && !self.go_on_stopping(now) {
            self.abandon();
            return Ok(true);
        }
        self.look_at_room(now);
        let due = [self.next_deadline(), self.next_look_at_room()]
            .into_iter()
            .flatten()
            .min()
            .map(|due| sleep::near(due.saturating_duration_since(now)));
        let timeout = match (due, patience) {
            (Some(due), Some(patience)) => Some(due.min(patience)),
            (due, patience) => due.or(patience),
        };
        self.sleep(timeout)?;
        self.stdout
            .read(&mut |bytes| show(Stream::Stdout, bytes))
            .at(Step::Talk, "stdout")?;
        self.stderr
            .read(&mut |bytes| show(Stream::Stderr, bytes))
            .at(Step::Talk, "stderr")?;
        self.listen()?;
        if self.silent || self.stop.is_some() {
            self.look_for_the_end()?;
        }
        Ok(self.is_over())
    }

    fn is_over(&self) -> bool {
        self.ended.is_some() || self.gone
    }

    fn sleep(&self, timeout: Option<Duration>) -> Result<(), StepError> {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let sources = self.sources();
        let mut wanted: Vec<_> = sources
            .iter()
            .map(|source| PollFd::from_borrowed_fd(*source, PollFlags::IN))
            .collect();
        match poll(&mut wanted, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(StepError::new(Step::Talk, "poll", errno)),
        }
    }

    /// Takes every report that is there.
    fn listen(&mut self) -> Result<(), StepError> {
        while !self.silent && self.ended.is_none() {
            let received = match self.heard.pop_front() {
                Some((frame, descriptors)) => Received::Frame(frame, descriptors),
                None => self.control.receive_now().at(Step::Talk, "")?,
            };
            let (frame, descriptors) = match received {
                Received::Frame(frame, descriptors) => (frame, descriptors),
                Received::Nothing => return Ok(()),
                Received::Closed => {
                    self.silent = true;
                    // Without a first process there is no end to wait for.
                    self.gone = self.first.is_none();
                    return Ok(());
                }
            };
            // Whatever it says, somebody answers.
            self.is_noticed = true;
            match Report::decode(&frame) {
                Ok(Report::Ungrouped) => {}
                Ok(Report::Grouped(Ok((limited, tallies)))) => {
                    let held = Holding::from_parts(limited, tallies, descriptors);
                    let held = held.map(Arc::new);
                    self.group =
                        Some(held.ok_or_else(|| "its groups came without descriptors".to_owned()));
                }
                Ok(Report::Grouped(Err(why))) => self.group = Some(Err(why)),
                Ok(Report::Made {
                    attach_errno, init, ..
                }) => {
                    self.first_number = Some(init);
                    if attach_errno != 0 {
                        let error = io::Error::from_raw_os_error(attach_errno);
                        self.group =
                            Some(Err(format!("the command cannot be moved inside: {error}")));
                    }
                    self.first = descriptors.into_iter().next();
                    let groups = match &self.group {
                        Some(Ok(held)) => Arc::downgrade(held),
                        Some(Err(_)) | None => Weak::new(),
                    };
                    self.killer.reach(self.first.as_ref(), groups);
                    if self.stop.is_some() {
                        self.kill_first();
                    }
                }
                Ok(Report::Ready(confined, on_disk)) => {
                    let mut descriptors = descriptors.into_iter();
                    self.main = descriptors.next();
                    self.layers = descriptors.collect();
                    self.confined = confined;
                    self.is_ready(on_disk)?;
                }
                Ok(Report::Failed(error)) => self.failure = Some(error),
                Ok(Report::Clearing) => self.is_clearing(),
                Ok(Report::Retired) => {
                    self.failure = Some(StepError::new(
                        Step::Talk,
                        "",
                        io::Error::other("the sandbox had waited too long for a command"),
                    ));
                }
                Ok(Report::Ended(ending, usage)) => self.ended = Some((ending, usage)),
                Err(_) => {
                    return Err(StepError::new(
                        Step::Talk,
                        "",
                        io::Error::other("a garbled report"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Takes what came besides the layers and the exchange directory: what the command
    /// sees of the layers, its room on disk, if it has any, and the socket that listens inside, which is answered.
    fn is_ready(&mut self, on_disk: Option<Vec<u8>>) -> Result<(), StepError> {
        let after = self.views.len().saturating_add(1);
        let more = self.layers.split_off(after.min(self.layers.len()));
        let mut more = more.into_iter();
        self.merged = more.by_ref().take(self.views.len()).collect();
        if let Some(name) = on_disk {
            self.takes_room(name, more.next())?;
        }
        if let (Some(allow), Some(listener)) = (self.allow.take(), more.next()) {
            let proxy = Proxy::start(listener, allow, Box::new(SystemResolver));
            self.proxy = Some(proxy.at(Step::Network, "proxy")?);
        }
        if let Some(underway) = &self.underway {
            let known = underway.lies_in(&self.layers, &self.merged);
            known.at(Step::Talk, "layers")?;
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(underway) = &self.underway {
            underway.end();
        }
        if !self.is_over() && !self.orphans {
            self.hear_of_first();
            self.kill_first();
        }
    }
}

impl From<UsageSpec> for Usage {
    fn from(usage: UsageSpec) -> Self {
        Self {
            user: Duration::from_micros(usage.user_us),
            system: Duration::from_micros(usage.system_us),
            peak_resident_bytes: usage.peak_resident_bytes,
        }
    }
}
