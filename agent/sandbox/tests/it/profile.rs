//! The probe tells the truth about this machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::path::PathBuf;

use hermitcrab_core::rules::Isolation;
use hermitcrab_sandbox::SpawnerProgram;
use hermitcrab_sandbox::profile::{Mechanism, probe};
use support::{Workspace, spawner};

#[test]
fn every_mandatory_mechanism_is_proved_and_the_directory_is_left_alone() {
    let workspace = Workspace::new();
    let profile = probe(&spawner(), &workspace.cap);
    assert!(profile.failure.is_none(), "{:?}", profile.failure);
    for row in &profile.rows {
        if row.mandatory {
            assert_eq!((row.available, row.used), (Some(true), true), "{row:?}");
        }
        // What was told to be applied is seen to be.
        assert!(!row.used || row.available == Some(true), "{row:?}");
    }
    assert_eq!(profile.isolation, Isolation::Isolated);
    assert_eq!(profile.rows.len(), Mechanism::ALL.len());
    assert_eq!(std::fs::read_dir(workspace.path()).unwrap().count(), 0);
}

#[test]
fn a_spawner_that_cannot_start_leaves_the_isolation_unknown() {
    let workspace = Workspace::new();
    for program in ["/nonexistent/spawner", "/bin/true", "/bin/cat"] {
        let profile = probe(&SpawnerProgram::At(PathBuf::from(program)), &workspace.cap);
        assert_eq!(profile.isolation, Isolation::Unknown, "{program}");
        assert!(profile.failure.is_some(), "{program}");
        for row in &profile.rows {
            assert!(
                row.mechanism == Mechanism::ContainedPaths
                    || row.available.is_none_or(|seen| !seen),
                "{row:?}"
            );
        }
    }
}
