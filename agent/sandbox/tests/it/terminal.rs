//! A command's own terminal controls it; nothing else does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::os::fd::OwnedFd;

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{Object, Program, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::spawn::{Ending, Input, Running, Streams};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use support::{Workspace, sandbox, text, with_permits};

fn spawn(workspace: &Workspace, script: &str, stdin: Input) -> Running {
    let program = Object::Program(Program::AnyInView);
    let action = Action::new(Verb::ProcExec, program, Digest::NONE).unwrap();
    let streams = Streams {
        stdin,
        ..Streams::default()
    };
    with_permits(Tool::Terminal, vec![action], |mut permits| {
        let command = workspace.command(script);
        sandbox()
            .spawn(permits.pop().unwrap(), &command, streams)
            .unwrap()
    })
}

/// Our end and the command's.
fn terminal() -> (OwnedFd, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags).unwrap();
    unlockpt(&ours).unwrap();
    let theirs = ioctl_tiocgptpeer(&ours, flags).unwrap();
    (ours, theirs)
}

#[test]
fn a_command_opens_the_terminal_that_controls_it_and_is_interrupted_from_there() {
    let workspace = Workspace::new();
    let (ours, theirs) = terminal();
    let script = "read -r x < /dev/tty; echo \"got $x\"; trap 'echo stopped; exit 5' INT
                  echo ready > /dev/tty; while :; do sleep 0.05; done";
    let mut running = spawn(&workspace, script, Input::Terminal(theirs));
    rustix::io::write(&ours, b"hello\n").unwrap();
    let mut shown = Vec::new();
    let mut piece = [0_u8; 64];
    while !String::from_utf8_lossy(&shown).contains("ready") {
        let count = rustix::io::read(&ours, &mut piece).unwrap();
        shown.extend_from_slice(&piece[..count]);
    }
    rustix::io::write(&ours, b"\x03").unwrap();
    while !running
        .attend(std::time::Duration::from_secs(60), |_, _| {})
        .unwrap()
    {}
    let finished = running.wait().unwrap();
    assert_eq!(finished.ending, Ending::Exited(5));
    assert_eq!(text(&finished), "got hello\nstopped\n");
}

#[test]
fn a_command_without_a_terminal_opens_none() {
    let workspace = Workspace::new();
    let (_ours, theirs) = terminal();
    for stdin in [Input::Nothing, Input::From(theirs)] {
        let script = "[ -c /dev/tty ] && echo there; (exec < /dev/tty) || (exec > /dev/tty)";
        let finished = spawn(&workspace, script, stdin).wait().unwrap();
        let shown = text(&finished);
        let none = shown.matches("No such device or address").count();
        assert!(
            none == 2 && shown.starts_with("there\n"),
            "{shown}: {:?}",
            finished.ending
        );
    }
}
