//! Every rule of canonicalisation, through the relation: a pair of runs it makes
//! equal, and a pair it must not.

use super::*;
use crate::canon::{CONVERSATION, RULES};

/// What both subjects do in a case: two runs that are the same but for what a
/// rule takes out, and two that are not.
struct Pairs {
    script: Vec<Step>,
    same: [Vec<StepTrace>; 2],
    other: [Vec<StepTrace>; 2],
}

fn of(tool: &str) -> Step {
    Step::Call {
        tool: tool.into(),
        args: json!({}),
        by: None,
    }
}

/// One call of a tool; what each run says of it.
fn said(tool: &str, same: [Value; 2], other: [Value; 2]) -> Pairs {
    let one = |value: Value| vec![step(StepOutcome::Ran, &value.to_string(), Vec::new())];
    Pairs {
        script: vec![of(tool)],
        same: same.map(one),
        other: other.map(one),
    }
}

/// One call; what each run changes, as (path, digest).
fn changed(same: [&[(&str, &str)]; 2], other: [&[(&str, &str)]; 2]) -> Pairs {
    let one = |list: &[(&str, &str)]| {
        let effects = list.iter().map(|(path, digest)| FsEffect {
            digest: (*digest).into(),
            ..effect(path, EffectKind::Created)
        });
        vec![ran(effects.collect())]
    };
    Pairs {
        script: vec![call()],
        same: same.map(one),
        other: other.map(one),
    }
}

/// One call; the words each run gives.
fn worded(same: [StepTrace; 2], other: [StepTrace; 2]) -> Pairs {
    Pairs {
        script: vec![call()],
        same: same.map(|one| vec![one]),
        other: other.map(|one| vec![one]),
    }
}

/// One conversation; what a model was told in each run.
fn told(same: [&str; 2], other: [&str; 2]) -> Pairs {
    let one = |words: &str| {
        let value = json!({"agents": {"parent": {"requests": 1, "told": [{"tool": words}]}}});
        vec![StepTrace {
            answer: json!({"decision": "none", "value": value}),
            ..StepTrace::of(StepOutcome::Ran)
        }]
    };
    Pairs {
        script: vec![Step::Probe {
            name: CONVERSATION.into(),
            input: json!({}),
        }],
        same: same.map(one),
        other: other.map(one),
    }
}

fn pairs(rule: &str) -> Pairs {
    let text = |text: &str| step(StepOutcome::Ran, text, Vec::new());
    let ended = |outcome: StepOutcome, text: &str| step(outcome, text, Vec::new());
    let refusal = |text: &str| ended(StepOutcome::Refused("no-cap".into()), text);
    match rule {
        "json-spacing" => worded(
            [text(r#"{"a": 1, "b": [1]}"#), text(r#"{"a":1,"b":[ 1 ]}"#)],
            [text(r#"{"a": 1, "b": 2}"#), text(r#"{"b": 2, "a": 1}"#)],
        ),
        "refusal-prose" => worded(
            [refusal("no"), refusal("Denied (no-cap): fs.read x")],
            [refusal("no"), text("no")],
        ),
        "tool-error-is-a-result" => worded(
            [
                ended(StepOutcome::ToolError, r#"{"error": "x"}"#),
                text(r#"{"error": "x"}"#),
            ],
            [
                ended(StepOutcome::ToolError, r#"{"error": "x"}"#),
                text(r#"{"error": "y"}"#),
            ],
        ),
        // The second step adds nothing to what the first one left, or it does.
        "step-delta" => {
            let (one, two) = (
                effect("/home/u/proj/a", EffectKind::Created),
                effect("/home/u/proj/b", EffectKind::Created),
            );
            let first = || ran(vec![one.clone()]);
            Pairs {
                script: vec![call(), call()],
                same: [vec![first(), first()], vec![first(), first()]],
                other: [
                    vec![first(), first()],
                    vec![first(), ran(vec![one.clone(), two])],
                ],
            }
        }
        "effect-order" => changed(
            [
                &[("/home/u/proj/a", "1"), ("/home/u/proj/b", "2")],
                &[("/home/u/proj/b", "2"), ("/home/u/proj/a", "1")],
            ],
            [
                &[("/home/u/proj/a", "1"), ("/home/u/proj/b", "2")],
                &[("/home/u/proj/a", "2"), ("/home/u/proj/b", "1")],
            ],
        ),
        "made-up-names" => {
            let run = |names: [&str; 3]| {
                names
                    .map(|name| text(&json!({ "session_id": name }).to_string()))
                    .into()
            };
            let (a, b, c, d) = (
                "proc_aaaaaaaaaaaa",
                "proc_bbbbbbbbbbbb",
                "proc_cccccccccccc",
                "proc_dddddddddddd",
            );
            Pairs {
                script: vec![of("process"), of("process"), of("process")],
                same: [run([a, b, a]), run([c, d, c])],
                other: [run([a, b, a]), run([c, d, d])],
            }
        }
        "shell-complaints" => {
            let complaint = "bash: no job control in this shell\n";
            said(
                "process",
                [
                    json!({"output": format!("{complaint}x\n")}),
                    json!({"output": "x\n"}),
                ],
                [
                    json!({"output": format!("x\n{complaint}")}),
                    json!({"output": "x\n"}),
                ],
            )
        }
        "listed-once" => {
            let (a, b) = (json!({"exit_code": 0}), json!({"exit_code": 1}));
            said(
                "process",
                [json!({"processes": [a, a]}), json!({"processes": [a]})],
                [json!({"processes": [a, b]}), json!({"processes": [a]})],
            )
        }
        "ended-in-any-order" => {
            let one = |status: &str, code: u8| json!({"status": status, "exit_code": code});
            let both = |one: Value, two: Value| json!({"processes": [one, two]});
            let (ended, running) = (|code| one("exited", code), |code| one("running", code));
            said(
                "process",
                [both(ended(0), ended(1)), both(ended(1), ended(0))],
                [both(running(0), running(1)), both(running(1), running(0))],
            )
        }
        "moment-in-a-name" => changed(
            [
                &[("/home/u/proj/c.yaml.corrupt.20260101-120000.bak", "1")],
                &[("/home/u/proj/c.yaml.corrupt.20270102-130001.bak", "1")],
            ],
            [
                &[("/home/u/proj/c.yaml.corrupt.1.bak", "1")],
                &[("/home/u/proj/c.yaml.corrupt.2.bak", "1")],
            ],
        ),
        "own-count" => said(
            "process",
            [
                json!({"pid": 1, "uptime_seconds": 2}),
                json!({"pid": 3, "uptime_seconds": 4}),
            ],
            [
                json!({"pid": 1, "exit_code": 2}),
                json!({"pid": 1, "exit_code": 4}),
            ],
        ),
        "unwritten-draft" => {
            let error = |what: &str| json!({"error": format!("Failed to write file: {what}\n")});
            let draft = "/usr/bin/bash: line 3: ./.hermes-tmp.Xn9: Permission denied";
            said(
                "write_file",
                [error(draft), error("Permission denied")],
                [error(draft), error("No space left on device")],
            )
        }
        "draft-in-a-name" => changed(
            [
                &[("/home/u/proj/.hermes-tmp.3AZ7FF", "1")],
                &[("/home/u/proj/.hermes-tmp.a00bQ9", "1")],
            ],
            [
                &[("/home/u/proj/.hermes-tmp.3AZ7FF", "1")],
                &[("/home/u/proj/.hermes-tmp.a00bQ9.txt", "1")],
            ],
        ),
        "parser-words" => {
            let error = |why: &str| json!({"error": format!("candidate content fails .yaml syntax validation ({why}). The file was NOT created or modified.")});
            said(
                "write_file",
                [
                    error("YAMLError: while parsing\n  a flow (x)"),
                    error("YAMLError: unclosed"),
                ],
                [
                    error("YAMLError: unclosed"),
                    error("TOMLDecodeError: unclosed"),
                ],
            )
        }
        "own-copies" => told(
            [
                r#"{"status": "dispatched", "live_transcripts": ["/home/u/.hermes/x.log"]}"#,
                r#"{"status": "dispatched"}"#,
            ],
            [
                r#"{"status": "dispatched", "count": 1}"#,
                r#"{"status": "dispatched"}"#,
            ],
        ),
        "tools-on-offer" => told(
            [
                "Tool 'x' does not exist. Available tools: browser_back, patch",
                "Tool 'x' does not exist. Available tools: patch",
            ],
            [
                "Tool 'x' does not exist. Available tools: patch",
                "Tool 'y' does not exist. Available tools: patch",
            ],
        ),
        "reason-asked" => {
            let asked = |why: &str, end: &str| json!({"output": "x", "approval": format!("Command required approval ({why}) and was approved by {end}")});
            said(
                "terminal",
                [
                    asked("a pattern", "the user."),
                    asked("an effect", "the user."),
                ],
                [
                    asked("a pattern", "the user."),
                    asked("a pattern", "a judge."),
                ],
            )
        }
        "asked-by-own-rules" => {
            let ran = |asked: Option<&str>, code: u8| {
                let mut value = json!({"output": "x", "exit_code": code});
                if let Some(why) = asked {
                    value["approval"] =
                        format!("Command required approval ({why}) and was approved by the user.")
                            .into();
                }
                value.to_string()
            };
            told(
                [&ran(Some("an effect"), 0), &ran(None, 0)],
                [&ran(Some("an effect"), 0), &ran(None, 1)],
            )
        }
        "own-traceback" => {
            let failed = |lines: Option<&str>, error: &str| {
                let mut value =
                    json!({"output": "", "error": format!("Failed to execute command: {error}")});
                if let Some(lines) = lines {
                    value["traceback"] =
                        format!("Traceback (most recent call last):\n{lines}").into();
                }
                value
            };
            said(
                "terminal",
                [failed(Some("a.py, line 1"), "x"), failed(None, "x")],
                [failed(Some("a.py, line 1"), "x"), failed(None, "y")],
            )
        }
        "drawn-file-names" => {
            let kept = |drawn: &str, kind: &str| json!({"result": format!("MEDIA:/home/u/.hermes/cache/images/img_{drawn}.{kind}")});
            said(
                "mcp__desk__picture",
                [kept("0123456789ab", "png"), kept("ba9876543210", "png")],
                [kept("0123456789ab", "png"), kept("0123456789ab", "gif")],
            )
        }
        "siblings-by-name" => {
            let warned = |name: &str, rest: &str| json!({"_warning": format!("/w/a was modified by sibling subagent '{name}' {rest}")});
            let never = "but this agent never read it.";
            said(
                "write_file",
                [warned("case", never), warned("agent0", never)],
                [
                    warned("case", never),
                    warned(
                        "agent0",
                        "at 12:00:00 \u{2014} after this agent's last read at 11:00:00.",
                    ),
                ],
            )
        }
        // What is heard of a shell without room is no difference; what another program says is.
        "may-not-fork" => {
            let waits = "bash: fork: retry: Resource temporarily unavailable";
            let result = |output: &str, exit_code: i32| json!({"output": output, "exit_code": exit_code, "error": null});
            said(
                "terminal",
                [
                    result("", 0),
                    result(&format!("{waits}\n\n[Command timed out after 8s]"), 124),
                ],
                [
                    result(waits, 0),
                    result(&format!("{waits}\nbash: fork: retry: no"), 0),
                ],
            )
        }
        "job-file" => changed(
            [
                &[("/home/u/.hermes/cron/jobs.json", "1")],
                &[("/home/u/.hermes/cron/jobs.json", "2")],
            ],
            [
                &[("/home/u/.hermes/cron/other.json", "1")],
                &[("/home/u/.hermes/cron/other.json", "2")],
            ],
        ),
        "job-output" => changed(
            [
                &[("/home/u/.hermes/cron/output/a1/2026-01-01_12-00-00.md", "1")],
                &[("/home/u/.hermes/cron/output/a1/2027-02-03_04-05-06.md", "2")],
            ],
            [
                &[("/home/u/.hermes/cron/output/a1/2026-01-01_12-00-00.md", "1")],
                &[("/home/u/.hermes/cron/output/b2/2026-01-01_12-00-00.md", "1")],
            ],
        ),
        "git-index" => changed(
            [
                &[("/home/u/proj/.git/index", "1")],
                &[("/home/u/proj/.git/index", "2")],
            ],
            [
                &[("/home/u/proj/.git/HEAD", "1")],
                &[("/home/u/proj/.git/HEAD", "2")],
            ],
        ),
        "message-ids" => {
            let found = |id: u64| json!({"success": true, "mode": "discover", "results": [{"match_message_id": id, "messages": [{"id": id}]}]});
            said(
                "session_search",
                [found(3_000_004), found(4)],
                [found(3_000_004), found(5)],
            )
        }
        unknown => panic!("no pair of runs shows what the rule `{unknown}` does"),
    }
}

#[test]
fn every_rule_takes_out_what_it_says_and_nothing_else() {
    for rule in RULES {
        let Pairs {
            script,
            same,
            other,
        } = pairs(rule.name);
        let case = case(
            script,
            vec![hold("fs.*", "/home/u"), hold("proc.exec", "*")],
        );
        let worst = |[hermes, agent]: [Vec<StepTrace>; 2]| {
            assert_ne!(hermes, agent, "`{}`: nothing to take out", rule.name);
            judged(&case, &trace(hermes), &trace(agent)).worst()
        };
        // What is charged twice or listed in another order differs in the trace only.
        if rule.name != "step-delta" {
            assert_eq!(worst(same), Finding::Equal, "`{}` takes it out", rule.name);
        } else {
            let [hermes, agent] = same;
            let judgement = judged(&case, &trace(hermes), &trace(agent));
            assert!(judgement.steps[0].hermes.ends_with(":inside"));
            assert!(judgement.steps[1].hermes.ends_with(":none"));
        }
        assert_ne!(
            worst(other),
            Finding::Equal,
            "`{}` takes too much",
            rule.name
        );
    }
}
