//! The agent behind an editor: its own program, started in the case's world
//! and spoken to as an editor would.

use std::process::{Child, Command, Stdio};

use bisim_world::WorldError;
use bisim_world::driver::StepSink;
use bisim_world::environment::ENVIRONMENT;
use bisim_world::protocol::Job;
use bisim_world::wire::{Conversation, MODEL_URL};

use super::agent_world::STATE_DIR;

/// This program, which is the agent's, too.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// Where the server is started: not where the session works.
const SERVER_CWD: &str = "/home/u";

/// Runs a case's script over the wire.
///
/// # Errors
/// The server does not start.
pub(super) fn run(job: &Job, steps: &mut StepSink, fault: Option<&str>) -> Result<(), WorldError> {
    let cwd = job.world.as_ref().map_or("/", |world| world.cwd.as_str());
    let mut server = start(fault)?;
    let ends = server.stdin.take().zip(server.stdout.take());
    let (input, output) =
        ends.ok_or_else(|| WorldError::new("start the agent's server", "it has no streams"))?;
    let mut conversation = Conversation::begin(input, output, cwd)?;
    conversation.play(&job.script, steps)?;
    // Its streams are closed, and it ends by itself.
    drop(conversation);
    server
        .wait()
        .map(drop)
        .map_err(|error| WorldError::new("wait for the agent's server", error))
}

fn start(fault: Option<&str>) -> Result<Child, WorldError> {
    let mut words = vec!["__agent"];
    words.extend(fault.iter().flat_map(|fault| ["--fault", fault]));
    words.extend(["--", "acp", "--state-dir", STATE_DIR]);
    words.extend(["--model", "scripted", "--base-url", MODEL_URL]);
    Command::new(OWN_PROGRAM)
        .args(words)
        .current_dir(SERVER_CWD)
        .env_clear()
        .envs(ENVIRONMENT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| WorldError::new("start the agent's server", error))
}
