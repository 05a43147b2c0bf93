//! What a run that fails leaves for those who read it: a pipeline, a code-scanning page, a person.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{bisim, can_run, code, errors, vectors};

/// Two cases on lines of their own, one of which is expected to be what it is not.
const SUITE: &str = r#"{"schema": 1, "suite": "s", "description": "d",
 "defaults": {"world": {"cwd": "/ws"}},
 "cases": [
{"id": "passes", "script": [{"probe": {"name": "validate_within_dir", "input": {"root": "/ws", "rel": "a"}}}], "held": [{"id": "ws", "verb": "fs.read", "on": "/ws"}]},
{"id": "fails", "script": [{"probe": {"name": "validate_within_dir", "input": {"root": "/ws", "rel": "a"}}}], "held": [{"id": "ws", "verb": "fs.read", "on": "/ws"}], "expect": {"agent": "must-deny"}}
]}"#;
/// An entry that has run out.
const CATALOGUE: &str = r#"# a line

[[entry]]
id = "ran-out"
justification = "j"
direction = "stricter"
versions = ["0.19.0"]
owner = "o"
opened = "2020-01-01"
review_by = "2020-02-01"
fingerprints = ["x"]
witness = { match = ["passes"], nomatch = [] }
"#;

#[test]
fn every_report_of_a_run_that_fails_names_file_line_and_the_command_that_shows_it() {
    if !can_run() {
        return;
    }
    let folder = vectors(SUITE);
    std::fs::write(folder.path().join("known-divergences.toml"), CATALOGUE).unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let read = |name: &str| std::fs::read_to_string(at(name)).unwrap();
    let place = folder.path().to_str().unwrap();
    let output = bisim(&[
        "check",
        "--vectors",
        place,
        "--report",
        &at("report"),
        "--junit",
        &at("made/for/junit.xml"),
        "--sarif",
        &at("made.sarif"),
    ]);
    assert_eq!(code(&output), 2, "{}", errors(&output));
    let replay = format!("cargo bisim check --explain fails --vectors {place}");
    let suite = at("suites/s.json");

    let junit = read("made/for/junit.xml");
    let failing = r#"<testcase name="fails" classname="s" time="#;
    let (_, case) = junit.split_once(failing).unwrap();
    assert!(
        case.contains(&format!(r#"file="{suite}" line="5""#)),
        "{case}"
    );
    assert!(case.contains(&format!("Again: {replay}<")), "{case}");
    assert!(junit.contains(r#"tests="4""#), "{junit}");
    assert!(junit.contains(r#"name="ran-out""#), "{junit}");

    let sarif: Value = serde_json::from_str(&read("made.sarif")).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let told = |rule: &str| {
        let found = results
            .iter()
            .find(|result| result["ruleId"] == rule)
            .unwrap();
        let place = &found["locations"][0]["physicalLocation"];
        let uri = place["artifactLocation"]["uri"].as_str().unwrap();
        let message = found["message"]["text"].as_str().unwrap().to_owned();
        (
            uri.to_owned(),
            place["region"]["startLine"].clone(),
            message,
        )
    };
    let (uri, line, message) = told("weaker");
    assert_eq!((uri, line), (format!("file://{suite}"), 5.into()));
    assert!(message.ends_with(&format!("Again: {replay}")), "{message}");
    let (uri, line, _) = told("catalogue-expired");
    let catalogue = at("known-divergences.toml");
    assert_eq!((uri, line), (format!("file://{catalogue}"), 4.into()));

    // What somebody sees who opens the page.
    let (from, page) = (at("report"), at("page"));
    let made = bisim(&[
        "report",
        "--vectors",
        place,
        "--from",
        &from,
        "--html",
        &page,
    ]);
    assert_eq!(code(&made), 0, "{}", errors(&made));
    let page = read("page/index.html");
    assert!(
        page.contains("<h1>it does not conform: 1 case in which"),
        "no headline"
    );

    // A part is not written over, and what is none is told so.
    let before = read("report/results.jsonl");
    let merged = bisim(&["merge", &from, "--vectors", place, "--out", &from]);
    assert_eq!(code(&merged), 64, "{}", errors(&merged));
    assert!(
        errors(&merged).contains("is one of the parts"),
        "{}",
        errors(&merged)
    );
    assert_eq!(read("report/results.jsonl"), before);
    std::fs::create_dir(at("whole")).unwrap();
    std::fs::write(at("whole/summary.json"), "of a merge before").unwrap();
    let merged = bisim(&[
        "merge",
        &at("suites"),
        "--vectors",
        place,
        "--out",
        &at("whole"),
    ]);
    assert_eq!(code(&merged), 64);
    assert!(
        errors(&merged).contains("a part is the --report directory"),
        "{}",
        errors(&merged)
    );
    // What was merged before is not taken for it.
    assert!(!Path::new(&at("whole/summary.json")).exists());

    // The same names may be those of other cases.
    for file in ["suites/s.json", "known-divergences.toml"] {
        let was = read(file);
        std::fs::write(at(file), was.clone() + "\n").unwrap();
        let out = at("whole");
        let merged = bisim(&["merge", &from, "--vectors", place, "--out", &out]);
        assert_eq!(code(&merged), 64, "{}", errors(&merged));
        let told = errors(&merged);
        assert!(told.contains("was checked with other vectors"), "{told}");
        std::fs::write(at(file), was).unwrap();
    }

    // Where no report can be, none is told of.
    let taken = at("taken");
    std::fs::write(&taken, "").unwrap();
    let merged = bisim(&["merge", &from, "--vectors", place, "--out", &taken]);
    assert_eq!(code(&merged), 64, "{}", errors(&merged));
    assert!(
        errors(&merged).contains("name another one with --out"),
        "{}",
        errors(&merged)
    );
    assert!(merged.stdout.is_empty(), "{merged:?}");

    // A log that lost its end makes no page of a run that found less.
    let lost = before.len() - 20;
    std::fs::write(at("report/results.jsonl"), &before[..lost]).unwrap();
    let other = at("other");
    let args = [
        "report",
        "--vectors",
        place,
        "--from",
        &from,
        "--html",
        &other,
    ];
    let made = bisim(&args);
    assert_eq!(code(&made), 64, "{}", errors(&made));
    assert!(
        errors(&made).contains("run the check again"),
        "{}",
        errors(&made)
    );

    // A disk that is full afterwards takes the file and not what was found.
    let full = bisim(&[
        "check",
        "--vectors",
        place,
        "--case",
        "passes",
        "--report",
        &from,
        "--sarif",
        "/dev/full",
    ]);
    let said = String::from_utf8_lossy(&full.stdout);
    assert!(
        errors(&full).contains("cannot write `/dev/full`"),
        "{}",
        errors(&full)
    );
    assert_eq!(code(&full), 70);
    assert!(said.contains("1 case in "), "{said}");
}

#[test]
fn whoever_waits_for_the_files_of_a_run_reads_in_them_that_nothing_ran() {
    let folder = vectors(SUITE);
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let read = |name: &str| std::fs::read_to_string(at(name)).unwrap();
    std::fs::create_dir(at("report")).unwrap();
    std::fs::write(at("report/summary.json"), "of a run before").unwrap();
    // Neither Hermes is there nor a Python that could install it.
    let output = Command::new(env!("CARGO_BIN_EXE_bisim"))
        .args(["check", "--vectors", folder.path().to_str().unwrap()])
        .args(["--report", &at("report"), "--junit", &at("junit.xml")])
        .args(["--sarif", &at("made.sarif")])
        .env("PATH", at("no-programs"))
        .env("HERMITCRAB_CACHE", at("cache"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = errors(&output);
    assert_eq!(code(&output), 69, "{told}");
    assert!(told.contains("nothing ran: the machine lacks"), "{told}");
    let junit = read("junit.xml");
    assert!(junit.contains(r#"tests="2" skipped="2""#), "{junit}");
    assert!(junit.contains("the machine lacks what a run needs"));
    let sarif: Value = serde_json::from_str(&read("made.sarif")).unwrap();
    assert!(sarif["runs"].is_array());
    let summary: Value = serde_json::from_str(&read("report/summary.json")).unwrap();
    assert_eq!(summary["ran"], 0);
    assert_eq!(summary["exit"], 69);
    assert_eq!(summary["not_run"]["the machine lacks what a run needs"], 2);
    assert_eq!(read("report/results.jsonl"), "");
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_anything_runs() {
    for option in ["--junit", "--sarif"] {
        let output = bisim(&["check", "--suite", "fs-cap", option, "/proc/no/such"]);
        let errors = errors(&output);
        assert_eq!(code(&output), 64, "{errors}");
        let told = format!("name another file with {option}");
        assert!(errors.contains(&told), "{errors}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn two_reports_in_one_file_are_refused_and_what_programs_read_is_json_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, report) = (at("all.out"), at("report"));
    let other_way = folder.path().join("report/../all.out");
    let junit = ["--junit", &file, "--sarif", other_way.to_str().unwrap()];
    let output = bisim(
        &[
            &["check", "--case", "smoke-echo", "--report", &report],
            &junit[..],
        ]
        .concat(),
    );
    assert_eq!(code(&output), 64, "{}", errors(&output));
    assert!(
        errors(&output).contains("name one file"),
        "{}",
        errors(&output)
    );
    let output = bisim(&["check", "--list", "--json", "--suite", "smoke"]);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    let said = String::from_utf8(output.stdout).unwrap();
    let first: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert_eq!(
        first,
        serde_json::json!({"id": "smoke-echo", "suite": "smoke"})
    );
    let output = bisim(&[
        "check",
        "--explain",
        "smoke-echo",
        "--json",
        "--report",
        &report,
    ]);
    assert_eq!(code(&output), 64, "{}", errors(&output));
}

#[test]
fn outside_a_checkout_reports_are_below_the_current_directory() {
    let elsewhere = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_bisim"))
        .args(["report", "--html", "page"])
        .current_dir(elsewhere.path())
        .output()
        .unwrap();
    assert_eq!(code(&output), 64, "{}", errors(&output));
    let place = elsewhere.path().canonicalize().unwrap();
    let told = format!(
        "cannot read `{}/target/bisim/summary.json`",
        place.display()
    );
    assert!(errors(&output).contains(&told), "{}", errors(&output));
}

#[test]
fn output_that_is_lost_is_no_pass() {
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_bisim"))
        .args(["check", "--list", "--suite", "smoke"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(code(&output), 70, "{}", errors(&output));
    let told = "error: cannot write the output: No space left on device";
    assert!(errors(&output).contains(told), "{}", errors(&output));
}

#[test]
fn a_pipe_in_the_place_of_a_suite_or_the_catalogue_is_told_and_not_waited_at() {
    let pipe = |path: &std::path::Path| {
        nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    };
    let folder = vectors(r#"{"schema": 1, "suite": "s", "description": "d", "cases": []}"#);
    pipe(&folder.path().join("known-divergences.toml"));
    let list = || {
        bisim(&[
            "check",
            "--list",
            "--vectors",
            folder.path().to_str().unwrap(),
        ])
    };
    let output = list();
    assert_eq!(code(&output), 3, "{}", errors(&output));
    assert!(
        errors(&output).contains("it is a pipe, and no file"),
        "{}",
        errors(&output)
    );
    pipe(&folder.path().join("suites/t.json"));
    let output = list();
    assert_eq!(code(&output), 5, "{}", errors(&output));
    let told = "suites/t.json: cannot read: it is a pipe, and no file";
    assert!(errors(&output).contains(told), "{}", errors(&output));
}

#[test]
fn a_pipe_to_be_replayed_is_told_and_not_waited_at() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("finding.json");
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let output = bisim(&["replay", file.to_str().unwrap()]);
    assert_eq!(code(&output), 64, "{}", errors(&output));
    let told = "it is a pipe that nobody writes to";
    assert!(errors(&output).contains(told), "{}", errors(&output));
}

#[test]
fn what_is_far_too_long_in_a_home_is_told_and_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let (home, out) = (folder.path().join("hermes"), folder.path().join("plan"));
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("config.yaml"), "approvals:\n  mode: manual\n").unwrap();
    // Reading a terabyte would take an hour, and a copy of it a disk.
    std::fs::File::create(home.join(".env"))
        .and_then(|file| file.set_len(1 << 40))
        .unwrap();
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let (home, out) = (path(&home), path(&out));
    let output = bisim(&[
        "migrate",
        "--no-replay",
        "--hermes-home",
        &home,
        "--out",
        &out,
    ]);
    assert_eq!(code(&output), 4, "{}", errors(&output));
    let plan = std::fs::read_to_string(std::path::Path::new(&out).join("migration.md")).unwrap();
    assert!(plan.contains("it is longer than 16777216 bytes"), "{plan}");
    assert!(plan.contains("its secrets are not all known"), "{plan}");
}

#[test]
fn a_choice_that_leaves_nothing_to_run_is_no_pass() {
    let refused = |args: &[&str]| {
        let output = bisim(&[&["check", "--list"], args].concat());
        assert_eq!(code(&output), 64, "{args:?}: {}", errors(&output));
        errors(&output)
    };
    let said = refused(&["--suite", "smoke", "--case", "fs-cap-read"]);
    let told = "case `fs-cap-read` is of the suite `fs-cap`, which --suite leaves out";
    assert!(said.contains(told), "{said}");
    let said = refused(&["--suite", "smoke", "--explain", "fs-cap-read"]);
    assert!(said.contains(told), "{said}");
    // A part without cases is one of several, and says so.
    let part = ["check", "--list", "--suite", "fs-cap", "--shard", "99/99"];
    let output = bisim(&part);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert!(errors(&output).contains("part 99 of 99 of 24 cases is empty"));
    let folder = vectors(r#"{"schema": 1, "suite": "s", "description": "d", "cases": []}"#);
    let empty = folder.path().join("suites/s.json");
    let output = bisim(&["replay", empty.to_str().unwrap()]);
    assert_eq!(code(&output), 5, "{}", errors(&output));
    assert!(
        errors(&output).contains("there is no case in"),
        "{}",
        errors(&output)
    );
}

/// A terminal that cannot draw over a line is told in lines, and not left without a word; one that
/// can has a line that moves, and nothing of it stays.
#[test]
fn a_terminal_sees_what_is_started_and_how_far_a_run_is_as_it_can() {
    use std::io::Read as _;
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (term, is_drawn_on) in [("dumb", false), ("", false), ("xterm", true)] {
        let terminal = nix::pty::openpty(None, None).unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bisim"));
        command
            .args(["check", "--case", "smoke-echo", "--report"])
            .arg(folder.path())
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(terminal.slave);
        match term {
            "" => command.env_remove("TERM"),
            term => command.env("TERM", term),
        };
        let mut child = command.spawn().unwrap();
        // The last one that could write to it is the child.
        drop(command);
        let mut seen = Vec::new();
        // A terminal that nobody writes to any more ends with an error.
        let _ = std::fs::File::from(terminal.master).read_to_end(&mut seen);
        assert_eq!(child.wait().unwrap().code(), Some(0));
        let seen = String::from_utf8_lossy(&seen).into_owned();
        assert!(
            seen.contains("starting Hermes and the agent"),
            "{term}: {seen}"
        );
        assert_eq!(seen.contains('\u{1b}'), is_drawn_on, "{term}: {seen}");
        let last = if is_drawn_on {
            "\u{1b}[2K"
        } else {
            "1/1 cases, "
        };
        assert!(seen.contains(last), "{term}: {seen}");
    }
}

#[test]
fn a_table_that_cannot_be_written_is_told_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept.md");
    std::fs::write(&kept, "as it was").unwrap();
    let below = kept.join("table.md");
    for command in ["patterns", "operators", "speed"] {
        let output = bisim(&[command, "--write", below.to_str().unwrap()]);
        assert_eq!(code(&output), 64, "{command}: {}", errors(&output));
        let told = "name another file with --write";
        assert!(errors(&output).contains(told), "{}", errors(&output));
        assert!(output.stdout.is_empty(), "{command}");
    }
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "as it was");
}

#[test]
fn a_place_of_no_use_is_the_command_lines_fault_in_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("file"), "as it was").unwrap();
    std::fs::create_dir(at("home")).unwrap();
    let (below, home) = (at("file/below"), at("home"));
    for (words, option) in [
        (
            &["check", "--case", "smoke-echo", "--report"][..],
            "--report",
        ),
        (&["fuzz", "--count", "1", "--report"], "--report"),
        (&["migrate", "--hermes-home", &home, "--out"], "--out"),
    ] {
        let output = bisim(&[words, &[&below]].concat());
        assert_eq!(code(&output), 64, "{words:?}: {}", errors(&output));
        let told = errors(&output);
        assert!(
            told.contains("error: cannot make") && told.trim_end().ends_with(option),
            "{told}"
        );
    }
    assert_eq!(std::fs::read_to_string(at("file")).unwrap(), "as it was");
}

#[test]
fn an_option_that_does_nothing_for_a_campaign_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::create_dir(at("part")).unwrap();
    std::fs::write(at("part/campaign.jsonl"), "").unwrap();
    let (part, out, file) = (at("part"), at("out"), at("junit.xml"));
    for option in [
        &["--junit", &file] as &[&str],
        &["--sarif", &file],
        &["--json"],
        &["--suite", "smoke"],
    ] {
        let output = bisim(&[&["merge", &part, "--out", &out], option].concat());
        assert_eq!(code(&output), 64, "{}", errors(&output));
        let told = format!("{} is for the parts of a check", option[0]);
        assert!(errors(&output).contains(&told), "{}", errors(&output));
    }
    assert!(!folder.path().join("out").exists());
}

#[test]
fn a_campaign_has_a_page_where_nothing_was_checked() {
    let folder = tempfile::tempdir().unwrap();
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors");
    let report = |more: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_bisim"))
            .args(["report", "--html", "page", "--vectors", vectors])
            .args(more)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    std::fs::create_dir(folder.path().join("hunt")).unwrap();
    std::fs::write(
        folder.path().join("hunt/campaign.jsonl"),
        "{\"seed\":7102,\"variants\":3}\n",
    )
    .unwrap();
    let output = report(&["--fuzz", "hunt"]);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    let page = std::fs::read_to_string(folder.path().join("page/index.html")).unwrap();
    assert!(page.contains("nothing ran"), "it looks like a check");
    // Whoever names a check, or nothing at all, is told that there is none.
    for more in [&[][..], &["--fuzz", "hunt", "--from", "elsewhere"]] {
        let output = report(more);
        assert_eq!(code(&output), 64, "{more:?}");
        assert!(
            errors(&output).contains("run `cargo bisim check` first"),
            "{}",
            errors(&output)
        );
    }
}
