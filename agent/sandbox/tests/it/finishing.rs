//! A command can be waited for without holding up the thread that asks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{Object, Program, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::spawn::{Ending, Finished, Finishing, Running, Streams};
use support::{Workspace, marker, processes_with, sandbox, text, with_permits};

fn spawn(workspace: &Workspace, script: &str) -> Running {
    let program = Object::Program(Program::AnyInView);
    let action = Action::new(Verb::ProcExec, program, Digest::NONE).unwrap();
    with_permits(Tool::Terminal, vec![action], |mut permits| {
        let command = workspace.command(script);
        sandbox()
            .spawn(permits.pop().unwrap(), &command, Streams::default())
            .unwrap()
    })
}

fn finishing(workspace: &Workspace, script: &str) -> Finishing {
    spawn(workspace, script).finishing(|_, _| {}).unwrap()
}

/// Wakes the thread that polls.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls all of them on this thread, as a runtime with one thread does.
fn poll_all(futures: Vec<Finishing>) -> Vec<Finished> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut futures: Vec<_> = futures.into_iter().map(Some).collect();
    let mut results: Vec<Option<Finished>> = futures.iter().map(|_| None).collect();
    let patience = Instant::now();
    while results.iter().any(Option::is_none) {
        for (future, result) in futures.iter_mut().zip(&mut results) {
            let polled = future
                .as_mut()
                .map(|future| Pin::new(future).poll(&mut context));
            if let Some(Poll::Ready(finished)) = polled {
                *result = Some(finished.unwrap());
                *future = None;
            }
        }
        assert!(patience.elapsed() < Duration::from_secs(60));
        std::thread::park_timeout(Duration::from_secs(1));
    }
    results.into_iter().flatten().collect()
}

#[test]
fn commands_are_waited_for_side_by_side_on_one_thread() {
    let workspace = Workspace::new();
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let first = spawn(&workspace, "echo one; sleep 0.3; echo more; exit 3")
        .finishing(move |_, bytes| {
            count.fetch_add(bytes.len(), Ordering::SeqCst);
        })
        .unwrap();
    let second = finishing(&workspace, "echo two > f; exit 4");
    let finished = poll_all(vec![first, second]);
    assert_eq!(finished[0].ending, Ending::Exited(3));
    assert_eq!(text(&finished[0]), "one\nmore\n");
    assert_eq!(seen.load(Ordering::SeqCst), 9);
    assert_eq!(finished[1].ending, Ending::Exited(4));
    assert_eq!(finished[1].changes[0].changes().len(), 1);
    assert!(finished[1].usage.peak_resident_bytes > 0);
}

#[test]
fn one_that_is_killed_resolves_and_one_that_is_dropped_leaves_nothing() {
    let workspace = Workspace::new();
    let marker = marker(98);
    let script = format!("setsid sleep {marker} & exec sleep {marker}");
    let until = |count: &dyn Fn(usize) -> bool| {
        let patience = Instant::now();
        while !count(processes_with(&marker)) {
            assert!(patience.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let killed = finishing(&workspace, &script);
    until(&|count| count == 2);
    killed.killer().kill();
    assert_eq!(poll_all(vec![killed])[0].ending, Ending::Killed);
    assert_eq!(processes_with(&marker), 0);

    let dropped = finishing(&workspace, &script);
    until(&|count| count == 2);
    drop(dropped);
    until(&|count| count == 0);
}

#[test]
fn a_command_that_the_kernel_ended_for_its_call_says_so() {
    let workspace = Workspace::new();
    let mut command = workspace.command("kill -SYS $$");
    let finished = support::run(&command).unwrap();
    assert!(finished.ending.is_refused_by_kernel());
    command.argv[2] = b"exit 31".to_vec();
    let finished = support::run(&command).unwrap();
    assert!(!finished.ending.is_refused_by_kernel());
}
