//! Hermes behind an editor: its own server, started in the case's world and
//! spoken to as an editor would.

use std::os::fd::AsRawFd;

use bisim_world::WorldError;
use bisim_world::driver::StepSink;
use bisim_world::protocol::Job;
use bisim_world::wire::Conversation;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use pyo3::prelude::*;

use crate::exception::describe;

/// Runs a case's script over the wire.
pub(super) fn run(job: &Job, steps: &mut StepSink) -> Result<(), WorldError> {
    let stage = "start Hermes' server";
    let cwd = job.world.as_ref().map_or("/", |world| world.cwd.as_str());
    let pipe = || std::io::pipe().map_err(|error| WorldError::new(stage, error));
    let (requests, input) = pipe()?;
    let (output, answers) = pipe()?;
    let server: i32 = Python::attach(|py| {
        py.import("hermes_shim_wire")
            .and_then(|module| {
                module.call_method1("serve", (requests.as_raw_fd(), answers.as_raw_fd()))
            })
            .and_then(|server| server.extract())
            .map_err(|error| WorldError::new(stage, describe(py, &error)))
    })?;
    drop((requests, answers));
    let mut conversation = Conversation::begin(input, output, cwd)?;
    conversation.play(&job.script, steps)?;
    // What it does on its way out, and how long it takes, is no part of a case.
    let server = Pid::from_raw(server);
    kill(server, Signal::SIGKILL)
        .and_then(|()| waitpid(server, None))
        .map(drop)
        .map_err(|error| WorldError::new("end Hermes' server", error))
}
