//! Commands that go on running after the call that started them.
//!
//! Each one has a thread that drains its output, so that a flood never blocks
//! it, and ends it when told to. What it does happens on its own copies and is
//! decided when it has ended, under the call that started it, at the next call
//! of any tool: covered changes are kept, the rest is asked about or thrown
//! away. While it runs nobody else sees its changes.
//!
//! This module must never keep a command running whose grant was revoked or
//! whose session is over.

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant as Moment},
};

use hermitcrab_core::{
    approval::CallId,
    grant::AgentId,
    outcome::{Denial, DenialCode, Outcome},
    session::Event,
    time::Instant,
    tool::Tool,
};
use hermitcrab_sandbox::spawn::{Ending, Finished, Running, SpawnError, Streams};

use super::{
    Runtime,
    command::{Launch, Seen, summary},
    hands::Hands,
    machine::Machine,
    turn::Stop,
};
use crate::digest::sha256;

/// Output letters kept of one command.
const OUTPUT_LETTERS_MAX: usize = 200_000;
/// Commands known at one time, ended ones included.
const JOBS_MAX: usize = 64;
/// How long a command may run at most.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a thread looks whether its command is to end.
const PATIENCE: Duration = Duration::from_millis(20);

/// A background command, as a tool sees it.
#[derive(Clone, Debug)]
pub struct JobView {
    /// Its name for a model.
    pub id: String,
    /// The command.
    pub command: String,
    /// Where it was started.
    pub cwd: String,
    /// Seconds since it was started.
    pub uptime_seconds: u64,
    /// What it printed, the end of it.
    pub output: String,
    /// Whether to say so when it ends.
    pub notify: bool,
    /// Words watched for, and whether one came.
    pub watched: (Vec<String>, bool),
    /// How it ended; `None` while it runs.
    pub end: Option<JobEnd>,
}

/// How a background command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEnd {
    /// Its status; a signal is negative.
    pub status: i32,
    /// Whether it was killed by a call.
    pub killed: bool,
    /// Why what it did was thrown away, if it was.
    pub discarded: Option<Denial>,
}

/// What to start.
#[derive(Clone, Debug)]
pub struct JobRequest<'r> {
    /// For the shell.
    pub command: &'r str,
    /// Where, if not in the session's directory.
    pub workdir: Option<&'r str>,
    /// Whether to say so when it ends.
    pub notify: bool,
    /// Words to watch for.
    pub watch: Vec<String>,
}

/// All background commands of a runtime.
#[derive(Debug, Default)]
pub(super) struct Jobs(Vec<Job>);

#[derive(Debug)]
struct Job {
    id: String,
    call: CallId,
    by: AgentId,
    command: String,
    cwd: String,
    started: Instant,
    seen: Vec<Seen>,
    notify: bool,
    watch: Vec<String>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    killed: bool,
    end: Option<JobEnd>,
    told: bool,
}

/// What a job's thread and the runtime both see.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    stop: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    output: String,
    /// Bytes that may be the beginning of a letter.
    partial: Vec<u8>,
    finished: Option<Result<Finished, SpawnError>>,
    /// It was stopped and has been reported as finished.
    stopped: Option<Denial>,
    over: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here is left half done by a panic elsewhere.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, bytes: &[u8]) {
        self.lock().take(bytes);
    }

    fn attend(&self, mut running: Running, machine: &Machine, call: CallId) {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                running.kill();
            }
            match running.attend(PATIENCE, |_, bytes| self.take(bytes)) {
                Ok(false) => {}
                Ok(true) | Err(_) => break,
            }
        }
        let finished = running.wait_with(|_, bytes| self.take(bytes));
        let stopped = machine.why_stopped(call).map(|code| {
            // Whoever waits for its end hears of it now, not at the next call;
            // what it did is thrown away. A ledger that cannot be written
            // refuses the next call with the reason.
            let _recorded = machine.step(Event::Finished {
                call,
                outcome: Outcome::Stopped,
            });
            Denial::new(code, call)
        });
        let mut state = self.lock();
        state.finished = stopped.is_none().then_some(finished);
        state.stopped = stopped;
        state.over = true;
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until it is over, at most this long.
    fn wait(&self, patience: Duration) {
        let until = Moment::now().checked_add(patience);
        let mut state = self.lock();
        while !state.over {
            let left = until.map_or(PATIENCE, |until| {
                until.saturating_duration_since(Moment::now())
            });
            if left.is_zero() {
                return;
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl State {
    fn take(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        let whole = whole_letters(&self.partial);
        let rest = self.partial.split_off(whole);
        self.output
            .push_str(&String::from_utf8_lossy(&self.partial));
        self.partial = rest;
        // Cutting is linear, so it is not done for every few letters.
        if self.output.len() > OUTPUT_LETTERS_MAX * 5 {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let kept = crate::tools::pytext::tail(&self.output, OUTPUT_LETTERS_MAX).len();
        let from = self.output.len() - kept;
        self.output.drain(..from);
    }
}

/// How many of these bytes are letters in full, broken ones included.
fn whole_letters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // The last letters may still be unfinished; at most three bytes.
        Err(_) => (bytes.len().saturating_sub(3)..bytes.len())
            .find(|at| {
                bytes.get(*at..).is_some_and(|rest| {
                    std::str::from_utf8(rest)
                        .is_err_and(|error| error.error_len().is_none() && error.valid_up_to() == 0)
                })
            })
            .unwrap_or(bytes.len()),
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has dropped its command, which killed it.
            let _joined = thread.join();
        }
    }
}

impl Job {
    fn view(&self, now: Instant) -> JobView {
        let mut state = self.shared.lock();
        state.cut();
        let output = state.output.clone();
        drop(state);
        let hit = output
            .lines()
            .any(|line| self.watch.iter().any(|word| line.contains(word.as_str())));
        JobView {
            id: self.id.clone(),
            command: self.command.clone(),
            cwd: self.cwd.clone(),
            uptime_seconds: now.as_millis().saturating_sub(self.started.as_millis()) / 1000,
            output,
            notify: self.notify,
            watched: (self.watch.clone(), hit),
            end: self.end.clone(),
        }
    }
}

impl Hands<'_> {
    /// Starts a command and leaves it running.
    pub fn start(&mut self, request: &JobRequest<'_>) -> Result<JobView, Stop> {
        self.make_room()?;
        let base = self.cwd();
        let cwd = request.workdir.map_or_else(
            || base.clone(),
            |workdir| base.join(super::place::tilde_expanded(workdir, self.home())),
        );
        let cwd = cwd.to_string_lossy().into_owned();
        let seen = self.seen()?;
        let launch = Launch {
            tool: Tool::Terminal,
            about: request.command,
            argv: vec![
                b"/usr/bin/bash".to_vec(),
                b"-c".to_vec(),
                b"builtin cd -- \"$1\" || exit 126\nexec /usr/bin/bash -lc \"set +m; $2\"".to_vec(),
                b"bash".to_vec(),
                cwd.clone().into_bytes(),
                request.command.as_bytes().to_vec(),
            ],
            env: vec![(b"PYTHONUNBUFFERED".to_vec(), b"1".to_vec())],
            inputs: Vec::new(),
            merge_stderr: true,
            timeout: LIFETIME,
        };
        let (call, running) = self.launch(launch, &seen, Streams::default())?;
        let running = match running {
            Ok(running) => running,
            Err(error) => return Err(self.not_started(call, error)?),
        };
        let id = crate::ambient::session_number()
            .map(|number| format!("proc_{:012x}", number & 0xffff_ffff_ffff));
        let id = match id {
            Ok(id) => id,
            Err(error) => {
                drop(running);
                self.finish(call, Outcome::Stopped)?;
                return Err(Stop::Io(error.to_string()));
            }
        };
        let shared = Arc::new(Shared::default());
        let thread = std::thread::Builder::new().name(id.clone()).spawn({
            let (shared, machine) = (Arc::clone(&shared), self.runtime.machine.clone());
            move || shared.attend(running, &machine, call)
        });
        let thread = match thread {
            Ok(thread) => thread,
            Err(error) => {
                self.finish(call, Outcome::Stopped)?;
                return Err(Stop::Io(error.to_string()));
            }
        };
        let now = self.runtime.clock.now();
        let job = Job {
            id,
            call,
            by: self.by,
            command: request.command.to_owned(),
            cwd,
            started: now,
            seen,
            notify: request.notify,
            watch: request.watch.clone(),
            shared,
            thread: Some(thread),
            killed: false,
            end: None,
            told: false,
        };
        let view = job.view(now);
        self.runtime.jobs.0.push(job);
        Ok(view)
    }

    /// A launch that came to nothing, as a reason to stop.
    pub(super) fn not_started(&mut self, call: CallId, error: SpawnError) -> Result<Stop, Stop> {
        match error {
            SpawnError::Denied(denial) => {
                self.finish(call, Outcome::Refused(denial.code()))?;
                Ok(Stop::refused(denial))
            }
            SpawnError::Step(error) => match self.stopped(call) {
                // Killed before its sandbox was ready.
                Some(denial) => {
                    self.finish(call, Outcome::Stopped)?;
                    Ok(Stop::refused(denial))
                }
                None => {
                    self.finish(call, Outcome::Failed)?;
                    Ok(Stop::Broken(error.to_string()))
                }
            },
            SpawnError::ChangeSet(error) => {
                let denial = Denial::new(DenialCode::EffectNotCovered, error);
                self.finish(call, Outcome::Discarded(denial.code()))?;
                Ok(Stop::refused(denial))
            }
        }
    }

    fn make_room(&mut self) -> Result<(), Stop> {
        let jobs = &mut self.runtime.jobs.0;
        if jobs.len() < JOBS_MAX {
            return Ok(());
        }
        match jobs.iter().position(|job| job.end.is_some()) {
            Some(oldest) => {
                jobs.remove(oldest);
                Ok(())
            }
            None => Err(Stop::refused(Denial::new(
                DenialCode::LimitReached,
                "background commands at one time",
            ))),
        }
    }

    /// The background commands of this agent: running ones, then ended ones.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobView> {
        let now = self.runtime.clock.now();
        let own = |ended: bool| {
            self.runtime
                .jobs
                .0
                .iter()
                .filter(move |job| job.by == self.by && job.end.is_some() == ended)
        };
        own(false)
            .chain(own(true))
            .map(|job| job.view(now))
            .collect()
    }

    /// One of them; another agent's is none.
    #[must_use]
    pub fn job(&self, id: &str) -> Option<JobView> {
        let now = self.runtime.clock.now();
        let mut own = self.runtime.jobs.0.iter().filter(|job| job.by == self.by);
        own.find(|job| job.id == id).map(|job| job.view(now))
    }

    /// Waits for one to end, at most this long, and decides what it did.
    pub fn wait_for(&mut self, id: &str, patience: Duration) -> Result<(), Stop> {
        if let Some(job) = self.own_job(id) {
            Arc::clone(&job.shared).wait(patience);
        }
        self.look_after()
    }

    /// Ends one, and decides what it did until then.
    pub fn kill(&mut self, id: &str) -> Result<(), Stop> {
        if let Some(job) = self.own_job(id) {
            job.killed = true;
            job.shared.stop.store(true, Ordering::Relaxed);
            let shared = Arc::clone(&job.shared);
            shared.wait(LIFETIME);
        }
        self.look_after()
    }

    fn own_job(&mut self, id: &str) -> Option<&mut Job> {
        let by = self.by;
        let mut jobs = self.runtime.jobs.0.iter_mut();
        jobs.find(|job| job.id == id && job.by == by)
    }

    /// Decides what commands did that have ended since the last look.
    pub fn look_after(&mut self) -> Result<(), Stop> {
        while let Some(place) = self.runtime.jobs.0.iter().position(Job::is_undecided) {
            let Some(job) = self.runtime.jobs.0.get_mut(place) else {
                break;
            };
            let (finished, stopped) = {
                let mut state = job.shared.lock();
                (state.finished.take(), state.stopped.take())
            };
            let (call, command, killed) = (job.call, job.command.clone(), job.killed);
            let seen = std::mem::take(&mut job.seen);
            if let Some(denial) = stopped {
                job.killed = true;
                job.end = Some(JobEnd::stopped(denial));
                continue;
            }
            let end = match finished {
                Some(Ok(finished)) => self.decide(call, &command, &seen, &finished, killed)?,
                // Killed before its sandbox was ready: it never began.
                Some(Err(SpawnError::Step(_))) if killed => {
                    self.finish(call, Outcome::Stopped)?;
                    JobEnd {
                        status: -15,
                        killed,
                        discarded: None,
                    }
                }
                Some(Err(error)) => {
                    let stop = self.not_started(call, error)?;
                    JobEnd {
                        status: -1,
                        killed,
                        discarded: Some(Denial::new(DenialCode::UnknownCall, stop.words())),
                    }
                }
                None => JobEnd {
                    status: -1,
                    killed,
                    discarded: None,
                },
            };
            if let Some(job) = self.runtime.jobs.0.get_mut(place) {
                job.end = Some(end);
            }
        }
        Ok(())
    }

    fn decide(
        &mut self,
        call: CallId,
        command: &str,
        seen: &[Seen],
        finished: &Finished,
        killed: bool,
    ) -> Result<JobEnd, Stop> {
        let status = match finished.ending {
            _ if killed => -15,
            Ending::Exited(status) => status,
            Ending::Signalled(signal) => -signal,
            Ending::TimedOut => 124,
            Ending::OutOfMemory | Ending::Killed => -9,
        };
        *self.changes = summary(&finished.changes);
        // What was revoked while it ran does not cover what it did.
        if let Err(error) = self.runtime.heed() {
            self.finish(call, Outcome::Failed)?;
            return Err(Stop::Broken(error.to_string()));
        }
        let settled = self.settle(call, command, seen, finished);
        let outcome = match &settled {
            Ok(None) if killed => Outcome::Stopped,
            Ok(None) => Outcome::Done(sha256(&finished.stdout.to_bytes())),
            Ok(Some((denial, _))) => Outcome::Discarded(denial.code()),
            Err(_) => Outcome::Failed,
        };
        self.finish(call, outcome)?;
        Ok(JobEnd {
            status,
            killed,
            discarded: settled?.map(|(denial, _)| denial),
        })
    }
}

impl JobEnd {
    /// It ran on what was ended.
    fn stopped(denial: Denial) -> Self {
        Self {
            status: -15,
            killed: true,
            discarded: Some(denial),
        }
    }
}

impl Job {
    fn is_undecided(&self) -> bool {
        self.end.is_none() && self.shared.lock().over
    }
}

impl Runtime {
    /// Kills the background commands of these calls; what they did is lost.
    pub(super) fn stop_jobs(&mut self, stopped: impl Fn(CallId) -> bool) -> Result<(), Denial> {
        let mut calls = Vec::new();
        for job in &mut self.jobs.0 {
            if job.end.is_none() && stopped(job.call) {
                job.killed = true;
                job.shared.stop.store(true, Ordering::Relaxed);
                job.shared.wait(LIFETIME);
                job.seen.clear();
                let mut state = job.shared.lock();
                state.finished = None;
                let reported = state.stopped.take();
                drop(state);
                if reported.is_none() {
                    calls.push(job.call);
                }
                let denial = reported.unwrap_or_else(|| Denial::new(DenialCode::Revoked, job.call));
                job.end = Some(JobEnd::stopped(denial));
            }
        }
        for call in calls {
            let outcome = Outcome::Stopped;
            self.step(Event::Finished { call, outcome })?;
        }
        Ok(())
    }

    /// Whether any background command is still running.
    #[must_use]
    pub fn has_running_jobs(&self) -> bool {
        self.jobs.0.iter().any(|job| !job.shared.lock().over)
    }

    /// What ended, of an agent, and asked to be told: each once.
    pub fn take_endings(&mut self, agent: AgentId) -> Vec<JobView> {
        let now = self.clock.now();
        let mut ended = Vec::new();
        for job in &mut self.jobs.0 {
            if job.by == agent && job.notify && job.end.is_some() && !job.told {
                job.told = true;
                ended.push(job.view(now));
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::{State, whole_letters};

    #[test]
    fn letters_are_not_torn_apart_and_broken_ones_do_not_hold_up() {
        let mut state = State::default();
        for byte in "a\u{e9}\u{1f600}z".as_bytes() {
            state.take(&[*byte]);
        }
        assert_eq!(state.output, "a\u{e9}\u{1f600}z");
        state.take(b"\xff\xfeok");
        assert!(state.output.ends_with("\u{fffd}\u{fffd}ok"));
        assert_eq!(whole_letters(b"\xffa\xf0\x9f"), 2);
    }

    #[test]
    fn only_the_end_of_a_flood_is_kept() {
        let mut state = State::default();
        for _ in 0..300 {
            state.take(&[b'x'; 4096]);
        }
        state.take(b"end");
        state.cut();
        assert_eq!(state.output.len(), super::OUTPUT_LETTERS_MAX);
        assert!(state.output.ends_with("end"));
    }
}
