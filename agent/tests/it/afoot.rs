//! Commands that run while others look at the same files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};

use hermitcrab::runtime::{Ceilings, Fate};
use hermitcrab_core::{
    approval::Stance,
    authority::Verb,
    outcome::DenialCode,
    rules::{ConfiguredRule, Layer, Pattern},
};
use serde_json::{Value, json};

use crate::support::Bench;

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn value(bench: &mut Bench, tool: &str, args: Value) -> Value {
    let report = bench.call(tool, args);
    serde_json::from_str(&report.text).unwrap()
}

/// Starts a command in the background and waits until it said this.
fn started(bench: &mut Bench, command: &str, said: &str) -> String {
    let args = json!({"command": command, "background": true});
    let started = value(bench, "terminal", args);
    let id = started["session_id"].as_str().unwrap().to_owned();
    says(bench, &id, said);
    id
}

fn process(bench: &mut Bench, action: &str, id: &str) -> Value {
    let args = json!({"action": action, "session_id": id, "timeout": 60});
    value(bench, "process", args)
}

fn says(bench: &mut Bench, id: &str, said: &str) {
    let begun = Instant::now();
    while !process(bench, "poll", id)["output_preview"]
        .as_str()
        .unwrap_or_default()
        .contains(said)
    {
        assert!(begun.elapsed() < PATIENCE, "{}", process(bench, "log", id));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Lets a command go on that waits for this.
fn goes_on(bench: &mut Bench) {
    let written = bench.call("write_file", json!({"path": "go.txt", "content": ""}));
    assert_eq!(written.fate, Fate::Ran, "{}", written.text);
}

fn read(bench: &mut Bench, path: &str) -> Value {
    value(bench, "read_file", json!({"path": path}))["content"].clone()
}

fn printed(bench: &mut Bench, command: &str) -> String {
    let said = value(bench, "terminal", json!({"command": command}));
    said["output"].as_str().unwrap().to_owned()
}

#[test]
fn what_a_running_command_wrote_is_seen_and_its_later_changes_stand_as_well() {
    let mut bench = Bench::with_files();
    bench.put("old.txt", "old\n");
    bench.put("gone.txt", "gone\n");
    let id = started(
        &mut bench,
        "mkdir -p d/e; echo one > d/e/made.txt; echo more >> old.txt; rm gone.txt; ln -s d link; \
         echo fir''st; until [ -e go.txt ]; do sleep 0.02; done; \
         echo two >> d/e/made.txt; rm link; echo new > d/other.txt; echo se''cond; sleep 600",
        "first",
    );
    assert_eq!(read(&mut bench, "d/e/made.txt"), "1|one\n2|");
    assert_eq!(
        printed(&mut bench, "cat old.txt link/e/made.txt; ls"),
        "old\nmore\none\nd\nlink\nold.txt"
    );
    assert_eq!(bench.text("gone.txt"), None);
    goes_on(&mut bench);
    says(&mut bench, &id, "second");
    assert_eq!(
        printed(&mut bench, "cat d/e/made.txt d/other.txt; ls"),
        "one\ntwo\nnew\nd\ngo.txt\nold.txt"
    );
    let killed = process(&mut bench, "kill", &id);
    assert_eq!(killed["status"], "killed", "{killed}");
    assert_eq!(bench.text("d/e/made.txt").as_deref(), Some("one\ntwo\n"));
    assert_eq!(bench.text("old.txt").as_deref(), Some("old\nmore\n"));
    assert!(!bench.workspace.join("link").is_symlink());
}

#[test]
fn what_others_changed_after_it_was_kept_is_theirs() {
    let mut bench = Bench::with_files();
    let id = started(
        &mut bench,
        "mkdir d; echo one > d/made.txt; echo one > d/gone.txt; echo fir''st; sleep 600",
        "first",
    );
    let written = bench.call(
        "write_file",
        json!({"path": "d/made.txt", "content": "mine\n"}),
    );
    assert_eq!(written.fate, Fate::Ran, "{}", written.text);
    assert_eq!(
        printed(&mut bench, "rm d/gone.txt; echo x > d/theirs.txt; ls d"),
        "made.txt\ntheirs.txt"
    );
    process(&mut bench, "kill", &id);
    assert_eq!(bench.text("d/made.txt").as_deref(), Some("mine\n"));
    assert_eq!(bench.text("d/gone.txt"), None);
    assert_eq!(bench.text("d/theirs.txt").as_deref(), Some("x\n"));
}

#[test]
fn what_would_be_asked_about_waits_for_the_end() {
    let mut bench = Bench::with_files();
    let id = started(
        &mut bench,
        "echo x > plain.txt; echo SECRET=1 > .env; mkfifo pipe; ln -s .env link; echo fir''st; rm pipe; echo se''cond; sleep 600",
        "second",
    );
    let report = bench.call("read_file", json!({"path": "plain.txt"}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!((report.questions.len(), bench.text(".env")), (0, None));
    let report = bench.call("process", json!({"action": "kill", "session_id": id}));
    assert_eq!(report.questions.len(), 1, "{}", report.text);
    assert_eq!(
        (bench.text("plain.txt").as_deref(), bench.text(".env")),
        (Some("x\n"), None)
    );
}

#[test]
fn with_a_ceiling_of_changes_all_waits_for_the_end() {
    let mut bench = Bench::with_files();
    bench.runtime.set_ceilings(Ceilings {
        files_max: Some(1),
        ..Ceilings::default()
    });
    let id = started(
        &mut bench,
        "echo x > a.txt; echo fir''st; sleep 600",
        "first",
    );
    assert_eq!(bench.text("a.txt"), None);
    process(&mut bench, "kill", &id);
    assert_eq!(bench.text("a.txt").as_deref(), Some("x\n"));
}

#[test]
fn what_both_changed_is_not_overwritten() {
    let mut bench = Bench::with_files();
    bench.put("made.txt", "old\n");
    // All of it waits for the end.
    bench.runtime.set_ceilings(Ceilings {
        files_max: Some(100),
        ..Ceilings::default()
    });
    let id = started(
        &mut bench,
        "echo one >> made.txt; echo fir''st; sleep 600",
        "first",
    );
    bench.put("made.txt", "mine\n");
    let report = bench.call("process", json!({"action": "kill", "session_id": id}));
    assert_eq!(bench.text("made.txt").as_deref(), Some("mine\n"));
    assert_eq!(
        report.fate,
        Fate::RanDiscarded(DenialCode::ChangedSinceShown),
        "{}",
        report.text
    );
}

#[test]
fn a_script_and_the_tools_it_calls_see_what_each_wrote() {
    let mut bench = Bench::with_files();
    let code = "from hermes_tools import read_file, terminal, patch\n\
        open('made.txt', 'w').write('one\\n')\n\
        print(read_file('made.txt')['content'])\n\
        print(terminal('cat made.txt; mkdir d; echo theirs > d/t.txt')['output'])\n\
        open('d/own.txt', 'w').write(open('d/t.txt').read() + 'own\\n')\n\
        print(terminal('cat d/own.txt; rm made.txt')['output'])\n";
    let ran = value(&mut bench, "execute_code", json!({"code": code}));
    assert_eq!(ran["output"], "1|one\n2|\none\ntheirs\nown\n", "{ran}");
    assert_eq!(bench.text("made.txt"), None);
    assert_eq!(bench.text("d/own.txt").as_deref(), Some("theirs\nown\n"));
}

/// Says what these names show, again and again, as soon as they show something else.
fn watcher(names: &str) -> String {
    format!(
        "last=; while :; do now=$(for f in {names}; do cat $f 2>/dev/null || echo none; done | tr '\\n' ,); \
         if [ \"$now\" != \"$last\" ]; then echo \"<$now>\"; last=$now; fi; sleep 0.02; done"
    )
}

#[test]
fn what_others_change_is_seen_by_a_command_that_had_looked_before() {
    let mut bench = Bench::with_files();
    bench.put("a.txt", "one\n");
    bench.put("d/b.txt", "one\n");
    let names = "a.txt d/b.txt d/new.txt n/m/deep.txt";
    let id = started(&mut bench, &watcher(names), "<one,one,none,none,>");
    let write = |bench: &mut Bench, path: &str, content: &str| {
        let args = json!({"path": path, "content": content});
        let written = bench.call("write_file", args);
        assert_eq!(written.fate, Fate::Ran, "{}", written.text);
    };
    write(&mut bench, "a.txt", "two\n");
    says(&mut bench, &id, "<two,one,none,none,>");
    write(&mut bench, "d/new.txt", "new\n");
    says(&mut bench, &id, "<two,one,new,none,>");
    assert_eq!(
        printed(
            &mut bench,
            "rm d/b.txt; mkdir -p n/m; echo deep > n/m/deep.txt"
        ),
        ""
    );
    says(&mut bench, &id, "<two,none,new,deep,>");
    assert_eq!(
        printed(
            &mut bench,
            "echo back > d/b.txt; rm -r n; mv a.txt other.txt"
        ),
        ""
    );
    says(&mut bench, &id, "<none,back,new,none,>");
    let patch = "*** Begin Patch\n*** Move File: other.txt -> a.txt\n*** End Patch";
    let patched = bench.call("patch", json!({"mode": "patch", "patch": patch}));
    assert_eq!(patched.fate, Fate::Ran, "{}", patched.text);
    says(&mut bench, &id, "<two,back,new,none,>");
    // None of it is the command's own.
    let before: Vec<Option<String>> = names.split(' ').map(|name| bench.text(name)).collect();
    let report = bench.call("process", json!({"action": "kill", "session_id": id}));
    assert_eq!(
        (report.fate, report.changes.created),
        (Fate::Ran, 0),
        "{}",
        report.text
    );
    let after: Vec<Option<String>> = names.split(' ').map(|name| bench.text(name)).collect();
    assert_eq!(before, after);
}

#[test]
fn a_command_goes_on_from_what_others_made_of_its_files() {
    let mut bench = Bench::with_files();
    let id = started(
        &mut bench,
        "echo one > made.txt; echo fir''st; until [ -e go.txt ]; do sleep 0.02; done; \
         cat made.txt; echo three >> made.txt; echo se''cond; sleep 600",
        "first",
    );
    for (path, content) in [("made.txt", "one\ntwo\n"), ("go.txt", "")] {
        let written = bench.call("write_file", json!({"path": path, "content": content}));
        assert_eq!(written.fate, Fate::Ran, "{}", written.text);
    }
    says(&mut bench, &id, "two\nsecond");
    assert_eq!(printed(&mut bench, "cat made.txt"), "one\ntwo\nthree");
    process(&mut bench, "kill", &id);
    assert_eq!(bench.text("made.txt").as_deref(), Some("one\ntwo\nthree\n"));
}

#[test]
fn what_a_command_watches_tells_it_of_others_changes() {
    let mut bench = Bench::with_files();
    bench.put("src/a.txt", "one\n");
    // The kernel's own watch, as servers have it.
    let code = "import ctypes, os\n\
        libc = ctypes.CDLL(None, use_errno=True)\n\
        fd = libc.inotify_init1(0)\n\
        libc.inotify_add_watch(fd, b'src', 0x80 | 0x100 | 0x200 | 0x8)\n\
        print('watching', flush=True)\n\
        while True:\n\
        \x20   os.read(fd, 65536)\n\
        \x20   print('saw', open('src/a.txt').read().strip(), flush=True)\n";
    bench.put("watch.py", code);
    let id = started(&mut bench, "python3 watch.py", "watching");
    let written = bench.call(
        "write_file",
        json!({"path": "src/a.txt", "content": "two\n"}),
    );
    assert_eq!(written.fate, Fate::Ran, "{}", written.text);
    says(&mut bench, &id, "saw two");
    process(&mut bench, "kill", &id);
}

#[test]
fn a_script_sees_what_the_tools_it_calls_made_of_what_it_had_read() {
    let mut bench = Bench::with_files();
    bench.put("a.txt", "one\n");
    let code = "import os\n\
        from hermes_tools import patch, terminal, write_file\n\
        print(open('a.txt').read(), os.path.exists('b.txt'), os.listdir('.'))\n\
        patch(path='a.txt', old_string='one', new_string='two')\n\
        terminal('echo made > b.txt')\n\
        print(open('a.txt').read(), open('b.txt').read(), sorted(os.listdir('.')))\n\
        open('a.txt', 'a').write('three\\n')\n\
        write_file('b.txt', 'again\\n')\n\
        print(open('b.txt').read(), terminal('cat a.txt; rm a.txt')['output'], os.path.exists('a.txt'))\n";
    let ran = value(&mut bench, "execute_code", json!({"code": code}));
    assert_eq!(
        ran["output"],
        "one\n False ['a.txt']\ntwo\n made\n ['a.txt', 'b.txt']\nagain\n two\nthree False\n",
        "{ran}"
    );
    assert_eq!(
        (bench.text("a.txt"), bench.text("b.txt").as_deref()),
        (None, Some("again\n"))
    );
}

#[test]
fn what_is_kept_from_commands_is_not_brought_to_them() {
    let mut bench = Bench::with_files();
    let (written, pattern) = (
        ("config.toml", 7, Layer::User),
        Pattern::Named("*.sealed".to_owned()),
    );
    let verbs = vec![Verb::FsRead];
    let rule = ConfiguredRule::new("no-keys", Stance::Deny, verbs, pattern, written).unwrap();
    bench.runtime.add_rule(rule).unwrap();
    let id = started(&mut bench, &watcher("new.sealed plain.txt"), "<none,none,>");
    for path in ["new.sealed", "plain.txt"] {
        let written = bench.call("write_file", json!({"path": path, "content": "x\n"}));
        assert_eq!(written.fate, Fate::Ran, "{}", written.text);
    }
    says(&mut bench, &id, "<none,x,>");
    process(&mut bench, "kill", &id);
    assert_eq!(bench.text("new.sealed").as_deref(), Some("x\n"));
}

#[test]
fn a_command_that_waits_for_another_sees_what_that_one_makes() {
    let mut bench = Bench::with_files();
    let id = started(
        &mut bench,
        "echo fir''st; until [ -e go.txt ]; do sleep 0.02; done; sleep 0.3; echo answer > answer.txt; sleep 600",
        "first",
    );
    // It goes on only after this was written, and while the next command runs.
    goes_on(&mut bench);
    let waits =
        "until [ -e answer.txt ]; do sleep 0.02; done; cat answer.txt; echo mine > mine.txt";
    assert_eq!(printed(&mut bench, waits), "answer");
    assert_eq!(bench.text("mine.txt").as_deref(), Some("mine\n"));
    process(&mut bench, "kill", &id);
    assert_eq!(bench.text("answer.txt").as_deref(), Some("answer\n"));
}

#[test]
fn a_command_that_others_run_beside_is_kept_whole_or_not_at_all() {
    let mut bench = Bench::with_files();
    let id = started(&mut bench, "echo fir''st; sleep 600", "first");
    let report = bench.call(
        "terminal",
        json!({"command": "echo x > early.txt; sleep 0.5; echo SECRET=1 > .env"}),
    );
    assert_eq!(
        report.fate,
        Fate::RanDiscarded(DenialCode::RejectedByUser),
        "{}",
        report.text
    );
    assert_eq!((bench.text("early.txt"), bench.text(".env")), (None, None));
    process(&mut bench, "kill", &id);
}

#[test]
fn a_command_that_has_only_begun_sees_what_is_written_then() {
    let mut bench = Bench::with_files();
    for turn in 0..10 {
        let (asks, answers) = (format!("q{turn}.txt"), format!("a{turn}.txt"));
        let command =
            format!("until [ -e {asks} ]; do sleep 0.1; done; cat {asks} > {answers}; sleep 60");
        let started = bench.call("terminal", json!({"command": command, "background": true}));
        assert_eq!(started.fate, Fate::Ran, "{}", started.text);
        std::thread::sleep(Duration::from_millis(turn * 3));
        let written = bench.call("write_file", json!({"path": asks, "content": "what\n"}));
        assert_eq!(written.fate, Fate::Ran, "{}", written.text);
        let waits = format!(
            "for i in $(seq 100); do [ -s {answers} ] && break; sleep 0.1; done; cat {answers}"
        );
        assert_eq!(printed(&mut bench, &waits), "what");
    }
}

#[test]
fn what_somebody_saves_by_other_means_is_seen_by_a_command_in_the_background() {
    let mut bench = Bench::with_files();
    bench.put("src/a.txt", "one\n");
    let names = "src/a.txt src/b.txt new/deep/c.txt";
    let id = started(&mut bench, &watcher(names), "<one,none,none,>");
    // As an editor does, in place, beside it, and in a directory that is new.
    bench.put("src/a.txt", "two\n");
    says(&mut bench, &id, "<two,none,none,>");
    bench.put("src/b.tmp", "made\n");
    let at = |name: &str| bench.workspace.join(name);
    std::fs::rename(at("src/b.tmp"), at("src/b.txt")).unwrap();
    says(&mut bench, &id, "<two,made,none,>");
    bench.put("new/deep/c.txt", "deep\n");
    says(&mut bench, &id, "<two,made,deep,>");
    bench.put("new/deep/c.txt", "deeper\n");
    std::fs::remove_file(bench.workspace.join("src/a.txt")).unwrap();
    says(&mut bench, &id, "<none,made,deeper,>");
    let report = bench.call("process", json!({"action": "kill", "session_id": id}));
    assert_eq!(
        (report.fate, report.questions.len()),
        (Fate::Ran, 0),
        "{}",
        report.text
    );
    assert_eq!(bench.text("src/a.txt"), None);
    assert_eq!(bench.text("new/deep/c.txt").as_deref(), Some("deeper\n"));
}

#[test]
fn what_a_command_gave_another_name_is_not_gone_before_it_is_there() {
    let mut bench = Bench::with_files();
    let long = "x".repeat(9 << 20);
    bench.put("long.bin", &long);
    bench.put("plain.conf", "SECRET=1\n");
    bench.put("gone.txt", "gone\n");
    let id = started(
        &mut bench,
        "mv plain.conf .env; rm gone.txt; echo x > new.txt; echo fir''st; \
         until [ -e go.txt ]; do sleep 0.02; done; mv .env plain.conf; mv long.bin d.bin; echo se''cond; sleep 600",
        "first",
    );
    // What is asked about in the end, and what is long, is not there yet.
    assert_eq!(printed(&mut bench, "cat new.txt plain.conf"), "x\nSECRET=1");
    assert_eq!(bench.text(".env"), None);
    goes_on(&mut bench);
    says(&mut bench, &id, "second");
    assert_eq!(
        printed(&mut bench, "ls *.bin *.conf"),
        "long.bin\nplain.conf"
    );
    let killed = bench.call("process", json!({"action": "kill", "session_id": id}));
    assert_eq!(killed.fate, Fate::Ran, "{}", killed.text);
    assert_eq!(bench.text("d.bin").map(|text| text.len()), Some(long.len()));
    assert_eq!(
        (bench.text("long.bin"), bench.text("gone.txt")),
        (None, None)
    );
}

#[test]
fn what_is_moved_to_and_fro_is_there_in_the_end() {
    let mut bench = Bench::with_files();
    bench.put("a/f", "f\n");
    let id = started(
        &mut bench,
        "mkdir b c; echo fir''st; \
         while mv a/f b/f && mv b/f c/f && mv c/f a/f; do :; done",
        "first",
    );
    for _ in 0..200 {
        let read = bench.call("read_file", json!({"path": "none"}));
        assert_ne!(read.fate, Fate::Ran, "{}", read.text);
    }
    process(&mut bench, "kill", &id);
    let names = ["a/f", "b/f", "c/f"].into_iter();
    let there: Vec<String> = names.filter_map(|name| bench.text(name)).collect();
    assert_eq!(there, ["f\n"]);
}

#[test]
fn a_file_that_grows_is_seen_as_it_was_and_hinders_no_other() {
    let mut bench = Bench::with_files();
    let id = started(
        &mut bench,
        "head -c 4000000 /dev/zero > log; (while :; do echo line >> log; done) & \
         until [ $(stat -c %s log) -gt 4000000 ]; do sleep 0.02; done; echo quiet > quiet.txt; echo fir''st; wait",
        "first",
    );
    for round in 0..5 {
        if round > 0 {
            process(&mut bench, "poll", &id);
        }
        let read = bench.call("read_file", json!({"path": "quiet.txt"}));
        assert_eq!(read.fate, Fate::Ran, "{}", read.text);
        let log = bench.text("log").unwrap();
        assert!(
            log.trim_start_matches('\0')
                .lines()
                .all(|line| line == "line")
        );
        assert!(log.len() > 4_000_000, "{}", log.len());
        std::fs::remove_file(bench.workspace.join("quiet.txt")).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let rewritten = bench.call("terminal", json!({"command": "echo again > quiet.txt"}));
        assert_eq!(rewritten.fate, Fate::Ran, "{}", rewritten.text);
    }
    process(&mut bench, "kill", &id);
}

#[test]
fn what_the_kernel_took_no_note_of_is_the_commands_own_change() {
    let mut bench = Bench::with_files();
    let code = "import mmap, os, time\n\
        file = open('mapped', 'wb+')\n\
        file.write(b'a' * 4096)\n\
        file.flush()\n\
        mapped = mmap.mmap(file.fileno(), 4096)\n\
        mapped[0:1] = b'a'\n\
        print('first', flush=True)\n\
        while not os.path.exists('go'):\n\
        \x20   time.sleep(0.02)\n\
        mapped[0:4] = b'MINE'\n\
        print('second', flush=True)\n\
        time.sleep(600)\n";
    bench.put("map.py", code);
    let id = started(&mut bench, "python3 map.py", "first");
    let read = bench.call("read_file", json!({"path": "mapped"}));
    assert_eq!(read.fate, Fate::Ran, "{}", read.text);
    bench.put("go", "");
    says(&mut bench, &id, "second");
    let written = bench.call(
        "write_file",
        json!({"path": "mapped", "content": "theirs\n"}),
    );
    assert_eq!(written.fate, Fate::Ran, "{}", written.text);
    let report = bench.call("process", json!({"action": "kill", "session_id": id}));
    assert_eq!(
        report.fate,
        Fate::RanDiscarded(DenialCode::ChangedSinceShown),
        "{}",
        report.text
    );
    assert_eq!(bench.text("mapped").as_deref(), Some("theirs\n"));
}

#[test]
fn what_is_kept_from_commands_is_not_brought_to_them_in_a_directory_either() {
    let mut bench = Bench::with_files();
    let (written, pattern) = (
        ("config.toml", 7, Layer::User),
        Pattern::Named("*.sealed".to_owned()),
    );
    let verbs = vec![Verb::FsRead];
    let rule = ConfiguredRule::new("no-keys", Stance::Deny, verbs, pattern, written).unwrap();
    bench.runtime.add_rule(rule).unwrap();
    let id = started(
        &mut bench,
        &watcher("new/deep/a.sealed new/deep/plain.txt"),
        "<none,none,>",
    );
    bench.put("made/deep/a.sealed", "x\n");
    bench.put("made/deep/plain.txt", "x\n");
    let at = |name: &str| bench.workspace.join(name);
    std::fs::rename(at("made"), at("new")).unwrap();
    says(&mut bench, &id, "<none,x,>");
    let log = process(&mut bench, "log", &id)["output"].to_string();
    assert!(!log.contains("<x,"), "{log}");
    let report = bench.call("process", json!({"action": "kill", "session_id": id}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert_eq!(bench.text("new/deep/a.sealed").as_deref(), Some("x\n"));
}

#[test]
fn what_cannot_be_carried_over_is_said_once_and_stands_as_soon_as_it_can() {
    let mut bench = Bench::with_files();
    let in_the_way = bench.state.join("journal");
    std::fs::write(&in_the_way, "").unwrap();
    let id = started(
        &mut bench,
        "echo made > made.txt; echo fir''st; sleep 600",
        "first",
    );
    let begun = Instant::now();
    let mut looks = 0;
    while looks < 50 || begun.elapsed() < Duration::from_millis(700) {
        process(&mut bench, "poll", &id);
        looks += 1;
    }
    assert_eq!(bench.text("made.txt"), None);
    let ledger = std::fs::read(bench.state.join("ledger.jsonl")).unwrap();
    let ledger = String::from_utf8_lossy(&ledger);
    let said = ledger.matches("is not carried over").count();
    assert_eq!(said, 1, "in {looks} looks");
    std::fs::remove_file(in_the_way).unwrap();
    while bench.text("made.txt").is_none() {
        assert!(begun.elapsed() < PATIENCE);
        process(&mut bench, "poll", &id);
        std::thread::sleep(Duration::from_millis(10));
    }
    let killed = process(&mut bench, "kill", &id);
    assert_eq!(killed["status"], "killed", "{killed}");
    assert_eq!(bench.text("made.txt").as_deref(), Some("made\n"));
}
