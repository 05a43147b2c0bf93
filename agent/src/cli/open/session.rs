//! Sessions opened for real: the ordinary one, one with a ledger of its own, and
//! one in which nothing is run.

use std::path::Path;

use hermitcrab_core::{approval::Asking, rules::Isolation};

use super::{Ground, ground, kept};
use crate::{
    ambient::{self, BootClock},
    approvals::SharedDesk,
    audit::{Ledger, LedgerError, Opened},
    chat,
    cli::{Setting, Trouble, say},
    exit,
    person::{NobodyThere, TerminalUser},
    ports::UserPort,
    runtime::{JobPort, Runtime, RuntimeConfig, RuntimeError},
    store::{self, Begun, State, StateError, keeper},
};

fn ledger(error: LedgerError) -> Trouble {
    (error.to_string(), exit::LEDGER)
}

fn runtime(error: RuntimeError) -> Trouble {
    (error.to_string(), exit::LEDGER)
}

/// A session that is made ready, or ended at once: its ledger is not to say that it goes on.
pub fn ready_or_ended(
    mut session: Runtime,
    make_ready: impl FnOnce(&mut Runtime) -> Result<(), Trouble>,
) -> Result<Runtime, Trouble> {
    match make_ready(&mut session) {
        Ok(()) => Ok(session),
        Err(trouble) => {
            // What is wrong came first, and is what is told.
            let _ended = session.end_session();
            Err(trouble)
        }
    }
}

impl Ground {
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
        let state =
            State::open(apart).map_err(|error: StateError| (error.to_string(), exit::LEDGER))?;
        let opened = Ledger::open_anchored(apart, Some(state.anchor)).map_err(ledger)?;
        let desk = kept::desk(self, self.state()?, isolation);
        let mut config = self.runtime_config(isolation, asking)?;
        apart.clone_into(&mut config.state_dir);
        let user = kept::asked_through(desk.as_ref(), user);
        let session = self.begun(config, opened, user)?;
        ready_or_ended(session, |session| {
            self.furnish(session, setting)?;
            if let Some(desk) = desk {
                session.attach(desk).map_err(runtime)?;
            }
            Ok(())
        })
    }

    /// What was looked at before a session began, such as whether a job may work there,
    /// was looked at in the directory that is held: none that took its name meanwhile
    /// is worked in. The ledger's own times count from the start of the machine: the first
    /// note says when that was by the wall.
    fn begun(
        &self,
        config: RuntimeConfig,
        opened: (Ledger, Opened),
        user: Box<dyn UserPort>,
    ) -> Result<Runtime, Trouble> {
        let (asking, isolation) = (config.asking, config.isolation);
        let mut session = Runtime::open_on(config, opened, user, Box::new(BootClock))
            .map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
        if !session.works_in(&self.held) {
            session.end_session().map_err(runtime)?;
            let message = format!(
                "another directory was put in the place of the workspace `{}` while the session began; \
                 see who did that, and start again",
                self.workspace.display()
            );
            return Err((message, exit::REFUSED));
        }
        session
            .note(format!(
                "{}, {asking}, proved {}",
                self.begun_now(),
                keeper::isolation_word(isolation)
            ))
            .map_err(runtime)?;
        Ok(session)
    }

    /// When and where a session begins, as its ledger notes it: the time of its other
    /// records is counted from there.
    pub(in crate::cli) fn begun_now(&self) -> String {
        let now = keeper::utc(ambient::wall_time());
        format!("begun {now} in {}", self.workspace.display())
    }
}

/// What there is to begin with; a doubt about it is said.
fn begun_in(ground: &Ground) -> Result<Begun, Trouble> {
    let begun = store::begin(&ground.state_dir).map_err(|error| {
        let code = if error.is_of_the_system() {
            exit::ENVIRONMENT
        } else {
            exit::LEDGER
        };
        (error.to_string(), code)
    })?;
    if let Some(doubt) = &begun.doubt {
        say(&doubt.to_string());
    }
    Ok(begun)
}

/// Opens a session in which nothing is run and nothing granted yet; the rules
/// hold all the same.
pub fn open_bare(ground: &Ground) -> Result<Runtime, Trouble> {
    let Begun { ledger: opened, .. } = begun_in(ground)?;
    let (asking, user): (Asking, Box<dyn UserPort>) = match TerminalUser::open() {
        Some(terminal) => (Asking::Prompt, Box::new(terminal)),
        None => (Asking::Refuse, Box::new(NobodyThere)),
    };
    let config = ground.runtime_config(Isolation::Unknown, asking)?;
    let session = Runtime::open_on(config, opened, user, Box::new(BootClock))
        .map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
    ready_or_ended(session, |session| {
        session
            .note(format!("{}, by command", ground.begun_now()))
            .map_err(runtime)?;
        ground.rule(session)
    })
}

/// What there was before a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// Nothing that was read.
    Unread,
    /// A conversation that is gone on with, in which something was read. What was granted
    /// before does not vouch for that, and what is granted on this command line does: who
    /// typed it knew with what it goes on.
    Read,
}

/// Opens a session for real, for somebody who is asked or nobody. Where a model may have
/// jobs run at once, `jobs` runs them; one in which nothing is done has no use for it.
pub fn open(
    setting: &Setting,
    user: Option<Box<dyn UserPort>>,
    past: Past,
    jobs: Option<Box<dyn JobPort>>,
) -> Result<Runtime, Trouble> {
    let ground = ground(&setting.place)?;
    let Begun {
        ledger: opened,
        place,
        state,
        ..
    } = begun_in(&ground)?;
    let isolation = ground.isolation()?;
    if ground.is_dry(setting) {
        super::rehearse::tell_whom_it_reaches_not(&ground, setting);
        return super::rehearse::dry(&ground, isolation, opened, setting.extent);
    }
    let asking = ground.asking(setting.mode, user.is_some());
    let user = user.unwrap_or_else(|| Box::new(NobodyThere));
    let desk = kept::desk(&ground, state, isolation);
    let user = kept::asked_through(desk.as_ref(), user);
    let config = ground.runtime_config(isolation, asking)?;
    let session = ground.begun(config, opened, user)?;
    ready_or_ended(session, |session| {
        furnished(session, &ground, (setting, &place), (desk, past), jobs)
    })
}

/// Gives a session what is configured, what is kept and what the command line grants.
fn furnished(
    session: &mut Runtime,
    ground: &Ground,
    (setting, place): (&Setting, &Path),
    (desk, past): (Option<SharedDesk>, Past),
    jobs: Option<Box<dyn JobPort>>,
) -> Result<(), Trouble> {
    match past {
        Past::Unread => ground.furnish(session, setting)?,
        Past::Read => ground.furnish_but_given(session)?,
    }
    if let Some(jobs) = jobs {
        session.run_jobs_through(jobs);
    }
    let laxest = ground.admin.mode().unwrap_or(Asking::ApproveAll);
    if let Err(error) = session.be_reachable(place, laxest) {
        say(&format!(
            "`hermitcrab session` will not find this session: {error}"
        ));
    }
    match desk {
        Some(desk) => {
            let taken_in = session.attach(desk.clone()).map_err(runtime)?;
            kept::tell(&taken_in, &desk);
            if let Some(file) = &setting.object {
                kept::redeem(session, &desk, file)?;
            }
        }
        None if setting.object.is_some() => {
            return Err((crate::handles::no_such_object().to_string(), exit::REFUSED));
        }
        None => {}
    }
    if past == Past::Read {
        chat::count_as_read(session).map_err(|denial| (denial.to_string(), exit::REFUSED))?;
        ground.give(session, setting)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::ground::ground_in, *};
    use crate::audit::disk::Memory;

    #[test]
    fn a_directory_that_took_the_workspaces_place_is_not_worked_in() {
        let temp = tempfile::tempdir().unwrap();
        let (place, other) = (temp.path().join("agreed"), temp.path().join("other"));
        for dir in [&place, &other] {
            std::fs::create_dir(dir).unwrap();
        }
        let places = ambient::Places {
            home: temp.path().to_owned(),
            state_dir: temp.path().join("state"),
            config_file: temp.path().join("config/config.toml"),
            admin_config_file: temp.path().join("admin/config.toml"),
            current: place.clone(),
        };
        let ground = ground_in(places, &crate::cli::Where::default()).unwrap();
        let begun = || {
            let opened = Ledger::on(Box::new(Memory::default()), Path::new("memory")).unwrap();
            let config = ground
                .runtime_config(Isolation::Unknown, Asking::Refuse)
                .unwrap();
            ground.begun(config, opened, Box::new(NobodyThere))
        };
        begun().unwrap();
        std::fs::rename(&place, temp.path().join("aside")).unwrap();
        std::os::unix::fs::symlink(&other, &place).unwrap();
        let (message, code) = begun().unwrap_err();
        assert_eq!(code, exit::REFUSED, "{message}");
        std::fs::remove_file(&place).unwrap();
        std::fs::rename(&other, &place).unwrap();
        let (message, code) = begun().unwrap_err();
        assert_eq!(code, exit::REFUSED, "{message}");
    }
}
