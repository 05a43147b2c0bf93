//! Where a command works and what is configured there, before anything is opened.

use std::{
    fs, io,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    path::{Component, Path, PathBuf},
};

use hermitcrab_core::{
    approval::Asking,
    rules::{ConfiguredRule, Isolation, Layer},
    standing::Surroundings,
};
use hermitcrab_sandbox::{SpawnerProgram, spawn::never_shown};
use rustix::{
    fs::{Access, Mode, OFlags, access},
    io::Errno,
};

use crate::{
    ambient::{self, BootClock, Places},
    cancel::Cancel,
    cli::{Setting, Trouble, Where, say},
    config::{
        self, Config,
        models::{self, BackendWords},
    },
    exit,
    model::{self, Backend},
    ports::Clock as _,
    runtime::{RuntimeConfig, led_to, names_of, other_names},
    screen::visible,
    store::{
        State, StateError,
        keeper::{self, Keeper},
        site::site,
    },
    tools,
};

/// Where the kernel tells of what this process holds open.
const OWN_FILES: &str = "/proc/self/fd";

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
    /// The same, open: what is looked at here is told by it from what gets its name later.
    pub(super) held: OwnedFd,
    /// Where the ledger and the store are.
    pub state_dir: PathBuf,
    /// The agent's own places, as they are called.
    named: Vec<PathBuf>,
    /// The same by each of their names, with every link on the way.
    own: Vec<PathBuf>,
    /// The job it is done for, if it is for one.
    job: Option<String>,
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
    let config = config::read(&places.config_file).map_err(of_the_users)?;
    Ok(Configured { places, config })
}

impl Configured {
    /// A model of the configuration, ready to be asked.
    pub fn model(&self, words: &BackendWords, cancel: &Cancel) -> Result<Backend, Trouble> {
        opened(&self.places, words, cancel)
    }

    /// Where keys and files of a model are looked for.
    pub fn surroundings(&self) -> model::key::Surroundings<'_> {
        around(&self.places)
    }
}

/// What is wrong with the user's own file, and what they can do about it.
fn of_the_users(error: config::ConfigError) -> Trouble {
    (error.with_the_way_out(), exit::USAGE)
}

fn around(places: &Places) -> model::key::Surroundings<'_> {
    model::key::Surroundings {
        variable: &ambient::variable,
        home: &places.home,
        dir: places.config_file.parent().unwrap_or(&places.home),
    }
}

/// What helps where nothing can be worked on.
pub const GO_THERE: &str =
    "go to the directory that is to be worked on, or name it with `--workspace DIR`";

fn opened(places: &Places, words: &BackendWords, cancel: &Cancel) -> Result<Backend, Trouble> {
    models::open::open(words, &around(places), cancel)
        .map_err(|error| (error.to_string(), exit::USAGE))
}

/// Looks where a command is to work.
pub fn ground(place: &Where) -> Result<Ground, Trouble> {
    worked_on(seen_from(place)?, place)
}

/// Looks where a person stands who wants to see or end what is kept: that may be their home,
/// in which no session begins because the agent's own files are below it.
pub fn seen_from(place: &Where) -> Result<Ground, Trouble> {
    let places = ambient::places().map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
    ground_in(places, place)
}

/// Commands see a copy of all of the workspace, and the agent's own files are none of
/// their business.
fn worked_on(ground: Ground, place: &Where) -> Result<Ground, Trouble> {
    let Some(why) = ground.no_workspace() else {
        return Ok(ground);
    };
    // Who named it, be it an editor that has no such option, names another one the same way.
    let help = match &place.workspace {
        Some(_) => "name the directory that is to be worked on",
        None => GO_THERE,
    };
    Err((format!("{why}; {help}"), exit::USAGE))
}

/// The same, in these surroundings.
pub(super) fn ground_in(places: Places, place: &Where) -> Result<Ground, Trouble> {
    let usage = |error: config::ConfigError| (error.to_string(), exit::USAGE);
    let config = config::read(&places.config_file).map_err(of_the_users)?;
    let admin = config::read_administrators(&places.admin_config_file).map_err(usage)?;
    let workspace = place
        .workspace
        .clone()
        .unwrap_or_else(|| places.current.clone());
    let named = places.current.join(&workspace);
    let (held, workspace) = held(&named).map_err(|error| {
        (
            match Path::new(OWN_FILES).exists() {
                true => format!(
                    "cannot use the workspace `{}`: {error}{}",
                    workspace.display(),
                    shut_above(&named, is_shut).map_or_else(String::new, |dir| format!(
                        "; `{}` cannot be entered, and whoever it belongs to can open it by `chmod u+x`, or give it to you",
                        visible(&dir.display().to_string())
                    ))
                ),
                // By it a directory that is held open is told by its name.
                false => format!(
                    "cannot use the workspace `{}`: `{OWN_FILES}` is not there, as `/proc` is not mounted; mount it",
                    workspace.display()
                ),
            },
            exit::USAGE,
        )
    })?;
    let leads_up = |dir: &Path| dir.components().any(|part| part == Component::ParentDir);
    let state_dir = match &place.state_dir {
        None => places.state_dir.clone(),
        // What lies below what is told by names from here on, and `..` is none.
        Some(dir) if leads_up(dir) => led_to(&places.current.join(dir)),
        Some(dir) => places.current.join(dir),
    };
    // Either may be reached through links, the file by itself, too, and be made only later. Who
    // changes one of these links has put something else in its place.
    let named = std::iter::once(state_dir.as_path())
        .chain(places.config_file.parent())
        .chain([
            places.config_file.as_path(),
            places.admin_config_file.as_path(),
        ]);
    let named: Vec<PathBuf> = named.map(Path::to_owned).collect();
    let own = named.iter().flat_map(|own| names_of(own)).collect();
    Ok(Ground {
        places,
        config,
        admin,
        workspace,
        held,
        state_dir,
        named,
        own,
        job: place.job.clone(),
    })
}

/// Whether its user may not enter a directory.
fn is_shut(dir: &Path) -> bool {
    access(dir, Access::EXEC_OK) == Err(Errno::ACCESS)
}

/// The first directory on the way to a path that is shut.
fn shut_above(path: &Path, is_shut: impl Fn(&Path) -> bool) -> Option<&Path> {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    above.into_iter().find(|dir| is_shut(dir))
}

/// A directory, open, and the path it really has.
pub(in crate::cli) fn held(path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(path, flags, Mode::empty())?;
    let real = fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd()))?;
    Ok((dir, real))
}

impl Ground {
    /// Whether it is for a job, whose words and directory a model may have chosen.
    pub const fn is_of_a_job(&self) -> bool {
        self.job.is_some()
    }

    /// Why nothing can be worked on here, if the workspace and the agent's own places
    /// overlap, or commands have something else there.
    pub fn no_workspace(&self) -> Option<String> {
        let workspace = &self.workspace;
        let own = self
            .own
            .iter()
            .find(|own| workspace.starts_with(own) || own.starts_with(workspace));
        let shown = |path: &Path| visible(&path.display().to_string());
        let why = match own {
            Some(own) if workspace.starts_with(own) => {
                format!("it belongs to the agent's own `{}`", shown(own))
            }
            Some(own) => format!("the agent's own `{}` is below it", shown(own)),
            None => match never_shown(workspace) {
                Some(why) => why.to_owned(),
                None => self.own_by_another_name()?,
            },
        };
        Some(format!(
            "`{}` cannot be worked in, because {why}",
            shown(workspace)
        ))
    }

    /// The agent's own place that lies in the workspace by another path, or around it: a file
    /// system can be mounted at several.
    fn own_by_another_name(&self) -> Option<String> {
        let names = match other_names(self.held.as_fd(), &self.workspace) {
            Ok(names) => names,
            Err(error) => return Some(error.to_string()),
        };
        let shown = |path: &Path| visible(&path.display().to_string());
        names.iter().find_map(|name| {
            let overlaps = |own: &&PathBuf| own.starts_with(&name.at) || name.at.starts_with(own);
            let own = self.own.iter().find(overlaps)?;
            Some(format!(
                "`{}` is the same as `{}`, and the agent's own `{}` lies there",
                shown(&name.whole(&self.workspace)),
                shown(&name.at),
                shown(own)
            ))
        })
    }

    /// Where keys of servers outside are looked for.
    pub fn surroundings(&self) -> model::key::Surroundings<'_> {
        around(&self.places)
    }

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
            // That nothing can be kept here says nothing about what was.
            Err(error) if error.is_of_the_system() => Err((error.to_string(), exit::ENVIRONMENT)),
            Err(error @ StateError::Directory(_)) => Err((error.to_string(), exit::LEDGER)),
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
        // What is kept for a job counts for that job alone, in this place.
        let of = match &self.job {
            Some(job) => self.workspace.join(format!("\u{0}job:{job}")),
            None => self.workspace.clone(),
        };
        let audience = keeper::audience(&of)
            .ok_or_else(|| ("the workspace has no name".to_owned(), exit::INTERNAL))?;
        let place = keeper::Place {
            state_dir: self.state_dir.clone(),
            workspace: match &self.job {
                Some(_) => format!("a job in {}", self.workspace.display()),
                None => self.workspace.display().to_string(),
            },
            here: Surroundings {
                audience,
                site: site(self.held.as_fd()),
                boot,
                now: ambient::wall_time(),
                in_boot: BootClock.now(),
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

    pub(super) fn runtime_config(
        &self,
        isolation: Isolation,
        asking: Asking,
    ) -> Result<RuntimeConfig, Trouble> {
        Ok(RuntimeConfig {
            env: [
                ambient::command_env(&self.places.home, &self.programs_shown()),
                self.homes_of_programs(),
            ]
            .concat(),
            git_settings: ambient::git_settings(&self.places.home),
            protected: self.named.clone(),
            home: self.places.home.clone(),
            workspace: self.workspace.clone(),
            state_dir: self.state_dir.clone(),
            common_dir: self.state_dir.clone(),
            tools: tools::run,
            isolation,
            asking,
            session: ambient::session_number()
                .map_err(|error| (error.to_string(), exit::ENVIRONMENT))?,
            spawner: SpawnerProgram::Own,
            umask: ambient::umask(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_directories_that_are_shut_the_outermost_is_in_the_way() {
        let shut = |dir: &Path| dir.starts_with("/a/b");
        let path = Path::new("/a/b/c/ws");
        assert_eq!(shut_above(path, shut), Some(Path::new("/a/b")));
        assert_eq!(shut_above(Path::new("/a/ws"), shut), None);
        // It says itself what is wrong with it.
        assert_eq!(shut_above(Path::new("/a/b"), shut), None);
        assert!(!is_shut(Path::new("/")));
    }
}
