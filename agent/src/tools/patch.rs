//! `patch`: replaces text in a file.

use serde_json::{Map, Value, json};

use crate::{
    runtime::{Before, Hands, Stop, ToolResult},
    tools::{
        args,
        args::Declared,
        difflib,
        fuzzy::{self, Occurrences, Replaced},
        lint, pytext, write_file,
    },
};

fn failed(message: &str) -> ToolResult {
    ToolResult::failed(&json!({"success": false, "error": message}))
}

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
    let text = |name: &str| given.get(name).and_then(Value::as_str);
    let mode = text("mode").unwrap_or("replace");
    if mode == "patch" {
        return Ok(if text("patch").is_none_or(str::is_empty) {
            ToolResult::error("patch content required")
        } else {
            failed(
                "Patches of several files are not available to this agent; use mode='replace' for each change.",
            )
        });
    }
    if mode != "replace" {
        return Ok(ToolResult::error(&format!("Unknown mode: {mode}")));
    }
    let Some(path) = text("path").filter(|path| !path.is_empty()) else {
        return Ok(ToolResult::error("path required"));
    };
    let (Some(old), Some(new)) = (text("old_string"), text("new_string")) else {
        return Ok(ToolResult::error("old_string and new_string required"));
    };
    let occurrences = if args::truthy(given.get("replace_all")) {
        Occurrences::All
    } else {
        Occurrences::One
    };
    replace(hands, path, old, new, occurrences)
}

fn replace(
    hands: &mut Hands<'_>,
    path: &str,
    old: &str,
    new: &str,
    occurrences: Occurrences,
) -> Result<ToolResult, Stop> {
    let place = hands.resolve(path)?;
    let stamp = hands.look(&place)?.map(|stat| stat.modified_ns);
    let warning = hands
        .state()
        .reads
        .staleness(&place.absolute, stamp)
        .or_else(|| write_file::outside(hands, path, &place));
    let unreadable = format!("Failed to read file: {}", place.absolute);
    if stamp.is_none() {
        return Ok(warned(
            json!({"success": false, "error": unreadable}),
            warning,
        ));
    }
    let bytes = match hands.read(&place) {
        Ok(bytes) => bytes,
        Err(Stop::Missing) => {
            return Ok(warned(
                json!({"success": false, "error": unreadable}),
                warning,
            ));
        }
        Err(stop) => return Err(stop),
    };
    let before = Before::File(bytes.clone());
    let whole = String::from_utf8_lossy(&bytes).into_owned();
    let content = whole.strip_prefix('\u{feff}').unwrap_or(&whole);
    let replaced = match fuzzy::replace(content, old, new, occurrences) {
        Replaced::Text(text) => text,
        Replaced::Not(problem) => {
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
    hands.write(&place, &before, written.as_bytes())?;
    let stamp = hands
        .look(&place)
        .ok()
        .flatten()
        .map(|stat| stat.modified_ns);
    let state = hands.state();
    state.reads.note_write(&place.absolute, stamp);
    state.patch_failures.remove(&place.absolute);

    let diff = difflib::unified(
        &pytext::lines_kept(content),
        &pytext::lines_kept(&replaced),
        &format!("a/{}", place.absolute),
        &format!("b/{}", place.absolute),
    );
    let mut result = Map::new();
    result.insert("success".into(), true.into());
    if !diff.is_empty() {
        result.insert("diff".into(), diff.into());
    }
    result.insert("files_modified".into(), json!([place.absolute]));
    result.insert(
        "lint".into(),
        lint::check(&place.absolute, Some(content), &replaced).shown(),
    );
    if let Some(warning) = warning {
        result.insert("_warning".into(), warning.into());
    }
    result.insert("resolved_path".into(), place.absolute.into());
    Ok(ToolResult::ran(&Value::Object(result)))
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
            result.insert(
                "_hint".into(),
                "old_string not found. Use read_file to verify the current content, or search_files to locate the text."
                    .into(),
            );
        }
    }
    ToolResult::failed(&Value::Object(result))
}
