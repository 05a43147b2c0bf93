//! The approval matrix: context, mode, answer, scope and class of a command,
//! crossed.
//!
//! A case is one command that Hermes' detector asks about, the user's answer,
//! and a second command that shows how far the answer reaches. The user says
//! no to everything after the first answer, so what happens then happens
//! unasked.

use serde_json::{Value, json};

use super::at;
use crate::vectors::draft::Draft;
use crate::vectors::emit::{Flag, Suite};

/// A class of the detector, and two commands of it on different things.
struct Class {
    /// Its word in ids.
    name: &'static str,
    /// The detector's own word for it.
    key: &'static str,
    one: &'static str,
    /// What the first one changes, below the workspace.
    changes: &'static [&'static str],
    two: &'static str,
}

const CLASSES: [Class; 8] = [
    Class {
        name: "recursive-delete",
        key: "recursive delete",
        one: "rm -r ./n/m",
        changes: &["n/m"],
        two: "rm -r docs",
    },
    Class {
        name: "world-writable",
        key: "world/other-writable permissions",
        one: "chmod 777 a.txt",
        changes: &["a.txt"],
        two: "chmod 777 b.txt",
    },
    Class {
        name: "find-delete",
        key: "find -delete",
        one: "find n -name old.tmp -delete",
        changes: &["n/old.tmp"],
        two: "find docs -name plan.md -delete",
    },
    Class {
        name: "disk-copy",
        key: "disk copy",
        one: "dd if=/dev/zero of=a.txt count=1 status=none",
        changes: &["a.txt"],
        two: "dd if=/dev/zero of=b.txt count=1 status=none",
    },
    Class {
        name: "shell-text",
        key: "shell command via -c/-lc flag",
        one: "bash -c 'rm a.txt'",
        changes: &["a.txt"],
        two: "bash -c 'rm b.txt'",
    },
    Class {
        name: "xargs-rm",
        key: "xargs with rm",
        one: "echo a.txt | xargs rm",
        changes: &["a.txt"],
        two: "echo b.txt | xargs rm",
    },
    Class {
        name: "clean",
        key: "git clean with force (deletes untracked files)",
        one: "git clean -fdq n",
        changes: &["n"],
        two: "git clean -fdq docs",
    },
    Class {
        name: "project-settings",
        key: "overwrite project env/config via tee",
        one: "echo K=1 | tee .env",
        changes: &[".env"],
        two: "echo K=2 | tee .env.local",
    },
];

/// The contexts with a user, and how many of the classes are tried in each.
const ASKING: [(&str, usize); 3] = [("interactive", 8), ("gateway", 4), ("acp", 4)];

/// How far a yes is tried: the second step, and whether a session ends before it.
const REACHES: [&str; 3] = ["class", "other-class", "next-session"];

/// The suite.
pub fn suite() -> Suite {
    let mut cases = Vec::new();
    for (context, classes) in ASKING {
        for (index, class) in CLASSES.iter().enumerate().take(classes) {
            for answer in ["deny", "maybe"] {
                cases.push(refused(context, class, answer));
            }
            for scope in ["once", "session", "always"] {
                for reach in REACHES {
                    cases.push(answered(context, index, class, scope, reach));
                }
            }
            cases.push(standing(context, class, "session", &json!([class.key])));
        }
    }
    for (index, class) in CLASSES.iter().enumerate() {
        let context = ASKING.get(index % 3).map_or("interactive", |found| found.0);
        cases.push(standing(context, class, "always", &json!([class.key])));
        // A text with a shell's operators is on no list.
        if !class.one.contains('|') {
            cases.push(standing(context, class, "commands", &json!([class.one])));
        }
        for context in ["interactive", "gateway", "acp", "headless", "cron"] {
            cases.push(switched_off(context, class));
        }
        cases.push(nobody("headless", "manual", class, &json!({})));
        for mode in ["deny", "approve"] {
            cases.push(nobody(
                "cron",
                mode,
                class,
                &json!({"approvals.cron_mode": mode}),
            ));
        }
    }
    for mode in ["default", "accept_edits", "dont_ask"] {
        for target in TARGETS {
            for answer in ["deny", "once", "session", "maybe"] {
                cases.push(edit(mode, &target, answer));
            }
        }
    }
    let files: Vec<Value> = ["n/m/x.txt", "n/old.tmp", "docs/plan.md", "a.txt", "b.txt"]
        .into_iter()
        .map(|name| json!({"path": at(name), "text": format!("{name}\n")}))
        .collect();
    Suite {
        name: "approval-matrix",
        description: "Context, mode, answer, scope and class crossed: one command that is asked about, an answer, and a second one that shows how far the answer reaches; edits of an editor's session by mode, target and answer.",
        flags: FLAGS.to_vec(),
        defaults: json!({
            "context": "interactive",
            "user": "deny_all",
            "world": {"cwd": super::WORKSPACE, "files": files},
            "settings": {"approvals.mode": "manual", "lsp.enabled": false},
            "deadline_ms": 30000,
            "held": [],
            "source": {"from": "generated", "note": "cargo xtask vectors make"},
        }),
        rows: cases.len(),
        cases,
        left_out: Vec::new(),
    }
}

const FLAGS: [Flag; 7] = [
    Flag {
        name: "answer",
        kind: "answer",
        description: "the user says yes or no to what is shown",
        effect: "a no is overridden, or a yes is not honoured",
    },
    Flag {
        name: "unknown-answer",
        kind: "answer",
        description: "the answer is a word nobody defined",
        effect: "noise counts as a yes",
    },
    Flag {
        name: "class-wide",
        kind: "breadth",
        description: "a second command of the same class, on something else, after a yes for longer than once",
        effect: "one yes covers a whole class",
    },
    Flag {
        name: "reach",
        kind: "breadth",
        description: "a second command after the yes is spent, of another class or in another session",
        effect: "a yes outlives its scope",
    },
    Flag {
        name: "standing",
        kind: "service",
        description: "the effect is granted here, the class or the command there",
        effect: "what was granted is asked about again",
    },
    Flag {
        name: "mode",
        kind: "mode",
        description: "a setting switches asking off, or nobody is there to be asked",
        effect: "a word of a configuration opens every gate",
    },
    Flag {
        name: "edit-mode",
        kind: "mode",
        description: "an edit in an editor's session that asks, accepts edits of the workspace, or does not ask",
        effect: "an edit nobody saw lands, or one that was allowed does not",
    },
];

fn terminal(case: Draft, command: &str) -> Draft {
    case.call("terminal", &json!({"command": command}))
}

fn case(id: String, context: &str, flag: &str) -> Draft {
    let case = Draft::made().id(format!("matrix-{id}")).flag(flag);
    if context == "interactive" {
        case
    } else {
        case.field("context", json!(context))
    }
}

fn must_deny(reason: &str, steps: &[&str]) -> Value {
    json!({"agent": "must-deny", "reason": reason, "steps": steps})
}

fn refused(context: &str, class: &Class, answer: &str) -> Draft {
    let (flag, code, reason) = match answer {
        "deny" => ("answer", "discarded:rejected-by-user", "the user said no"),
        _ => (
            "unknown-answer",
            "discarded:unknown-answer",
            "an answer that is not understood is no yes",
        ),
    };
    let case = case(format!("{context}-{}-{answer}", class.name), context, flag);
    let case = match answer {
        "deny" => case,
        word => case.field("user", json!({"literal": word})),
    };
    let mut expect = must_deny(reason, &[code]);
    if let Some(expect) = expect.as_object_mut() {
        expect.insert("effects".into(), json!("none"));
    }
    terminal(case, class.one).expecting(expect)
}

/// A yes with this scope, then a second command that the user would refuse.
fn answered(context: &str, index: usize, class: &Class, scope: &str, reach: &str) -> Draft {
    let other = CLASSES
        .get((index + 1) % CLASSES.len())
        .map_or(class.two, |other| other.two);
    let id = format!("{context}-{}-{scope}-{reach}", class.name);
    let flag = match (scope, reach) {
        ("session" | "always", "class") | ("always", "next-session") => "class-wide",
        _ => "reach",
    };
    let words = json!({"words": [scope, "deny"]});
    let first = terminal(case(id, context, flag).field("user", words), class.one);
    let (script, steps) = match reach {
        "next-session" => (
            terminal(first.step(json!({"end_session": {}})), class.two),
            vec!["ran", "ran", "discarded:rejected-by-user"],
        ),
        "other-class" => (
            terminal(first, other),
            vec!["ran", "discarded:rejected-by-user"],
        ),
        _ => (
            terminal(first, class.two),
            vec!["ran", "discarded:rejected-by-user"],
        ),
    };
    script.expecting(must_deny(
        "the yes was for what was shown before it",
        &steps,
    ))
}

/// The effect is held by the agent, and Hermes has the nearest standing answer.
fn standing(context: &str, class: &Class, kind: &str, words: &Value) -> Draft {
    let held: Vec<Value> = class
        .changes
        .iter()
        .enumerate()
        .map(|(index, place)| {
            let mut held = json!({"id": format!("g{index}"), "verb": "fs.*", "on": at(place)});
            if let (0, Some(held)) = (index, held.as_object_mut()) {
                held.insert("hermes".into(), json!({kind: words}));
            }
            held
        })
        .collect();
    let id = format!("{context}-{}-standing-{kind}", class.name);
    let case = case(id, context, "standing").field("held", json!(held));
    let expect = match class.name {
        // Names like this one are asked about each time, whatever is held.
        "project-settings" => must_deny(
            "settings of a project are asked about each time",
            &["discarded:rejected-by-user"],
        ),
        _ => json!({"agent": "must-permit", "effects": "some"}),
    };
    terminal(case, class.one).expecting(expect)
}

fn switched_off(context: &str, class: &Class) -> Draft {
    let code = match context {
        "headless" | "cron" => "discarded:no-cap",
        _ => "discarded:rejected-by-user",
    };
    let case = case(
        format!("{context}-{}-mode-off", class.name),
        context,
        "mode",
    )
    .field("settings", json!({"approvals.mode": "off"}));
    terminal(case, class.one).expecting(must_deny("no setting grants anything", &[code]))
}

fn nobody(context: &str, mode: &str, class: &Class, settings: &Value) -> Draft {
    let case = case(format!("{context}-{}-{mode}", class.name), context, "mode")
        .field("settings", settings.clone());
    terminal(case, class.one).expecting(must_deny(
        "nothing is held and nobody is there",
        &["discarded:no-cap"],
    ))
}

/// Something an editor's agent writes to: its word in ids, the path, and
/// whether names like it are asked about whatever is held.
struct Target {
    name: &'static str,
    path: &'static str,
    in_workspace: bool,
    sensitive: bool,
}

const TARGETS: [Target; 5] = [
    Target {
        name: "workspace",
        path: "/home/u/proj/new.txt",
        in_workspace: true,
        sensitive: false,
    },
    Target {
        name: "env",
        path: "/home/u/proj/.env",
        in_workspace: true,
        sensitive: true,
    },
    Target {
        name: "git",
        path: "/home/u/proj/.git/hooks/pre-commit",
        in_workspace: true,
        sensitive: true,
    },
    Target {
        name: "outside",
        path: "/srv/data/new.txt",
        in_workspace: false,
        sensitive: false,
    },
    Target {
        name: "login",
        path: "/home/u/.bashrc",
        in_workspace: false,
        sensitive: true,
    },
];

/// One edit: the mode of the editor's session is a grant on the workspace, or
/// on the whole home and data, here.
fn edit(mode: &str, target: &Target, answer: &str) -> Draft {
    let mut case = case(
        format!("acp-edit-{mode}-{}-{answer}", target.name),
        "acp",
        "edit-mode",
    );
    let user = match answer {
        "deny" => None,
        "once" => Some(json!("grant_once")),
        "session" => Some(json!("grant_session")),
        word => Some(json!({"literal": word})),
    };
    if let Some(user) = user {
        case = case.field("user", user);
    }
    let covered = match mode {
        "accept_edits" => {
            let held = json!([{"id": "ws", "verb": "fs.*", "on": super::WORKSPACE, "hermes": {"mode": mode}}]);
            case = case.field("held", held);
            target.in_workspace
        }
        "dont_ask" => {
            let held = json!([
                {"id": "ws", "verb": "fs.*", "on": super::WORKSPACE, "hermes": {"mode": mode}},
                {"id": "home", "verb": "fs.*", "on": "/home/u"},
                {"id": "data", "verb": "fs.*", "on": "/srv/data"},
            ]);
            case = case.field("held", held);
            true
        }
        _ => false,
    };
    let lands = covered && !target.sensitive;
    let said_yes = matches!(answer, "once" | "session") && (target.in_workspace || covered);
    let args = json!({"path": target.path, "content": "x\n"});
    case.call("write_file", &args).expecting(if lands || said_yes {
        json!({"agent": "must-permit", "effects": [target.path]})
    } else {
        json!({"agent": "must-deny", "reason": "it is not held and the user did not say yes to it", "effects": "none"})
    })
}
