//! No process, mount, control group, descriptor, zombie or file stays behind.
//!
//! Alone in its file: it counts what the whole test process has.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod refused;

use crate::support;

use std::{
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::{Duration, Instant},
};

use hermitcrab_sandbox::DirCap;
use hermitcrab_sandbox::journal::Journal;
use hermitcrab_sandbox::spawn::{Command, Ending, ViewMode};
use support::arranged::{Run, UNSHARE, twice};
use support::{Workspace, children, commit_in, marker, processes_with, run, sandbox, times, view};

/// How many runs end well, and how many badly; as many times more as is asked for. Each of
/// the bad ways has its turn more often than there may be groups or descriptors more than
/// before, so that what one run in eight leaves is not taken for theirs.
const RUNS: u32 = 1000;
/// In how many ways a run goes wrong.
const WAYS: u32 = 10;
/// One in so many good runs leaves a process behind that wants to live on.
const ORPHAN_EVERY: u32 = 10;

/// What the sandboxes that wait may have of groups, or of descriptors.
const WAITING_MAX: usize = 16;
/// What is kept of groups to serve again: eight sets, in up to three hierarchies.
const KEPT_GROUPS_MAX: usize = 24;

const _: () = assert!((RUNS / WAYS) as usize > WAITING_MAX + KEPT_GROUPS_MAX);

/// What there is of everything a run could leave.
#[derive(Debug, PartialEq, Eq)]
struct Census {
    mounts: usize,
    groups: usize,
    descriptors: usize,
    files: usize,
    temporary: usize,
    children: usize,
    orphans: usize,
}

impl Census {
    /// Whether there is no more than there was, but for the groups and
    /// descriptors of the few sandboxes that wait: how many do just then is
    /// the pool's business.
    fn is_no_more_than(&self, before: &Self) -> bool {
        let but_for = |now: usize, then: usize| now <= then + WAITING_MAX;
        but_for(self.groups, before.groups + KEPT_GROUPS_MAX)
            && but_for(self.descriptors, before.descriptors)
            && Self {
                groups: before.groups,
                descriptors: before.descriptors,
                ..*self
            } == *before
    }

    fn taken(workspace: &Workspace, marker: &str, places: &[&str]) -> Self {
        // What was used is replaced by now.
        sandbox().settle();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let files = |of: &Path| std::fs::read_dir(of).unwrap().count();
        let makers: Vec<String> = children()
            .into_iter()
            .map(|pid| pid.to_string())
            .chain([std::process::id().to_string()])
            .collect();
        Self {
            mounts: mounts.lines().count(),
            groups: groups(Path::new("/sys/fs/cgroup"), &makers, 8),
            descriptors: files(Path::new("/proc/self/fd")),
            files: files(workspace.path()),
            temporary: temporary(places),
            children: children().len(),
            orphans: processes_with(marker),
        }
    }
}

/// What lies in the places for temporary files, where they are this run's alone.
fn temporary(places: &[&str]) -> usize {
    let entries = places.iter().map(|place| std::fs::read_dir(place).unwrap());
    entries.map(Iterator::count).sum()
}

/// The control groups below here that these processes made.
fn groups(dir: &Path, makers: &[String], depth: u32) -> usize {
    let Ok(entries) = std::fs::read_dir(dir) else {
        // It went away meanwhile: another test's.
        return 0;
    };
    let dirs = entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    dirs.map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let maker = name
            .strip_prefix("hermitcrab-")
            .and_then(|rest| rest.split('-').next().map(str::to_owned));
        let is_ours = maker.is_some_and(|maker| makers.contains(&maker));
        let below = match depth {
            0 => 0,
            _ => groups(&entry.path(), makers, depth - 1),
        };
        usize::from(is_ours) + below
    })
    .sum()
}

/// Makes of a good command one that fails in this way. `gone` is a directory that was removed.
fn spoil<'a>(
    command: &mut Command<'a>,
    way: u32,
    workspace: &Workspace,
    marker: &str,
    gone: &'a DirCap,
) {
    let own = |name: &str| {
        let path = workspace.path().join(name);
        vec![path.into_os_string().into_encoded_bytes()]
    };
    match way {
        0 => command.argv = vec![b"no-such-program".to_vec()],
        1 => command.cwd = "/no/such/dir".into(),
        2 => command.views[0].at = "/usr".into(),
        3 => command.argv = own("plain"),
        4 => command.argv = own("shebang"),
        5 => command.argv.push(vec![b'x'; 4 << 20]),
        6 => command.views[0].at = "relative".into(),
        7 => command
            .views
            .push(view(gone, "/srv/gone", ViewMode::ReadOnly)),
        8 => {
            // More than there is room for, in the view and in memory.
            let fill = "exec head -c 4194304 /dev/zero > filled";
            command.argv = [&b"bash"[..], b"-c", fill.as_bytes()]
                .map(<[u8]>::to_vec)
                .into();
            command.limits.view_bytes_max = 1 << 20;
        }
        _ => {
            command.argv = vec![b"sleep".to_vec(), marker.as_bytes().to_vec()];
            command.limits.timeout = Duration::from_millis(5);
        }
    }
}

/// Places for temporary files; each is empty and its own where that can be arranged.
const PLACES: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

#[test]
fn nothing_is_left_behind_by_a_thousand_good_and_a_thousand_failing_runs() {
    let name = "left_behind::nothing_is_left_behind_by_a_thousand_good_and_a_thousand_failing_runs";
    let arrange = PLACES.map(|place| format!("mount -t tmpfs tmpfs {place}"));
    // What was built may lie in one of them, with the programs the tests start.
    let own = std::env::current_exe().unwrap();
    let built = own.ancestors().nth(2).unwrap().display();
    let arrange = format!(
        "exec 9< '{built}' && {} && mkdir -p '{built}' && mount --no-canonicalize --bind /proc/self/fd/9 '{built}' && exec 9<&-",
        arrange.join(" && ")
    );
    match twice(name, &UNSHARE, &arrange, "") {
        Some(Run::Inner) => hundreds_of_each(&PLACES),
        Some(Run::Outer) => {}
        // Others use them meanwhile.
        None => hundreds_of_each(&[]),
    }
}

fn hundreds_of_each(places: &[&str]) {
    let workspace = Workspace::new();
    workspace.file("plain", "no program");
    workspace.file("shebang", "#!/no/such/interpreter\n");
    let shebang = workspace.path().join("shebang");
    std::fs::set_permissions(&shebang, std::fs::Permissions::from_mode(0o755)).unwrap();
    let marker = marker(94);
    // Whatever is set up once is set up before the first count, and the pool
    // is as full as it gets.
    let (journal, _recovered) = Journal::open(workspace.state.path()).unwrap();
    let kept = |script: &str| {
        let finished = workspace.run(script);
        assert_eq!(finished.ending, Ending::Exited(0));
        let commit = commit_in(&journal, &finished.changes[0], &workspace);
        assert!(commit.failure.is_none(), "{commit:?}");
    };
    let removed = tempfile::tempdir().unwrap();
    let gone = DirCap::open_ambient_dir(removed.path(), support::dir_id()).unwrap();
    removed.close().unwrap();
    kept("echo first > f");
    kept("echo second > f");
    let before = Census::taken(&workspace, &marker, places);
    for number in 0..times(RUNS) {
        let orphan = match number % ORPHAN_EVERY {
            0 => format!("(setsid sleep {marker} &)"),
            _ => String::new(),
        };
        let script = format!("echo {number} > f; {orphan}");
        if number % 2 == 0 {
            kept(&script);
            assert_eq!(workspace.read("f"), format!("{number}\n"));
        } else {
            let finished = workspace.run(&script);
            assert_eq!(finished.ending, Ending::Exited(0));
            finished.changes.into_iter().for_each(|set| set.discard());
        }

        let mut command = workspace.command("true");
        spoil(&mut command, number % WAYS, &workspace, &marker, &gone);
        let result = run(&command);
        assert!(
            !matches!(&result, Ok(finished) if finished.ending == Ending::Exited(0)),
            "{number}: {result:?}"
        );
    }
    assert_nothing_more(&before, &workspace, &marker, places);
}

/// That there is no more than there was.
fn assert_nothing_more(before: &Census, workspace: &Workspace, marker: &str, places: &[&str]) {
    // Emptied groups are removed beside what runs.
    let until = Instant::now() + Duration::from_secs(60);
    let mut after = Census::taken(workspace, marker, places);
    while !after.is_no_more_than(before) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
        after = Census::taken(workspace, marker, places);
    }
    assert!(after.is_no_more_than(before), "{after:?} after {before:?}");
}
