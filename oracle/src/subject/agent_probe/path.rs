//! Which names are inside, which files may be read or written.
//!
//! Names under grants are asked of the monitor, names below a folder of the
//! directory capability and the kernel; where both have a say, both are asked
//! and the stricter wins.

use hermitcrab::parity::path::{
    Reached, Ruling, Setting, Standing, Try, is_skill_name, judge, reach,
};
use hermitcrab_core::authority::Verb;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use hermitcrab_core::tool::Tool;
use serde_json::{Value, json};

use crate::subject::agent_world::{AgentWorld, ProbeError, asking};

const HOME: &str = "/home/u";
const STATE: &str = "/home/u/.hermes";

/// Answers the family's probes.
pub(super) fn answer(
    world: &AgentWorld<'_>,
    name: &str,
    input: &Value,
) -> Result<Value, ProbeError> {
    let field = |name: &str| text(input, name);
    match name {
        "validate_within_dir" => {
            let root = field("root")?;
            reached(root, below(root, input)?, Try::Look, Missing::Permit)
        }
        "has_traversal_component" => Ok(match RelPath::parse_dir(field("path")?.as_bytes()) {
            Ok(_) => permit(),
            Err(error) => deny(error.code()),
        }),
        "skill_name" => Ok(if is_skill_name(field("value")?) {
            permit()
        } else {
            json!({"decision": "deny", "value": null, "code": "not-a-skill-name"})
        }),
        "skill_file_path" => ruled(world, input, Verb::FsModify, field("value")?),
        "skill_target" => reached(
            field("dir")?,
            field("file_path")?,
            Try::Create,
            Missing::Permit,
        ),
        "read_block" => ruled(world, input, Verb::FsRead, field("path")?),
        "write_denied" | "write_denied_bool" | "sensitive_path" | "cross_profile"
        | "sandbox_mirror" => ruled(world, input, Verb::FsModify, field("path")?),
        "blocked_device" | "blocked_device_path" => {
            let path = field("path")?;
            let ruling = ruled(world, input, Verb::FsRead, path)?;
            if ruling == permit() {
                reached(
                    "/",
                    path.trim_start_matches('/'),
                    Try::Read,
                    Missing::Permit,
                )
            } else {
                Ok(ruling)
            }
        }
        "credential_file_register" => {
            let path = field("path")?;
            let ruling = ruled(world, input, Verb::FsRead, &absolute(STATE, path))?;
            if ruling == permit() {
                // What is not there cannot be handed on.
                reached(STATE, path, Try::Read, Missing::Deny)
            } else {
                Ok(ruling)
            }
        }
        "cron_script_path" => reached(
            &format!("{STATE}/scripts"),
            field("value")?.trim(),
            Try::Look,
            Missing::Permit,
        ),
        _ => Err(ProbeError::Unknown),
    }
}

/// What it means that a name leads to nothing.
#[derive(Clone, Copy)]
enum Missing {
    /// The name is inside; that is all that was asked.
    Permit,
    /// A file was needed.
    Deny,
}

fn reached(root: &str, name: &str, what: Try, missing: Missing) -> Result<Value, ProbeError> {
    let reached = reach(root, name.as_bytes(), what)
        .map_err(|error| ProbeError::Failed(format!("open `{root}`: {error}")))?;
    Ok(match (reached, missing) {
        (Reached::Inside, _) | (Reached::Missing, Missing::Permit) => permit(),
        (Reached::Missing, Missing::Deny) => {
            json!({"decision": "deny", "value": null, "code": "missing"})
        }
        (Reached::Refused(code), _) => deny(code),
        (Reached::NoWay(why), _) => json!({"decision": "deny", "value": null, "code": why}),
    })
}

fn ruled(
    world: &AgentWorld<'_>,
    input: &Value,
    verb: Verb,
    path: &str,
) -> Result<Value, ProbeError> {
    let variable = |name: &str| {
        input
            .get("env")
            .and_then(|env| env.get(name))
            .and_then(Value::as_str)
    };
    // Whose state Hermes guards as its own, with all its profiles, is the agent's own here.
    let own: Vec<String> = variable("HERMES_HOME")
        .map(|state| state.split("/profiles/").next().unwrap_or(state).to_owned())
        .into_iter()
        .collect();
    let held: Vec<Standing> = world
        .held()
        .iter()
        .map(|held| match verbs(&held.verb) {
            Some(verbs) => Ok(Standing {
                verbs,
                on: held.on.clone(),
            }),
            None => Err(ProbeError::BadInput(format!(
                "grant `{}`: no verb `{}`",
                held.id, held.verb
            ))),
        })
        .collect::<Result<_, _>>()?;
    let setting = Setting {
        home: variable("HOME").unwrap_or(HOME),
        cwd: world.cwd().unwrap_or("/"),
        protected: &own,
        held: &held,
        asking: asking(world.job().context),
        hash: hermitcrab_sandbox::sha256,
    };
    Ok(match judge(&setting, Tool::WriteFile, verb, path) {
        Ruling::Permit => permit(),
        Ruling::Ask(code) => json!({"decision": "ask", "value": null, "code": code.as_str()}),
        Ruling::Deny(code) => deny(code),
    })
}

fn verbs(word: &str) -> Option<Vec<Verb>> {
    match word {
        "fs.*" => Some(vec![
            Verb::FsRead,
            Verb::FsList,
            Verb::FsCreate,
            Verb::FsModify,
            Verb::FsDelete,
        ]),
        word => Verb::parse(word).map(|verb| vec![verb]),
    }
}

/// The name below `root` that an input gives, as a name or as a whole path.
fn below<'i>(root: &str, input: &'i Value) -> Result<&'i str, ProbeError> {
    if input.get("rel").is_some() {
        return text(input, "rel");
    }
    let path = text(input, "path")?;
    // A path that does not begin with the root is left as it is, and refused for being absolute.
    Ok(
        match path
            .strip_prefix(root)
            .and_then(|rest| rest.strip_prefix('/'))
        {
            Some(rest) if !rest.is_empty() => rest,
            _ => path,
        },
    )
}

fn absolute(root: &str, path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{root}/{path}")
    }
}

fn permit() -> Value {
    json!({"decision": "permit", "value": null})
}

fn deny(code: DenialCode) -> Value {
    json!({"decision": "deny", "value": null, "code": code.as_str()})
}

fn text<'i>(input: &'i Value, name: &str) -> Result<&'i str, ProbeError> {
    input
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| ProbeError::BadInput(format!("`{name}` is no text")))
}
