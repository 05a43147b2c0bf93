//! Files that change their names all the time while what their command made is carried over.
//!
//! What for: a look reads one name after the other, and what gets another name meanwhile may
//! be missed at both. So nothing the command did not delete may be without a name after any
//! look.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;
use crate::underway::{listed, started};

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use support::{Workspace, commit_in};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked, if that does not take longer than this.
const ENOUGH: Duration = Duration::from_secs(45);
const LOOKS: u32 = 250;

/// Gives two names each other's thing at once: 2 is `RENAME_EXCHANGE`.
const EXCHANGE: &str = "import ctypes, os, random, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def exchange(one, other):
    done = libc.renameat2(-100, one.encode(), -100, other.encode(), 2)
    if done: raise OSError(ctypes.get_errno(), one)
";

/// What the files in a directory and below hold.
fn held(dir: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => all.extend(held(&entry.path())),
            false => all.extend(std::fs::read_to_string(entry.path()).ok()),
        }
    }
    all
}

/// Runs this beside many looks, until enough of them carried something over. After each of
/// them everything the workspace ever held has a name, but for what `may_go`.
fn loses_nothing(
    workspace: &Workspace,
    program: &str,
    carried_min: u32,
    may_go: impl Fn(&str) -> bool,
) {
    workspace.file("exchange.py", &format!("{EXCHANGE}{program}"));
    let mut command = started(workspace, "python3 -u exchange.py; echo failed");
    command.says("begun");
    let (mut ever, mut said) = (held(workspace.path()), String::new());
    let (mut looks, mut carried, begun) = (0, 0, Instant::now());
    while (looks < LOOKS && begun.elapsed() < ENOUGH) || carried < carried_min {
        assert!(begun.elapsed() < PATIENCE, "{carried} of {looks}");
        let is_over = command.running.attend(Duration::ZERO, |_, bytes| {
            said.push_str(&String::from_utf8_lossy(bytes));
        });
        assert!(!is_over.unwrap(), "after {looks} looks it ended: {said}");
        let kept = command.keep();
        looks += 1;
        carried += u32::from(kept.as_ref().is_some_and(|kept| !kept.is_empty()));
        let now = held(workspace.path());
        let lost: Vec<&String> = ever.difference(&now).filter(|held| !may_go(held)).collect();
        assert!(lost.is_empty(), "after {looks} looks: {lost:?}; {kept:?}");
        ever.extend(now);
    }
    let (finished, journal) = command.ended();
    let set = &finished.changes[0];
    let commit = commit_in(&journal.0, set, workspace);
    assert!(commit.failure.is_none(), "{commit:?}: {:?}", listed(set));
    let now = held(workspace.path());
    let lost: Vec<&String> = ever.difference(&now).filter(|held| !may_go(held)).collect();
    assert!(lost.is_empty(), "at the end: {lost:?}");
    println!("{looks} looks, {carried} of them carried something over");
}

fn nothing(_: &str) -> bool {
    false
}

#[test]
fn what_is_exchanged_all_the_time_has_a_name_after_every_look() {
    let workspace = Workspace::new();
    for name in ["a", "b", "x/f", "y/f", "x/g"] {
        workspace.file(name, &format!("what {name} held\n"));
    }
    loses_nothing(
        &workspace,
        "print('begun')
while True:
    for one, other in (('a', 'b'), ('x/f', 'y/f'), ('b', 'x/g'), ('y/f', 'a')):
        exchange(one, other)
        time.sleep(random.random() / 2000)
",
        0,
        nothing,
    );
}

#[test]
fn what_takes_the_name_of_what_moved_on_loses_nothing() {
    let workspace = Workspace::new();
    for name in ["log", "log.1", "log.2", "old/log.3"] {
        workspace.file(name, &format!("what {name} held\n"));
    }
    loses_nothing(
        &workspace,
        "print('begun')
names = ['log', 'log.1', 'log.2', 'old/log.3', 'aside']
while True:
    for one, other in zip(names[-2::-1], names[:0:-1]):
        os.rename(one, other)
        time.sleep(random.random() / 4000)
    os.rename('aside', 'log')
",
        0,
        nothing,
    );
}

#[test]
fn directories_that_are_exchanged_lose_nothing_that_was_carried_over() {
    let workspace = Workspace::new();
    loses_nothing(
        &workspace,
        "for name in ('x', 'y', 'deep/z'):
    os.makedirs('new/' + name)
    for place in range(5):
        open(f'new/{name}/{place}', 'w').write(f'{name} {place}')
print('begun')
while True:
    for one, other in (('x', 'y'), ('deep/z', 'x'), ('y', 'deep/z')):
        exchange('new/' + one, 'new/' + other)
        time.sleep(random.random() / 2000)
",
        0,
        nothing,
    );
}

#[test]
fn what_rests_at_times_is_carried_over_then() {
    let workspace = Workspace::new();
    for name in ["a", "b"] {
        workspace.file(name, &format!("what {name} held\n"));
    }
    loses_nothing(
        &workspace,
        "print('begun')
while True:
    exchange('a', 'b')
    time.sleep(0.02 + random.random() / 50)
",
        20,
        nothing,
    );
}

#[test]
fn what_is_replaced_all_the_time_is_carried_over_all_the_same() {
    let workspace = Workspace::new();
    loses_nothing(
        &workspace,
        "import itertools
def replace(name, held):
    open(name + '.tmp', 'w').write(held)
    os.rename(name + '.tmp', name)
for count in itertools.count():
    replace('state', f'count {count}')
    if count == 10: print('begun')
",
        20,
        |held| held.starts_with("count") || held.is_empty(),
    );
}

/// They are moved one name after the other, by whoever answers for the command.
#[test]
fn directories_of_before_that_are_moved_lose_nothing() {
    const DIRECTORIES: u32 = 240;
    let workspace = Workspace::new();
    for name in (0..DIRECTORIES).flat_map(|dir| (0..4).map(move |file| format!("d{dir}/s/{file}")))
    {
        workspace.file(&name, &format!("what {name} held\n"));
    }
    std::fs::create_dir(workspace.path().join("t")).unwrap();
    let program = "print('begun')
for n in range(4, LAST):
    kind = random.randrange(3)
    if kind == 0:
        os.rename(f'd{n}', f't/e{n}')
    elif kind == 1:
        exchange(f'd{n}', f'd{n + 1}')
    elif os.path.isdir(f't/e{n - 1}'):
        os.rename(f'd{n}/s', f't/e{n - 1}/s2')
    time.sleep(random.random() / 20)
while True:
    time.sleep(1)
";
    let last = DIRECTORIES.saturating_sub(1).to_string();
    loses_nothing(&workspace, &program.replace("LAST", &last), 1, nothing);
}
