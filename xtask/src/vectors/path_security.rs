//! Containment, traversal, read and write guards, devices, skills and cron scripts.
//!
//! Hermes' guards on files ask nobody, so these cases run where nobody can be
//! asked: a question of the agent is then a refusal, and both sides answer
//! permit or deny. Where Hermes looks at a name under an environment, the agent
//! holds a grant on the whole tree, so that the comparison is about the file.

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::approval::{answer, with_more};
use super::draft::{Agent, Draft};
use super::emit::{Flag, Suite};
use super::fixture::{Detour, Tree};
use super::row::{HOME, Origin, REPO, Row, TMP};

const FLAGS: &[Flag] = &[
    Flag {
        name: "containment",
        kind: "escape",
        description: "is a name inside a folder, after all links",
        effect: "files outside the granted folder are reached",
    },
    Flag {
        name: "traversal",
        kind: "escape",
        description: "does a text hold `..` as a part",
        effect: "a name climbs out of its folder",
    },
    Flag {
        name: "skill",
        kind: "escape",
        description: "names and files of a skill",
        effect: "a skill writes outside its own folder",
    },
    Flag {
        name: "read-guard",
        kind: "secret",
        description: "may this file be read",
        effect: "credentials are read",
    },
    Flag {
        name: "write-guard",
        kind: "tamper",
        description: "may this file be written",
        effect: "credentials, system files or the agent's own state are changed",
    },
    Flag {
        name: "device",
        kind: "hang",
        description: "is this a device or a kernel file that hangs or leaks",
        effect: "the agent hangs, or memory and environment leak",
    },
    Flag {
        name: "profile",
        kind: "tamper",
        description: "does a write land in another profile's state or in a copy of it",
        effect: "state of another profile is changed, or a change is lost",
    },
    Flag {
        name: "cron",
        kind: "escape",
        description: "may this script be scheduled",
        effect: "a job runs a script from elsewhere",
    },
    Flag {
        name: "absolute-name",
        kind: "strictness",
        description: "an absolute name that Hermes serves",
        effect: "none: the same file is served under its relative name",
    },
    Flag {
        name: "dot-dot",
        kind: "strictness",
        description: "`..` that stays inside",
        effect: "none: the same file is served under its plain name",
    },
    Flag {
        name: "absolute-link",
        kind: "strictness",
        description: "a link inside with an absolute target inside",
        effect: "none where such a link is followed by name; else a file behind it is not served",
    },
    Flag {
        name: "link-out-and-back",
        kind: "strictness",
        description: "a chain of links that leaves the folder and comes back",
        effect: "none where such a chain is followed by name; else a file behind it is not served",
    },
    Flag {
        name: "empty-name",
        kind: "strictness",
        description: "an empty name, which Hermes takes for the folder itself",
        effect: "none: the folder is `.`",
    },
    Flag {
        name: "secret-name",
        kind: "strictness",
        description: "a store or file of credentials that Hermes serves",
        effect: "the user is asked, or the call refused where nobody is there",
    },
    Flag {
        name: "own-state",
        kind: "strictness",
        description: "a file of the agent's own state that Hermes serves",
        effect: "the call is refused",
    },
    Flag {
        name: "startup-file",
        kind: "strictness",
        description: "a file run at the next login that Hermes lets be written",
        effect: "the user is asked, or the call refused where nobody is there",
    },
    Flag {
        name: "system-place",
        kind: "strictness",
        description: "a system folder that Hermes serves",
        effect: "the user is asked, or the call refused where nobody is there",
    },
    Flag {
        name: "kernel-file",
        kind: "strictness",
        description: "a file of the kernel or a device that Hermes serves",
        effect: "the call is refused",
    },
    Flag {
        name: "runs-later",
        kind: "strictness",
        description: "a file that runs with the next tool that opens the folder",
        effect: "the user may be asked",
    },
];

const REFUSED: &str = "outside what is granted, or guarded: nothing may be reached";
const SERVED: &str = "inside what is granted and not guarded: it has to be served";

/// The folders of a skill that hold supporting files.
const SKILL_FOLDERS: [&str; 4] = ["references", "templates", "scripts", "assets"];

/// The suite.
pub fn suite(rows: &[Row], tree: &Tree) -> anyhow::Result<Suite> {
    let cases = rows
        .iter()
        .map(|row| case(row, tree))
        .collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Suite {
        name: "path-security",
        description: "Which names are inside, which files may be read or written: the guards' answers beside what a directory capability and the monitor say.",
        flags: FLAGS.to_vec(),
        defaults: json!({
            "context": "headless",
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

fn case(row: &Row, tree: &Tree) -> anyhow::Result<Draft> {
    match row.kind() {
        "validate_within_dir" if row.origin()? == Origin::Generated => within_fixture(row, tree),
        "validate_within_dir" => within_test_folder(row),
        "has_traversal_component" => traversal(row),
        "skill_file_path" => skill_file(row),
        "skill_name" => skill_name(row),
        "skill_target" => skill_target(row),
        "read_block" => guard(row, "read-guard", "fs.read"),
        "write_denied" | "write_denied_bool" | "sensitive_path" => {
            guard(row, "write-guard", "fs.*")
        }
        "blocked_device" | "blocked_device_path" => guard(row, "device", "fs.read"),
        "cross_profile" | "sandbox_mirror" => guard(row, "profile", "fs.*"),
        "credential_file_register" => credential(row),
        "cron_script_path" => cron_script(row),
        other => bail!("{}: unknown kind `{other}`", row.id),
    }
}

/// `ok`, or that the function raised, which serves nobody.
fn ok(row: &Row) -> anyhow::Result<bool> {
    let actual = row.actual()?;
    match (&actual["ok"], &actual["raised"]) {
        (Value::Bool(ok), _) => Ok(*ok),
        (_, Value::String(_)) => Ok(false),
        _ => bail!("{}: neither ok nor raised", row.id),
    }
}

fn decided(row: &Row, permitted: bool) -> anyhow::Result<Value> {
    let actual = row.actual()?;
    let mut facts = json!({});
    if let Some(raised) = actual.get("raised") {
        facts["raised"] = raised.clone();
    }
    // Messages that quote a path were cut by the recorder before the path was replaced.
    if let Some(error) = actual["error_head"]
        .as_str()
        .filter(|error| !error.contains('\'') || error.ends_with("allowed."))
    {
        facts["error"] = json!(error);
    }
    let answer = answer(if permitted { "permit" } else { "deny" }, &Value::Null);
    Ok(if facts == json!({}) {
        answer
    } else {
        with_more(answer, &facts)
    })
}

/// What the agent owes: `detour` says why it may refuse a name Hermes serves.
fn owed(draft: Draft, permitted: bool, detour: Option<Detour>) -> Draft {
    match (permitted, detour) {
        (false, _) => draft.expect(Agent::MustDeny, REFUSED),
        (true, None) => draft.expect(Agent::MustPermit, SERVED),
        (true, Some(Detour(flag, reason))) => draft.flag(flag).expect(Agent::Either, reason),
    }
}

fn held(verb: &str, on: &str) -> Value {
    json!([{"id": "root", "verb": verb, "on": on}])
}

fn text<'a>(row: &Row, input: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    input[name]
        .as_str()
        .with_context(|| format!("{}: no text `{name}`", row.id))
}

fn within_fixture(row: &Row, tree: &Tree) -> anyhow::Result<Draft> {
    let input = row.input()?;
    let (root, rel) = (text(row, &input, "root")?, text(row, &input, "rel")?);
    let permitted = ok(row)?;
    let mut recorded = decided(row, permitted)?;
    if recorded["answer"].get("raised").is_some() {
        recorded["not_compared"] =
            json!("pathlib raises on a loop of links before Python 3.13 and follows none after");
    }
    let draft = Draft::new(row, row.note()?)
        .flag("containment")
        .field("held", held("fs.read", root))
        .probe("validate_within_dir", &json!({"root": root, "rel": rel}))
        .recorded(recorded);
    Ok(owed(draft, permitted, tree.detour(root, rel)))
}

fn within_test_folder(row: &Row) -> anyhow::Result<Draft> {
    let input = row.input()?;
    let (root, path) = (text(row, &input, "root")?, text(row, &input, "path")?);
    let permitted = ok(row)?;
    let fs = &input["fs"];
    let mut files = vec![json!({"path": root, "dir": true})];
    if fs["path_is_symlink"] == json!(true) {
        let target = text(row, fs, "resolved")?;
        files.push(json!({"path": target, "text": "kept outside\n"}));
        files.push(json!({"path": path, "symlink": target}));
    } else if fs["exists"] == json!(true) {
        files.push(json!({"path": path, "text": "x\n"}));
    }
    let draft = Draft::new(row, row.note()?)
        .flag("containment")
        .field("world", json!({"cwd": REPO, "files": files}))
        .field("held", held("fs.read", root))
        .probe("validate_within_dir", &json!({"root": root, "path": path}))
        .recorded(decided(row, permitted)?);
    Ok(owed(draft, permitted, None))
}

fn traversal(row: &Row) -> anyhow::Result<Draft> {
    let input = row.input()?;
    let path = text(row, &input, "path")?;
    let permitted = row.actual()?["traversal"] == json!(false);
    let detour = if path.starts_with('/') {
        Some(Detour(
            "absolute-name",
            "an absolute name is refused too: a capability is asked by relative names",
        ))
    } else if path.is_empty() {
        Some(Detour("empty-name", "an empty name names nothing"))
    } else {
        None
    };
    let draft = Draft::new(row, row.note()?)
        .flag("traversal")
        .probe("has_traversal_component", &json!({"path": path}))
        .hermes_without_world()
        .recorded(decided(row, permitted)?);
    Ok(owed(draft, permitted, detour))
}

fn skill_file(row: &Row) -> anyhow::Result<Draft> {
    let input = row.input()?;
    let value = text(row, &input, "value")?;
    let permitted = ok(row)?;
    let mut files = vec![json!({"path": "/ws/skill/SKILL.md", "text": "s\n"})];
    let mut grants = vec![json!({"id": "main", "verb": "fs.*", "on": "/ws/skill/SKILL.md"})];
    for folder in SKILL_FOLDERS {
        files.push(json!({"path": format!("/ws/skill/{folder}"), "dir": true}));
        grants.push(json!({"id": folder, "verb": "fs.*", "on": format!("/ws/skill/{folder}")}));
    }
    let draft = Draft::new(row, row.note()?)
        .flag("skill")
        .field("world", json!({"cwd": "/ws/skill", "files": files}))
        .field("held", json!(grants))
        .probe("skill_file_path", &json!({"value": value}))
        .recorded(decided(row, permitted)?);
    Ok(owed(draft, permitted, None))
}

fn skill_name(row: &Row) -> anyhow::Result<Draft> {
    let permitted = ok(row)?;
    let draft = Draft::new(row, row.note()?)
        .flag("skill")
        .probe("skill_name", &row.input()?)
        .hermes_without_world()
        .recorded(decided(row, permitted)?);
    Ok(owed(draft, permitted, None))
}

fn skill_target(row: &Row) -> anyhow::Result<Draft> {
    let input = row.input()?;
    let dir = text(row, &input, "dir")?;
    let permitted = ok(row)?;
    let mut files = vec![json!({"path": format!("{dir}/references"), "dir": true})];
    if !permitted {
        // The upstream test's folder has a link that leaves the skill.
        files.push(json!({"path": format!("{TMP}/outside"), "dir": true}));
        files.push(json!({"path": format!("{dir}/references/escape"), "symlink": format!("{TMP}/outside")}));
    }
    let draft = Draft::new(row, row.note()?)
        .flag("skill")
        .field("world", json!({"cwd": REPO, "files": files}))
        .field("held", held("fs.*", dir))
        .probe("skill_target", &input)
        .recorded(decided(row, permitted)?);
    Ok(owed(draft, permitted, None))
}

/// A guard that looks at a name under an environment.
fn guard(row: &Row, flag: &str, verb: &str) -> anyhow::Result<Draft> {
    let mut input = row.input()?;
    if row.kind() == "sensitive_path" {
        // Asking makes Hermes set up its home, which is no effect of the answer only where worlds expect it.
        input["env"] = json!({"HOME": HOME, "HERMES_HOME": format!("{HOME}/.hermes")});
    }
    let path = text(row, &input, "path")?;
    let actual = row.actual()?;
    let permitted = match &actual["blocked"] {
        Value::Bool(blocked) => !blocked,
        _ => bail!("{}: no verdict", row.id),
    };
    let mut files = vec![json!({"path": TMP, "dir": true})];
    let mut grants = Vec::new();
    // A safe root of the settings is what a grant on that root is to the agent.
    if let Some(roots) = input["env"]["HERMES_WRITE_SAFE_ROOT"].as_str() {
        for (number, root) in (1_u32..).zip(roots.split(':').filter(|root| !root.is_empty())) {
            files.push(json!({"path": root, "dir": true}));
            grants.push(json!({"id": format!("root{number}"), "verb": verb, "on": root}));
        }
    } else {
        grants.push(json!({"id": "root", "verb": verb, "on": "/"}));
    }
    for link in linked(path) {
        files.push(link);
    }
    let mut recorded = decided(row, permitted)?;
    if let Some(class) = actual.get("class") {
        recorded["answer"]["class"] = class.clone();
    }
    let draft = Draft::new(row, row.note()?)
        .flag(flag)
        .field("world", json!({"cwd": REPO, "files": files}))
        .field("held", json!(grants))
        .probe(row.kind(), &input)
        .recorded(recorded);
    Ok(owed(draft, permitted, careful(path, &input["env"], verb)))
}

/// The links the upstream tests made for a path.
fn linked(path: &str) -> Vec<Value> {
    if path == format!("{TMP}/regular-link") {
        return vec![
            json!({"path": format!("{TMP}/regular.txt"), "text": "plain\n"}),
            json!({"path": path, "symlink": "regular.txt"}),
        ];
    }
    Vec::new()
}

/// Why the agent may refuse a name that Hermes serves.
fn careful(path: &str, env: &Value, verb: &str) -> Option<Detour> {
    const KERNEL: &[&str] = &["/proc", "/dev", "/sys", "/run", "/var/run"];
    const SYSTEM: &[&str] = &[
        "/etc",
        "/boot",
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib64",
        "/root",
        "/var/spool",
        "/opt",
        "/src",
    ];
    const SECRET: &[&str] = &[
        ".ssh",
        ".aws",
        ".gnupg",
        ".kube",
        ".docker",
        ".azure",
        ".config/gh",
        ".config/gcloud",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".pgpass",
        ".git-credentials",
    ];
    const STARTUP: &[&str] = &[
        ".bashrc",
        ".zshrc",
        ".profile",
        ".zprofile",
        ".bash_profile",
        ".gitconfig",
    ];
    let home = env["HOME"].as_str().unwrap_or(HOME);
    let full = match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ => path.to_owned(),
    };
    let inside = |root: &str| {
        full.strip_prefix(root)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let at_home = |name: &&str| inside(&format!("{home}/{name}"));
    let state = env["HERMES_HOME"]
        .as_str()
        .map(|state| state.split("/profiles/").next().unwrap_or(state));
    let name = full.rsplit('/').next().unwrap_or_default();
    let writes = verb != "fs.read";
    if KERNEL.iter().any(|root| inside(root)) {
        return Some(Detour(
            "kernel-file",
            "kernel and device files are another file system than the one granted",
        ));
    }
    if SECRET.iter().any(at_home) || full.contains("/.ssh/") {
        return Some(Detour(
            "secret-name",
            "a store of credentials: asked for each time, and here nobody answers",
        ));
    }
    if name.starts_with(".env") && name != ".env.sample" && name != ".env.example" {
        return Some(Detour(
            "secret-name",
            "a file of secrets by its name: asked for each time, and here nobody answers",
        ));
    }
    if [
        "auth.json",
        "auth.lock",
        "google_oauth.json",
        ".anthropic_oauth.json",
    ]
    .contains(&name)
        || full.contains("/mcp-tokens/")
    {
        return Some(Detour(
            "secret-name",
            "a file of secrets by its name: asked for each time, and here nobody answers",
        ));
    }
    if state.is_some_and(inside) || full.split('/').any(|part| part == ".hermes") {
        return Some(Detour(
            "own-state",
            "the agent's own state: asked for each time or refused, and here nobody answers",
        ));
    }
    if writes && STARTUP.iter().any(at_home) {
        return Some(Detour(
            "startup-file",
            "runs at the next login: asked for each time, and here nobody answers",
        ));
    }
    if SYSTEM.iter().any(|root| inside(root)) {
        return Some(Detour(
            "system-place",
            "a system folder: not the agent's to touch, or another file system than the one granted",
        ));
    }
    if writes
        && full
            .split('/')
            .any(|part| part == ".git" || part == ".vscode" || part == ".github")
    {
        return Some(Detour(
            "runs-later",
            "runs with the next tool that opens the folder: asked for each time, and here nobody answers",
        ));
    }
    None
}

fn credential(row: &Row) -> anyhow::Result<Draft> {
    let input = row.input()?;
    let permitted = row.actual()?["registered"] == json!(true);
    let state = format!("{HOME}/.hermes");
    let mut files = Vec::new();
    for name in [
        ".env",
        "auth.json",
        "cache/bws_cache.json",
        "mcp-tokens/srv.json",
        "credentials/google_token.json",
    ] {
        files.push(json!({"path": format!("{state}/{name}"), "text": "{}\n"}));
    }
    let draft = Draft::new(row, row.note()?)
        .flag("read-guard")
        .field("world", json!({"cwd": REPO, "files": files}))
        .field("held", held("fs.read", &state))
        .probe("credential_file_register", &input)
        .recorded(decided(row, permitted)?);
    Ok(owed(draft, permitted, None))
}

fn cron_script(row: &Row) -> anyhow::Result<Draft> {
    let input = row.input()?;
    let value = text(row, &input, "value")?;
    let permitted = ok(row)?;
    let scripts = format!("{HOME}/.hermes/scripts");
    let detour = value.split('/').any(|part| part == "..").then_some(Detour(
        "dot-dot",
        "`..` is refused even where it would stay inside",
    ));
    let draft = Draft::new(row, row.note()?)
        .flag("cron")
        .field(
            "world",
            json!({"cwd": REPO, "files": [{"path": scripts, "dir": true}]}),
        )
        .field("held", held("fs.read", &scripts))
        .probe("cron_script_path", &input)
        .recorded(decided(row, permitted)?);
    Ok(owed(draft, permitted, detour))
}
