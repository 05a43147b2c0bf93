//! Plans from the command line: carried out by the real program, and everything
//! the Python tool Hermit got wrong, as a case that must not happen here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::support::{
    asleep::{mark, out_of_time},
    home::{Home, Ran},
};

/// Runs a plan with nobody to ask.
#[track_caller]
fn run(home: &Home, plan: &Value, more: &[&str]) -> Ran {
    run_text(home, &plan.to_string(), more)
}

#[track_caller]
fn run_text(home: &Home, plan: &str, more: &[&str]) -> Ran {
    std::fs::write(home.path().join("plan.json"), plan).unwrap();
    let mut arguments = vec!["run", "--plan", "../plan.json", "--yes-low"];
    arguments.extend_from_slice(more);
    home.run(&arguments)
}

const ALL: [&str; 2] = ["--grant", "fs.*=."];

fn plan(steps: Value) -> Value {
    json!({"version": 1, "summary": "a test", "steps": steps})
}

fn read(home: &Home, name: &str) -> Option<String> {
    std::fs::read_to_string(home.project().join(name)).ok()
}

fn put(home: &Home, name: &str, content: impl AsRef<[u8]>) {
    let path = home.project().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn names(home: &Home, below: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(home.project().join(below))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_plan_runs_without_a_model_and_says_what_became_of_each_step() {
    let home = Home::new();
    put(&home, "in/b.txt", "second\n");
    put(&home, "in/a.txt", "first\n");
    let steps = json!([
        {"id": "found", "call": "find_files", "with": {"pattern": "*.txt", "path": "in"}},
        {"id": "all", "for_each": {"$": "found.paths"}, "as": "p", "at_most": 10, "do": [
            {"id": "one", "call": "read_file", "with": {"path": {"$": "p"}}}
        ], "gives": {"$": "one.text"}},
        {"id": "sum", "call": "create_file", "with": {
            "path": "out/summary.txt",
            "text": {"text": ["files: ", {"fn": "length", "of": [{"$": "all"}]}, "\n", {"fn": "join", "of": [{"$": "all"}, ""]}]}}},
        {"id": "say", "answer": "written"}
    ]);
    let ran = run(&home, &plan(steps), &ALL);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        read(&home, "out/summary.txt").unwrap(),
        "files: 2\nfirst\nsecond\n"
    );
    assert!(
        ran.out.contains("written\n") && ran.out.contains("6 done, 0 failed"),
        "{ran:?}"
    );
}

#[test]
fn what_is_not_granted_is_refused_and_the_rest_goes_on() {
    let home = Home::new();
    let steps = json!([
        {"id": "make", "call": "create_file", "with": {"path": "new.txt", "text": "x"}},
        {"id": "look", "call": "read_file", "with": {"path": "a.txt"}}
    ]);
    let ran = run(&home, &plan(steps), &["--json"]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert_eq!(read(&home, "new.txt"), None);
    let lines: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let end = lines.last().unwrap();
    assert_eq!(
        (&end["type"], &end["done"], &end["refused"]),
        (&json!("end"), &json!(1), &json!(1))
    );
}

#[test]
fn who_writes_no_plan_is_told_where_it_breaks_and_the_help_shows_one() {
    let home = Home::new();
    let ran = run_text(&home, "{\"version\": 1,\n \"steps\": [}", &[]);
    assert_eq!(ran.code, Some(64));
    assert!(
        ran.err
            .contains("(not-json): expected value at line 2 column 12\n"),
        "{}",
        ran.err
    );
    let next = "`hermitcrab plan --actions` what may be called\n";
    assert!(ran.err.ends_with(next), "{}", ran.err);

    let help = home.ok(&["plan", "--help"]);
    let (_, shown) = help.split_once("A plan:\n").unwrap();
    std::fs::write(home.path().join("shown.json"), shown).unwrap();
    let told = home.ok(&["plan", "--plan", "../shown.json"]);
    assert!(told.contains("1. found: find_files"), "{told}");
    assert!(told.ends_with("at most 2 calls\n"), "{told}");
    let one = plan(json!([{"id": "a", "call": "list_files", "with": {"path": "."}}]));
    std::fs::write(home.path().join("one.json"), one.to_string()).unwrap();
    let told = home.ok(&["plan", "--plan", "../one.json"]);
    assert!(told.ends_with("at most 1 call\n"), "{told}");
}

#[test]
fn without_anybody_to_approve_it_nothing_of_a_plan_is_done() {
    let home = Home::new();
    std::fs::write(
        home.path().join("plan.json"),
        plan(json!([{"id": "look", "call": "read_file", "with": {"path": "a.txt"}}])).to_string(),
    )
    .unwrap();
    let ran = home.run(&["run", "--plan", "../plan.json"]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    let shown = home.ok(&["plan", "--plan", "../plan.json"]);
    assert!(
        shown.contains("1. look: read_file path=\"a.txt\"  [low]"),
        "{shown}"
    );
    let shown = home.ok(&["run", "--plan", "../plan.json", "--dry-run"]);
    assert!(shown.contains("fs.read"), "{shown}");
}

/// Group 1: file content becoming shell.
#[test]
fn hermit_01_a_control_letter_in_a_file_is_a_letter_in_a_file() {
    let home = Home::new();
    for (place, letter) in ["\u{c}", "\u{1b}", "\u{8}", "\0", "\n", "\"", "\\", "\u{85}"]
        .iter()
        .enumerate()
    {
        let hostile = format!("x{letter}\"}}; touch pwned; rm -rf . #");
        put(&home, "in.txt", &hostile);
        let out = format!("out{place}");
        let steps = json!([
            {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
            {"id": "w", "call": "create_file", "with": {"path": out, "text": {"$": "r.text"}}}
        ]);
        let ran = run(&home, &plan(steps), &ALL);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(read(&home, &out).unwrap(), hostile, "exactly what was read");
        assert_eq!(read(&home, "pwned"), None);
    }
}

/// Group 2: a command does not get out of its root by `setns`, `chroot` or an open descriptor.
#[test]
fn hermit_02_a_command_does_not_reach_the_host() {
    let home = Home::new();
    std::fs::write(home.path().join("secret"), "top").unwrap();
    let out = home.path().join("secret").to_string_lossy().into_owned();
    let look = "import sys\n\
        for p in (sys.argv[1],'/proc/1/root'+sys.argv[1]):\n\
        \x20   try: print(open(p).read())\n\
        \x20   except OSError: print('no')\n";
    let escape = "import ctypes,os\n\
        c=ctypes.CDLL(None)\n\
        for n in ('mnt','user','pid'):\n\
        \x20   try: c.setns(os.open('/proc/self/ns/'+n,0),0)\n\
        \x20   except OSError: pass\n\
        try: os.chroot('/')\n\
        except OSError: pass\n";
    put(&home, "look.py", look);
    put(&home, "escape.py", format!("{escape}{look}"));
    let steps = |script| {
        json!([
            {"id": "x", "call": "run_command", "with": {"program": "python3", "args": [script, out]}},
            {"id": "say", "answer": {"$": "x.output"}}
        ])
    };
    let ran = run(&home, &plan(steps("look.py")), &ALL);
    assert!(ran.out.contains("no\nno"), "{ran:?}");
    // Trying is deadly, or comes to nothing.
    let ran = run(&home, &plan(steps("escape.py")), &ALL);
    assert!(
        ran.out.contains("was killed") || ran.out.contains("no\nno"),
        "{ran:?}"
    );
    assert!(!ran.out.contains("top"), "{ran:?}");
}

/// Groups 3 and 4: a name is a name, whatever letters are in it, alone or in a list.
#[test]
fn hermit_03_04_names_are_never_read_by_a_shell() {
    let home = Home::new();
    let hostile = [
        "a; touch pwned",
        "$(touch pwned)",
        "`touch pwned`",
        "-rf",
        "two\nlines\ntouch pwned",
        "quote'\"",
        "white  space",
        "*",
    ];
    for name in hostile {
        put(&home, &format!("in/{name}"), "x");
    }
    put(&home, "keep", "kept");
    let steps = json!([
        {"id": "f", "call": "find_files", "with": {"pattern": "*", "path": "in", "kind": "file"}},
        {"id": "n", "call": "run_command", "with": {"program": "wc", "args": {"fn": "append", "of": [["-c", "--"], {"$": "f.paths"}]}}},
        {"id": "c", "call": "copy_file", "with": {"from": "in/-rf", "to": "$(id)"}},
        {"id": "m", "call": "move_file", "with": {"from": "in/*", "to": "in/; moved"}},
        {"id": "l", "call": "list_files", "with": {"path": "in"}},
        {"id": "p", "let": {"fn": "map", "of": {"$": "l.entries"}, "as": "e", "by": {"$": "e.path"}}},
        {"id": "d", "call": "delete_files", "with": {"paths": {"$": "p"}}}
    ]);
    let ran = run(&home, &plan(steps), &ALL);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(names(&home, "."), ["$(id)", "a.txt", "in", "keep"]);
    assert!(names(&home, "in").is_empty());
}

/// Groups 5 and 6: a reference to a failed step is not nothing, and references are not text.
#[test]
fn hermit_05_06_references_are_places_and_not_text() {
    let home = Home::new();
    put(&home, "folder/kept", "kept");
    put(&home, "two", "see $STEP2 and {\"$\":\"STEP2.text\"}");
    put(&home, "secret", "SECRET");
    let steps = json!([
        {"id": "STEP1", "call": "read_file", "with": {"path": "not-there"}},
        {"id": "gone", "call": "delete_files", "with": {"paths": [{"text": ["folder/", {"$": "STEP1.text"}]}], "recursive": true}},
        {"id": "STEP2", "call": "read_file", "with": {"path": "secret"}},
        {"id": "STEP10", "call": "read_file", "with": {"path": "two"}},
        {"id": "w", "call": "create_file", "with": {"path": "out", "text": {"text": ["$STEP1 $STEP{2} ", {"$": "STEP10.text"}]}}}
    ]);
    let ran = run(&home, &plan(steps), &ALL);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(names(&home, "folder"), ["kept"], "{ran:?}");
    assert_eq!(
        read(&home, "out").unwrap(),
        "$STEP1 $STEP{2} see $STEP2 and {\"$\":\"STEP2.text\"}"
    );
    assert!(ran.out.contains("gone: skipped, because STEP1"), "{ran:?}");
}

/// Groups 7 and 8: what a program prints decides nothing, its status does, and nothing runs twice.
#[test]
fn hermit_07_08_status_decides_and_words_do_not() {
    let home = Home::new();
    let steps = json!([
        {"id": "fine", "call": "run_command", "with": {"program": "sh", "args": ["-c", "echo x >> log; echo 'Error: No such file or directory: permission denied'"]}},
        {"id": "bad", "call": "run_command", "with": {"program": "sh", "args": ["-c", "echo all is well; exit 3"]}},
        {"id": "after", "call": "create_file", "with": {"path": "after", "text": {"$": "bad.output"}}},
        {"id": "none", "call": "run_command", "with": {"program": "no-such-program-here"}}
    ]);
    let ran = run(&home, &plan(steps), &["--json", "--grant", "fs.*=."]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(read(&home, "log").unwrap(), "x\n", "once");
    assert_eq!(read(&home, "after"), None, "no error became a file");
    let status = |step: &str| {
        ran.out
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .find(|line| line["type"] == "step" && line["step"] == step)
            .unwrap()["status"]
            .clone()
    };
    assert_eq!(
        (
            status("fine"),
            status("bad"),
            status("after"),
            status("none")
        ),
        (
            json!("done"),
            json!("failed"),
            json!("skipped"),
            json!("failed")
        )
    );
}

/// Groups 9 and 10: nothing dangerous happens unasked, however it is spelled.
#[test]
fn hermit_09_10_no_spelling_of_a_dangerous_command_does_harm_unasked() {
    let home = Home::new();
    put(&home, "dir/file", "kept");
    for line in [
        "'rm' -rf dir",
        "rm${IFS}-rf${IFS}dir",
        "echo dir | xargs rm -rf",
        "\\rm -rf dir",
        "python3 -c \"import shutil; shutil.rmtree('dir')\"",
        "find dir -delete",
        "mv dir /tmp/gone",
        "echo | tee dir/file",
        "perl -e 'unlink \"dir/file\"'",
        "mkfs -t ext4 dir/file",
        "sh -c \"$(printf 'rm -rf dir')\"",
    ] {
        let steps = json!([{"id": "x", "call": "run_command", "with": {"program": "sh", "args": ["-c", line]}}]);
        let ran = run(&home, &plan(steps), &[]);
        assert_ne!(ran.code, Some(0), "{line}: {ran:?}");
        assert_eq!(read(&home, "dir/file").as_deref(), Some("kept"), "{line}");
    }
}

/// Group 11: what is not understood is refused whole, and nothing of it runs.
#[test]
fn hermit_11_what_is_no_plan_is_never_run() {
    let home = Home::new();
    let first = r#"{"id":"w","call":"create_file","with":{"path":"pwned","text":"x"}}"#;
    for text in [
        "touch pwned".to_owned(),
        "```sh\ntouch pwned\n```".to_owned(),
        format!(r#"{{"version":1,"steps":[{first}"#),
        format!(r#"{{"version":1,"steps":[{first}]}} trailing"#),
        format!(r#"{{"version":2,"steps":[{first}]}}"#),
        format!(r#"{{"version":1,"steps":[{first},{{"id":"x","call":"format_disk"}}]}}"#),
        format!(r#"{{"version":1,"steps":[{first},{{"id":"x","command":"touch pwned"}}]}}"#),
        format!(
            r#"{{"version":1,"steps":[{first},{{"id":"d","call":"delete_files","with":{{"paths":["a.txt"],"recursive":"false"}}}}]}}"#
        ),
        format!(r#"{{"version":1,"steps":[{first}],"steps":[]}}"#),
        format!(r#"{{"version":1,"steps":[{first}],"and":"more"}}"#),
        format!("{}{}", "[".repeat(5000), "]".repeat(5000)),
    ] {
        let ran = run_text(&home, &text, &ALL);
        assert_eq!(ran.code, Some(64), "{text}: {ran:?}");
        assert!(ran.err.contains("nothing was done"), "{ran:?}");
        assert_eq!(read(&home, "pwned"), None, "{text}");
    }
    std::fs::write(
        home.path().join("plan.json"),
        b"{\"version\":1,\"steps\":\xff\xfe}",
    )
    .unwrap();
    let ran = home.run(&["run", "--plan", "../plan.json", "--yes-low"]);
    assert_eq!(ran.code, Some(64), "{ran:?}");
}

/// Group 12: the time limit ends everything the command started.
#[test]
fn hermit_12_a_command_out_of_time_is_gone_with_its_children() {
    let home = Home::new();
    let mark = mark();
    let script = format!("(sleep 600; touch pwned) & sleep {mark}");
    let ran = out_of_time(&mark, |seconds| {
        let steps = json!([
            {"id": "x", "call": "run_command", "with": {"program": "sh", "args": ["-c", script], "seconds": seconds}}
        ]);
        run(&home, &plan(steps), &["--json", "--grant", "fs.*=."])
    });
    assert!(ran.out.contains("timed-out"), "{ran:?}");
    assert_eq!(read(&home, "pwned"), None);
}

/// Group 15: a place outside the workspace is out of reach, by any spelling.
#[test]
fn hermit_15_places_outside_are_out_of_reach() {
    let home = Home::new();
    std::fs::write(home.path().join("outside"), "kept").unwrap();
    std::fs::create_dir(home.path().join("proj2")).unwrap();
    std::fs::write(home.path().join("proj2/file"), "kept").unwrap();
    std::os::unix::fs::symlink("../outside", home.project().join("link")).unwrap();
    for path in [
        "../outside",
        "/etc/passwd",
        "~/outside",
        "../proj2/file",
        "in/../../outside",
    ] {
        let steps = json!([{"id": "d", "call": "delete_files", "with": {"paths": [path]}}]);
        let ran = run(&home, &plan(steps), &ALL);
        assert_eq!(ran.code, Some(77), "{path}: {ran:?}");
    }
    // Put together from parts, so that the plan alone does not show it.
    let steps = json!([
        {"id": "n", "let": {"fn": "lower", "of": ["../OUTSIDE"]}},
        {"id": "r", "call": "read_file", "with": {"path": {"$": "n"}}},
        {"id": "d", "call": "delete_files", "with": {"paths": [{"$": "n"}]}},
        {"id": "w", "call": "create_file", "with": {"path": "link", "text": "x", "replace": true}}
    ]);
    let ran = run(&home, &plan(steps), &ALL);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        std::fs::read_to_string(home.path().join("outside")).unwrap(),
        "kept"
    );
    let steps = json!([{"id": "d", "call": "delete_files", "with": {"paths": ["in/.."], "recursive": true}}]);
    assert_eq!(run(&home, &plan(steps), &ALL).code, Some(77));
}

/// No more files at once than configured, whatever is granted.
#[test]
fn an_action_changes_no_more_files_than_configured() {
    let home = Home::new();
    home.configure("[safety]\nmax_files_per_operation = 2\n");
    for name in ["b.txt", "c.txt"] {
        put(&home, name, name);
    }
    for steps in [
        json!([{"id": "d", "call": "delete_files", "with": {"paths": ["a.txt", "b.txt", "c.txt"]}}]),
        json!([{"id": "o", "call": "organize_by_type", "with": {"path": "."}}]),
    ] {
        let ran = run(&home, &plan(steps), &ALL);
        assert_eq!(ran.code, Some(77), "{ran:?}");
        assert!(ran.out.contains("max_files_per_operation"), "{ran:?}");
    }
    assert_eq!(names(&home, "."), ["a.txt", "b.txt", "c.txt"]);
    // What moves counts once: two files are two.
    std::fs::create_dir(home.project().join("d")).unwrap();
    let steps = json!([{"id": "m", "call": "move_files", "with": {"paths": ["b.txt", "c.txt"], "into": "d"}}]);
    let ran = run(&home, &plan(steps), &ALL);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// Group 17: what is written is exactly what was given.
#[test]
fn hermit_17_content_is_written_as_it_is() {
    let home = Home::new();
    for (place, content) in ["", "-n", "\\c", "  white \t ", "a\r\nb", "-e \\x41"]
        .iter()
        .enumerate()
    {
        let out = format!("f{place}");
        let steps =
            json!([{"id": "w", "call": "create_file", "with": {"path": out, "text": content}}]);
        assert_eq!(run(&home, &plan(steps), &ALL).code, Some(0));
        assert_eq!(read(&home, &out).unwrap(), *content);
    }
    put(&home, "large", "x".repeat(1 << 20));
    put(&home, "binary", [0_u8, 255, 254, 10]);
    let steps = json!([
        {"id": "c", "call": "copy_file", "with": {"from": "large", "to": "large2"}},
        {"id": "b", "call": "copy_file", "with": {"from": "binary", "to": "binary2"}},
        {"id": "r", "call": "read_file", "with": {"path": "binary"}}
    ]);
    let ran = run(&home, &plan(steps), &ALL);
    assert_eq!(ran.code, Some(1), "text is what is read: {ran:?}");
    assert_eq!(
        std::fs::read(home.project().join("binary2")).unwrap(),
        [0, 255, 254, 10]
    );
    assert_eq!(read(&home, "large2").unwrap().len(), 1 << 20);
}

/// Group 18: sorting sorts that directory, keeps what is in the way, and takes every spelling.
#[test]
fn hermit_18_sorting_sorts_the_directory_named_or_nothing() {
    let home = Home::new();
    let sort =
        |path: &str| plan(json!([{"id": "o", "call": "organize_by_type", "with": {"path": path}}]));
    let ran = run(&home, &sort("missing"), &ALL);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(names(&home, "."), ["a.txt"]);
    for name in [
        "A.JPG",
        "b-c.mp3",
        "-x.py",
        "n",
        "same.txt",
        "Documents/same.txt",
    ] {
        put(&home, &format!("in/{name}"), name);
    }
    let ran = run(&home, &sort("in"), &ALL);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        names(&home, "in"),
        ["Audio", "Code", "Documents", "Images", "Other", "same.txt"]
    );
    assert_eq!(
        read(&home, "in/Documents/same.txt").unwrap(),
        "Documents/same.txt"
    );
    assert_eq!(names(&home, "in/Code"), ["-x.py"]);
}

#[test]
fn a_long_text_is_seen_whole_before_the_plan_that_writes_it_is_approved() {
    let home = Home::new();
    let long = format!("# {}\n\u{3164}the end\n", "harmless ".repeat(20));
    let steps = json!([
        {"id": "c", "call": "create_file", "with": {"path": "x.sh", "text": long}},
        {"id": "i", "if": true, "then": [
            {"id": "r", "call": "run_command", "with": {
                "program": "sh", "args": ["-c", format!("{}; true", "echo ".repeat(30))]}}
        ]},
        {"id": "s", "call": "create_file", "with": {"path": "y", "text": "short"}}
    ]);
    std::fs::write(home.path().join("p.json"), plan(steps).to_string()).unwrap();
    let ran = home.run(&["plan", "--plan", "../p.json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let line = |text: &str| ran.out.lines().filter(|line| *line == text).count();
    let first = format!("       > # {}", "harmless ".repeat(20));
    assert_eq!(line(&first), 1, "{ran:?}");
    assert_eq!(line("       > \\u{3164}the end"), 1, "{ran:?}");
    let words = format!("         > {}; true", "echo ".repeat(30));
    assert_eq!(line(&words), 1, "{ran:?}");
    assert_eq!(ran.out.matches("short").count(), 1, "{ran:?}");
    let ran = home.run(&["plan", "--plan", "../p.json", "--json"]);
    let told: Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    assert_eq!(told["steps"][0]["texts"], json!([long]));
}

#[test]
fn error_rules_hold_for_the_real_actions() {
    let home = Home::new();
    put(&home, "there", "same");
    let steps = json!([
        {"id": "deep", "call": "create_file", "with": {"path": "new/dir/file", "text": "x"}},
        {"id": "same", "call": "create_file", "with": {"path": "there", "text": "same"}},
        {"id": "other", "call": "create_file", "with": {"path": "there", "text": "other"}},
        {"id": "dir", "call": "create_directory", "with": {"path": "new/dir"}},
        {"id": "last", "call": "read_file", "with": {"path": "there"}}
    ]);
    let ran = run(&home, &plan(steps), &["--json", "--grant", "fs.*=."]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(read(&home, "new/dir/file").unwrap(), "x");
    assert_eq!(read(&home, "there").unwrap(), "same");
    let statuses: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["type"] == "step")
        .map(|line| line["status"].clone())
        .collect();
    assert_eq!(
        statuses,
        ["done", "already so", "failed", "already so", "done"]
    );
}

#[test]
fn data_that_would_choose_what_is_deleted_is_refused_with_nobody_to_ask() {
    let home = Home::new();
    put(&home, "list.txt", "a.txt");
    let steps = json!([
        {"id": "r", "call": "read_file", "with": {"path": "list.txt"}},
        {"id": "d", "call": "delete_files", "with": {"paths": {"fn": "lines", "of": [{"$": "r.text"}]}}},
        {"id": "i", "if": {"fn": "contains", "of": [{"$": "r.text"}, "a"]}, "then": [
            {"id": "w", "call": "create_file", "with": {"path": "w", "text": "x"}}
        ]},
        {"id": "x", "call": "run_command", "with": {"program": "touch", "args": [{"$": "r.text"}, "t"]}}
    ]);
    let ran = run(&home, &plan(steps), &ALL);
    assert_eq!(
        ran.code,
        Some(77),
        "everything on files is granted, and yet: {ran:?}"
    );
    assert_eq!(names(&home, "."), ["a.txt", "list.txt"]);
    assert!(
        ran.out
            .contains("`paths` of d will be decided by data from r"),
        "{ran:?}"
    );
    assert!(home.ledger().contains("untrusted-flow"));
    // Several files go as one change, and the same holds.
    put(&home, "list.txt", "a.txt\nlist.txt");
    let steps = json!([
        {"id": "r", "call": "read_file", "with": {"path": "list.txt"}},
        {"id": "d", "call": "delete_files", "with": {"paths": {"fn": "lines", "of": [{"$": "r.text"}]}}},
    ]);
    let ran = run(&home, &plan(steps), &ALL);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert_eq!(names(&home, "."), ["a.txt", "list.txt"]);
}
