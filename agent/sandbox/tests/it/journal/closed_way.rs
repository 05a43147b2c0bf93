//! Files that get into, or leave, directories behind ones that are closed to their owner.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use hermitcrab_sandbox::Journal;

use super::ran;
use crate::support::arranged::{ORDINARY, Run, twice};
use crate::support::commit_in;

#[test]
fn a_way_that_is_closed_in_the_middle_is_no_way_for_a_file_itself() {
    let name =
        "journal::closed_way::a_way_that_is_closed_in_the_middle_is_no_way_for_a_file_itself";
    let Some(Run::Inner) = twice(name, &ORDINARY, "true", "") else {
        return;
    };
    for mode in ["000", "600"] {
        let script =
            format!("rm b; mkdir -p top/mid/leaf; mv a top/mid/leaf/; chmod {mode} top/mid");
        let (workspace, finished) = ran(&script);
        let (journal, _) = Journal::open(workspace.state.path()).unwrap();
        let done = commit_in(&journal, &finished.changes[0], &workspace);
        assert!(done.failure.is_none(), "{script}: {:?}", done.failure);
        let at = |name: &str| workspace.path().join(name);
        fs::set_permissions(at("top/mid"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(fs::read_to_string(at("top/mid/leaf/a")).unwrap(), "a\n");
        assert!(!at("a").exists() && !at("b").exists());
        // Nobody else's commit waits for it.
        drop(journal);
        let (_, recovered) = Journal::open(workspace.state.path()).unwrap();
        assert!(recovered.is_clean(), "{recovered:?}");
    }
}
