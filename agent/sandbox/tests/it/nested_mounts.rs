//! Other file systems mounted within a workspace: a command sees none of what is in
//! them, and nothing it does takes them away.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::path::Path;

use hermitcrab_core::outcome::DenialCode;
use hermitcrab_sandbox::changeset::Layer;
use hermitcrab_sandbox::spawn::Ending;
use support::arranged::{Run, UNSHARE, twice};
use support::{Workspace, commit, on, text};

fn mount(arguments: &[&str], at: &Path) {
    let mounted = std::process::Command::new("mount")
        .args(arguments)
        .arg(at)
        .status()
        .unwrap();
    assert!(mounted.success());
}

/// A directory whose only entry is another file system, and one with a file that is
/// another's.
fn mounted() -> Workspace {
    let workspace = Workspace::new();
    let at = |name: &str| workspace.path().join(name);
    std::fs::create_dir_all(at("parent/data")).unwrap();
    mount(&["-t", "tmpfs", "none"], &at("parent/data"));
    workspace.file("parent/data/base", "precious\n");
    workspace.file("source", "settings\n");
    workspace.file("conf/file", "");
    let source = at("source");
    mount(&["--bind", source.to_str().unwrap()], &at("conf/file"));
    workspace
}

#[test]
fn what_is_mounted_within_a_workspace_goes_with_no_directory_it_lies_in() {
    let name =
        "nested_mounts::what_is_mounted_within_a_workspace_goes_with_no_directory_it_lies_in";
    let Some(Run::Inner) = twice(name, &UNSHARE, "true", "") else {
        return;
    };
    let workspace = mounted();
    for layer in [Layer::Overlay, Layer::Copy] {
        on(layer, || {
            for script in [
                "rmdir parent/data",
                "find . -type d -empty -delete",
                "mv parent other",
                "rm -rf parent",
                "rm -rf parent && echo mine > parent",
                "rm -rf conf",
                "mkdir d && mv conf d/",
            ] {
                let finished = workspace.run(script);
                let refused = finished.changes[0].never_kept();
                let (_, denial) = refused
                    .unwrap_or_else(|| panic!("{script}, {layer:?}: kept, {}", text(&finished)));
                assert_eq!(
                    denial.code(),
                    DenialCode::MountCrossing,
                    "{script}, {layer:?}"
                );
                assert!(commit(&finished, &workspace).failure.is_some(), "{script}");
            }
            // What lies beside is nobody's hindrance.
            let finished =
                workspace.run("echo more > parent/beside; rm parent/beside; touch new; rm new");
            assert_eq!(finished.ending, Ending::Exited(0), "{}", text(&finished));
            assert!(finished.changes[0].never_kept().is_none());
            let finished = workspace.run("mkdir parent/d && echo x > parent/d/f");
            assert!(commit(&finished, &workspace).failure.is_none());
            let finished = workspace.run("rm -r parent/d");
            assert!(commit(&finished, &workspace).failure.is_none());
            assert!(!workspace.path().join("parent/d").exists());
        });
    }
    let read = |name: &str| std::fs::read_to_string(workspace.path().join(name)).unwrap();
    assert_eq!(read("parent/data/base"), "precious\n");
    assert_eq!(read("conf/file"), "settings\n");
}
