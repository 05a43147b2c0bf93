//! A workspace, a clock and a user for the tests of the runtime.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

pub mod asleep;
pub mod backend;
pub mod editor;
pub mod home;
pub mod kept;
pub mod machine;
pub mod peers;
pub mod plug;
pub mod pty;
pub mod refused;

use std::{
    cell::RefCell,
    collections::VecDeque,
    path::PathBuf,
    rc::Rc,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use hermitcrab::{
    ports::{Clock, Prompt, UserPort},
    runtime::{GrantWords, Runtime, RuntimeConfig},
};
use hermitcrab_core::{approval::Reply, rules::Isolation, session::Asking, time::Instant};
use hermitcrab_sandbox::SpawnerProgram;
use serde_json::Value;

/// A clock that stands still until it is moved.
#[derive(Clone, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    pub fn set(&self, millis: u64) {
        self.0.store(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        Instant::from_millis(self.0.load(Ordering::SeqCst))
    }
}

type Meanwhile = Rc<RefCell<Option<Box<dyn FnOnce()>>>>;

/// A user who says these words, then `deny`; keeps what was shown.
#[derive(Clone, Default)]
pub struct ScriptedUser {
    pub words: Rc<RefCell<VecDeque<&'static str>>>,
    pub shown: Rc<RefCell<Vec<String>>>,
    /// What is said where words are wanted and no yes; nobody is there where it is empty.
    pub said: Rc<RefCell<VecDeque<&'static str>>>,
    /// What happens while the first question is open, or the next one.
    pub meanwhile: Meanwhile,
}

impl UserPort for ScriptedUser {
    fn ask(&mut self, prompt: Prompt<'_>) -> Reply {
        let happens = self.meanwhile.borrow_mut().take();
        if let Some(happens) = happens {
            happens();
        }
        self.shown.borrow_mut().push(prompt.shown.to_owned());
        Reply::parse(self.words.borrow_mut().pop_front().unwrap_or("deny"))
    }

    fn hears_words(&self) -> bool {
        !self.said.borrow().is_empty()
    }

    fn clarify(&mut self, question: &str, choices: Option<&[String]>) -> Option<String> {
        let said = self.said.borrow_mut().pop_front()?;
        let happens = self.meanwhile.borrow_mut().take();
        if let Some(happens) = happens {
            happens();
        }
        let choices =
            choices.map_or_else(String::new, |choices| format!(" [{}]", choices.join("|")));
        self.shown.borrow_mut().push(format!("{question}{choices}"));
        Some(said.to_owned())
    }
}

pub struct Bench {
    pub runtime: Runtime,
    pub workspace: PathBuf,
    pub state: PathBuf,
    pub user: ScriptedUser,
    pub clock: ManualClock,
    _dirs: tempfile::TempDir,
}

pub fn config(workspace: PathBuf, state: PathBuf) -> RuntimeConfig {
    RuntimeConfig {
        home: workspace.parent().unwrap().to_owned(),
        workspace,
        common_dir: state.clone(),
        state_dir: state,
        tools: hermitcrab::tools::run,
        protected: Vec::new(),
        env: vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("LANG".into(), "C.UTF-8".into()),
        ],
        git_settings: String::new(),
        isolation: Isolation::Isolated,
        asking: Asking::Prompt,
        session: 1,
        spawner: SpawnerProgram::At(PathBuf::from(env!("CARGO_BIN_EXE_hermitcrab"))),
        umask: 0o022,
    }
}

impl Bench {
    /// A workspace whose agent may read it and run programs on a copy.
    pub fn new() -> Self {
        Self::beginning_with(|_| {})
    }

    /// The same, begun with something else.
    pub fn beginning_with(change: impl FnOnce(&mut RuntimeConfig)) -> Self {
        let dirs = tempfile::tempdir().unwrap();
        let root = dirs.path().canonicalize().unwrap();
        let (workspace, state) = (root.join("proj"), root.join("state"));
        std::fs::create_dir(&workspace).unwrap();
        let (user, clock) = (ScriptedUser::default(), ManualClock::default());
        let mut config = config(workspace.clone(), state.clone());
        change(&mut config);
        let mut runtime =
            Runtime::open(config, Box::new(user.clone()), Box::new(clock.clone())).unwrap();
        let first = runtime.first_agent();
        runtime.grant_basics(first).unwrap();
        Self {
            runtime,
            workspace,
            state,
            user,
            clock,
            _dirs: dirs,
        }
    }

    /// The same, with everything on files held too.
    pub fn with_files() -> Self {
        let mut bench = Self::new();
        bench.grant("fs.*", ".");
        bench
    }

    /// Grants on a path below the workspace.
    pub fn grant(&mut self, verb: &str, below: &str) -> hermitcrab_core::grant::GrantId {
        let on = self.workspace.join(below).to_string_lossy().into_owned();
        let first = self.runtime.first_agent();
        self.runtime
            .grant(first, &GrantWords::new(verb, &on))
            .unwrap()
    }

    pub fn put(&self, name: &str, content: &str) {
        let path = self.workspace.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.workspace.join(name)).ok()
    }

    pub fn call(&mut self, tool: &str, args: Value) -> hermitcrab::runtime::CallReport {
        let first = self.runtime.first_agent();
        self.runtime.call(first, tool, &args)
    }
}

/// A grant's id, of a session like every other.
pub fn some_grant_id() -> hermitcrab_core::grant::GrantId {
    use hermitcrab_core::session::{Event, GrantSpec, Session, SessionConfig};
    let (mut session, _) = Session::open(SessionConfig {
        id: 1,
        hash: hermitcrab::digest::sha256,
        isolation: Isolation::Isolated,
        protected: Vec::new(),
        asking: Asking::Refuse,
        ledger: hermitcrab_core::audit::Head::EMPTY,
        opened_at: Instant::BOOT,
    });
    let spec = GrantSpec {
        holder: hermitcrab_core::grant::AgentId::FIRST,
        authority: hermitcrab_core::authority::Authority::none(),
        uses: hermitcrab_core::grant::Uses::Uncounted,
        lifetime: hermitcrab_core::grant::Lifetime::Session,
    };
    session
        .step(Instant::BOOT, Event::Grant(spec))
        .into_parts()
        .granted
        .unwrap()
}

/// A disk with room for so many bytes.
#[derive(Clone, Debug)]
pub struct Filling {
    room: usize,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Filling {
    pub fn of(room: usize) -> Self {
        Self {
            room,
            bytes: Arc::default(),
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().unwrap().clone()
    }
}

impl hermitcrab::audit::disk::Disk for Filling {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.bytes.lock().unwrap();
        let from = usize::try_from(offset).unwrap().min(bytes.len());
        let got = into.len().min(bytes.len() - from);
        into[..got].copy_from_slice(&bytes[from..from + got]);
        Ok(got)
    }

    fn append(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut held = self.bytes.lock().unwrap();
        let takes = bytes.len().min(self.room - held.len());
        if takes == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        held.extend_from_slice(&bytes[..takes]);
        Ok(takes)
    }

    fn sync(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    fn cut(&mut self, bytes: u64) -> std::io::Result<()> {
        self.bytes
            .lock()
            .unwrap()
            .truncate(usize::try_from(bytes).unwrap());
        Ok(())
    }
}
