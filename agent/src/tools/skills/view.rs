//! `skill_view`: one skill whole, or one of its files.

use hermitcrab_core::limits::{NAME_BYTES_MAX, PATH_BYTES_MAX};
use serde_json::{Map, Value, json};

use super::{
    front::Front,
    listed,
    needs::Needs,
    shelf::{Shelf, below},
    unsuccessful,
};
use crate::{
    runtime::{Hands, Stop, ToolResult},
    text::{args, pytext},
    tools::mistyped,
};

const INSIDE_HINT: &str = "Use a skill name or relative path within the skills directory.";
const FILE_HINT: &str = "Use a relative path within the skill directory";
/// Endings of files a skill's own directory may hold beside its parts.
const OTHER: &[&str] = &[".md", ".py", ".yaml", ".yml", ".json", ".tex", ".sh"];
/// Endings of templates, in the order they are listed.
const TEMPLATES: &[&str] = &[".md", ".py", ".yaml", ".yml", ".json", ".tex", ".sh"];
/// Endings of scripts, in the order they are listed.
const SCRIPTS: &[&str] = &[".py", ".sh", ".bash", ".js", ".ts", ".rb"];

/// A file that may be meant: its directory if it is a whole skill, and itself.
type Candidate = (Option<String>, String);

/// Runs the call.
///
/// # Errors
/// It was refused, or the machinery failed.
pub fn run(hands: &mut Hands<'_>, given: &Value) -> Result<ToolResult, Stop> {
    let name = match given.get("name") {
        None => String::new(),
        Some(Value::String(name)) => name.clone(),
        Some(_) => {
            let hint = [("hint", INSIDE_HINT.into())];
            return Ok(unsuccessful("Skill name must be a string.", &hint));
        }
    };
    if let Some(problem) = escaping(&name) {
        return Ok(unsuccessful(problem, &[("hint", INSIDE_HINT.into())]));
    }
    let mut categorized = None;
    if let Some((namespace, bare)) = name.split_once(':') {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        if namespace.is_empty() || !namespace.chars().all(plain) {
            let message = format!(
                "Invalid namespace '{namespace}' in '{name}'. Namespaces must match [a-zA-Z0-9_-]+."
            );
            return Ok(unsuccessful(&message, &[]));
        }
        if !bare.is_empty() {
            let path = format!("{namespace}/{bare}");
            if let Some(problem) = escaping(&path) {
                return Ok(unsuccessful(problem, &[("hint", INSIDE_HINT.into())]));
            }
            categorized = Some(path);
        }
    }
    let shelf = Shelf::open(hands)?;
    if !shelf.has_dir("") {
        let message = "Skills directory does not exist yet. It will be created on first install.";
        return Ok(unsuccessful(message, &[]));
    }
    if let Some(problem) = too_long(&shelf.root, &name) {
        return Ok(problem);
    }
    let candidates = candidates(hands, &shelf, &name, categorized.as_deref())?;
    let (dir, file) = match candidates.as_slice() {
        [] => {
            let names: Vec<String> = listed(hands, &shelf)?
                .into_iter()
                .take(20)
                .map(|skill| skill.name)
                .collect();
            let more = [
                ("available_skills", json!(names)),
                ("hint", "Use skills_list to see all available skills".into()),
            ];
            return Ok(unsuccessful(&format!("Skill '{name}' not found."), &more));
        }
        [one] => one.clone(),
        several => {
            let paths: Vec<String> = several
                .iter()
                .map(|(_, file)| format!("{}/{file}", shelf.root))
                .collect();
            let message = format!(
                "Ambiguous skill name '{name}': {} skills match across your local skills dir and external_dirs. \
                 Refusing to guess \u{2014} load one explicitly by its categorized path.",
                paths.len()
            );
            let hint = "Pass the full relative path instead of the bare name (e.g., 'category/skill-name'), or rename \
                        one of the colliding skills so each name is unique.";
            let more = [("matches", json!(paths)), ("hint", hint.into())];
            return Ok(unsuccessful(&message, &more));
        }
    };
    let Some(text) = shelf.text(hands, &file)? else {
        let message = format!("Failed to read skill '{name}': it is not a text");
        return Ok(unsuccessful(&message, &[]));
    };
    let front = Front::parse(&text);
    if !front.fits_here() {
        let message = format!("Skill '{name}' is not supported on this platform.");
        return Ok(unsuccessful(
            &message,
            &[("readiness_status", "unsupported".into())],
        ));
    }
    let wanted = given
        .get("file_path")
        .filter(|path| args::truthy(Some(path)));
    match (wanted, &dir) {
        (Some(Value::String(path)), Some(dir)) => part(hands, &shelf, &name, dir, path),
        (Some(path), Some(_)) => Ok(caught(&mistyped::no_path(path))),
        (Some(_) | None, _) => Ok(whole(&shelf, dir.as_deref(), &file, &text, &front)),
    }
}

/// What a failure of the language itself is told as.
fn caught(message: &str) -> ToolResult {
    ToolResult::failed(&json!({"error": message, "success": false}))
}

/// The answer to a name or path that no file system takes.
fn too_long(above: &str, path: &str) -> Option<ToolResult> {
    let whole = below(above, path.trim_end_matches('/'));
    let long =
        whole.len() > PATH_BYTES_MAX || path.split('/').any(|name| name.len() > NAME_BYTES_MAX);
    long.then(|| {
        let shown = pytext::quoted(&whole);
        caught(&format!("[Errno 36] File name too long: {shown}"))
    })
}

/// Why a name cannot be one of a skill.
fn escaping(name: &str) -> Option<&'static str> {
    let name = pytext::strip(name);
    let mut letters = name.chars();
    let drive = letters
        .next()
        .is_some_and(|letter| letter.is_ascii_alphabetic())
        && letters.next() == Some(':');
    if name.starts_with('/') || name.starts_with("\\\\") || drive {
        return Some("Skill name must be a relative path within the skills directory.");
    }
    name.split('/')
        .any(|part| part == "..")
        .then_some("Skill name cannot contain '..' path traversal components.")
}

/// Every file a name may mean.
fn candidates(
    hands: &mut Hands<'_>,
    shelf: &Shelf,
    name: &str,
    categorized: Option<&str>,
) -> Result<Vec<Candidate>, Stop> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut note = |dir: Option<String>, file: String| {
        if !found.iter().any(|(_, known)| *known == file) {
            found.push((dir, file));
        }
    };
    for path in [Some(name), categorized].into_iter().flatten() {
        let steps = path.split('/').filter(|step| !matches!(*step, "" | "."));
        let path = &*steps.collect::<Vec<_>>().join("/");
        let (stem, _) = pytext::split_extension(path);
        let flat = format!("{stem}.md");
        if !shelf.is_support(path)
            && shelf.has_dir(path)
            && shelf.has_file(&below(path, "SKILL.md"))
        {
            note(Some(path.to_owned()), below(path, "SKILL.md"));
        } else if shelf.has_file(&flat) && !shelf.is_support(&flat) {
            note(None, flat);
        }
    }
    for dir in shelf.skills() {
        let file = below(&dir, "SKILL.md");
        if dir.rsplit('/').next() == Some(name) {
            note(Some(dir), file);
            continue;
        }
        if let Some(text) = shelf.text_of_one(hands, &file)?
            && Front::parse(&text).get("name").and_then(Value::as_str) == Some(name)
        {
            note(Some(dir), file);
        }
    }
    let flat = format!("{name}.md");
    for file in shelf.files_below("") {
        let same = file == flat || file.ends_with(&format!("/{flat}"));
        if same && !file.ends_with("SKILL.md") && !shelf.is_support(&file) {
            note(None, file);
        }
    }
    Ok(found)
}

/// One file of a skill.
fn part(
    hands: &mut Hands<'_>,
    shelf: &Shelf,
    name: &str,
    dir: &str,
    path: &str,
) -> Result<ToolResult, Stop> {
    if path.split('/').any(|part| part == "..") {
        let hint = [("hint", FILE_HINT.into())];
        return Ok(unsuccessful("Path traversal ('..') is not allowed.", &hint));
    }
    if path.starts_with('/') {
        let message = format!(
            "Path escapes allowed directory: {} is not in the subpath of {} OR one path is relative and the other is \
             absolute.",
            pytext::quoted(path),
            pytext::quoted(&format!("{}/{dir}", shelf.root)),
        );
        return Ok(unsuccessful(&message, &[("hint", FILE_HINT.into())]));
    }
    if path.contains('\0') {
        let message = "Path escapes allowed directory: embedded null byte";
        return Ok(unsuccessful(message, &[("hint", FILE_HINT.into())]));
    }
    if let Some(problem) = too_long(&format!("{}/{dir}", shelf.root), path) {
        return Ok(problem);
    }
    let clean: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let file = below(dir, &clean.join("/"));
    if shelf.has_dir(&file) {
        let message = format!(
            "[Errno 21] Is a directory: {}",
            pytext::quoted(&format!("{}/{file}", shelf.root))
        );
        return Ok(ToolResult::failed(
            &json!({"error": message, "success": false}),
        ));
    }
    let content = if shelf.has_file(&file) {
        shelf.bytes(hands, &file)?
    } else {
        None
    };
    let Some(content) = content else {
        let message = format!("File '{path}' not found in skill '{name}'.");
        let more = [
            ("available_files", Value::Object(available(shelf, dir))),
            (
                "hint",
                "Use one of the available file paths listed above".into(),
            ),
        ];
        return Ok(unsuccessful(&message, &more));
    };
    let bytes = content.len();
    let last = clean.last().copied().unwrap_or_default();
    Ok(match String::from_utf8(content) {
        Ok(text) => ToolResult::ran(&json!({
            "success": true, "name": name, "file": path, "content": text.replace("\r\n", "\n").replace('\r', "\n"),
            "file_type": suffix(last),
        })),
        Err(_) => ToolResult::ran(&json!({
            "success": true, "name": name, "file": path,
            "content": format!("[Binary file: {last}, size: {bytes} bytes]"), "is_binary": true,
        })),
    })
}

/// The ending of a file name, its dot included.
fn suffix(name: &str) -> &str {
    match name.rfind('.') {
        Some(at) if at > 0 && at + 1 < name.len() => name.get(at..).unwrap_or_default(),
        _ => "",
    }
}

fn available(shelf: &Shelf, dir: &str) -> Map<String, Value> {
    let mut kinds: Vec<(&str, Vec<String>)> =
        ["references", "templates", "assets", "scripts", "other"]
            .map(|kind| (kind, Vec::new()))
            .to_vec();
    for file in shelf.files_below(dir) {
        let inside = file
            .strip_prefix(dir)
            .unwrap_or(&file)
            .trim_start_matches('/');
        let name = inside.rsplit('/').next().unwrap_or(inside);
        if name == "SKILL.md" {
            continue;
        }
        let first = inside.split_once('/').map_or("", |(first, _)| first);
        let kind = match first {
            "references" | "templates" | "assets" | "scripts" => first,
            _ if OTHER.contains(&suffix(name)) => "other",
            _ => continue,
        };
        if let Some((_, files)) = kinds.iter_mut().find(|(known, _)| *known == kind) {
            files.push(inside.to_owned());
        }
    }
    kinds
        .into_iter()
        .filter(|(_, files)| !files.is_empty())
        .map(|(kind, files)| (kind.to_owned(), json!(files)))
        .collect()
}

/// Files of a part with one of these endings, ending by ending.
fn with_endings(shelf: &Shelf, dir: &str, part: &str, endings: &[&str], deep: bool) -> Vec<String> {
    let base = below(dir, part);
    let files = shelf.files_below(&base);
    let inside = |file: &String| {
        file.strip_prefix(dir)
            .unwrap_or(file)
            .trim_start_matches('/')
            .to_owned()
    };
    endings
        .iter()
        .flat_map(|ending| {
            files
                .iter()
                .filter(|file| file.ends_with(ending))
                .filter(|file| {
                    deep || file
                        .rsplit_once('/')
                        .is_some_and(|(above, _)| above == base)
                })
                .map(inside)
                .collect::<Vec<_>>()
        })
        .collect()
}

fn tags(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(list)) => list
            .iter()
            .filter(|item| args::truthy(Some(item)))
            .map(|item| pytext::strip(&args::text_of(item)).to_owned())
            .collect(),
        Some(value) if args::truthy(Some(value)) => {
            let text = args::text_of(value);
            let text = pytext::strip(&text);
            let inner = text
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'))
                .unwrap_or(text);
            inner
                .split(',')
                .map(pytext::strip)
                .filter(|tag| !tag.is_empty())
                .map(|tag| tag.trim_matches(['"', '\'']).to_owned())
                .collect()
        }
        Some(_) | None => Vec::new(),
    }
}

/// A whole skill.
fn whole(shelf: &Shelf, dir: Option<&str>, file: &str, text: &str, front: &Front) -> ToolResult {
    let mut linked = Map::new();
    if let Some(dir) = dir {
        for (part, files) in [
            (
                "references",
                with_endings(shelf, dir, "references", &[".md"], false),
            ),
            (
                "templates",
                with_endings(shelf, dir, "templates", TEMPLATES, true),
            ),
            ("assets", with_endings(shelf, dir, "assets", &[""], true)),
            (
                "scripts",
                with_endings(shelf, dir, "scripts", SCRIPTS, false),
            ),
        ] {
            if !files.is_empty() {
                linked.insert(part.to_owned(), json!(files));
            }
        }
    }
    let metadata = front.get("metadata").filter(|value| value.is_object());
    let own = metadata
        .and_then(|metadata| metadata.get("hermes"))
        .filter(|own| own.is_object());
    let listed = |key: &str| {
        let inner = own
            .and_then(|own| own.get(key))
            .filter(|value| args::truthy(Some(value)));
        tags(inner.or_else(|| front.get(key)))
    };
    let stem = file
        .rsplit('/')
        .next()
        .unwrap_or(file)
        .trim_end_matches(".md");
    let named = dir.map_or(stem, |dir| dir.rsplit('/').next().unwrap_or(dir));
    let full = dir.map(|dir| format!("{}/{dir}", shelf.root));
    let shown = match &full {
        Some(full) => text.replace("${HERMES_SKILL_DIR}", full),
        None => text.to_owned(),
    };
    let has_linked = !linked.is_empty();
    let hint = "To view linked files, call skill_view(name, file_path) where file_path is e.g. 'references/api.md' or \
                'assets/config.yaml'";
    let needs = Needs::of(front);
    let note = needs.note();
    let mut result = json!({
        "success": true,
        "name": front.get("name").cloned().unwrap_or_else(|| named.into()),
        "description": front.get("description").cloned().unwrap_or_else(|| "".into()),
        "tags": listed("tags"),
        "related_skills": listed("related_skills"),
        "content": shown.replace("\r\n", "\n").replace('\r', "\n"),
        "path": file,
        "skill_dir": full,
        "linked_files": if has_linked { Value::Object(linked) } else { Value::Null },
        "usage_hint": if has_linked { hint.into() } else { Value::Null },
        "required_environment_variables": needs.variables,
        "required_commands": [],
        "missing_required_environment_variables": needs.missing,
        "missing_credential_files": needs.files,
        "missing_required_commands": [],
        "setup_needed": note.is_some(),
        "setup_skipped": false,
        "readiness_status": if note.is_some() { "setup_needed" } else { "available" },
    });
    if let Some(map) = result.as_object_mut() {
        if let Some(help) = needs.help {
            map.insert("setup_help".into(), help.into());
        }
        if let Some(note) = note {
            map.insert("setup_note".into(), note.into());
        }
        if let Some(value) = front
            .get("compatibility")
            .filter(|value| args::truthy(Some(value)))
        {
            map.insert("compatibility".into(), value.clone());
        }
        if let Some(metadata) = metadata {
            map.insert("metadata".into(), metadata.clone());
        }
    }
    ToolResult::ran(&result)
}
