//! What a directory capability gives and what it refuses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod ahead;

use crate::support;

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::Verb;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::{PathError, RelPath};
use hermitcrab_sandbox::dircap::{
    Base, Kind, Stat, TEMPORARY_PREFIX, dir_digest, mode_digest, symlink_digest,
};
use hermitcrab_sandbox::{DirCap, FsError, sha256};
use support::{Workspace, rel, with_permit};

const BYTES_MAX: usize = 1 << 20;

fn read(cap: &DirCap, path: &str) -> Result<String, FsError> {
    let path = rel(path);
    with_permit(
        Verb::FsRead,
        &cap.place(&path).unwrap(),
        Digest::NONE,
        |permit| cap.read(permit, &path, BYTES_MAX),
    )
    .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn write(cap: &DirCap, path: &str, content: &str, base: Base) -> Result<(), FsError> {
    let path = rel(path);
    let verb = match base {
        Base::Absent => Verb::FsCreate,
        Base::AnyFile | Base::Content(_) => Verb::FsModify,
    };
    with_permit(verb, &path, sha256(content.as_bytes()), |permit| {
        cap.write(permit, &path, content.as_bytes(), base, None)
    })
}

fn stat(cap: &DirCap, path: &str) -> Result<Stat, FsError> {
    let path = rel(path);
    with_permit(Verb::FsList, &path, Digest::NONE, |permit| {
        cap.stat(permit, &path)
    })
}

fn leads_to(cap: &DirCap, path: &str) -> Result<String, FsError> {
    let path = rel(path);
    with_permit(Verb::FsList, &path, Digest::NONE, |permit| {
        cap.leads_to(permit, &path).map(|real| real.to_string())
    })
}

fn subdir(cap: &DirCap, path: &str) -> Result<DirCap, FsError> {
    let path = rel(path);
    support::with_permit_for_all(Verb::FsList, &path, |permit| cap.subdir(permit, &path))
}

fn remove(cap: &DirCap, path: &str) -> Result<(), FsError> {
    let path = rel(path);
    with_permit(Verb::FsDelete, &path, Digest::NONE, |permit| {
        cap.remove(permit, &path)
    })
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, FsError>, code: DenialCode) {
    assert_eq!(result.unwrap_err().code(), Some(code));
}

fn mkfifo(path: &std::path::Path) {
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
}

fn leftovers(workspace: &Workspace) -> usize {
    std::fs::read_dir(workspace.path())
        .unwrap()
        .filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes())
        })
        .count()
}

#[test]
fn the_contract_of_the_seed_holds_word_for_word() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    let workspace = Workspace::new();
    workspace.file("skills/hermes-fs-as-cap/SKILL.md", "the skill\n");
    workspace.file("other-skill/SKILL.md", "another\n");
    symlink(
        outside.path().join("secret"),
        workspace.path().join("symlink-to-outside"),
    )
    .unwrap();

    assert_eq!(
        RelPath::parse(b"../../../etc/passwd").map_err(|error| error.to_string()),
        Err("path escapes".into())
    );
    assert_eq!(
        RelPath::parse(b"/etc/passwd").map_err(|error| error.to_string()),
        Err("absolute paths forbidden".into())
    );
    let error = read(&workspace.cap, "symlink-to-outside").unwrap_err();
    assert_eq!(error.code(), Some(DenialCode::OutsideRoot));
    assert!(
        error.to_string().starts_with("resolved outside root"),
        "{error}"
    );

    let skills = subdir(&workspace.cap, "skills").unwrap();
    assert_eq!(
        read(&skills, "hermes-fs-as-cap/SKILL.md").unwrap(),
        "the skill\n"
    );
    assert_eq!(
        RelPath::parse(b"../other-skill/SKILL.md"),
        Err(PathError::Escapes)
    );
}

#[test]
fn a_subdirectory_is_named_by_its_place_so_a_permit_for_it_fits_nothing_else() {
    let workspace = Workspace::new();
    workspace.file("a/f", "in a\n");
    workspace.file("f", "in the root\n");
    let below = subdir(&workspace.cap, "a").unwrap();
    assert_eq!(below.prefix(), &rel("a"));
    let path = rel("f");
    // A permit for `f` of the root is not one for `a/f`.
    let result = with_permit(Verb::FsRead, &path, Digest::NONE, |permit| {
        below.read(permit, &path, BYTES_MAX)
    });
    refused(result, DenialCode::PermitMismatch);
    assert_eq!(read(&below, "f").unwrap(), "in a\n");
}

#[test]
fn a_permit_for_another_verb_place_or_content_is_refused_and_nothing_happens() {
    let workspace = Workspace::new();
    workspace.file("f", "old\n");
    let (f, g) = (rel("f"), rel("g"));
    refused(
        with_permit(Verb::FsRead, &g, Digest::NONE, |permit| {
            workspace.cap.read(permit, &f, BYTES_MAX)
        }),
        DenialCode::PermitMismatch,
    );
    refused(
        with_permit(Verb::FsList, &f, Digest::NONE, |permit| {
            workspace.cap.read(permit, &f, BYTES_MAX)
        }),
        DenialCode::PermitMismatch,
    );
    refused(
        with_permit(Verb::FsModify, &f, sha256(b"shown"), |permit| {
            workspace
                .cap
                .write(permit, &f, b"other", Base::AnyFile, None)
        }),
        DenialCode::ChangedSinceShown,
    );
    refused(
        with_permit(Verb::FsCreate, &f, sha256(b"new"), |permit| {
            workspace.cap.write(permit, &f, b"new", Base::AnyFile, None)
        }),
        DenialCode::PermitMismatch,
    );
    assert_eq!(read(&workspace.cap, "f").unwrap(), "old\n");
}

#[test]
fn links_that_stay_inside_are_followed_for_reading_only() {
    let workspace = Workspace::new();
    workspace.file("d/f", "text\n");
    symlink("d", workspace.path().join("to-dir")).unwrap();
    symlink("d/f", workspace.path().join("to-file")).unwrap();
    assert_eq!(read(&workspace.cap, "to-dir/f").unwrap(), "text\n");
    assert_eq!(read(&workspace.cap, "to-file").unwrap(), "text\n");
    refused(
        write(&workspace.cap, "to-file", "x", Base::AnyFile),
        DenialCode::SymlinkRefused,
    );
    refused(
        write(&workspace.cap, "to-dir/new", "x", Base::Absent),
        DenialCode::SymlinkRefused,
    );
    refused(
        remove(&workspace.cap, "to-dir/f"),
        DenialCode::SymlinkRefused,
    );
    assert_eq!(read(&workspace.cap, "d/f").unwrap(), "text\n");
    // Removing the name itself removes the link, not its target.
    remove(&workspace.cap, "to-file").unwrap();
    assert_eq!(read(&workspace.cap, "d/f").unwrap(), "text\n");
}

#[test]
fn links_that_lead_out_are_refused_whatever_they_look_like() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("f"), "secret").unwrap();
    let workspace = Workspace::new();
    workspace.file("in", "inside\n");
    let here = workspace.path();
    symlink(outside.path(), here.join("dir-out")).unwrap();
    symlink("../../../../../../../../etc/passwd", here.join("up")).unwrap();
    symlink("/proc/self/root/etc/passwd", here.join("magic")).unwrap();
    symlink("/proc/self/cwd", here.join("cwd")).unwrap();
    symlink(here.join("in"), here.join("absolute-but-inside")).unwrap();
    symlink(outside.path().join("new"), here.join("dangling")).unwrap();
    for path in [
        "dir-out/f",
        "up",
        "magic",
        "cwd",
        "absolute-but-inside",
        "dangling",
    ] {
        refused(read(&workspace.cap, path), DenialCode::OutsideRoot);
    }
    refused(
        write(&workspace.cap, "dangling", "x", Base::Absent),
        DenialCode::SymlinkRefused,
    );
    refused(
        write(&workspace.cap, "dir-out/new", "x", Base::Absent),
        DenialCode::SymlinkRefused,
    );
    assert!(!outside.path().join("new").exists());
    // A link loop is a failure of the system, not a refusal, and ends.
    symlink("loop", here.join("loop")).unwrap();
    assert!(matches!(
        read(&workspace.cap, "loop"),
        Err(FsError::Io { .. })
    ));
}

#[test]
fn a_link_that_spells_out_a_place_inside_leads_there_by_name() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("f"), "secret").unwrap();
    let workspace = Workspace::new();
    workspace.file("in", "inside\n");
    let here = workspace.path().canonicalize().unwrap();
    let name = here.file_name().unwrap().to_owned();
    std::fs::create_dir_all(here.join("d/e")).unwrap();
    std::fs::write(here.join("d/e/f"), "deep").unwrap();
    let to = |target: &std::path::Path, link: &str| symlink(target, here.join(link)).unwrap();
    to(&here.join("in"), "whole");
    to(&here.join("d"), "whole-dir");
    to(&here.join("whole"), "chain");
    to(&here, "self");
    to(&std::path::Path::new("..").join(&name).join("in"), "around");
    to(&here.join("none"), "nowhere");
    to(&here.join("endless"), "endless");
    to(outside.path(), "out");
    to(&here.join("out/f"), "whole-out");
    to(std::path::Path::new("/proc/self/root"), "magic");
    to(&here.join("../../../../../../etc"), "above");
    for (path, real) in [
        ("whole", "in"),
        ("whole-dir", "d"),
        ("whole-dir/e/f", "d/e/f"),
        ("chain", "in"),
        ("self/self/d/e", "d/e"),
        ("around", "in"),
    ] {
        assert_eq!(leads_to(&workspace.cap, path).unwrap(), real, "{path}");
        stat(&workspace.cap, path).unwrap();
    }
    for path in [
        "out",
        "out/f",
        "whole-out",
        "magic",
        "magic/etc/passwd",
        "above",
        "above/passwd",
    ] {
        refused(leads_to(&workspace.cap, path), DenialCode::OutsideRoot);
        refused(stat(&workspace.cap, path), DenialCode::OutsideRoot);
    }
    for path in ["nowhere", "endless", "whole-dir/none"] {
        assert!(
            matches!(leads_to(&workspace.cap, path), Err(FsError::Io { .. })),
            "{path}"
        );
    }
    // It is told, not gone through.
    refused(read(&workspace.cap, "whole"), DenialCode::OutsideRoot);
}

#[test]
fn special_files_are_refused_at_once_instead_of_waiting_for_a_partner() {
    let workspace = Workspace::new();
    let here = workspace.path();
    mkfifo(&here.join("pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(here.join("socket")).unwrap();
    std::fs::create_dir(here.join("dir")).unwrap();
    for name in ["pipe", "socket", "dir"] {
        refused(read(&workspace.cap, name), DenialCode::NotRegularFile);
        refused(
            write(&workspace.cap, name, "x", Base::AnyFile),
            DenialCode::NotRegularFile,
        );
    }
    assert_eq!(stat(&workspace.cap, "pipe").unwrap().kind, Kind::Special);
    // A link inside to a device outside is outside.
    symlink("/dev/zero", here.join("zero")).unwrap();
    refused(read(&workspace.cap, "zero"), DenialCode::OutsideRoot);
}

#[test]
fn a_mount_below_is_not_crossed() {
    // /proc/self/.. is not needed: /dev/shm or /dev/pts below /dev is a mount
    // on every machine this runs on; where neither is, say so.
    let root = DirCap::open_ambient_dir("/dev".as_ref(), support::dir_id()).unwrap();
    let device =
        |path: &str| std::fs::metadata(path).map(|meta| std::os::unix::fs::MetadataExt::dev(&meta));
    let here = device("/dev").unwrap();
    let Some(name) = ["pts", "shm", "mqueue"]
        .into_iter()
        .find(|name| device(&format!("/dev/{name}")).is_ok_and(|there| there != here))
    else {
        println!("SKIPPED: nothing is mounted below /dev");
        return;
    };
    refused(subdir(&root, name), DenialCode::MountCrossing);
    refused(
        write(&root, &format!("{name}/hermitcrab-test"), "x", Base::Absent),
        DenialCode::MountCrossing,
    );
}

#[test]
fn a_hard_link_is_an_ordinary_file_and_says_so() {
    let workspace = Workspace::new();
    workspace.file("f", "one\n");
    std::fs::hard_link(workspace.path().join("f"), workspace.path().join("g")).unwrap();
    assert_eq!(stat(&workspace.cap, "g").unwrap().links, 2);
    write(&workspace.cap, "g", "two\n", Base::AnyFile).unwrap();
    // Writing replaces the name: the other one keeps the old content.
    assert_eq!(read(&workspace.cap, "f").unwrap(), "one\n");
    assert_eq!(read(&workspace.cap, "g").unwrap(), "two\n");
}

#[test]
fn names_are_bytes() {
    let workspace = Workspace::new();
    let name = b"caf\xe9 \n*";
    let path = RelPath::parse(name).unwrap();
    with_permit(Verb::FsCreate, &path, sha256(b"x"), |permit| {
        workspace.cap.write(permit, &path, b"x", Base::Absent, None)
    })
    .unwrap();
    workspace.file("b", "");
    let root = RelPath::root();
    let entries = with_permit(Verb::FsList, &root, Digest::NONE, |permit| {
        workspace.cap.list(permit, &root)
    })
    .unwrap();
    let names: Vec<_> = entries.into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, [b"b".to_vec(), name.to_vec()]);
}

#[test]
fn a_write_keeps_the_mode_and_leaves_no_temporary_file() {
    let workspace = Workspace::new();
    workspace.file("f", "old\n");
    let path = workspace.path().join("f");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    write(&workspace.cap, "f", "new\n", Base::AnyFile).unwrap();
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o751
    );
    write(&workspace.cap, "new", "x", Base::Absent).unwrap();
    refused(
        write(&workspace.cap, "new", "y", Base::Absent),
        DenialCode::ChangedSinceShown,
    );
    refused(
        write(&workspace.cap, "absent", "y", Base::AnyFile),
        DenialCode::ChangedSinceShown,
    );
    assert_eq!(read(&workspace.cap, "new").unwrap(), "x");
    assert_eq!(leftovers(&workspace), 0);
}

#[test]
fn a_replacement_happens_only_over_the_content_that_was_shown() {
    let workspace = Workspace::new();
    workspace.file("f", "shown\n");
    let base = Base::Content(sha256(b"shown\n"));
    write(&workspace.cap, "f", "first\n", base).unwrap();
    refused(
        write(&workspace.cap, "f", "second\n", base),
        DenialCode::ChangedSinceShown,
    );
    assert_eq!(read(&workspace.cap, "f").unwrap(), "first\n");
    let path = rel("f");
    refused(
        with_permit(Verb::FsDelete, &path, Digest::NONE, |permit| {
            workspace.cap.remove_if(permit, &path, sha256(b"shown\n"))
        }),
        DenialCode::ChangedSinceShown,
    );
    assert_eq!(read(&workspace.cap, "f").unwrap(), "first\n");
    with_permit(Verb::FsDelete, &path, Digest::NONE, |permit| {
        workspace.cap.remove_if(permit, &path, sha256(b"first\n"))
    })
    .unwrap();
    assert!(!workspace.path().join("f").exists());
    assert_eq!(leftovers(&workspace), 0);
}

#[test]
fn append_adds_to_what_is_there() {
    let workspace = Workspace::new();
    workspace.file("log", "one\n");
    let path = rel("log");
    with_permit(Verb::FsModify, &path, sha256(b"two\n"), |permit| {
        workspace.cap.append(permit, &path, b"two\n")
    })
    .unwrap();
    assert_eq!(read(&workspace.cap, "log").unwrap(), "one\ntwo\n");
}

#[test]
fn rename_moves_to_a_free_name_only() {
    let workspace = Workspace::new();
    workspace.file("a", "a\n");
    workspace.file("taken", "t\n");
    std::fs::create_dir(workspace.path().join("d")).unwrap();
    let rename = |from: &str, to: &str| {
        let (from, to) = (rel(from), rel(to));
        let action = |verb, path: &RelPath| {
            Action::on_tree(verb, support::dir_id(), path.clone(), Digest::NONE).unwrap()
        };
        let actions = vec![action(Verb::FsDelete, &from), action(Verb::FsCreate, &to)];
        support::with_permits(
            hermitcrab_core::tool::Tool::Directory,
            actions,
            |mut permits| {
                let here = permits.pop().unwrap();
                let away = permits.pop().unwrap();
                workspace.cap.rename(away, here, &from, &to)
            },
        )
    };
    refused(rename("a", "taken"), DenialCode::ChangedSinceShown);
    rename("a", "d/b").unwrap();
    assert_eq!(read(&workspace.cap, "d/b").unwrap(), "a\n");
    assert_eq!(read(&workspace.cap, "taken").unwrap(), "t\n");
}

#[test]
fn directories_links_and_modes_are_made_as_shown() {
    let workspace = Workspace::new();
    let path = rel("d");
    with_permit(Verb::FsCreate, &path, dir_digest(0o770), |permit| {
        workspace.cap.make_dir(permit, &path, 0o770)
    })
    .unwrap();
    assert_eq!(stat(&workspace.cap, "d").unwrap().mode, 0o770);
    refused(
        with_permit(Verb::FsCreate, &path, dir_digest(0o755), |permit| {
            workspace.cap.make_dir(permit, &path, 0o777)
        }),
        DenialCode::ChangedSinceShown,
    );
    let link = rel("d/l");
    with_permit(Verb::FsCreate, &link, symlink_digest(b"/etc"), |permit| {
        workspace.cap.make_symlink(permit, &link, b"/etc")
    })
    .unwrap();
    refused(read(&workspace.cap, "d/l/passwd"), DenialCode::OutsideRoot);
    // A mode is set on the thing itself, never through a link, even unreadable.
    refused(
        with_permit(Verb::FsModify, &link, mode_digest(0o777), |permit| {
            workspace.cap.set_mode(permit, &link, 0o777)
        }),
        DenialCode::SymlinkRefused,
    );
    workspace.file("f", "x");
    for mode in [0o000, 0o644] {
        let path = rel("f");
        with_permit(Verb::FsModify, &path, mode_digest(mode), |permit| {
            workspace.cap.set_mode(permit, &path, mode)
        })
        .unwrap();
        assert_eq!(stat(&workspace.cap, "f").unwrap().mode, mode);
    }
}

#[test]
fn new_content_is_lent_nobodys_rights() {
    let workspace = Workspace::new();
    workspace.file("f", "x");
    let file = workspace.path().join("f");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o6755)).unwrap();
    write(&workspace.cap, "f", "y", Base::AnyFile).unwrap();
    assert_eq!(stat(&workspace.cap, "f").unwrap().mode, 0o755);
}

#[test]
fn remove_takes_empty_directories_only() {
    let workspace = Workspace::new();
    workspace.file("full/f", "x");
    std::fs::create_dir(workspace.path().join("empty")).unwrap();
    remove(&workspace.cap, "empty").unwrap();
    assert!(matches!(
        remove(&workspace.cap, "full"),
        Err(FsError::Io { .. })
    ));
    assert!(matches!(
        remove(&workspace.cap, "absent"),
        Err(FsError::Io { .. })
    ));
    assert_eq!(read(&workspace.cap, "full/f").unwrap(), "x");
}

#[test]
fn a_file_longer_than_asked_for_is_an_error_and_not_a_part() {
    let workspace = Workspace::new();
    workspace.file("f", "12345");
    let path = rel("f");
    for (bytes_max, fits) in [(5, true), (4, false)] {
        let result = with_permit(Verb::FsRead, &path, Digest::NONE, |permit| {
            workspace.cap.read(permit, &path, bytes_max)
        });
        assert_eq!(result.is_ok(), fits, "{bytes_max}");
    }
}

#[test]
fn a_directory_to_be_held_on_its_own_is_not_reached_through_a_link() {
    let workspace = Workspace::new();
    workspace.file("private/key", "secret\n");
    workspace.file("open/in/f", "");
    symlink("private", workspace.path().join("given")).unwrap();
    symlink("../private", workspace.path().join("open/way")).unwrap();
    // Whoever holds a place holds no other one because a link lies there now.
    for path in ["given", "open/way"] {
        refused(subdir(&workspace.cap, path), DenialCode::SymlinkRefused);
    }
    assert!(subdir(&workspace.cap, "open/in").is_ok());
}
