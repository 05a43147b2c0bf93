//! From a command line to a session: where things lie, what is configured,
//! what is kept, what is proved.

use std::path::{Path, PathBuf};

use hermitcrab_core::{
    approval::{Asking, Reply, Scope},
    authority::Verb,
    rules::{ConfiguredRule, Isolation, Layer},
    standing::Surroundings,
};
use hermitcrab_sandbox::SpawnerProgram;

use super::{Setting, Trouble, Where, say};
use crate::{
    ambient::{self, BootClock, NobodyThere, Places, TerminalUser},
    approvals::{Desk, DeskUser},
    audit::{Ledger, LedgerError, Opened, Tail, disk::Memory},
    config::{self, Config, models::BackendWords},
    exit,
    model::{self, Backend, Cancel},
    ports::{Prompt, UserPort},
    runtime::{GrantWords, Runtime, RuntimeConfig, real},
    store::{
        State, StateError,
        keeper::{self, Keeper},
    },
};

/// Where a command works, before anything is opened.
#[derive(Debug)]
pub struct Ground {
    /// What the surroundings say.
    pub places: Places,
    /// The user's configuration.
    pub config: Config,
    /// The administrator's.
    pub admin: Config,
    /// The workspace, real.
    pub workspace: PathBuf,
    /// Where the ledger and the store are.
    pub state_dir: PathBuf,
    /// The agent's own places.
    own: Vec<PathBuf>,
}

/// What is configured, for what needs no workspace.
#[derive(Debug)]
pub struct Configured {
    /// What the surroundings say.
    pub places: Places,
    /// The user's configuration.
    pub config: Config,
}

/// Reads what is configured.
pub fn configured() -> Result<Configured, Trouble> {
    let places = ambient::places().map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
    let config =
        config::read(&places.config_file).map_err(|error| (error.to_string(), exit::USAGE))?;
    Ok(Configured { places, config })
}

impl Configured {
    /// A model of the configuration, ready to be asked.
    pub fn model(&self, words: &BackendWords, cancel: &Cancel) -> Result<Backend, Trouble> {
        opened(&self.places, words, cancel)
    }
}

fn opened(places: &Places, words: &BackendWords, cancel: &Cancel) -> Result<Backend, Trouble> {
    let around = model::open::Surroundings {
        variable: &ambient::variable,
        home: &places.home,
        dir: places.config_file.parent().unwrap_or(&places.home),
    };
    model::open::open(words, &around, cancel).map_err(|error| (error.to_string(), exit::USAGE))
}

/// Looks where a command is to work.
pub fn ground(place: &Where) -> Result<Ground, Trouble> {
    let places = ambient::places().map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
    let usage = |error: config::ConfigError| (error.to_string(), exit::USAGE);
    let config = config::read(&places.config_file).map_err(usage)?;
    let admin = config::read_administrators(&places.admin_config_file).map_err(usage)?;
    let workspace = place
        .workspace
        .clone()
        .unwrap_or_else(|| places.current.clone());
    let workspace = places
        .current
        .join(&workspace)
        .canonicalize()
        .map_err(|error| {
            (
                format!(
                    "cannot use the workspace `{}`: {error}",
                    workspace.display()
                ),
                exit::USAGE,
            )
        })?;
    let state_dir = place
        .state_dir
        .as_ref()
        .map_or_else(|| places.state_dir.clone(), |dir| places.current.join(dir));
    // Either may be reached through links, the file by itself, too.
    let own: Vec<PathBuf> = std::iter::once(state_dir.as_path())
        .chain(places.config_file.parent())
        .chain([
            places.config_file.as_path(),
            places.admin_config_file.as_path(),
        ])
        .flat_map(|own| [own.to_owned(), real(own)])
        .collect();
    // Commands see a copy of all of the workspace, and the agent's own files
    // are none of their business.
    if let Some(overlapping) = own
        .iter()
        .find(|own| workspace.starts_with(own) || own.starts_with(&workspace))
    {
        return Err((
            format!(
                "the workspace `{}` overlaps the agent's own directory `{}`; choose a narrower one",
                workspace.display(),
                overlapping.display()
            ),
            exit::USAGE,
        ));
    }
    Ok(Ground {
        places,
        config,
        admin,
        workspace,
        state_dir,
        own,
    })
}

impl Ground {
    /// What the sandbox can do on this machine.
    pub fn isolation(&self) -> Result<Isolation, Trouble> {
        ambient::probe(&SpawnerProgram::Own)
            .map(|profile| profile.isolation)
            .map_err(|error| (error.to_string(), exit::ENVIRONMENT))
    }

    /// The key and the anchor. What cannot be trusted counts as nothing, and
    /// the person is told.
    pub fn state(&self) -> Result<Option<State>, Trouble> {
        match State::open(&self.state_dir) {
            Ok(state) => Ok(Some(state)),
            Err(StateError::Directory(error)) => Err((error.to_string(), exit::LEDGER)),
            Err(error) => {
                say(&error.to_string());
                Ok(None)
            }
        }
    }

    /// A model of the configuration, ready to be asked.
    pub fn model(&self, words: &BackendWords, cancel: &Cancel) -> Result<Backend, Trouble> {
        opened(&self.places, words, cancel)
    }

    /// What is kept for this workspace.
    pub fn keeper(&self, state: State, isolation: Isolation) -> Result<Keeper, Trouble> {
        let boot = ambient::boot().map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
        let audience = keeper::audience(&self.workspace)
            .ok_or_else(|| ("the workspace has no name".to_owned(), exit::INTERNAL))?;
        let place = keeper::Place {
            state_dir: self.state_dir.clone(),
            workspace: self.workspace.display().to_string(),
            here: Surroundings {
                audience,
                boot,
                now: ambient::wall_time(),
                isolation,
            },
        };
        Keeper::open(place, state).map_err(|error| (error.to_string(), exit::LEDGER))
    }

    /// When the user is asked: the strictest of what the flag or the user's
    /// file and the administrator's say. Nobody is asked where nobody is.
    pub fn asking(&self, flag: Option<Asking>, somebody_is_there: bool) -> Asking {
        let wanted = flag.or(self.config.mode()).unwrap_or(Asking::Prompt);
        let wanted = wanted.max(self.admin.mode().unwrap_or(Asking::ApproveAll));
        match wanted {
            Asking::Prompt if !somebody_is_there => Asking::Refuse,
            wanted => wanted,
        }
    }

    /// Whether nothing is to be kept.
    pub fn is_dry(&self, setting: &Setting) -> bool {
        let usual = self.config.is_dry_by_default() || self.admin.is_dry_by_default();
        setting.dry_run || (usual && !setting.for_real)
    }

    /// The rules of both files.
    pub fn rules(&self) -> Result<Vec<ConfiguredRule>, Trouble> {
        let mut rules = Vec::new();
        for (config, layer) in [
            (&self.admin, Layer::Administrator),
            (&self.config, Layer::User),
        ] {
            rules.extend(
                config
                    .rules(layer, &self.workspace, &self.places.home)
                    .map_err(|error| (error.to_string(), exit::USAGE))?,
            );
        }
        Ok(rules)
    }

    /// Opens a session whose ledger is apart from the others', so that several
    /// can be open at a time. What is kept beyond a session is kept together.
    pub fn open_apart(
        &self,
        setting: &Setting,
        apart: &Path,
        user: Box<dyn UserPort>,
        isolation: Isolation,
        asking: Asking,
    ) -> Result<Runtime, Trouble> {
        let ledger = |error: LedgerError| (error.to_string(), exit::LEDGER);
        let anchor = State::open(apart)
            .map_err(|error| (error.to_string(), exit::LEDGER))?
            .anchor;
        let opened = Ledger::open_anchored(apart, Some(anchor)).map_err(ledger)?;
        let keeper = match self.state()?.map(|state| self.keeper(state, isolation)) {
            None => None,
            Some(Ok(keeper)) => Some(keeper),
            Some(Err((message, _))) => {
                say(&message);
                None
            }
        };
        let desk = keeper.map(Desk::shared);
        let user: Box<dyn UserPort> = match &desk {
            Some(desk) => Box::new(DeskUser::new(desk.clone(), user)),
            None => user,
        };
        let mut config = self.runtime_config(isolation, asking)?;
        apart.clone_into(&mut config.state_dir);
        let mut runtime = Runtime::open_on(config, opened, user, Box::new(BootClock))
            .map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
        runtime
            .note(format!(
                "begun {} in {}, {asking}, proved {}",
                keeper::utc(ambient::wall_time()),
                self.workspace.display(),
                keeper::isolation_word(isolation)
            ))
            .map_err(|error| (error.to_string(), exit::LEDGER))?;
        self.furnish(&mut runtime, setting)?;
        if let Some(desk) = desk {
            runtime
                .attach(desk)
                .map_err(|error| (error.to_string(), exit::LEDGER))?;
        }
        Ok(runtime)
    }

    fn runtime_config(
        &self,
        isolation: Isolation,
        asking: Asking,
    ) -> Result<RuntimeConfig, Trouble> {
        Ok(RuntimeConfig {
            env: ambient::command_env(&self.places.home),
            protected: self.own.clone(),
            home: self.places.home.clone(),
            workspace: self.workspace.clone(),
            state_dir: self.state_dir.clone(),
            isolation,
            asking,
            session: ambient::session_number()
                .map_err(|error| (error.to_string(), exit::ENVIRONMENT))?,
            spawner: SpawnerProgram::Own,
        })
    }

    /// Everything configured, for the first agent of a session.
    pub fn furnish(&self, runtime: &mut Runtime, setting: &Setting) -> Result<(), Trouble> {
        let agent = runtime.first_agent();
        let trouble = |error: crate::runtime::WordsError| (error.to_string(), exit::USAGE);
        runtime.set_ceilings(self.config.ceilings(&self.admin));
        for rule in self.rules()? {
            runtime
                .add_rule(rule)
                .map_err(|denial| (denial.to_string(), exit::USAGE))?;
        }
        runtime.grant_basics(agent).map_err(trouble)?;
        for words in self.admin.grants(&self.workspace) {
            runtime.grant(agent, &words).map_err(trouble)?;
        }
        for words in self.config.grants(&self.workspace) {
            runtime.grant(agent, &words).map_err(trouble)?;
        }
        for grant in &setting.grant {
            let words = words(grant, &self.places.current)?;
            runtime.grant(agent, &words).map_err(trouble)?;
        }
        Ok(())
    }

    /// The same for a dry run: to look and to try, and nothing that could stand.
    fn furnish_dry(&self, runtime: &mut Runtime) -> Result<(), Trouble> {
        let agent = runtime.first_agent();
        let trouble = |error: crate::runtime::WordsError| (error.to_string(), exit::USAGE);
        runtime.set_ceilings(self.config.ceilings(&self.admin));
        for rule in self.rules()? {
            runtime
                .add_rule(rule)
                .map_err(|denial| (denial.to_string(), exit::USAGE))?;
        }
        runtime.grant_basics(agent).map_err(trouble)?;
        let configured = self.admin.grants(&self.workspace);
        for words in configured.chain(self.config.grants(&self.workspace)) {
            if matches!(words.verb.as_str(), "fs.read" | "fs.list") {
                runtime.grant(agent, &words).map_err(trouble)?;
            }
        }
        Ok(())
    }
}

/// Opens a session in which nothing is run and nothing granted yet; the rules
/// hold all the same.
pub fn open_bare(place: &Where) -> Result<Runtime, Trouble> {
    let ground = ground(place)?;
    let anchor = ground.state()?.map(|state| state.anchor);
    let ledger = Ledger::open_anchored(&ground.state_dir, anchor)
        .map_err(|error| (error.to_string(), exit::LEDGER))?;
    let (asking, user): (Asking, Box<dyn UserPort>) = match TerminalUser::open() {
        Some(terminal) => (Asking::Prompt, Box::new(terminal)),
        None => (Asking::Refuse, Box::new(NobodyThere)),
    };
    let config = ground.runtime_config(Isolation::Unknown, asking)?;
    let mut runtime = Runtime::open_on(config, ledger, user, Box::new(BootClock))
        .map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
    for rule in ground.rules()? {
        runtime
            .add_rule(rule)
            .map_err(|denial| (denial.to_string(), exit::USAGE))?;
    }
    Ok(runtime)
}

/// Opens a session for real.
pub fn open(setting: &Setting) -> Result<Runtime, Trouble> {
    open_for(setting, TerminalUser::open())
}

/// The same, for a person at this terminal or nobody.
pub fn open_for(setting: &Setting, terminal: Option<TerminalUser>) -> Result<Runtime, Trouble> {
    let ground = ground(&setting.place)?;
    let state = ground.state()?;
    let ledger_state = match &state {
        Some(_) => ground.state()?,
        None => None,
    };
    let ledger = Ledger::open_anchored(&ground.state_dir, ledger_state.map(|state| state.anchor))
        .map_err(|error| (error.to_string(), exit::LEDGER))?;
    let isolation = ground.isolation()?;
    if ground.is_dry(setting) {
        return dry(&ground, isolation, ledger);
    }
    let asking = ground.asking(setting.mode, terminal.is_some());
    let user: Box<dyn UserPort> = match terminal {
        Some(terminal) => Box::new(terminal),
        None => Box::new(NobodyThere),
    };
    let keeper = match state.map(|state| ground.keeper(state, isolation)) {
        None => None,
        Some(Ok(keeper)) => Some(keeper),
        Some(Err((message, _))) => {
            say(&message);
            None
        }
    };
    let desk = keeper.map(Desk::shared);
    let user: Box<dyn UserPort> = match &desk {
        Some(desk) => Box::new(DeskUser::new(desk.clone(), user)),
        None => user,
    };
    let config = ground.runtime_config(isolation, asking)?;
    let mut runtime = Runtime::open_on(config, ledger, user, Box::new(BootClock))
        .map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
    // The ledger's own times count from the start of the machine.
    runtime
        .note(format!(
            "begun {} in {}, {asking}, proved {}",
            keeper::utc(ambient::wall_time()),
            ground.workspace.display(),
            keeper::isolation_word(isolation)
        ))
        .map_err(|error| (error.to_string(), exit::LEDGER))?;
    ground.furnish(&mut runtime, setting)?;
    let laxest = ground.admin.mode().unwrap_or(Asking::ApproveAll);
    if let Err(error) = runtime.be_reachable(laxest) {
        say(&format!(
            "`hermitcrab session` will not find this session: {error}"
        ));
    }
    match desk {
        Some(desk) => {
            let taken_in = runtime
                .attach(desk.clone())
                .map_err(|error| (error.to_string(), exit::LEDGER))?;
            tell(&taken_in, &desk);
            if let Some(file) = &setting.object {
                redeem(&mut runtime, &desk, file)?;
            }
        }
        None if setting.object.is_some() => {
            return Err((crate::handles::no_such_object().to_string(), exit::REFUSED));
        }
        None => {}
    }
    Ok(runtime)
}

/// Opens a session in which everything that would change is shown, and nothing
/// of it is kept: whatever is asked, the answer is no.
fn dry(
    ground: &Ground,
    isolation: Isolation,
    ledger: (Ledger, Opened),
) -> Result<Runtime, Trouble> {
    let config = ground.runtime_config(isolation, Asking::Prompt)?;
    let user = Box::new(Looker);
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
    let (ledger, _) = memory_ledger()?;
    let opened = Opened {
        head: hermitcrab_core::audit::Head::EMPTY,
        removed: Tail::Whole,
    };
    dry(&ground, ground.isolation()?, (ledger, opened))
}

/// Shows everything it is asked about, and agrees to running commands on a
/// copy and to nothing else.
#[derive(Debug)]
struct Looker;

impl UserPort for Looker {
    fn ask(&mut self, prompt: Prompt<'_>) -> Reply {
        let runs_only = prompt
            .question
            .uncovered()
            .all(|action| action.verb() == Verb::ProcExec);
        if runs_only {
            return Reply::Yes(Scope::Once);
        }
        eprintln!(
            "{}\nhermitcrab: a dry run, so nothing of this is kept",
            prompt.shown.trim_end()
        );
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
    let (ledger, _) = memory_ledger()?;
    let opened = Opened {
        head: hermitcrab_core::audit::Head::EMPTY,
        removed: Tail::Whole,
    };
    let config = ground.runtime_config(isolation, asking)?;
    let mut runtime = Runtime::open_on(
        config,
        (ledger, opened),
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

fn memory_ledger() -> Result<(Ledger, Opened), Trouble> {
    Ledger::on(Box::new(Memory::default()), Path::new("memory"))
        .map_err(|error: LedgerError| (error.to_string(), exit::INTERNAL))
}

/// Nothing kept counts without being said to.
fn tell(taken_in: &crate::runtime::TakenIn, desk: &crate::approvals::SharedDesk) {
    if !taken_in.adopted.is_empty() {
        let names: Vec<String> = taken_in
            .adopted
            .iter()
            .map(|(id, _)| id.to_string())
            .collect();
        say(&format!(
            "kept from before and counting here: {} (see `hermitcrab caps`)",
            names.join(", ")
        ));
    }
    for (id, why) in &taken_in.refused {
        say(&format!("{id} does not count here: {why}"));
    }
    let desk = desk.borrow();
    let waiting: Vec<String> = desk
        .keeper
        .due()
        .map(|(kept, due)| format!("{} ({due})", kept.standing.id))
        .collect();
    if !waiting.is_empty() {
        say(&format!(
            "waiting to be confirmed with `hermitcrab caps confirm`: {}",
            waiting.join(", ")
        ));
    }
}

/// Takes in what a reference leads to. It is read from a file, never from the
/// command line, where other users could see it.
fn redeem(
    runtime: &mut Runtime,
    desk: &crate::approvals::SharedDesk,
    file: &Path,
) -> Result<(), Trouble> {
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    }
    .map_err(|error| {
        (
            format!("cannot read the reference in `{}`: {error}", file.display()),
            exit::USAGE,
        )
    })?;
    let found = {
        let keeper = &desk.borrow().keeper;
        keeper
            .redeem(text.trim())
            .map(|standing| (standing, keeper.here().clone()))
    };
    let ledger = |error: crate::runtime::RuntimeError| (error.to_string(), exit::LEDGER);
    match found {
        Ok((standing, here)) => match runtime.adopt(&standing, &here).map_err(ledger)? {
            Ok(_) => Ok(()),
            Err(denial) => Err((denial.to_string(), exit::REFUSED)),
        },
        Err(denial) => {
            runtime
                .note(format!("refused: {} presented at the start", denial.code()))
                .map_err(ledger)?;
            runtime.end_session().map_err(ledger)?;
            Err((
                format!(
                    "{denial} ({}): {}",
                    denial.code(),
                    denial.code().next_step()
                ),
                exit::REFUSED,
            ))
        }
    }
}

/// `VERB=PATH`, the path from the current directory; `VERB=PEER` for the network.
pub fn words(text: &str, current: &Path) -> Result<GrantWords, Trouble> {
    let Some((verb, on)) = text.split_once('=') else {
        return Err((
            format!("`{text}` is not VERB=PATH, such as fs.create=./src"),
            exit::USAGE,
        ));
    };
    Ok(GrantWords::new(verb, &object(verb, on, current)))
}

/// What a verb is to act on, as a command line names it.
pub fn object(verb: &str, on: &str, current: &Path) -> String {
    // Only files are named from where one is.
    if verb.starts_with("fs.") {
        place(on, current)
    } else {
        on.to_owned()
    }
}

/// A place as a command line names it, from the current directory.
pub fn place(on: &str, current: &Path) -> String {
    if on == "*" || on.starts_with('~') {
        on.to_owned()
    } else {
        current.join(on).to_string_lossy().into_owned()
    }
}
