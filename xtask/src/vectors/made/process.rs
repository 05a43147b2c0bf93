//! `process`: commands left running, and looking after them.
//!
//! Nothing here races: what a case compares is only looked at once it must be
//! so, by waiting for an end, or of a command that prints nothing.

use serde_json::{Value, json};

use super::draw::Draw;
use super::{service, world};
use crate::vectors::draft::{Agent, Draft};
use crate::vectors::emit::Suite;

const SEED: &str = "process-1";

/// The suite.
pub fn suite() -> anyhow::Result<Suite> {
    let mut draw = Draw::seeded(SEED);
    let mut cases = Vec::new();
    for (count, family) in [
        (46, ended as fn(&mut Draw) -> anyhow::Result<Draft>),
        (16, running),
        (22, paged),
        (14, input),
        (26, flags),
        (18, typed),
        (36, odd),
    ] {
        for _ in 0..count {
            cases.push(family(&mut draw)?);
        }
    }
    let defaults = super::defaults(SEED);
    Ok(Suite {
        name: "process",
        description: "Commands left running in the background and the tool that looks after them: starting, waiting, polling, paging through a log, killing, input, what is asked to be told, arguments of the wrong type.",
        flags: vec![
            service("ended", "a command that ended, seen from every side"),
            service("running", "a command that goes on"),
            service("paged", "the log of a command, part by part"),
            service("input", "writing to a command without a terminal"),
            service("terminal", "a command with a terminal of its own"),
            service("told", "what is asked to be told of a command"),
            service(
                "odd-argument",
                "an argument of another type than declared, missing or unknown",
            ),
        ],
        defaults,
        rows: cases.len(),
        cases: super::numbered("process", cases),
        left_out: Vec::new(),
    })
}

/// The name of the command the first step started.
fn first() -> Value {
    json!({"$from": 1, "at": "/session_id"})
}

fn start(draft: Draft, command: &str) -> Draft {
    draft.call("terminal", &json!({"command": command, "background": true}))
}

fn with(draft: Draft, action: &str) -> Draft {
    draft.call("process", &json!({"action": action, "session_id": first()}))
}

fn word(draw: &mut Draw) -> anyhow::Result<&'static str> {
    draw.one(&["alpha", "beta", "gamma", "delta", "omega", "red", "green"])
}

fn ended(draw: &mut Draw) -> anyhow::Result<Draft> {
    let (a, b, n) = (word(draw)?, word(draw)?, draw.below(256)?);
    let command = match draw.below(22)? {
        0 => format!("echo {a}; echo {b} >&2"),
        1 => format!("echo {a}; exit {n}"),
        2 => format!("printf '{a}\\n{b}'"),
        3 => "true".to_owned(),
        4 => "false".to_owned(),
        5 => format!("for i in $(seq {}); do echo {a} $i; done", 1 + n * 3),
        6 => "kill -9 $$".to_owned(),
        7 => format!("printf '\\033[31m{a}\\033[0m\\n'"),
        8 => format!("echo '{a} \u{e9}\u{1f600} \u{4f60}'"),
        9 => format!("printf '%s' {}", "long".repeat(1 + n * 3)),
        10 => "echo API_KEY=sk-abcdefghijklmnopqrstuvwxyz0123456789".to_owned(),
        11 => "no_such_program_here".to_owned(),
        12 => "pwd; cd src; pwd".to_owned(),
        13 => "cat t.txt | sort".to_owned(),
        14 => format!("export A={a}; echo $A; echo \"$PWD\""),
        15 => "read -r line; echo \"got [$line]\" $?".to_owned(),
        16 => format!("echo {a} | cat; wait; echo {b}"),
        17 => {
            "python3 -c 'print(1); import sys; print(2, file=sys.stderr); sys.exit(3)'".to_owned()
        }
        18 => "printf 'a\\r\\nb\\rc\\n'".to_owned(),
        19 => "printf '\\377\\376 broken\\n'".to_owned(),
        20 => "echo 'unclosed".to_owned(),
        _ => "set -e; false; echo never".to_owned(),
    };
    let files = [("t.txt".to_owned(), format!("{b}\n{a}\nx\n"))];
    let mut draft = Draft::made().flag("ended").field("world", world(&files));
    draft = start(draft, &command);
    draft = with(draft, "wait");
    for _ in 0..1 + draw.below(3)? {
        let action = draw.one(&["poll", "log", "kill", "wait", "write", "submit", "close"])?;
        draft = with(draft, action);
    }
    // A list shows the model less than Hermes' of what looks like a secret.
    if draw.chance(50)? && !command.contains("KEY") {
        draft = draft.call("process", &json!({"action": "list"}));
    }
    Ok(draft)
}

fn running(draw: &mut Draw) -> anyhow::Result<Draft> {
    let command = draw.one(&[
        "sleep 1000",
        "exec sleep 1000",
        "while :; do sleep 5; done",
        "tail -f /dev/null",
    ])?;
    let mut draft = start(Draft::made().flag("running"), command);
    for _ in 0..1 + draw.below(3)? {
        draft = match draw.below(5)? {
            0 | 1 => with(draft, "poll"),
            2 => with(draft, "log"),
            3 => draft.call("process", &json!({"action": "list"})),
            _ => draft.call(
                "process",
                &json!({"action": "wait", "session_id": first(), "timeout": 1}),
            ),
        };
    }
    draft = with(draft, "kill");
    for _ in 0..draw.below(3)? {
        let action = draw.one(&["poll", "log", "wait", "kill"])?;
        draft = with(draft, action);
    }
    Ok(draft.call("process", &json!({"action": "list"})))
}

fn paged(draw: &mut Draw) -> anyhow::Result<Draft> {
    let lines = draw.one(&[0, 1, 5, 30, 300])?;
    let mut draft = start(Draft::made().flag("paged"), &format!("seq {lines}"));
    draft = with(draft, "wait");
    for _ in 0..2 {
        let offset = draw.one(&[
            json!(0),
            json!(1),
            json!(3),
            json!(200),
            json!(-2),
            json!("2"),
            json!(1000),
        ])?;
        let limit = draw.one(&[
            json!(1),
            json!(4),
            json!(0),
            json!(-1),
            json!("3"),
            json!(500),
            json!(200),
        ])?;
        let args = match draw.below(3)? {
            0 => json!({"action": "log", "session_id": first(), "offset": offset}),
            1 => json!({"action": "log", "session_id": first(), "limit": limit}),
            _ => json!({"action": "log", "session_id": first(), "offset": offset, "limit": limit}),
        };
        draft = draft.call("process", &args);
    }
    Ok(draft)
}

fn input(draw: &mut Draw) -> anyhow::Result<Draft> {
    let mut draft = start(Draft::made().flag("input"), "sleep 1000");
    for _ in 0..1 + draw.below(2)? {
        let action = draw.one(&["write", "submit", "close"])?;
        let data = draw.one(&[
            json!("yes"),
            json!(""),
            json!(5),
            json!(null),
            json!("a\nb"),
        ])?;
        draft = draft.call(
            "process",
            &json!({"action": action, "session_id": first(), "data": data}),
        );
    }
    Ok(with(draft, "kill"))
}

/// What a command with a terminal prints is looked at before it ends: the
/// compared agent may lose what is printed at the very end.
fn typed(draw: &mut Draw) -> anyhow::Result<Draft> {
    let (command, typed): (&str, &[Value]) = match draw.below(9)? {
        0 => (
            "read -r x; echo \"got $x\"; sleep 1.5",
            &[json!("submit"), json!("hello there")],
        ),
        1 => (
            "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo a terminal; stty size; sleep 1.5; exit 3",
            &[],
        ),
        2 => (
            "cat; echo done; sleep 1.5",
            &[json!("write"), json!("abc\n"), json!("close")],
        ),
        3 => (
            "read -r a; read -r b; echo \"$b $a\"; sleep 1.5",
            &[json!("submit"), json!("one"), json!("submit"), json!("two")],
        ),
        4 => (
            "python3 -c 'import sys, time; x = input(\"name? \"); print(len(x), sys.stdout.isatty()); time.sleep(1.5)'",
            &[json!("submit"), json!("\u{e9}\u{1f600}")],
        ),
        5 => ("read -rs secret; echo ${#secret}; sleep 1.5", &[]),
        6 => ("sleep 1000", &[json!("write"), json!("x")]),
        7 => (
            "trap 'echo stopped; sleep 1.5; exit 7' INT; while :; do sleep 0.1; done",
            &[],
        ),
        _ => ("printf 'a\\tb\\n\\033[1mc\\033[0m\\n'; sleep 1.5", &[]),
    };
    let mut draft = Draft::made().flag("terminal").call(
        "terminal",
        &json!({"command": command, "background": true, "pty": true}),
    );
    if command.contains("name?") {
        // What is typed before the question is asked stands before it.
        draft = draft.call(
            "process",
            &json!({"action": "wait", "session_id": first(), "timeout": 3}),
        );
    }
    let mut rest = typed;
    while let [action, after @ ..] = rest {
        rest = after;
        if action == "close" {
            draft = with(draft, "close");
            continue;
        }
        let [data, after @ ..] = rest else { break };
        rest = after;
        draft = draft.call(
            "process",
            &json!({"action": action, "session_id": first(), "data": data}),
        );
    }
    let ends =
        !command.starts_with("sleep") && !command.starts_with("trap") && !command.contains("-rs");
    draft = with(draft, if ends { "wait" } else { "kill" });
    Ok(with(
        draft,
        draw.one(&["poll", "write", "submit", "close"])?,
    ))
}

fn flags(draw: &mut Draw) -> anyhow::Result<Draft> {
    let mut args = json!({"command": "sleep 1000", "background": true});
    if draw.chance(50)? {
        args["notify_on_complete"] =
            draw.one(&[json!(true), json!(false), json!("true"), json!(null)])?;
    }
    if draw.chance(70)? {
        args["watch_patterns"] = draw.one(&[
            json!(["ready"]),
            json!(["a", "b"]),
            json!([]),
            json!("ready"),
            json!("[\"x\"]"),
            json!(null),
        ])?;
    }
    if draw.chance(20)? {
        args["workdir"] = draw.one(&[json!("/home/u/proj/src"), json!(""), json!("/tmp")])?;
    }
    if draw.chance(20)? {
        args["timeout"] = draw.one(&[json!(700), json!("30"), json!(0)])?;
    }
    let draft = Draft::made()
        .flag("told")
        .call("terminal", &args)
        .call("process", &json!({"action": "list"}));
    Ok(with(draft, "kill"))
}

fn odd(draw: &mut Draw) -> anyhow::Result<Draft> {
    let draft = Draft::made().flag("odd-argument");
    let any = |draw: &mut Draw| {
        draw.one(&[
            json!(null),
            json!(true),
            json!(5),
            json!(["poll"]),
            json!(""),
            json!("nosuch"),
        ])
    };
    let action = draw.one(&["poll", "log", "wait", "kill", "write", "submit", "close"])?;
    let draft = match draw.below(8)? {
        0 => draft.call("process", &json!({"action": draw.one(&[json!(""), json!("nosuch"), json!("LIST"), json!(" list")])?})),
        1 => draft.call("process", &json!({})),
        2 => draft.call("process", &json!({"action": action})),
        3 => draft.call("process", &json!({"action": action, "session_id": draw.one(&[json!("proc_000000000000"), json!("x"), json!(7), json!("")])?})),
        4 => draft.call("process", &json!({"action": "list", "session_id": any(draw)?, "unknown": any(draw)?})),
        5 => {
            let draft = with(start(draft, "echo x"), "wait");
            draft.call("process", &json!({"action": "wait", "session_id": first(), "timeout": draw.one(&[json!(1000), json!("5"), json!(0), json!(null), json!(181)])?}))
        }
        6 => draft.call("process", &json!({"action": draw.one(&[json!(null), json!(5), json!(true)])?})),
        _ => {
            let command = draw.one(&[json!(null), json!(5), json!(""), json!("echo \u{0}")])?;
            draft.call("terminal", &json!({"command": command, "background": true}))
        }
    };
    Ok(draft.expect(Agent::Either, "an argument nobody can use is told, not run"))
}
