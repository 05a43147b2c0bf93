//! The power goes: what was not made to be on the disk by then is not there.
//!
//! A file system in a file shows what a disk would hold: what it has written there so far,
//! and nothing of what is in memory only. So a copy of the file at the moment of the cut is
//! the disk after a loss of power. That moment is every step of the journal; what the system
//! writes without being asked is dealt in several ways.

use std::path::{Path, PathBuf};
use std::process::Command as Bare;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hermitcrab_sandbox::changeset::ChangeSet;
use hermitcrab_sandbox::changeset::edits::Edit;
use hermitcrab_sandbox::dircap::Base;
use hermitcrab_sandbox::journal::{Then, Watch};
use hermitcrab_sandbox::{DirCap, Journal, sha256};

use super::recorded::put;
use super::{Dice, directly, plant};
use crate::support::arranged::{Run, UNSHARE, twice};
use crate::support::{Workspace, as_anybody, commit_in, dir_id, rel, tree, undo_of};

/// A kind of file system, and how it is made and mounted so that it writes nothing by itself
/// for as long as a test takes, nor what it would add out of care for careless programs.
struct Kind {
    make: &'static [&'static str],
    bytes: u64,
    options: &'static str,
}

const EXT4: Kind = Kind {
    make: &[
        "mkfs.ext4",
        "-q",
        "-F",
        "-E",
        "lazy_itable_init=0,lazy_journal_init=0",
    ],
    bytes: 24 << 20,
    options: "loop,commit=300,data=writeback,noauto_da_alloc",
};
/// The copy has the name of the one it is of.
const XFS: Kind = Kind {
    make: &["mkfs.xfs", "-q", "-f"],
    bytes: 300 << 20,
    options: "loop,nouuid",
};
/// Waits for what it was asked to wait for, and for little else.
const BTRFS: Kind = Kind {
    make: &["mkfs.btrfs", "-q", "-f", "--mixed"],
    bytes: 64 << 20,
    options: "loop,commit=300",
};

impl Kind {
    /// Whether there is one here; a script fails if not.
    fn is_there(&self) -> String {
        format!(
            "truncate -s {} tried && {} tried && mkdir at && mount -o {} tried at && umount at && rmdir at && rm tried",
            self.bytes,
            self.make.join(" "),
            self.options
        )
    }
}

/// What a system writes to the disk though nobody waits for it.
#[derive(Clone, Copy, Debug)]
enum Early {
    Nothing,
    /// After each step names, modes and lengths, and no content: what leaves files empty that
    /// nobody waited for.
    Names,
    /// After each step everything.
    Everything,
    /// Now this, now that.
    Dealt,
}

const EARLY: [Early; 4] = [
    Early::Nothing,
    Early::Names,
    Early::Everything,
    Early::Dealt,
];

/// File systems in files.
struct Disks {
    kind: &'static Kind,
    /// The file, and where it is mounted.
    disks: Vec<(PathBuf, PathBuf)>,
}

fn does(program: &str, arguments: &[&str]) {
    let told = Bare::new(program).args(arguments).output().unwrap();
    assert!(told.status.success(), "{program} {arguments:?}: {told:?}");
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

impl Disks {
    /// So many new ones, mounted below the current directory.
    fn new(kind: &'static Kind, prefix: &str, count: usize) -> Arc<Self> {
        let here = std::fs::canonicalize(".").unwrap();
        let make = |number: usize| {
            let image = here.join(format!("{prefix}-{number}.image"));
            let at = here.join(format!("{prefix}-{number}"));
            std::fs::create_dir(&at).unwrap();
            let file = std::fs::File::create(&image).unwrap();
            file.set_len(kind.bytes).unwrap();
            does(kind.make[0], &[&kind.make[1..], &[text(&image)]].concat());
            (image, at)
        };
        let disks = Self {
            kind,
            disks: (0..count).map(make).collect(),
        };
        disks.mount();
        Arc::new(disks)
    }

    fn mount(&self) {
        for (image, at) in &self.disks {
            does("mount", &["-o", self.kind.options, text(image), text(at)]);
        }
    }

    /// A directory to work in, with something in it, and one for the agent itself.
    fn workspace(&self) -> Workspace {
        let (first, last) = (self.disks.first().unwrap(), self.disks.last().unwrap());
        let mut workspace = Workspace::at(tempfile::tempdir_in(&first.1).unwrap());
        workspace.state = tempfile::tempdir_in(&last.1).unwrap();
        plant(workspace.path());
        self.sync();
        workspace
    }

    /// Everything is on the disks.
    fn sync(&self) {
        for (_, at) in &self.disks {
            rustix::fs::syncfs(std::fs::File::open(at).unwrap()).unwrap();
        }
    }

    /// What there is of names, modes and lengths is, where the system keeps them in one order.
    fn sync_names(&self) {
        for (_, at) in &self.disks {
            let beside = std::fs::File::create(at.join("beside")).unwrap();
            beside.sync_all().unwrap();
        }
    }

    /// Calls that with the disks as they would be found if the power went now, in the places
    /// of these.
    fn after_a_cut<R>(&self, look: impl FnOnce(&Arc<Self>) -> R) -> R {
        let copied = |(image, at): &(PathBuf, PathBuf)| {
            let mut copy = image.clone().into_os_string();
            copy.push("+");
            does(
                "cp",
                &["--sparse=auto", text(image), copy.to_str().unwrap()],
            );
            (PathBuf::from(copy), at.clone())
        };
        let found = Arc::new(Self {
            kind: self.kind,
            disks: self.disks.iter().map(copied).collect(),
        });
        found.mount();
        let told = look(&found);
        for (image, at) in &found.disks {
            does("umount", &["--lazy", text(at)]);
            std::fs::remove_file(image).unwrap();
        }
        told
    }
}

/// Stops before a step; until then the system writes as it is dealt.
#[derive(Clone)]
struct PowerCut {
    left: Arc<AtomicUsize>,
    early: Early,
    dice: Arc<Mutex<Dice>>,
    disks: Arc<Disks>,
    seen: Arc<Mutex<Vec<&'static str>>>,
}

impl PowerCut {
    fn before(steps: usize, early: Early, disks: &Arc<Disks>) -> Self {
        Self {
            left: Arc::new(AtomicUsize::new(steps)),
            early,
            dice: Arc::new(Mutex::new(Dice(0x9e37_79b9_7f4a_7c15 ^ (steps as u64)))),
            disks: Arc::clone(disks),
            seen: Arc::default(),
        }
    }

    /// Whether it has stopped it.
    fn has_cut(&self) -> bool {
        self.left.load(Ordering::Relaxed) == usize::MAX
    }
}

impl Watch for PowerCut {
    fn before(&self, step: &'static str) -> Then {
        self.seen.lock().unwrap().push(step);
        let dealt = self.dice.lock().unwrap().roll(4);
        match (self.early, dealt) {
            (Early::Names, _) | (Early::Dealt, 0) => self.disks.sync_names(),
            (Early::Everything, _) | (Early::Dealt, 1) => self.disks.sync(),
            (Early::Nothing | Early::Dealt, _) => {}
        }
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.wrapping_sub(1), Ordering::Relaxed);
        match left {
            0 => Then::Stop,
            _ => Then::GoOn,
        }
    }
}

/// What was told of a commit.
struct Told {
    /// That it is done.
    is_said: bool,
    /// The power did not go before all of it was over.
    is_over: bool,
    told: String,
}

/// What is done at each cut, with what is there before it and after all of it.
struct Case<'c> {
    workspace: &'c Workspace,
    set: &'c ChangeSet,
    script: &'c str,
    before: Vec<String>,
    after: Vec<String>,
}

impl Case<'_> {
    fn state(&self) -> &Path {
        self.workspace.state.path()
    }

    /// As it was before the commit that was cut off, and without a trace of it.
    fn begin_anew(&self) {
        let (journal, recovered) = Journal::open(self.state()).unwrap();
        assert!(recovered.stuck.is_empty(), "{recovered:?}");
        if tree(self.workspace.path()) != self.before {
            self.take_back(&journal, self.script);
            let every = journal.list().unwrap();
            let every: Vec<_> = every.iter().map(|kept| kept.id).collect();
            journal.forget(&every).unwrap();
        }
    }

    /// Commits until the power goes before this step; whether there was none, and how the
    /// commits of that kind are told.
    fn commit_until(&self, steps: usize, early: Early, disks: &Arc<Disks>) -> Told {
        let cut = PowerCut::before(steps, early, disks);
        let watch = Box::new(cut.clone());
        let (journal, _) = Journal::open_watched(self.state(), watch).unwrap();
        let done = commit_in(&journal, self.set, self.workspace);
        drop(journal);
        let seen = cut.seen.lock().unwrap();
        let told = format!("{}, {early:?}, cut before {steps} of {seen:?}", self.script);
        // What it clears up after that is no part of it.
        assert!(
            done.failure.is_none() || cut.has_cut(),
            "{told}: {:?}",
            done.failure
        );
        Told {
            is_said: done.failure.is_none(),
            is_over: !cut.has_cut(),
            told,
        }
    }

    /// Looks at what is found after a cut: all or nothing, and all if that was said to be done.
    fn look(&self, is_said: bool, told: &str) {
        let (journal, recovered) = Journal::open(self.state()).unwrap();
        assert!(recovered.stuck.is_empty(), "{told}: {recovered:?}");
        assert!(recovered.broken.is_empty(), "{told}: {recovered:?}");
        // It is the same disk.
        assert!(recovered.unreached.is_empty(), "{told}: {recovered:?}");
        let now = tree(self.workspace.path());
        if !is_said && now == self.before {
            assert_eq!(journal.list().unwrap().len(), 0, "{told}");
            return;
        }
        assert_eq!(now, self.after, "{told}");
        self.take_back(&journal, told);
    }

    /// What it displaced was on the disk as well.
    fn take_back(&self, journal: &Journal, told: &str) {
        let kept = journal.list().unwrap();
        assert_eq!(kept.len(), 1, "{told}");
        let cap = DirCap::open_ambient_dir(self.workspace.path(), dir_id()).unwrap();
        let undone = undo_of(journal, kept[0].id, &cap).unwrap();
        assert!(undone.failure.is_none(), "{told}: {:?}", undone.failure);
        assert_eq!(tree(self.workspace.path()), self.before, "{told}");
    }
}

/// Runs a script on new file systems, and calls that with its changes.
fn with_changes(
    kind: &'static Kind,
    (prefix, count): (&str, usize),
    script: &str,
    what: impl FnOnce(&Arc<Disks>, &Case<'_>),
) {
    let disks = Disks::new(kind, prefix, count);
    let workspace = disks.workspace();
    let finished = workspace.run(script);
    let case = Case {
        workspace: &workspace,
        set: &finished.changes[0],
        script,
        before: tree(workspace.path()),
        after: directly(script),
    };
    assert!(!case.set.is_empty(), "{script}");
    disks.sync();
    what(&disks, &case);
}

/// Cuts at each step of the commits of some scripts, on so many file systems of this kind;
/// how often.
fn cut_everywhere(kind: &'static Kind, count: usize, scripts: &[&str], ways: &[Early]) -> usize {
    let mut cuts = 0;
    for (number, script) in scripts.iter().enumerate() {
        for (way, early) in ways.iter().enumerate() {
            let prefix = format!("{number}-{way}");
            with_changes(kind, (&prefix, count), script, |disks, case| {
                for steps in 0.. {
                    let told = case.commit_until(steps, *early, disks);
                    disks.after_a_cut(|_| case.look(told.is_said, &told.told));
                    cuts += 1;
                    if told.is_over {
                        break;
                    }
                    // The machine that was not cut off begins anew with the next.
                    case.begin_anew();
                    disks.sync();
                }
            });
        }
    }
    cuts
}

const SCRIPTS: [&str; 3] = [
    "echo 1 > a; rm b; mkdir n; echo 2 > n/m; chmod 700 d; mv d/x d/w; ln -sfn b l",
    "mv d n; mv e/k n/k; rm -r e; chmod 600 a",
    "echo 1 > a; rm b; echo 2 > b; echo 3 > n; chmod 0 a b n; ln n m",
];

#[test]
fn a_commit_is_all_or_nothing_after_a_loss_of_power() {
    let name = "journal::power::a_commit_is_all_or_nothing_after_a_loss_of_power";
    if let Some(Run::Inner) = twice(name, &UNSHARE, &EXT4.is_there(), "") {
        let cuts = cut_everywhere(&EXT4, 1, &SCRIPTS, &EARLY);
        assert!(cuts > 200, "{cuts}");
    }
}

#[test]
fn so_it_is_where_the_journal_lies_on_another_disk() {
    let name = "journal::power::so_it_is_where_the_journal_lies_on_another_disk";
    if let Some(Run::Inner) = twice(name, &UNSHARE, &EXT4.is_there(), "") {
        let cuts = cut_everywhere(&EXT4, 2, &SCRIPTS[..1], &EARLY);
        assert!(cuts > 100, "{cuts}");
    }
}

#[test]
fn so_it_is_where_a_flush_is_of_one_file_alone() {
    let name = "journal::power::so_it_is_where_a_flush_is_of_one_file_alone";
    if let Some(Run::Inner) = twice(name, &UNSHARE, &BTRFS.is_there(), "") {
        let cuts = cut_everywhere(&BTRFS, 1, &SCRIPTS, &[Early::Nothing, Early::Names]);
        assert!(cuts > 100, "{cuts}");
    }
}

#[test]
fn so_it_is_on_xfs() {
    let name = "journal::power::so_it_is_on_xfs";
    if let Some(Run::Inner) = twice(name, &UNSHARE, &XFS.is_there(), "") {
        let cuts = cut_everywhere(&XFS, 1, &SCRIPTS[2..], &[Early::Nothing, Early::Names]);
        assert!(cuts > 40, "{cuts}");
    }
}

#[test]
fn many_files_are_all_or_nothing_after_a_loss_of_power() {
    let name = "journal::power::many_files_are_all_or_nothing_after_a_loss_of_power";
    let script =
        "for i in {1..40}; do mkdir -p n$i/m; echo $i > n$i/m/f; done; rm -r d e; echo 1 > a";
    if let Some(Run::Inner) = twice(name, &UNSHARE, &BTRFS.is_there(), "") {
        for (kind, prefix) in [(&EXT4, "4"), (&BTRFS, "b")] {
            with_changes(kind, (prefix, 1), script, |disks, case| {
                // Each step of this many would be tried for minutes.
                for steps in (0..).step_by(17) {
                    let early = [Early::Nothing, Early::Names][usize::from(steps % 2 == 1)];
                    let told = case.commit_until(steps, early, disks);
                    disks.after_a_cut(|_| case.look(told.is_said, &told.told));
                    if told.is_over {
                        break;
                    }
                    case.begin_anew();
                    disks.sync();
                }
            });
        }
    }
}

#[test]
fn what_is_taken_back_after_a_loss_of_power_may_lose_it_again() {
    let name = "journal::power::what_is_taken_back_after_a_loss_of_power_may_lose_it_again";
    if let Some(Run::Inner) = twice(name, &UNSHARE, &EXT4.is_there(), "") {
        with_changes(&EXT4, ("0", 2), SCRIPTS[0], |disks, case| {
            // Where all of it is done and nothing stands.
            let whole = (0..).find(|steps| {
                let told = case.commit_until(*steps, Early::Everything, disks);
                case.begin_anew();
                told.told.ends_with("\"flush what changed\"]")
            });
            let whole = whole.unwrap();
            case.commit_until(whole, Early::Everything, disks);
            assert_ne!(tree(case.workspace.path()), case.before);
            disks.sync();
            for early in EARLY {
                for steps in 0.. {
                    let cut = disks.after_a_cut(|found| {
                        let cut = PowerCut::before(steps, early, found);
                        // An error where it is cut off.
                        let _opened = Journal::open_watched(case.state(), Box::new(cut.clone()));
                        let seen = cut.seen.lock().unwrap().clone();
                        let told = format!("{early:?}, cut before {steps} of {seen:?}");
                        found.after_a_cut(|_| {
                            case.look(false, &told);
                            assert_eq!(tree(case.workspace.path()), case.before, "{told}");
                        });
                        cut
                    });
                    if !cut.has_cut() {
                        assert!(steps > 10, "{steps}");
                        break;
                    }
                }
            }
        });
    }
}

#[test]
fn what_its_owner_cannot_read_is_on_the_disk_as_well() {
    let name = "journal::power::what_its_owner_cannot_read_is_on_the_disk_as_well";
    if let Some(Run::Inner) = twice(name, &UNSHARE, &EXT4.is_there(), "") {
        let disks = Disks::new(&EXT4, "0", 1);
        let workspace = disks.workspace();
        let edits = [Edit::Put {
            path: rel("n"),
            content: b"new\n".to_vec(),
            mode: 0o200,
        }];
        let watch = Box::new(PowerCut::before(1000, Early::Names, &disks));
        as_anybody(|| {
            let (journal, _) = Journal::open_watched(workspace.state.path(), watch).unwrap();
            let incoming = journal.incoming(&workspace.cap, &edits).unwrap();
            let done = commit_in(&journal, incoming.set().unwrap(), &workspace);
            assert!(done.failure.is_none(), "{:?}", done.failure);
        });
        disks.after_a_cut(|_| assert_eq!(workspace.read("n"), "new\n"));
    }
}

#[test]
fn a_single_write_that_was_told_is_on_the_disk() {
    let name = "journal::power::a_single_write_that_was_told_is_on_the_disk";
    if let Some(Run::Inner) = twice(name, &UNSHARE, &BTRFS.is_there(), "") {
        for (kind, prefix) in [(&EXT4, "4"), (&BTRFS, "b")] {
            let disks = Disks::new(kind, prefix, 1);
            let workspace = disks.workspace();
            let (journal, _) = Journal::open(workspace.state.path()).unwrap();
            let old = Base::Content(sha256(b"a\n"));
            for (put_there, base) in [(("a", "changed\n"), old), (("n", "new\n"), Base::Absent)] {
                put(&journal, &workspace, put_there, base, || {}).unwrap();
                let now = tree(workspace.path());
                disks.after_a_cut(|_| {
                    let (journal, recovered) = Journal::open(workspace.state.path()).unwrap();
                    assert!(recovered.is_clean(), "{recovered:?}");
                    assert_eq!(tree(workspace.path()), now);
                    // What it displaced may be gone with the power, and is not made up.
                    journal.list().unwrap();
                });
            }
        }
    }
}
