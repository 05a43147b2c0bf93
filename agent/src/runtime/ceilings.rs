//! How much one operation may change and one command may use, as configured.
//!
//! These bind whatever is granted and whoever says yes: what goes beyond them
//! is refused before anybody is asked. They can only make things narrower.

mod caches;

use std::time::Duration;

use hermitcrab_core::{
    action::Action,
    authority::{Object, Verb},
    outcome::{Denial, DenialCode},
    path::RelPath,
};
use hermitcrab_sandbox::spawn::{Interpreters, Limits, PoolSize};

pub use self::caches::Caches;
use super::{Runtime, layers::Layers, talk::Talk};

/// The ceilings of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ceilings {
    /// Files and directories one operation may make, change or delete.
    pub files_max: Option<u64>,
    /// Whether a directory with something in it is never deleted.
    pub keeps_trees: bool,
    /// Memory of a command, with everything it starts.
    pub memory_bytes_max: Option<u64>,
    /// Processor time of it, in hundredths of one processor.
    pub cpu_percent_max: Option<u32>,
    /// Processes and threads of it at once.
    pub processes_max: Option<u64>,
    /// What it may change before that is decided.
    pub changes_bytes_max: Option<u64>,
    /// What its `/tmp` holds, if not as much as usual.
    pub tmp_bytes_max: Option<u64>,
    /// How long it may run.
    pub timeout_max: Option<Duration>,
    /// How long a script that calls tools may run, if not as long as usual.
    pub script_timeout: Option<Duration>,
    /// Calls such a script may make, if not as many as usual.
    pub script_calls_max: Option<usize>,
    /// Which interpreters may be started before their script is known.
    pub interpreters: Option<Interpreters>,
    /// Whether every sandbox is made from the ground up.
    pub sandboxes_are_fresh: bool,
    /// Where what a command changed lies until that is decided.
    pub layers: Layers,
    /// Whether a command of root's is left a stranger where owners cannot be translated,
    /// and the directory is not copied for it.
    pub leaves_owners: bool,
    /// Whose contents are left out where they are not held, without a question.
    pub caches: Caches,
    /// What bounds a conversation.
    pub talk: Talk,
}

impl Ceilings {
    /// Whether one operation may do all this; `is_moved` tells what only goes
    /// elsewhere.
    ///
    /// # Errors
    /// The refusal.
    pub fn check(
        &self,
        actions: &[Action],
        is_moved: impl Fn(&RelPath) -> bool,
    ) -> Result<(), Denial> {
        // What only goes elsewhere counts once, where it comes to.
        let leaves = |action: &Action| match action.object() {
            Object::Dir { below, .. } => action.verb() == Verb::FsDelete && is_moved(below),
            _ => false,
        };
        let changes = actions.iter().filter(|action| {
            matches!(
                action.verb(),
                Verb::FsCreate | Verb::FsModify | Verb::FsDelete
            ) && !leaves(action)
        });
        let count = u64::try_from(changes.count()).unwrap_or(u64::MAX);
        if let Some(most) = self.files_max.filter(|most| count > *most) {
            return Err(Denial::new(
                DenialCode::DeniedByRule,
                format_args!(
                    "it changes {count} files and directories, and `safety.max_files_per_operation` is {most}"
                ),
            ));
        }
        if self.keeps_trees {
            let mut deleted: Vec<(_, &RelPath)> = actions
                .iter()
                .filter(|action| action.verb() == Verb::FsDelete)
                .filter_map(|action| match action.object() {
                    Object::Dir { dir, below, .. } if !is_moved(below) => Some((*dir, below)),
                    _ => None,
                })
                .collect();
            // What is below a directory comes right after it.
            deleted.sort_by(|one, two| {
                let parts = |path: &RelPath| path.to_string();
                (one.0, format!("{}/", parts(one.1))).cmp(&(two.0, format!("{}/", parts(two.1))))
            });
            let tree = deleted.windows(2).find_map(|pair| match pair {
                [(dir, above), (other, below)]
                    if dir == other && above != below && below.starts_with(above) =>
                {
                    Some(*above)
                }
                _ => None,
            });
            if let Some(tree) = tree {
                return Err(Denial::new(
                    DenialCode::DeniedByRule,
                    format_args!(
                        "it deletes the directory `{tree}` with what is in it, and `safety.block_rm_rf` is on"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// What is made ready for commands.
    #[must_use]
    pub(super) fn pool(&self) -> PoolSize {
        let usual = PoolSize::default();
        PoolSize {
            interpreters: self.interpreters.unwrap_or(usual.interpreters),
            recycled: usual.recycled && !self.sandboxes_are_fresh,
            ..usual
        }
    }

    /// The limits of a command that was to have these.
    #[must_use]
    pub(super) fn narrowed(&self, limits: Limits) -> Limits {
        // Who gives a command more memory gives it to builds, whose caches lie in `/tmp`.
        let half = self.memory_bytes_max.map_or(0, |most| most / 2);
        Limits {
            tmp_bytes_max: self.tmp_bytes_max.unwrap_or(limits.tmp_bytes_max.max(half)),
            timeout: self
                .timeout_max
                .map_or(limits.timeout, |most| most.min(limits.timeout)),
            processes_max: self.processes_max.unwrap_or(limits.processes_max),
            memory_bytes_max: self.memory_bytes_max.unwrap_or(limits.memory_bytes_max),
            cpu_percent_max: self.cpu_percent_max.unwrap_or(limits.cpu_percent_max),
            // Memory has no more than it has, whatever is configured.
            view_bytes_max: self
                .changes_bytes_max
                .map_or(limits.view_bytes_max, |most| {
                    most.min(limits.view_bytes_max)
                }),
            disk_bytes_max: self.changes_bytes_max.unwrap_or(limits.disk_bytes_max),
            file_bytes_max: self
                .changes_bytes_max
                .map_or(limits.file_bytes_max, |most| {
                    most.max(limits.file_bytes_max)
                }),
            ..limits
        }
    }
}

impl Runtime {
    /// What bounds a conversation that begins.
    #[must_use]
    pub const fn talk(&self) -> Talk {
        self.ceilings.talk
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hermitcrab_core::{
        action::Action, authority::Verb, digest::Digest, outcome::DenialCode, path::RelPath,
    };
    use hermitcrab_sandbox::spawn::Limits;

    use super::Ceilings;

    fn actions(all: &[(Verb, &str)]) -> Vec<Action> {
        let dir = crate::probe_place::a_handle().expect("a handle");
        all.iter()
            .map(|(verb, path)| {
                let path = RelPath::parse(path.as_bytes()).expect("a path");
                Action::on_path(*verb, dir, path, Digest::NONE).expect("an action")
            })
            .collect()
    }

    #[test]
    fn more_files_than_allowed_are_refused_and_as_many_as_allowed_are_not() {
        let three = actions(&[
            (Verb::FsCreate, "a"),
            (Verb::FsModify, "b"),
            (Verb::FsDelete, "c"),
        ]);
        let check = |most: u64| {
            let ceilings = Ceilings {
                files_max: Some(most),
                ..Ceilings::default()
            };
            ceilings
                .check(&three, |_| false)
                .map_err(|denial| denial.code())
        };
        assert_eq!(check(3), Ok(()));
        assert_eq!(check(2), Err(DenialCode::DeniedByRule));
        assert!(Ceilings::default().check(&three, |_| false).is_ok());
    }

    #[test]
    fn sandboxes_that_are_to_be_fresh_serve_no_second_command() {
        assert!(Ceilings::default().pool().recycled);
        let fresh = Ceilings {
            sandboxes_are_fresh: true,
            ..Ceilings::default()
        };
        assert!(!fresh.pool().recycled);
        assert_eq!(
            fresh.pool().interpreters,
            Ceilings::default().pool().interpreters
        );
    }

    #[test]
    fn a_move_counts_once() {
        let moves = actions(&[
            (Verb::FsDelete, "a"),
            (Verb::FsCreate, "d/a"),
            (Verb::FsDelete, "b"),
            (Verb::FsCreate, "d/b"),
        ]);
        let fits = |most: u64, moved: bool| {
            let ceilings = Ceilings {
                files_max: Some(most),
                ..Ceilings::default()
            };
            ceilings.check(&moves, |_| moved).is_ok()
        };
        assert!(fits(2, true));
        assert!(!fits(1, true));
        assert!(!fits(3, false));
    }

    #[test]
    fn a_full_directory_is_kept_and_empty_or_moved_ones_are_not() {
        let ceilings = Ceilings {
            keeps_trees: true,
            ..Ceilings::default()
        };
        let check =
            |all: &[(Verb, &str)], moved: bool| ceilings.check(&actions(all), |_| moved).is_ok();
        let tree = [
            (Verb::FsDelete, "docs"),
            (Verb::FsDelete, "docs-old"),
            (Verb::FsDelete, "docs/a"),
        ];
        assert!(!check(&tree, false));
        assert!(check(&tree, true));
        assert!(check(
            &[(Verb::FsDelete, "docs"), (Verb::FsDelete, "docs-old")],
            false
        ));
        assert!(check(
            &[(Verb::FsDelete, "docs/a"), (Verb::FsDelete, "docs/b")],
            false
        ));
    }

    #[test]
    fn a_command_gets_the_narrower_of_what_it_asks_and_what_is_configured() {
        let ceilings = Ceilings {
            timeout_max: Some(Duration::from_secs(5)),
            processes_max: Some(7),
            memory_bytes_max: Some(64 << 20),
            cpu_percent_max: Some(20),
            ..Ceilings::default()
        };
        let asked = |seconds| Limits {
            timeout: Duration::from_secs(seconds),
            ..Limits::default()
        };
        assert_eq!(ceilings.narrowed(asked(60)).timeout, Duration::from_secs(5));
        let short = ceilings.narrowed(asked(2));
        assert_eq!(
            (short.timeout, short.processes_max),
            (Duration::from_secs(2), 7)
        );
        assert_eq!(
            (short.memory_bytes_max, short.cpu_percent_max),
            (64 << 20, 20)
        );
        let room = |most| {
            let ceilings = Ceilings {
                changes_bytes_max: most,
                ..Ceilings::default()
            };
            let limits = ceilings.narrowed(Limits::default());
            (limits.view_bytes_max, limits.disk_bytes_max)
        };
        let usual = Limits::default();
        assert_eq!(room(None), (usual.view_bytes_max, usual.disk_bytes_max));
        assert_eq!(room(Some(1 << 20)), (1 << 20, 1 << 20));
        assert_eq!(room(Some(1 << 40)), (usual.view_bytes_max, 1 << 40));
        // One file may hold all of it; less than usual is bounded as a whole.
        let longest = |most| {
            let ceilings = Ceilings {
                changes_bytes_max: most,
                ..Ceilings::default()
            };
            ceilings.narrowed(Limits::default()).file_bytes_max
        };
        assert_eq!(longest(None), usual.disk_bytes_max);
        assert_eq!(longest(Some(1 << 20)), usual.file_bytes_max);
        assert_eq!(longest(Some(1 << 40)), 1 << 40);
        let tmp = |memory_bytes_max, tmp_bytes_max| {
            let ceilings = Ceilings {
                memory_bytes_max,
                tmp_bytes_max,
                ..Ceilings::default()
            };
            ceilings.narrowed(Limits::default()).tmp_bytes_max
        };
        assert_eq!(tmp(None, None), usual.tmp_bytes_max);
        assert_eq!(tmp(Some(64 << 20), None), usual.tmp_bytes_max);
        assert_eq!(tmp(Some(4 << 30), None), 2 << 30);
        assert_eq!(tmp(Some(4 << 30), Some(8 << 20)), 8 << 20);
    }
}
