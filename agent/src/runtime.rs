//! Joining what decides to what acts.
//!
//! The runtime owns the session, the open directories, the ledger and the way
//! to the user. A tool call enters as a name and JSON and leaves as the text
//! the model sees plus what became of it. Every effect on the way is an event
//! for the session, a ledger record on the disk, and a permit spent; there is
//! no other way from here to a file or a program.
//!
//! It must never act on a path text after deciding on another form of it, and
//! never let a result say more than what happened.

mod afoot;
mod agent_state;
mod arrivals;
mod background;
mod batch;
mod beginning;
mod call;
mod ceilings;
mod change;
mod command;
mod converse;
mod edit;
mod errand;
mod error;
pub mod evidence;
mod external;
mod granter;
mod hands;
mod layers;
mod machine;
mod mounts;
mod objects;
mod oldest;
mod other_names;
mod outside;
mod place;
mod planned;
mod proof;
mod proposals;
mod reachable;
mod remote;
mod result;
mod rules;
mod sandboxes;
mod script;
mod seen;
mod shown;
mod so_far;
mod standing;
mod talk;
mod together;
mod turn;
mod uncounted;
mod undo;
mod unkept;
mod warden;
mod words;
mod writers;

use std::{
    collections::BTreeMap,
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use hermitcrab_core::{
    audit::Record,
    grant::{AgentId, GrantId},
    label::Source,
    outcome::{Denial, DenialCode},
    path::RelPath,
    rules::Isolation,
    session::{Asking, Event, Parts, Session, SessionConfig},
};
use hermitcrab_sandbox::{Journal, SpawnerProgram};

pub(crate) use self::words::{reached, ruled};
use self::{
    afoot::Afoot,
    agent_state::AgentState,
    machine::Machine,
    mounts::Mounts,
    reachable::{Control, Reach},
    writers::Writers,
};
pub use self::{
    agent_state::TodoItem,
    background::{JobEnd, JobRequest, JobView, Notice},
    beginning::Beginning,
    call::{Tools, unreadable},
    ceilings::{Caches, Ceilings},
    command::{
        Author, CommandInput, CommandRequest, CommandRun, Lacking, LeftOut, Reasons, TypedCommand,
        TypedReport, checked_text,
    },
    converse::Inquiry,
    edit::{Before, FileChange},
    errand::{Became, Job, JobPort, JobRun, Lent, Refusals},
    error::RuntimeError,
    evidence::{Project, Proof, Standing},
    external::{ExternalServer, Key, Listing, OUTSIDE, OutsideTool, Program, Web},
    granter::Granter,
    hands::{Content, Hands, Link, LinkLeads, Passed, Taker},
    layers::{Layers, prefer},
    mounts::{led_elsewhere, led_to, lexical, names_of, real, way_to},
    other_names::other_names,
    outside::Given,
    place::{Place, Spot, tilde_expanded},
    planned::Steering,
    proposals::Proposed,
    remote::Remote,
    result::{Asked, CallReport, ChangeSummary, Fate, ToolResult},
    rules::Explained,
    sandboxes::builder,
    script::ScriptRun,
    standing::TakenIn,
    talk::{Counts, Guard, Reminder, Talk, WorkLimits},
    together::Proposal,
    turn::{STANDS_OUT, Stop},
    undo::{ForgetTrouble, UndoReport, UndoTrouble, forgotten_words, recovered_words},
    words::{GrantWords, WordsError, in_bytes},
};
use crate::{
    approvals::SharedDesk,
    audit::{Ledger, LedgerError, Opened, Tail},
    digest::sha256,
    handles::Exports,
    ports::{BufferPort, Clock, EndPort, ProgressPort, UserPort},
    state_dir::own_file,
    store::keeper::Keeper,
    text::visible,
};

/// What a runtime starts with. Nothing else is taken from the surroundings.
#[derive(Clone, Debug)]
pub struct RuntimeConfig {
    /// The directory the agent works in, absolute.
    pub workspace: PathBuf,
    /// Where `~` leads, absolute.
    pub home: PathBuf,
    /// What carries out the calls of tools.
    pub tools: Tools,
    /// Where the ledger lies; outside every directory an agent is given.
    pub state_dir: PathBuf,
    /// Where what sessions have in common lies, such as the journal and conversations that
    /// are kept. An editor's session has its ledger in a directory of its own below it.
    pub common_dir: PathBuf,
    /// More places no grant reaches, absolute.
    pub protected: Vec<PathBuf>,
    /// The environment commands start with.
    pub env: Vec<(String, String)>,
    /// What git finds in the place of what lies in a home that commands do not see; see
    /// [`crate::text::gitconfig`].
    pub git_settings: String,
    /// What the probe of the sandbox proved.
    pub isolation: Isolation,
    /// Whether there is a user to ask.
    pub asking: Asking,
    /// A number no other session has.
    pub session: u64,
    /// The program started as the sandbox's helper.
    pub spawner: SpawnerProgram,
    /// Permission bits that directories on the way to a new file are made without.
    pub umask: u32,
}

/// An agent's edge: one session, its directories, its ledger, its user.
pub struct Runtime {
    machine: Machine,
    mounts: Mounts,
    /// Opened at the first change that is kept, or at the start if there is one.
    journal: Option<Journal>,
    sandboxes: sandboxes::Made,
    user: Box<dyn UserPort>,
    clock: Arc<dyn Clock>,
    agents: BTreeMap<AgentId, AgentState>,
    writers: Writers,
    externals: Vec<external::Declared>,
    jobs: background::Jobs,
    afoot: Afoot,
    progress: Option<Box<dyn ProgressPort>>,
    buffers: Option<Box<dyn BufferPort>>,
    /// Runs jobs of the list, in sessions of their own.
    job_port: Option<Box<dyn JobPort>>,
    /// Whether an editor is shown every edit before its tool is called.
    is_an_editors: bool,
    /// Whether nobody goes on once a turn is over, so that nothing can be told then.
    ends_with_its_turn: bool,
    config: RuntimeConfig,
    /// How much one operation may do.
    ceilings: Ceilings,
    /// What outlives the session, if anything does.
    desk: Option<SharedDesk>,
    /// The kept grants that count here.
    adopted: warden::Adopted,
    /// A view of the store for a call beside others, which has no desk.
    store: Option<Keeper>,
    /// Looks after what runs; there from the first command on.
    warden: Option<warden::Warden>,
    /// A way in for the person, from another terminal.
    control: Option<Control>,
    /// The bearers' names given out.
    exports: Option<Exports>,
    /// For the person, at the next occasion.
    told: Vec<String>,
    /// Who is told at once that a background command has ended.
    end_port: Option<Arc<dyn EndPort>>,
    /// Why what background commands changed was thrown away.
    lost: Vec<DenialCode>,
    /// The data that steers what is being done for a plan.
    steering: Option<Steering>,
    /// What reaches the agent only when the calls beside this one are over.
    heard_late: Option<Vec<Source>>,
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("machine", &self.machine)
            .field("mounts", &self.mounts)
            .finish_non_exhaustive()
    }
}

impl Runtime {
    /// Opens a session on a workspace. The first agent holds nothing yet.
    ///
    /// # Errors
    /// A directory cannot be opened, or the ledger cannot be used.
    pub fn open(
        config: RuntimeConfig,
        user: Box<dyn UserPort>,
        clock: Box<dyn Clock>,
    ) -> Result<Self, RuntimeError> {
        own_file::state_dir(&config.state_dir)
            .map_err(|error| RuntimeError::Ledger(LedgerError::Own(error)))?;
        let ledger = Ledger::open(&config.state_dir)?;
        Self::open_on(config, ledger, user, clock)
    }

    /// The same, on a ledger that is open already.
    ///
    /// # Errors
    /// As for [`Runtime::open`].
    pub fn open_on(
        config: RuntimeConfig,
        (mut ledger, opened): (Ledger, Opened),
        user: Box<dyn UserPort>,
        clock: Box<dyn Clock>,
    ) -> Result<Self, RuntimeError> {
        let clock: Arc<dyn Clock> = Arc::from(clock);
        let (session, records) = session(&config, own_places(&config)?, opened.head, clock.now());
        ledger.append(&records)?;
        let machine = Machine::new(session, Arc::new(Mutex::new(ledger)), Arc::clone(&clock));
        let journal = if Journal::is_at(&config.common_dir) {
            let caches = Caches::default();
            Some(undo::open_journal(&config.common_dir, &machine, &caches)?)
        } else {
            None
        };
        let (sandboxes, remark) = sandboxes::made(&config, &Ceilings::default());
        let mut runtime = Self {
            machine,
            mounts: Mounts::default(),
            journal,
            sandboxes,
            user,
            clock,
            agents: BTreeMap::new(),
            writers: Writers::default(),
            externals: Vec::new(),
            jobs: background::Jobs::default(),
            afoot: Afoot::default(),
            progress: None,
            buffers: None,
            job_port: None,
            is_an_editors: false,
            ends_with_its_turn: false,
            config,
            ceilings: Ceilings::default(),
            desk: None,
            adopted: warden::Adopted::default(),
            store: None,
            warden: None,
            control: None,
            exports: None,
            told: remark.into_iter().collect(),
            end_port: None,
            lost: Vec::new(),
            steering: None,
            heard_late: None,
        };
        let workspace = runtime.config.workspace.clone();
        runtime.mounts.open(&runtime.machine, &workspace)?;
        let state = AgentState::new(&runtime.config);
        runtime.agents.insert(AgentId::FIRST, state);
        if let Tail::CutOff { bytes } = opened.removed {
            runtime.note(format!(
                "recovered: {bytes} bytes of records that were never acted on were removed before this session"
            ))?;
        }
        Ok(runtime)
    }

    /// Puts a line of the edge into the ledger.
    ///
    /// # Errors
    /// The ledger cannot be written.
    pub fn note(&mut self, text: String) -> Result<(), RuntimeError> {
        self.machine.step(Event::Note(text))?;
        Ok(())
    }

    /// The same, and waits until the line is on the disk: what comes next
    /// outlives the session, so its record must not be lost with it.
    ///
    /// # Errors
    /// The ledger cannot be written.
    fn note_for_sure(&mut self, text: String) -> Result<(), RuntimeError> {
        self.note(text)?;
        Ok(self.machine.settle()?)
    }

    /// What was proved about the sandbox when the session began.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.config.isolation
    }

    /// When the user is asked, also where that was set from elsewhere.
    #[must_use]
    pub fn asking(&self) -> Asking {
        self.machine.look(Session::asking)
    }

    /// The session's first agent.
    #[must_use]
    pub fn first_agent(&self) -> AgentId {
        AgentId::FIRST
    }

    /// The user grants something. A directory not yet known is opened for it.
    ///
    /// # Errors
    /// The words mean nothing, or the directory cannot be opened.
    pub fn grant(&mut self, holder: AgentId, words: &GrantWords) -> Result<GrantId, WordsError> {
        self.grant_by(Event::Grant, holder, words)
    }

    /// Where the output of commands is shown while they run; where it was shown before is
    /// given back.
    pub fn show_progress(&mut self, port: Box<dyn ProgressPort>) -> Option<Box<dyn ProgressPort>> {
        self.progress.replace(port)
    }

    /// Has it told at once that a command in the background has ended. Decided is what it did
    /// no sooner for that.
    pub fn tell_ends_to(&mut self, port: Arc<dyn EndPort>) {
        self.end_port = Some(port);
    }

    /// Changes what becomes of what nothing held covers, from here on.
    ///
    /// # Errors
    /// The ledger cannot be written, or the session is over.
    pub fn set_asking(&mut self, asking: Asking) -> Result<(), RuntimeError> {
        let parts = self.machine.step(Event::SetAsking(asking))?;
        match parts.denials.into_iter().next() {
            Some((_, denial)) => Err(RuntimeError::Limit(denial)),
            None => {
                self.config.asking = asking;
                Ok(())
            }
        }
    }

    /// Begins another session in which this much counts as proved about the
    /// sandbox. Nothing that was held before is held in it.
    ///
    /// # Errors
    /// As for [`Runtime::begin_session`].
    pub fn begin_believing(&mut self, isolation: Isolation) -> Result<(), RuntimeError> {
        self.config.isolation = isolation;
        self.begin_session()
    }

    /// Whose unsaved text counts when a file is read.
    pub fn read_through(&mut self, port: Box<dyn BufferPort>) {
        self.buffers = Some(port);
    }

    /// From here on this is an editor's session: an edit that cannot be shown is
    /// refused in the words for that.
    pub fn serve_an_editor(&mut self) {
        self.is_an_editors = true;
    }

    /// The processes that serve the sandbox and are no command's.
    #[must_use]
    pub fn sandbox_helpers(&self) -> Vec<u32> {
        self.sandboxes.sandbox.helpers()
    }

    /// Ends a grant and everything derived from it; says which grants ended.
    ///
    /// # Errors
    /// The refusal, for a grant this session does not have.
    pub fn revoke(&mut self, grant: GrantId) -> Result<Vec<GrantId>, Denial> {
        let parts = self.step(Event::Revoke(grant))?;
        self.stop_jobs(|call| parts.stopped.contains(&call))?;
        match parts.denials.into_iter().next() {
            Some((_, denial)) => Err(denial),
            None => Ok(parts.revoked),
        }
    }

    /// Opens the way in from other terminals, in the directory of the session's
    /// ledger. `laxest` is as far as a mode set from there may go.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn be_reachable(&mut self, dir: &Path, laxest: Asking) -> io::Result<()> {
        let reach = Reach {
            remote: self.remote(),
            laxest,
            workspace: self.config.workspace.display().to_string(),
            is_an_editors: self.is_an_editors,
        };
        self.control = Some(Control::open(dir, reach)?);
        Ok(())
    }

    /// A way for other threads to end what this session allows.
    #[must_use]
    pub fn remote(&self) -> Remote {
        Remote::new(self.machine.clone())
    }

    /// Starts another agent that holds these grants of its parent and nothing else.
    ///
    /// # Errors
    /// The refusal; then there is no new agent.
    pub fn spawn(&mut self, parent: AgentId, forward: &[GrantId]) -> Result<AgentId, Denial> {
        let parts = self.step(Event::Spawn {
            parent,
            forward: forward.to_vec(),
        })?;
        match (parts.spawned, parts.denials.into_iter().next()) {
            (Some((child, _)), _) => {
                let state = AgentState::of_child(self.agents.get(&parent), &self.config);
                self.agents.insert(child, state);
                Ok(child)
            }
            (None, Some((_, denial))) => Err(denial),
            (None, None) => Err(Denial::new(DenialCode::UnknownAgent, parent)),
        }
    }

    /// The grants an agent holds, dead ones included, oldest first.
    #[must_use]
    pub fn held_by(&self, agent: AgentId) -> Vec<GrantId> {
        self.machine.look(|session| {
            session
                .held_by(agent)
                .map(hermitcrab_core::grant::Grant::id)
                .collect()
        })
    }

    /// Lets time pass: what ended by itself since the last call is recorded.
    fn tick(&mut self) -> Result<(), RuntimeError> {
        self.machine.step(Event::Tick)?;
        Ok(())
    }

    /// Steps the session with an event that permits nothing. A ledger that
    /// cannot be written refuses whatever needed it.
    fn step(&self, event: Event) -> Result<Parts<'static>, Denial> {
        self.machine
            .step(event)
            .map_err(|error| Denial::new(DenialCode::LedgerUnwritable, error))
    }

    /// From the first command on, somebody looks whether what it runs on ends.
    fn look_after_what_runs(&mut self) {
        if self.warden.is_none() {
            let keeper = match &self.desk {
                Some(desk) => Some(desk.borrow().keeper.another()),
                None => self.store.as_ref().map(Keeper::another),
            };
            let watched = warden::Watched {
                machine: self.machine.clone(),
                clock: Arc::clone(&self.clock),
                adopted: self.adopted.clone(),
                keeper,
            };
            match warden::Warden::start(watched) {
                Ok(warden) => self.warden = Some(warden),
                Err(error) => self.told.push(format!(
                    "nobody looks whether grants end while commands run: {error}"
                )),
            }
        }
        if let Some(warden) = &self.warden {
            warden.wake();
        }
    }

    /// Ends the session and with it every grant; later calls are refused.
    ///
    /// # Errors
    /// The ledger cannot be written.
    pub fn end_session(&mut self) -> Result<(), RuntimeError> {
        self.heed()?;
        self.machine.step(Event::End)?;
        self.stop_jobs(|_| true).map_err(RuntimeError::Limit)
    }

    /// Whether it has ended, which somebody else may have done.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.machine.look(Session::has_ended)
    }

    /// Begins another session on the same workspace and ledger. Nothing that
    /// was held before is held in it.
    ///
    /// # Errors
    /// As for [`Runtime::open`].
    pub fn begin_session(&mut self) -> Result<(), RuntimeError> {
        if !self.machine.look(Session::has_ended) {
            self.end_session()?;
        }
        if hermitcrab_core::fault::is(hermitcrab_core::fault::Fault::SessionEndKeepsGrants) {
            return Ok(());
        }
        self.config.session = self.config.session.wrapping_add(1);
        let protected = own_places(&self.config)?;
        let head = self.machine.look(Session::ledger);
        let (session, records) = session(&self.config, protected, head, self.clock.now());
        self.machine = Machine::following(&self.machine, session, &records, &self.clock)?;
        self.exports = None;
        self.adopted.clear();
        self.warden = None;
        let reach = self.control.take().map(|control| control.terms());
        self.mounts = Mounts::default();
        let workspace = self.config.workspace.clone();
        self.mounts.open(&self.machine, &workspace)?;
        self.jobs = background::Jobs::default();
        self.afoot = Afoot::default();
        self.agents.clear();
        self.writers = Writers::default();
        self.agents
            .insert(AgentId::FIRST, AgentState::new(&self.config));
        if let Some((dir, laxest)) = reach
            && let Err(error) = self.be_reachable(&dir, laxest)
        {
            self.told.push(format!(
                "this session cannot be reached from elsewhere: {error}"
            ));
        }
        match self.desk.take() {
            Some(desk) => self.attach(desk).map(drop),
            None => Ok(()),
        }
    }
}

/// The agent's own places, as written, where they really are, and each link between the two.
fn own_places(config: &RuntimeConfig) -> Result<Vec<RelPath>, RuntimeError> {
    let mut places = Vec::new();
    for place in std::iter::once(&config.state_dir).chain(&config.protected) {
        for name in names_of(place) {
            places.push(mounts::from_root(&name)?);
        }
    }
    places.sort();
    places.dedup();
    Ok(places)
}

fn session(
    config: &RuntimeConfig,
    protected: Vec<RelPath>,
    ledger: hermitcrab_core::audit::Head,
    opened_at: hermitcrab_core::time::Instant,
) -> (Session, Vec<Record>) {
    Session::open(SessionConfig {
        id: config.session,
        hash: sha256,
        isolation: config.isolation,
        protected,
        asking: config.asking,
        ledger,
        opened_at,
    })
}
