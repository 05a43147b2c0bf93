//! Edits an editor cannot be shown, because they cannot be made.
//!
//! In an editor's session the compared agent works an edit out before its tool is
//! called, to show it, and says in these words why it could not. The same is said
//! here, from what the agent may read without a question; where that is not enough,
//! the tool itself says what it may. No edit is let through by this: one that can be
//! worked out is asked about as ever.

use hermitcrab_core::{authority::Verb, outcome::DenialCode, tool::Tool};
use hermitcrab_sandbox::dircap::Kind;
use serde_json::{Map, Value, json};

use super::patch;
use crate::{
    runtime::{Fate, Hands, Stop, ToolResult},
    text::{
        args::{self, Declared},
        fuzzy::{self, Occurrences, Replaced},
        pyjson,
    },
};

/// The result of an edit that cannot be shown; `None` for any other call.
///
/// # Errors
/// The machinery failed.
pub fn result(
    hands: &mut Hands<'_>,
    tool: Tool,
    given: &Value,
) -> Result<Option<ToolResult>, Stop> {
    let given = args::coerced(given, &[("replace_all", Declared::Truth)]);
    let why = match tool {
        Tool::WriteFile => of_a_file(hands, &given)?,
        Tool::Patch => match given.get("mode").map(args::text_of).as_deref() {
            None | Some("replace") => of_a_replacement(hands, &given)?,
            Some("patch") => of_a_patch(hands, &given)?,
            Some(_) => None,
        },
        _ => None,
    };
    Ok(why.map(|why| ToolResult {
        text: pyjson::text(&json!({
            "error": format!("Edit approval denied: could not prepare diff ({why})"),
        })),
        fate: Fate::Refused(DenialCode::BadArguments),
    }))
}

type Why = Option<String>;

fn of_a_file(hands: &mut Hands<'_>, given: &Map<String, Value>) -> Result<Why, Stop> {
    let Some(path) = path(given) else {
        return Ok(Some("path required".to_owned()));
    };
    if given.get("content").is_none_or(Value::is_null) {
        return Ok(Some("content required".to_owned()));
    }
    Ok(match found(hands, &path)? {
        Found::NoFile => Some(no_file(&path)),
        Found::Nothing | Found::Text(_) | Found::Untold => None,
    })
}

fn of_a_replacement(hands: &mut Hands<'_>, given: &Map<String, Value>) -> Result<Why, Stop> {
    let Some(path) = path(given) else {
        return Ok(Some("path required".to_owned()));
    };
    let text = |name: &str| given.get(name).filter(|value| !value.is_null());
    let (Some(old), Some(new)) = (text("old_string"), text("new_string")) else {
        return Ok(Some("old_string and new_string required".to_owned()));
    };
    let content = match found(hands, &path)? {
        Found::Text(content) => content,
        Found::Nothing => return Ok(Some(format!("Failed to read file: {path}"))),
        Found::NoFile => return Ok(Some(no_file(&path))),
        Found::Untold => return Ok(None),
    };
    let occurrences = match args::truthy(given.get("replace_all")) {
        true => Occurrences::All,
        false => Occurrences::One,
    };
    let (old, new) = (args::text_of(old), args::text_of(new));
    Ok(match fuzzy::replace(&content, &old, &new, occurrences) {
        Replaced::Text(_) => None,
        Replaced::Not(why) => Some(why),
    })
}

fn of_a_patch(hands: &mut Hands<'_>, given: &Map<String, Value>) -> Result<Why, Stop> {
    let Some(text) = given.get("patch").and_then(Value::as_str) else {
        return Ok(Some("patch content required".to_owned()));
    };
    if text.is_empty() {
        return Ok(Some("patch content required".to_owned()));
    }
    let mut named = patch::named(text);
    named.retain(|path| !path.is_empty());
    match named.as_slice() {
        [] => Ok(Some("no file paths found in V4A patch".to_owned())),
        [only] => Ok(match found(hands, only)? {
            Found::NoFile => Some(no_file(only)),
            Found::Nothing | Found::Text(_) | Found::Untold => None,
        }),
        _ => Ok(None),
    }
}

fn path(given: &Map<String, Value>) -> Option<String> {
    let path = given.get("path").filter(|path| args::truthy(Some(path)));
    path.map(args::text_of)
}

fn no_file(path: &str) -> String {
    format!("Cannot edit non-file path: {path}")
}

/// What an edit would begin with.
enum Found {
    Nothing,
    Text(String),
    /// Something that is no file.
    NoFile,
    /// The agent may not know without a question, or the file cannot be read.
    Untold,
}

/// Whether a `..` in it comes after what is no directory. The tools take the two out
/// of a name; to the system, which is asked here, there is nothing of that name.
fn is_no_name(hands: &mut Hands<'_>, path: &str) -> Result<bool, Stop> {
    for (at, _) in path.match_indices("/..") {
        let (before, rest) = path.split_at(at);
        if before.is_empty() || !matches!(rest.as_bytes().get(3), None | Some(b'/')) {
            continue;
        }
        let place = match hands.resolve(before) {
            Ok(place) => place,
            Err(Stop::Refused { .. }) => continue,
            Err(stop) => return Err(stop),
        };
        if !hands.freely(Verb::FsRead, &place) {
            continue;
        }
        match hands.look(&place) {
            Ok(Some(stat)) if matches!(stat.kind, Kind::Dir | Kind::Symlink) => {}
            Ok(_) | Err(Stop::Missing | Stop::Io(_) | Stop::System(..)) => return Ok(true),
            Err(Stop::Refused { .. }) => {}
            Err(stop @ Stop::Broken(_)) => return Err(stop),
        }
    }
    Ok(false)
}

fn found(hands: &mut Hands<'_>, path: &str) -> Result<Found, Stop> {
    if path.contains('\0') || hands.is_too_long(path).is_some() {
        return Ok(Found::Untold);
    }
    if is_no_name(hands, path)? {
        return Ok(Found::Nothing);
    }
    let place = match hands.resolve(path) {
        Ok(place) => place,
        Err(Stop::Refused { .. }) => return Ok(Found::Untold),
        Err(stop) => return Err(stop),
    };
    if !hands.freely(Verb::FsRead, &place) {
        return Ok(Found::Untold);
    }
    let stat = match hands.look(&place) {
        Ok(Some(stat)) => stat,
        Ok(None) | Err(Stop::Missing | Stop::Io(_) | Stop::System(..)) => {
            return Ok(Found::Nothing);
        }
        Err(Stop::Refused { .. }) => return Ok(Found::Untold),
        Err(stop @ Stop::Broken(_)) => return Err(stop),
    };
    match stat.kind {
        Kind::Dir => Ok(Found::NoFile),
        Kind::File => match hands.read(&place) {
            // As a program reads text: line ends are one letter.
            Ok(bytes) => Ok(Found::Text(
                String::from_utf8_lossy(&bytes)
                    .replace("\r\n", "\n")
                    .replace('\r', "\n"),
            )),
            Err(stop @ Stop::Broken(_)) => Err(stop),
            Err(Stop::Refused { .. } | Stop::Missing | Stop::Io(_) | Stop::System(..)) => {
                Ok(Found::Untold)
            }
        },
        Kind::Symlink | Kind::Special => Ok(Found::Untold),
    }
}
