//! Groups of version 2: where limits can be handed down from.
//!
//! There, a group either holds processes or hands limits down, the topmost of the
//! machine apart. So the groups of commands are made beside the group this program is
//! in, below the next one above that holds nobody; or below its own, once it has moved
//! to one of its own below that. It must never enable anything where others are.

use std::fs;
use std::io;
use std::path::Path;

use super::{Controller, Parent, makers, writable};

/// The nearest group at or above `own` below which groups with all limits can be made,
/// or else with the most; one without limits, for the kill alone, if there is none.
pub(super) fn parent(point: &Path, own: &Path) -> Option<Parent> {
    let mut best: Option<Parent> = None;
    for dir in own.ancestors().take_while(|dir| dir.starts_with(point)) {
        if !writable(dir) {
            break;
        }
        let controllers = handed_down(dir);
        let most = best.as_ref().map_or(0, |best| best.controllers.len());
        if best.is_none() || controllers.len() > most {
            best = Some(Parent {
                dir: dir.to_owned(),
                unified: true,
                controllers,
            });
        }
        if best.as_ref().map(|best| best.controllers.len()) == Some(Controller::ALL.len()) {
            break;
        }
    }
    best
}

/// This process and the one that started it: the spawner and its agent.
pub(super) fn our_processes() -> Vec<u32> {
    let agent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    let agent = agent.and_then(|pid| u32::try_from(pid).ok());
    std::iter::once(std::process::id()).chain(agent).collect()
}

/// Makes room below a group that is `ours` alone, as one that was delegated to the
/// program by `systemd-run --scope --property Delegate=yes`: who is in it moves to a
/// group below, and then it can hand its limits down.
///
/// A group in which anybody else is stays as it is.
pub(super) fn settle(group: &Parent, ours: &[u32]) -> Option<Parent> {
    let Parent {
        dir,
        unified,
        controllers,
    } = group;
    let lodgers = numbers(&dir.join("cgroup.procs"))?;
    let offered = words(&dir.join("cgroup.controllers"));
    let is_of_use = offered
        .iter()
        .any(|name| Controller::ALL.iter().any(|known| known.as_str() == name));
    if !unified
        || !controllers.is_empty()
        || !is_of_use
        || Kind::of(dir) != Kind::Occupied
        || lodgers.is_empty()
        || !lodgers.iter().all(|pid| ours.contains(pid))
    {
        return None;
    }
    let below = dir.join(makers::name("itself"));
    fs::create_dir(&below).ok()?;
    let moved = move_all(&lodgers, &below);
    let settled = Parent {
        dir: dir.clone(),
        unified: true,
        controllers: if moved.is_ok() {
            handed_down(dir)
        } else {
            Vec::new()
        },
    };
    if settled.controllers.is_empty() {
        // As it was: what cannot be moved back is still in a group of ours, without limits.
        let _back = move_all(&lodgers, dir);
        let _removed = fs::remove_dir(&below);
        return None;
    }
    Some(settled)
}

fn move_all(processes: &[u32], to: &Path) -> io::Result<()> {
    processes
        .iter()
        .try_for_each(|pid| fs::write(to.join("cgroup.procs"), pid.to_string()))
}

/// The numbers of a list of processes; `None` if one cannot be read. What is not to be
/// seen from here is 0, which is nobody of ours.
fn numbers(path: &Path) -> Option<Vec<u32>> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().map(|line| line.trim().parse().ok()).collect()
}

/// What groups made below `dir` can limit; enabled there, if it can be.
///
/// Nothing is enabled where processes are. The kernel would refuse memory there and
/// take the others, but for threads only: the group, which is somebody's, would be
/// another kind of group, and no process could be moved below it (cgroups(7),
/// "Threaded mode").
fn handed_down(dir: &Path) -> Vec<Controller> {
    if !Kind::of(dir).takes_whole_processes_below() {
        return Vec::new();
    }
    let offered = words(&dir.join("cgroup.controllers"));
    let enabled = || words(&dir.join("cgroup.subtree_control"));
    let before = enabled();
    for controller in Controller::ALL.map(Controller::as_str) {
        let has = |list: &[String]| list.iter().any(|name| name == controller);
        if !has(&offered) || has(&before) {
            continue;
        }
        match fs::write(dir.join("cgroup.subtree_control"), format!("+{controller}")) {
            // Somebody came in meanwhile. Memory is the first, so nothing is enabled.
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => return Vec::new(),
            // Refused where real-time processes run, for one: then it is not in the list.
            Ok(()) | Err(_) => {}
        }
    }
    let enabled = enabled();
    Controller::ALL
        .into_iter()
        .filter(|controller| enabled.iter().any(|name| name == controller.as_str()))
        .collect()
}

/// What a group of version 2 is, as far as groups below it are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The topmost of the machine, which may hold processes and hand limits down.
    Topmost,
    /// Holds no process.
    Inner,
    /// Holds processes, or threads of some: hands nothing down to whole processes.
    Occupied,
}

impl Kind {
    fn of(dir: &Path) -> Self {
        // The topmost has no type, and no other is without one.
        match fs::read_to_string(dir.join("cgroup.type")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Topmost,
            Ok(kind) if kind.trim_end() == "domain" && is_empty(dir) => Self::Inner,
            Ok(_) | Err(_) => Self::Occupied,
        }
    }

    const fn takes_whole_processes_below(self) -> bool {
        match self {
            Self::Topmost | Self::Inner => true,
            Self::Occupied => false,
        }
    }
}

/// Whether no process is in the group itself.
fn is_empty(dir: &Path) -> bool {
    fs::read_to_string(dir.join("cgroup.procs")).is_ok_and(|list| list.is_empty())
}

fn words(path: &Path) -> Vec<String> {
    fs::read_to_string(path)
        .unwrap_or_default()
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(dir: &Path, controllers: &[Controller]) -> Parent {
        Parent {
            dir: dir.to_owned(),
            unified: true,
            controllers: controllers.to_vec(),
        }
    }

    fn tree(dir: &str) -> tempfile::TempDir {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir_all(temp.path().join(dir)).unwrap();
        temp
    }

    /// A group of version 2 at `dir`: who is in it, and what it hands down.
    fn group(dir: &Path, kind: &str, processes: &str, handed_down: &str) {
        for (name, text) in [
            ("cgroup.type", kind),
            ("cgroup.procs", processes),
            // Nothing more is offered: here, writing would replace the list.
            ("cgroup.controllers", handed_down),
            ("cgroup.subtree_control", handed_down),
        ] {
            fs::write(dir.join(name), text).unwrap();
        }
    }

    fn unified(temp: &Path, own: &str) -> Vec<Parent> {
        let mounts = format!("30 25 0:26 / {} rw - cgroup2 cgroup2 rw\n", temp.display());
        let own = format!("0::{own}\n");
        super::super::Place::from_lists(&mounts, &own).parents
    }

    #[test]
    fn version_two_climbs_to_the_group_that_hands_its_controllers_down() {
        let temp = tree("user/app/own");
        let app = temp.path().join("user/app");
        group(&app.join("own"), "domain\n", "17\n", "");
        group(&app, "domain\n", "", "memory pids\n");
        assert_eq!(
            unified(temp.path(), "/user/app/own"),
            [parent(&app, &[Controller::Memory, Controller::Pids])]
        );
        // Where processes are, nothing was turned on.
        let own = app.join("own/cgroup.subtree_control");
        assert_eq!(fs::read_to_string(own).unwrap(), "");
    }

    #[test]
    fn a_group_with_processes_or_of_threads_hands_nothing_down() {
        for (kind, processes) in [
            ("domain\n", "17\n"),
            ("domain threaded\n", ""),
            ("threaded\n", ""),
            ("domain invalid\n", ""),
        ] {
            let temp = tree("app/own");
            let own = temp.path().join("app/own");
            group(&own, "domain\n", "17\n", "");
            group(&temp.path().join("app"), kind, processes, "cpu pids\n");
            group(temp.path(), "domain\n", "1\n", "");
            assert_eq!(
                unified(temp.path(), "/app/own"),
                [parent(&own, &[])],
                "{kind}"
            );
        }
    }

    #[test]
    fn one_above_that_hands_down_more_is_taken_and_one_that_hands_down_as_much_is_not() {
        let temp = tree("slice/service/own");
        let slice = temp.path().join("slice");
        group(&slice.join("service/own"), "domain\n", "17\n", "");
        group(&slice.join("service"), "domain\n", "", "memory pids\n");
        group(&slice, "domain\n", "", "memory pids\n");
        group(temp.path(), "domain\n", "", "cpu memory pids\n");
        let taken = || unified(temp.path(), "/slice/service/own");
        assert_eq!(taken(), [parent(temp.path(), &Controller::ALL)]);
        group(temp.path(), "domain\n", "", "memory\n");
        let service = parent(
            &slice.join("service"),
            &[Controller::Memory, Controller::Pids],
        );
        assert_eq!(taken(), [service]);
    }

    #[test]
    fn the_topmost_group_hands_down_whoever_is_in_it() {
        let temp = tree("own");
        group(&temp.path().join("own"), "domain\n", "17\n", "");
        group(temp.path(), "", "1\n2\n", "cpu memory pids\n");
        fs::remove_file(temp.path().join("cgroup.type")).unwrap();
        assert_eq!(
            unified(temp.path(), "/own"),
            [parent(temp.path(), &Controller::ALL)]
        );
    }

    #[test]
    fn version_two_without_controllers_still_kills() {
        let temp = tree("own");
        assert_eq!(
            unified(temp.path(), "/own"),
            [parent(&temp.path().join("own"), &[])]
        );
    }

    #[test]
    fn a_group_with_anybody_else_in_it_is_left_as_it_is() {
        for (processes, offered) in [("17\n18\n", "memory\n"), ("17\n", ""), ("17\n0\n", "cpu\n")] {
            let temp = tree("own");
            let own = temp.path().join("own");
            group(&own, "domain\n", processes, offered);
            fs::write(own.join("cgroup.subtree_control"), "").unwrap();
            assert_eq!(settle(&parent(&own, &[]), &[17]), None, "{processes}");
            assert_eq!(
                fs::read_to_string(own.join("cgroup.procs")).unwrap(),
                processes
            );
            assert!(
                !fs::read_dir(&own)
                    .unwrap()
                    .flatten()
                    .any(|entry| entry.path().is_dir())
            );
        }
    }
}
