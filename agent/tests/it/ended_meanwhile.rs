//! What is ended in the store while a question is open covers nothing once it is answered.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{cell::RefCell, path::PathBuf, rc::Rc, sync::Arc};

use hermitcrab::{
    approvals::{Desk, DeskUser},
    audit::Ledger,
    ports::{Prompt, UserPort},
    runtime::{CallReport, Fate, Runtime},
    store::State,
};
use hermitcrab_core::{
    approval::{Reply, Scope},
    outcome::DenialCode,
    standing::StandingId,
};
use serde_json::{Value, json};

use crate::support::{self, ManualClock, machine::Machine};

/// A person who ends what was kept in another terminal, and then says yes once.
struct EndsIt {
    machine: Arc<Machine>,
    shown: Rc<RefCell<Vec<String>>>,
}

impl UserPort for EndsIt {
    fn ask(&mut self, prompt: Prompt<'_>) -> Reply {
        if self.shown.borrow().is_empty() {
            assert!(self.machine.keeper().revoke(StandingId::new(0)).unwrap());
        }
        self.shown.borrow_mut().push(prompt.shown.to_owned());
        Reply::Yes(Scope::Once)
    }
}

/// What these calls come to where making `new.txt` is kept and the rest is asked about; and
/// how often a person was asked, and the machine.
fn answered(
    call: impl FnOnce(&mut Runtime) -> Vec<CallReport>,
) -> (Vec<CallReport>, usize, Arc<Machine>) {
    let machine = Arc::new(Machine::new());
    assert_eq!(machine.write(&["always"], "new.txt", "1"), (1, true));
    std::fs::remove_file(made(&machine, "new.txt")).unwrap();
    let state_dir = machine.state_dir();
    let state = State::open(&state_dir).unwrap();
    let ledger = Ledger::open_anchored(&state_dir, Some(state.anchor)).unwrap();
    let desk = Desk::shared(machine.keeper());
    let shown = Rc::new(RefCell::new(Vec::new()));
    let user = EndsIt {
        machine: Arc::clone(&machine),
        shown: Rc::clone(&shown),
    };
    let mut runtime = Runtime::open_on(
        support::config(machine.workspace.clone(), state_dir),
        ledger,
        Box::new(DeskUser::new(desk.clone(), Box::new(user))),
        Box::new(ManualClock::default()),
    )
    .unwrap();
    let first = runtime.first_agent();
    runtime.grant_basics(first).unwrap();
    assert_eq!(runtime.attach(desk).unwrap().adopted.len(), 1);
    let reports = call(&mut runtime);
    runtime.end_session().unwrap();
    let asked = shown.borrow().len();
    (reports, asked, machine)
}

fn made(machine: &Machine, name: &str) -> PathBuf {
    machine.workspace.join(name)
}

/// Makes a file that is kept and one that is not.
fn both(other: &str) -> Value {
    json!({"mode": "patch", "patch": format!(
        "*** Begin Patch\n*** Add File: new.txt\n+1\n*** Add File: {other}\n+2\n*** End Patch\n"
    )})
}

/// Refused because of what ended, with nothing of it done, and told on record.
fn fell(report: &CallReport, machine: &Machine, fate: &Fate) {
    assert_eq!(&report.fate, fate, "{}", report.text);
    for name in ["new.txt", "other.txt"] {
        assert!(!made(machine, name).exists(), "{name}");
    }
    let ledger = machine.ledger();
    for words in [
        "standing0 was ended in the store",
        "\"kind\":\"revoked\"",
        "\"revoked\"",
    ] {
        assert!(ledger.contains(words), "`{words}`: {ledger}");
    }
}

#[test]
fn what_is_ended_in_the_store_while_a_question_is_open_does_not_count_beside_the_answer() {
    let (reports, asked, machine) = answered(|runtime| {
        let first = runtime.first_agent();
        vec![runtime.call(first, "patch", &both("other.txt"))]
    });
    assert_eq!(asked, 1);
    fell(
        &reports[0],
        &machine,
        &Fate::AskedRefused(DenialCode::Revoked),
    );
}

#[test]
fn nor_for_a_call_that_is_made_at_the_same_time_as_others() {
    let calls = [
        ("read_file", json!({"path": "nothing.txt"})),
        ("patch", both("other.txt")),
    ];
    let (reports, asked, machine) = answered(|runtime| {
        let first = runtime.first_agent();
        runtime.call_together(first, &calls.each_ref().map(|(tool, args)| (*tool, args)))
    });
    assert_eq!(asked, 1);
    fell(
        &reports[1],
        &machine,
        &Fate::AskedRefused(DenialCode::Revoked),
    );
}

#[test]
fn nor_for_what_a_command_did_that_is_asked_about() {
    let (reports, asked, machine) = answered(|runtime| {
        let first = runtime.first_agent();
        let args = json!({"command": "echo 1 > new.txt; echo 2 > other.txt"});
        vec![runtime.call(first, "terminal", &args)]
    });
    assert_eq!(asked, 1);
    fell(
        &reports[0],
        &machine,
        &Fate::RanDiscarded(DenialCode::Revoked),
    );
}
