//! The servers of tools outside that a case's settings name, as Hermes names them.
//!
//! The agent has them from its own configuration; here one is turned into the other.

use std::path::Path;

use bisim_world::protocol::Job;
use hermitcrab::config::servers::ServerWords;
use hermitcrab::model::key::Surroundings;
use hermitcrab::runtime::ExternalServer;
use serde_json::{Map, Value, json};

/// What the settings of servers begin with.
const PREFIX: &str = "mcp_servers.";
/// The variable that holds the key of a case's server.
const KEY_VARIABLE: &str = "KEY";
/// What stands before a key in a header.
const BEARER: &str = "Bearer ";

/// All of them, as they can be declared.
///
/// # Errors
/// One of them says nothing that the agent has a word for.
pub(super) fn of(job: &Job) -> Result<Vec<ExternalServer>, String> {
    job.settings
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix(PREFIX)?, value)))
        .filter(|(_, value)| value.get("enabled") != Some(&Value::Bool(false)))
        .map(|(name, value)| server(name, value).map_err(|why| format!("server `{name}`: {why}")))
        .collect()
}

fn server(name: &str, said: &Value) -> Result<ExternalServer, String> {
    let said = said.as_object().ok_or("no table")?;
    let (words, key) = words(said)?;
    let words: ServerWords = serde_json::from_value(words).map_err(|error| error.to_string())?;
    words.open(
        name,
        &Surroundings {
            variable: &|_| key.clone(),
            home: Path::new("/home/u"),
            dir: Path::new("/home/u"),
        },
    )
}

/// The same in the agent's words, and the key.
fn words(said: &Map<String, Value>) -> Result<(Value, Option<String>), String> {
    let mut words = Map::new();
    let mut key = None;
    let mut command = Vec::new();
    for (name, value) in said {
        match name.as_str() {
            "command" => command.insert(0, value.clone()),
            "args" => command.extend(value.as_array().cloned().unwrap_or_default()),
            "env" | "url" => drop(words.insert(name.clone(), value.clone())),
            "timeout" => drop(words.insert("timeout_seconds".to_owned(), value.clone())),
            // How long a server may take to be there is no setting of its own here.
            "connect_timeout" => {}
            "tools" => taken(value, &mut words)?,
            "headers" => {
                let header = value.get("Authorization").and_then(Value::as_str);
                key = header
                    .and_then(|header| header.strip_prefix(BEARER))
                    .map(str::to_owned);
                words.insert("key_env".to_owned(), KEY_VARIABLE.into());
            }
            other => return Err(format!("`{other}` has no word here")),
        }
    }
    if !command.is_empty() {
        words.insert("command".to_owned(), json!(command));
    }
    Ok((words.into(), key))
}

/// What is taken of a server: the tools that are named, and what it has besides.
fn taken(said: &Value, words: &mut Map<String, Value>) -> Result<(), String> {
    let said = said.as_object().ok_or("`tools` is no table")?;
    for (name, value) in said {
        match name.as_str() {
            "include" => drop(words.insert("only".to_owned(), value.clone())),
            "resources" | "prompts" => drop(words.insert(name.clone(), is_on(value).into())),
            other => return Err(format!("`tools.{other}` has no word here")),
        }
    }
    Ok(())
}

/// A switch in one of the spellings Hermes takes; anything else leaves it on.
fn is_on(value: &Value) -> bool {
    match value {
        Value::Bool(is_on) => *is_on,
        Value::String(word) => {
            !["false", "0", "no", "off"].contains(&word.trim().to_lowercase().as_str())
        }
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::server;

    fn check(said: Value, place: Result<&str, &str>) {
        match (server("desk", &said), place) {
            (Ok(server), Ok(place)) => assert_eq!(server.place(), place, "{said}"),
            (Err(why), Err(part)) => assert!(why.contains(part), "{said}: {why}"),
            (other, _) => panic!("{said}: {other:?}"),
        }
    }

    #[test]
    fn a_server_is_the_same_in_the_words_of_either() {
        let command = json!({"args": ["a.py", "x y"], "command": "python3", "timeout": 3,
                             "connect_timeout": 2, "env": {"K": "v"}});
        check(command, Ok("the command ['python3', 'a.py', 'x y']"));
        let url =
            json!({"url": "http://127.0.0.1:8643/mcp", "headers": {"Authorization": "Bearer k"}});
        check(url, Ok("http://127.0.0.1:8643/mcp"));
    }

    #[test]
    fn a_switch_is_one_in_every_spelling_hermes_takes() {
        for (said, is_on) in [
            (json!(false), false),
            (json!(" Off "), false),
            (json!("0"), false),
            (json!(true), true),
            (json!("yes"), true),
            (json!("perhaps"), true),
            (json!(null), true),
            (json!(0), true),
        ] {
            let said = json!({"command": "x", "tools": {"resources": said, "include": ["a"]}});
            let server = server("desk", &said).expect("a server");
            assert_eq!((server.resources, server.prompts), (is_on, true), "{said}");
        }
    }

    #[test]
    fn what_the_agent_has_no_word_for_is_no_server() {
        check(json!("python3"), Err("no table"));
        check(
            json!({"command": "x", "sampling": {}}),
            Err("`sampling` has no word"),
        );
        check(
            json!({"command": "x", "tools": {"exclude": ["a"]}}),
            Err("`tools.exclude` has no word"),
        );
        check(json!({}), Err("`url`"));
    }
}
