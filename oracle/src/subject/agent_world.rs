//! One run of a case by the agent: its runtime, its user, its clock.
//!
//! The runtime is the agent's own; here is only what a case brings along: the
//! grants in words, a user who answers as the case says, a clock that moves
//! when the script says so.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bisim_world::WorldError;
use bisim_world::driver::StepSink;
use bisim_world::environment::ENVIRONMENT;
use bisim_world::protocol::{Context, Held, Job, Restart, Step, StepOutcome, StepTrace, UserModel};
use hermitcrab::approvals::DeskUser;
use hermitcrab::model::ModelPort;
use hermitcrab::ports::UserPort;
use hermitcrab::runtime::{CallReport, GrantWords, Runtime, RuntimeConfig};
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::session::Asking;
use hermitcrab_core::time::Millis;
use hermitcrab_sandbox::SpawnerProgram;
use serde_json::Value;

use self::clock::CaseClock;
use self::doors::{Children, Doors, Kept, Names};
use self::jobs::CaseJobs;
use self::kept::Surrounding;
use self::user::{CaseUser, Said};

pub use self::error::ProbeError;
pub use self::parts::Between;

mod bounds;
mod clock;
mod doors;
mod error;
mod jobs;
mod kept;
mod left;
mod parts;
mod rules;
mod servers;
mod step;
mod user;

/// Where the agent's ledger lies in a world; no effect, like Hermes' own state.
pub const STATE_DIR: &str = "/.agent";

/// The probe that has a plan carried out.
pub const PLAN_PROBE: &str = "plan";
/// The probe that takes a commit back.
pub const UNDO_PROBE: &str = "undo";
/// The probe that tries out the sandbox in a world.
pub const ISOLATION_PROBE: &str = "isolation_profile";
/// Its value if every mandatory mechanism was seen to work.
pub const ISOLATED: &str = "isolated";

/// Answers a probe by its name.
pub type Probes = fn(&AgentWorld<'_>, &str, &Value) -> Result<Value, ProbeError>;

/// What the agent's worker found out about this machine before any case.
#[derive(Clone, Debug)]
pub struct Machine {
    /// What the sandbox's own probe says.
    pub isolation: Isolation,
    /// The program started as the sandbox's helper.
    pub spawner: SpawnerProgram,
}

/// A case as the agent sees it.
pub struct AgentWorld<'j> {
    job: &'j Job,
    machine: &'j Machine,
    clock: CaseClock,
    open: RefCell<Option<Open>>,
    /// What the user will say and was asked, whichever session it is in.
    said: Rc<Said>,
    /// There if the case starts the program again.
    surrounding: Kept,
    /// How often it was started.
    starts: Cell<u64>,
    /// It did not start again.
    is_closed: Cell<bool>,
    /// It was killed, and is not started yet.
    is_gone: Cell<bool>,
    /// Where a step comes apart, if somebody wants to know.
    between: Option<Between>,
}

struct Open {
    runtime: Runtime,
    grants: Names,
    children: Children,
}

impl<'j> AgentWorld<'j> {
    /// Prepares a case; the runtime is opened when something needs it.
    #[must_use]
    pub fn new(job: &'j Job, machine: &'j Machine) -> Self {
        let clock = CaseClock::of(job);
        let restarts = job
            .script
            .iter()
            .any(|step| matches!(step, Step::Restart(_)));
        let surrounding = Kept::new(RefCell::new(restarts.then(Surrounding::new)));
        let workspace = job.world.as_ref().map(|world| world.cwd.as_str());
        let doors = Doors {
            names: Names::default(),
            children: Children::default(),
            clock: clock.clone(),
            kept: Kept::clone(&surrounding),
            workspace: PathBuf::from(workspace.unwrap_or_default()),
            isolation: machine.isolation,
            has_ended: Cell::new(false),
        };
        Self {
            job,
            machine,
            clock,
            open: RefCell::new(None),
            said: Rc::new(Said::of(job, doors)),
            surrounding,
            starts: Cell::new(0),
            is_closed: Cell::new(false),
            is_gone: Cell::new(false),
            between: None,
        }
    }

    /// Whoever watches the world is told where a conversation comes apart.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn watch_parts(&mut self, steps: &StepSink) -> Result<(), WorldError> {
        // What is judged part by part is judged by the answers in each of them.
        if self.tells_questions() {
            self.between = Some(Between::new(&self.said, steps.parts()?));
        }
        Ok(())
    }

    /// Tells them, if they want to know.
    #[must_use]
    pub fn between(&self) -> Option<Between> {
        self.between.clone()
    }

    /// Whether it matters what was said to the questions of a conversation.
    fn tells_questions(&self) -> bool {
        matches!(self.job.user, UserModel::Words(_))
    }

    /// The same after the program was killed in the middle of this step: what it was told
    /// and given before is gone, and what its user says is the last of their words.
    #[must_use]
    pub fn again(job: &'j Job, machine: &'j Machine, step: usize) -> Self {
        let world = Self::new(job, machine);
        let mut starts = 1;
        for earlier in job.script.iter().take(step) {
            match earlier {
                Step::Advance { seconds } => world.clock.advance(*seconds),
                Step::Restart(restart) => {
                    starts += 1;
                    if let Some(kept) = world.surrounding.borrow_mut().as_mut() {
                        kept.follow(restart);
                    }
                }
                Step::Call { .. }
                | Step::Probe { .. }
                | Step::Grant(_)
                | Step::Revoke { .. }
                | Step::EndSession {}
                | Step::Spawn { .. } => {}
            }
        }
        world.starts.set(starts);
        world.is_gone.set(true);
        world.said.only_last();
        world
    }

    /// Whoever is asked from here on says no.
    pub fn hush(&self) {
        self.said.hush();
    }

    /// The case.
    #[must_use]
    pub fn job(&self) -> &Job {
        self.job
    }

    /// The grants the case starts with.
    #[must_use]
    pub fn held(&self) -> &[Held] {
        &self.job.held
    }

    /// The session's directory; `None` without a world.
    #[must_use]
    pub fn cwd(&self) -> Option<&str> {
        self.job.world.as_ref().map(|world| world.cwd.as_str())
    }

    /// Runs a tool call of the session's own agent, for a probe.
    ///
    /// # Errors
    /// There is no world to run it in, or the runtime cannot be opened.
    pub fn call(&self, tool: &str, args: &Value) -> Result<CallReport, ProbeError> {
        self.with_runtime(|runtime| {
            let agent = runtime.first_agent();
            runtime.call(agent, tool, args)
        })
    }

    /// Uses the case's runtime, with the case's grants given.
    ///
    /// # Errors
    /// There is no world, or the runtime cannot be opened.
    pub fn with_runtime<T>(&self, body: impl FnOnce(&mut Runtime) -> T) -> Result<T, ProbeError> {
        self.with_open(|open| body(&mut open.runtime))
            .map_err(ProbeError::Failed)
    }

    fn with_open<T>(&self, body: impl FnOnce(&mut Open) -> T) -> Result<T, String> {
        let mut slot = self
            .open
            .try_borrow_mut()
            .map_err(|_| "the runtime is in use".to_owned())?;
        let open = match slot.take() {
            Some(open) => open,
            None => self.begin()?.ok_or("the agent does not start")?,
        };
        Ok(body(slot.insert(open)))
    }

    /// Starts the program; `None`: it refuses to, for what became of its files.
    fn begin(&self) -> Result<Option<Open>, String> {
        let cwd = self
            .cwd()
            .ok_or_else(|| "this case has no world".to_owned())?;
        let config = self.config(cwd);
        let user = Box::new(CaseUser::new(&self.said, asking(self.job.context)));
        let clock = Box::new(self.clock.clone());
        let surrounding = self.surrounding.borrow();
        let (runtime, desk) = match surrounding.as_ref() {
            None => (Runtime::open(config, user, clock), None),
            Some(kept) => {
                let Some(begun) = kept.begin(Path::new(cwd), self.machine.isolation)? else {
                    return Ok(None);
                };
                let user: Box<dyn UserPort> = match &begun.desk {
                    Some(desk) => Box::new(DeskUser::new(desk.clone(), user)),
                    None => user,
                };
                let runtime = Runtime::open_on(config, begun.ledger, user, clock);
                (runtime, begun.desk)
            }
        };
        let runtime = runtime.map_err(|error| error.to_string())?;
        let mut open = Open {
            runtime,
            grants: Names::clone(&self.said.doors.names),
            children: Children::clone(&self.said.doors.children),
        };
        open.grants.borrow_mut().clear();
        open.children.borrow_mut().clear();
        if self.job.user.doings().next().is_some() {
            let laxest = asking(self.job.context);
            open.runtime
                .be_reachable(Path::new(STATE_DIR), laxest)
                .map_err(|error| format!("another terminal cannot reach the session: {error}"))?;
        }
        open.runtime.set_ceilings(bounds::of(&self.job.settings));
        if self.job.context == Context::Acp {
            open.runtime.serve_an_editor();
        }
        if self.job.context == Context::Cron {
            open.runtime.end_with_its_turn();
        }
        open.runtime.run_jobs_through(Box::new(self.jobs(None)?));
        self.furnish(&mut open)?;
        if let Some(desk) = desk {
            open.runtime
                .attach(desk)
                .map_err(|error| error.to_string())?;
        }
        // What a session was given is gone with it.
        if self.starts.get() == 0 {
            for held in &self.job.held {
                give(&mut open, held)?;
            }
        }
        let first = open.runtime.first_agent();
        for server in servers::of(self.job)? {
            open.runtime
                .declare_external(server)
                .map_err(|denial| denial.to_string())?;
        }
        // As a conversation does before its first words.
        open.runtime.list_outside(first);
        self.starts.set(self.starts.get().wrapping_add(1));
        if let Some(kept) = surrounding.as_ref() {
            kept.is_open();
        }
        Ok(Some(open))
    }

    fn config(&self, cwd: &str) -> RuntimeConfig {
        RuntimeConfig {
            workspace: PathBuf::from(cwd),
            home: PathBuf::from("/home/u"),
            state_dir: PathBuf::from(STATE_DIR),
            common_dir: PathBuf::from(STATE_DIR),
            protected: Vec::new(),
            tools: hermitcrab::tools::run,
            env: ENVIRONMENT
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            git_settings: hermitcrab::ambient::git_settings(Path::new("/home/u")),
            isolation: self.machine.isolation,
            asking: asking(self.job.context),
            session: self.starts.get().wrapping_add(1),
            spawner: self.machine.spawner.clone(),
            umask: hermitcrab::ambient::umask(),
        }
    }

    /// What runs this case's jobs; those with words, by this model.
    ///
    /// # Errors
    /// What the case says its jobs hold means nothing.
    pub fn jobs(&self, model: Option<(String, Box<dyn ModelPort>)>) -> Result<CaseJobs, String> {
        let config = self.config(self.cwd().unwrap_or_default());
        CaseJobs::new(config, self.job, self.clock.clone(), model)
    }

    /// The program is gone from one moment to the next, and started again.
    fn restart(&self, restart: &Restart) -> Result<StepTrace, String> {
        if !self.is_gone.replace(false) {
            self.with_open(|_| ())?;
        }
        let cwd = PathBuf::from(self.cwd().unwrap_or_default());
        let mut slot = self
            .open
            .try_borrow_mut()
            .map_err(|_| "the runtime is in use".to_owned())?;
        // It says nothing to anybody: what is not on the disk by now never is.
        drop(slot.take());
        let happened = match self.surrounding.borrow_mut().as_mut() {
            Some(kept) => kept.happen(restart, &cwd, self.machine.isolation)?,
            None => false,
        };
        if !happened {
            let code = "no-such-damage".to_owned();
            return Ok(StepTrace::of(StepOutcome::Unsupported(code)));
        }
        *slot = self.begin()?;
        self.is_closed.set(slot.is_none());
        Ok(match slot.as_ref() {
            Some(_) => StepTrace::of(StepOutcome::Ran),
            None => self.not_started(),
        })
    }

    fn not_started(&self) -> StepTrace {
        let code = || StepTrace::of(StepOutcome::Refused("not-started".to_owned()));
        let kept = self.surrounding.borrow();
        kept.as_ref().map_or_else(code, Surrounding::not_started)
    }

    /// What a session begins with: its user's rules first, so that every grant is made
    /// below them.
    fn furnish(&self, open: &mut Open) -> Result<(), String> {
        let (listed, workspace) = (&self.job.rules, Path::new(self.cwd().unwrap_or_default()));
        rules::add(&mut open.runtime, listed, workspace)?;
        self.basics(open)?;
        let first = open.runtime.first_agent();
        for words in rules::allowed(listed, workspace) {
            open.runtime
                .grant(first, &words)
                .map_err(|error| format!("an `allow` on `{}`: {error}", words.on))?;
        }
        Ok(())
    }

    /// What every case's agent may do unless it says otherwise.
    fn basics(&self, open: &mut Open) -> Result<(), String> {
        let first = open.runtime.first_agent();
        let may_read = self
            .job
            .settings
            .get("hermitcrab.workspace_read")
            .and_then(Value::as_bool)
            .unwrap_or(true);
        if may_read {
            open.runtime
                .grant_basics(first)
                .map(drop)
                .map_err(|error| error.to_string())
        } else {
            open.runtime
                .grant(first, &GrantWords::new("proc.exec", "*"))
                .map(drop)
                .map_err(|error| error.to_string())
        }
    }
}

/// Whether there is somebody to ask.
#[must_use]
pub fn asking(context: Context) -> Asking {
    if context.has_user() {
        Asking::Prompt
    } else {
        Asking::Refuse
    }
}

fn give(open: &mut Open, held: &Held) -> Result<(), String> {
    let holder = match &held.holder {
        None => open.runtime.first_agent(),
        Some(child) => open
            .children
            .borrow()
            .get(child)
            .copied()
            .ok_or_else(|| format!("grant `{}` is for the unknown child `{child}`", held.id))?,
    };
    let mut words = GrantWords::new(&held.verb, &held.on);
    words.uses = held.uses;
    words.lifetime = held.seconds.map(Millis::from_seconds);
    let id = open
        .runtime
        .grant(holder, &words)
        .map_err(|error| format!("grant `{}`: {error}", held.id))?;
    open.grants.borrow_mut().insert(held.id.clone(), id);
    Ok(())
}

/// The program refuses to start; whoever wants something of it gets nothing.
fn refused(denial: &hermitcrab_core::outcome::Denial) -> StepTrace {
    StepTrace::of(StepOutcome::Refused(denial.code().as_str().to_owned()))
}
