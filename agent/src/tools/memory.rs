//! `memory`: notes that last beyond the session, in two small files.
//!
//! The files lie in a directory of their own, and so does the authority: who
//! holds no capability on it has no memory. A file that somebody else filled
//! with other text is not rewritten.

use serde_json::{Value, json};

use crate::{
    runtime::{Before, Hands, Place, Stop, ToolResult},
    text::{args, pytext},
};

/// What stands between two notes.
const BETWEEN: &str = "\n\u{a7}\n";
/// Failures in a row to make room, after which the model is told to go on.
const FAILURES_MAX: u32 = 3;

/// One of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Memory,
    User,
}

impl Target {
    fn word(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::User => "user",
        }
    }

    fn file(self) -> &'static str {
        match self {
            Self::Memory => "MEMORY.md",
            Self::User => "USER.md",
        }
    }

    fn letters_max(self) -> usize {
        match self {
            Self::Memory => 2200,
            Self::User => 1375,
        }
    }
}

/// The notes as they are, and where.
struct Notes {
    target: Target,
    place: Place,
    before: Before,
    raw: String,
    entries: Vec<String>,
}

fn failure(message: &str) -> ToolResult {
    ToolResult::failed(&json!({"error": message, "success": false}))
}

fn unsuccessful(message: &str) -> ToolResult {
    ToolResult::failed(&json!({"success": false, "error": message}))
}

fn letters(entries: &[String]) -> usize {
    entries.join(BETWEEN).chars().count()
}

fn thousands(number: usize) -> String {
    pytext::thousands(number as u64)
}

/// Runs the call.
///
/// # Errors
/// It was refused, or the machinery failed.
pub fn run(hands: &mut Hands<'_>, given: &Value) -> Result<ToolResult, Stop> {
    let target = match given.get("target") {
        None | Some(Value::Null) => Target::Memory,
        Some(Value::String(word)) if word == "memory" => Target::Memory,
        Some(Value::String(word)) if word == "user" => Target::User,
        Some(other) => {
            return Ok(failure(&format!(
                "Invalid target '{}'. Use 'memory' or 'user'.",
                args::text_of(other)
            )));
        }
    };
    if args::truthy(given.get("operations")) {
        let Some(Value::Array(operations)) = given.get("operations") else {
            return Ok(failure(
                "operations must be a list of {action, content?, old_text?} objects.",
            ));
        };
        let notes = notes(hands, target)?;
        return batch(hands, notes, operations);
    }
    let text = |key: &str| {
        given
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let action = match given.get("action") {
        Some(Value::String(action)) => action.clone(),
        None | Some(Value::Null) => "None".to_owned(),
        Some(other) => args::text_of(other),
    };
    let (content, old) = (text("content"), text("old_text"));
    match (action.as_str(), content, old) {
        ("add", None, _) => Ok(failure("Content is required for 'add' action.")),
        ("add", Some(content), _) => {
            let notes = notes(hands, target)?;
            add(hands, notes, pytext::strip(content))
        }
        ("replace" | "remove", _, None) => {
            let notes = notes(hands, target)?;
            Ok(without_old_text(&notes, &action))
        }
        ("replace", None, Some(_)) => Ok(failure("content is required for 'replace' action.")),
        ("replace", Some(content), Some(old)) => {
            let notes = notes(hands, target)?;
            replace(hands, notes, pytext::strip(old), pytext::strip(content))
        }
        ("remove", _, Some(old)) => {
            let notes = notes(hands, target)?;
            remove(hands, notes, pytext::strip(old))
        }
        (other, _, _) => Ok(failure(&format!(
            "Unknown action '{other}'. Use: add, replace, remove"
        ))),
    }
}

fn notes(hands: &mut Hands<'_>, target: Target) -> Result<Notes, Stop> {
    let place = hands.resolve(&format!("~/.hermes/memories/{}", target.file()))?;
    let before = hands.before(&place)?;
    let raw = match &before {
        Before::File(content) => String::from_utf8(content.clone())
            .map_err(|_| Stop::Io(format!("`{}` is not a text", target.file())))?
            // Whatever ends the lines of a file somebody else wrote.
            .replace("\r\n", "\n")
            .replace('\r', "\n"),
        Before::Nothing => String::new(),
        Before::Long(_) | Before::Unread => {
            return Err(Stop::Io(format!("`{}` may not be read", target.file())));
        }
    };
    let mut entries: Vec<String> = Vec::new();
    for entry in raw.split(BETWEEN).map(pytext::strip) {
        if !entry.is_empty() && !entries.iter().any(|known| known == entry) {
            entries.push(entry.to_owned());
        }
    }
    Ok(Notes {
        target,
        place,
        before,
        raw,
        entries,
    })
}

impl Notes {
    /// Whether somebody else has written what these notes would not keep.
    fn is_foreign(&self) -> bool {
        let parsed: Vec<String> = self
            .raw
            .split(BETWEEN)
            .map(|entry| pytext::strip(entry).to_owned())
            .filter(|entry| !entry.is_empty())
            .collect();
        let longest = parsed
            .iter()
            .map(|entry| entry.chars().count())
            .max()
            .unwrap_or(0);
        pytext::strip(&self.raw) != parsed.join(BETWEEN) || longest > self.target.letters_max()
    }

    fn usage(&self) -> String {
        format!(
            "{}/{}",
            thousands(letters(&self.entries)),
            thousands(self.target.letters_max())
        )
    }

    fn foreign(&self) -> ToolResult {
        unsuccessful(&format!(
            "Refusing to write {}: it holds text that would not survive a rewrite as a list of notes. Nothing was \
             changed; put the other text elsewhere first, then retry.",
            self.target.file()
        ))
    }
}

/// Writes the notes and says how full they are.
fn saved(
    hands: &mut Hands<'_>,
    notes: &Notes,
    entries: &[String],
    message: &str,
) -> Result<ToolResult, Stop> {
    hands.write_private(
        &notes.place,
        &notes.before,
        entries.join(BETWEEN).as_bytes(),
    )?;
    Ok(told(hands, notes.target, entries, message))
}

fn told(hands: &mut Hands<'_>, target: Target, entries: &[String], message: &str) -> ToolResult {
    hands.state().memory_failures = 0;
    let (current, limit) = (letters(entries), target.letters_max());
    ToolResult::ran(&json!({
        "success": true,
        "done": true,
        "target": target.word(),
        "usage": format!("{}% \u{2014} {}/{} chars", (current * 100 / limit).min(100), thousands(current), thousands(limit)),
        "entry_count": entries.len(),
        "message": message,
        "note": "Write saved. This update is complete \u{2014} do not repeat it.",
    }))
}

/// A failure the model can repair, unless it has tried too often.
fn repairable(hands: &mut Hands<'_>, answer: &Value) -> ToolResult {
    let failures = &mut hands.state().memory_failures;
    *failures += 1;
    if *failures <= FAILURES_MAX {
        return ToolResult::failed(answer);
    }
    ToolResult::failed(&json!({
        "success": false,
        "done": true,
        "error": format!(
            "Memory consolidation failed {failures} times this turn. Stop retrying memory calls \u{2014} leave memory \
             unchanged for now and continue with your reply to the user. The fact can be saved in a later turn."
        ),
    }))
}

fn without_old_text(notes: &Notes, action: &str) -> ToolResult {
    ToolResult::failed(&json!({
        "success": false,
        "error": format!(
            "'{action}' needs old_text -- a short unique substring of the entry to {action}. None was provided. \
             Reissue the {action} with old_text set to part of one of the current_entries below."
        ),
        "current_entries": notes.entries,
        "usage": notes.usage(),
    }))
}

fn add(hands: &mut Hands<'_>, notes: Notes, content: &str) -> Result<ToolResult, Stop> {
    if content.is_empty() {
        return Ok(unsuccessful("Content cannot be empty."));
    }
    if notes.entries.iter().any(|entry| entry == content) {
        let message = "Entry already exists (no duplicate added).";
        return Ok(told(hands, notes.target, &notes.entries, message));
    }
    let mut entries = notes.entries.clone();
    entries.push(content.to_owned());
    if letters(&entries) > notes.target.letters_max() {
        let answer = json!({
            "success": false,
            "error": format!(
                "Memory at {} chars. Adding this entry ({} chars) would exceed the limit. Consolidate now: use \
                 'replace' to merge overlapping entries into shorter ones or 'remove' stale or less important entries \
                 (see current_entries below), then retry this add \u{2014} all in this turn.",
                notes.usage(),
                content.chars().count()
            ),
            "current_entries": notes.entries,
            "usage": notes.usage(),
        });
        return Ok(repairable(hands, &answer));
    }
    saved(hands, &notes, &entries, "Entry added.")
}

/// The entry a text means.
enum Meant {
    One(usize),
    None,
    Several(Vec<String>),
}

fn meant(entries: &[String], old: &str) -> Meant {
    let matches: Vec<(usize, &String)> = entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| entry.contains(old))
        .collect();
    match matches.as_slice() {
        [] => Meant::None,
        [(first, text), rest @ ..] => {
            if rest.iter().all(|(_, other)| other == text) {
                return Meant::One(*first);
            }
            let previews = matches
                .iter()
                .map(|(_, entry)| {
                    let more = if entry.chars().count() > 80 {
                        "..."
                    } else {
                        ""
                    };
                    format!("{}{more}", pytext::head(entry, 80))
                })
                .collect();
            Meant::Several(previews)
        }
    }
}

fn not_meant(
    hands: &mut Hands<'_>,
    notes: &Notes,
    old: &str,
    verb: &str,
    meant: Meant,
) -> Result<usize, ToolResult> {
    match meant {
        Meant::One(at) => Ok(at),
        Meant::None => {
            let answer = json!({
                "success": false,
                "error": format!(
                    "No entry matched '{old}'. Check current_entries below and retry with the exact text of the entry \
                     you want to {verb}."
                ),
                "current_entries": notes.entries,
            });
            Err(repairable(hands, &answer))
        }
        Meant::Several(previews) => Err(ToolResult::failed(&json!({
            "success": false,
            "error": format!("Multiple entries matched '{old}'. Be more specific."),
            "matches": previews,
        }))),
    }
}

fn replace(
    hands: &mut Hands<'_>,
    notes: Notes,
    old: &str,
    content: &str,
) -> Result<ToolResult, Stop> {
    if old.is_empty() {
        return Ok(unsuccessful("old_text cannot be empty."));
    }
    if content.is_empty() {
        return Ok(unsuccessful(
            "new_content cannot be empty. Use 'remove' to delete entries.",
        ));
    }
    if notes.is_foreign() {
        return Ok(notes.foreign());
    }
    let at = match not_meant(hands, &notes, old, "replace", meant(&notes.entries, old)) {
        Ok(at) => at,
        Err(result) => return Ok(result),
    };
    let mut entries = notes.entries.clone();
    if let Some(entry) = entries.get_mut(at) {
        content.clone_into(entry);
    }
    let total = letters(&entries);
    if total > notes.target.letters_max() {
        let answer = json!({
            "success": false,
            "error": format!(
                "Replacement would put memory at {}/{} chars. Shorten the new content, or 'remove' other stale or less \
                 important entries to make room (see current_entries below), then retry \u{2014} all in this turn.",
                thousands(total),
                thousands(notes.target.letters_max())
            ),
            "current_entries": notes.entries,
            "usage": notes.usage(),
        });
        return Ok(repairable(hands, &answer));
    }
    saved(hands, &notes, &entries, "Entry replaced.")
}

fn remove(hands: &mut Hands<'_>, notes: Notes, old: &str) -> Result<ToolResult, Stop> {
    if old.is_empty() {
        return Ok(unsuccessful("old_text cannot be empty."));
    }
    if notes.is_foreign() {
        return Ok(notes.foreign());
    }
    let at = match not_meant(hands, &notes, old, "remove", meant(&notes.entries, old)) {
        Ok(at) => at,
        Err(result) => return Ok(result),
    };
    let mut entries = notes.entries.clone();
    entries.remove(at);
    saved(hands, &notes, &entries, "Entry removed.")
}

/// Several changes at once, all or none.
fn batch(hands: &mut Hands<'_>, notes: Notes, operations: &[Value]) -> Result<ToolResult, Stop> {
    if notes.is_foreign() {
        return Ok(notes.foreign());
    }
    let mut entries = notes.entries.clone();
    for (at, operation) in operations.iter().enumerate() {
        if let Err(problem) = one_of_many(&mut entries, operation) {
            let action = operation
                .get("action")
                .filter(|action| args::truthy(Some(action)))
                .map_or_else(|| "unknown".to_owned(), args::text_of);
            let answer = json!({
                "success": false,
                "error": format!(
                    "Operation {} ({action}): {problem} No operations were applied (batch is all-or-nothing).",
                    at + 1
                ),
                "current_entries": notes.entries,
                "usage": notes.usage(),
            });
            return Ok(repairable(hands, &answer));
        }
    }
    let total = letters(&entries);
    if total > notes.target.letters_max() {
        let answer = json!({
            "success": false,
            "error": format!(
                "After applying all {} operations, memory would be at {}/{} chars -- over the limit. Remove or shorten \
                 more entries in the same batch (see current_entries below), then retry.",
                operations.len(),
                thousands(total),
                thousands(notes.target.letters_max())
            ),
            "current_entries": notes.entries,
            "usage": notes.usage(),
        });
        return Ok(repairable(hands, &answer));
    }
    let message = format!("Applied {} operation(s).", operations.len());
    saved(hands, &notes, &entries, &message)
}

fn one_of_many(entries: &mut Vec<String>, operation: &Value) -> Result<(), String> {
    let text = |key: &str| {
        pytext::strip(
            operation
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default(),
        )
        .to_owned()
    };
    let (content, old) = (text("content"), text("old_text"));
    let place = |entries: &[String]| match meant(entries, &old) {
        Meant::One(at) => Ok(at),
        Meant::None => Err(format!("no entry matched '{old}'.")),
        Meant::Several(_) => Err(format!(
            "'{old}' matched multiple distinct entries -- be more specific."
        )),
    };
    match operation.get("action").and_then(Value::as_str) {
        Some("add") if content.is_empty() => Err("content is required.".into()),
        Some("add") => {
            if !entries.contains(&content) {
                entries.push(content);
            }
            Ok(())
        }
        Some("replace" | "remove") if old.is_empty() => Err("old_text is required.".into()),
        Some("replace") if content.is_empty() => {
            Err("content is required (use action='remove' to delete).".into())
        }
        Some("replace") => {
            let at = place(entries)?;
            if let Some(entry) = entries.get_mut(at) {
                *entry = content;
            }
            Ok(())
        }
        Some("remove") => {
            let at = place(entries)?;
            entries.remove(at);
            Ok(())
        }
        Some(_) | None => Err("unknown action. Use add, replace, or remove.".into()),
    }
}
