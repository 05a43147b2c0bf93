//! `skill_manage`: skills made, changed and removed; each a write like any other.

use std::fmt;

use serde_json::{Map, Value, json};

use super::{
    front::{self, divided},
    shelf::{PARTS, Shelf, below},
    sound::{category_problem, content_problem, name_problem, path_problem, size_problem},
    unsuccessful,
};
use crate::{
    runtime::{Before, FileChange, Hands, Stop, ToolResult},
    text::{
        args::{self, Declared},
        fuzzy::{self, Occurrences, Replaced},
        pytext,
    },
    tools::{
        mistyped,
        patch::{Swapped, swapped},
    },
};

/// Bytes of a file beside it at most.
const FILE_BYTES_MAX: usize = 1 << 20;

fn refused(message: &str) -> ToolResult {
    unsuccessful(message, &[])
}

fn missing_argument(message: &str) -> ToolResult {
    ToolResult::failed(&json!({"error": message, "success": false}))
}

/// Runs the call.
///
/// # Errors
/// It was refused, or the machinery failed.
pub fn run(hands: &mut Hands<'_>, given: &Value) -> Result<ToolResult, Stop> {
    let given = args::coerced(given, &[("replace_all", Declared::Truth)]);
    let told = |key: &str| given.get(key).filter(|value| !value.is_null());
    let filled = |key: &str| given.get(key).filter(|value| args::truthy(Some(value)));
    let missing = |message: &str| Ok(missing_argument(message));
    if let Some(action @ (Value::Array(_) | Value::Object(_))) = given.get("action") {
        return Ok(mistyped::uncaught(
            "TypeError",
            &mistyped::unhashable(action),
        ));
    }
    let action = given.get("action").map_or_else(String::new, args::text_of);
    let name = Name::new(given.get("name"));
    let shelf = Shelf::open(hands)?;
    match action.as_str() {
        "create" => match filled("content") {
            Some(content) => create(hands, &shelf, &name, content, given.get("category")),
            None => missing(
                "content is required for 'create'. Provide the full SKILL.md text (frontmatter + body).",
            ),
        },
        "edit" => match filled("content") {
            Some(content) => edit(hands, &shelf, &name, content),
            None => {
                missing("content is required for 'edit'. Provide the full updated SKILL.md text.")
            }
        },
        "patch" => match (filled("old_string"), told("new_string")) {
            (None, _) => missing("old_string is required for 'patch'. Provide the text to find."),
            (Some(_), None) => missing(
                "new_string is required for 'patch'. Use empty string to delete matched text.",
            ),
            (Some(old), Some(new)) => {
                let occurrences = if args::truthy(given.get("replace_all")) {
                    Occurrences::All
                } else {
                    Occurrences::One
                };
                patch(
                    hands,
                    &shelf,
                    &name,
                    filled("file_path"),
                    (old, new),
                    occurrences,
                )
            }
        },
        "delete" => {
            let absorbed_into = given.get("absorbed_into").and_then(Value::as_str);
            delete(hands, &shelf, &name, absorbed_into)
        }
        "write_file" => match (filled("file_path"), told("file_content")) {
            (None, _) => missing(
                "file_path is required for 'write_file'. Example: 'references/api-guide.md'",
            ),
            (Some(_), None) => missing("file_content is required for 'write_file'."),
            (Some(path), Some(content)) => write(hands, &shelf, &name, path, content),
        },
        "remove_file" => match filled("file_path") {
            Some(path) => remove(hands, &shelf, &name, path),
            None => missing("file_path is required for 'remove_file'."),
        },
        other => Ok(refused(&format!(
            "Unknown action '{other}'. Use: create, edit, patch, delete, write_file, remove_file"
        ))),
    }
}

/// The name a call gives, which may be no text and then is no skill's.
struct Name<'v> {
    value: &'v Value,
    shown: String,
}

impl<'v> Name<'v> {
    fn new(value: Option<&'v Value>) -> Self {
        static NOTHING: Value = Value::String(String::new());
        let value = value.unwrap_or(&NOTHING);
        let shown = args::text_of(value);
        Self { value, shown }
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// The text, or what the language says of another kind, which the tool does not catch.
fn text_or(
    value: &Value,
    problem: impl Fn(&Value) -> (&'static str, String),
) -> Result<&str, ToolResult> {
    value.as_str().ok_or_else(|| {
        let (kind, message) = problem(value);
        mistyped::uncaught(kind, &message)
    })
}

fn path_text(value: &Value) -> Result<&str, ToolResult> {
    text_or(value, |value| ("TypeError", mistyped::no_path(value)))
}

fn content_text(value: &Value) -> Result<&str, ToolResult> {
    text_or(value, |value| {
        ("AttributeError", mistyped::no_attribute(value, "strip"))
    })
}

/// The directory of the skill with this name.
fn found(shelf: &Shelf, name: &Name<'_>) -> Option<String> {
    text_found(shelf, name.value.as_str()?)
}

fn text_found(shelf: &Shelf, name: &str) -> Option<String> {
    shelf
        .skills()
        .into_iter()
        .find(|dir| dir.rsplit('/').next() == Some(name))
}

fn not_found(name: &Name<'_>, suffix: &str) -> ToolResult {
    refused(&format!(
        "Skill '{name}' not found in active profile 'default'. Use skills_list() to see available skills.{suffix}"
    ))
}

/// The beginning of the description in a skill's heading.
fn description(content: &str) -> String {
    divided(content)
        .and_then(|(heading, _)| front::value(heading).ok())
        .and_then(|values| values.get("description").map(args::text_of))
        .map(|text| pytext::head(&text, 120).to_owned())
        .unwrap_or_default()
}

fn put(hands: &mut Hands<'_>, shelf: &Shelf, path: &str, content: &str) -> Result<(), Stop> {
    let place = shelf.place(hands, path)?;
    let before = hands.before(&place)?;
    hands
        .write_private(&place, &before, content.as_bytes())
        .map(drop)
}

fn create(
    hands: &mut Hands<'_>,
    shelf: &Shelf,
    name: &Name<'_>,
    content: &Value,
    category: Option<&Value>,
) -> Result<ToolResult, Stop> {
    if !args::truthy(Some(name.value)) {
        return Ok(refused("Skill name is required."));
    }
    let measured = text_or(name.value, |name| match name {
        Value::Array(_) | Value::Object(_) => ("TypeError", mistyped::not_matched(name)),
        _ => ("TypeError", mistyped::no_length(name)),
    });
    let problem = match measured {
        Ok(name) => name_problem(name).or_else(|| category_problem(category)),
        Err(result) => return Ok(result),
    };
    let content = match (problem, content_text(content)) {
        (Some(problem), _) => return Ok(refused(&problem)),
        (None, Ok(content)) => content,
        (None, Err(result)) => return Ok(result),
    };
    let problem = content_problem(content).or_else(|| size_problem(content, "SKILL.md"));
    if let Some(problem) = problem {
        return Ok(refused(&problem));
    }
    if let Some(dir) = found(shelf, name) {
        return Ok(refused(&format!(
            "A skill named '{name}' already exists at {}/{dir}.",
            shelf.root
        )));
    }
    let category = category
        .and_then(Value::as_str)
        .filter(|category| !category.is_empty());
    let dir = category.map_or_else(
        || name.to_string(),
        |category| below(category.trim(), &name.shown),
    );
    let file = below(&dir, "SKILL.md");
    put(hands, shelf, &file, content)?;
    let mut result = Map::new();
    result.insert("success".into(), true.into());
    result.insert("message".into(), format!("Skill '{name}' created.").into());
    result.insert("path".into(), dir.into());
    result.insert("skill_md".into(), format!("{}/{file}", shelf.root).into());
    result.insert(
        "_change".into(),
        json!({"description": description(content)}),
    );
    if let Some(category) = category {
        result.insert("category".into(), category.into());
    }
    result.insert(
        "hint".into(),
        format!(
            "To add reference files, templates, or scripts, use skill_manage(action='write_file', name='{name}', \
             file_path='references/example.md', file_content='...')"
        )
        .into(),
    );
    Ok(ToolResult::ran(&Value::Object(result)))
}

fn edit(
    hands: &mut Hands<'_>,
    shelf: &Shelf,
    name: &Name<'_>,
    content: &Value,
) -> Result<ToolResult, Stop> {
    let content = match content_text(content) {
        Ok(content) => content,
        Err(result) => return Ok(result),
    };
    if let Some(problem) = content_problem(content).or_else(|| size_problem(content, "SKILL.md")) {
        return Ok(refused(&problem));
    }
    let Some(dir) = found(shelf, name) else {
        return Ok(not_found(name, ""));
    };
    put(hands, shelf, &below(&dir, "SKILL.md"), content)?;
    Ok(ToolResult::ran(&json!({
        "success": true,
        "message": format!("Skill '{name}' updated (full rewrite)."),
        "path": format!("{}/{dir}", shelf.root),
        "_change": {"description": description(content)},
    })))
}

fn cleaned(path: &str) -> String {
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    parts.join("/")
}

fn patch(
    hands: &mut Hands<'_>,
    shelf: &Shelf,
    name: &Name<'_>,
    path: Option<&Value>,
    (old, new): (&Value, &Value),
    occurrences: Occurrences,
) -> Result<ToolResult, Stop> {
    let Some(dir) = found(shelf, name) else {
        return Ok(not_found(name, ""));
    };
    let path = match path.map(path_text).transpose() {
        Ok(path) => path,
        Err(result) => return Ok(result),
    };
    if let Some(problem) = path.and_then(path_problem) {
        return Ok(refused(&problem));
    }
    let label = path.unwrap_or("SKILL.md");
    let file = below(&dir, &cleaned(label));
    let Some(content) = shelf.text(hands, &file)? else {
        return Ok(refused(&format!("File not found: {}", cleaned(label))));
    };
    let content = content.replace("\r\n", "\n").replace('\r', "\n");
    let (text, count) = match swapped(&content, (old, new), occurrences) {
        Swapped::Replaced((Replaced::Text(text), count)) => (text, count),
        Swapped::Mistyped(problem) => return Ok(mistyped::uncaught("TypeError", &problem)),
        Swapped::Replaced((Replaced::Not(problem), _)) => {
            let old = old.as_str().unwrap_or_default();
            let sections = fuzzy::nearest_sections(&problem, old, &content);
            let more = if content.chars().count() > 500 {
                "..."
            } else {
                ""
            };
            let preview = format!("{}{more}", pytext::head(&content, 500));
            return Ok(unsuccessful(
                &format!("{problem}{sections}"),
                &[("file_preview", preview.into())],
            ));
        }
    };
    if let Some(problem) = size_problem(&text, label) {
        return Ok(refused(&problem));
    }
    if path.is_none()
        && let Some(problem) = content_problem(&text)
    {
        return Ok(refused(&format!(
            "Patch would break SKILL.md structure: {problem}"
        )));
    }
    put(hands, shelf, &file, &text)?;
    let part = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        let more = if text.chars().count() > 200 {
            "\u{2026}"
        } else {
            ""
        };
        format!("{}{more}", pytext::head(text, 200))
    };
    let plural = if count > 1 { "s" } else { "" };
    Ok(ToolResult::ran(&json!({
        "success": true,
        "message": format!("Patched {label} in skill '{name}' ({count} replacement{plural})."),
        "_change": {"old": part(old), "new": part(new)},
    })))
}

fn delete(
    hands: &mut Hands<'_>,
    shelf: &Shelf,
    name: &Name<'_>,
    absorbed_into: Option<&str>,
) -> Result<ToolResult, Stop> {
    let Some(dir) = found(shelf, name) else {
        return Ok(not_found(name, ""));
    };
    let target = pytext::strip(absorbed_into.unwrap_or_default());
    if !target.is_empty() {
        if name.value == target {
            return Ok(refused(&format!(
                "absorbed_into='{target}' cannot equal the skill being deleted."
            )));
        }
        if text_found(shelf, target).is_none() {
            return Ok(refused(&format!(
                "absorbed_into='{target}' does not exist. Create or patch the umbrella skill first, then retry the \
                 delete."
            )));
        }
    }
    let mut changes = Vec::new();
    for file in shelf.files_below(&dir) {
        let place = shelf.place(hands, &file)?;
        let before = hands.read(&place)?;
        changes.push(FileChange::Delete { place, before });
    }
    for inner in shelf.dirs_below(&dir) {
        let place = shelf.place(hands, &inner)?;
        changes.push(FileChange::RemoveDir { place });
    }
    if let Some((above, _)) = dir.rsplit_once('/')
        && shelf.is_alone(&dir)
    {
        let place = shelf.place(hands, above)?;
        changes.push(FileChange::RemoveDir { place });
    }
    hands.change(&changes)?;
    let more = if target.is_empty() {
        String::new()
    } else {
        format!(" Content absorbed into '{target}'.")
    };
    Ok(ToolResult::ran(&json!({
        "success": true, "message": format!("Skill '{name}' deleted.{more}"),
    })))
}

fn write(
    hands: &mut Hands<'_>,
    shelf: &Shelf,
    name: &Name<'_>,
    path: &Value,
    content: &Value,
) -> Result<ToolResult, Stop> {
    let path = match path_text(path) {
        Ok(path) => path,
        Err(result) => return Ok(result),
    };
    if let Some(problem) = path_problem(path) {
        return Ok(refused(&problem));
    }
    if !content.is_string() && !args::truthy(Some(content)) {
        return Ok(refused("file_content is required."));
    }
    let content = match text_or(content, |content| {
        ("AttributeError", mistyped::no_attribute(content, "encode"))
    }) {
        Ok(content) => content,
        Err(result) => return Ok(result),
    };
    if content.len() > FILE_BYTES_MAX {
        return Ok(refused(&format!(
            "File content is {} bytes (limit: {} bytes / 1 MiB). Consider splitting into smaller files.",
            pytext::thousands(content.len() as u64),
            pytext::thousands(FILE_BYTES_MAX as u64)
        )));
    }
    if let Some(problem) = size_problem(content, path) {
        return Ok(refused(&problem));
    }
    let Some(dir) = found(shelf, name) else {
        return Ok(not_found(name, " Create it first with action='create'."));
    };
    let file = below(&dir, &cleaned(path));
    put(hands, shelf, &file, content)?;
    Ok(ToolResult::ran(&json!({
        "success": true,
        "message": format!("File '{path}' written to skill '{name}'."),
        "path": format!("{}/{file}", shelf.root),
    })))
}

fn remove(
    hands: &mut Hands<'_>,
    shelf: &Shelf,
    name: &Name<'_>,
    path: &Value,
) -> Result<ToolResult, Stop> {
    let path = match path_text(path) {
        Ok(path) => path,
        Err(result) => return Ok(result),
    };
    if let Some(problem) = path_problem(path) {
        return Ok(refused(&problem));
    }
    let Some(dir) = found(shelf, name) else {
        return Ok(not_found(name, ""));
    };
    let file = below(&dir, &cleaned(path));
    if !shelf.has_file(&file) {
        let inside: Vec<String> = PARTS
            .iter()
            .flat_map(|part| shelf.files_below(&below(&dir, part)))
            .map(|file| {
                file.strip_prefix(&dir)
                    .unwrap_or(&file)
                    .trim_start_matches('/')
                    .to_owned()
            })
            .collect();
        let listed = if inside.is_empty() {
            Value::Null
        } else {
            json!(inside)
        };
        return Ok(unsuccessful(
            &format!("File '{path}' not found in skill '{name}'."),
            &[("available_files", listed)],
        ));
    }
    let place = shelf.place(hands, &file)?;
    let before = match hands.before(&place)? {
        Before::File(content) => content,
        Before::Nothing | Before::Long(_) | Before::Unread => return Err(Stop::Missing),
    };
    let mut changes = vec![FileChange::Delete { place, before }];
    if let Some((above, _)) = file.rsplit_once('/')
        && above != dir
        && shelf.is_alone(&file)
    {
        let place = shelf.place(hands, above)?;
        changes.push(FileChange::RemoveDir { place });
    }
    hands.change(&changes)?;
    Ok(ToolResult::ran(&json!({
        "success": true, "message": format!("File '{path}' removed from skill '{name}'."),
    })))
}
