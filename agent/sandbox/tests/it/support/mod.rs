//! What the tests of this package share: permits from a real session, and the
//! spawner built beside the test binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

pub mod arranged;
pub mod numbers;
pub mod time;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use hermitcrab_core::Permit;
use hermitcrab_core::action::Action;
use hermitcrab_core::audit::Head;
use hermitcrab_core::authority::{
    Authority, Cap, DirId, Host, HostPattern, Name, Object, Port, Program, Verb,
};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::grant::{AgentId, Lifetime, Uses};
use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::rules::Withheld;
use hermitcrab_core::session::{Asking, Call, Event, GrantSpec, Session, SessionConfig};
use hermitcrab_core::time::Instant;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::changeset::{ChangeSet, Layer};
use hermitcrab_sandbox::journal::{Commit, CommitId, Journal, Part, UndoError};
use hermitcrab_sandbox::layers::{LayerStore, Prefer, memory_holds_layers};
use hermitcrab_sandbox::spawn::{
    Command, Finished, Input, Limits, Running, Sandbox, Streams, View, ViewMode,
};
use hermitcrab_sandbox::{DirCap, SpawnError, SpawnerProgram, sha256};

/// So many tries, as many times more as `HERMITCRAB_TIMES` says: what depends on chance is
/// tried often enough to be seen by everybody who runs the tests, and longer at a desk.
#[allow(clippy::disallowed_methods)]
pub fn times(usual: u32) -> u32 {
    let more = std::env::var("HERMITCRAB_TIMES").map_or(1, |text| text.parse().unwrap());
    usual * more
}

/// A session whose first agent holds everything there is, over one directory.
pub fn session() -> (Session, DirId) {
    let (mut session, _records) = Session::open(SessionConfig {
        id: 1,
        hash: sha256,
        isolation: Isolation::Isolated,
        protected: Vec::new(),
        asking: Asking::Refuse,
        ledger: Head::EMPTY,
        opened_at: Instant::BOOT,
    });
    let dir = session.add_dir(rel("work")).unwrap();
    let mut caps: Vec<Cap> = Verb::FILES
        .into_iter()
        .map(|verb| {
            let object = Object::tree(dir, RelPath::root());
            Cap::new(verb, object).unwrap()
        })
        .collect();
    caps.push(Cap::new(Verb::ProcExec, Object::Program(Program::AnyInView)).unwrap());
    for (verb, name) in [
        (Verb::NetConnect, "127.0.0.1"),
        (Verb::NetListen, "localhost"),
    ] {
        caps.push(Cap::new(verb, peer(name, Port::Any)).unwrap());
    }
    let _granted = session.step(
        Instant::BOOT,
        Event::Grant(GrantSpec {
            holder: AgentId::FIRST,
            authority: Authority::from_caps(caps).unwrap(),
            uses: Uses::Uncounted,
            lifetime: Lifetime::Session,
        }),
    );
    (session, dir)
}

/// A network peer.
pub fn peer(name: &str, port: Port) -> Object {
    Object::Host(Host {
        name: HostPattern::Exact(Name::parse(name).unwrap()),
        port,
    })
}

/// The id every test directory has.
pub fn dir_id() -> DirId {
    session().1
}

pub fn rel(path: &str) -> RelPath {
    RelPath::parse(path.as_bytes()).unwrap()
}

/// Calls `spend` with one permit for each action.
pub fn with_permits<R>(
    tool: Tool,
    actions: Vec<Action>,
    spend: impl FnOnce(Vec<Permit<'_>>) -> R,
) -> R {
    let (mut session, _dir) = session();
    let parts = session
        .step(
            Instant::BOOT,
            Event::Call(Call {
                by: AgentId::FIRST,
                tool,
                actions,
            }),
        )
        .into_parts();
    assert_eq!(parts.denials, Vec::new());
    spend(parts.permits)
}

/// Calls `spend` with a permit for one file operation.
pub fn with_permit<R>(
    verb: Verb,
    path: &RelPath,
    digest: Digest,
    spend: impl FnOnce(Permit<'_>) -> R,
) -> R {
    let action = Action::on_path(verb, dir_id(), path.clone(), digest).unwrap();
    with_permits(Tool::Directory, vec![action], |mut permits| {
        spend(permits.pop().unwrap())
    })
}

/// The same for all that lies below a place.
pub fn with_permit_for_all<R>(
    verb: Verb,
    path: &RelPath,
    spend: impl FnOnce(Permit<'_>) -> R,
) -> R {
    let action = Action::on_tree(verb, dir_id(), path.clone(), Digest::NONE).unwrap();
    with_permits(Tool::Directory, vec![action], |mut permits| {
        spend(permits.pop().unwrap())
    })
}

/// The spawner program built with this package.
pub fn spawner() -> SpawnerProgram {
    SpawnerProgram::At(PathBuf::from(env!(
        "CARGO_BIN_EXE_hermitcrab-sandbox-child"
    )))
}

thread_local! {
    /// How the views of this thread's commands are made.
    static LAYER: Cell<Layer> = const { Cell::new(Layer::Overlay) };
    /// Whether their layers lie on disk.
    static ON_DISK: Cell<bool> = const { Cell::new(false) };
}

/// Runs a test whose commands all have layers on disk, where one can lie there.
pub fn on_disk(test: impl FnOnce()) {
    if let Err(why) = disk() {
        println!("SKIPPED: no layer can lie on disk here: {why}");
        return;
    }
    ON_DISK.set(true);
    test();
    ON_DISK.set(false);
}

/// A store at this place.
pub fn store_at(place: &Path) -> LayerStore {
    std::fs::create_dir_all(place).unwrap();
    std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o700)).unwrap();
    LayerStore::open(std::fs::File::open(place).unwrap().into()).unwrap()
}

/// A sandbox whose layers lie there.
pub fn sandbox_on(store: LayerStore) -> Sandbox {
    Sandbox::builder()
        .spawner(spawner())
        .layers(store, Prefer::Disk)
        .build()
}

/// Whether commands of this thread have their layers on disk.
pub fn is_on_disk() -> bool {
    ON_DISK.get()
}

/// The sandbox whose layers lie on disk, or why none can.
fn disk() -> &'static Result<Sandbox, String> {
    static ON_DISK: OnceLock<Result<Sandbox, String>> = OnceLock::new();
    ON_DISK.get_or_init(|| {
        let sandbox = sandbox_on(shared_store());
        let finished = run_in(&sandbox, &Workspace::new().command("true")).unwrap();
        if finished.confined.on_disk {
            Ok(sandbox)
        } else {
            Err(format!("{:?}", finished.confined.missing))
        }
    })
}

/// One for all test programs of this user: each start sweeps what others left.
pub fn shared_store() -> LayerStore {
    let user = rustix::process::geteuid().as_raw();
    store_at(&std::env::temp_dir().join(format!("hermitcrab-layers-of-tests-{user}")))
}

/// Runs a test whose commands all have views of this kind.
pub fn on(layer: Layer, test: impl FnOnce()) {
    LAYER.set(layer);
    test();
}

/// How the views of this thread's commands are made.
pub fn layer() -> Layer {
    LAYER.get()
}

/// How they are in the end: a kernel whose memory holds no layers copies (Linux before 6.6).
pub fn layer_made() -> Layer {
    if is_on_disk() || memory_holds_layers() {
        layer()
    } else {
        Layer::Copy
    }
}

/// Makes three tests of each function: over an overlay in memory, over a copy, and
/// over an overlay whose layer lies on disk.
macro_rules! on_all_layers {
    ($($test:ident),* $(,)?) => {
        mod over_an_overlay {
            $(#[test] fn $test() {
                $crate::support::on(hermitcrab_sandbox::changeset::Layer::Overlay, super::$test);
            })*
        }
        mod over_a_copy {
            $(#[test] fn $test() {
                $crate::support::on(hermitcrab_sandbox::changeset::Layer::Copy, super::$test);
            })*
        }
        mod over_an_overlay_on_disk {
            $(#[test] fn $test() {
                $crate::support::on_disk(super::$test);
            })*
        }
    };
}
pub(crate) use on_all_layers;

/// One for the whole test process, as an agent has one; and one that copies.
pub fn sandbox() -> &'static Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    static COPYING: OnceLock<Sandbox> = OnceLock::new();
    let made = |copied: bool| {
        Sandbox::builder()
            .spawner(spawner())
            .copied_views(copied)
            .build()
    };
    if ON_DISK.get() {
        return disk().as_ref().unwrap();
    }
    match layer() {
        Layer::Overlay => SANDBOX.get_or_init(|| made(false)),
        Layer::Copy => COPYING.get_or_init(|| made(true)),
    }
}

/// A workspace, the directory capability for it, and the agent's own directory.
pub struct Workspace {
    temp: tempfile::TempDir,
    pub state: tempfile::TempDir,
    pub cap: DirCap,
}

impl Workspace {
    pub fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    pub fn at(temp: tempfile::TempDir) -> Self {
        // The temporary directory is private by default, which a view keeps.
        let cap = DirCap::open_ambient_dir(temp.path(), dir_id()).unwrap();
        let state = tempfile::tempdir().unwrap();
        Self { temp, state, cap }
    }

    pub fn path(&self) -> &Path {
        self.temp.path()
    }

    pub fn file(&self, name: &str, content: &str) {
        let path = self.temp.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.temp.path().join(name)).unwrap()
    }

    pub fn command(&self, script: &str) -> Command<'_> {
        Command {
            argv: vec![b"bash".to_vec(), b"-c".to_vec(), script.into()],
            env: vec![(b"PATH".to_vec(), b"/usr/bin:/bin".to_vec())],
            cwd: self.path().to_owned(),
            views: vec![View {
                dir: &self.cap,
                at: self.path().to_owned(),
                mode: ViewMode::CopyOnWrite,
                withheld: Withheld::default(),
            }],
            private_dirs: Vec::new(),
            inputs: Vec::new(),
            merge_stderr: true,
            network: hermitcrab_sandbox::net::Network::none(),
            limits: Limits {
                timeout: Duration::from_secs(60),
                ..Limits::default()
            },
        }
    }

    /// Runs a shell script on a copy-on-write view of the workspace.
    pub fn run(&self, script: &str) -> Finished {
        run(&self.command(script)).unwrap()
    }
}

/// All of a directory, at this place.
pub fn view<'a>(dir: &'a DirCap, at: &str, mode: ViewMode) -> View<'a> {
    View {
        dir,
        at: at.into(),
        mode,
        withheld: Withheld::default(),
    }
}

pub fn run(command: &Command<'_>) -> Result<Finished, SpawnError> {
    run_in(sandbox(), command)
}

/// Runs a command in a sandbox of its own.
pub fn run_in(sandbox: &Sandbox, command: &Command<'_>) -> Result<Finished, SpawnError> {
    let action = Action::new(
        Verb::ProcExec,
        Object::Program(Program::AnyInView),
        Digest::NONE,
    )
    .unwrap();
    with_permits(Tool::Terminal, vec![action], |mut permits| {
        sandbox.run(permits.pop().unwrap(), command)
    })
}

/// Runs a script in a view; before its end, somebody else saves a file.
pub fn run_while_they_save(workspace: &Workspace, script: &str, path: &Path) -> Finished {
    let script = format!("{script}; echo done; read -r until_they_saved");
    let mut running = start(&workspace.command(&script));
    let mut stdin = running.take_stdin();
    let finished = running.wait_with(|_, _| {
        if stdin.is_some() {
            time::clock_of_files_moves();
            std::fs::write(path, "theirs\n").unwrap();
            stdin = None;
        }
    });
    finished.unwrap()
}

/// Starts a command whose input is a pipe.
pub fn start(command: &Command<'_>) -> Running {
    let action = Action::new(
        Verb::ProcExec,
        Object::Program(Program::AnyInView),
        Digest::NONE,
    )
    .unwrap();
    let streams = Streams {
        stdin: Input::Pipe,
        ..Streams::default()
    };
    with_permits(Tool::Terminal, vec![action], |mut permits| {
        sandbox()
            .spawn(permits.pop().unwrap(), command, streams)
            .unwrap()
    })
}

pub fn text(finished: &Finished) -> String {
    String::from_utf8_lossy(&finished.stdout.to_bytes()).into_owned()
}

/// Applies a change set with everything it needs.
pub fn commit(finished: &Finished, workspace: &Workspace) -> Commit {
    let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
    assert!(recovered.is_clean(), "{recovered:?}");
    commit_in(&journal, finished.changes.first().unwrap(), workspace)
}

/// The same, in this journal.
pub fn commit_in(journal: &Journal, set: &ChangeSet, workspace: &Workspace) -> Commit {
    commit_of(journal, set, &workspace.cap)
}

/// The same, of changes in this directory.
pub fn commit_of(journal: &Journal, set: &ChangeSet, dir: &DirCap) -> Commit {
    let actions = set.actions(dir.id()).unwrap();
    with_permits(Tool::Directory, actions, |permits| {
        journal.commit(vec![Part { dir, set, permits }], "a test")
    })
}

/// Takes a commit back with everything that needs.
pub fn undo_in(
    journal: &Journal,
    id: CommitId,
    workspace: &Workspace,
) -> Result<Commit, UndoError> {
    undo_of(journal, id, &workspace.cap)
}

/// The same, of one in this directory.
pub fn undo_of(journal: &Journal, id: CommitId, dir: &DirCap) -> Result<Commit, UndoError> {
    let undo = journal.prepare_undo(id)?;
    let dirs = [(dir.id(), RelPath::root())];
    let actions = undo.actions(&dirs).unwrap();
    Ok(with_permits(Tool::Directory, actions, |permits| {
        journal.undo(&undo, &[dir], permits)
    }))
}

/// What is in a directory: kind, mode, name, target or content, attributes.
/// Names that are the same file say so by the first of them.
pub fn tree(path: &Path) -> Vec<String> {
    fn add(path: &Path, top: &Path, seen: &mut BTreeMap<u64, String>, out: &mut Vec<String>) {
        let stat = std::fs::symlink_metadata(path).unwrap();
        let name = path.strip_prefix(top).unwrap().display().to_string();
        let attributes: Vec<String> = xattrs(path);
        if stat.is_dir() {
            out.push(format!(
                "d {:o} {name} {attributes:?}",
                stat.mode() & 0o7777
            ));
            let mut names: Vec<_> = std::fs::read_dir(path)
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .collect();
            names.sort();
            for name in names {
                add(&name, top, seen, out);
            }
        } else if stat.is_symlink() {
            let target = std::fs::read_link(path).unwrap();
            out.push(format!("l {name} -> {}", target.display()));
        } else if stat.is_file() {
            let first = seen
                .entry(stat.ino())
                .or_insert_with(|| name.clone())
                .clone();
            let content = sha256(&std::fs::read(path).unwrap());
            out.push(format!(
                "f {:o} {name} = {first} {} {content} {attributes:?}",
                stat.mode() & 0o7777,
                stat.len(),
            ));
        } else {
            out.push(format!("s {name}"));
        }
    }
    let mut out = Vec::new();
    add(path, path, &mut BTreeMap::new(), &mut out);
    out
}

/// The user's attributes of a file or directory.
pub fn xattrs(path: &Path) -> Vec<String> {
    let mut names = vec![0; 4096];
    let length = rustix::fs::llistxattr(path, &mut names).unwrap_or(0);
    names[..length]
        .split(|byte| *byte == 0)
        .filter(|name| name.starts_with(b"user."))
        .map(|name| {
            let mut value = vec![0; 4096];
            let length = rustix::fs::lgetxattr(path, name, &mut value).unwrap();
            format!(
                "{}={}",
                String::from_utf8_lossy(name),
                String::from_utf8_lossy(&value[..length])
            )
        })
        .collect()
}

/// How many processes of the machine have this among their arguments.
pub fn processes_with(marker: &str) -> usize {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read(entry.unwrap().path().join("cmdline")).ok())
        .filter(|line| {
            line.split(|byte| *byte == 0)
                .any(|argument| argument == marker.as_bytes())
        })
        .count()
}

/// A number of seconds nobody else sleeps.
pub fn marker(base: u32) -> String {
    format!("{base}{}", std::process::id())
}

/// The children of this process, zombies included.
pub fn children() -> Vec<i32> {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .flat_map(|task| {
            std::fs::read_to_string(task.unwrap().path().join("children"))
                .unwrap()
                .split_ascii_whitespace()
                .map(|pid| pid.parse().unwrap())
                .collect::<Vec<i32>>()
        })
        .collect()
}

/// The groups of this machine that this spawner made.
pub fn groups_of(spawner: u32) -> Vec<PathBuf> {
    fn look(at: &Path, prefix: &str, depth: usize, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(at).into_iter().flatten().flatten() {
            let path = entry.path();
            if !path.is_dir() {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(prefix) {
                found.push(path);
            } else if depth > 0 {
                look(&path, prefix, depth - 1, found);
            }
        }
    }
    let mut found = Vec::new();
    let prefix = format!("hermitcrab-{spawner}-");
    look(Path::new("/sys/fs/cgroup"), &prefix, 5, &mut found);
    found
}

/// Does that as somebody who may read and write only what modes let them.
pub fn as_anybody<R: Send>(what: impl FnOnce() -> R + Send) -> R {
    let ordinary = || {
        let none = rustix::thread::CapabilitySet::empty();
        let sets = rustix::thread::CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        };
        rustix::thread::set_capabilities(None, sets).unwrap();
        what()
    };
    std::thread::scope(|scope| scope.spawn(ordinary).join().unwrap())
}
