//! Runs of jobs: what other jobs came to goes into them as data, and whoever waits
//! for one can call it off.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::{
    cron::{call, job, with_job},
    support::{
        asleep::{is_asleep, mark},
        editor::{Editor, model},
        home::{Home, put_program},
    },
};

/// What a caller needs to have jobs run.
const GRANTS: [&str; 6] = [
    "--grant",
    "fs.create=~/.hermes/cron",
    "--grant",
    "fs.modify=~/.hermes/cron",
    "--grant",
    "fs.read=~/.hermes/cron",
];

fn jobs(home: &Home) -> Value {
    let file = home.path().join(".hermes/cron/jobs.json");
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

pub fn set(home: &Home, at: usize, field: &str, value: Value) {
    let mut all = jobs(home);
    all["jobs"][at][field] = value;
    let file = home.path().join(".hermes/cron/jobs.json");
    std::fs::write(file, all.to_string()).unwrap();
}

/// What is kept of the last run of a job.
fn kept(home: &Home, id: &str) -> String {
    let dir = home.path().join(".hermes/cron/output").join(id);
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    std::fs::read_to_string(files.last().unwrap()).unwrap()
}

#[test]
fn what_another_job_came_to_is_read_as_data_that_no_grant_vouches_for() {
    let (home, first) = with_job("every 1h");
    home.ok(&["cron", "grant", &first, "fs.create=."]);
    std::fs::write(
        home.path().join(".hermes/scripts/note.sh"),
        "echo three new\n",
    )
    .unwrap();
    let write = json!([[["write_file", {"path": "note.txt", "content": "x\n"}]], "wrote"]);
    let (code, made) = call(
        &home,
        &json!({
            "action": "create", "schedule": "every 1h", "prompt": write.to_string(),
            "workdir": home.project(), "context_from": [first],
        }),
    );
    assert_eq!(code, Some(0), "{made}");
    let id = made["job_id"].as_str().unwrap().to_owned();
    let base = model();
    let due = |at: usize| {
        let then = "2026-01-01T00:00:00+00:00";
        set(&home, at, "next_run_at", then.into());
        home.run(&["cron", "tick", "--model", "m", "--base-url", &base])
    };
    let note = home.project().join("note.txt");
    // Whoever grants it something sees what it will have read.
    let said = home.ok(&["cron", "grant", &id, "fs.create=."]);
    assert!(
        said.contains(&format!("is told what came last of: {first}")),
        "{said}"
    );
    // There is nothing yet, so there is nothing it has read.
    set(&home, 0, "enabled", false.into());
    let ran = due(1);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!kept(&home, &id).contains("## Output from job"));
    std::fs::remove_file(&note).unwrap();

    set(&home, 0, "enabled", true.into());
    let ran = due(0);
    assert!(ran.out.contains("three new"), "{ran:?}");
    std::thread::sleep(Duration::from_millis(1100));
    let ran = due(1);
    // Its model says that it wrote, and its user reads that it did not, and what lets it.
    assert_eq!(ran.code, Some(77), "{ran:?}");
    for part in [
        format!("job {id}: a call of `write_file` was refused: "),
        format!("`hermitcrab cron grant {id} VERB=PLACE` grants"),
    ] {
        assert!(ran.err.contains(&part), "{part}: {ran:?}");
    }
    let document = kept(&home, &id);
    let told = format!("## Output from job '{first}'\n");
    assert!(
        document.contains(&told) && document.contains("\nthree new\n```\n\n"),
        "{document}"
    );
    // Its words may have been written by anybody, so the grant does not do.
    assert!(!note.exists());
    let own = home.state("jobs").join(&id);
    let did = home.ok(&["audit", "--state-dir", own.to_str().unwrap()]);
    assert!(
        did.contains(&format!("what came last of job {first} is read")),
        "{did}"
    );
}

/// What was agreed to is the text of its program, and whoever reads that decides what it does.
#[test]
fn a_jobs_program_is_read_by_no_program_of_the_directory_it_works_in() {
    let (home, id) = with_job("every 1h");
    home.ok(&["cron", "grant", &id, "fs.create=."]);
    let dir = home.project().join("bin");
    std::fs::create_dir(&dir).unwrap();
    put_program(&dir.join("bash"), "#!/bin/sh\necho other > other.txt\n");
    let mut tick = home.command(&home.project(), &["cron", "tick"]);
    let path = format!("{}:/usr/bin:/bin", dir.display());
    let ran = tick.env("PATH", path).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert!(!home.project().join("other.txt").exists());
    assert!(home.project().join("note.txt").exists());
}

/// A job that sleeps for as long as no other process does.
fn sleeper() -> (Home, String, String) {
    let (home, id) = with_job("every 1h");
    home.ok(&["cron", "grant", &id, "fs.create=."]);
    let mark = mark();
    let script = format!("echo began > note.txt\nsleep {mark}\n");
    std::fs::write(home.path().join(".hermes/scripts/note.sh"), script).unwrap();
    home.ok(&["cron", "grant", &id, "fs.create=."]);
    (home, id, mark)
}

#[track_caller]
fn within(time: Duration, what: impl Fn() -> bool) {
    let until = Instant::now() + time;
    while !what() {
        assert!(Instant::now() < until, "it takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const LONG: Duration = Duration::from_secs(60);

/// What is noted of a job that was called off; and nothing it did is left.
#[track_caller]
fn was_called_off(home: &Home, id: &str, why: &str) {
    assert_eq!(job(home)["last_status"], "error");
    let noted = jobs(home)["jobs"][0].clone();
    assert_eq!(noted["last_error"], why, "{noted}");
    assert_eq!(noted["fire_claim"], Value::Null, "{noted}");
    assert!(kept(home, id).contains(why), "{}", kept(home, id));
    assert!(!home.project().join("note.txt").exists());
}

fn started(home: &Home, arguments: &[&str]) -> Child {
    home.command(&home.project(), arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Types ^C where a program runs, and waits for its end.
fn interrupted(child: Child) -> (Option<i32>, String) {
    let group = Pid::from_child(&child);
    let began = Instant::now();
    kill_process_group(group, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
    let said = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), said)
}

const CALLED_OFF: &str = "Script was interrupted before it finished";

#[test]
fn an_interrupt_at_the_terminal_ends_a_job_that_a_call_runs_and_its_record_says_so() {
    let (home, id, mark) = sleeper();
    let run = json!({"action": "run", "job_id": id}).to_string();
    let child = started(
        &home,
        &[&["call"][..], &GRANTS, &["cronjob", &run]].concat(),
    );
    within(LONG, || is_asleep(&mark));
    let (_, said) = interrupted(child);
    assert!(!is_asleep(&mark));
    let said: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!(said["job"]["execution_error"], CALLED_OFF, "{said}");
    was_called_off(&home, &id, CALLED_OFF);
}

#[test]
fn an_interrupt_at_the_terminal_ends_the_conversation_that_has_a_job_run() {
    let (home, id, mark) = sleeper();
    let run = json!([[["cronjob", {"action": "run", "job_id": id}]], "went on"]).to_string();
    let base = model();
    let talk = ["chat", "--model", "m", "--base-url", &base];
    let child = started(&home, &[&talk[..], &GRANTS, &[&run]].concat());
    within(LONG, || is_asleep(&mark));
    let (code, said) = interrupted(child);
    assert_eq!(code, Some(1));
    assert!(!is_asleep(&mark) && !said.contains("went on"), "{said}");
    was_called_off(&home, &id, CALLED_OFF);
}

#[test]
fn an_interrupt_ends_the_job_that_is_due_and_leaves_the_others_for_later() {
    let (home, id, mark) = sleeper();
    let (code, made) = call(
        &home,
        &json!({
            "action": "create", "schedule": "every 1h", "no_agent": true, "script": "later.sh",
            "workdir": home.project(),
        }),
    );
    assert_eq!(code, Some(0), "{made}");
    let then = "2026-01-01T00:00:00+00:00";
    set(&home, 1, "next_run_at", then.into());
    let child = started(&home, &["cron", "tick"]);
    within(LONG, || is_asleep(&mark));
    let (code, _) = interrupted(child);
    assert_eq!(code, Some(1));
    assert!(!is_asleep(&mark));
    was_called_off(&home, &id, CALLED_OFF);
    assert_eq!(jobs(&home)["jobs"][1]["next_run_at"], then);
}

/// Whoever changes or puts off a job while another runs means its next run.
#[test]
fn a_job_is_run_as_it_is_on_the_list_when_its_turn_comes() {
    let (home, _) = with_job("every 1h");
    let scripts = home.path().join(".hermes/scripts");
    let waits = "echo began\nuntil [ -e go.txt ]; do sleep 0.05; done\n";
    std::fs::write(scripts.join("note.sh"), waits).unwrap();
    for (name, said) in [("old.sh", "the old one"), ("new.sh", "the new one")] {
        std::fs::write(scripts.join(name), format!("echo {said}\n")).unwrap();
    }
    let later: Vec<String> = ["changed", "put off", "paused"]
        .iter()
        .map(|name| {
            let (code, made) = call(
                &home,
                &json!({
                    "action": "create", "schedule": "every 1h", "no_agent": true, "script": "old.sh",
                    "name": name, "workdir": home.project(),
                }),
            );
            assert_eq!(code, Some(0), "{made}");
            made["job_id"].as_str().unwrap().to_owned()
        })
        .collect();
    let then = "2026-01-01T00:00:00+00:00";
    for at in 1..=3 {
        set(&home, at, "next_run_at", then.into());
    }
    let child = started(&home, &["cron", "tick"]);
    within(LONG, || jobs(&home)["jobs"][0]["fire_claim"].is_object());
    set(&home, 1, "script", "new.sh".into());
    let put_off = "2099-01-01T00:00:00+00:00";
    set(&home, 2, "next_run_at", put_off.into());
    set(&home, 3, "enabled", false.into());
    std::fs::write(home.project().join("go.txt"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let noted = jobs(&home);
    let noted = |at: usize| noted["jobs"][at].clone();
    assert_eq!(noted(0)["last_status"], "ok", "{}", noted(0));
    assert_eq!(noted(1)["last_status"], "ok", "{}", noted(1));
    let said = kept(&home, &later[0]);
    assert!(
        said.contains("the new one") && !said.contains("the old one"),
        "{said}"
    );
    assert_eq!(noted(2)["next_run_at"], put_off);
    for at in [2, 3] {
        assert_eq!(noted(at)["last_status"], Value::Null, "{}", noted(at));
        assert_eq!(noted(at)["fire_claim"], Value::Null, "{}", noted(at));
    }
}

#[test]
fn an_editors_cancel_ends_a_job_that_its_turn_runs() {
    let (home, id, mark) = sleeper();
    let Home { dir } = home;
    let mut editor = Editor::start_with(&GRANTS, dir);
    editor.initialize(false);
    let session = editor.open();
    let run = json!([[["cronjob", {"action": "run", "job_id": id}]], "went on"]);
    let turn = editor.begin(&session, &run);
    within(LONG, || is_asleep(&mark));
    let began = Instant::now();
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.result(turn, &[])["stopReason"], "cancelled");
    assert!(began.elapsed() < LONG && !is_asleep(&mark));
    // The next turn is not called off by the cancel of this one.
    std::fs::write(
        editor.dir.path().join(".hermes/scripts/note.sh"),
        "echo again\n",
    )
    .unwrap();
    let noted = std::fs::read_to_string(editor.dir.path().join(".hermes/cron/jobs.json")).unwrap();
    assert!(noted.contains(CALLED_OFF), "{noted}");
    // What was told of the first run is data, so its grants do not do any more.
    let yes = vec![json!("allow-session"); 4];
    let turn = editor.prompt(&session, &run, &yes);
    assert_eq!(turn["stopReason"], "end_turn");
    let noted = std::fs::read_to_string(editor.dir.path().join(".hermes/cron/jobs.json")).unwrap();
    assert!(!noted.contains(CALLED_OFF), "{noted}");
}

#[test]
fn an_editors_cancel_ends_the_wait_for_the_model_of_a_job() {
    let (home, id) = with_job("every 1h");
    for (field, value) in [
        ("script", Value::Null),
        ("no_agent", false.into()),
        ("prompt", json!([{"wait": true}]).to_string().into()),
    ] {
        set(&home, 0, field, value);
    }
    let Home { dir } = home;
    let mut editor = Editor::start_with(&GRANTS, dir);
    editor.initialize(false);
    let session = editor.open();
    let run = json!([[["cronjob", {"action": "run", "job_id": id}]], "went on"]);
    let turn = editor.begin(&session, &run);
    let own = editor
        .dir
        .path()
        .join(".local/state/hermitcrab/jobs")
        .join(&id);
    // What is sent is on record before it is.
    within(LONG, || {
        std::fs::read_to_string(own.join("ledger.jsonl"))
            .is_ok_and(|ledger| ledger.contains("model.send model m"))
    });
    let began = Instant::now();
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.result(turn, &[])["stopReason"], "cancelled");
    assert!(began.elapsed() < Duration::from_secs(30));
    let noted = std::fs::read_to_string(editor.dir.path().join(".hermes/cron/jobs.json")).unwrap();
    assert!(
        noted.contains("InterruptedError: Cron job 'note' was stopped before it finished"),
        "{noted}"
    );
}

#[test]
fn a_job_reads_no_directory_that_nobody_agreed_to() {
    let home = Home::new();
    for dir in [".hermes/scripts", ".hermes/cron", "private"] {
        std::fs::create_dir_all(home.path().join(dir)).unwrap();
    }
    let private = home.path().join("private");
    std::fs::write(private.join("diary.txt"), "nobody's business\n").unwrap();
    std::fs::write(
        home.path().join(".hermes/scripts/read.sh"),
        "cat diary.txt\n",
    )
    .unwrap();
    // Whoever may write the list of jobs can write there where each works.
    let make = |at: usize, workdir: &std::path::Path| {
        let (code, made) = call(
            &home,
            &json!({
                "action": "create", "schedule": "every 1h", "prompt": "read", "no_agent": true,
                "script": "read.sh", "workdir": home.project(),
            }),
        );
        assert_eq!(code, Some(0), "{made}");
        set(&home, at, "workdir", workdir.to_str().unwrap().into());
        made["job_id"].as_str().unwrap().to_owned()
    };
    let link = home.project().join("inside");
    std::os::unix::fs::symlink(&private, &link).unwrap();
    let named = make(0, &private);
    let linked = make(1, &link);
    let due = |at: usize| {
        set(&home, at, "next_run_at", "2026-01-01T00:00:00+00:00".into());
        home.run(&["cron", "tick"])
    };
    for (at, id) in [(0, &named), (1, &linked)] {
        let (_, told) = call(&home, &json!({"action": "run", "job_id": id}));
        assert!(!told.to_string().contains("business"), "{told}");
        assert_eq!(told["job"]["execution_success"], false, "{told}");
        let ran = due(at);
        assert_eq!(ran.code, Some(77), "{ran:?}");
        assert!(!ran.out.contains("business"), "{ran:?}");
        let advice = format!("hermitcrab cron grant {id} fs.read=");
        assert!(ran.err.contains(&advice), "{ran:?}");
    }
    // A yes to the job as it is, or to the directory, is one.
    home.ok(&["cron", "grant", &named, "fs.read=../private"]);
    assert!(due(0).out.contains("business"));
    assert_eq!(due(1).code, Some(77));
    // To make files there is another thing than to read them, and a link leads where nobody meant.
    home.configure("[[grants]]\nverb = \"fs.create\"\non = \"~/private\"\n");
    assert_eq!(due(1).code, Some(77));
    std::os::unix::fs::symlink(&private, home.path().join("shelf")).unwrap();
    home.configure("directories = [\"~/shelf\"]\n");
    assert_eq!(due(1).code, Some(77));
    home.configure("directories = [\"~/private\"]\n");
    assert!(due(1).out.contains("business"));
    // What is agreed to is no more than that.
    let above = make(2, home.path().parent().unwrap());
    let ran = due(2);
    assert_ne!(ran.code, Some(0), "{above}: {ran:?}");
}

#[test]
fn a_job_below_where_its_list_is_looked_after_needs_no_word() {
    let home = Home::new();
    for dir in [".hermes/scripts", ".hermes/cron", "proj/sub"] {
        std::fs::create_dir_all(home.path().join(dir)).unwrap();
    }
    std::fs::write(home.path().join(".hermes/scripts/here.sh"), "pwd\n").unwrap();
    let sub = home.project().join("sub").canonicalize().unwrap();
    let (_, made) = call(
        &home,
        &json!({
            "action": "create", "schedule": "every 1h", "prompt": "where", "no_agent": true,
            "script": "here.sh", "workdir": sub,
        }),
    );
    let id = made["job_id"].as_str().unwrap().to_owned();
    let tick = |dir: &std::path::Path| {
        set(&home, 0, "next_run_at", "2026-01-01T00:00:00+00:00".into());
        home.run_in(dir, &["cron", "tick"])
    };
    let ran = tick(&home.project());
    assert!(ran.out.contains("proj/sub"), "{ran:?}");
    // From where no session can work nothing is agreed to by being there.
    let ran = tick(home.path());
    assert_eq!(ran.code, Some(77), "{id}: {ran:?}");
}

/// Whoever writes the list of jobs chooses names, and places that are none.
#[test]
fn what_is_wrong_with_a_job_draws_nothing_whatever_its_list_says() {
    let (home, id) = with_job("every 1h");
    let drawing = "/\u{1b}]52;c;bHM=\u{7}\u{202e}";
    set(&home, 0, "workdir", drawing.into());
    let shown = "/\\u{1b}]52;c;bHM=\\u{7}\\u{202e}";
    let listed = home.ok(&["cron", "list"]);
    assert!(listed.contains(shown), "{listed}");
    let granted = home.run(&["cron", "grant", &id, "fs.read=."]);
    assert_ne!(granted.code, Some(0), "{granted:?}");
    assert!(granted.err.contains(shown), "{granted:?}");
    for said in [listed, granted.out, granted.err] {
        assert!(
            !said.contains('\u{1b}') && !said.contains('\u{202e}'),
            "{said}"
        );
    }
}

#[test]
fn a_job_whose_directory_is_gone_is_listed_with_the_others_and_can_be_removed() {
    let (home, id) = with_job("every 1m");
    let file = home.path().join(".hermes/cron/jobs.json");
    let mut list = jobs(&home);
    let mut other = list["jobs"][0].clone();
    other["id"] = json!("ffffffffffff");
    list["jobs"][0]["workdir"] = json!("/nowhere/at/all");
    list["jobs"].as_array_mut().unwrap().push(other);
    std::fs::write(&file, list.to_string()).unwrap();
    let shown = home.ok(&["cron"]);
    assert!(
        shown.contains("cannot work: cannot use the workspace `/nowhere/at/all`"),
        "{shown}"
    );
    assert!(shown.contains("ffffffffffff"), "{shown}");
    let json = home.ok(&["cron", "--json"]);
    assert_eq!(json.lines().count(), 2, "{json}");
    assert!(json.contains("/nowhere/at/all"), "{json}");
    // From the home, where no session begins, as well.
    assert_eq!(home.run_in(home.path(), &["cron"]).code, Some(0));
    home.ok(&["cron", "remove", &id]);
    let shown = home.ok(&["cron"]);
    assert!(
        !shown.contains(&id) && shown.contains("ffffffffffff"),
        "{shown}"
    );
}

#[test]
fn who_finds_somebody_else_at_the_jobs_runs_none_of_them() {
    let (home, id) = with_job("every 1h");
    home.ok(&["cron", "grant", &id, "fs.create=."]);
    let lock = home.path().join(".hermes/cron/.tick.lock");
    let mut held = std::fs::File::options();
    let held = held.create(true).append(true).open(lock).unwrap();
    held.lock().unwrap();
    let ran = home.run(&["cron", "tick"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("somebody else runs the jobs"), "{ran:?}");
    assert!(!home.project().join("note.txt").exists());
    drop(held);
    home.ok(&["cron", "tick"]);
    assert!(home.project().join("note.txt").exists());
}
