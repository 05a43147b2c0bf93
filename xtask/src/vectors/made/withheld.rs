//! `withheld`: what rules of the user's keep from an agent that holds the workspace.
//!
//! Each way of getting at a file is tried on places that rules withhold and on places
//! beside them. A secret stands in each withheld file, so that whoever shows it is seen;
//! beside them the same work is done as under Hermes, which knows no rules.

mod lasting;
mod ways;

use serde_json::{Value, json};

use super::{WORKSPACE, at};
use crate::vectors::draft::{Agent, Draft};
use crate::vectors::emit::{Flag, Suite};

use ways::{COMMANDS, NAMES, SEQUENCES, TOOLS};

/// A file that a case tries to get at.
struct Target {
    /// What its cases are called after.
    name: &'static str,
    /// The file.
    file: &'static str,
    /// What a rule withholds: the file itself, or a directory it lies in.
    whole: &'static str,
    /// The directory that lies in; nothing else in it matters. Empty: other files do.
    above: &'static str,
    /// Which half of the commands is tried on it.
    turn: usize,
}

/// A file by its place, a directory by its place, a name anywhere, and a question.
const WITHHELD: [Target; 4] = [
    Target {
        name: "file",
        file: "plan/secret.txt",
        whole: "plan/secret.txt",
        above: "plan",
        turn: 0,
    },
    Target {
        name: "directory",
        file: "vault/keys/deep/two.txt",
        whole: "vault/keys",
        above: "vault",
        turn: 1,
    },
    Target {
        name: "name",
        file: "pay/Wages.PAY",
        whole: "pay/Wages.PAY",
        above: "pay",
        turn: 0,
    },
    Target {
        name: "asked",
        file: "desk/drafts/one.txt",
        whole: "desk/drafts",
        above: "desk",
        turn: 1,
    },
];

/// The same shapes beside them, which no rule is about.
const BESIDE: [Target; 3] = [
    Target {
        name: "beside-file",
        file: "free/notes.txt",
        whole: "free/notes.txt",
        above: "free",
        turn: 0,
    },
    Target {
        name: "beside-directory",
        file: "shelf/books/deep/two.txt",
        whole: "shelf/books",
        above: "shelf",
        turn: 1,
    },
    Target {
        name: "sibling",
        file: "plan/notes.txt",
        whole: "plan/notes.txt",
        above: "",
        turn: 1,
    },
];

impl Target {
    /// A step's words about this target; `None` where they are about what it lacks.
    fn words(&self, template: &str) -> Option<String> {
        if self.above.is_empty() && template.contains("{d}") {
            return None;
        }
        let name = self.file.rsplit('/').next().unwrap_or(self.file);
        let below = self.file.strip_prefix(self.above).unwrap_or(self.file);
        Some(
            template
                .replace("{t}", self.file)
                .replace("{a}", &at(self.file))
                .replace("{w}", self.whole)
                .replace("{d}", self.above)
                .replace("{b}", below.trim_start_matches('/'))
                .replace("{n}", name),
        )
    }

    /// The steps of a way, each a tool and its arguments as text.
    fn steps(&self, steps: &[(&str, &str)]) -> anyhow::Result<Option<Vec<Value>>> {
        let mut script = Vec::new();
        for (tool, template) in steps {
            let Some(args) = self.words(template) else {
                return Ok(None);
            };
            let args: Value = serde_json::from_str(&args)?;
            script.push(json!({"call": {"tool": tool, "args": args}}));
        }
        Ok(Some(script))
    }
}

/// The suite.
pub fn suite() -> anyhow::Result<Suite> {
    let mut cases = Vec::new();
    for (targets, ground) in [(&WITHHELD[..], Ground::Withheld), (&BESIDE, Ground::Beside)] {
        for target in targets {
            for (number, (way, command)) in COMMANDS.iter().enumerate() {
                // Each command on every other target: what covers them is the same.
                if number % 2 != target.turn {
                    continue;
                }
                let args = json!({"command": command}).to_string();
                cases.extend(case(target, ground, way, &[("terminal", &args)])?);
            }
            for (way, tool, args) in TOOLS {
                cases.extend(case(target, ground, way, &[(tool, args)])?);
            }
            for (way, steps) in SEQUENCES {
                cases.extend(case(target, ground, way, steps)?);
            }
            for (way, command) in NAMES {
                let args = json!({"command": command}).to_string();
                cases.extend(case(target, Ground::Beside, way, &[("terminal", &args)])?);
            }
        }
    }
    cases.extend(lasting::cases());
    let mut defaults = super::defaults("none");
    defaults["source"]["note"] = json!("cargo xtask vectors make");
    defaults["world"] = json!({"cwd": WORKSPACE, "files": files()});
    defaults["rules"] = json!([
        {"id": "no-plan", "decision": "deny", "verbs": ["fs.*"], "on": at("plan/secret.txt")},
        {"id": "no-keys", "decision": "deny", "verbs": ["fs.*"], "on": at("vault/keys")},
        {"id": "no-wages", "decision": "deny", "verbs": ["fs.*"], "named": "*.pay"},
        {"id": "drafts", "decision": "ask", "verbs": ["fs.*"], "on": at("desk/drafts")},
    ]);
    Ok(Suite {
        name: "withheld",
        description: "What rules of the user's withhold from an agent that holds the workspace: files by their place, directories, names anywhere, and what is asked about each time, by every tool and many commands; and the same work beside them.",
        flags: vec![
            Flag {
                name: "withheld",
                kind: "rules",
                description: "a call that is to get at what a rule refuses, or wants a question about",
                effect: "what the user withheld is read or changed",
            },
            super::service(
                "unlisted",
                "a command in a directory whose names alone a rule withholds",
            ),
            super::service(
                "beside",
                "the same on files beside what is withheld, and on the names of what is",
            ),
        ],
        defaults,
        rows: cases.len(),
        cases,
        left_out: Vec::new(),
    })
}

/// Whether a case is about what is withheld.
#[derive(Clone, Copy, Debug)]
enum Ground {
    Withheld,
    Beside,
}

fn case(
    target: &Target,
    ground: Ground,
    way: &str,
    steps: &[(&str, &str)],
) -> anyhow::Result<Option<Draft>> {
    let Some(script) = target.steps(steps)? else {
        return Ok(None);
    };
    let draft = Draft::made().id(format!("withheld-{}-{way}", target.name));
    let draft = match ground {
        Ground::Withheld => draft.flag("withheld").expect(
            Agent::MustDeny,
            "a rule of the user's withholds it, whatever is held",
        ),
        Ground::Beside => draft.flag("beside"),
    };
    Ok(Some(script.into_iter().fold(draft, Draft::step)))
}

/// A secret in everything that is withheld, and the same lines without one beside it.
fn files() -> Vec<Value> {
    let secret = |name: &str, word: &str| {
        let text = format!("CANARY-{word}\nneedle\nlast line\n");
        json!({"path": at(name), "text": text})
    };
    let plain = |name: &str| json!({"path": at(name), "text": "plain words\nneedle\nlast line\n"});
    vec![
        secret("plan/secret.txt", "PLAN"),
        plain("plan/notes.txt"),
        secret("vault/keys/one.txt", "KEY-ONE"),
        secret("vault/keys/deep/two.txt", "KEY-TWO"),
        plain("vault/door.txt"),
        secret("pay/Wages.PAY", "WAGES"),
        plain("pay/hours.txt"),
        secret("desk/drafts/one.txt", "DRAFT"),
        plain("free/notes.txt"),
        plain("shelf/books/deep/two.txt"),
    ]
}
