//! The gate on edits: proposals, standing approval, the answers of a client.
//!
//! A standing approval of Hermes is given to both sides: to the agent as grants
//! on the same folders, so that "approved" has to mean the same files.

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::approval::answer;
use super::draft::{Agent, Draft};
use super::emit::{Flag, Suite};
use super::row::{HOME, Origin, REPO, Row, TMP};

const FLAGS: &[Flag] = &[
    Flag {
        name: "proposal",
        kind: "function",
        description: "what an edit would do, as shown to the user",
        effect: "the user sees another edit than the one made",
    },
    Flag {
        name: "standing",
        kind: "approval",
        description: "is an edit covered by a standing approval",
        effect: "an edit lands unasked",
    },
    Flag {
        name: "gate",
        kind: "approval",
        description: "does an edit go ahead after the client's answer",
        effect: "a refused or unshowable edit lands",
    },
    Flag {
        name: "options",
        kind: "function",
        description: "which answers a client is offered and what they mean",
        effect: "an answer means more than it says",
    },
    Flag {
        name: "v4a",
        kind: "function",
        description: "which files a patch names",
        effect: "a file is changed that nobody was shown",
    },
];

/// The suite.
pub fn suite(rows: &[Row]) -> anyhow::Result<Suite> {
    let cases = rows.iter().map(case).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Suite {
        name: "edit-approval",
        description: "Which edits land unasked, what the user is shown, and what an answer means.",
        flags: FLAGS.to_vec(),
        defaults: json!({
            "context": "interactive",
            "user": "deny_all",
            "world": {"cwd": REPO},
            "settings": {"approvals.mode": "manual"},
            "deadline_ms": 20000,
        }),
        rows: rows.len(),
        cases,
        left_out: Vec::new(),
    })
}

fn case(row: &Row) -> anyhow::Result<Draft> {
    match row.kind() {
        "should_auto_approve_edit" | "_is_sensitive_auto_approve_path" => standing(row),
        "build_edit_proposal" => proposal(row),
        "maybe_require_edit_approval" => gate(row),
        "permission_options" => value(row, "options", row.input()?),
        "_map_outcome_to_hermes" => {
            let mut input = row.input()?;
            // The recorder kept the kind of the client's answer but not the option picked; the result tells it.
            let picked = match row.actual()?["result"].as_str() {
                Some("once") => "allow_once",
                Some("always") => "allow_always",
                Some("session") => "allow_session",
                other => bail!("{}: no option gives {other:?}", row.id),
            };
            input["args"][0]["option_id"] = json!(picked);
            value(row, "options", input)
        }
        "parse_v4a_patch" => value(row, "v4a", row.input()?),
        other => bail!("{}: unknown kind `{other}`", row.id),
    }
}

/// A function of its input alone: both sides have to give the same value.
fn value(row: &Row, flag: &str, input: Value) -> anyhow::Result<Draft> {
    Ok(Draft::new(row, row.note()?)
        .flag(flag)
        .probe(row.kind(), &input)
        .hermes_without_world()
        .expect(Agent::Either, "a value, not a decision")
        .recorded(answer("none", &row.actual()?)))
}

/// The files an input says are there.
fn files(input: &Value) -> Vec<Value> {
    let mut files = Vec::new();
    for (path, text) in input["files"].as_object().into_iter().flatten() {
        files.push(json!({"path": path, "text": text}));
    }
    // Every generated row of the gate had an empty folder beside its files.
    if !files.is_empty() {
        files.push(json!({"path": format!("{REPO}/sub"), "dir": true}));
    }
    files
}

/// The sample file of the upstream tests, as it was before the edit.
fn sample(input: &Value) -> Vec<Value> {
    let before = if input["args"][0] == json!("patch") {
        "alpha\nbeta\n"
    } else {
        "before\n"
    };
    vec![json!({"path": format!("{TMP}/sample.txt"), "text": before})]
}

fn proposal(row: &Row) -> anyhow::Result<Draft> {
    let input = row.input()?;
    let files = if row.origin()? == Origin::UpstreamTest {
        sample(&input)
    } else {
        files(&input)
    };
    Ok(Draft::new(row, row.note()?)
        .flag("proposal")
        .field("world", json!({"cwd": REPO, "files": files}))
        .probe(row.kind(), &input)
        .expect(Agent::Either, "a value, not a decision")
        .recorded(answer("none", &row.actual()?)))
}

fn gate(row: &Row) -> anyhow::Result<Draft> {
    let mut input = row.input()?;
    let actual = row.actual()?;
    let upstream = row.origin()? == Origin::UpstreamTest;
    let goes_ahead = if upstream {
        actual["result"].is_null()
    } else {
        actual["dispatch_continues"] == json!(true)
    };
    let files = if upstream {
        // The recorder kept the call and the gate's result but not the client; the result tells what it said.
        input["requester"] = json!(goes_ahead);
        sample(&input)
    } else {
        files(&input)
    };
    let draft = Draft::new(row, row.note()?)
        .flag("gate")
        .field("world", json!({"cwd": REPO, "files": files}))
        .field(
            "user",
            json!(if input["requester"] == json!(true) {
                "grant_once"
            } else {
                "deny_all"
            }),
        )
        .probe(row.kind(), &input)
        .recorded(answer(
            if goes_ahead { "permit" } else { "deny" },
            &Value::Null,
        ));
    Ok(if goes_ahead {
        draft.expect(Agent::Either, "a client that agrees lets the edit go ahead; a tool the gate does not know is not the gate's to permit")
    } else {
        draft.expect(
            Agent::MustDeny,
            "refused, unanswered or not showable: nothing may land",
        )
    })
}

fn standing(row: &Row) -> anyhow::Result<Draft> {
    let input = row.input()?;
    let actual = row.actual()?;
    if row.origin()? == Origin::UpstreamTest {
        // One function answers "approved", the other "sensitive": true means opposite things.
        let yes = actual["result"]
            .as_bool()
            .with_context(|| format!("{}: no verdict", row.id))?;
        let asks_first = row.kind() != "should_auto_approve_edit";
        let decision = if yes == asks_first { "ask" } else { "permit" };
        return Ok(Draft::new(row, row.note()?)
            .flag("standing")
            .field(
                "world",
                json!({"cwd": REPO, "files": [{"path": TMP, "dir": true}]}),
            )
            .field(
                "held",
                json!([{"id": "session", "verb": "fs.*", "on": TMP}]),
            )
            .probe(row.kind(), &input)
            .expect(
                Agent::MustDeny,
                "a file of secrets by its name is asked for each time",
            )
            .recorded(answer(decision, &Value::Null)));
    }
    let approved = actual["auto_approved"]
        .as_bool()
        .with_context(|| format!("{}: no verdict", row.id))?;
    let mut grants = Vec::new();
    match (
        input["policy"].as_str().map(str::trim),
        input["cwd"].as_str(),
    ) {
        (Some("session"), _) => grants.push(("session", "/".to_owned())),
        (Some("workspace_session"), cwd) => {
            grants.extend(cwd.map(|cwd| ("workspace", cwd.to_owned())));
            grants.push(("scratch", "/tmp".to_owned()));
        }
        _ => {}
    }
    let held: Vec<_> = grants
        .iter()
        .map(|(id, on)| json!({"id": id, "verb": "fs.*", "on": on}))
        .collect();
    let cwd = input["process_cwd"].as_str().unwrap_or(REPO);
    let draft = Draft::new(row, row.note()?)
        .flag("standing")
        .field(
            "world",
            json!({"cwd": cwd, "files": [
                {"path": "/ws/sub", "dir": true},
                {"path": "/ws/homelink", "symlink": HOME},
            ]}),
        )
        .field("held", json!(held))
        .probe(row.kind(), &input)
        .recorded(answer(
            if approved { "permit" } else { "ask" },
            &Value::Null,
        ));
    let path = input["path"]
        .as_str()
        .with_context(|| format!("{}: no path", row.id))?;
    Ok(match (approved, plain(path)) {
        (false, _) => draft.expect(
            Agent::MustDeny,
            "no standing approval covers it, or it is sensitive: the user is asked",
        ),
        (true, true) => draft.expect(
            Agent::MustPermit,
            "a plain file inside what was approved for the session",
        ),
        (true, false) => draft.expect(
            Agent::Either,
            "sensitive by its name or place, or reached by a detour: asking again is sound",
        ),
    })
}

/// Whether a path is an ordinary file of the workspace or the scratch folder, named without detours.
fn plain(path: &str) -> bool {
    matches!(
        path,
        "a.txt"
            | "./a.txt"
            | "/ws/a.txt"
            | "/ws/a.txt "
            | "/tmp/x"
            | "/ws/Makefile"
            | "/ws/package.json"
    )
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_detour_or_a_sensitive_name_is_not_plain() {
        for path in [
            "/ws/../etc/x",
            "~/x",
            "/ws/.envrc",
            "/ws/homelink/x",
            "/proc/self/cwd/a.txt",
            "sub/../a.txt",
        ] {
            assert!(!plain(path), "{path}");
        }
        assert!(plain("/ws/a.txt"));
    }
}
