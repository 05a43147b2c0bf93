//! Commands that go on running after the call that started them.
//!
//! Each one has a thread that drains its output, so that a flood never blocks
//! it, and ends it when told to. What it does happens on its own copies and is
//! decided when it has ended, under the call that started it, at the next call
//! of any tool, when a turn of the conversation begins, or before the session
//! ends (`ends`): covered changes are kept, the rest is asked about or thrown
//! away. What is held without a question is kept while it runs (`afoot`), and
//! nobody else sees the rest before its end.
//!
//! This module must never keep a command running whose grant was revoked or
//! whose session is over.

mod attended;
mod complaints;
mod decided;
mod ends;
mod typed;
mod watch;

use std::{sync::Arc, thread::JoinHandle, time::Duration};

use hermitcrab_core::{
    approval::CallId,
    authority::Object,
    fault::Fault,
    grant::AgentId,
    outcome::{Denial, DenialCode, Outcome},
    session::Event,
    time::Instant,
    tool::Tool,
};
use hermitcrab_sandbox::spawn::{Grace, SpawnError, Streams};

use self::{attended::Attended, watch::Watch};
pub use self::{decided::JobEnd, watch::Notice};
use super::{
    Runtime,
    afoot::Stands,
    command::{Launch, Whose, on_terminal},
    hands::Hands,
    seen::{Seen, unless_planted},
    turn::Stop,
};
use crate::pty::{self, Pty};

/// Commands known at one time, ended ones included.
const JOBS_MAX: usize = 64;
/// How long a command may run at most.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// What one that is ended has to put away what it made.
const GRACE: Grace = Grace::Terminate(Duration::from_secs(2));
/// The same on a terminal, which is taken away.
const GRACE_ON_TERMINAL: Grace = Grace::HangUp(Duration::from_millis(100));

/// A background command, as a tool sees it.
#[derive(Clone, Debug)]
pub struct JobView {
    /// Its name for a model.
    pub id: String,
    /// The command.
    pub command: String,
    /// Where it was started.
    pub cwd: String,
    /// When it was started, by the wall clock.
    pub started_at: String,
    /// Seconds since it was started.
    pub uptime_seconds: u64,
    /// What it printed, the end of it.
    pub output: String,
    /// Whether to say so when it ends.
    pub notify: bool,
    /// Words watched for, and whether one came.
    pub watched: (Vec<String>, bool),
    /// Whether it has a terminal of its own.
    pub has_terminal: bool,
    /// How it ended; `None` while it runs.
    pub end: Option<JobEnd>,
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
    /// Whether it runs on a terminal of its own.
    pub terminal: bool,
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
    seen: Arc<[Seen]>,
    whose: Whose,
    /// The peers it was let reach.
    reaches: Vec<Object>,
    notify: bool,
    started_at: String,
    shared: Arc<Attended>,
    thread: Option<JoinHandle<()>>,
    killed: bool,
    end: Option<JobEnd>,
    told: bool,
}

impl Drop for Job {
    fn drop(&mut self) {
        self.shared.stop();
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
        let output = complaints::without(&state.output).to_owned();
        let watched = state.watch.shown();
        let given_up = state.watch.has_given_up();
        drop(state);
        JobView {
            id: self.id.clone(),
            command: self.command.clone(),
            cwd: self.cwd.clone(),
            started_at: self.started_at.clone(),
            uptime_seconds: now.as_millis().saturating_sub(self.started.as_millis()) / 1000,
            output,
            notify: self.notify || given_up,
            watched,
            has_terminal: self.shared.terminal().is_some(),
            end: self.end.clone(),
        }
    }
}

/// What the shell that starts a command runs: an interactive login shell, as
/// the user's own is, so that its words and its start-up files are the same.
const SHELL: &str = "builtin cd -- \"$1\" || exit 126\nexec /usr/bin/bash -lic \"set +m; $2\"";

/// The streams of a command, and the agent's end of its terminal.
fn streams(has_terminal: bool) -> Result<(Option<Pty>, Streams), Stop> {
    if !has_terminal {
        return Ok((None, Streams::default()));
    }
    let io = |error: std::io::Error| Stop::Io(format!("no terminal for the command: {error}"));
    let (terminal, theirs) = Pty::open(pty::SIZE).map_err(io)?;
    Ok((Some(terminal), on_terminal(&theirs).map_err(io)?))
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
        let seen = unless_planted(Fault::BackgroundIsShownAll, self.seen()?);
        let seen: Arc<[Seen]> = seen.into();
        let launch = Launch {
            tool: Tool::Terminal,
            about: request.command,
            argv: vec![
                b"/usr/bin/bash".to_vec(),
                b"-c".to_vec(),
                SHELL.as_bytes().to_vec(),
                b"bash".to_vec(),
                cwd.clone().into_bytes(),
                request.command.as_bytes().to_vec(),
            ],
            env: vec![(b"PYTHONUNBUFFERED".to_vec(), b"1".to_vec())],
            inputs: Vec::new(),
            merge_stderr: true,
            timeout: LIFETIME,
            grace: Grace::None,
        };
        let whose = self.whose();
        let reaches = self.reached_from_now();
        let (terminal, streams) = streams(request.terminal)?;
        let (call, running) = self.launch(launch, &seen, streams)?;
        let mut running = match running {
            Ok(running) => running,
            Err(error) => return Err(self.not_started(call, error)?),
        };
        let afoot = &self.runtime.afoot;
        let how = (&mut running, Stands::Early);
        afoot.begin(call, request.command, &seen, how, &self.runtime.machine);
        afoot.follow(call);
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
        let shared = Attended::new(Watch::new(request.watch.clone()), terminal);
        // What is done next is done to the directories it was to see.
        shared.until_it_begins(&mut running);
        let thread = std::thread::Builder::new().name(id.clone()).spawn({
            let (shared, machine) = (Arc::clone(&shared), self.runtime.machine.clone());
            let port = self.runtime.end_port.clone();
            let (id, command) = (id.clone(), request.command.to_owned());
            move || {
                shared.attend(running, &machine, call);
                if let (Some(port), Some(end)) = (port, ends::ended(&id, &command, &shared)) {
                    port.ended(end);
                }
            }
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
            whose,
            reaches,
            notify: request.notify,
            started_at: crate::ambient::local_time(crate::ambient::wall_time()),
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
                let denial = error.denial();
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
                format_args!("{JOBS_MAX} background commands at one time; end one of them"),
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

    /// Asks one to end, kills it if it does not, and decides what it did until then.
    pub fn kill(&mut self, id: &str) -> Result<(), Stop> {
        if let Some(job) = self.own_job(id) {
            job.killed = true;
            job.shared.end();
            let shared = Arc::clone(&job.shared);
            shared.wait(LIFETIME);
        }
        self.look_after()
    }

    /// Notes that a call has told how one ended, which is not told again where that was asked for.
    pub fn end_is_told(&mut self, id: &str) {
        if let Some(job) = self.own_job(id) {
            job.told = true;
        }
    }

    fn own_job(&mut self, id: &str) -> Option<&mut Job> {
        let by = self.by;
        let mut jobs = self.runtime.jobs.0.iter_mut();
        jobs.find(|job| job.id == id && job.by == by)
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
                job.shared.stop();
                job.shared.wait(LIFETIME);
                job.seen = Arc::new([]);
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

    /// The background command of a call, by its name and as it was given.
    pub(super) fn background_command(&self, call: CallId) -> Option<(&str, &str)> {
        let job = self.jobs.0.iter().find(|job| job.call == call)?;
        Some((&job.id, &job.command))
    }

    /// Whether any background command is still running.
    #[must_use]
    pub fn has_running_jobs(&self) -> bool {
        self.jobs.0.iter().any(|job| !job.shared.lock().over)
    }

    /// What commands of an agent that run have to say: each once.
    pub fn take_notices(&mut self, agent: AgentId) -> Vec<(JobView, Notice)> {
        let now = self.clock.now();
        let mut told = Vec::new();
        for job in self.jobs.0.iter().filter(|job| job.by == agent) {
            let notices = std::mem::take(&mut job.shared.lock().notices);
            // What it prints after its end is known is no news.
            if job.end.is_none() {
                told.extend(notices.into_iter().map(|notice| (job.view(now), notice)));
            }
        }
        told
    }

    /// What ended, of an agent, and asked to be told: each once.
    pub fn take_endings(&mut self, agent: AgentId) -> Vec<JobView> {
        let now = self.clock.now();
        let mut ended = Vec::new();
        for job in &mut self.jobs.0 {
            let notify = job.notify || job.shared.lock().watch.has_given_up();
            if job.by == agent && notify && job.end.is_some() && !job.told {
                job.told = true;
                ended.push(job.view(now));
            }
        }
        ended
    }
}
