//! A permit for a name, and one for all that lies below it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::Verb;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::FsError;
use support::{Workspace, rel, with_permit};

fn refused(result: Result<(), FsError>) {
    match result.unwrap_err() {
        FsError::Denied(denial) => assert_eq!(denial.code(), DenialCode::PermitMismatch),
        error @ FsError::Io { .. } => panic!("{error}"),
    }
}

#[test]
fn a_permit_for_a_directorys_name_opens_nothing_of_what_is_in_it_and_moves_nothing_of_it() {
    let workspace = Workspace::new();
    workspace.file("a/f", "in a\n");
    let (a, b) = (rel("a"), rel("b"));
    let opened = with_permit(Verb::FsRead, &a, Digest::NONE, |permit| {
        workspace.cap.subdir(permit, &a)
    });
    refused(opened.map(drop));
    for (away, here) in [(true, false), (false, true), (false, false)] {
        let action = |verb, path: &RelPath, all| {
            let action = match all {
                true => Action::on_tree,
                false => Action::on_path,
            };
            action(verb, support::dir_id(), path.clone(), Digest::NONE).unwrap()
        };
        let actions = vec![
            action(Verb::FsDelete, &a, away),
            action(Verb::FsCreate, &b, here),
        ];
        let moved = support::with_permits(Tool::Directory, actions, |permits| {
            let [away, here] = <[_; 2]>::try_from(permits).unwrap();
            workspace.cap.rename(away, here, &a, &b)
        });
        refused(moved);
    }
    assert_eq!(
        std::fs::read_to_string(workspace.path().join("a/f")).unwrap(),
        "in a\n"
    );
    assert!(!workspace.path().join("b").exists());
}
