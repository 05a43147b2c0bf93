//! A machine on which sessions come one after the other, with what outlives them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{os::fd::AsFd as _, path::PathBuf};

use hermitcrab::{
    approvals::{Desk, DeskUser, SharedDesk},
    audit::Ledger,
    ports::{Keep, Prompt, UserPort},
    runtime::{Fate, Runtime, TakenIn},
    store::{
        State,
        keeper::{self, Keeper, Place},
        site::site,
    },
};
use hermitcrab_core::{
    approval::{Reply, Scope},
    rules::Isolation,
    standing::{BootId, Surroundings, WallTime},
    time::{Instant, Millis},
};
use serde_json::json;

use super::{ManualClock, ScriptedUser};

/// A user who can also say that an answer is to be repeated, and who can take
/// longer for one than a question is open.
struct KeepingUser(ScriptedUser, ManualClock);

impl UserPort for KeepingUser {
    fn ask(&mut self, prompt: Prompt<'_>) -> Reply {
        self.ask_and_keep(prompt).0
    }

    fn ask_and_keep(&mut self, prompt: Prompt<'_>) -> (Reply, Keep) {
        self.0.shown.borrow_mut().push(prompt.shown.to_owned());
        match self.0.words.borrow_mut().pop_front().unwrap_or("deny") {
            "repeat" => (Reply::Yes(Scope::Once), Keep::Repeat),
            "never" => (Reply::No, Keep::Repeat),
            "always, late" => {
                self.1.set(Millis::from_minutes(11).get());
                (Reply::Yes(Scope::Always), Keep::Nothing)
            }
            word => (Reply::parse(word), Keep::Nothing),
        }
    }
}

pub struct Machine {
    pub dirs: tempfile::TempDir,
    pub boot: u8,
    pub now: u64,
    pub in_boot: u64,
    pub isolation: Isolation,
    pub workspace: PathBuf,
}

pub struct Opened {
    pub runtime: Runtime,
    pub user: ScriptedUser,
    pub desk: SharedDesk,
    pub clock: ManualClock,
    pub taken_in: TakenIn,
}

impl Machine {
    pub fn new() -> Self {
        let dirs = tempfile::tempdir().unwrap();
        let workspace = dirs.path().canonicalize().unwrap().join("proj");
        std::fs::create_dir(&workspace).unwrap();
        Self {
            dirs,
            boot: 1,
            now: 1_000_000,
            in_boot: 1_000_000,
            isolation: Isolation::Isolated,
            workspace,
        }
    }

    pub fn state_dir(&self) -> PathBuf {
        self.dirs.path().canonicalize().unwrap().join("state")
    }

    pub fn keeper(&self) -> Keeper {
        let place = Place {
            state_dir: self.state_dir(),
            workspace: self.workspace.display().to_string(),
            here: Surroundings {
                audience: keeper::audience(&self.workspace).unwrap(),
                site: site(std::fs::File::open(&self.workspace).unwrap().as_fd()),
                boot: BootId::from_bytes([self.boot; 16]),
                now: WallTime::from_millis(self.now),
                in_boot: Instant::from_millis(self.in_boot),
                isolation: self.isolation,
            },
        };
        Keeper::open(place, State::open(&self.state_dir()).unwrap()).unwrap()
    }

    pub fn open(&self, words: &[&'static str]) -> Opened {
        let state = State::open(&self.state_dir()).unwrap();
        let ledger = Ledger::open_anchored(&self.state_dir(), Some(state.anchor)).unwrap();
        self.open_on(ledger, words)
    }

    pub fn open_on(
        &self,
        ledger: (Ledger, hermitcrab::audit::Opened),
        words: &[&'static str],
    ) -> Opened {
        let user = ScriptedUser::default();
        user.words.borrow_mut().extend(words);
        let desk = Desk::shared(self.keeper());
        let clock = ManualClock::default();
        let keeping = KeepingUser(user.clone(), clock.clone());
        let front = DeskUser::new(desk.clone(), Box::new(keeping));
        let mut config = super::config(self.workspace.clone(), self.state_dir());
        config.isolation = self.isolation;
        let mut runtime =
            Runtime::open_on(config, ledger, Box::new(front), Box::new(clock.clone())).unwrap();
        let first = runtime.first_agent();
        runtime.grant_basics(first).unwrap();
        let taken_in = runtime.attach(desk.clone()).unwrap();
        Opened {
            runtime,
            user,
            desk,
            clock,
            taken_in,
        }
    }

    /// Writes a file in a session of its own; how often the user was asked,
    /// and whether it was written.
    pub fn write(&self, words: &[&'static str], name: &str, content: &str) -> (usize, bool) {
        let mut opened = self.open(words);
        let first = opened.runtime.first_agent();
        let args = json!({"path": name, "content": content});
        let report = opened.runtime.call(first, "write_file", &args);
        assert_eq!(opened.runtime.take_told(), Vec::<String>::new());
        opened.runtime.end_session().unwrap();
        let asked = opened.user.shown.borrow().len();
        (asked, report.fate == Fate::Ran)
    }

    pub fn ledger(&self) -> String {
        std::fs::read_to_string(self.state_dir().join("ledger.jsonl")).unwrap()
    }
}
