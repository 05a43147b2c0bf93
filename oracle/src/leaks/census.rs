//! What a run could leave on the machine, counted before and after.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::lineage;

/// How long what is still there may take to go: a dead namespace is taken apart
/// by the kernel in its own time.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);
/// Directories looked through for control groups; a machine has some hundreds.
const GROUPS_MAX: usize = 50_000;
/// What the agent's sandbox calls its control groups; the number of their maker follows.
const GROUP_PREFIX: &str = "hermitcrab-";
/// Where worlds are put together; other mounts are other people's.
const STAGING: [&str; 4] = ["/mnt", "/media", "/srv", "/tmp"];

/// One look at the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Census {
    /// Descendants of this process, living and dead.
    pub(super) processes: BTreeSet<String>,
    /// Mounts this process sees of the kind worlds are made of.
    pub(super) mounts: BTreeSet<String>,
    /// Control groups of the agent that hold nobody and whose maker is gone.
    pub(super) groups: BTreeSet<String>,
    /// Entries of the directory for temporary files.
    pub(super) files: BTreeSet<String>,
    /// Open descriptors of this process.
    pub(super) descriptors: BTreeSet<String>,
}

impl Census {
    /// Looks, with `temporary` for the directory of temporary files.
    ///
    /// # Errors
    /// Something of it cannot be seen.
    pub(super) fn take(temporary: &Path) -> Result<Self, String> {
        lineage::reap();
        let at = |path: &str| format!("cannot look at {path}");
        let mounts = fs::read_to_string("/proc/self/mountinfo")
            .map_err(|error| format!("{}: {error}", at("the mounts")))?;
        Ok(Self {
            processes: lineage::descendants(std::process::id())
                .into_iter()
                .map(|(pid, name)| format!("{pid} {name}"))
                .collect(),
            mounts: mounts
                .lines()
                .filter(|line| is_of_a_world(line))
                .map(str::to_owned)
                .collect(),
            groups: groups(Path::new("/sys/fs/cgroup")),
            files: names(temporary)?,
            descriptors: descriptors(),
        })
    }

    /// What is there and was not in `before`, by kind.
    pub(super) fn beyond(&self, before: &Self) -> Self {
        let more = |now: &BTreeSet<String>, then: &BTreeSet<String>| {
            now.difference(then).cloned().collect::<BTreeSet<_>>()
        };
        Self {
            processes: more(&self.processes, &before.processes),
            mounts: more(&self.mounts, &before.mounts),
            groups: more(&self.groups, &before.groups),
            files: more(&self.files, &before.files),
            descriptors: more(&self.descriptors, &before.descriptors),
        }
    }

    /// The kinds, by name.
    pub(super) fn kinds(&self) -> [(&'static str, &BTreeSet<String>); 5] {
        [
            ("processes", &self.processes),
            ("mounts", &self.mounts),
            ("control groups", &self.groups),
            ("temporary files", &self.files),
            ("descriptors", &self.descriptors),
        ]
    }

    fn is_empty(&self) -> bool {
        self.kinds().iter().all(|(_, found)| found.is_empty())
    }
}

/// What is there beyond `before` and stays; the last look beside it.
///
/// # Errors
/// Something cannot be seen.
pub(super) fn left_over(before: &Census, temporary: &Path) -> Result<(Census, Census), String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let now = Census::take(temporary)?;
        let left = now.beyond(before);
        if left.is_empty() || Instant::now() >= until {
            return Ok((now, left));
        }
        std::thread::sleep(PAUSE);
    }
}

/// `id parent device root place options ... - type source options`.
fn is_of_a_world(mount: &str) -> bool {
    let place = Path::new(mount.split(' ').nth(4).unwrap_or_default());
    let kind = mount.split(" - ").nth(1).unwrap_or_default();
    kind.starts_with("overlay ") || STAGING.iter().any(|staging| place.starts_with(staging))
}

fn names(directory: &Path) -> Result<BTreeSet<String>, String> {
    let entries = fs::read_dir(directory)
        .map_err(|error| format!("cannot list {}: {error}", directory.display()))?;
    Ok(entries
        .flatten()
        .map(|entry| entry.path().display().to_string())
        .collect())
}

/// Number and target; the one that lists them is closed by the time it is looked at.
fn descriptors() -> BTreeSet<String> {
    let mut told = BTreeSet::new();
    for entry in fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
    {
        if let Ok(target) = fs::read_link(entry.path()) {
            // What it lists is itself open.
            if !target.starts_with(format!("/proc/{}", std::process::id())) {
                told.insert(format!(
                    "{} {}",
                    entry.file_name().to_string_lossy(),
                    target.display()
                ));
            }
        }
    }
    told
}

/// A group of the agent whose maker, who would remove it, lives no more.
fn is_of_the_dead(group: &str) -> bool {
    let maker = group.strip_prefix(GROUP_PREFIX);
    let maker = maker.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
    maker.is_some_and(|maker| !Path::new("/proc").join(maker.to_string()).exists())
}

fn groups(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut next: Vec<PathBuf> = vec![root.to_owned()];
    for _ in 0..GROUPS_MAX {
        let Some(place) = next.pop() else { break };
        for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let ours = is_of_the_dead(&entry.file_name().to_string_lossy());
                let members = fs::read_to_string(entry.path().join("cgroup.procs"));
                if ours && members.is_ok_and(|members| members.trim().is_empty()) {
                    found.insert(entry.path().display().to_string());
                }
                next.push(entry.path());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn nothing_is_left_of_a_run_that_did_nothing() {
        let place = tempfile::tempdir().unwrap();
        lineage::adopt().unwrap();
        let before = Census::take(place.path()).unwrap();
        let (_, left) = left_over(&before, place.path()).unwrap();
        assert_eq!(left, Census::default());
    }

    #[test]
    fn an_orphan_a_descriptor_and_a_file_are_each_counted() {
        let place = tempfile::tempdir().unwrap();
        lineage::adopt().unwrap();
        let before = Census::take(place.path()).unwrap();
        // Its parent has gone by the time it is looked for.
        let mut parent = Command::new("sh")
            .args(["-c", "sleep 1000 & echo $!"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = String::new();
        use std::io::BufRead as _;
        std::io::BufReader::new(parent.stdout.take().unwrap())
            .read_line(&mut told)
            .unwrap();
        parent.wait().unwrap();
        let orphan: i32 = told.trim().parse().unwrap();
        // Its number is told before it is `sleep`: until then it is a second `sh`.
        let name = format!("/proc/{orphan}/comm");
        while fs::read_to_string(&name).unwrap() != "sleep\n" {
            std::thread::yield_now();
        }
        let path = place.path().join("kept");
        let kept = fs::File::create(&path).unwrap();
        let left = Census::take(place.path()).unwrap().beyond(&before);
        assert_eq!(
            left.processes.iter().collect::<Vec<_>>(),
            [&format!("{orphan} sleep")]
        );
        assert_eq!(
            left.files.iter().collect::<Vec<_>>(),
            [path.to_str().unwrap()]
        );
        assert_eq!(left.descriptors.len(), 1, "{left:?}");
        drop(kept);
        fs::remove_file(&path).unwrap();
        let pid = nix::unistd::Pid::from_raw(orphan);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
        let (_, left) = left_over(&before, place.path()).unwrap();
        assert_eq!(left, Census::default());
    }

    #[test]
    fn only_an_empty_group_whose_maker_is_gone_counts_as_left() {
        let root = tempfile::tempdir().unwrap();
        // No process has this number: numbers end at four millions.
        let left = "hermitcrab-99999999-1";
        let alive = format!("hermitcrab-{}-1", std::process::id());
        for (name, members) in [
            (left, ""),
            ("hermitcrab-99999999-2", "7\n"),
            (alive.as_str(), ""),
            ("hermitcrab-x", ""),
            ("other", ""),
        ] {
            let group = root.path().join("a").join(name);
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join("cgroup.procs"), members).unwrap();
        }
        let found: Vec<_> = groups(root.path()).into_iter().collect();
        assert_eq!(found, [root.path().join("a").join(left).to_str().unwrap()]);
    }

    #[test]
    fn mounts_of_a_world_are_told_from_other_peoples() {
        let mount = |place: &str, kind: &str| {
            is_of_a_world(&format!(
                "9 8 0:1 / {place} rw,relatime shared:1 - {kind} source rw"
            ))
        };
        assert!(mount("/anywhere", "overlay"));
        assert!(mount("/mnt/root/usr", "ext4"));
        assert!(mount("/tmp", "tmpfs"));
        assert!(!mount("/run/elsewhere", "ext4"));
        assert!(!mount("/mntx", "tmpfs"));
        assert!(!is_of_a_world(""));
    }
}
