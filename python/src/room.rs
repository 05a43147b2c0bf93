//! One open directory and the session that decides about it.
//!
//! What for: every use of a capability from Python is a call of a core session,
//! so that what is covered, used up, past its deadline or revoked is decided by
//! the same code as in the agent, and the file operation spends a permit.
//!
//! Each grant is held by an agent of its own, so that a use can be charged to
//! nothing else. It must never act without a permit, and never in a process
//! that was forked off: there, uses would be counted twice.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use hermitcrab_core::action::Action;
use hermitcrab_core::approval::Asking;
use hermitcrab_core::audit::Head;
use hermitcrab_core::authority::{Authority, Cap, DirId, Object, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::grant::{AgentId, GrantId, Lifetime, State, Uses};
use hermitcrab_core::limits::GRANT_LIFETIME_MAX;
use hermitcrab_core::monitor::Permit;
use hermitcrab_core::outcome::{DenialCode, Outcome};
use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::session::{
    Attenuation, Call, Event, GrantSpec, Parts, Session, SessionConfig,
};
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::{DirCap, FsError};

use crate::ambient;
use crate::refusal::Failure;

/// How many agents one agent starts here; the core has a limit for it.
const STARTED_BY_ONE: usize = hermitcrab_core::limits::CHILDREN_PER_AGENT_MAX;

/// A directory's session.
struct Room {
    process: u32,
    inside: Mutex<Inside>,
}

struct Inside {
    session: Session,
    /// Every agent there is, in the order in which they were started.
    agents: Vec<AgentId>,
    /// Those whose grant has ended and whom nothing refers to.
    idle: Vec<AgentId>,
}

/// A grant in the hands of whoever has this value; it ends when this is dropped,
/// unless it is the directory's first.
pub(crate) struct Hold {
    room: Arc<Room>,
    agent: AgentId,
    grant: GrantId,
    /// What it comes from lives as long as this does.
    from: Option<Arc<Hold>>,
}

/// What a narrower grant is to be.
pub(crate) struct Narrower {
    /// Which verbs; all that are held if nobody says.
    pub(crate) verbs: Option<Vec<Verb>>,
    /// Below which place.
    pub(crate) place: RelPath,
    pub(crate) uses: Uses,
    pub(crate) lifetime: Lifetime,
}

/// Opens a directory and puts the right to these verbs in it into the caller's hands.
pub(crate) fn open(path: &Path, verbs: &[Verb]) -> Result<(DirCap, Hold), Failure> {
    static SESSIONS: AtomicU64 = AtomicU64::new(1);
    let failed = |source: std::io::Error| Failure::Os {
        operation: "open the directory",
        path: path.as_os_str().to_owned(),
        source,
    };
    let now = ambient::now();
    let (mut session, _records) = Session::open(SessionConfig {
        id: SESSIONS.fetch_add(1, Ordering::Relaxed),
        hash: hermitcrab_sandbox::sha256,
        isolation: Isolation::Unknown,
        protected: Vec::new(),
        asking: Asking::Refuse,
        ledger: Head::EMPTY,
        opened_at: now,
    });
    // Where it lies is the kernel's word for what was opened, not the spelling.
    let found = DirCap::open_ambient_dir(path, unnamed(&mut session)?).map_err(failed)?;
    let location = location_of(&found).map_err(failed)?;
    let id = session.add_dir(location)?;
    let dir = DirCap::open_ambient_dir(Path::new(&itself(&found)), id).map_err(failed)?;
    let authority = authority(verbs, id, &RelPath::root())?;
    let parts = session
        .step(
            now,
            Event::Grant(GrantSpec {
                holder: AgentId::FIRST,
                authority,
                uses: Uses::Uncounted,
                lifetime: Lifetime::For(GRANT_LIFETIME_MAX),
            }),
        )
        .into_parts();
    let grant = granted(parts)?;
    let room = Room {
        process: ambient::process(),
        inside: Mutex::new(Inside {
            session,
            agents: vec![AgentId::FIRST],
            idle: Vec::new(),
        }),
    };
    let hold = Hold {
        room: Arc::new(room),
        agent: AgentId::FIRST,
        grant,
        from: None,
    };
    Ok((dir, hold))
}

impl Hold {
    /// Decides about these actions and, if all are permitted, does them.
    pub(crate) fn act<T>(
        &self,
        actions: Vec<Action>,
        spend: impl FnOnce(Vec<Permit<'_>>) -> Result<T, FsError>,
    ) -> Result<T, Failure> {
        let mut inside = self.room.enter()?;
        // The agent may have held another grant before.
        if let Some(action) = actions
            .iter()
            .find(|action| !covers(&inside.session, self.grant, action.cap()))
        {
            return Err(Failure::denied(DenialCode::NoCap, action.cap()));
        }
        let wanted = actions.len();
        let call = Call {
            by: self.agent,
            tool: Tool::Directory,
            actions,
        };
        let parts = inside.session.step(ambient::now(), Event::Call(call));
        let Parts {
            call,
            permits,
            denials,
            ..
        } = parts.into_parts();
        if let Some((_, denial)) = denials.into_iter().next() {
            return Err(Failure::Denied(denial));
        }
        if permits.len() != wanted {
            return Err(Failure::denied(DenialCode::NoCap, self.grant));
        }
        let done = spend(permits);
        if let Some(call) = call {
            let outcome = match &done {
                Ok(_) => Outcome::Done(Digest::NONE),
                Err(error) => error.code().map_or(Outcome::Failed, Outcome::Refused),
            };
            // Nothing is decided by the end of a call, and no ledger is kept here.
            let _ = inside
                .session
                .step(ambient::now(), Event::Finished { call, outcome })
                .into_parts();
        }
        Ok(done?)
    }

    /// Does the grant, dead or alive, cover this verb at this place?
    pub(crate) fn covers(&self, cap: &Cap) -> Result<bool, Failure> {
        let inside = self.room.enter()?;
        Ok(covers(&inside.session, self.grant, cap))
    }

    /// A narrower grant that comes from this one.
    pub(crate) fn narrow(self: &Arc<Self>, dir: DirId, wanted: Narrower) -> Result<Self, Failure> {
        let mut inside = self.room.enter()?;
        let held = inside.session.table().get(self.grant);
        let authority = match &wanted.verbs {
            Some(verbs) => authority(verbs, dir, &wanted.place)?,
            None => {
                let place = Object::tree(dir, wanted.place);
                let caps = held.into_iter().flat_map(|grant| grant.authority().caps());
                Authority::from_caps(
                    caps.filter_map(|cap| cap.meet(&Cap::new(cap.verb(), place.clone()).ok()?)),
                )?
            }
        };
        let now = ambient::now();
        let holder = inside.idle_agent()?;
        let parts = inside
            .session
            .step(
                now,
                Event::Attenuate(Attenuation {
                    by: self.agent,
                    from: self.grant,
                    holder,
                    authority,
                    uses: wanted.uses,
                    lifetime: wanted.lifetime,
                }),
            )
            .into_parts()
            .without_permits();
        match granted(parts) {
            Ok(grant) => Ok(Self {
                room: Arc::clone(&self.room),
                agent: holder,
                grant,
                from: Some(Arc::clone(self)),
            }),
            Err(failure) => {
                inside.idle.push(holder);
                Err(failure)
            }
        }
    }

    /// Ends it and everything derived from it; says how many grants that were.
    pub(crate) fn revoke(&self) -> Result<usize, Failure> {
        let mut inside = self.room.enter()?;
        Ok(inside.revoke(self.grant))
    }

    /// What a list of grants says about it.
    pub(crate) fn state(&self) -> Result<Option<State>, Failure> {
        let inside = self.room.enter()?;
        Ok(inside.session.table().state(self.grant, ambient::now()))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.from.is_none() {
            return;
        }
        // In another process, or after a failure, there is nothing left to tidy.
        if let Ok(mut inside) = self.room.enter() {
            inside.revoke(self.grant);
            inside.idle.push(self.agent);
        }
    }
}

impl Room {
    fn enter(&self) -> Result<MutexGuard<'_, Inside>, Failure> {
        // Before the lock: a thread of the other process may have held it.
        if self.process != ambient::process() {
            return Err(Failure::denied(
                DenialCode::NoCap,
                "a directory opened before this process was forked off",
            ));
        }
        self.inside.lock().map_err(|_| {
            Failure::denied(DenialCode::SessionEnded, "a thread failed while it acted")
        })
    }
}

impl Inside {
    fn revoke(&mut self, grant: GrantId) -> usize {
        self.session
            .step(ambient::now(), Event::Revoke(grant))
            .into_parts()
            .revoked
            .len()
    }

    /// An agent that holds nothing that can be used.
    fn idle_agent(&mut self) -> Result<AgentId, Failure> {
        if let Some(agent) = self.idle.pop() {
            return Ok(agent);
        }
        let started = self.agents.len().saturating_sub(1);
        let parent = self
            .agents
            .get(started / STARTED_BY_ONE)
            .copied()
            .unwrap_or(AgentId::FIRST);
        if parent != AgentId::FIRST && started.is_multiple_of(STARTED_BY_ONE) {
            let right = Cap::new(Verb::AgentSpawn, Object::Session)
                .map_err(|error| Failure::denied(DenialCode::NoCap, error))?;
            let spec = GrantSpec {
                holder: parent,
                authority: Authority::of(right),
                uses: Uses::Uncounted,
                lifetime: Lifetime::For(GRANT_LIFETIME_MAX),
            };
            granted(
                self.session
                    .step(ambient::now(), Event::Grant(spec))
                    .into_parts(),
            )?;
        }
        let spawn = Event::Spawn {
            parent,
            forward: Vec::new(),
        };
        let parts = self.session.step(ambient::now(), spawn).into_parts();
        if let Some((_, denial)) = parts.denials.into_iter().next() {
            return Err(Failure::Denied(denial));
        }
        let (agent, _) = parts
            .spawned
            .ok_or_else(|| Failure::denied(DenialCode::LimitReached, "grants at one time"))?;
        self.agents.push(agent);
        Ok(agent)
    }
}

/// A handle for looking where a directory lies; nothing is granted on it.
fn unnamed(session: &mut Session) -> Result<DirId, Failure> {
    Ok(session.add_dir(RelPath::root())?)
}

fn itself(dir: &DirCap) -> String {
    use std::os::fd::{AsFd as _, AsRawFd as _};
    format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd())
}

fn location_of(dir: &DirCap) -> std::io::Result<RelPath> {
    let name = rustix::fs::readlink(itself(dir), Vec::new())?.into_bytes();
    match name.strip_prefix(b"/") {
        Some(b"") => Ok(RelPath::root()),
        Some(below) => RelPath::parse(below).map_err(std::io::Error::other),
        None => Err(std::io::Error::other(
            "it lies outside of what this process sees",
        )),
    }
}

fn authority(verbs: &[Verb], dir: DirId, below: &RelPath) -> Result<Authority, Failure> {
    let mut caps = Vec::with_capacity(verbs.len());
    for verb in verbs {
        let object = Object::tree(dir, below.clone());
        caps.push(
            Cap::new(*verb, object)
                .map_err(|error| Failure::denied(DenialCode::BadArguments, error))?,
        );
    }
    Ok(Authority::from_caps(caps)?)
}

fn covers(session: &Session, grant: GrantId, cap: &Cap) -> bool {
    session
        .table()
        .get(grant)
        .is_some_and(|grant| grant.authority().covers_cap(cap))
}

fn granted(parts: Parts<'_>) -> Result<GrantId, Failure> {
    if let Some((_, denial)) = parts.denials.into_iter().next() {
        return Err(Failure::Denied(denial));
    }
    parts
        .granted
        .ok_or_else(|| Failure::denied(DenialCode::NoCap, "no grant was made"))
}
