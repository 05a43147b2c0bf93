//! Lists for programs, asked for as they are asked for by a person.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::support::home::Home;

#[test]
fn a_list_is_given_as_json_where_it_is_shown_without_a_command_as_well() {
    let home = Home::new();
    home.ok(&["caps", "grant", "fs.delete=."]);
    for words in [&["caps", "--json"][..], &["caps", "list", "--json"]] {
        let line: Value = serde_json::from_str(&home.ok(words)).unwrap();
        assert_eq!(line["id"], "standing0", "{words:?}");
    }
    assert!(home.ok(&["caps", "--all"]).contains("standing0"));
    // What there is none of is no words in place of JSON.
    for words in [
        &["remembered", "--json"][..],
        &["cron", "--json"],
        &["servers", "--json"],
    ] {
        assert_eq!(home.ok(words), "", "{words:?}");
    }
    home.configure("[servers.notes]\nurl = \"https://notes.example.com/mcp\"\n");
    let line: Value = serde_json::from_str(&home.ok(&["servers", "--json"])).unwrap();
    assert_eq!(line["name"], "notes");
    // Before another command they would be passed over.
    for words in [
        &["caps", "--json", "revoke", "standing0"][..],
        &["remembered", "--json", "clear"],
        &["cron", "--json", "tick"],
    ] {
        let refused = home.run(words);
        assert_eq!(refused.code, Some(64), "{refused:?}");
        assert!(refused.err.contains("for the list"), "{refused:?}");
    }
    assert!(home.ok(&["caps"]).contains("standing0"));
}

/// What a command printed, an object a line.
fn objects(printed: &str) -> Vec<Value> {
    printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn what_is_configured_is_told_to_programs_with_where_it_is_from() {
    let home = Home::new();
    home.configure("[limits]\npids_max = 50\n");
    for arguments in [&["config", "show", "--json"][..], &["config", "--json"]] {
        let rows = objects(&home.ok(arguments));
        let of = |key: &str| rows.iter().find(|row| row["key"] == key).unwrap().clone();
        let set = of("limits.pids_max");
        assert_eq!(
            (&set["value"], &set["from"]),
            (&json!("50"), &json!("user"))
        );
        let usual = of("limits.timeout_seconds");
        assert_eq!(usual["from"], "usual");
        assert_eq!(usual["value"], usual["usual"]);
    }
    let one = objects(&home.ok(&["config", "show", "limits.pids_max", "--json"]));
    assert_eq!(one.len(), 1);
    let refused = home.run(&["config", "--json", "set", "limits.pids_max", "60"]);
    assert_eq!(refused.code, Some(64), "{refused:?}");
}

#[test]
fn what_would_become_of_an_effect_is_told_to_programs() {
    let home = Home::new();
    let grant = ["--grant", "fs.modify=a.txt", "--json"];
    let with = |more: &[&str]| {
        let arguments = [&["explain", "fs.modify", "a.txt"][..], more].concat();
        objects(&home.ok(&arguments))
    };
    let [asked] = &with(&["--json"])[..] else {
        panic!("one effect");
    };
    assert_eq!(
        (&asked["would"], &asked["code"], &asked["grant_would_do"]),
        (&json!("ask"), &json!("no-cap"), &json!(true))
    );
    let [allowed] = &with(&grant)[..] else {
        panic!("one effect");
    };
    assert_eq!(allowed["would"], "allow");
    assert!(allowed["grant"].is_string() && allowed["code"].is_null());
    // A refusal is one in its exit code as well, and a line of the same kind.
    let refused = home.run(&[
        "explain",
        "fs.modify",
        "a.txt",
        "--json",
        "--mode",
        "reject_all",
    ]);
    assert_eq!(refused.code, Some(77), "{refused:?}");
    assert_eq!(objects(&refused.out)[0]["would"], "deny");
}

#[test]
fn whether_a_ledger_holds_is_told_to_programs() {
    let home = Home::new();
    assert_eq!(home.ok(&["audit", "verify", "--json"]), "");
    home.ok(&["exec", "--", "true"]);
    let [held] = &objects(&home.ok(&["audit", "verify", "--json"]))[..] else {
        panic!("one ledger");
    };
    assert_eq!(
        (&held["holds"], &held["cut_off_bytes"], &held["ledger"]),
        (&json!(true), &json!(0), &json!(""))
    );
    let head = home.ok(&["audit", "head"]);
    assert_eq!(held["head"], head.trim());
    let records = head.split(':').next().unwrap().parse::<u64>().unwrap();
    assert_eq!(held["records"], records);
    // One that somebody changed.
    let ledger = home.state("ledger.jsonl");
    let text = std::fs::read_to_string(&ledger).unwrap();
    std::fs::write(&ledger, text.replacen("granted", "grinted", 1)).unwrap();
    let broken = home.run(&["audit", "verify", "--json"]);
    assert_eq!(broken.code, Some(74), "{broken:?}");
    let told = &objects(&broken.out)[0];
    assert_eq!(told["holds"], false);
    assert!(told["why"].as_str().unwrap().contains("record"), "{told}");
}

#[test]
fn the_models_one_has_are_told_to_programs() {
    let home = Home::new();
    home.ok(&[
        "config",
        "backend",
        "http",
        "--model",
        "m",
        "--base-url",
        "http://127.0.0.1:9/v1",
    ]);
    std::fs::create_dir(home.path().join("models")).unwrap();
    std::fs::write(home.path().join("models/x.gguf"), "none").unwrap();
    let rows = objects(&home.ok(&["model", "list", "--json"]));
    assert_eq!(
        (&rows[0]["role"], &rows[0]["model"]),
        (&json!("planner"), &json!("m"))
    );
    let file = rows.iter().find(|row| row["file"].is_string()).unwrap();
    assert!(
        file["file"].as_str().unwrap().ends_with("models/x.gguf"),
        "{file}"
    );
    assert!(file["why"].is_string(), "it is none: {file}");
}
