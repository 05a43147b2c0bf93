//! The calls between the moves, and the files they are about.
//!
//! A call is made by a tool with arguments of its own, or is about the command that was
//! last left running: where there is none it is left out, like a move that refers to nothing.

use bisim_world::protocol::{FileKind, FileSpec, Step};
use serde_json::{Value, json};

use super::super::paths::v4a;
use super::super::surroundings::{JOBS, SKILLS};
use crate::case::CWD_DEFAULT;

/// A skill that is there.
const KNOWN: &str = "---\nname: known\ndescription: How to know\n---\n\n# Know\n\n1. Look.\n";

/// A call: its name, its tool, its arguments.
pub type Call = (&'static str, &'static str, Args);

/// The arguments of a call.
#[derive(Clone, Copy, Debug)]
pub enum Args {
    /// These.
    Plain(fn() -> Value),
    /// Those of a command that is left running until it is ended.
    Begins(fn() -> Value),
    /// Those of one that is left running until something is typed to it.
    BeginsAsking(fn() -> Value),
    /// These, about the command with this name that was left running.
    About(fn(Value) -> Value),
    /// These, which something that waits to be told is told, and ends.
    Types(fn(Value) -> Value),
}

/// A command that was left running.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    /// The step, from 1, that began it.
    pub at: usize,
    /// Whether it ends once something is typed to it.
    asks: bool,
}

/// All calls, in a fixed order.
pub const CALLS: &[Call] = &[
    (
        "read",
        "read_file",
        Args::Plain(|| json!({ "path": "sq/a.txt" })),
    ),
    (
        "write",
        "write_file",
        Args::Plain(|| json!({ "path": "sq/a.txt", "content": "written\n" })),
    ),
    (
        "create",
        "write_file",
        Args::Plain(|| json!({ "path": "sq/new.txt", "content": "new\n" })),
    ),
    (
        "create-other",
        "write_file",
        Args::Plain(|| json!({ "path": "sq/other.txt", "content": "other\n" })),
    ),
    (
        "replace",
        "patch",
        Args::Plain(
            || json!({ "mode": "replace", "path": "sq/b.txt", "old_string": "two", "new_string": "2" }),
        ),
    ),
    (
        "show",
        "terminal",
        Args::Plain(|| json!({ "command": "cat sq/a.txt" })),
    ),
    (
        "append",
        "terminal",
        Args::Plain(|| json!({ "command": "echo more >> sq/b.txt" })),
    ),
    (
        "delete",
        "terminal",
        Args::Plain(|| json!({ "command": "rm -rf sq/victim" })),
    ),
    (
        "delete-outside",
        "terminal",
        Args::Plain(|| json!({ "command": "rm -rf /srv/data/db.sqlite" })),
    ),
    (
        "open-to-all",
        "terminal",
        Args::Plain(|| json!({ "command": "chmod 777 sq/a.txt" })),
    ),
    (
        "read-key",
        "read_file",
        Args::Plain(|| json!({ "path": "/home/u/.ssh/id_rsa" })),
    ),
    (
        "show-key",
        "terminal",
        Args::Plain(|| json!({ "command": "cat /home/u/.ssh/id_rsa" })),
    ),
    (
        "plant",
        "write_file",
        Args::Plain(|| json!({ "path": "/home/u/.bashrc", "content": "/tmp/evil\n" })),
    ),
    (
        "write-outside",
        "write_file",
        Args::Plain(|| json!({ "path": "/srv/data/new.txt", "content": "new\n" })),
    ),
    (
        "search",
        "search_files",
        Args::Plain(|| json!({ "pattern": "one", "path": "sq" })),
    ),
    (
        "patch-many",
        "patch",
        Args::Plain(|| {
            v4a("*** Update File: sq/b.txt\n-two\n+2\n*** Add File: sq/added.txt\n+added")
        }),
    ),
    (
        "patch-delete",
        "patch",
        Args::Plain(|| v4a("*** Delete File: sq/victim/v.txt")),
    ),
    (
        "patch-outside",
        "patch",
        Args::Plain(|| {
            v4a("*** Update File: sq/a.txt\n-one\n+1\n*** Add File: /srv/data/patched.txt\n+added")
        }),
    ),
    (
        "code-show",
        "execute_code",
        Args::Plain(|| code("print(open('sq/a.txt').read())")),
    ),
    (
        "code-append",
        "execute_code",
        Args::Plain(|| code("open('sq/b.txt', 'a').write('more\\n')")),
    ),
    (
        "code-delete-outside",
        "execute_code",
        Args::Plain(|| code("import os\nos.remove('/srv/data/db.sqlite')")),
    ),
    (
        "code-key",
        "execute_code",
        Args::Plain(|| code("print(open('/home/u/.ssh/id_rsa').read())")),
    ),
    (
        "code-tool",
        "execute_code",
        Args::Plain(|| {
            code(
                "from hermes_tools import write_file\nprint(write_file('sq/new.txt', 'new\\n').get('bytes_written'))",
            )
        }),
    ),
    (
        "code-tool-outside",
        "execute_code",
        Args::Plain(|| {
            code(
                "from hermes_tools import write_file\nprint('error' in write_file('/srv/data/new.txt', 'new\\n'))",
            )
        }),
    ),
    (
        "begin",
        "terminal",
        Args::Begins(|| json!({ "command": "sleep 1000", "background": true })),
    ),
    (
        "begin-asking",
        "terminal",
        Args::BeginsAsking(
            || json!({ "command": "read line && sleep 1 && echo $line >> sq/b.txt", "background": true }),
        ),
    ),
    (
        "begin-asking-outside",
        "terminal",
        Args::BeginsAsking(
            || json!({ "command": "read line && sleep 1 && echo $line > /srv/data/new.txt", "background": true }),
        ),
    ),
    (
        "poll",
        "process",
        Args::About(|begun| json!({ "action": "poll", "session_id": begun })),
    ),
    (
        "type",
        "process",
        Args::Types(|begun| json!({ "action": "submit", "session_id": begun, "data": "typed" })),
    ),
    (
        "kill",
        "process",
        Args::About(|begun| json!({ "action": "kill", "session_id": begun })),
    ),
    (
        "note",
        "memory",
        Args::Plain(|| json!({ "action": "add", "target": "memory", "content": "noted" })),
    ),
    (
        "new-skill",
        "skill_manage",
        Args::Plain(|| {
            json!({
                "action": "create", "name": "fresh",
                "content": "---\nname: fresh\ndescription: How to begin\n---\n\n# Begin\n\n1. Begin.\n",
            })
        }),
    ),
    (
        "patch-skill",
        "skill_manage",
        Args::Plain(
            || json!({ "action": "patch", "name": "known", "old_string": "Look.", "new_string": "See." }),
        ),
    ),
    (
        "delete-skill",
        "skill_manage",
        Args::Plain(|| json!({ "action": "delete", "name": "known" })),
    ),
    (
        "new-job",
        "cronjob",
        Args::Plain(|| {
            json!({
                "action": "create", "schedule": "every 2h", "prompt": "Look after the build.",
                "model": { "model": "m-1", "provider": "p" },
            })
        }),
    ),
    (
        "jobs",
        "cronjob",
        Args::Plain(|| json!({ "action": "list" })),
    ),
];

fn code(text: &str) -> Value {
    json!({ "code": text })
}

/// The steps of the call with this number. What was typed to a command is followed by
/// waiting for its end: nobody can say in which step it would change something else.
pub fn steps(number: usize, by: Option<&String>, begun: Option<Begun>) -> Vec<Step> {
    let Some((_, tool, args)) = CALLS.get(number) else {
        return Vec::new();
    };
    let name = begun.map(|begun| json!({ "$from": begun.at, "at": "/session_id" }));
    let asks = begun.is_some_and(|begun| begun.asks);
    let all = match (args, name) {
        (Args::Plain(args) | Args::Begins(args) | Args::BeginsAsking(args), _) => vec![args()],
        (Args::About(args), Some(name)) => vec![args(name)],
        (Args::Types(args), Some(name)) if asks => {
            vec![
                args(name.clone()),
                json!({ "action": "wait", "session_id": name }),
            ]
        }
        (Args::About(_) | Args::Types(_), _) => Vec::new(),
    };
    let step = |args| Step::Call {
        tool: (*tool).to_owned(),
        args,
        by: by.cloned(),
    };
    all.into_iter().map(step).collect()
}

/// What the call with this number leaves running, as this step, from 1.
pub fn begun(number: usize, at: usize) -> Option<Begun> {
    let (.., args) = CALLS.get(number)?;
    let asks = match args {
        Args::Begins(_) => false,
        Args::BeginsAsking(_) => true,
        Args::Plain(_) | Args::About(_) | Args::Types(_) => return None,
    };
    Some(Begun { at, asks })
}

/// What is there before the first move.
pub fn files() -> Vec<FileSpec> {
    [
        ("sq/a.txt", "one\n"),
        ("sq/b.txt", "two\n"),
        ("sq/victim/v.txt", "victim\n"),
    ]
    .into_iter()
    .map(|(path, text)| (format!("{CWD_DEFAULT}/{path}"), text))
    .chain([(format!("{SKILLS}/known/SKILL.md"), KNOWN)])
    .map(|(path, text)| FileSpec {
        path,
        kind: FileKind::Text(text.to_owned()),
        mode: None,
    })
    // Hermes makes it whenever it looks at the list of jobs, the agent with the first result.
    .chain([FileSpec {
        path: format!("{JOBS}/output"),
        kind: FileKind::Dir(true),
        mode: Some(0o700),
    }])
    .collect()
}
