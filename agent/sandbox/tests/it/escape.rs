//! Probes: each tries one forbidden thing and, beside it, the allowed one; then
//! the same with one mechanism left out, to see that a second one holds.
//!
//! A table names the probes that have a single line of defence, which, and why there
//! is no second. A probe that gets through anywhere else fails the test. The lines
//! that start with MATRIX, ORDINARY, WHY and STAYS become docs/escape-matrix.md by
//! `cargo xtask escape-report`.
//!
//! Everything runs in sandboxes whose users are nobody on the machine. The
//! spawner of these tests leaves mechanisms out; an agent's never does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod behind;
mod exhaustion;
mod races;
mod single_line;
mod terminals;

use crate::support;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::path::PathBuf;

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{Object, Port, Program, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::changeset::Layer;
use hermitcrab_sandbox::layers::Prefer;
use hermitcrab_sandbox::net::Network;
use hermitcrab_sandbox::profile::{Mechanism, MechanismSet};
use hermitcrab_sandbox::spawn::{Command, Ending, Finished, PoolSize};
use hermitcrab_sandbox::{Sandbox, SpawnError};
use single_line::{SINGLE_LINE, held_by_what_stays};
use support::arranged::{ORDINARY, Run, twice};
use support::numbers::numbered;
use support::{Workspace, peer, spawner, text, with_permits};

const PROBES: &str = include_str!("escape/probes.pl");

/// What is left out, one at a time.
const LEFT_OUT: [Mechanism; 18] = [
    Mechanism::SystemCallFilter,
    Mechanism::Landlock,
    Mechanism::NoCapabilities,
    Mechanism::MaskedProc,
    Mechanism::NetworkNamespace,
    Mechanism::IpcNamespace,
    Mechanism::ResourceLimits,
    Mechanism::SharedWatches,
    Mechanism::UserNamespace,
    Mechanism::PidNamespace,
    Mechanism::UtsNamespace,
    Mechanism::CgroupNamespace,
    Mechanism::PrivateRoot,
    Mechanism::ClosedDescriptors,
    Mechanism::OwnSession,
    Mechanism::NoNesting,
    Mechanism::FirstVictim,
    Mechanism::ControlGroups,
];

/// What is left out together, and what that is called. Whoever is not root in a namespace
/// loses its capabilities when another program starts, so the namespace that makes root's
/// command root is left out as well, and is not.
const ALMOST_ALL: [(&str, Option<Mechanism>); 2] = [
    ("all but the user namespace", Some(Mechanism::UserNamespace)),
    ("all of these", None),
];

fn all_but(but: Option<Mechanism>) -> MechanismSet {
    MechanismSet::of(LEFT_OUT.into_iter().filter(|left| Some(*left) != but))
}

/// Whether each probe got through, and whether its twin worked.
type Results = BTreeMap<String, (bool, bool)>;

pub fn run_without(without: MechanismSet, command: &Command<'_>) -> Finished {
    tried_without(without, command).unwrap()
}

fn tried_without(without: MechanismSet, command: &Command<'_>) -> Result<Finished, SpawnError> {
    support::run_in(&sandbox_without(without), command)
}

fn sandbox_without(without: MechanismSet) -> Sandbox {
    let mut builder = Sandbox::builder()
        .spawner(spawner())
        .pool(PoolSize::OFF)
        .without(without)
        .copied_views(support::layer() == Layer::Copy);
    if support::is_on_disk() {
        builder = builder.layers(support::shared_store(), Prefer::Disk);
    }
    builder.build()
}

struct Outside {
    workspace: Workspace,
    listener: TcpListener,
    abstract_name: String,
    _abstract: std::os::unix::net::UnixListener,
    secret: tempfile::NamedTempFile,
    /// What everybody may read, beside where tests are built.
    readable: PathBuf,
}

impl Outside {
    fn new() -> Self {
        let workspace = Workspace::new();
        workspace.file("probes.pl", &numbered(PROBES));
        let secret = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), "secret").unwrap();
        // One of the tests' own, which an ordinary user need not be able to make there.
        let readable = PathBuf::from(env!("CARGO_BIN_EXE_hermitcrab-sandbox-child"));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // The port is this test's alone, also where two tests share a process.
        let port = listener.local_addr().unwrap().port();
        let abstract_name = format!("hermitcrab-escape-{port}");
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&abstract_name).unwrap();
        Self {
            workspace,
            listener,
            _abstract: std::os::unix::net::UnixListener::bind_addr(&address).unwrap(),
            abstract_name,
            secret,
            readable,
        }
    }

    fn probe(&self, without: MechanismSet) -> Option<Results> {
        self.probe_in(&sandbox_without(without), without, Network::none())
    }

    fn probe_in(
        &self,
        sandbox: &Sandbox,
        without: MechanismSet,
        network: Network,
    ) -> Option<Results> {
        let script = format!(
            "exec perl probes.pl {} {} {} {} {}",
            self.listener.local_addr().unwrap().port(),
            self.abstract_name,
            // A number that could also be one of the command's own proves nothing.
            std::process::id().max(5000),
            self.secret.path().display(),
            self.readable.display(),
        );
        let mut command = self.workspace.command(&script);
        command.network = network;
        let finished = support::run_in(sandbox, &command).unwrap();
        if finished.ending == Ending::Exited(127) {
            println!("SKIPPED: no perl to make system calls with");
            return None;
        }
        assert_eq!(finished.ending, Ending::Exited(0), "{}", text(&finished));
        for mechanism in without.iter() {
            assert!(!finished.confined.by.contains(mechanism), "{mechanism:?}");
        }
        let unclear: Vec<String> = text(&finished)
            .lines()
            .filter(|line| line.contains("\tunclear "))
            .map(str::to_owned)
            .collect();
        assert!(
            unclear.is_empty(),
            "{:?}: {unclear:?}",
            without.iter().collect::<Vec<_>>()
        );
        let mut results: Results = text(&finished)
            .lines()
            .filter_map(|line| {
                let mut parts = line.split('\t');
                let name = parts.next()?.to_owned();
                Some((name, (parts.next()? == "through", parts.next()? == "works")))
            })
            .collect();
        assert!(results.len() > 85, "{}", text(&finished));
        if finished.confined.landlock_version == 0 && !without.contains(Mechanism::Landlock) {
            // A kernel without it lets every process have its preference.
            results.remove("be no first victim of memory any more");
        }
        Some(results)
    }
}

/// That all were refused, and all twins worked.
fn assert_held(results: &Results) {
    let through: Vec<_> = results.iter().filter(|(_, (out, _))| *out).collect();
    let broken: Vec<_> = results.iter().filter(|(_, (_, twin))| !*twin).collect();
    assert!(through.is_empty(), "{through:?}");
    assert!(broken.is_empty(), "{broken:?}");
}

#[test]
fn nothing_gets_out_and_what_is_allowed_works() {
    if let Some(results) = Outside::new().probe(MechanismSet::NONE) {
        assert_held(&results);
    }
}

/// What an agent's commands get: a sandbox that waited, with a shell that was started before.
#[test]
fn nothing_gets_out_of_a_sandbox_that_waited_either() {
    let outside = Outside::new();
    for round in 0..4 {
        let none = MechanismSet::NONE;
        let Some(results) = outside.probe_in(support::sandbox(), none, Network::none()) else {
            return;
        };
        assert_held(&results);
        assert!(results.len() > 85, "round {round}");
    }
}

/// A peer that is held opens the internet's sockets, and those alone.
#[test]
fn nothing_gets_out_beside_a_peer_that_is_held_either() {
    let outside = Outside::new();
    let peer = peer("127.0.0.1", Port::Only(9));
    let connect = Action::new(Verb::NetConnect, peer, Digest::NONE).unwrap();
    let network = with_permits(Tool::Terminal, vec![connect], |permits| {
        Network::from_permits(permits).unwrap()
    });
    let results = outside.probe_in(support::sandbox(), MechanismSet::NONE, network);
    if let Some(results) = results {
        assert_held(&results);
    }
}

#[test]
fn a_second_mechanism_holds_when_one_is_left_out() {
    let outside = Outside::new();
    let mut matrix: BTreeMap<String, Vec<bool>> = BTreeMap::new();
    let alone = LEFT_OUT.map(|mechanism| MechanismSet::of([mechanism]));
    for without in alone
        .into_iter()
        .chain(ALMOST_ALL.map(|(_, but)| all_but(but)))
    {
        let Some(results) = outside.probe(without) else {
            return;
        };
        for (name, (through, _)) in results {
            matrix.entry(name).or_default().push(through);
        }
    }
    let names: Vec<_> = LEFT_OUT.map(Mechanism::as_str).into();
    let almost_all = ALMOST_ALL.map(|(name, _)| name).join(" | ");
    // A table of its own.
    let mark = match rustix::process::geteuid().is_root() {
        true => "MATRIX",
        false => "ORDINARY",
    };
    println!("{mark} probe | {} | {almost_all}", names.join(" | "));
    let mut found = Vec::new();
    for (probe, row) in &matrix {
        let cells: Vec<_> = row
            .iter()
            .map(|through| if *through { "**through**" } else { "held" })
            .collect();
        println!("{mark} {probe} | {}", cells.join(" | "));
        for (mechanism, through) in LEFT_OUT.iter().zip(row) {
            if *through {
                found.push((probe.as_str(), *mechanism));
            }
        }
    }
    for (probe, _, why) in SINGLE_LINE {
        if found.iter().any(|(name, _)| name == probe) {
            println!("WHY {probe} | {why}");
        }
    }
    // What none of them holds is held by something that stays.
    for (probe, _) in matrix.iter().filter(|(_, row)| !row.contains(&true)) {
        let why = held_by_what_stays(probe).unwrap_or("unknown");
        println!("STAYS {probe} | {why}");
    }
    found.retain(|(probe, mechanism)| {
        !SINGLE_LINE
            .iter()
            .any(|(name, single, _)| name == probe && single == mechanism)
    });
    // Landlock is the second line there, since its version 6.
    if Workspace::new().run("true").confined.landlock_version < 6 {
        found.retain(|(probe, _)| *probe != "the machine's abstract sockets");
    }
    assert_eq!(found, []);
}

#[test]
fn over_copied_views_nothing_gets_out_either() {
    support::on(Layer::Copy, nothing_gets_out_and_what_is_allowed_works);
}

#[test]
fn over_copied_views_the_same_mechanisms_hold_alone() {
    support::on(Layer::Copy, a_second_mechanism_holds_when_one_is_left_out);
}

#[test]
fn over_layers_on_disk_nothing_gets_out_either() {
    support::on_disk(nothing_gets_out_and_what_is_allowed_works);
}

#[test]
fn over_layers_on_disk_the_same_mechanisms_hold_alone() {
    support::on_disk(a_second_mechanism_holds_when_one_is_left_out);
}

/// Root's commands have ids of their own outside; an ordinary user's have that user's.
#[test]
fn of_an_ordinary_user_nothing_gets_out_either() {
    by_an_ordinary_user(
        "escape::of_an_ordinary_user_nothing_gets_out_either",
        nothing_gets_out_and_what_is_allowed_works,
    );
}

#[test]
fn of_an_ordinary_user_a_second_mechanism_holds_as_well() {
    by_an_ordinary_user(
        "escape::of_an_ordinary_user_a_second_mechanism_holds_as_well",
        a_second_mechanism_holds_when_one_is_left_out,
    );
}

fn by_an_ordinary_user(name: &str, test: fn()) {
    if !rustix::process::geteuid().is_root() {
        // It is one already.
        return test();
    }
    if let Some(Run::Inner) = twice(name, &ORDINARY, ":", "") {
        test();
    }
}

#[test]
fn an_agents_own_spawner_leaves_nothing_out() {
    let path = PathBuf::from(env!("CARGO_BIN_EXE_hermitcrab-sandbox-strict-child"));
    let workspace = Workspace::new();
    let alone = LEFT_OUT.map(|mechanism| MechanismSet::of([mechanism]));
    for without in alone.into_iter().chain([MechanismSet::NONE]) {
        let sandbox = Sandbox::builder()
            .spawner(hermitcrab_sandbox::SpawnerProgram::At(path.clone()))
            .without(without)
            .build();
        let action = Action::new(
            Verb::ProcExec,
            Object::Program(Program::AnyInView),
            Digest::NONE,
        )
        .unwrap();
        let result = with_permits(Tool::Terminal, vec![action], |mut permits| {
            sandbox.run(permits.pop().unwrap(), &workspace.command("true"))
        });
        assert_eq!(result.is_ok(), without.is_empty(), "{result:?}");
    }
}

#[test]
fn each_result_says_what_held_the_command() {
    let workspace = Workspace::new();
    let finished = workspace.run("true");
    assert!(finished.confined.is_complete(), "{:?}", finished.confined);
    let without = MechanismSet::of([Mechanism::SystemCallFilter]);
    let weakened = run_without(without, &workspace.command("true"));
    assert!(!weakened.confined.is_complete());
}
