//! What cannot be run or opened is refused with a reason that can be matched,
//! and what is like it and in order works.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use hermitcrab_core::authority::Verb;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::rules::Withheld;
use hermitcrab_sandbox::dircap::Base;
use hermitcrab_sandbox::profile::probe;
use hermitcrab_sandbox::spawn::{EXCHANGE_DIR, Ending, Step, View, ViewMode};
use hermitcrab_sandbox::{DirCap, FsError, Sandbox, SpawnError, sha256};
use support::{Workspace, commit, rel, run, run_in, text, with_permit};

/// The step that failed, its error number, and all it says.
fn step_of(result: Result<hermitcrab_sandbox::spawn::Finished, SpawnError>) -> (Step, i32, String) {
    match result {
        Err(SpawnError::Step(error)) => (error.step(), error.errno(), error.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_program_that_would_begin_anew_as_its_spawner_runs_no_command() {
    // The main of a test is the harness', which does not ask what it was started for.
    let workspace = Workspace::new();
    let (step, _, said) = step_of(run_in(
        &Sandbox::builder().build(),
        &workspace.command("echo ran > ran"),
    ));
    assert_eq!(step, Step::StartSpawner);
    assert!(said.contains("does not call"), "{said}");
    assert!(!workspace.path().join("ran").exists());
}

#[test]
fn a_commit_that_did_not_happen_says_where_and_why() {
    let workspace = Workspace::new();
    let finished = workspace.run("mkdir sub; echo mine > sub/new");
    workspace.file("sub/new", "theirs");
    let failure = commit(&finished, &workspace).failure.unwrap();
    let said = failure.to_string();
    assert!(said.starts_with("`sub"), "{said}");
    let error: &dyn std::error::Error = &failure;
    assert_eq!(error.to_string(), said);
}

#[test]
fn a_file_that_is_no_program_names_why() {
    let workspace = Workspace::new();
    let program = |name: &str, content: &str| {
        workspace.file(name, content);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(workspace.path().join(name), mode).unwrap();
    };
    program("lost", "#!/no/such/interpreter\n");
    program("nested", "#!./lost\n");
    program("noise", "neither a script nor a program\n");
    program("good", "#!/bin/sh\necho ran\n");
    std::fs::create_dir(workspace.path().join("dir")).unwrap();
    for (name, errno) in [
        ("./lost", nix::libc::ENOENT),
        ("./nested", nix::libc::ENOENT),
        ("./noise", nix::libc::ENOEXEC),
        ("./dir", nix::libc::EACCES),
    ] {
        let mut command = workspace.command("");
        command.argv = vec![name.into()];
        let (step, found, told) = step_of(run(&command));
        assert_eq!((step, found), (Step::Exec, errno), "{told}");
        assert!(told.contains(name), "{told}");
    }
    let mut command = workspace.command("");
    command.argv = vec![b"./good".to_vec()];
    assert_eq!(text(&run(&command).unwrap()), "ran\n");
}

#[test]
fn a_source_that_was_replaced_is_not_shown() {
    let outer = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    type Plant = fn(&Path, &Path);
    let plants: [(&str, Plant); 3] = [
        ("nothing", |_, _| {}),
        ("a link", |at, outside| symlink(outside, at).unwrap()),
        ("another directory", |at, _| {
            std::fs::create_dir(at).unwrap()
        }),
    ];
    for (what, plant) in plants {
        // Sandboxes that wait for one directory are for no other.
        let place = outer.path().join(what);
        // What the kernel calls a directory that was removed.
        let removed = outer.path().join(format!("{what} (deleted)"));
        std::fs::create_dir(&place).unwrap();
        let cap = DirCap::open_ambient_dir(&place, support::dir_id()).unwrap();
        let workspace = Workspace::new();
        let mut command = workspace.command("ls");
        command.cwd = place.clone();
        command.views[0] = View {
            dir: &cap,
            at: place.clone(),
            mode: ViewMode::CopyOnWrite,
            withheld: Withheld::default(),
        };
        assert_eq!(run(&command).unwrap().ending, Ending::Exited(0), "{what}");
        support::sandbox().settle();
        std::fs::remove_dir(&place).unwrap();
        plant(&removed, outside.path());
        let (step, _, told) = step_of(run(&command));
        assert_eq!(step, Step::ViewSource, "{what}: {told}");
    }
}

#[test]
fn a_file_is_opened_for_reading_with_a_permit_for_it_and_not_without() {
    let workspace = Workspace::new();
    workspace.file("f", "text\n");
    workspace.file("other", "other\n");
    symlink("/etc/passwd", workspace.path().join("out")).unwrap();
    let open = |verb: Verb, path: &str, permitted: &str| {
        let (path, permitted) = (rel(path), rel(permitted));
        with_permit(verb, &permitted, Digest::NONE, |permit| {
            workspace.cap.open(permit, &path)
        })
    };
    let mut read = String::new();
    let file = open(Verb::FsRead, "f", "f").unwrap();
    std::fs::File::from(file).read_to_string(&mut read).unwrap();
    assert_eq!(read, "text\n");
    let code = |result: Result<_, FsError>| result.unwrap_err().code();
    let mismatch = Some(DenialCode::PermitMismatch);
    assert_eq!(code(open(Verb::FsRead, "other", "f")), mismatch);
    assert_eq!(code(open(Verb::FsList, "f", "f")), mismatch);
    let outside = Some(DenialCode::OutsideRoot);
    assert_eq!(code(open(Verb::FsRead, "out", "out")), outside);
    let missing = open(Verb::FsRead, "none", "none").unwrap_err();
    assert!(
        matches!(&missing, FsError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound),
        "{missing}"
    );
}

/// What stands in the sandbox around the second half of the test below.
const INSIDE: &str = "inside";
const WHOLE_NAME: &str =
    "refusals::without_user_namespaces_nothing_runs_and_a_full_or_closed_disk_is_told";

/// No machine that tests run on is without user namespaces, so the test runs
/// itself in a sandbox, where there are none.
#[test]
fn without_user_namespaces_nothing_runs_and_a_full_or_closed_disk_is_told() {
    let exchange = Path::new(EXCHANGE_DIR);
    let programs = PathBuf::from(env!("CARGO_BIN_EXE_hermitcrab-sandbox-child"));
    let programs = programs.parent().unwrap();
    if exchange.join(INSIDE).exists() {
        inside(programs);
        return;
    }
    let workspace = Workspace::new();
    let cap = DirCap::open_ambient_dir(programs, support::dir_id()).unwrap();
    let own = std::fs::read_link("/proc/self/exe").unwrap();
    let mut command = workspace.command("");
    command.argv = [own.to_str().unwrap(), "--exact", WHOLE_NAME]
        .map(|word| word.as_bytes().to_vec())
        .to_vec();
    command.views.push(View {
        dir: &cap,
        at: programs.to_owned(),
        mode: ViewMode::ReadOnly,
        withheld: Withheld::default(),
    });
    command.inputs.push((INSIDE.to_owned(), Vec::new()));
    // The disk that is filled.
    command.limits.tmp_bytes_max = 64 << 20;
    let finished = run(&command).unwrap();
    let told = text(&finished);
    assert_eq!(finished.ending, Ending::Exited(0), "{told}");
    assert!(told.contains("1 passed"), "{told}");
}

fn inside(programs: &Path) {
    let workspace = Workspace::new();
    let (step, errno, told) = step_of(run(&workspace.command("echo ran")));
    // Root needs more than those, and lacks it here.
    let (which, why) = match rustix::process::geteuid().is_root() {
        true => ((Step::Identity, 0), "start as an ordinary user"),
        false => (
            (Step::Namespaces, nix::libc::EPERM),
            "user namespaces must be allowed",
        ),
    };
    assert_eq!((step, errno), which, "{told}");
    assert!(told.contains(why), "{told}");
    let profile = probe(&support::spawner(), &workspace.cap);
    assert_eq!(profile.isolation, Isolation::Unknown);
    assert!(profile.failure.is_some());

    let write = |cap: &DirCap, content: &[u8]| {
        let path = rel("hermitcrab-test");
        with_permit(Verb::FsCreate, &path, sha256(content), |permit| {
            cap.write(permit, &path, content, Base::Absent, None)
        })
    };
    let kind = |error: FsError| match error {
        FsError::Io { source, .. } => source.kind(),
        other => panic!("{other}"),
    };
    let closed = DirCap::open_ambient_dir(programs, support::dir_id()).unwrap();
    let error = write(&closed, b"x").unwrap_err();
    assert_eq!(kind(error), std::io::ErrorKind::ReadOnlyFilesystem);

    let small = Workspace::at(tempfile::tempdir_in("/dev/shm").unwrap());
    let error = write(&small.cap, &vec![b'x'; 70 << 20]).unwrap_err();
    assert_eq!(kind(error), std::io::ErrorKind::StorageFull);
    assert_eq!(std::fs::read_dir(small.path()).unwrap().count(), 0);
    write(&small.cap, b"fits").unwrap();
}
