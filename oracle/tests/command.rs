//! The program as a user meets it: exit codes, messages, real runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "command/doctor.rs"]
mod doctor;
#[path = "command/mistakes.rs"]
mod mistakes;
mod ready;
#[path = "command/results.rs"]
mod results;
#[path = "command/shadow.rs"]
mod shadow;
#[path = "command/stand_in.rs"]
mod stand_in;

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use ready::can_run;

fn bisim(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bisim"))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Vectors with one suite file of this text.
fn vectors(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("suites")).unwrap();
    std::fs::write(folder.path().join("suites/s.json"), text).unwrap();
    folder
}

fn check_vectors(text: &str) -> Output {
    let folder = vectors(text);
    bisim(&[
        "check",
        "--list",
        "--vectors",
        folder.path().to_str().unwrap(),
    ])
}

#[test]
fn a_place_for_environments_that_is_no_whole_path_is_refused_and_not_left_out() {
    let place = vectors(r#"{"schema": 1, "suite": "s", "cases": []}"#);
    let vectors = place.path().to_str().unwrap();
    let listed = |cache: &str| {
        Command::new(env!("CARGO_BIN_EXE_bisim"))
            .args(["check", "--list", "--vectors", vectors])
            .env("HERMITCRAB_CACHE", cache)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    for cache in ["some/cache", "./cache", "~/cache"] {
        let output = listed(cache);
        assert_eq!(code(&output), 64, "{}", errors(&output));
        let told = format!("HERMITCRAB_CACHE is `{cache}`");
        assert!(errors(&output).contains(&told), "{}", errors(&output));
    }
    for cache in ["", vectors] {
        let output = listed(cache);
        assert!(
            !errors(&output).contains("HERMITCRAB_CACHE"),
            "{}",
            errors(&output)
        );
    }
}

#[test]
fn a_malformed_vector_is_exit_code_5_with_file_and_place() {
    let output = check_vectors("{\"schema\": 1,\n \"suite\": ]");
    assert_eq!(code(&output), 5);
    assert!(
        errors(&output).contains("suites/s.json:2:"),
        "{}",
        errors(&output)
    );
}

#[test]
fn an_unknown_field_is_exit_code_5_with_its_name() {
    let output = check_vectors(
        "{\"schema\": 1, \"suite\": \"s\", \"description\": \"d\", \"colour\": 1, \"cases\": []}",
    );
    assert_eq!(code(&output), 5);
    assert!(
        errors(&output).contains("unknown field `colour`"),
        "{}",
        errors(&output)
    );
}

#[test]
fn another_schema_version_and_a_duplicate_id_are_exit_code_5() {
    let output = check_vectors("{\"schema\": 7}");
    assert_eq!(code(&output), 5);
    assert!(
        errors(&output).contains("schema version 7"),
        "{}",
        errors(&output)
    );
    let case = r#"{"id": "a", "script": [{"probe": {"name": "p", "input": {}}}]}"#;
    let output = check_vectors(&format!(
        r#"{{"schema": 1, "suite": "s", "description": "d", "cases": [{case}, {case}]}}"#
    ));
    assert_eq!(code(&output), 5);
    assert!(
        errors(&output).contains("duplicate id"),
        "{}",
        errors(&output)
    );
}

#[test]
fn a_broken_catalogue_is_exit_code_3() {
    let folder = vectors(r#"{"schema": 1, "suite": "s", "description": "d", "cases": []}"#);
    let list = || {
        bisim(&[
            "check",
            "--list",
            "--vectors",
            folder.path().to_str().unwrap(),
        ])
    };
    // None at all is no error, and is said: its name may have a slip in it.
    assert!(errors(&list()).contains("so no difference is known"));
    std::fs::write(
        folder.path().join("known-divergences.toml"),
        "[[entry]]\nid = 1\n",
    )
    .unwrap();
    let output = list();
    assert_eq!(code(&output), 3);
    assert!(
        errors(&output).contains("known-divergences.toml"),
        "{}",
        errors(&output)
    );
}

#[test]
fn a_wrong_command_line_is_exit_code_64() {
    for args in [
        &["check", "--shard", "4/3"] as &[&str],
        &["check", "--colour"],
        &["check", "--list", "--suite", "no-such-suite"],
        &["check", "--list", "--case", "no-such-case"],
        &["check", "--hermes", "0.0.1"],
        &["selftest", "--fault", "no-such-fault"],
        &["fuzz", "--fault", "no-such-fault"],
        &["migrate", "--hermes-home", "/", "--fault", "no-such-fault"],
        // None tried is none that passed.
        &["fuzz", "--count", "0"],
        &["fuzz", "--screen", "0"],
        &["benign", "--count", "0"],
        &["operators", "--seeds", "0"],
        &["leaks", "--count", "0"],
        &["patterns", "--compare", "0"],
    ] {
        let output = bisim(args);
        assert_eq!(code(&output), 64, "{args:?}: {}", errors(&output));
    }
    assert!(errors(&bisim(&["check", "--hermes", "0.0.1"])).contains("0.19.0"));
}

#[test]
fn the_shards_of_the_real_vectors_are_the_whole() {
    let list = |args: &[&str]| {
        let output = bisim(&[&["check", "--list"], args].concat());
        assert_eq!(code(&output), 0, "{}", errors(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let mut whole = list(&[]);
    let mut parts: Vec<_> = ["1/3", "2/3", "3/3"]
        .iter()
        .flat_map(|shard| list(&["--shard", shard]))
        .collect();
    whole.sort();
    parts.sort();
    assert!(!whole.is_empty());
    assert_eq!(whole, parts);
}

#[test]
fn the_smoke_suite_conforms_on_the_real_hermes() {
    if !can_run() {
        return;
    }
    let report = tempfile::tempdir().unwrap();
    let at = |name: &str| report.path().join(name).to_str().unwrap().to_owned();
    let output = bisim(&[
        "check",
        "--suite",
        "smoke",
        "--jobs",
        "1",
        "--json",
        "--report",
        report.path().to_str().unwrap(),
        "--junit",
        &at("junit.xml"),
        "--sarif",
        &at("sarif.json"),
    ]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(code(&output), 0, "{text}\n{}", errors(&output));
    // What is done is said as it begins: a log shows that it is not stuck.
    let said = errors(&output);
    let first = [
        "reading the vectors",
        "starting Hermes and the agent, which takes some seconds",
        "0/14 cases",
    ];
    let mut lines = said.lines();
    for expected in first {
        assert!(lines.any(|line| line == expected), "{expected}: {said}");
    }
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (summary, cases) = lines.split_last().unwrap();
    assert_eq!(cases.len(), 14);
    assert_eq!(summary["headline"]["commands"], 6);
    assert_eq!(summary["headline"]["hermes"], 6);
    assert_eq!(summary["headline"]["agent"], 0);
    assert!(
        std::fs::read_to_string(at("junit.xml"))
            .unwrap()
            .contains("smoke-echo")
    );
    assert!(
        std::fs::read_to_string(at("sarif.json"))
            .unwrap()
            .contains("2.1.0")
    );
    assert_eq!(
        std::fs::read_to_string(at("results.jsonl"))
            .unwrap()
            .lines()
            .count(),
        cases.len()
    );
}

/// Processes whose command line names the text.
fn processes_with(text: &str) -> usize {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| {
            std::fs::read(entry.path().join("cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(text))
        })
        .count()
}

#[test]
fn an_interrupt_keeps_what_ran_and_leaves_nothing_behind() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let marker = format!("marker-{}", std::process::id());
    let case = |id: &str, command: &str| {
        format!(
            r#"{{"id": "{id}", "script": [{{"call": {{"tool": "terminal", "args": {{"command": "{command}"}}}}}}]}}"#
        )
    };
    let text = format!(
        r#"{{"schema": 1, "suite": "s", "description": "d", "cases": [{}, {}]}}"#,
        case("quick", "echo quick"),
        case("slow", &format!("sleep 60 # {marker}"))
    );
    std::fs::create_dir(folder.path().join("suites")).unwrap();
    std::fs::write(folder.path().join("suites/s.json"), text).unwrap();
    let report = folder.path().join("report");
    let mut child = Command::new(env!("CARGO_BIN_EXE_bisim"))
        .args([
            "check",
            "--jobs",
            "1",
            "--vectors",
            folder.path().to_str().unwrap(),
        ])
        .args(["--report", report.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let patience = Instant::now() + Duration::from_secs(120);
    while processes_with(&marker) == 0 {
        assert!(Instant::now() < patience, "the slow case never started");
        std::thread::sleep(Duration::from_millis(50));
    }
    let id = i32::try_from(child.id()).unwrap();
    // Two at once, as where a runner of jobs tells the program and its group, are one wish.
    for signal in [
        nix::sys::signal::Signal::SIGINT,
        nix::sys::signal::Signal::SIGTERM,
    ] {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), signal).unwrap();
    }
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(4));
    let kept = std::fs::read_to_string(report.join("results.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 1);
    assert!(kept.contains("\"quick\""));
    let summary = std::fs::read_to_string(report.join("summary.json")).unwrap();
    assert!(summary.contains("the run was interrupted"));
    while processes_with(&marker) > 0 {
        assert!(
            Instant::now() < patience,
            "a process of the slow case is still there"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_directory_that_is_no_home_of_hermes_gets_no_plan() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "hello\n").unwrap();
    let away = tempfile::tempdir().unwrap();
    let out = away.path().join("plan");
    let (home, out) = (folder.path().to_str().unwrap(), out.to_str().unwrap());
    let output = bisim(&[
        "migrate",
        "--no-replay",
        "--hermes-home",
        home,
        "--out",
        out,
    ]);
    let errors = errors(&output);
    assert_eq!(code(&output), 64, "{errors}");
    assert!(
        errors.contains("nothing that only Hermes writes is in"),
        "{errors}"
    );
    assert!(!std::path::Path::new(out).join("migration.md").exists());
}

#[test]
fn a_home_nobody_may_enter_is_refused_and_not_taken_for_an_empty_one() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("hermes");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("config.yaml"), "approvals:\n  mode: manual\n").unwrap();
    let closed = |mode| {
        std::fs::set_permissions(&home, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    closed(0o000);
    // Root enters every directory, unless it gives that up.
    let root = nix::unistd::geteuid().is_root();
    let mut command = Command::new(if root { "setpriv" } else { "env" });
    if root {
        command.arg("--bounding-set=-dac_override,-dac_read_search");
    }
    let out = folder.path().join("plan");
    let output = command
        .arg(env!("CARGO_BIN_EXE_bisim"))
        .args(["migrate", "--no-replay", "--hermes-home"])
        .args([home.as_os_str(), "--out".as_ref(), out.as_os_str()])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    closed(0o700);
    let errors = errors(&output);
    assert_eq!(code(&output), 64, "{errors}");
    assert!(errors.contains("cannot read `"), "{errors}");
    assert!(errors.contains("Permission denied"), "{errors}");
    assert!(!out.join("migration.md").exists());
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_bisim"))
        .args(["check", "--list"])
        .stdout(writer)
        .stderr(std::process::Stdio::piped())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("panicked"), "{errors}");
    assert_eq!(code(&output), 0, "{errors}");
}

#[test]
fn a_case_that_does_not_exist_is_likened_to_one_that_does() {
    let output = bisim(&["check", "--case", "smoke-eco"]);
    let errors = errors(&output);
    assert_eq!(code(&output), 64, "{errors}");
    assert!(errors.contains("did you mean `smoke-echo`?"), "{errors}");
}

#[test]
fn a_recorded_history_is_replayed_on_both_and_adds_up() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    home_with_a_deletion(&at("home"));
    let text = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    let (home, out) = (text(at("home")), text(at("out")));
    let migrate = |more: &[&str]| {
        let usual = [
            "migrate",
            "--jobs",
            "1",
            "--hermes-home",
            &home,
            "--out",
            &out,
        ];
        let output = bisim(&[usual.as_slice(), more].concat());
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let report = std::fs::read_to_string(at("out/migration.json")).unwrap();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        // A difference that is known and harmless is no reason to fail.
        let changed = report["replayed"]["classes"]["changed"].as_u64();
        let known = report["replayed"]["known"].as_u64();
        let expected = i32::from(changed.unwrap_or_default() > known.unwrap_or_default());
        assert_eq!(code(&output), expected, "{said}\n{}", errors(&output));
        (said, errors(&output), report)
    };
    let (said, _, report) = migrate(&[]);
    assert!(
        said.starts_with("of 25 recorded calls 24 could be replayed"),
        "{said}"
    );
    let classes = &report["replayed"]["classes"];
    let count = |class: &str| classes[class].as_u64().unwrap_or_default();
    // Two calls need a Python in the world, which has only the machine's `/usr`.
    assert!((16..=18).contains(&count("same")), "{classes}");
    assert!((2..=3).contains(&count("attenuated")), "{classes}");
    // One searches from where it is, and Hermes finds nothing there without ripgrep.
    assert_eq!(
        (count("stricter"), count("changed"), count("unsafe")),
        (2, 1, 0)
    );
    assert_eq!(report["replayed"]["known"], 1);
    assert!(said.contains("known and harmless"), "{said}");
    let all: u64 = classes
        .as_object()
        .unwrap()
        .values()
        .filter_map(serde_json::Value::as_u64)
        .sum();
    assert_eq!(all, 25);
    // What was deleted unasked then needs a grant now, and on no more than that.
    let suggested = report["suggestion"]["grants"].to_string();
    assert!(
        suggested.contains(r#""fs.delete","on":"./x.txt""#),
        "{suggested}"
    );
    let outside = report["suggestion"]["outside"].to_string();
    assert!(outside.contains("~/elsewhere.txt"), "{outside}");
    // That grant was tried, and the one that does not help as well.
    let tried: Vec<(&str, &str)> = report["replayed"]["asked"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let on = one["grants"][0]["on"].as_str().unwrap();
            (on, one["proof"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        tried,
        [("~/elsewhere.txt", "other-result"), ("./x.txt", "proven")]
    );
    // Outside the workspace a file is looked at by a right of its own.
    let outside = &report["replayed"]["asked"][0]["grants"];
    let verbs: Vec<&str> = (outside.as_array().unwrap().iter())
        .map(|grant| grant["verb"].as_str().unwrap())
        .collect();
    assert_eq!(verbs, ["fs.create", "fs.read"]);
    let given = "so it is with every grant proposed in `hermitcrab.toml` given";
    assert!(said.contains(given), "{said}");
    let proved = &report["proved"];
    assert_eq!(
        (&proved["asked"], &proved["covered"], &proved["ran"]),
        (&2.into(), &1.into(), &1.into())
    );
    // What was replayed is not replayed again, and comes to the same.
    for entry in std::fs::read_dir(at("out")).unwrap() {
        let written = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for planted in PLANTED {
            assert!(!written.contains(planted), "{planted}");
        }
    }
    let (_, errors, again) = migrate(&[]);
    assert!(errors.contains("going on with"), "{errors}");
    assert_eq!(again["replayed"], report["replayed"]);
    assert_eq!(again["proved"], report["proved"]);
    assert_eq!(
        (&again["effort"]["run"], &again["effort"]["before"]),
        (&0.into(), &24.into())
    );
    let (said, _, sample) = migrate(&["--sample", "10"]);
    assert!(said.contains("were drawn at random"), "{said}");
    let replayed = &sample["replayed"];
    assert!(replayed["not_drawn"].as_u64().unwrap() > 0, "{replayed}");
    assert!(
        replayed["shares"]["same"]["to"].as_u64().unwrap() > 0,
        "{replayed}"
    );
}

/// Parts of what `shim/tests/homes/make.py` plants.
const PLANTED: [&str; 3] = [
    "planted0Q7xV2mK9",
    "correct-horse-planted",
    "planted5aB7cD9eF1",
];

/// A home a release made, in which nothing is allowed for good, and one more
/// session that makes a file and deletes it.
fn home_with_a_deletion(home: &std::path::Path) {
    let ok = r#"{"output": "", "exit_code": 0, "error": null}"#;
    let calls = [
        (
            "write_file",
            r#"{"path": "x.txt", "content": "x"}"#,
            r#"{"bytes_written": 1}"#,
        ),
        ("terminal", r#"{"command": "rm x.txt"}"#, ok),
    ];
    home_with(home, &calls);
}

/// A home a release made, in which nothing is allowed for good, and one more session
/// of these calls: a tool, its arguments and what came of it.
fn home_with(home: &std::path::Path, calls: &[(&str, &str, &str)]) {
    let made = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/homes/0.19.0");
    std::fs::create_dir(home).unwrap();
    let config = std::fs::read_to_string(made.join("config.yaml")).unwrap();
    std::fs::write(
        home.join("config.yaml"),
        config.replace("  - recursive delete\n", ""),
    )
    .unwrap();
    let packed = std::fs::File::open(made.join("state.db.gz")).unwrap();
    let mut file = std::fs::File::create(home.join("state.db")).unwrap();
    std::io::copy(&mut flate2::read::GzDecoder::new(packed), &mut file).unwrap();
    drop(file);
    let database = rusqlite::Connection::open(home.join("state.db")).unwrap();
    database
        .execute(
            "INSERT INTO sessions (id, source, cwd, started_at) VALUES ('d', 'cli', '/srv/d', 2e9)",
            [],
        )
        .unwrap();
    for (place, (tool, args, result)) in calls.iter().enumerate() {
        let call = serde_json::json!([{
            "id": format!("d{place}"), "type": "function",
            "function": {"name": tool, "arguments": args},
        }]);
        database
            .execute(
                "INSERT INTO messages (session_id, role, tool_calls, timestamp) VALUES ('d', 'assistant', ?1, ?2)",
                (call.to_string(), 2e9 + place as f64),
            )
            .unwrap();
        database
            .execute(
                "INSERT INTO messages (session_id, role, content, tool_call_id, tool_name, timestamp) VALUES ('d', 'tool', ?1, ?2, ?3, ?4)",
                (result, format!("d{place}"), tool, 2e9 + place as f64 + 0.5),
            )
            .unwrap();
    }
}
