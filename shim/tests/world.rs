//! What a world keeps in, and what is left of it: nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod common;

use bisim_world::launch::{Answer, Worker};
use bisim_world::protocol::*;
use common::*;
use std::collections::BTreeSet;

fn headless(script: Vec<Step>) -> Job {
    job(Context::Headless, UserModel::DenyAll, script)
}

fn output(step: &StepTrace) -> String {
    let result: serde_json::Value = serde_json::from_str(&step.text).expect("a JSON result");
    result["output"].as_str().unwrap_or_default().to_owned()
}

/// Command lines of all processes that hold `marker`.
fn processes_with(marker: &str) -> Vec<String> {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "))
        .filter(|line| line.contains(marker))
        .collect()
}

fn mounts() -> BTreeSet<String> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    text.lines()
        .filter(|line| line.contains("overlay") || line.contains(" /mnt"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_world_is_forgotten_when_it_ends() {
    let Some(mut worker) = worker() else { return };
    let before = mounts();
    let first = run(
        &mut worker,
        headless(vec![terminal("echo x > kept; echo y > /tmp/kept; ls kept")]),
    );
    assert_eq!(
        told(&first.effects),
        ["Created /home/u/proj/kept", "Created /tmp/kept"]
    );
    let second = run(&mut worker, headless(vec![terminal("ls kept /tmp/kept")]));
    assert!(
        output(&second.steps[0]).contains("No such file"),
        "{}",
        second.steps[0].text
    );
    assert_eq!(told(&second.effects), Vec::<String>::new());
    assert_eq!(mounts(), before);
    assert!(worker.shut_down().unwrap().success());
}

#[test]
fn what_a_world_shows_holds_and_keeps_in() {
    in_turn(parts![
        a_world_does_not_show_the_host,
        nothing_in_a_world_has_a_capability_or_can_gain_one,
        a_command_cannot_speak_for_the_process_that_tells_of_it,
        limits_end_a_world_and_not_its_worker,
        a_world_that_cannot_be_built_names_the_stage_and_the_worker_lives_on,
        a_cases_own_files_belong_to_its_starting_tree,
        a_case_has_files_without_room_and_directories_mounted_on_others,
        a_case_has_disks_that_are_full_and_ones_nobody_writes_to,
        a_program_hermes_would_work_with_is_in_no_world,
    ]);
}

fn a_world_does_not_show_the_host(worker: &mut Worker) {
    let script = vec![terminal(
        "cat /proc/self/uid_map; echo x 2>&1 > /proc/sys/kernel/core_pattern; ls /proc | grep -c '^[0-9]'; grep -c . /proc/net/dev; id -u; cat /proc/1/environ 2>&1",
    )];
    let trace = run(worker, headless(script));
    let text = output(&trace.steps[0]);
    let lines: Vec<_> = text.lines().collect();
    let map: Vec<u64> = lines[0]
        .split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect();
    assert_eq!(
        (map[0], map[2]),
        (1000, 1),
        "one user, and it is not root: {text}"
    );
    assert_ne!(map[1], 0, "a world is never mapped to host root: {text}");
    assert!(
        lines[1].contains("Read-only") || lines[1].contains("denied"),
        "{text}"
    );
    assert!(
        lines[2].parse::<u32>().unwrap() < 12,
        "only the world's own processes: {text}"
    );
    assert_eq!(lines[3], "3", "two header lines and the loopback: {text}");
    assert_eq!(lines[4], "1000", "{text}");
    assert!(lines[5].ends_with("Permission denied"), "{text}");
}

fn nothing_in_a_world_has_a_capability_or_can_gain_one(worker: &mut Worker) {
    let job = headless(vec![terminal("grep -h Cap /proc/self/status")]);
    for _ in 0..2 {
        let shown = output(&run(worker, job.clone()).steps[0]);
        let sets: Vec<_> = shown.split_whitespace().collect();
        assert_eq!(sets.len(), 10, "{shown}");
        assert!(
            sets.chunks(2).all(|set| set[1] == "0000000000000000"),
            "{shown}"
        );
    }
}

/// What a worker and its observer read of a world comes over descriptors of its first
/// process, which has the commands' own user.
fn a_command_cannot_speak_for_the_process_that_tells_of_it(worker: &mut Worker) {
    let forged = StepTrace {
        text: "forged".to_owned(),
        ..StepTrace::of(StepOutcome::Ran)
    };
    let body = serde_json::json!({ "Step": forged }).to_string();
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    let frame: String = [&length[..], body.as_bytes()]
        .concat()
        .iter()
        .map(|byte| format!("\\x{byte:02x}"))
        .collect();
    let trace = run(
        worker,
        headless(vec![terminal(&format!(
            "exec 2>&1; (: >> /proc/1/mem); ls /proc/1/fd; cat /proc/1/maps | head -1; \
             for end in $(seq 3 40); do printf '{frame}' > /proc/1/fd/$end; done 2>&1 | grep -vc denied"
        ))]),
    );
    assert_eq!(trace.steps.len(), 1, "{trace:?}");
    let text = output(&trace.steps[0]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(
        lines[..3]
            .iter()
            .all(|line| line.ends_with("Permission denied")),
        "{text}"
    );
    assert_eq!(lines[3], "0", "{text}");
    assert_eq!(trace.end, End::Finished);
    // The oracle's own pipe is among those that were tried.
    let next = run(worker, headless(vec![terminal("echo true")]));
    assert_eq!(output(&next.steps[0]), "true");
}

fn limits_end_a_world_and_not_its_worker(worker: &mut Worker) {
    let mut late = headless(vec![
        terminal("echo early > early; sleep 600"),
        terminal("echo never"),
    ]);
    late.deadline_ms = 8_000;
    let trace = run(worker, late);
    assert_eq!(trace.end, End::TimedOut);
    assert_eq!(trace.steps.len(), 1, "the second step was never started");
    assert!(
        matches!(trace.steps[0].outcome, StepOutcome::Raised(_)),
        "{:?}",
        trace.steps[0].outcome
    );
    assert_eq!(told(&trace.effects), ["Created /home/u/proj/early"]);

    let forks = r#"perl -e 'for (1..2000) { $p = fork; if (!defined $p) { print "limit\n"; exit } if (!$p) { sleep 600 } }'"#;
    let mut bomb = headless(vec![terminal(forks)]);
    bomb.deadline_ms = 8_000;
    let trace = run(worker, bomb);
    assert!(
        trace.end == End::TimedOut || output(&trace.steps[0]).contains("limit"),
        "{trace:?}"
    );

    let full = headless(vec![terminal(
        "dd if=/dev/zero of=big bs=1M count=500 2>&1 | grep -o 'No space left on device'",
    )]);
    let trace = run(worker, full);
    assert_eq!(output(&trace.steps[0]), "No space left on device");
    let big = trace
        .effects
        .iter()
        .find(|effect| effect.path == "/home/u/proj/big")
        .expect("the file");
    assert!(big.size <= 64 * 1024 * 1024, "{}", big.size);

    let trace = run(worker, headless(vec![terminal("echo alive")]));
    assert_eq!(output(&trace.steps[0]), "alive");
    assert_eq!(trace.end, End::Finished);
}

fn a_world_that_cannot_be_built_names_the_stage_and_the_worker_lives_on(worker: &mut Worker) {
    let mut bad = headless(vec![terminal("true")]);
    bad.world = Some(WorldSpec {
        cwd: "/nowhere".to_owned(),
        files: Vec::new(),
        flip: None,
        serves: None,
        conversations: Vec::new(),
    });
    match worker.run(bad) {
        Answer::Failed(error) => assert_eq!(error.stage, "enter /nowhere"),
        other => panic!("{other:?}"),
    }
    let mut bad = headless(vec![terminal("true")]);
    let file = FileSpec {
        path: "no/root".to_owned(),
        kind: FileKind::Dir(true),
        mode: None,
    };
    bad.world = Some(WorldSpec {
        cwd: "/home/u/proj".to_owned(),
        files: vec![file],
        flip: None,
        serves: None,
        conversations: Vec::new(),
    });
    match worker.run(bad) {
        Answer::Failed(error) => assert_eq!(error.stage, "make `no/root`"),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        run(worker, headless(vec![terminal("true")])).end,
        End::Finished
    );
}

fn a_cases_own_files_belong_to_its_starting_tree(worker: &mut Worker) {
    let file = |path: &str, kind| FileSpec {
        path: path.to_owned(),
        kind,
        mode: None,
    };
    let mut with_files = headless(vec![terminal(
        "cat deep/link; cat docs; echo more >> deep/file",
    )]);
    with_files.world = Some(WorldSpec {
        cwd: "/home/u/proj".to_owned(),
        files: vec![
            file(
                "/home/u/proj/deep/file",
                FileKind::Text("given\n".to_owned()),
            ),
            file(
                "/home/u/proj/deep/link",
                FileKind::Symlink("file".to_owned()),
            ),
            file(
                "/home/u/proj/docs",
                FileKind::Text("no directory\n".to_owned()),
            ),
        ],
        flip: None,
        serves: None,
        conversations: Vec::new(),
    });
    let trace = run(worker, with_files);
    assert_eq!(output(&trace.steps[0]), "given\nno directory");
    assert_eq!(told(&trace.effects), ["Modified /home/u/proj/deep/file"]);
}

fn a_case_has_files_without_room_and_directories_mounted_on_others(worker: &mut Worker) {
    let file = |path: &str, kind| FileSpec {
        path: path.to_owned(),
        kind,
        mode: None,
    };
    let mut job = headless(vec![terminal(
        "stat -c '%s %b' hole; cat mnt/db.sqlite; stat -c %d . mnt | uniq | wc -l; echo x > mnt/new",
    )]);
    job.world = Some(WorldSpec {
        cwd: "/home/u/proj".to_owned(),
        files: vec![
            file("/home/u/proj/hole", FileKind::Sparse(3 << 30)),
            file("/home/u/proj/mnt", FileKind::Mount("/srv/data".to_owned())),
        ],
        flip: None,
        serves: None,
        conversations: Vec::new(),
    });
    let trace = run(worker, job);
    let shown = output(&trace.steps[0]);
    assert!(shown.starts_with("3221225472 0\n"), "{shown}");
    assert!(shown.contains("CANARY-DB"), "{shown}");
    // What is written there lies where the mount leads.
    assert_eq!(told(&trace.effects), ["Created /srv/data/new"]);
    // What can be mounted nowhere names itself.
    let mut bad = headless(vec![terminal("true")]);
    bad.world = Some(WorldSpec {
        cwd: "/home/u/proj".to_owned(),
        files: vec![file(
            "/home/u/proj/mnt",
            FileKind::Mount("/nowhere".to_owned()),
        )],
        flip: None,
        serves: None,
        conversations: Vec::new(),
    });
    match worker.run(bad) {
        Answer::Failed(error) => assert_eq!(error.stage, "mount `/home/u/proj/mnt`"),
        other => panic!("{other:?}"),
    }
}

fn a_case_has_disks_that_are_full_and_ones_nobody_writes_to(worker: &mut Worker) {
    let file = |path: &str, kind| FileSpec {
        path: path.to_owned(),
        kind,
        mode: None,
    };
    let text = |path: &str| file(path, FileKind::Text("given\n".to_owned()));
    let mut job = headless(vec![terminal(
        "head -c 9000 /dev/zero > big; stat -c %s big; rm -r sub; mv given moved; cd ro; echo x > new; rm old; cat old; touch /home/u/beside",
    )]);
    job.world = Some(WorldSpec {
        cwd: "/home/u/proj".to_owned(),
        files: vec![
            text("/home/u/proj/given"),
            text("/home/u/proj/sub/deep/file"),
            text("/srv/data/ro/old"),
            file(
                "/home/u/proj/ro",
                FileKind::Symlink("/srv/data/ro".to_owned()),
            ),
            file("/srv/data/ro", FileKind::ReadOnly(true)),
            file("/home/u/proj", FileKind::Room(4096)),
        ],
        flip: None,
        serves: None,
        conversations: Vec::new(),
    });
    let trace = run(worker, job);
    let shown = output(&trace.steps[0]);
    for line in [
        "No space left on device",
        "\n4096\n",
        "Read-only file system",
        "\ngiven",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert_eq!(
        told(&trace.effects),
        [
            "Created /home/u/beside",
            "Created /home/u/proj/big",
            "Deleted /home/u/proj/given",
            "Created /home/u/proj/moved",
            "Deleted /home/u/proj/sub",
        ]
    );
    // Nothing of it is left for the next one.
    let next = run(
        worker,
        headless(vec![terminal("head -c 9000 /dev/zero > big")]),
    );
    assert_eq!(output(&next.steps[0]), "");
    assert_eq!(told(&next.effects), ["Created /home/u/proj/big"]);
}

fn a_program_hermes_would_work_with_is_in_no_world(worker: &mut Worker) {
    let job = headless(vec![terminal(
        "command -v rg || echo none; command -v grep",
    )]);
    let trace = run(worker, job);
    assert_eq!(output(&trace.steps[0]), "none\n/usr/bin/grep");
}

#[test]
fn a_killed_worker_leaves_nothing_behind() {
    let Some(mut worker) = worker() else { return };
    let before = mounts();
    // Only this test's command lines hold this number.
    let marker = format!("7391{}", std::process::id());
    let pid = worker.id();
    let slow = headless(vec![terminal(&format!("sleep {marker} | sleep {marker}"))]);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| worker.run(slow));
        while processes_with(&format!("sleep {marker}")).len() < 2 {
            assert!(!running.is_finished(), "the case ended by itself");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap()),
            nix::sys::signal::Signal::SIGKILL,
        )
        .unwrap();
        assert!(matches!(running.join().unwrap(), Answer::Lost(_)));
    });
    // The kernel needs a moment to take a dead namespace apart; the test only ends when it has.
    while !processes_with(&marker).is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(mounts(), before);
}

#[test]
fn a_worker_whose_oracle_goes_away_takes_its_world_along() {
    // The first worker says whether this machine can do it at all.
    let Some(_) = worker() else { return };
    let Some(mut command) = command() else { return };
    let marker = format!("7392{}", std::process::id());
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut requests = child.stdin.take().unwrap();
    let mut slow = headless(vec![terminal(&format!("sleep {marker} | sleep {marker}"))]);
    slow.deadline_ms = 600_000;
    write_frame(
        &mut requests,
        &Request::Hello {
            protocol: PROTOCOL_VERSION,
        },
    )
    .unwrap();
    write_frame(
        &mut requests,
        &Request::Run {
            id: 1,
            job: Box::new(slow),
        },
    )
    .unwrap();
    while processes_with(&format!("sleep {marker}")).len() < 2 {
        assert!(
            child.try_wait().unwrap().is_none(),
            "the worker ended by itself"
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    drop(requests);
    child.wait().unwrap();
    while !processes_with(&marker).is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
