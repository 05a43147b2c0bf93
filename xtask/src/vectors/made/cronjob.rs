//! `cronjob`: the list of jobs, made, looked at, changed and emptied.

use serde_json::{Value, json};

use super::draw::Draw;
use super::service;
use crate::vectors::draft::{Agent, Draft};
use crate::vectors::emit::Suite;

const SEED: &str = "cronjob-1";
const CRON: &str = "/home/u/.hermes/cron";

/// The suite.
pub fn suite() -> anyhow::Result<Suite> {
    let mut draw = Draw::seeded(SEED);
    let mut cases = Vec::new();
    for (count, family) in [
        (40, created as fn(&mut Draw) -> anyhow::Result<Draft>),
        (40, kept),
        (24, schedules),
        (16, odd),
        (8, unpinned),
    ] {
        for _ in 0..count {
            cases.push(family(&mut draw)?);
        }
    }
    let mut defaults = super::defaults(SEED);
    defaults["held"] = json!([
        {"id": "ws", "verb": "fs.*", "on": super::WORKSPACE},
        {"id": "cron", "verb": "fs.*", "on": CRON},
    ]);
    defaults["world"] = json!({
        "cwd": super::WORKSPACE,
        "files": [
            {"path": CRON, "dir": true, "mode": 0o700},
            {"path": "/home/u/.hermes/scripts", "dir": true, "mode": 0o700},
            {"path": format!("{CRON}/output"), "dir": true, "mode": 0o700},
        ],
    });
    Ok(Suite {
        name: "cronjob",
        description: "Jobs for later: made, listed, changed, paused, resumed and removed, in a directory that is held.",
        flags: vec![
            service("created", "a job is made and seen in the list"),
            service("kept", "a job is changed, paused, resumed, removed"),
            service(
                "unpinned",
                "a job that names no model, for which Hermes looks one up",
            ),
            service("schedule", "a schedule in words, and what is none"),
            service(
                "odd-argument",
                "an argument of another type than declared, missing or unknown",
            ),
        ],
        defaults,
        rows: cases.len(),
        cases: super::numbered("cronjob", cases),
        left_out: Vec::new(),
    })
}

const GOOD: [&str; 12] = [
    "30m",
    "every 2h",
    "0 9 * * *",
    "*/15 * * * *",
    "every 1 day",
    "2099-06-01T09:00:00",
    "2099-06-01",
    "1d",
    "0 0 1,15 * 1-5",
    " Every 90 minutes ",
    "2099-06-01T09:00Z",
    "0 22-2 * * 7",
];

fn prompt(draw: &mut Draw) -> anyhow::Result<&'static str> {
    draw.one(&[
        "Summarise the notes of the day.",
        "Look whether the build is green and say so in one line. If it is not, name the test that failed and who changed the file last, nothing else.",
        "Gr\u{fc}\u{df}e an das Team \u{1f600}",
        "line one\nline two",
    ])
}

fn creation(draw: &mut Draw) -> anyhow::Result<Value> {
    let mut args = json!({
        "action": draw.one(&["create", "create", " Create "])?,
        "schedule": draw.one(&GOOD)?,
        "prompt": prompt(draw)?,
        "model": a_model(),
    });
    if draw.chance(50)? {
        args["name"] = draw.one(&[
            json!("brief"),
            json!("The daily brief"),
            json!("caf\u{e9}"),
            json!(""),
        ])?;
    }
    if draw.chance(30)? {
        args["repeat"] = draw.one(&[json!(3), json!("2"), json!(0), json!(-1), json!(1)])?;
    }
    if draw.chance(30)? {
        args["skills"] = draw.one(&[
            json!(["tea"]),
            json!(["a", " b ", "a"]),
            json!("tea"),
            json!([]),
        ])?;
    }
    if draw.chance(30)? {
        args["deliver"] = draw.one(&[
            json!("local"),
            json!("LOCAL"),
            json!("origin"),
            json!(["local"]),
            json!(""),
        ])?;
    }
    if draw.chance(20)? {
        args["workdir"] = draw.one(&[json!(super::WORKSPACE), json!(""), json!("proj")])?;
    }
    if draw.chance(20)? {
        args["enabled_toolsets"] = draw.one(&[json!(["file", "web"]), json!("file"), json!([])])?;
    }
    Ok(args)
}

fn created(draw: &mut Draw) -> anyhow::Result<Draft> {
    let mut draft = Draft::made().flag("created");
    for _ in 0..1 + draw.below(2)? {
        draft = draft.call("cronjob", &creation(draw)?);
    }
    Ok(draft.call("cronjob", &json!({"action": "list"})))
}

/// Where none is named, Hermes looks for one among its credentials.
fn a_model() -> Value {
    json!({"model": "m-1", "provider": "p"})
}

fn unpinned(draw: &mut Draw) -> anyhow::Result<Draft> {
    let mut args = creation(draw)?;
    args["model"] = draw.one(&[json!(null), json!({"model": "m-1"}), json!("m-1")])?;
    Ok(Draft::made()
        .flag("unpinned")
        .call("cronjob", &args)
        .call("cronjob", &json!({"action": "list"})))
}

/// The job the first call made.
fn the_job() -> Value {
    json!({"$from": 1, "at": "/job_id"})
}

fn kept(draw: &mut Draw) -> anyhow::Result<Draft> {
    let mut draft = Draft::made().flag("kept").call(
        "cronjob",
        &json!({"action": "create", "schedule": draw.one(&GOOD)?, "prompt": prompt(draw)?, "name": "brief", "model": a_model()}),
    );
    for _ in 0..2 + draw.below(3)? {
        let mut args = match draw.below(6)? {
            0 => json!({"action": "pause"}),
            1 => json!({"action": "pause", "reason": "on holiday"}),
            2 => json!({"action": "resume"}),
            3 => json!({"action": "remove"}),
            4 => json!({"action": "update", "schedule": draw.one(&GOOD)?}),
            _ => draw.one(&[
                json!({"action": "update"}),
                json!({"action": "update", "prompt": "Say good morning."}),
                json!({"action": "update", "name": "other"}),
                json!({"action": "update", "repeat": 5}),
                json!({"action": "update", "repeat": 0}),
                json!({"action": "update", "skills": ["x", "y"]}),
                json!({"action": "update", "skills": []}),
                json!({"action": "update", "deliver": "local", "workdir": ""}),
                json!({"action": "update", "workdir": "nowhere"}),
                json!({"action": "update", "no_agent": true}),
                json!({"action": "update", "context_from": ["nobody"]}),
                json!({"action": "update", "enabled_toolsets": ["web"]}),
                json!({"action": "update", "schedule": "soon"}),
            ])?,
        };
        args["job_id"] = if draw.chance(70)? {
            the_job()
        } else {
            draw.one(&[json!("brief"), json!("BRIEF"), json!("nothing")])?
        };
        draft = draft.call("cronjob", &args);
    }
    Ok(draft.call(
        "cronjob",
        &json!({"action": "list", "include_disabled": draw.chance(50)?}),
    ))
}

fn schedules(draw: &mut Draw) -> anyhow::Result<Draft> {
    let schedule = draw.one(&[
        "soon",
        "every now",
        "Tomorrow",
        "30",
        "every",
        "2026-13-01",
        "2026-02-30T10:00",
        "2099-02-03T24:00",
        "2020-01-01T00:00:00",
        "61 * * * *",
        "* * 0 * *",
        "*/0 * * * *",
        "1,,2 * * * *",
        "* * * * * * * *",
        "0 9 * * mon",
        "0 0 31 2 *",
        "2099-2-3",
        "0 9 * *",
        "5m5s",
        "10 minutes",
    ])?;
    Ok(Draft::made()
        .flag("schedule")
        .call(
            "cronjob",
            &json!({"action": "create", "schedule": schedule, "prompt": "x", "model": a_model()}),
        )
        .call("cronjob", &json!({"action": "list"})))
}

fn odd(draw: &mut Draw) -> anyhow::Result<Draft> {
    let args = draw.one(&[
        json!({}),
        json!({"action": null}),
        json!({"action": 5}),
        json!({"action": "fly"}),
        json!({"action": "fly", "job_id": "x"}),
        json!({"action": "create"}),
        json!({"action": "create", "schedule": "30m"}),
        json!({"action": "create", "schedule": 30, "prompt": "x"}),
        json!({"action": "create", "schedule": "30m", "no_agent": true}),
        json!({"action": "create", "schedule": "30m", "prompt": "x", "script": "/bin/true"}),
        json!({"action": "create", "schedule": "30m", "prompt": "x", "script": "../up.sh"}),
        json!({"action": "create", "schedule": "30m", "prompt": "x", "context_from": ["nobody"]}),
        json!({"action": "create", "schedule": "30m", "prompt": "x", "repeat": "often"}),
        json!({"action": "create", "schedule": "30m", "prompt": "x", "base_url": "http://x"}),
        json!({"action": "pause"}),
        json!({"action": "remove", "job_id": "nobody"}),
        json!({"action": "run", "job_id": "nobody"}),
        json!({"action": "update", "job_id": 5}),
        json!({"action": "list", "include_disabled": false, "unknown": 1}),
    ])?;
    Ok(Draft::made()
        .flag("odd-argument")
        .call("cronjob", &args)
        .expect(
            Agent::Either,
            "an argument nobody can use is told, and nothing is kept",
        ))
}
