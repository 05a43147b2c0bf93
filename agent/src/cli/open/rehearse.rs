//! Sessions of which nothing is kept: a dry run, and one that is only asked
//! what it would do.

use std::{
    io::{self, IsTerminal as _},
    path::Path,
};

use hermitcrab_core::{
    approval::{Asking, Reply, Scope},
    audit::Head,
    authority::Verb,
    rules::Isolation,
};

use super::{Ground, ground};
use crate::{
    ambient::BootClock,
    approvals::Desk,
    audit::{Ledger, LedgerError, Opened, Tail, disk::Memory},
    cli::{Setting, Trouble, say},
    exit,
    person::NobodyThere,
    ports::{Detail, Prompt, UserPort},
    runtime::Runtime,
    store::State,
};

/// Opens a session in which everything that would change is shown, and nothing
/// of it is kept: whatever is asked, the answer is no.
pub(super) fn dry(
    ground: &Ground,
    isolation: Isolation,
    ledger: (Ledger, Opened),
    extent: Extent,
) -> Result<Runtime, Trouble> {
    let config = ground.runtime_config(isolation, Asking::Prompt)?;
    let user = Box::new(Looker {
        extent,
        at_a_terminal: io::stderr().is_terminal(),
        is_shortened: false,
    });
    let mut runtime = Runtime::open_on(config, ledger, user, Box::new(BootClock))
        .map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
    runtime
        .note(format!("a dry run in {}", ground.workspace.display()))
        .map_err(|error| (error.to_string(), exit::LEDGER))?;
    ground.furnish_dry(&mut runtime)?;
    Ok(runtime)
}

/// A dry run beside a session that has the ledger: that session notes it.
pub fn rehearse(setting: &Setting) -> Result<Runtime, Trouble> {
    let ground = ground(&setting.place)?;
    let isolation = ground.isolation()?;
    tell_whom_it_reaches_not(&ground, setting);
    dry(&ground, isolation, memory_ledger()?, setting.extent)
}

/// Says whom a dry run does not reach, where somebody could think that it does: it is no less
/// what somebody outside would do for being one.
pub(super) fn tell_whom_it_reaches_not(ground: &Ground, setting: &Setting) {
    let configured = ground.admin.grants(&ground.workspace);
    let configured = configured.chain(ground.config.grants(&ground.workspace));
    let configured = configured.map(|words| format!("{}={}", words.verb, words.on));
    let peers = setting.grant.iter().cloned().chain(configured);
    let peers = peers.filter(|words| words.starts_with(Verb::NetConnect.as_str()));
    let servers = ground.config.servers(&ground.admin);
    let servers = servers.map(|(name, _)| format!("the server {name}"));
    let all: Vec<String> = peers.chain(servers).collect();
    if !all.is_empty() {
        say(&format!(
            "a dry run reaches nobody, so not {}",
            all.join(", ")
        ));
    }
}

/// A session to try out in whether commands work in the workspace: nothing is written.
pub fn to_try(ground: &Ground, isolation: Isolation) -> Result<Runtime, Trouble> {
    dry(ground, isolation, memory_ledger()?, Extent::AsFits)
}

/// How much of what would change a dry run shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// All of it, but numbers of so much that a terminal is no place for it.
    #[default]
    AsFits,
    /// How much of what is changed where.
    Stat,
    /// Each difference, however many there are.
    Patch,
}

/// Of more changes than this a person at a terminal is shown the sum.
const CHANGES_AT_A_TERMINAL: usize = 200;

/// Shows everything it is asked about, and agrees to running commands on a
/// copy and to nothing else.
#[derive(Debug)]
struct Looker {
    extent: Extent,
    at_a_terminal: bool,
    /// Whether what is shown next is a sum nobody asked for.
    is_shortened: bool,
}

impl UserPort for Looker {
    fn detail(&mut self, changes: usize) -> Detail {
        self.is_shortened =
            self.extent == Extent::AsFits && self.at_a_terminal && changes > CHANGES_AT_A_TERMINAL;
        match self.extent {
            Extent::Stat => Detail::Stat,
            Extent::AsFits if self.is_shortened => Detail::Stat,
            Extent::AsFits | Extent::Patch => Detail::Whole,
        }
    }

    fn ask(&mut self, prompt: Prompt<'_>) -> Reply {
        let runs_only = prompt
            .question
            .uncovered()
            .all(|action| action.verb() == Verb::ProcExec);
        if runs_only {
            return Reply::Yes(Scope::Once);
        }
        eprintln!("{}", prompt.shown.trim_end());
        if std::mem::take(&mut self.is_shortened) {
            say(
                "so many differences are not shown at a terminal: `hermitcrab exec --dry-run --patch -- COMMAND` shows each of them",
            );
        }
        say("a dry run, so nothing of this is kept");
        Reply::No
    }
}

/// A session that is only asked what it would do: nothing is written, and
/// nobody is asked.
pub fn imagine(setting: &Setting) -> Result<Runtime, Trouble> {
    let ground = ground(&setting.place)?;
    let isolation = ground.isolation()?;
    // What it would do with somebody there is what is of interest.
    let asking = ground.asking(setting.mode, true);
    let config = ground.runtime_config(isolation, asking)?;
    let mut runtime = Runtime::open_on(
        config,
        memory_ledger()?,
        Box::new(NobodyThere),
        Box::new(BootClock),
    )
    .map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
    ground.furnish(&mut runtime, setting)?;
    if let Ok(Some(state)) = State::look(&ground.state_dir) {
        match ground.keeper(state, isolation) {
            Ok(keeper) => {
                runtime
                    .attach(Desk::shared(keeper))
                    .map_err(|error| (error.to_string(), exit::LEDGER))?;
            }
            Err((message, _)) => say(&message),
        }
    }
    Ok(runtime)
}

/// A ledger that starts empty and is gone with the session.
fn memory_ledger() -> Result<(Ledger, Opened), Trouble> {
    let (ledger, _) = Ledger::on(Box::new(Memory::default()), Path::new("memory"))
        .map_err(|error: LedgerError| (error.to_string(), exit::INTERNAL))?;
    let opened = Opened {
        head: Head::EMPTY,
        removed: Tail::Whole,
    };
    Ok((ledger, opened))
}
