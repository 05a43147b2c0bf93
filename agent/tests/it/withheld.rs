//! What a rule refuses to have read, or wants a question about, no command is shown.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab::runtime::{Fate, GrantWords};
use hermitcrab_core::{
    approval::Stance,
    authority::Verb,
    outcome::DenialCode,
    path::RelPath,
    rules::{ConfiguredRule, Layer, Pattern},
    standing::PortableObject,
};
use serde_json::{Value, json};
use support::{Bench, home::Home};

fn rule(bench: &mut Bench, id: &str, stance: Stance, verb: Verb, pattern: Pattern) {
    let written = ("config.toml", 7, Layer::User);
    let rule = ConfiguredRule::new(id, stance, vec![verb], pattern, written).unwrap();
    bench.runtime.add_rule(rule).unwrap();
}

fn place(bench: &Bench, below: &str) -> Pattern {
    let path = bench.workspace.join(below);
    let path = path.to_str().unwrap().trim_start_matches('/').as_bytes();
    Pattern::Object(PortableObject::tree(RelPath::parse_dir(path).unwrap()))
}

fn with_secrets() -> Bench {
    let mut bench = Bench::with_files();
    bench.put("plan/secret.txt", "needle\n");
    bench.put("plan/notes.txt", "notes\n");
    bench.put("tls/server.pem", "needle\n");
    bench.put("drafts/one.txt", "needle\n");
    let secret = place(&bench, "plan/secret.txt");
    let drafts = place(&bench, "drafts");
    rule(&mut bench, "no-plan", Stance::Deny, Verb::FsRead, secret);
    rule(
        &mut bench,
        "no-keys",
        Stance::Deny,
        Verb::FsRead,
        Pattern::Named("*.pem".to_owned()),
    );
    rule(&mut bench, "drafts", Stance::Ask, Verb::FsRead, drafts);
    bench
}

const READS: &str = "cat plan/secret.txt tls/server.pem drafts/one.txt";

fn result(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_command_fails_to_read_it_and_the_rules_are_named() {
    let mut bench = with_secrets();
    let report = bench.call("terminal", json!({"command": READS}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert!(!report.text.contains("needle"), "{}", report.text);
    let result = result(&report.text);
    assert_eq!(result["exit_code"], 1);
    let told = result["withheld"].as_str().unwrap();
    for id in ["no-plan", "no-keys", "drafts"] {
        assert!(told.contains(&format!("`{id} at config.toml:7`")), "{told}");
    }
    assert!(bench.user.shown.borrow().is_empty());
    // A file tool is refused by the same rules, or asks.
    let read = bench.call("read_file", json!({"path": "plan/secret.txt"}));
    assert_eq!(read.fate, Fate::Refused(DenialCode::DeniedByRule));
    let read = bench.call("read_file", json!({"path": "drafts/one.txt"}));
    assert_eq!(read.fate.code(), Some(DenialCode::RejectedByUser));
    assert_eq!(bench.user.shown.borrow().len(), 1);
    // What it may read it reads, and nothing is said of rules.
    let report = bench.call("terminal", json!({"command": "cat plan/notes.txt; exit 3"}));
    assert_eq!(
        report.text,
        r#"{"output": "notes", "exit_code": 3, "error": null}"#
    );
}

#[test]
fn a_search_leaves_it_out_and_says_so() {
    let mut bench = with_secrets();
    bench.put("plan/open.txt", "needle\n");
    for path in [".", "plan/..", "./", "../proj"] {
        let args = json!({"pattern": "needle", "path": path, "output_mode": "files_only"});
        let report = bench.call("search_files", args);
        let result = result(&report.text);
        assert_eq!(result["total_count"], 1, "{path}: {}", report.text);
        assert!(
            result["files"][0]
                .as_str()
                .unwrap()
                .ends_with("plan/open.txt")
        );
        let told = result["_withheld"].as_str().unwrap();
        assert!(told.starts_with("3 file(s) not searched"), "{told}");
    }
    assert!(bench.user.shown.borrow().is_empty());
    let named = json!({"pattern": "needle", "path": "plan/secret.txt"});
    let report = bench.call("search_files", named);
    assert_eq!(report.fate, Fate::Refused(DenialCode::DeniedByRule));
}

#[test]
fn a_search_of_what_lies_around_leaves_out_what_rules_keep_from_being_listed() {
    let mut bench = Bench::with_files();
    bench.put("plan/secret.txt", "needle\n");
    bench.put("vault/keys/one.txt", "needle\n");
    bench.put("desk/drafts/one.txt", "needle\n");
    bench.put("open.txt", "needle\n");
    for (stance, below) in [
        (Stance::Deny, "plan/secret.txt"),
        (Stance::Deny, "vault/keys"),
        (Stance::Ask, "desk/drafts"),
    ] {
        let (pattern, written) = (place(&bench, below), ("config.toml", 7, Layer::User));
        let verbs = vec![Verb::FsRead, Verb::FsList];
        let rule = ConfiguredRule::new(below, stance, verbs, pattern, written).unwrap();
        bench.runtime.add_rule(rule).unwrap();
    }
    for args in [
        json!({"pattern": "needle", "output_mode": "files_only"}),
        json!({"pattern": "*e*.txt", "target": "files"}),
    ] {
        let report = bench.call("search_files", args);
        assert_eq!(report.fate, Fate::Ran, "{}", report.text);
        let result = result(&report.text);
        assert_eq!(result["total_count"], 1, "{}", report.text);
        assert!(report.text.contains("open.txt"), "{}", report.text);
        let told = result["_withheld"].as_str().unwrap();
        assert!(
            told.starts_with("1 file(s) and 2 directory(s) not"),
            "{told}"
        );
    }
    assert!(bench.user.shown.borrow().is_empty());
    let named = json!({"pattern": "needle", "path": "vault/keys"});
    let report = bench.call("search_files", named);
    assert_eq!(report.fate, Fate::Refused(DenialCode::DeniedByRule));
}

#[test]
fn what_is_not_there_is_no_work_of_a_rules() {
    let mut bench = with_secrets();
    let report = bench.call("terminal", json!({"command": "cat nothing"}));
    assert!(
        report.text.contains("No such file or directory"),
        "{}",
        report.text
    );
    assert!(!report.text.contains("withheld"), "{}", report.text);
}

#[test]
fn scripts_and_what_runs_in_the_background_are_shown_as_little() {
    let mut bench = with_secrets();
    let code = "import subprocess\nprint(subprocess.run(['sh', '-c', '".to_owned()
        + READS
        + " 2>&1'], capture_output=True, text=True).stdout)";
    let report = bench.call("execute_code", json!({"code": code}));
    assert!(report.text.contains("Permission denied"), "{}", report.text);
    assert!(!report.text.contains("needle"), "{}", report.text);
    let args = json!({"command": READS, "background": true, "notify_on_complete": true});
    let started = bench.call("terminal", args);
    let id = result(&started.text)["session_id"].clone();
    let waited = bench.call("process", json!({"action": "wait", "session_id": id}));
    assert!(waited.text.contains("Permission denied"), "{}", waited.text);
    assert!(!waited.text.contains("needle"), "{}", waited.text);
    let waited = result(&waited.text);
    let told = waited["withheld"].as_str().unwrap_or_default();
    assert!(told.contains("`no-plan at config.toml:7`"), "{waited}");
}

#[test]
fn a_command_cannot_move_it_to_where_no_rule_is_about_it() {
    let mut bench = with_secrets();
    for script in [
        "mv plan/secret.txt plan/other.txt",
        "mv plan moved",
        "cp -r . copy",
        "ln tls/server.pem tls/other.txt",
    ] {
        bench.call("terminal", json!({"command": script}));
        let report = bench.call("terminal", json!({"command": "grep -r needle . /tmp"}));
        assert!(
            !report.text.contains("needle\\n"),
            "{script}: {}",
            report.text
        );
        assert!(
            !report.text.contains(":needle"),
            "{script}: {}",
            report.text
        );
    }
    assert_eq!(bench.text("plan/secret.txt").unwrap(), "needle\n");
    assert_eq!(bench.text("tls/server.pem").unwrap(), "needle\n");
}

#[test]
fn a_plan_cannot_move_it_to_where_no_rule_is_about_it() {
    let home = Home::new();
    home.configure(
        "[[rules]]\nid = \"s\"\ndecision = \"deny\"\nverbs = [\"fs.read\"]\non = \"in/deep/s.txt\"\n\n\
         [[rules]]\nid = \"t\"\ndecision = \"ask\"\nverbs = [\"fs.read\"]\non = \"in/t.txt\"\n",
    );
    for (file, content) in [
        ("in/deep/s.txt", "needle\n"),
        ("in/t.txt", "needle\n"),
        ("out/u.txt", "moved\n"),
    ] {
        let path = home.project().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let run = |how: Value, then: &str| {
        let mut first = how;
        first["id"] = json!("m");
        let steps = json!([
            first,
            {"id": "r", "after": ["m"], "call": "read_file", "with": {"path": then}},
            {"id": "a", "answer": {"$": "r.text"}}
        ]);
        let plan = json!({"version": 1, "summary": "a test", "steps": steps});
        std::fs::write(home.path().join("plan.json"), plan.to_string()).unwrap();
        let all = ["run", "--plan", "../plan.json", "--yes-low"];
        home.run(&[&all[..], &["--grant", "fs.*=."]].concat())
    };
    let move_file =
        |from: &str, to: &str| json!({"call": "move_file", "with": {"from": from, "to": to}});
    let many = json!({"call": "move_files", "with": {"paths": ["in/t.txt"], "into": "out"}});
    for (how, then) in [
        (move_file("in/deep/s.txt", "open.txt"), "open.txt"),
        (move_file("in/deep", "deep"), "deep/s.txt"),
        (move_file("in", "other"), "other/deep/s.txt"),
        (move_file("in/t.txt", "t.txt"), "t.txt"),
        (many, "out/t.txt"),
        (
            json!({"call": "organize_by_type", "with": {"path": "in"}}),
            "in/Documents/t.txt",
        ),
    ] {
        let ran = run(how.clone(), then);
        assert_eq!(ran.code, Some(77), "{how}: {ran:?}");
        assert!(!ran.out.contains("needle"), "{how}: {ran:?}");
    }
    let ran = run(move_file("out", "there"), "there/u.txt");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("moved"), "{ran:?}");
}

#[test]
fn a_directory_that_is_asked_about_as_a_whole_is_not_shown() {
    let mut bench = Bench::with_files();
    bench.put("a.txt", "needle\n");
    let whole = place(&bench, ".");
    rule(&mut bench, "everything", Stance::Ask, Verb::FsRead, whole);
    let path = bench.workspace.join("a.txt");
    let report = bench.call(
        "terminal",
        json!({"command": format!("cat {}", path.display())}),
    );
    let result = result(&report.text);
    assert!(!report.text.contains("needle"), "{}", report.text);
    assert!(
        result["withheld"]
            .as_str()
            .unwrap()
            .contains("`everything at")
    );
}

#[test]
fn what_kept_it_from_a_command_left_running_is_told_whoever_learns_of_its_end() {
    let mut bench = Bench::with_files();
    bench.put("a.txt", "needle\n");
    let whole = place(&bench, ".");
    rule(&mut bench, "everything", Stance::Ask, Verb::FsRead, whole);
    let command = format!("cat {}", bench.workspace.join("a.txt").display());
    let started = bench.call("terminal", json!({"command": command, "background": true}));
    let id = result(&started.text)["session_id"].clone();
    while bench.runtime.has_running_jobs() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // A child that holds nothing, and lacks no directory by a rule.
    let first = bench.runtime.first_agent();
    let child = bench.runtime.spawn(first, &[]).unwrap();
    let list = json!({"action": "list"});
    let listed = bench.runtime.call(child, "process", &list);
    assert_eq!(result(&listed.text)["processes"], json!([]));
    let polled = bench.call("process", json!({"action": "poll", "session_id": id}));
    let polled = result(&polled.text);
    let told = polled["withheld"].as_str().unwrap_or_default();
    assert!(told.contains("`everything at"), "{polled}");
}

#[test]
fn a_rule_about_changes_withholds_nothing() {
    let mut bench = Bench::with_files();
    bench.put("docs/a.txt", "needle\n");
    let docs = place(&bench, "docs");
    rule(&mut bench, "docs", Stance::Deny, Verb::FsModify, docs);
    let report = bench.call(
        "terminal",
        json!({"command": "cat docs/a.txt; cat nothing"}),
    );
    assert!(report.text.contains("needle"), "{}", report.text);
    assert!(!report.text.contains("withheld"), "{}", report.text);
}

#[test]
fn who_agrees_to_a_command_that_is_shown_nothing_is_told_so_and_so_is_who_wrote_it() {
    let mut bench = Bench::with_files();
    bench.put("a.txt", "needle\n");
    let workspace = bench.workspace.display().to_string();
    let run = |bench: &mut Bench, command: &str| {
        bench.user.words.borrow_mut().push_back("once");
        bench.user.shown.borrow_mut().clear();
        let report = bench.call("terminal", json!({"command": command}));
        bench.user.words.borrow_mut().clear();
        (report.text, bench.user.shown.borrow().join("\n"))
    };
    // While the workspace may be read, no word of it, whatever is missing.
    let (text, shown) = run(&mut bench, "cat nothing");
    assert!(!text.contains("withheld"), "{text}");
    assert_eq!(shown, "");
    // The grants of a session last twelve hours.
    bench.clock.set(12 * 60 * 60 * 1000 + 60_000);
    let nothing = format!("\nshown nothing of: {workspace}");
    let advice = format!("`grant fs.read={workspace}`");
    let (text, shown) = run(&mut bench, "cat a.txt");
    assert!(shown.contains(&nothing), "{shown}");
    assert!(!text.contains("needle"), "{text}");
    let told = result(&text)["withheld"].as_str().unwrap().to_owned();
    assert!(told.contains(&advice), "{told}");
    // Where so many reads are granted nobody could count those of a command.
    let words = GrantWords {
        uses: Some(2),
        ..GrantWords::new("fs.read", &workspace)
    };
    let first = bench.runtime.first_agent();
    bench.runtime.grant(first, &words).unwrap();
    let (text, shown) = run(&mut bench, "cat a.txt");
    assert!(shown.contains(&nothing) && text.contains(&advice), "{text}");
    bench.grant("fs.read", ".");
    let (text, shown) = run(&mut bench, "cat a.txt; cat nothing");
    assert!(shown.contains("run: cat") && !shown.contains("shown nothing"));
    assert!(text.contains("needle"), "{text}");
    assert!(!text.contains("withheld"), "{text}");
}

#[test]
fn the_person_at_the_terminal_is_told_which_rule_it_was() {
    let home = Home::new();
    home.configure(
        "[[rules]]\nid = \"files\"\ndecision = \"allow\"\nverbs = [\"fs.*\"]\non = \".\"\n\n\
         [[rules]]\nid = \"no-keys\"\ndecision = \"deny\"\nverbs = [\"fs.read\"]\nnamed = \"*.pem\"\n",
    );
    std::fs::write(home.project().join("key.pem"), "needle\n").unwrap();
    let ran = home.run(&["exec", "--", "cat key.pem"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(!ran.out.contains("needle"), "{ran:?}");
    assert!(ran.err.contains("key.pem: Permission denied"), "{ran:?}");
    assert!(
        ran.err.contains("`no-keys at ") && ran.err.contains("config.toml:7`"),
        "{ran:?}"
    );
    assert_eq!(home.run(&["explain", "fs.read", "key.pem"]).code, Some(77));
}
