//! Each planted fault of this package shows in what a command can do.
//!
//! One test: a fault is planted for the whole process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::time::Duration;

use hermitcrab_core::authority::Verb;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::fault::{Fault, plant};
use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::Withheld;
use hermitcrab_sandbox::dircap::Base;
use hermitcrab_sandbox::sha256;
use hermitcrab_sandbox::spawn::{View, ViewMode};
use support::time::out_of_time;
use support::{Workspace, marker, processes_with, rel, run, text, with_permit};

/// Whether `seen` is false without the fault and true with it.
fn shows(fault: Fault, seen: impl Fn() -> bool) {
    assert!(!seen(), "{} shows without being planted", fault.name());
    plant(Some(fault));
    let shown = seen();
    plant(None);
    assert!(shown, "{} does not show", fault.name());
}

fn changed(workspace: &Workspace, script: &str) -> usize {
    workspace.run(script).changes[0].changes().len()
}

#[test]
fn every_fault_of_the_sandbox_shows() {
    let workspace = Workspace::new();
    workspace.file("f", "x");
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();

    shows(Fault::ChangeSetMissesDeletes, || {
        changed(&workspace, "rm f") == 0
    });
    shows(Fault::ChangeSetMissesMetadata, || {
        changed(&workspace, "chmod 600 f") == 0
    });

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!(
        "(exec 3<>/dev/tcp/127.0.0.1/{}) 2>/dev/null && echo connected",
        listener.local_addr().unwrap().port()
    );
    shows(Fault::SandboxHasNetwork, || {
        text(&workspace.run(&connect)).contains("connected")
    });
    shows(Fault::SandboxSeesHome, || {
        text(&workspace.run("ls -d /home 2>&1")) == "/home\n"
    });

    // What sandboxes of the same places have in common, and what must not be.
    let next_finds = |place: &str| {
        workspace.run(&format!("{{ echo left > {place}; }} 2> /dev/null"));
        text(&workspace.run(&format!("cat {place} 2> /dev/null"))) == "left\n"
    };
    shows(Fault::SandboxRootIsOpen, || next_finds("/left"));
    shows(Fault::SandboxSharesTemporary, || next_finds("/tmp/left"));
    let other = Workspace::new();
    other.file("f", "of another");
    shows(Fault::SandboxShowsOthersViews, || {
        let mut with = workspace.command("true");
        with.views.push(View {
            dir: &other.cap,
            at: "/srv/other".into(),
            mode: ViewMode::ReadOnly,
            withheld: Withheld::default(),
        });
        run(&with).unwrap();
        text(&workspace.run("cat /srv/other/f 2> /dev/null")) == "of another"
    });

    symlink(outside.path().join("secret"), workspace.path().join("out")).unwrap();
    let path = rel("out");
    shows(Fault::DirCapFollowsLinks, || {
        with_permit(Verb::FsRead, &path, Digest::NONE, |permit| {
            workspace.cap.read(permit, &path, 100)
        })
        .is_ok()
    });
    shows(Fault::WriteFollowsSymlink, || {
        let _result = with_permit(Verb::FsModify, &path, sha256(b"w"), |permit| {
            workspace
                .cap
                .write(permit, &path, b"w", Base::AnyFile, None)
        });
        std::fs::read(outside.path().join("secret")).unwrap() == b"w"
    });

    let up = format!(
        "../{}/secret",
        outside.path().file_name().unwrap().to_str().unwrap()
    );
    shows(Fault::DirCapAllowsDotDot, || {
        RelPath::parse(up.as_bytes()).is_ok_and(|path| {
            with_permit(Verb::FsRead, &path, Digest::NONE, |permit| {
                workspace.cap.read(permit, &path, 100)
            })
            .is_ok()
        })
    });

    let marker = marker(95);
    let script = format!("setsid sleep {marker} & sleep {marker}");
    shows(Fault::TimeoutLeavesOrphans, || {
        let mut command = workspace.command(&script);
        let soon = Duration::from_millis(300);
        out_of_time(support::sandbox(), &mut command, soon, |_| {
            processes_with(&marker) >= 2
        });
        processes_with(&marker) > 0
    });
    // The orphans of the last one end with their spawner, this process' child.
    for child in support::children() {
        let pid = rustix::process::Pid::from_raw(child).unwrap();
        let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
