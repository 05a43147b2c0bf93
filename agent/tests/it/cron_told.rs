//! What the commands about jobs tell whoever types them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::json;

use crate::{
    cron::{call, with_job},
    cron_runs::set,
    support::editor::model,
};

#[test]
fn times_are_told_as_a_clock_shows_them_and_to_programs_as_they_are_kept() {
    let (home, _) = with_job("every 1h");
    set(
        &home,
        0,
        "next_run_at",
        "2031-07-08T09:10:11.123456+00:00".into(),
    );
    set(&home, 0, "last_run_at", "2030-07-08T09:10:11+00:00".into());
    set(&home, 0, "last_status", "ok".into());
    let listed = home.ok(&["cron"]);
    let told = |name: &str| {
        let line = listed
            .lines()
            .find_map(|line| line.trim().strip_prefix(name));
        let of = line.unwrap_or_else(|| panic!("no {name} in {listed}"));
        let at = of.split(", ").next().unwrap().trim();
        at.chars()
            .map(|letter| if letter.is_ascii_digit() { '0' } else { letter })
            .collect::<String>()
    };
    assert_eq!((told("next:"), told("last:")), {
        let shape = "0000-00-00 00:00".to_owned();
        (shape.clone(), shape)
    });
    let for_programs = home.ok(&["cron", "--json"]);
    assert!(
        for_programs.contains("2031-07-08T09:10:11.123456+00:00"),
        "{for_programs}"
    );
    set(&home, 0, "next_run_at", "soon".into());
    let listed = home.ok(&["cron"]);
    assert!(listed.contains("next: soon"), "{listed}");
}

#[test]
fn nobody_is_shown_a_job_for_words_that_grant_nothing() {
    let (home, id) = with_job("every 1h");
    let ran = home.run(&["cron", "grant", &id, "nonsense"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""), "{ran:?}");
    assert!(ran.err.contains("nonsense"), "{ran:?}");
    let ran = home.run(&["cron", "grant", &id, "fs.create=."]);
    assert!(
        ran.code == Some(0) && ran.out.contains("prompt:"),
        "{ran:?}"
    );
}

#[test]
fn who_reads_that_a_job_for_one_time_was_refused_is_not_sent_to_grant_it_something() {
    let (home, _) = with_job("every 1h");
    let write = json!([[["write_file", {"path": "n.txt", "content": "x\n"}]], "wrote"]);
    let (code, made) = call(
        &home,
        &json!({
            "action": "create", "schedule": "30m", "prompt": write.to_string(),
            "workdir": home.project(),
        }),
    );
    assert_eq!(code, Some(0), "{made}");
    let id = made["job_id"].as_str().unwrap().to_owned();
    home.ok(&["cron", "grant", &id, "fs.read=."]);
    set(&home, 0, "enabled", false.into());
    set(&home, 1, "next_run_at", "2026-01-01T00:00:00+00:00".into());
    // So late it would not be run at all.
    set(
        &home,
        1,
        "schedule",
        json!({"kind": "interval", "minutes": 30, "display": "30m"}),
    );
    set(&home, 1, "repeat", json!({"times": 1, "completed": 0}));
    let ran = home.run(&["cron", "tick", "--model", "m", "--base-url", &model()]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(
        ran.err
            .contains("and the job is off the list; have it made again"),
        "{ran:?}"
    );
    assert!(!ran.err.contains(&format!("cron grant {id} ")), "{ran:?}");
    assert!(!home.ok(&["cron"]).contains(&id));
}
