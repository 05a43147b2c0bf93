//! An agent that is killed while what a running command made is carried over.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use hermitcrab::runtime::{Fate, GrantWords, Runtime};
use hermitcrab_sandbox::Journal;
use serde_json::json;

use crate::support::{self, ManualClock, ScriptedUser};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many of them.
const AGENTS: u32 = 25;
/// Files of the user's that the command replaces and exchanges.
const FILES: [&str; 4] = ["a", "b", "x/c", "x/d"];
/// What is in the directory an agent is started in, to be known as one.
const ASKED: &str = "hermitcrab-acts-as-an-agent";

/// Replaces, exchanges, makes and removes, without end. What a file holds is one number, as
/// many times as tells that all of it is there.
const PROGRAM: &str = "import ctypes, itertools, os, time
libc = ctypes.CDLL(None)
print('begun', flush=True)
for count in itertools.count():
    for name in ('a', 'x/c'):
        with open(name + '.tmp', 'w') as file: file.write(f'{count}\\n' * 500)
        os.rename(name + '.tmp', name)
    libc.renameat2(-100, b'b', -100, b'x/d', 2)
    os.makedirs(f'made/{count}', exist_ok=True)
    for place in range(20): open(f'made/{count}/{place}', 'w').write(f'{count}\\n' * 500)
    if count > 5:
        for place in range(20): os.remove(f'made/{count - 5}/{place}')
        os.rmdir(f'made/{count - 5}')
    time.sleep(0.02)
";

fn opened(at: &Path) -> Runtime {
    let config = support::config(at.join("proj"), at.join("state"));
    let (user, clock) = (ScriptedUser::default(), ManualClock::default());
    let mut runtime = Runtime::open(config, Box::new(user), Box::new(clock)).unwrap();
    let first = runtime.first_agent();
    runtime.grant_basics(first).unwrap();
    let all = at.join("proj").to_string_lossy().into_owned();
    runtime
        .grant(first, &GrantWords::new("fs.*", &all))
        .unwrap();
    runtime
}

/// Another part each time: who reads one again and again is told to stop.
fn look(runtime: &mut Runtime, from: u32) {
    let first = runtime.first_agent();
    let args = json!({"path": "b", "offset": 1 + from % 400, "limit": 1 + from / 400});
    let seen = runtime.call(first, "read_file", &args);
    assert_eq!(seen.fate, Fate::Ran, "{}", seen.text);
}

/// Looks at what its command makes until it is killed.
fn act_as_an_agent(at: &Path) {
    let mut runtime = opened(at);
    let first = runtime.first_agent();
    let args = json!({"command": "python3 -u program.py", "background": true});
    let started = runtime.call(first, "terminal", &args);
    assert_eq!(started.fate, Fate::Ran, "{}", started.text);
    let begun = Instant::now();
    for count in 0.. {
        assert!(begun.elapsed() < PATIENCE, "nobody killed it");
        look(&mut runtime, count);
        let is_any = at.join("proj/made").exists();
        if is_any && !at.join("ready").exists() {
            std::fs::write(at.join("ready"), "").unwrap();
        }
    }
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => all.extend(files_below(&entry.path())),
            false => all.push(entry.path()),
        }
    }
    all
}

/// The newest entry of the journal, finished or not.
fn newest(at: &Path) -> Option<u64> {
    let entries = std::fs::read_dir(at.join("state/journal")).ok()?;
    let names = entries.flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).max()
}

/// Whether everything is as it was before a commit or after it.
fn holds(proj: &Path) {
    for path in files_below(proj) {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let name = path.strip_prefix(proj).unwrap();
        if name == Path::new("program.py") {
            continue;
        }
        // What its command was just writing is carried over as it was read.
        let is_being_written = name.starts_with("made") || name.extension().is_some();
        let is_whole = lines.clone().all(|line| line == first) && text.lines().count() == 500;
        assert!(is_whole || is_being_written, "{name:?}: {text}");
    }
    let held = |name: &str| {
        let text = std::fs::read_to_string(proj.join(name));
        let text = text.unwrap_or_else(|error| panic!("{name}: {error}"));
        text.lines().next().map(str::to_owned)
    };
    assert!(FILES.iter().all(|name| held(name).is_some()));
    let mut exchanged = [held("b"), held("x/d")];
    exchanged.sort();
    assert_eq!(exchanged, ["b", "x/d"].map(|name| Some(name.to_owned())));
}

#[test]
fn whatever_an_agent_was_killed_in_each_file_is_as_before_or_after_and_the_next_goes_on() {
    if Path::new(ASKED).exists() {
        act_as_an_agent(&Path::new(".").canonicalize().unwrap());
    }
    let place = tempfile::tempdir().unwrap();
    let at = place.path().canonicalize().unwrap();
    std::fs::create_dir_all(at.join("proj/x")).unwrap();
    for name in FILES {
        let text = format!("{name}\n").repeat(500);
        std::fs::write(at.join("proj").join(name), text).unwrap();
    }
    std::fs::write(at.join("proj/program.py"), PROGRAM).unwrap();
    std::fs::write(at.join(ASKED), "").unwrap();
    let (mut cut_off, mut taken_back) = (0, 0);
    for number in 0..AGENTS {
        let _gone = std::fs::remove_file(at.join("ready"));
        let _gone = std::fs::remove_dir_all(at.join("proj/made"));
        let mut agent = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "afoot_killed::whatever_an_agent_was_killed_in_each_file_is_as_before_or_after_and_the_next_goes_on",
            ])
            .current_dir(&at)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while !at.join("ready").exists() {
            assert!(agent.try_wait().unwrap().is_none(), "the agent ended");
            assert!(begun.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(5));
        }
        // At another instant of a commit each time.
        let before = newest(&at);
        while newest(&at) == before && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_micros(100));
        }
        std::thread::sleep(Duration::from_micros(u64::from(number) * 1170 % 12_000));
        agent.kill().unwrap();
        agent.wait().unwrap();
        let (journal, recovered) = Journal::open(&at.join("state")).unwrap();
        cut_off += u32::from(!recovered.is_clean());
        assert_eq!((recovered.stuck, recovered.broken), (vec![], vec![]));
        holds(&at.join("proj"));
        drop(journal);
        // Whoever comes next sees it, and can take back what stands.
        let mut next = opened(&at);
        look(&mut next, number);
        if let Some(last) = next.commits().unwrap().last().map(|last| last.id) {
            let first = next.first_agent();
            next.undo(first, last).unwrap();
            taken_back += 1;
            holds(&at.join("proj"));
        }
        next.end_session().unwrap();
    }
    println!("{cut_off} of {AGENTS} were cut off in a commit, {taken_back} commits taken back");
    assert!(taken_back > 0);
}
