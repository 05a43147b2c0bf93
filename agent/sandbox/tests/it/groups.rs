//! What a command uses as a whole is bounded, and its twin within bounds runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use hermitcrab_sandbox::SpawnError;
use hermitcrab_sandbox::profile::Mechanism;
use hermitcrab_sandbox::spawn::{Ending, Finished};
use support::{Workspace, groups_of, run, text};

/// Whether the command had every limit; if not, says so as a skip.
fn limited(finished: &Finished) -> bool {
    let held = finished.confined.by.contains(Mechanism::ControlGroups);
    if !held {
        println!("SKIPPED: {:?}", finished.confined.missing);
        // Never weaker in silence.
        assert!(
            finished
                .confined
                .missing
                .iter()
                .any(|why| why.starts_with("control groups: "))
        );
    }
    held
}

/// Touches so many megabytes and says so.
fn hog(megabytes: u32) -> String {
    format!(
        "exec perl -e 'my @held; for (1..{megabytes}) {{ push @held, \"x\" x (1 << 20) }} print scalar @held, qq(\\n)'"
    )
}

#[test]
fn memory_of_a_command_is_bounded_and_its_end_says_so() {
    let workspace = Workspace::new();
    let mut command = workspace.command(&hog(8));
    command.limits.memory_bytes_max = 64 << 20;
    let modest = run(&command).unwrap();
    if !limited(&modest) {
        return;
    }
    assert_eq!(
        (modest.ending, text(&modest).as_str()),
        (Ending::Exited(0), "8\n")
    );
    assert_eq!(modest.confined.usage.out_of_memory_kills, 0);
    assert!(modest.confined.usage.memory_peak_bytes.unwrap() > 8 << 20);

    let script = hog(400);
    let mut command = workspace.command(&script);
    command.limits.memory_bytes_max = 64 << 20;
    let greedy = run(&command).unwrap();
    assert_eq!(greedy.ending, Ending::OutOfMemory, "{}", text(&greedy));
    assert!(greedy.confined.usage.out_of_memory_kills > 0);
}

#[test]
fn a_command_that_outlives_what_took_too_much_memory_ends_as_it_says() {
    let workspace = Workspace::new();
    let script = format!("({}); exit 5", hog(400));
    let mut command = workspace.command(&script);
    command.limits.memory_bytes_max = 64 << 20;
    let finished = run(&command).unwrap();
    if !limited(&finished) {
        return;
    }
    if finished.confined.limited.kill {
        println!("SKIPPED: under version 2 all of a command ends where its memory runs out");
        return;
    }
    assert!(finished.confined.usage.out_of_memory_kills > 0);
    assert_eq!(finished.ending, Ending::Exited(5), "{}", text(&finished));
}

#[test]
fn processes_that_were_not_to_be_are_told() {
    let workspace = Workspace::new();
    let crowd = "perl -e 'my @all; for (1..9) { my $p = fork; next unless defined $p; $p or sleep 60; \
                  push @all, $p } kill 9, @all'";
    // Groups serve again, and what one command was refused is not told of the next.
    for (script, expected) in [
        ("true", false),
        (crowd, true),
        ("true", false),
        (crowd, true),
    ] {
        let mut command = workspace.command(script);
        command.limits.processes_max = 6;
        let finished = run(&command).unwrap();
        if !finished.confined.limited.processes {
            println!("SKIPPED: no group bounds the processes of a command here");
            return;
        }
        let refused = finished.confined.usage.refused_forks;
        assert_eq!(refused > 0, expected, "{refused}: {}", text(&finished));
    }
}

#[test]
fn memory_shared_out_among_processes_or_files_counts_as_well() {
    let workspace = Workspace::new();
    // Each alone would fit, and none is over before the others have what they want.
    let held = hog(30).replace("print scalar", "sleep 1; print scalar");
    let many = format!("for i in 1 2 3 4 5 6; do ({held}) & done; wait");
    for script in [
        many.as_str(),
        "head -c 300000000 /dev/zero > big",
        "head -c 60000000 /dev/zero > /dev/shm/big; head -c 200000000 /dev/zero > /tmp/big",
    ] {
        let mut command = workspace.command(script);
        command.limits.memory_bytes_max = 64 << 20;
        let finished = run(&command).unwrap();
        if !limited(&finished) {
            return;
        }
        assert!(
            finished.confined.usage.out_of_memory_kills > 0,
            "{script}: {:?} {}",
            finished.ending,
            text(&finished)
        );
        let peak = finished.confined.usage.memory_peak_bytes.unwrap();
        assert!(peak <= 64 << 20, "{script}: {peak}");
    }
}

#[test]
fn a_fork_bomb_ends_at_the_limit_and_the_next_command_runs() {
    let workspace = Workspace::new();
    let mut command = workspace.command(
        "bomb() { bomb | bomb & }; bomb 2> /dev/null; sleep 0.3; cat /proc/loadavg > /dev/null; echo survived",
    );
    // On a busy machine not even its sandbox may be there so soon.
    let bombed = [2, 20, 100].into_iter().find_map(|seconds| {
        command.limits.timeout = Duration::from_secs(seconds);
        match run(&command) {
            Ok(bombed) => Some(bombed),
            Err(SpawnError::Step(error)) if error.errno() == nix::libc::ETIMEDOUT => None,
            Err(error) => panic!("{error}"),
        }
    });
    let bombed = bombed.unwrap();
    assert!(
        matches!(
            bombed.ending,
            Ending::TimedOut | Ending::Exited(_) | Ending::Signalled(_) | Ending::OutOfMemory
        ),
        "{:?}",
        bombed.ending
    );
    let clean = workspace.run("true & wait; echo fine");
    assert_eq!(
        (clean.ending, text(&clean).as_str()),
        (Ending::Exited(0), "fine\n")
    );
}

#[test]
fn processor_time_is_half_of_one_processor_for_all_processes_together() {
    let workspace = Workspace::new();
    let spin = "perl -e 'my $end = time + 2; 1 while time < $end' & ";
    let script = format!("{}wait", spin.repeat(3));
    let finished = workspace.run(&script);
    if !limited(&finished) {
        return;
    }
    let used = (finished.usage.user + finished.usage.system).as_secs_f64();
    let share = used / finished.elapsed.as_secs_f64();
    // What is saved up while the command starts comes on top. Never more, on
    // however busy a machine.
    assert!(share < 0.8, "{share}");
    // A short one does not notice.
    assert_eq!(workspace.run("true").ending, Ending::Exited(0));
}

#[test]
fn groups_go_when_what_they_held_is_gone_and_with_the_spawner() {
    use hermitcrab_core::action::Action;
    use hermitcrab_core::authority::{Object, Program, Verb};
    use hermitcrab_core::digest::Digest;
    use hermitcrab_core::tool::Tool;
    use hermitcrab_sandbox::Sandbox;
    use hermitcrab_sandbox::spawn::PoolSize;

    let workspace = Workspace::new();
    let sandbox = Sandbox::builder()
        .spawner(support::spawner())
        .pool(PoolSize::OFF)
        .build();
    let once = || {
        let action = Action::new(
            Verb::ProcExec,
            Object::Program(Program::AnyInView),
            Digest::NONE,
        )
        .unwrap();
        with(&sandbox, &workspace, action)
    };
    fn with(sandbox: &Sandbox, workspace: &Workspace, action: Action) -> Finished {
        support::with_permits(Tool::Terminal, vec![action], |mut permits| {
            sandbox
                .run(
                    permits.pop().unwrap(),
                    &workspace.command("sleep 1000 & true"),
                )
                .unwrap()
        })
    }
    if !limited(&once()) {
        return;
    }
    let spawner = *sandbox.helpers().first().unwrap();
    for _ in 0..20 {
        once();
    }
    // Some sets are kept for commands to come; the rest goes a moment later.
    const KEPT_MAX: usize = 8;
    let hierarchies = |paths: &[PathBuf]| {
        let mut parents: Vec<_> = paths.iter().map(|path| path.parent().unwrap()).collect();
        parents.sort();
        parents.dedup();
        parents.len()
    };
    let since = Instant::now();
    loop {
        let left = groups_of(spawner);
        if left.len() <= KEPT_MAX * hierarchies(&left) {
            break;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "{left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    let known = groups_of(spawner);
    drop(sandbox);
    let left: Vec<_> = known.into_iter().filter(|path| path.exists()).collect();
    assert_eq!(left, Vec::<PathBuf>::new());
}

#[test]
fn what_one_command_used_up_counts_for_nobody_though_groups_serve_again() {
    let workspace = Workspace::new();
    let script = hog(200);
    let mut greedy = workspace.command(&script);
    greedy.limits.memory_bytes_max = 48 << 20;
    let script = hog(1);
    let mut modest = workspace.command(&script);
    modest.limits.memory_bytes_max = 48 << 20;
    if !limited(&run(&modest).unwrap()) {
        return;
    }
    for _ in 0..3 {
        let finished = run(&greedy).unwrap();
        assert_eq!(finished.ending, Ending::OutOfMemory);
        assert!(finished.confined.usage.out_of_memory_kills > 0);
        let finished = run(&modest).unwrap();
        assert_eq!(finished.ending, Ending::Exited(0));
        let usage = finished.confined.usage;
        assert_eq!(usage.out_of_memory_kills, 0);
        // What the first had at its peak is not said of the second.
        assert!(usage.memory_peak_bytes.unwrap_or(0) < 16 << 20, "{usage:?}");
    }
}

/// A directory in a group, so that the group stands.
struct Lodger(PathBuf);

impl Lodger {
    /// One in each group of the spawner that somebody is in and that limits
    /// processor time.
    fn everywhere(spawner: u32) -> Vec<(PathBuf, Self)> {
        let used = |group: &PathBuf| quota(group).is_some() && !processes(group).is_empty();
        groups_of(spawner)
            .into_iter()
            .filter(used)
            .map(|group| {
                let lodger = Self(group.join("lodger"));
                std::fs::create_dir(&lodger.0).unwrap();
                (group, lodger)
            })
            .collect()
    }
}

impl Drop for Lodger {
    fn drop(&mut self) {
        std::fs::remove_dir(&self.0).unwrap();
    }
}

/// How much processor time a group has, in the words of either version.
fn quota(group: &std::path::Path) -> Option<String> {
    let read = |file: &str| std::fs::read_to_string(group.join(file));
    read("cpu.cfs_quota_us").or_else(|_| read("cpu.max")).ok()
}

fn processes(group: &std::path::Path) -> String {
    std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default()
}

#[test]
fn what_is_killed_is_not_held_back_and_its_groups_serve_nobody_else() {
    let workspace = Workspace::new();
    if !limited(&workspace.run("true")) {
        return;
    }
    let spawner = *support::sandbox().helpers().first().unwrap();
    let lifted = |group: &PathBuf| {
        quota(group).is_some_and(|quota| quota.starts_with("-1") || quota.starts_with("max"))
    };
    let spin = "for i in 1 2 3; do (while :; do :; done) & done; ";
    for (after, ending) in [
        ("echo up; wait", Ending::TimedOut),
        // What is left when the command itself has ended is killed as well.
        ("echo up; read line; exit 3", Ending::Exited(3)),
    ] {
        let script = format!("{spin}{after}");
        let begun = |seconds| {
            let mut command = workspace.command(&script);
            command.limits.timeout = Duration::from_secs(seconds);
            let mut running = support::start(&command);
            let mut said: Vec<u8> = Vec::new();
            while said.is_empty() {
                let over = running.attend(Duration::from_secs(1), |_, bytes| said.extend(bytes));
                if over.unwrap() {
                    return None;
                }
            }
            Some(running)
        };
        // From here on this thread alone can end it. On a busy machine it may not have begun
        // so soon.
        let seconds: &[u64] = match ending {
            Ending::TimedOut => &[2, 10, 50],
            _ => &[120],
        };
        let mut running = seconds.iter().copied().find_map(begun).unwrap();
        let lodgers = Lodger::everywhere(spawner);
        if lodgers.is_empty() {
            println!("SKIPPED: no group limits processor time");
            return;
        }
        assert!(!lodgers.iter().any(|(group, _)| lifted(group)));
        let mut stdin = running.take_stdin();
        if ending != Ending::TimedOut {
            stdin = None;
        }
        assert_eq!(running.wait().unwrap().ending, ending);
        drop(stdin);
        // For the end of this command, and for nothing else.
        let of_it = lodgers.iter().filter(|(group, _)| lifted(group)).count();
        assert_eq!(of_it, 1, "of {} groups", lodgers.len());
        drop(lodgers);
        let since = Instant::now();
        while let Some(left) = groups_of(spawner).into_iter().find(lifted) {
            assert!(since.elapsed() < Duration::from_secs(60), "{left:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn what_kills_an_ended_command_kills_nobody_in_its_groups_after_it() {
    let workspace = Workspace::new();
    let start = || support::start(&workspace.command("echo up; read line; exit 3"));
    let first = start();
    let killer = first.killer();
    let mut first = first;
    drop(first.take_stdin());
    assert_eq!(first.wait().unwrap().ending, Ending::Exited(3));
    // Its groups are as new, and serve the next ones.
    for _ in 0..6 {
        let mut next = start();
        let mut said: Vec<u8> = Vec::new();
        while said.is_empty() {
            let over = next.attend(Duration::from_secs(1), |_, bytes| said.extend(bytes));
            assert!(!over.unwrap());
        }
        killer.kill();
        drop(next.take_stdin());
        assert_eq!(next.wait().unwrap().ending, Ending::Exited(3));
    }
}

#[test]
fn what_is_not_said_of_a_command_is_half_a_gigabyte_half_a_processor_and_a_hundred_processes() {
    let workspace = Workspace::new();
    let mut running = support::start(&workspace.command("echo up; read _"));
    let mut said = false;
    while !said {
        let over = running.attend(Duration::from_secs(20), |_, _| said = true);
        assert!(!over.unwrap());
    }
    let spawner = *support::sandbox().helpers().first().unwrap();
    // Those of sandboxes that wait are alike once somebody is inside.
    let mut dirs = groups_of(spawner);
    dirs.retain(|group| !processes(group).is_empty());
    let mut found = 0;
    for (file, wanted) in [
        ("memory.limit_in_bytes", "536870912\n"),
        ("memory.max", "536870912\n"),
        ("cpu.cfs_quota_us", "50000\n"),
        ("cpu.max", "50000 100000\n"),
        // The sandbox's first process is inside as well.
        ("pids.max", "101\n"),
    ] {
        for text in dirs
            .iter()
            .filter_map(|dir| std::fs::read_to_string(dir.join(file)).ok())
        {
            assert_eq!(text, wanted, "{file}");
            found += 1;
        }
    }
    drop(running.take_stdin());
    if limited(&running.wait().unwrap()) {
        assert!(found >= 3, "{dirs:?}");
    }
}

#[test]
fn what_somebody_ended_was_not_ended_by_its_want_of_memory() {
    let workspace = Workspace::new();
    let script = format!("({}); echo goes on; read _", hog(400));
    let mut command = workspace.command(&script);
    command.limits.memory_bytes_max = 64 << 20;
    let mut running = support::start(&command);
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains("goes on") {
        let more = |_, bytes: &[u8]| said.extend_from_slice(bytes);
        if running.attend(Duration::from_secs(20), more).unwrap() {
            break;
        }
    }
    let goes_on = String::from_utf8_lossy(&said).contains("goes on");
    running.kill();
    let finished = running.wait().unwrap();
    if !limited(&finished) {
        return;
    }
    if finished.confined.limited.kill {
        println!("SKIPPED: under version 2 all of a command ends where its memory runs out");
        return;
    }
    assert!(goes_on, "{:?}", String::from_utf8_lossy(&said));
    assert!(finished.confined.usage.out_of_memory_kills > 0);
    assert_eq!(finished.ending, Ending::Killed);
}
