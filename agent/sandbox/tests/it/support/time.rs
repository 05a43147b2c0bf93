//! What is so only once time has passed, on a machine that may itself be made to wait.

use std::time::{Duration, Instant};

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{Object, Program, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::SpawnError;
use hermitcrab_sandbox::spawn::{Command, Ending, Finished, Sandbox, Streams};

use super::{text, with_permits};

/// Runs a command until its time is over, which is this at first and then more: on a busy
/// machine not even its sandbox may be there so soon. The result is of the first run that
/// had come so far before the end, as a look says that is given what was printed.
#[track_caller]
pub fn out_of_time(
    sandbox: &Sandbox,
    command: &mut Command<'_>,
    first: Duration,
    has_come_so_far: impl Fn(&[u8]) -> bool,
) -> Finished {
    for times in [1, 5, 25] {
        command.limits.timeout = first * times;
        let program = Object::Program(Program::AnyInView);
        let action = Action::new(Verb::ProcExec, program, Digest::NONE).unwrap();
        let begun = Instant::now();
        let mut running = with_permits(Tool::Terminal, vec![action], |mut permits| {
            let permit = permits.pop().unwrap();
            sandbox.spawn(permit, command, Streams::default()).unwrap()
        });
        let (mut shown, mut has_come) = (Vec::new(), false);
        let pause = Duration::from_millis(5);
        while !running
            .attend(pause, |_, bytes| shown.extend(bytes))
            .unwrap()
        {
            let is_so = !has_come && has_come_so_far(&shown);
            has_come |= is_so && begun.elapsed() < command.limits.timeout;
        }
        match running.wait() {
            Ok(finished) if has_come => {
                assert_eq!(finished.ending, Ending::TimedOut, "{}", text(&finished));
                return finished;
            }
            Ok(_) => {}
            Err(SpawnError::Step(error)) if error.errno() == nix::libc::ETIMEDOUT => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("it never came so far");
}

/// Waits until what is changed next has another time than what was changed last.
pub fn clock_of_files_moves() {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        (time.tv_sec, time.tv_nsec)
    };
    let begun = now();
    // A step lasts longer than it should where the machine itself is made to wait.
    while now() <= begun {
        std::thread::sleep(Duration::from_millis(1));
    }
}
