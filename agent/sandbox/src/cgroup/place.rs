//! Where this process may make groups, found out from the kernel's own lists.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub(super) mod makers;
mod unified;

/// The three limits, by the controller's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Controller {
    Memory,
    Cpu,
    Pids,
}

impl Controller {
    pub(super) const ALL: [Self; 3] = [Self::Memory, Self::Cpu, Self::Pids];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Pids => "pids",
        }
    }
}

/// A directory below which groups can be made, with what they control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parent {
    pub dir: PathBuf,
    pub unified: bool,
    pub controllers: Vec<Controller>,
}

/// All such directories, one for each hierarchy that is of use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub(super) parents: Vec<Parent>,
}

impl Place {
    /// Finds the place of this process.
    ///
    /// # Errors
    /// There is none: no control group file system, or none that can be written.
    pub fn find() -> io::Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let mut place = Self::from_lists(&mounts, &own);
        if let [only] = place.parents.as_slice()
            && let Some(settled) = unified::settle(only, &unified::our_processes())
        {
            place.parents = vec![settled];
        }
        if place.parents.is_empty() {
            return Err(io::Error::other(
                "no control group of this process can be written; in a login session \
                 `systemd-run --user --scope hermitcrab` starts it in one that can be, and in a \
                 container what that may use holds for all it runs",
            ));
        }
        place.sweep();
        Ok(place)
    }

    fn from_lists(mounts: &str, own: &str) -> Self {
        let mut parents = Vec::new();
        for mount in mounts.lines().filter_map(Mount::parse) {
            let Some(own_path) = own_path(own, &mount) else {
                continue;
            };
            let own_dir = mount.dir_of(own_path);
            if mount.unified {
                parents.extend(unified::parent(&mount.point, &own_dir));
            } else if writable(&own_dir) {
                let controllers: Vec<_> = Controller::ALL
                    .into_iter()
                    .filter(|controller| mount.has(controller.as_str()))
                    .collect();
                if !controllers.is_empty() {
                    parents.push(Parent {
                        dir: own_dir,
                        unified: false,
                        controllers,
                    });
                }
            }
        }
        // Side by side, version 2 could only kill, which the pid namespace does
        // as well; and moving a process inside waits for the whole machine.
        if parents.iter().any(|parent| !parent.controllers.is_empty()) {
            parents.retain(|parent| !parent.controllers.is_empty());
        }
        Self { parents }
    }

    /// Removes empty groups whose maker is gone, as after a kill.
    fn sweep(&self) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
        for parent in &self.parents {
            let Ok(entries) = fs::read_dir(&parent.dir) else {
                continue;
            };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let made = rustix::fs::stat(entry.path()).map_or(now, |stat| stat.st_mtime);
                let age_s = now.saturating_sub(made);
                if name
                    .to_str()
                    .is_some_and(|name| makers::is_left(name, age_s))
                {
                    // Fails for one that is not empty, which is then in use.
                    let _removed = rustix::fs::rmdir(entry.path());
                }
            }
        }
    }
}

/// One line of /proc/self/mountinfo that is about control groups.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    root: String,
    point: PathBuf,
    unified: bool,
    options: Vec<String>,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, point) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let unified = match after.next()? {
            "cgroup" => false,
            "cgroup2" => true,
            _ => return None,
        };
        let options = after.nth(1)?;
        Some(Self {
            root: root.to_owned(),
            point: PathBuf::from(point),
            unified,
            options: options.split(',').map(str::to_owned).collect(),
        })
    }

    fn has(&self, controller: &str) -> bool {
        self.options.iter().any(|option| option == controller)
    }

    /// Where the group `own` is found below this mount.
    fn dir_of(&self, own: &str) -> PathBuf {
        let below = own
            .strip_prefix(&self.root)
            .or_else(|| (self.root == "/").then_some(own))
            .unwrap_or("");
        let below = below.trim_start_matches('/');
        if below.is_empty() || below.split('/').any(|part| part == "..") {
            self.point.clone()
        } else {
            self.point.join(below)
        }
    }
}

/// The path of this process in the hierarchy of `mount`, from /proc/self/cgroup.
fn own_path<'a>(own: &'a str, mount: &Mount) -> Option<&'a str> {
    own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let same = if mount.unified {
            controllers.is_empty()
        } else {
            !controllers.is_empty() && controllers.split(',').all(|name| mount.has(name))
        };
        same.then_some(path)
    })
}

fn writable(dir: &Path) -> bool {
    rustix::fs::access(
        dir,
        rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK,
    )
    .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(dir: &Path, unified: bool, controllers: &[Controller]) -> Parent {
        Parent {
            dir: dir.to_owned(),
            unified,
            controllers: controllers.to_vec(),
        }
    }

    /// A tree that looks like a mounted hierarchy.
    fn tree(dirs: &[&str]) -> tempfile::TempDir {
        let temp = tempfile::tempdir().unwrap();
        for dir in dirs {
            fs::create_dir_all(temp.path().join(dir)).unwrap();
        }
        temp
    }

    #[test]
    fn version_one_is_used_below_the_own_group_of_each_hierarchy() {
        let temp = tree(&["memory/a/b", "cpu,cpuacct", "pids", "freezer"]);
        let at = temp.path().display();
        let mounts = format!(
            "30 25 0:26 / {at}/memory rw - cgroup cgroup rw,memory\n\
             31 25 0:27 / {at}/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
             32 25 0:28 /docker/x {at}/pids rw - cgroup cgroup rw,pids\n\
             33 25 0:29 / {at}/freezer rw - cgroup cgroup rw,freezer\n\
             34 25 0:30 / /sys rw - sysfs sysfs rw\n"
        );
        let own = "4:memory:/a/b\n3:cpu,cpuacct:/\n2:pids:/docker/x\n1:freezer:/\n0::/\n";
        assert_eq!(
            Place::from_lists(&mounts, own).parents,
            [
                parent(
                    &temp.path().join("memory/a/b"),
                    false,
                    &[Controller::Memory]
                ),
                parent(&temp.path().join("cpu,cpuacct"), false, &[Controller::Cpu]),
                parent(&temp.path().join("pids"), false, &[Controller::Pids]),
            ]
        );
    }

    #[test]
    fn side_by_side_the_version_that_limits_nothing_is_left_out() {
        let temp = tree(&["memory/own", "unified"]);
        let at = temp.path().display();
        let mounts = format!(
            "30 25 0:26 / {at}/memory rw - cgroup cgroup rw,memory\n\
             31 25 0:27 / {at}/unified rw - cgroup2 cgroup2 rw\n"
        );
        assert_eq!(
            Place::from_lists(&mounts, "1:memory:/own\n0::/\n").parents,
            [parent(
                &temp.path().join("memory/own"),
                false,
                &[Controller::Memory]
            )]
        );
    }

    #[test]
    fn a_group_outside_the_mounted_part_is_the_mounted_part_itself() {
        let mount = Mount {
            root: "/docker/x".to_owned(),
            point: PathBuf::from("/c"),
            unified: true,
            options: Vec::new(),
        };
        for (own, dir) in [
            ("/docker/x", "/c"),
            ("/docker/x/y", "/c/y"),
            ("/", "/c"),
            ("/../other", "/c"),
        ] {
            assert_eq!(mount.dir_of(own), Path::new(dir), "{own}");
        }
    }
}
