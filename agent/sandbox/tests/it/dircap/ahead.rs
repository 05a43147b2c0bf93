//! Names that lead to what is not there yet.

use std::os::unix::fs::symlink;

use hermitcrab_core::authority::Verb;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_sandbox::{DirCap, FsError};

use super::refused;
use super::support::{Workspace, rel, with_permit};

fn would_lead_to(cap: &DirCap, path: &str) -> Result<String, FsError> {
    let path = rel(path);
    with_permit(Verb::FsRead, &path, Digest::NONE, |permit| {
        cap.would_lead_to(permit, &path)
            .map(|place| place.to_string())
    })
}

#[test]
fn a_link_to_what_is_not_there_names_it_and_nothing_outside() {
    let workspace = Workspace::new();
    workspace.file("d/in", "inside\n");
    workspace.file("file", "a file\n");
    let here = workspace.path().canonicalize().unwrap();
    let to = |target: &str, link: &str| symlink(target, here.join(link)).unwrap();
    to("none", "nowhere");
    to("nowhere", "chain");
    to(here.join("d/none/x").to_str().unwrap(), "whole");
    to("../none", "d/up");
    to("d", "dir");
    to("../outside", "out");
    to("none/../../outside", "over");
    to("endless", "endless");
    for (path, place) in [
        ("d/in", "d/in"),
        ("plain/x", "plain/x"),
        ("nowhere", "none"),
        ("nowhere/x", "none/x"),
        ("chain", "none"),
        ("whole", "d/none/x"),
        ("d/up", "none"),
        ("dir/up", "none"),
    ] {
        assert_eq!(would_lead_to(&workspace.cap, path).unwrap(), place);
    }
    for path in ["out", "out/x", "over"] {
        refused(would_lead_to(&workspace.cap, path), DenialCode::OutsideRoot);
    }
    for path in ["endless", "file/x"] {
        assert!(
            matches!(would_lead_to(&workspace.cap, path), Err(FsError::Io { .. })),
            "{path}"
        );
    }
    assert!(!here.join("none").exists() && !here.join("d/none").exists());
}
