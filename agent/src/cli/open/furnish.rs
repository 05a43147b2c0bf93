//! What a session holds and knows from the start: everything configured, for its
//! first agent.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use hermitcrab_core::{grant::AgentId, outcome::Denial};

use super::{Ground, tell_what_is_asked, words};
use crate::{
    cli::{Setting, Trouble, say},
    exit,
    runtime::{
        ExternalServer, GrantWords, Runtime, RuntimeError, WordsError, led_elsewhere, lexical,
        tilde_expanded,
    },
    screen::visible,
};

fn unusable(error: WordsError) -> Trouble {
    let code = match &error {
        WordsError::Verb(_) | WordsError::Object(..) | WordsError::Denied(_) => exit::USAGE,
        WordsError::Runtime(RuntimeError::Ledger(_)) => exit::LEDGER,
        WordsError::Runtime(RuntimeError::Path(_) | RuntimeError::Limit(_)) => exit::USAGE,
        WordsError::Runtime(RuntimeError::Directory(..) | RuntimeError::Journal(_)) => {
            exit::ENVIRONMENT
        }
    };
    (error.to_string(), code)
}

fn looks(words: &GrantWords) -> bool {
    matches!(words.verb.as_str(), "fs.read" | "fs.list")
}

impl Ground {
    /// Everything configured, for the first agent of a session.
    pub fn furnish(&self, runtime: &mut Runtime, setting: &Setting) -> Result<(), Trouble> {
        self.furnish_but_given(runtime)?;
        self.give(runtime, setting)
    }

    /// What the command line grants, for the first agent of a session.
    pub(super) fn give(&self, runtime: &mut Runtime, setting: &Setting) -> Result<(), Trouble> {
        let agent = runtime.first_agent();
        for grant in &setting.grant {
            let words = words(grant, &self.places.current)?;
            runtime.grant(agent, &words).map_err(unusable)?;
            tell_what_is_asked(runtime, &words);
        }
        Ok(())
    }

    /// Everything configured, and nothing of the command line.
    pub(super) fn furnish_but_given(&self, runtime: &mut Runtime) -> Result<(), Trouble> {
        let agent = self.begin(runtime)?;
        self.configured(runtime, agent, |words| !self.is_of_a_job() || looks(words))?;
        for server in self.servers() {
            runtime
                .declare_external(server)
                .map_err(|denial| (denial.to_string(), exit::USAGE))?;
        }
        Ok(())
    }

    /// The servers of tools outside that are configured. Those whose key is not
    /// there are named and left out: the rest of the session does not need them.
    pub fn servers(&self) -> Vec<ExternalServer> {
        let around = self.surroundings();
        let mut servers = Vec::new();
        for (name, words) in self.config.servers(&self.admin) {
            match words.open(name, &around) {
                Ok(server) => servers.push(server),
                Err(why) => say(&format!("the server `{name}` is left out: {why}")),
            }
        }
        servers
    }

    /// The same for a dry run: to look and to try, and nothing that could stand.
    pub(super) fn furnish_dry(&self, runtime: &mut Runtime) -> Result<(), Trouble> {
        let agent = self.begin(runtime)?;
        self.configured(runtime, agent, looks)
    }

    /// Of the grants of both files those that are wanted. A job holds what it was given by
    /// name: a model may have chosen its words and its directory, which is what `.` means
    /// there, so of these it has what only looks.
    fn configured(
        &self,
        runtime: &mut Runtime,
        agent: AgentId,
        is_wanted: impl Fn(&GrantWords) -> bool,
    ) -> Result<(), Trouble> {
        let configured = self.admin.grants(&self.workspace);
        let configured = configured.chain(self.config.grants(&self.workspace));
        let mut left_out = BTreeSet::new();
        for words in configured.filter(|words| is_wanted(words)) {
            if let Some(now) = self.led_elsewhere(&words) {
                if left_out.insert(words.on.clone()) {
                    say(&format!(
                        "`{}` of the configuration is left out: a link leads from there to `{}`, which may not be what was meant; write that name there if it is",
                        visible(&words.on),
                        visible(&now.to_string_lossy())
                    ));
                }
                continue;
            }
            if looks(&words) && self.is_nowhere(&words) {
                if left_out.insert(words.on.clone()) {
                    say(&format!(
                        "`{}` of the configuration is left out: nothing is there; make it, or take it out of the configuration",
                        visible(&words.on)
                    ));
                }
                continue;
            }
            match runtime.grant(agent, &words) {
                Ok(_) => {}
                // What cannot be opened cannot be looked at: the rest does not need it.
                Err(error @ WordsError::Runtime(RuntimeError::Directory(..))) if looks(&words) => {
                    if left_out.insert(words.on.clone()) {
                        say(&format!(
                            "`{}` is left out: {error}; `config remove-directory` has it forgotten",
                            visible(&words.on)
                        ));
                    }
                }
                // Nobody is reached by it, and all else goes on without.
                Err(error @ WordsError::Object(..)) if words.verb.starts_with("net.") => {
                    if left_out.insert(words.on.clone()) {
                        say(&format!("left out of the configuration: {error}"));
                    }
                }
                Err(error) => {
                    let (message, code) = unusable(error);
                    return Err((format!("a grant of the configuration: {message}"), code));
                }
            }
        }
        Ok(())
    }

    /// Whether not even the first directory on the way to a place is there. All there is would
    /// be open for it, and could be asked about.
    fn is_nowhere(&self, words: &GrantWords) -> bool {
        let place = lexical(&tilde_expanded(&words.on, &self.places.home));
        let first =
            place.and_then(|place| place.iter().nth(1).map(|name| Path::new("/").join(name)));
        first.is_some_and(|first| first.symlink_metadata().is_err())
    }

    /// Where a place of the configuration leads by now, if a link stands there. Who may change
    /// a directory can leave a link under its name, to what nobody was to see. Within the
    /// workspace a grant is for the name, and leads nowhere.
    fn led_elsewhere(&self, words: &GrantWords) -> Option<PathBuf> {
        if !words.verb.starts_with("fs.") {
            return None;
        }
        let home = &self.places.home;
        let place = lexical(&tilde_expanded(&words.on, home))?;
        if place.starts_with(&self.workspace) {
            return None;
        }
        led_elsewhere(&place, home)
    }

    /// Ceilings and rules first, so that every grant is made below them.
    fn begin(&self, runtime: &mut Runtime) -> Result<AgentId, Trouble> {
        runtime.set_ceilings(self.config.ceilings(&self.admin));
        self.rule(runtime)?;
        let agent = runtime.first_agent();
        runtime.grant_basics(agent).map_err(unusable)?;
        Ok(agent)
    }

    /// The rules of both files.
    pub(super) fn rule(&self, runtime: &mut Runtime) -> Result<(), Trouble> {
        let refused = |denial: Denial| (denial.to_string(), exit::USAGE);
        for rule in self.rules()? {
            runtime.add_rule(rule).map_err(refused)?;
        }
        Ok(())
    }
}
