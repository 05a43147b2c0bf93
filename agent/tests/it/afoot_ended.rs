//! What ends while much of what a running command made is carried over.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use hermitcrab::{
    ports::ProgressPort,
    runtime::{Ceilings, Runtime},
};
use hermitcrab_core::{
    authority::Verb,
    grant::AgentId,
    path::RelPath,
    standing::{PortableAuthority, PortableCap, PortableObject},
};
use serde_json::{Value, json};

use crate::support::{Bench, machine::Machine};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Far more than is carried over in one go.
const MANY: usize = 700;

/// Is asked between two of the goes whether more is wanted.
struct Between(Box<dyn FnMut() -> bool>);

impl ProgressPort for Between {
    fn output(&mut self, _: AgentId, _: &str) {}

    fn is_wanted(&mut self) -> bool {
        (self.0)()
    }
}

fn call(runtime: &mut Runtime, tool: &str, args: &Value) -> Value {
    let report = runtime.call(runtime.first_agent(), tool, args);
    serde_json::from_str(&report.text).unwrap()
}

/// Starts a command that has made so many files, which nobody has looked at.
fn started(runtime: &mut Runtime) -> String {
    let make = format!("mkdir d; for i in $(seq {MANY}); do echo $i > d/$i; done");
    has_made(runtime, &make)
}

/// Starts a command that has done this, which nobody has looked at.
fn has_made(runtime: &mut Runtime, make: &str) -> String {
    // With a ceiling all waits for the end.
    runtime.set_ceilings(Ceilings {
        files_max: Some(1),
        ..Ceilings::default()
    });
    let command = format!("{make}; echo ma''de; sleep 600");
    let args = json!({"command": command, "background": true});
    let id = call(runtime, "terminal", &args)["session_id"].clone();
    let poll = json!({"action": "poll", "session_id": id});
    let begun = Instant::now();
    while !call(runtime, "process", &poll)["output_preview"]
        .to_string()
        .contains("made")
    {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
    runtime.set_ceilings(Ceilings::default());
    id.as_str().unwrap().to_owned()
}

fn look(runtime: &mut Runtime) {
    call(runtime, "read_file", &json!({"path": "none"}));
}

fn kept(workspace: &Path) -> usize {
    std::fs::read_dir(workspace.join("d")).map_or(0, Iterator::count)
}

/// Does something between the first go and the next; how much was kept then.
fn after_the_first(
    runtime: &mut Runtime,
    workspace: &Path,
    mut act: impl FnMut() -> bool + 'static,
) -> usize {
    let then = std::rc::Rc::new(std::cell::Cell::new(None));
    let (noted, workspace) = (std::rc::Rc::clone(&then), workspace.to_owned());
    runtime.show_progress(Box::new(Between(Box::new(move || {
        if noted.get().is_some() {
            return true;
        }
        noted.set(Some(kept(&workspace)));
        act()
    }))));
    look(runtime);
    then.get().expect("it is carried over in one go")
}

#[test]
fn what_is_revoked_between_covers_nothing_that_comes_after_it() {
    let mut bench = Bench::new();
    let grant = bench.grant("fs.*", ".");
    let id = started(&mut bench.runtime);
    let remote = bench.runtime.remote();
    let before = after_the_first(&mut bench.runtime, &bench.workspace, move || {
        remote.revoke(grant).unwrap();
        true
    });
    assert!(0 < before && before < MANY, "{before}");
    assert_eq!(kept(&bench.workspace), before);
    // It had effects on what was revoked, so it is killed as well.
    let args = json!({"action": "kill", "session_id": id});
    let killed = bench.call("process", args);
    assert!(killed.text.contains("revoked"), "{}", killed.text);
    assert_eq!(kept(&bench.workspace), before);
}

#[test]
fn what_is_revoked_in_the_store_between_covers_nothing_that_comes_after_it() {
    let machine = Machine::new();
    let place = machine.workspace.to_str().unwrap().trim_start_matches('/');
    let place = PortableObject::tree(RelPath::parse(place.as_bytes()).unwrap());
    let cap = PortableCap::new(Verb::FsCreate, place).unwrap();
    drop(machine.open(&[]));
    let all = PortableAuthority::from_caps([cap]).unwrap();
    let standing = machine.keeper().keep(&all).unwrap();
    let mut opened = machine.open(&[]);
    assert_eq!(opened.taken_in.adopted.len(), 1);
    started(&mut opened.runtime);
    let mut elsewhere = machine.keeper();
    let before = after_the_first(&mut opened.runtime, &machine.workspace, move || {
        assert!(elsewhere.revoke(standing).unwrap());
        true
    });
    assert!(0 < before && before < MANY, "{before}");
    assert_eq!(kept(&machine.workspace), before);
    opened.runtime.end_session().unwrap();
    assert_eq!(kept(&machine.workspace), before);
}

#[test]
fn a_command_whose_own_grant_ends_between_keeps_what_stands_and_no_more() {
    let mut bench = Bench::with_files();
    let id = started(&mut bench.runtime);
    let held = bench.runtime.grants_in_words(bench.runtime.first_agent());
    let grant = held
        .iter()
        .find(|(_, words)| words.starts_with("proc.exec"));
    let (grant, remote) = (grant.unwrap().0, bench.runtime.remote());
    let before = after_the_first(&mut bench.runtime, &bench.workspace, move || {
        remote.revoke_and_drain(grant).unwrap();
        true
    });
    assert!(0 < before && before < MANY, "{before}");
    let log = json!({"action": "poll", "session_id": id});
    let status = call(&mut bench.runtime, "process", &log)["status"].clone();
    assert_ne!(status, "running");
    assert_eq!(kept(&bench.workspace), before);
}

#[test]
fn a_stop_ends_a_look_and_the_next_one_goes_on() {
    let mut bench = Bench::with_files();
    let id = started(&mut bench.runtime);
    let before = after_the_first(&mut bench.runtime, &bench.workspace, || false);
    assert!(0 < before && before < MANY, "{before}");
    assert_eq!(kept(&bench.workspace), before);
    look(&mut bench.runtime);
    assert_eq!(kept(&bench.workspace), MANY);
    call(
        &mut bench.runtime,
        "process",
        &json!({"action": "kill", "session_id": id}),
    );
    assert_eq!(kept(&bench.workspace), MANY);
}

#[test]
fn nothing_is_carried_over_after_a_revocation_of_another_thread_has_returned() {
    let mut bench = Bench::new();
    let grant = bench.grant("fs.*", ".");
    started(&mut bench.runtime);
    let (remote, workspace) = (bench.runtime.remote(), bench.workspace.clone());
    let other = std::thread::spawn(move || {
        let begun = Instant::now();
        while kept(&workspace) == 0 {
            assert!(begun.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(1));
        }
        remote.revoke(grant).unwrap();
        kept(&workspace)
    });
    look(&mut bench.runtime);
    let then = other.join().unwrap();
    assert_eq!(kept(&bench.workspace), then);
}

#[test]
fn what_is_made_and_given_up_in_many_goes_is_as_the_command_left_it() {
    let mut bench = Bench::with_files();
    for place in 0..MANY {
        bench.put(&format!("old/{place}"), &format!("{place}\n"));
    }
    // What is moved is not gone before it is there under its new name.
    let command = format!(
        "mkdir new; for i in $(seq 0 {}); do mv old/$i new/$i; done; echo ma''de; sleep 600",
        MANY - 1
    );
    let args = json!({"command": command, "background": true});
    let id = call(&mut bench.runtime, "terminal", &args)["session_id"].clone();
    let poll = json!({"action": "poll", "session_id": id});
    let (begun, mut is_made) = (Instant::now(), false);
    while !is_made {
        assert!(begun.elapsed() < PATIENCE);
        let said = call(&mut bench.runtime, "process", &poll);
        is_made = said["output_preview"].to_string().contains("made");
        let text = |place: usize| {
            let names = [format!("new/{place}"), format!("old/{place}")];
            names.iter().find_map(|name| bench.text(name))
        };
        let lost = (0..MANY).find(|place| text(*place) != Some(format!("{place}\n")));
        assert_eq!(lost, None);
    }
    look(&mut bench.runtime);
    let count = |name: &str| {
        std::fs::read_dir(bench.workspace.join(name))
            .unwrap()
            .count()
    };
    assert_eq!((count("old"), count("new")), (0, MANY));
    let killed = bench.call("process", json!({"action": "kill", "session_id": id}));
    assert_eq!(killed.changes.created + killed.changes.deleted, 0);
}

#[test]
fn what_was_linked_together_is_so_in_however_many_goes() {
    let mut bench = Bench::with_files();
    // The first and the last names of all, some of them in directories of their own.
    let make = format!(
        "mkdir d z; echo linked > d/a; for i in $(seq {MANY}); do echo $i > d/$i; \
         mkdir z/$i; ln d/a z/$i/link; echo $i > z/$i/own; done"
    );
    has_made(&mut bench.runtime, &make);
    look(&mut bench.runtime);
    let links = |name: &str| {
        let file = std::fs::metadata(bench.workspace.join(name)).unwrap();
        std::os::unix::fs::MetadataExt::nlink(&file)
    };
    let all = u64::try_from(MANY).unwrap() + 1;
    let last = format!("z/{MANY}/link");
    assert_eq!(
        (links("d/a"), links("z/1/link"), links(&last)),
        (all, all, all)
    );
    for place in 1..=MANY {
        let own = bench.text(&format!("z/{place}/own"));
        assert_eq!(own, Some(format!("{place}\n")));
    }
}

#[test]
fn where_no_tree_may_be_deleted_all_waits_for_the_end() {
    let mut bench = Bench::with_files();
    let id = has_made(&mut bench.runtime, "echo x > made.txt");
    bench.runtime.set_ceilings(Ceilings {
        keeps_trees: true,
        ..Ceilings::default()
    });
    look(&mut bench.runtime);
    assert_eq!(bench.text("made.txt"), None);
    let kill = json!({"action": "kill", "session_id": id});
    call(&mut bench.runtime, "process", &kill);
    assert_eq!(bench.text("made.txt").as_deref(), Some("x\n"));
}
