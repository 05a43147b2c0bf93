//! Starting a program in its copies, with a permit spent on exactly it.

use std::{
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use hermitcrab_core::{
    action::Action,
    approval::CallId,
    authority::{Object, Program, Verb},
    grant::GrantId,
    outcome::{Denial, DenialCode},
    session::Call,
    tool::Tool,
};
use hermitcrab_sandbox::net::Network;
use hermitcrab_sandbox::spawn::{Command, Grace, Limits, Running, SpawnError, Streams};

use super::{
    super::{
        hands::Hands,
        mounts::real,
        seen::Seen,
        turn::Stop,
        visible::{marked, named},
    },
    network::in_words,
};
use crate::digest::sha256;

/// Output bytes kept of a program.
const OUTPUT_BYTES_MAX: usize = 8 << 20;

/// A program as it is started.
#[derive(Debug)]
pub(in crate::runtime) struct Launch<'l> {
    /// The tool it runs for.
    pub(in crate::runtime) tool: Tool,
    /// What the user is asked about and the ledger names: the command, the script.
    pub(in crate::runtime) about: &'l str,
    /// The program and its arguments.
    pub(in crate::runtime) argv: Vec<Vec<u8>>,
    /// Variables besides the session's own; a later one wins.
    pub(in crate::runtime) env: Vec<(Vec<u8>, Vec<u8>)>,
    /// Files it finds beside the exchange.
    pub(in crate::runtime) inputs: Vec<(String, Vec<u8>)>,
    /// Whether both outputs are one.
    pub(in crate::runtime) merge_stderr: bool,
    /// How long it may run.
    pub(in crate::runtime) timeout: Duration,
    /// How it is asked to end when that is over.
    pub(in crate::runtime) grace: Grace,
}

/// The variables of the session with others laid over them.
fn laid_over(base: &[(String, String)], over: Vec<(Vec<u8>, Vec<u8>)>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut env: Vec<(Vec<u8>, Vec<u8>)> = base
        .iter()
        .map(|(name, value)| (name.clone().into_bytes(), value.clone().into_bytes()))
        .collect();
    for (name, value) in over {
        match env.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => env.push((name, value)),
        }
    }
    env
}

/// What commands are told that were written for Hermes: where their user is at home, that
/// they run on this machine, and how many seconds they have if a call says nothing.
fn told_of_hermes(home: &Path) -> [(&'static [u8], Vec<u8>); 3] {
    [
        (b"HERMES_REAL_HOME", home.as_os_str().as_bytes().to_vec()),
        (b"TERMINAL_ENV", b"local".to_vec()),
        (b"TERMINAL_TIMEOUT", b"180".to_vec()),
    ]
}

/// What git goes by to know whether a file is still as its index has it: how long it is and
/// when it was changed. What a command made is put in place after it, as other files than
/// the command had; git's other marks of a file are those of the copy, and by them each
/// would count as changed (`git diff-index`, `git apply --index`).
const GIT_GOES_BY: [(&[u8], &[u8]); 3] = [
    (b"GIT_CONFIG_COUNT", b"1"),
    (b"GIT_CONFIG_KEY_0", b"core.checkStat"),
    (b"GIT_CONFIG_VALUE_0", b"minimal"),
];

/// The same, unless git is told something by variables already.
fn told_to_git(env: &mut Vec<(Vec<u8>, Vec<u8>)>) {
    if !env.iter().any(|(name, _)| name.starts_with(b"GIT_CONFIG_")) {
        env.extend(GIT_GOES_BY.map(|(name, value)| (name.to_vec(), value.to_vec())));
    }
}

/// Where programs are looked for that somebody named and agreed to, or gave a key: not in
/// what is worked on. What lies there under their names may be anybody's.
fn elsewhere(env: &[(String, String)], workspace: &Path) -> Option<(Vec<u8>, Vec<u8>)> {
    let (name, path) = env.iter().find(|(name, _)| name == "PATH")?;
    let workspace = real(workspace);
    let dirs: Vec<&str> = path
        .split(':')
        .filter(|dir| !real(Path::new(dir)).starts_with(&workspace))
        .collect();
    Some((name.clone().into_bytes(), dirs.join(":").into_bytes()))
}

impl Hands<'_> {
    /// The variable that has programs looked for where nobody works.
    pub(in crate::runtime) fn looks_elsewhere(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        elsewhere(&self.runtime.config.env, &self.runtime.config.workspace)
    }

    /// Starts a program. The call is running from here on and has to be
    /// reported as finished, however the program ends.
    pub(in crate::runtime) fn launch(
        &mut self,
        launch: Launch<'_>,
        seen: &[Seen],
        streams: Streams,
    ) -> Result<(CallId, Result<Running, SpawnError>), Stop> {
        let action = Action::new(
            Verb::ProcExec,
            Object::Program(Program::AnyInView),
            sha256(launch.about.as_bytes()),
        )
        .map_err(|error| Stop::Broken(error.to_string()))?;
        let network = self.network(launch.tool, action.digest());
        let about = marked(launch.about);
        // Whoever says yes to it is to know what it will not find.
        let unseen = self.unseen(seen).map_or_else(String::new, |unseen| {
            format!("\nshown nothing of: {}", named(&unseen.to_string_lossy()))
        });
        let text = format!("run: {about}{}{unseen}", in_words(&network));
        let mut actions = vec![action];
        actions.extend(network);
        let event = self.called(Call {
            by: self.by,
            tool: launch.tool,
            actions,
        });
        let mut env = laid_over(&self.runtime.config.env, launch.env);
        for (name, value) in told_of_hermes(&self.runtime.config.home) {
            if !env.iter().any(|(known, _)| known == name) {
                env.push((name.to_vec(), value));
            }
        }
        told_to_git(&mut env);
        let sandbox = self.runtime.sandbox();
        // What one of an agent's commands listens at its others reach.
        let loopback = u64::from(self.by.get()).saturating_add(1);
        let ceilings = self.runtime.ceilings.clone();
        let heard = self.runtime.heard_from_outside(self.by);
        let ruled = self.runtime.ruled_addresses();
        let (mut turn, mounts) = self.turn();
        let (call, running) = turn.begin(
            event,
            |_| text,
            |permits| {
                let mut permits = permits.into_iter();
                let Some(permit) = permits.next() else {
                    return Err(SpawnError::Denied(Denial::new(
                        DenialCode::UnknownCall,
                        "no permit was made",
                    )));
                };
                let network = Network::from_permits(permits)
                    .map_err(SpawnError::Denied)?
                    .in_common(loopback)
                    .but(ruled)
                    .noticed(heard);
                let command = Command {
                    argv: launch.argv,
                    env,
                    cwd: PathBuf::from("/"),
                    views: seen.iter().filter_map(|seen| seen.view(mounts)).collect(),
                    private_dirs: Vec::new(),
                    inputs: launch.inputs,
                    merge_stderr: launch.merge_stderr,
                    network,
                    limits: ceilings.narrowed(Limits {
                        timeout: launch.timeout,
                        grace: launch.grace,
                        output_bytes_max: OUTPUT_BYTES_MAX,
                        ..Limits::default()
                    }),
                };
                sandbox.spawn(permit, &command, streams)
            },
        )?;
        if let Ok(running) = &running {
            let killer = running.killer();
            let grants: Vec<GrantId> = seen.iter().map(|seen| seen.by_grant).collect();
            let machine = &self.runtime.machine;
            if !machine.arrange(|session| session.leans_on(call, &grants)) {
                killer.kill();
            }
            // If it was stopped meanwhile it is killed now, and whoever waits
            // for its end is told why, so there is nothing to do about it here.
            let _stopped = machine.runs(call, Box::new(move || killer.kill()));
            self.runtime.look_after_what_runs();
        }
        Ok((call, running))
    }

    /// Why a call that runs may not go on, if it was stopped.
    pub(in crate::runtime) fn stopped(&self, call: CallId) -> Option<Denial> {
        let code = self.runtime.machine.why_stopped(call)?;
        Some(Denial::new(code, call))
    }
}
