//! `patch`: replaces text in a file, or applies a patch of several files.
//!
//! A patch of several files is worked out whole before the first of them is
//! touched, and its changes are permitted, shown and made together.

mod apply;
mod files;
mod headers;

use hermitcrab_core::v4a::{self, Operation, V4aError};
use hermitcrab_sandbox::dircap::Kind;
use serde_json::{Map, Value, json};

use self::files::Files;

use crate::{
    runtime::{Before, Hands, LinkLeads, Place, Stop, ToolResult},
    text::{
        args::{self, Declared},
        fuzzy::{self, Occurrences, Replaced},
        pytext, redact, whole_diff,
    },
    tools::{lint, mistyped, write_file},
};

/// The advice for a text that is not there.
const NOT_FOUND_HINT: &str = "old_string not found. Use read_file to verify the current content, or search_files to locate the text.";

/// Runs the call.
///
/// # Errors
/// It was refused, or the machinery failed.
pub fn run(hands: &mut Hands<'_>, given: &Value) -> Result<ToolResult, Stop> {
    let given = args::coerced(
        given,
        &[
            ("mode", Declared::Text),
            ("path", Declared::Text),
            ("old_string", Declared::Text),
            ("new_string", Declared::Text),
            ("replace_all", Declared::Truth),
            ("patch", Declared::Text),
        ],
    );
    hands.state().reads.note_other_call();
    let filled = |name: &str| given.get(name).filter(|value| args::truthy(Some(value)));
    let mode = given.get("mode");
    let mode = mode.map_or_else(|| "replace".to_owned(), args::text_of);
    if let Some(patch) = filled("patch").filter(|patch| mode == "patch" && !patch.is_string()) {
        let problem = mistyped::not_matched(patch);
        return Ok(mistyped::uncaught("TypeError", &problem));
    }
    if let Some(problem) = filled("path").and_then(mistyped::path_problem) {
        return Ok(mistyped::uncaught("TypeError", &problem));
    }
    let path = filled("path").and_then(Value::as_str);
    if mode == "patch" {
        let patch = filled("patch").and_then(Value::as_str).unwrap_or_default();
        return several(hands, path, patch);
    }
    if mode != "replace" {
        return Ok(ToolResult::error(&format!("Unknown mode: {mode}")));
    }
    let Some(path) = path else {
        return Ok(ToolResult::error("path required"));
    };
    let told = |name: &str| given.get(name).filter(|value| !value.is_null());
    let (Some(old), Some(new)) = (told("old_string"), told("new_string")) else {
        return Ok(ToolResult::error("old_string and new_string required"));
    };
    let occurrences = if args::truthy(given.get("replace_all")) {
        Occurrences::All
    } else {
        Occurrences::One
    };
    replace(hands, path, old, new, occurrences)
}

/// Every path that a header of a patch names.
#[must_use]
pub fn named(patch: &str) -> Vec<String> {
    headers::paths(patch)
}

/// The heading when nothing of a patch could be done.
const ALL_FAILED: &str =
    "Apply phase failed (state may be inconsistent \u{2014} run `git diff` to assess)";
/// The heading when some of it could have been done.
const NOT_APPLIED: &str = "Apply phase failed (no files were modified)";
/// What a NUL in a path is told with.
const NUL_FOUND: &str = "[TOOL_ERROR] Tool execution failed: ValueError: ";

/// A patch of several files.
fn several(hands: &mut Hands<'_>, path: Option<&str>, patch: &str) -> Result<ToolResult, Stop> {
    let mut named: Vec<String> = path
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .into_iter()
        .collect();
    let headers = headers::paths(patch);
    if let Some(path) = headers.iter().find(|path| headers::climbs(path)) {
        return Ok(ToolResult::error(&format!(
            "V4A patch header contains '..' traversal: {}. Use the agent's cwd-relative path (no '..') or an absolute \
             path in '*** Update File:' / '*** Add File:' / '*** Delete File:' / '*** Move File:' headers.",
            pytext::quoted(path)
        )));
    }
    named.extend(headers);
    if patch.is_empty() {
        return Ok(ToolResult::error("patch content required"));
    }
    if let Some(result) = named
        .iter()
        .find_map(|path| mistyped::has_nul(path, NUL_FOUND))
    {
        return Ok(result);
    }
    let parsed = v4a::parse_or_mistakes(patch);
    let by_name = parsed.as_deref().map(files::by_name).unwrap_or_default();
    let mut resolved = Vec::with_capacity(named.len());
    let places = named
        .iter()
        .filter(|path| hands.is_too_long(path).is_none())
        .filter_map(|path| hands.resolve(path).ok());
    hands.ask_for_files(&places.collect::<Vec<_>>())?;
    let mut warnings = Vec::new();
    for path in &named {
        if let Some(absolute) = hands.is_too_long(path) {
            resolved.push((absolute, None));
            continue;
        }
        let (named, leads) = meant(hands, path, by_name.contains(path.as_str()))?;
        let Some(place) = leads else {
            resolved.push((named.absolute.clone(), Some(named)));
            continue;
        };
        let stamp = hands.look(&place)?.map(|stat| stat.modified_ns);
        let warning = hands
            .staleness(&place.absolute, stamp)
            .or_else(|| write_file::outside(hands, path, &place));
        warnings.extend(warning);
        resolved.push((place.absolute, Some(named)));
    }
    let warning = (!warnings.is_empty()).then(|| warnings.join(" | "));
    let operations = match parsed {
        Ok(operations) => operations,
        Err(mistakes) => {
            let message = format!("Failed to parse patch: {}", mistaken(&mistakes));
            return Ok(warned(json!({"success": false, "error": message}), warning));
        }
    };
    hands.state().shell_is_used = true;
    let done = match together(hands, &operations)? {
        Done::Changed(done) => done,
        Done::Not(message) => {
            let mut result = Map::new();
            result.insert("success".into(), false.into());
            let hint = message.contains("Could not find")
                && !message.contains("Did you mean one of these sections?");
            result.insert("error".into(), message.into());
            if let Some(warning) = warning {
                result.insert("_warning".into(), warning.into());
            }
            if hint {
                result.insert("_hint".into(), NOT_FOUND_HINT.into());
            }
            return Ok(ToolResult::failed(&Value::Object(result)));
        }
    };
    let mut result = done;
    for (told, place) in &resolved {
        let Some(place) = place else { continue };
        let stamp = hands
            .look(place)
            .ok()
            .flatten()
            .map(|stat| stat.modified_ns);
        hands.note_write(&place.absolute, stamp);
        hands.state().patch_failures.remove(told);
    }
    if let Some(warning) = warning {
        result.insert("_warning".into(), warning.into());
    }
    let absolute: Vec<String> = resolved.into_iter().map(|(absolute, _)| absolute).collect();
    let changed: Vec<&str> = absolute.iter().map(String::as_str).collect();
    hands.note_edits(&changed);
    let only = match absolute.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    };
    // Replaces the names as written where there are some; last otherwise.
    result.insert("files_modified".into(), json!(absolute));
    if let Some(only) = only {
        result.insert("resolved_path".into(), only.into());
    }
    Ok(ToolResult::ran(&Value::Object(result)))
}

/// The place that a header means, and the one that is told for it: of a link that is meant
/// itself, where it leads, as far as that may be known.
fn meant(hands: &mut Hands<'_>, path: &str, by_name: bool) -> Result<(Place, Option<Place>), Stop> {
    let place = hands.resolve(path)?;
    if !by_name {
        let place = hands.target(place)?;
        return Ok((place.clone(), Some(place)));
    }
    let named = hands.target_by_name(place)?;
    let leads = match hands.link(&named)?.map(|link| link.leads) {
        Some(LinkLeads::To(goal) | LinkLeads::Nowhere(Some(goal))) => Some(goal),
        Some(LinkLeads::Nowhere(None) | LinkLeads::Unseen) => None,
        None => Some(named.clone()),
    };
    Ok((named, leads))
}

/// What became of a patch.
enum Done {
    /// It was applied; the result so far.
    Changed(Map<String, Value>),
    /// Nothing was changed, for this reason.
    Not(String),
}

fn together(hands: &mut Hands<'_>, operations: &[Operation]) -> Result<Done, Stop> {
    let listed = |heading: &str, problems: &[String]| {
        let lines: Vec<String> = problems
            .iter()
            .map(|problem| format!("  \u{2022} {problem}"))
            .collect();
        Done::Not(format!("{heading}:\n{}", lines.join("\n")))
    };
    let mut files = Files::new(hands, operations);
    let problems = apply::problems(operations, &mut files)?;
    if !problems.is_empty() {
        return Ok(listed(
            "Patch validation failed (no files were modified)",
            &problems,
        ));
    }
    let applied = apply::apply(operations, &mut files)?;
    if !applied.problems.is_empty() {
        // Nothing is on the disk yet: nothing needs to be looked over.
        let heading = if applied.problems.len() == operations.len() {
            ALL_FAILED
        } else {
            NOT_APPLIED
        };
        return Ok(listed(heading, &applied.problems));
    }
    if let Err(stop) = files.commit() {
        let why = match (&stop, operations) {
            (Stop::Missing, [Operation::Add { path, .. }]) => files.why_missing(path)?,
            _ => match write_file::unwritten(&stop) {
                Some(why) => why,
                None => return Err(stop),
            },
        };
        let problem = match operations {
            [Operation::Update { path, .. }] => {
                format!("Failed to update {path}: Failed to write file: {why}\n")
            }
            [Operation::Add { path, .. }] => {
                format!("Failed to add {path}: Failed to write file: {why}\n")
            }
            [Operation::Delete { path, .. }] => {
                // As Python tells what the system said.
                let number = match why {
                    "Permission denied" => "[Errno 13] ",
                    "No space left on device" => "[Errno 28] ",
                    "Read-only file system" => "[Errno 30] ",
                    _ => "",
                };
                format!("Failed to delete {path}: Failed to delete {path}: {number}{why}: '{path}'")
            }
            _ => return Ok(listed(NOT_APPLIED, &[why.to_owned()])),
        };
        return Ok(listed(ALL_FAILED, &[problem]));
    }
    let mut checks = Map::new();
    for path in applied.modified.iter().chain(&applied.created) {
        let checked = files.checked(path);
        checks.insert(path.clone(), checked.shown());
    }
    let diff = applied.diffs.join("\n");
    let mut result = Map::new();
    result.insert("success".into(), true.into());
    if !diff.is_empty() {
        result.insert("diff".into(), redact::masked_diff(&diff).into());
    }
    for (key, paths) in [
        ("files_modified", applied.modified),
        ("files_created", applied.created),
        ("files_deleted", applied.deleted),
    ] {
        if !paths.is_empty() {
            result.insert(key.into(), json!(paths));
        }
    }
    if !checks.is_empty() {
        result.insert("lint".into(), Value::Object(checks));
    }
    Ok(Done::Changed(result))
}

/// Everything that is wrong with the patch's text.
fn mistaken(mistakes: &[V4aError]) -> String {
    let listed: Vec<String> = mistakes
        .iter()
        .map(|mistake| match mistake {
            V4aError::TooLong => mistake.to_string(),
            V4aError::PathMissing => "Operation with empty file path".to_owned(),
            V4aError::HunkMissing { path } => {
                format!("UPDATE {}: no hunks found", pytext::quoted(path))
            }
            V4aError::TargetMissing { path } => format!(
                "MOVE {}: missing destination path (expected 'src -> dst')",
                pytext::quoted(path)
            ),
        })
        .collect();
    format!("Parse error: {}", listed.join("; "))
}

fn replace(
    hands: &mut Hands<'_>,
    path: &str,
    old: &Value,
    new: &Value,
    occurrences: Occurrences,
) -> Result<ToolResult, Stop> {
    if let Some(result) = mistyped::has_nul(path, NUL_FOUND) {
        return Ok(result);
    }
    if let Some(absolute) = hands.is_too_long(path) {
        let message = format!("Failed to read file: {absolute}");
        return Ok(warned(json!({"success": false, "error": message}), None));
    }
    let place = hands.resolve_to_change(path)?;
    hands.ask_for_files(std::slice::from_ref(&place))?;
    let place = hands.target(place)?;
    hands.state().shell_is_used = true;
    let stat = hands.look(&place)?;
    let stamp = stat.map(|stat| stat.modified_ns);
    let warning = hands
        .staleness(&place.absolute, stamp)
        .or_else(|| write_file::outside(hands, path, &place));
    let unreadable = format!("Failed to read file: {}", place.absolute);
    if stat.is_none_or(|stat| stat.kind == Kind::Dir) {
        return Ok(warned(
            json!({"success": false, "error": unreadable}),
            warning,
        ));
    }
    let bytes = match hands.read_to_change(&place, 0) {
        Ok(bytes) => bytes,
        Err(Stop::Missing | Stop::System(std::io::ErrorKind::PermissionDenied, _)) => {
            return Ok(warned(
                json!({"success": false, "error": unreadable}),
                warning,
            ));
        }
        Err(stop) => return Err(stop),
    };
    let before = Before::File(bytes);
    let Before::File(bytes) = &before else {
        return Err(Stop::Broken(format!("lost what `{path}` held")));
    };
    let whole = String::from_utf8_lossy(bytes);
    let content = whole.strip_prefix('\u{feff}').unwrap_or(&whole);
    let replaced = match swapped(content, (old, new), occurrences) {
        Swapped::Replaced((Replaced::Text(text), _)) => text,
        Swapped::Mistyped(problem) => return Ok(ToolResult::error(&problem)),
        Swapped::Replaced((Replaced::Not(problem), _)) => {
            let old = old.as_str().unwrap_or_default();
            let sections = fuzzy::nearest_sections(&problem, old, content);
            return Ok(not_found(
                hands,
                path,
                &place.absolute,
                &format!("{problem}{sections}"),
                warning,
            ));
        }
    };
    let replaced = match write_file::line_end(content) {
        Some(end) => write_file::with_line_ends(&replaced, end),
        None => replaced,
    };
    if let Some(problem) = lint::refusal(&place.absolute, &replaced) {
        let message = format!("Failed to write changes: {problem}");
        return Ok(warned(json!({"success": false, "error": message}), warning));
    }
    let written = write_file::kept_form(&before, &replaced);
    let put = match stat.as_ref().and_then(write_file::is_shut) {
        Some(why) => Err(why),
        None => write_file::put(hands, &place, &before, &written)?,
    };
    let put = match put {
        Ok(stat) => stat,
        Err(why) => {
            let message = format!("Failed to write changes: {why}");
            return Ok(warned(json!({"success": false, "error": message}), warning));
        }
    };
    hands.note_write(&place.absolute, Some(put.modified_ns));
    hands.state().patch_failures.remove(&place.absolute);
    hands.note_edits(&[&place.absolute]);

    let diff = whole_diff::unified(
        content,
        &replaced,
        &format!("a/{}", place.absolute),
        &format!("b/{}", place.absolute),
    );
    let mut result = Map::new();
    result.insert("success".into(), true.into());
    if !diff.is_empty() {
        result.insert("diff".into(), redact::masked_diff(&diff).into());
    }
    result.insert("files_modified".into(), json!([place.absolute]));
    result.insert(
        "lint".into(),
        lint::after(hands, &place.absolute, Some(content), &replaced, true).shown(),
    );
    if let Some(warning) = warning {
        result.insert("_warning".into(), warning.into());
    }
    result.insert("resolved_path".into(), place.absolute.into());
    Ok(ToolResult::ran(&Value::Object(result)))
}

/// What became of a text in which one thing was to stand for another.
pub enum Swapped {
    /// Something, as texts.
    Replaced((Replaced, usize)),
    /// Nothing: one of the two is no text.
    Mistyped(String),
}

/// Replaces what may be no text: nothing and the same are told before it shows
/// that the old is none, and what is not there before it shows that the new is none.
#[must_use]
pub fn swapped(content: &str, (old, new): (&Value, &Value), occurrences: Occurrences) -> Swapped {
    let not = |problem: &str| Swapped::Replaced((Replaced::Not(problem.to_owned()), 0));
    if !args::truthy(Some(old)) {
        return not("old_string cannot be empty");
    }
    if old == new {
        return not("old_string and new_string are identical");
    }
    let Value::String(old) = old else {
        return Swapped::Mistyped(mistyped::not_sought(old));
    };
    match new {
        Value::String(new) => {
            Swapped::Replaced(fuzzy::replace_counted(content, old, new, occurrences))
        }
        new => match fuzzy::replace_counted(content, old, "", occurrences) {
            (Replaced::Text(_), _) => Swapped::Mistyped(mistyped::not_inserted(new)),
            (Replaced::Not(problem), _) => not(&problem),
        },
    }
}

fn warned(mut value: Value, warning: Option<String>) -> ToolResult {
    if let (Some(map), Some(warning)) = (value.as_object_mut(), warning) {
        map.insert("_warning".into(), warning.into());
    }
    ToolResult::failed(&value)
}

/// A failure to find the text, with advice that grows with repetition.
fn not_found(
    hands: &mut Hands<'_>,
    path: &str,
    absolute: &str,
    problem: &str,
    warning: Option<String>,
) -> ToolResult {
    let mut result = Map::new();
    result.insert("success".into(), false.into());
    result.insert("error".into(), problem.into());
    if let Some(warning) = warning {
        result.insert("_warning".into(), warning.into());
    }
    if problem.contains("Could not find") {
        let failures = hands
            .state()
            .patch_failures
            .entry(absolute.to_owned())
            .or_default();
        *failures += 1;
        if *failures >= 3 {
            result.insert(
                "_hint".into(),
                format!(
                    "This is failure #{failures} patching {}. Stop retrying with variations of the same old_string. \
                     Either: (1) re-read the file fresh to verify current content, (2) use a longer / more unique \
                     old_string with surrounding context lines, or (3) use write_file to replace the entire file if the \
                     targeted region is hard to anchor.",
                    pytext::quoted(path)
                )
                .into(),
            );
        } else if !problem.contains("Did you mean one of these sections?") {
            result.insert("_hint".into(), NOT_FOUND_HINT.into());
        }
    }
    ToolResult::failed(&Value::Object(result))
}
