//! What is on record of editors' sessions and of jobs, beside a person's own sessions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
    time::SystemTime,
};

use serde_json::json;

use crate::{
    cron::with_job,
    support::{editor::Editor, home::Home},
};

/// A home with a session of a person's, one of an editor's and one of a job; and what these
/// two are called.
pub fn all_kinds() -> (Home, String, String) {
    let (home, job) = with_job("every 1h");
    home.ok(&["cron", "grant", &job, "fs.create=."]);
    assert_eq!(home.run(&["cron", "tick"]).code, Some(0));
    let mut editor = Editor::start_with(&[], home.dir);
    editor.initialize(false);
    let session = editor.open();
    let write = json!([["write_file", {"path": "b.txt", "content": "b\n"}]]);
    editor.prompt(&session, &json!([write]), &[json!("allow-once")]);
    assert_eq!(editor.text("b.txt").as_deref(), Some("b\n"));
    let (code, dir) = editor.hang_up();
    assert_eq!(code, Some(0));
    (Home { dir }, session, job)
}

fn ledger(home: &Home, shelf: &str, id: &str) -> PathBuf {
    home.state(shelf).join(id).join("ledger.jsonl")
}

#[test]
fn the_ledgers_of_editors_and_jobs_are_shown_and_found() {
    let (home, session, job) = all_kinds();
    let shown = home.ok(&["audit"]);
    let jobs = shown.find(&format!("jobs/{job}:\n"));
    let editors = shown.find(&format!("\nacp/{session}:\n"));
    // The editor came last.
    assert!(jobs.is_some() && editors > jobs, "{shown}");
    // By the id an editor knows it by, by how its ledger is called, and as its first record has it.
    let section = &shown[editors.unwrap()..];
    let number = section.split_once("session=").unwrap().1;
    let number = number.split_whitespace().next().unwrap();
    for named in [&*session, &session[..6], &format!("acp/{session}"), number] {
        let found = home.ok(&["audit", "--session", named]);
        assert!(
            found.contains("b.txt") && !found.contains("note.txt"),
            "{named}: {found}"
        );
    }
    let found = home.ok(&["audit", "--session", &job]);
    assert!(
        found.contains("note.txt") && !found.contains("b.txt"),
        "{found}"
    );
    let heads = home.ok(&["audit", "head"]);
    assert_eq!(heads.lines().count(), 3, "{heads}");
    for head in heads.lines() {
        home.ok(&["audit", "verify", "--expect", head]);
    }
    // What a person did since stands at the end.
    home.ok(&["exec", "--", "true"]);
    let shown = home.ok(&["audit"]);
    let (_, end) = shown.rsplit_once("the first ledger:\n").unwrap();
    assert!(
        end.contains(" terminal from ") && !end.contains("acp/"),
        "{end}"
    );
}

#[test]
fn for_programs_each_record_says_which_ledger_it_is_of() {
    let (home, session, job) = all_kinds();
    let told = home.ok(&["audit", "--json"]);
    for (name, path) in [
        (None, home.state("ledger.jsonl")),
        (
            Some(format!("acp/{session}")),
            ledger(&home, "acp", &session),
        ),
        (Some(format!("jobs/{job}")), ledger(&home, "jobs", &job)),
    ] {
        let mut records = Vec::new();
        for line in told.lines() {
            let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
            let its = record.as_object_mut().unwrap().remove("ledger");
            if its == name.clone().map(serde_json::Value::from) {
                records.push(record);
            }
        }
        let file = fs::read_to_string(path).unwrap();
        let file: Vec<serde_json::Value> = file
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(!file.is_empty() && records == file, "{name:?}: {told}");
    }
}

#[test]
fn a_ledger_of_an_editor_or_a_job_that_was_changed_or_removed_is_told() {
    let (home, session, job) = all_kinds();
    let told = home.ok(&["audit", "verify"]);
    for name in [format!("acp/{session}: "), format!("jobs/{job}: ")] {
        let line = told.lines().find(|line| line.starts_with(&name));
        assert!(
            line.is_some_and(|line| line.contains("records, whole")),
            "{told}"
        );
    }
    let heads = home.ok(&["audit", "head"]);
    let doctor = home.run(&["doctor"]).out;
    for line in [
        "ledgers of editors' sessions: 1, whole",
        "ledgers of jobs: 1, whole",
    ] {
        assert!(doctor.lines().any(|said| said == line), "{doctor}");
    }
    for (shelf, id) in [("acp", &session), ("jobs", &job)] {
        let path = ledger(&home, shelf, id);
        let good = fs::read_to_string(&path).unwrap();
        let told = |what: &str| {
            for arguments in [&["audit", "verify"][..], &["doctor"]] {
                let ran = home.run(arguments);
                assert_eq!(ran.code, Some(74), "{arguments:?}: {ran:?}");
                assert!(
                    ran.err.contains(what) && ran.err.contains(path.to_str().unwrap()),
                    "{arguments:?}: {ran:?}"
                );
            }
        };
        fs::write(&path, good.replacen("\"text\":\"", "\"text\":\"x", 1)).unwrap();
        told("was changed");
        fs::write(&path, &good[..=good[..good.len() - 1].rfind('\n').unwrap()]).unwrap();
        told("lacks records it had");
        fs::remove_file(&path).unwrap();
        told("lacks records it had");
        // With all that tells of it, it is missed by whoever kept its head.
        let dir = path.parent().unwrap();
        let aside = home.path().join("aside");
        fs::rename(dir, &aside).unwrap();
        home.ok(&["audit", "verify"]);
        let missed = heads.lines().filter(|head| {
            let ran = home.run(&["audit", "verify", "--expect", head]);
            assert!(matches!(ran.code, Some(0 | 74)), "{ran:?}");
            ran.code == Some(74)
        });
        assert_eq!(missed.count(), 1);
        fs::rename(&aside, dir).unwrap();
        fs::write(&path, &good).unwrap();
        let closed = Command::new("chmod").arg("600").arg(&path).status();
        assert!(closed.unwrap().success());
        home.ok(&["audit", "verify"]);
    }
}

#[test]
fn a_damaged_ledger_of_an_editor_goes_on_after_what_holds_and_the_others_are_left_alone() {
    let (home, session, job) = all_kinds();
    let path = ledger(&home, "acp", &session);
    let good = fs::read_to_string(&path).unwrap();
    let cut = good.replacen("\"kind\":\"answered\"", "\"kind\":\"asked\"", 1);
    assert_ne!(cut, good);
    fs::write(&path, cut).unwrap();
    let jobs = fs::read(ledger(&home, "jobs", &job)).unwrap();
    let done = home.ok(&["doctor", "--repair"]);
    assert!(
        done.contains(&format!("acp/{session}: cut the ledger back")),
        "{done}"
    );
    assert!(!done.contains("jobs/"), "{done}");
    assert_eq!(fs::read(ledger(&home, "jobs", &job)).unwrap(), jobs);
    home.ok(&["audit", "verify"]);
}

#[test]
fn following_shows_what_an_editors_session_does() {
    let (home, session, job) = all_kinds();
    // Of those that are at rest it is seen when they are written again.
    for path in [ledger(&home, "acp", &session), ledger(&home, "jobs", &job)] {
        let file = fs::File::options().append(true).open(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }
    let mut following = Command::new(env!("CARGO_BIN_EXE_hermitcrab"))
        .args(["audit", "--follow"])
        .current_dir(home.project())
        .env_clear()
        .env("HOME", home.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut until = |wanted: &str| lines.by_ref().any(|line| line.unwrap().contains(wanted));
    assert!(until(&format!("acp/{session}:")) && until("jobs/") && until("ended"));
    let mut editor = Editor::start_with(&[], home.dir);
    editor.initialize(false);
    let cwd = editor.workspace();
    let load = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    editor.call("session/load", load);
    let write = json!([["write_file", {"path": "c.txt", "content": "c\n"}]]);
    editor.prompt(&session, &json!([write]), &[json!("allow-once")]);
    assert!(until(&format!("acp/{session}:")) && until("c.txt"));
    following.kill().unwrap();
    following.wait().unwrap();
}
