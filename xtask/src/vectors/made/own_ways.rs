//! `own-ways`: ordinary calls that come to something else than under Hermes, each for a
//! reason an entry of the catalogue states, beside neighbours that are the same.

use serde_json::{Value, json};

use super::{at, service};
use crate::vectors::draft::{Agent, Draft};
use crate::vectors::emit::Suite;

/// The suite.
pub fn suite() -> Suite {
    let mut cases = Vec::new();
    cases.extend(refused_options());
    cases.extend(options());
    cases.extend(beyond_ascii());
    cases.extend(back_references());
    cases.extend(notes());
    cases.extend(lists());
    cases.extend(patches());
    cases.extend(commands());
    cases.extend(networks());
    cases.extend(hints());
    cases.extend(promises());
    cases.extend(other_sessions());
    cases.extend(beside_keys());
    let mut defaults = super::defaults("own-ways-1");
    defaults["source"] = json!({"from": "hand"});
    defaults["held"] = json!([
        {"id": "ws", "verb": "fs.*", "on": super::WORKSPACE},
        {"id": "memories", "verb": "fs.*", "on": MEMORIES},
    ]);
    defaults["world"] = json!({"cwd": super::WORKSPACE, "files": [
        {"path": at("lib/main.c"), "text": "int main(void) -> 0;\n# cc -O2 -Wall --dry-run -foo -v -dev --help --count\n- [ ] item\nx-1 --> y\nabab aa\n"},
        {"path": at("lib/words.txt"), "text": "жук и ёж\nété à Köln\nplain words\n"},
        {"path": at("-x.txt"), "text": "one\n"},
    ]});
    Suite {
        name: "own-ways",
        description: "Ordinary calls that come to something else than under Hermes, each for a reason the catalogue states, beside neighbours that are the same.",
        flags: vec![
            service(
                "refused-option",
                "a pattern that the search program would take for an option it does not have",
            ),
            service(
                "option",
                "a pattern or a path that Hermes hands to the search program as an option",
            ),
            service("range", "a range of letters beyond ASCII in brackets"),
            service("back-reference", "what a group matched, again"),
            service("note", "a note that looks like something else to Hermes"),
            service(
                "foreign-notes",
                "notes that somebody else wrote in a way of their own",
            ),
            service("list", "a list of commands where nobody is there"),
            service(
                "patch-order",
                "what is found after a patch of several files",
            ),
            service("order", "what is found after a command that changed files"),
            service("hint", "a command Hermes' developers have a word about"),
            service(
                "network",
                "a command that reaches for a network it was not granted",
            ),
            service(
                "other-session",
                "a file that somebody wrote in a session of the same program that is over",
            ),
            service("beside-a-key", "a patch of a file that holds a key"),
            service("plain", "a neighbour that is the same"),
        ],
        defaults,
        rows: cases.len(),
        cases,
        left_out: Vec::new(),
    }
}

fn case(id: &str, flag: &str) -> Draft {
    Draft::made().id(format!("own-way-{id}")).flag(flag)
}

fn search(draft: Draft, pattern: &str) -> Draft {
    draft.call("search_files", &json!({"pattern": pattern, "path": "lib"}))
}

/// What the search program refuses as an option is refused.
fn refused_options() -> Vec<Draft> {
    let each = [
        ("arrow", "->"),
        ("list-item", "- [ ]"),
        ("optimise", "-O2"),
        ("warn", "-Wall"),
        ("standard", "-std=c99"),
        ("dry-run", "--dry-run"),
        ("long-value", "--jobs=4 now"),
        ("long-arrow", "-->"),
        ("blank", "-- x"),
        ("no-value", "--count=3"),
        ("several", "--fi"),
        ("several-no", "--no"),
        ("length", "-Cx"),
        ("length-by-path", "-A"),
        ("length-long", "--context=x"),
        ("most", "-mx"),
        ("devices", "-Dx"),
        ("accent", "-\u{e9}"),
    ];
    let mut cases: Vec<Draft> = each
        .into_iter()
        .map(|(id, pattern)| {
            let draft = search(case(&format!("refused-{id}"), "refused-option"), pattern);
            draft.call(
                "search_files",
                &json!({"pattern": pattern, "path": "lib/main.c", "output_mode": "count", "context": 2}),
            )
        })
        .collect();
    let plain = case("escaped-arrow", "plain");
    let plain = ["\\->", "[-]v", "-", "x-1", "[-][-]dry"]
        .into_iter()
        .fold(plain, search);
    cases.push(plain);
    let absent = case("option-nowhere", "plain");
    cases.push(absent.call("search_files", &json!({"pattern": "-v", "path": "nowhere"})));
    let names = case("option-names", "plain");
    cases.push(names.call(
        "search_files",
        &json!({"pattern": "-x.txt", "target": "files"}),
    ));
    cases
}

/// What the search program would take for an option is a pattern here.
fn options() -> Vec<Draft> {
    let patterns = [
        ("letter", "-v"),
        ("file", "-foo"),
        ("number", "-1"),
        ("pattern", "-e"),
        ("end", "--"),
        ("directories", "-dev"),
        ("help", "--help"),
        ("count", "--count"),
    ];
    let mut cases: Vec<Draft> = patterns
        .into_iter()
        .map(|(id, pattern)| search(case(&format!("option-{id}"), "option"), pattern))
        .collect();
    for (id, target) in [("text", "content"), ("names", "files")] {
        cases.push(case(&format!("option-path-{id}"), "option").call(
            "search_files",
            &json!({"pattern": if target == "files" { "*" } else { "one" }, "path": "-x.txt", "target": target}),
        ));
    }
    cases
}

fn beyond_ascii() -> Vec<Draft> {
    let mut cases: Vec<Draft> = [
        ("cyrillic", "[а-я]"),
        ("latin", "[à-ü]t"),
        ("mixed", "[a-я]"),
        ("not", "[^а-я]k"),
    ]
    .into_iter()
    .map(|(id, pattern)| search(case(&format!("range-{id}"), "range"), pattern))
    .collect();
    let plain = case("range-none", "plain");
    cases.push(
        ["[жё]", "à-ü", "[é]t", "ж.к", "[a-z]\u{e9}"]
            .into_iter()
            .fold(plain, search),
    );
    cases
}

fn back_references() -> Vec<Draft> {
    let mut cases: Vec<Draft> = [
        ("word", "\\(ab\\)\\1"),
        ("letter", "\\([a-z]\\)\\1"),
        ("far", "\\(a\\).*\\1$"),
    ]
    .into_iter()
    .map(|(id, pattern)| {
        search(
            case(&format!("back-reference-{id}"), "back-reference"),
            pattern,
        )
    })
    .collect();
    let plain = case("back-reference-none", "plain");
    cases.push(
        ["\\1", "\\(a\\)\\2", "\\(ab\\)*", "\\\\1"]
            .into_iter()
            .fold(plain, search),
    );
    cases
}

/// Where notes are kept.
const MEMORIES: &str = "/home/u/.hermes/memories";

fn notes() -> Vec<Draft> {
    let add = |draft: Draft, note: &str| {
        draft.call(
            "memory",
            &json!({"action": "add", "target": "memory", "content": note}),
        )
    };
    let mut cases: Vec<Draft> = [
        (
            "tasks",
            "The team pulls tasks from the board: pull tasks on Mondays",
        ),
        ("settings", "After each release update AGENTS.md"),
        ("key", "The deploy key is ~/.ssh/deploy"),
        (
            "address",
            "Post the weekly report at https://reports.example.com",
        ),
        ("unseen", "soft\u{200b}wrap"),
        ("tools", "The course covers metasploit"),
    ]
    .into_iter()
    .map(|(id, note)| add(case(&format!("note-{id}"), "note"), note))
    .collect();
    let plain = case("note-plain", "plain");
    let plain = add(plain, "After each release update the notes");
    cases.push(add(plain, "The deploy key is in the vault"));
    let kept =
        |text: &str| json!({"files": [{"path": format!("{MEMORIES}/MEMORY.md"), "text": text}]});
    let changes: [(&str, Value); 3] = [
        (
            "remove",
            json!({"action": "remove", "target": "memory", "old_text": "a"}),
        ),
        (
            "replace",
            json!({"action": "replace", "target": "memory", "old_text": "a", "content": "b"}),
        ),
        (
            "several",
            json!({"target": "memory", "operations": [{"action": "add", "content": "b"}]}),
        ),
    ];
    for (id, args) in changes {
        let text = format!("a\n\u{a7}\n{}", "long ".repeat(500));
        cases.push(
            case(&format!("foreign-notes-{id}"), "foreign-notes")
                .field("world", kept(&text))
                .call("memory", &args)
                .expect(
                    Agent::Either,
                    "the notes are left alone, and a copy of them is not needed",
                ),
        );
    }
    cases.push(
        case("foreign-notes-none", "plain")
            .field("world", kept("a\n\u{a7}\nb\n"))
            .call(
                "memory",
                &json!({"action": "remove", "target": "memory", "old_text": "a"}),
            ),
    );
    cases
}

fn lists() -> Vec<Draft> {
    ["headless", "cron", "interactive", "gateway", "acp"]
        .into_iter()
        .map(|context| {
            let is_person = !matches!(context, "headless" | "cron");
            let flag = if is_person { "plain" } else { "list" };
            case(&format!("list-{context}"), flag)
                .field("context", json!(context))
                .call(
                    "terminal",
                    &json!({"command": "echo one", "background": true}),
                )
                .call(
                    "process",
                    &json!({"action": "wait", "session_id": {"$from": 1, "at": "/session_id"}}),
                )
                .call("process", &json!({"action": "list"}))
        })
        .collect()
}

/// A command that leaves a file as it was, and one that changes files.
fn commands() -> Vec<Draft> {
    let edit = json!({"mode": "replace", "path": "lib/words.txt", "old_string": "plain", "new_string": "some"});
    let after = |id: &str, flag: &str, command: &str| {
        case(id, flag)
            .call("read_file", &json!({"path": "lib/words.txt"}))
            .call("terminal", &json!({"command": command}))
            .call("patch", &edit)
    };
    let counts = json!({"pattern": "word", "path": "/home/u/proj", "output_mode": "count"});
    vec![
        after("rewritten-sed", "plain", "sed -i 's/absent/x/' lib/words.txt"),
        after("rewritten-touch", "plain", "cat lib/words.txt > w && cat w > lib/words.txt; rm w"),
        after("rewritten-otherwise", "plain", "sed -i 's/words/lines/' lib/words.txt"),
        after("rewritten-not", "plain", "cat lib/words.txt"),
        case("order-script", "plain")
            .call("execute_code", &json!({"code": "t = open('README').read()\nopen('README', 'w').write(t + 'word')"}))
            .call("search_files", &counts),
        case("order-command", "order")
            .call("terminal", &json!({"command": "sed -i 's/plain/more/' lib/words.txt; echo word > zz.txt; echo word > aa.txt"}))
            .call("search_files", &counts),
    ]
}

/// Whoever reached nobody is told what lets a command reach them.
fn networks() -> Vec<Draft> {
    let run = |draft: Draft, command: &str| draft.call("terminal", &json!({"command": command}));
    let reached = |id: &str, command: &str| run(case(id, "network"), command);
    let none = run(case("network-none", "plain"), "cat nobody.example 2>&1");
    let first = || json!({"$from": 1, "at": "/session_id"});
    let left_running = |id: &str, flag: &str, command: &str| {
        let args = json!({"command": command, "background": true, "notify_on_complete": true});
        let started = case(id, flag).call("terminal", &args);
        ["wait", "poll", "log", "kill"]
            .iter()
            .fold(started, |draft, action| {
                draft.call("process", &json!({"action": action, "session_id": first()}))
            })
    };
    let script = |id: &str, flag: &str, line: &str| {
        let code = format!(
            "import sys, urllib.request as u\ntry:\n    {line}\nexcept OSError as e:\n    print(e)\n    sys.exit(3)"
        );
        case(id, flag).call("execute_code", &json!({"code": code}))
    };
    vec![
        reached("network-name", "curl -sS https://nobody.example/x"),
        reached(
            "network-git",
            "git ls-remote https://nobody.example/a/b.git 2>&1",
        ),
        reached("network-loopback", "curl -sS http://127.0.0.1:8765/"),
        reached("network-localhost", "curl -sS http://localhost:8765/"),
        run(none, "echo could not resolve host: nobody.example"),
        left_running(
            "network-left-running",
            "network",
            "curl -sS http://127.0.0.1:8765/",
        ),
        left_running(
            "network-left-running-name",
            "network",
            "echo could not resolve host: nobody.example; exit 6",
        ),
        left_running(
            "network-left-running-none",
            "plain",
            "echo could not resolve host: nobody.example; cat nobody.example 2>&1 | cat",
        ),
        script(
            "network-script",
            "network",
            "u.urlopen('http://127.0.0.1:8765/')",
        ),
        script("network-script-none", "plain", "open('nobody.example')"),
    ]
}

/// Where a command is one of Hermes' own developers', Hermes adds what they found out.
fn hints() -> Vec<Draft> {
    let start = |draft: Draft, command: &str| {
        draft.call("terminal", &json!({"command": command, "background": true}))
    };
    vec![
        start(
            case("hint-checks", "hint"),
            "true | cat # gh pr checks 5 | jq .",
        ),
        start(
            case("hint-rollup", "hint"),
            "echo gh pr view 5 --json statusCheckRollup",
        ),
        start(case("hint-none", "plain"), "echo gh pr checks 5"),
    ]
}

/// Where nobody goes on after the turn nothing is promised to be told.
fn promises() -> Vec<Draft> {
    let start = |args: &Value| {
        let mut args = args.clone();
        args["command"] = json!("echo one");
        args["background"] = json!(true);
        args
    };
    ["cron", "headless", "interactive"]
        .into_iter()
        .map(|context| {
            [
                json!({"notify_on_complete": true}),
                json!({"notify_on_complete": "true", "watch_patterns": ["one"]}),
                json!({"watch_patterns": ["one"]}),
                json!({"watch_patterns": []}),
                json!({}),
            ]
            .iter()
            .fold(
                case(&format!("promise-{context}"), "plain").field("context", json!(context)),
                |draft, args| draft.call("terminal", &start(args)),
            )
        })
        .collect()
}

fn patches() -> Vec<Draft> {
    let patch = "*** Begin Patch\n*** Add File: out/zebra.txt\n+one\n*** Add File: out/apple.txt\n+one\n*** End Patch";
    let patched = |draft: Draft| draft.call("patch", &json!({"mode": "patch", "patch": patch}));
    vec![
        patched(case("patch-order-names", "patch-order")).call(
            "search_files",
            &json!({"pattern": "*", "path": "out", "target": "files"}),
        ),
        patched(case("patch-order-text", "patch-order"))
            .call("search_files", &json!({"pattern": "one", "path": "out"})),
        patched(case("patch-order-one", "plain")).call(
            "search_files",
            &json!({"pattern": "one", "path": "out/zebra.txt"}),
        ),
    ]
}

/// What a session that is over wrote is nobody's to be warned of.
fn other_sessions() -> Vec<Draft> {
    let path = "lib/new.txt";
    let next = |id: &str, flag: &str, why: &str| {
        case(&format!("other-session-{id}"), flag)
            .field("comment", json!(why))
            .call("write_file", &json!({"path": path, "content": "one\n"}))
            .step(json!({"end_session": {}}))
            .step(json!({"grant": {"id": "ws2", "verb": "fs.*", "on": super::WORKSPACE}}))
    };
    let patch = |draft: Draft, old: &str, new: &str| {
        draft.call(
            "patch",
            &json!({"mode": "replace", "path": path, "old_string": old, "new_string": new}),
        )
    };
    vec![
        patch(
            next(
                "patch-fails",
                "other-session",
                "what a session wrote that is over, patched unread, in vain",
            ),
            "two",
            "2",
        ),
        patch(
            next("patch", "other-session", "the same, and the patch fits"),
            "one",
            "1",
        ),
        next("write", "other-session", "the same, written over")
            .call("write_file", &json!({"path": path, "content": "two\n"})),
        patch(
            next(
                "read",
                "plain",
                "whoever read it first is told nothing by either",
            )
            .call("read_file", &json!({"path": path})),
            "one",
            "1",
        ),
    ]
}

/// What is masked where a file is read is masked where a patch tells of it.
fn beside_keys() -> Vec<Draft> {
    let path = "lib/keys.conf";
    let key = "sk-abcdefghijklmnopqrstuvwxyz0123456789";
    let next = |id: &str, flag: &str, why: &str| {
        case(&format!("key-{id}"), flag)
            .field("comment", json!(why))
            .field("world", json!({"cwd": super::WORKSPACE, "files": [
                {"path": at(path), "text": format!("first = 1\nOPENAI_API_KEY={key}\nlast = 9\n")},
            ]}))
    };
    let patch = |draft: Draft, old: &str, new: &str| {
        draft.call(
            "patch",
            &json!({"mode": "replace", "path": path, "old_string": old, "new_string": new}),
        )
    };
    let hunk = format!(
        "*** Begin Patch\n*** Update File: {path}\n@@\n-last = 9\n+last = 10\n*** End Patch"
    );
    vec![
        patch(
            next(
                "patched",
                "beside-a-key",
                "the difference has the line of the key beside it",
            ),
            "last = 9",
            "last = 10",
        ),
        patch(
            next(
                "missed",
                "beside-a-key",
                "the lines that are most like it hold the key",
            ),
            "OPENAI_API_KEY=none\nlast = 8",
            "last = 10",
        ),
        next("hunk", "beside-a-key", "the same of a patch of hunks")
            .call("patch", &json!({"mode": "patch", "patch": hunk})),
        next("read", "plain", "read and searched it is masked by both")
            .call("read_file", &json!({"path": path}))
            .call("search_files", &json!({"pattern": "KEY", "path": path})),
    ]
}
