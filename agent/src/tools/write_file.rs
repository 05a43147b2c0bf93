//! `write_file`: writes one whole file.

use std::io::ErrorKind;

use hermitcrab_sandbox::dircap::{Kind, Stat};
use serde_json::{Map, Value, json};

use crate::{
    runtime::{Before, Hands, Place, Stop, ToolResult},
    text::{
        args::{self, Declared},
        pytext,
    },
    tools::{lint, mistyped},
};

/// The status text of a repeated read; it is never a file's content.
pub const UNCHANGED: &str = "File unchanged since last read. The content from the earlier read_file result in this \
                             conversation is still current \u{2014} refer to that instead of re-reading.";

/// What the system says of a name or a path that is longer than it takes.
const TOO_LONG: &str = "File name too long";

/// Runs the call.
///
/// # Errors
/// It was refused, or the machinery failed.
pub fn run(hands: &mut Hands<'_>, given: &Value) -> Result<ToolResult, Stop> {
    let given = args::coerced(
        given,
        &[("path", Declared::Text), ("content", Declared::Text)],
    );
    hands.state().reads.note_other_call();
    let path = match given.get("path") {
        Some(Value::String(path)) if !path.is_empty() => path,
        _ => {
            return Ok(ToolResult::error(
                "write_file: missing required field 'path'. Re-emit the tool call with both 'path' and 'content' set.",
            ));
        }
    };
    let content = match given.get("content") {
        Some(Value::String(content)) => content,
        None => {
            return Ok(ToolResult::error(
                "write_file: missing required field 'content'. The tool call included a path but no content argument \
                 \u{2014} this is almost always a dropped-arg bug under context pressure. Re-emit the tool call with the \
                 full content payload, or use execute_code with hermes_tools.write_file() for very large files.",
            ));
        }
        other => {
            return Ok(ToolResult::error(&format!(
                "write_file: 'content' must be a string, got {}.",
                args::type_name(other)
            )));
        }
    };
    if is_display_text(content) {
        return Ok(ToolResult::error(
            "Refusing to write internal read_file display text as file content. Strip read_file line-number prefixes \
             or reconstruct the intended file contents before writing.",
        ));
    }
    if let Some(result) =
        mistyped::has_nul(path, "[TOOL_ERROR] Tool execution failed: ValueError: ")
    {
        return Ok(result);
    }
    if let Some(absolute) = hands.is_too_long(path) {
        let problem = format!("Failed to write file: mv: cannot stat '{absolute}': {TOO_LONG}\n");
        return Ok(not_written(&absolute, problem, None));
    }
    let place = hands.resolve_to_change(path)?;
    let place = hands.target(place)?;
    if let Some(problem) = lint::refusal(&place.absolute, content) {
        let warning = warning_before_a_look(hands, path, &place);
        hands.note_unwritten(&place.absolute);
        return Ok(not_written(&place.absolute, problem, warning));
    }
    hands.state().shell_is_used = true;
    let place = hands.asked_target(place)?;
    let stat = hands.look_ahead(&place)?;
    let stamp = stat.map(|stat| stat.modified_ns);
    let warning = hands
        .staleness(&place.absolute, stamp)
        .or_else(|| outside(hands, path, &place));
    if let Some(why) = stat.as_ref().and_then(is_shut) {
        hands.note_unwritten(&place.absolute);
        return Ok(not_written(&place.absolute, why, warning));
    }
    let before = hands.before_writing(&place, stat.as_ref())?;
    let written = kept_form(&before, content);
    let stat = match put(hands, &place, &before, &written)? {
        Ok(stat) => stat,
        Err(why) => {
            hands.note_unwritten(&place.absolute);
            return Ok(not_written(&place.absolute, why, warning));
        }
    };
    let stamp = Some(stat.modified_ns);
    hands.note_write(&place.absolute, stamp);
    hands.note_edits(&[&place.absolute]);

    let mut result = Map::new();
    result.insert("bytes_written".into(), written.len().into());
    result.insert("dirs_created".into(), true.into());
    result.insert(
        "lint".into(),
        lint::after(
            hands,
            &place.absolute,
            text_before(&place, &before).as_deref(),
            &written,
            match &before {
                Before::File(old) => !old.is_empty(),
                Before::Long(_) => true,
                Before::Nothing | Before::Unread => false,
            },
        )
        .shown(),
    );
    if let Some(warning) = warning {
        result.insert("_warning".into(), warning.into());
    }
    result.insert("resolved_path".into(), place.absolute.clone().into());
    result.insert("files_modified".into(), json!([place.absolute]));
    Ok(ToolResult::ran(&Value::Object(result)))
}

/// What is said of a file that is as it was.
fn not_written(absolute: &str, problem: String, warning: Option<String>) -> ToolResult {
    let mut result = Map::new();
    result.insert("bytes_written".into(), 0.into());
    result.insert("dirs_created".into(), false.into());
    result.insert("error".into(), problem.into());
    if let Some(warning) = warning {
        result.insert("_warning".into(), warning.into());
    }
    result.insert("resolved_path".into(), absolute.into());
    ToolResult::failed(&Value::Object(result))
}

/// The warning for a content that is not going to be written anyway: nobody is asked for
/// a look that is only for its sake, so a file that was not read before is not looked at.
fn warning_before_a_look(hands: &mut Hands<'_>, path: &str, place: &Place) -> Option<String> {
    let stat = if hands.was_read(&place.absolute) {
        hands.look_ahead(place).ok().flatten()
    } else {
        None
    };
    hands
        .staleness(&place.absolute, stat.map(|stat| stat.modified_ns))
        .or_else(|| outside(hands, path, place))
}

/// Why a file marked against writing is not written. Its directory would let it
/// be replaced all the same.
#[must_use]
pub fn is_shut(stat: &Stat) -> Option<String> {
    (stat.kind == Kind::File && stat.mode & 0o200 == 0)
        .then(|| "Failed to write file: Permission denied\n".to_owned())
}

/// Writes a file; what was put there. What the system has against it comes back
/// in words; then nothing is changed.
///
/// # Errors
/// It was refused, or the machinery failed.
pub fn put(
    hands: &mut Hands<'_>,
    place: &Place,
    before: &Before,
    content: &str,
) -> Result<Result<Stat, String>, Stop> {
    match hands.write(place, before, content.as_bytes()) {
        Ok(stat) => Ok(Ok(stat)),
        Err(Stop::Missing) => {
            let why = why_missing(hands, place);
            Ok(Err(format!("Failed to write file: {why}\n")))
        }
        Err(stop) => match unwritten(&stop) {
            // The directories on the way could not be made. Where there is no room they could
            // be, and were taken back without the file.
            Some(_) if !is_for_room(&stop) && is_without_directory(hands, place) => Ok(Err(
                "Failed to write file: No such file or directory\n".to_owned(),
            )),
            Some(why) => Ok(Err(format!("Failed to write file: {why}\n"))),
            None => Err(stop),
        },
    }
}

fn is_for_room(stop: &Stop) -> bool {
    matches!(
        stop,
        Stop::System(ErrorKind::StorageFull | ErrorKind::QuotaExceeded, _)
    )
}

/// What the system says of a place that cannot be written because something on
/// the way to it is no directory, or went away.
pub fn why_missing(hands: &mut Hands<'_>, place: &Place) -> &'static str {
    let mut ways = place.absolute.match_indices('/').filter(|(at, _)| *at > 0);
    let is_file = ways.any(|(at, _)| {
        let way = place.absolute.get(..at).unwrap_or_default();
        let stat = hands.resolve(way).and_then(|place| hands.look(&place));
        matches!(stat, Ok(Some(stat)) if stat.kind != Kind::Dir)
    });
    if is_file {
        "Not a directory"
    } else {
        "No such file or directory"
    }
}

fn is_without_directory(hands: &mut Hands<'_>, place: &Place) -> bool {
    let above = place.absolute.rsplit_once('/').map(|(above, _)| above);
    let above = above.filter(|above| !above.is_empty());
    let place = above.and_then(|above| hands.resolve(above).ok());
    place.is_some_and(|place| matches!(hands.look(&place), Ok(None)))
}

/// What the system has against a write, if that is why it stopped.
#[must_use]
pub fn unwritten(stop: &Stop) -> Option<&str> {
    let Stop::System(kind, why) = stop else {
        return None;
    };
    Some(match kind {
        ErrorKind::PermissionDenied => "Permission denied",
        ErrorKind::StorageFull => "No space left on device",
        ErrorKind::QuotaExceeded => "Disk quota exceeded",
        ErrorKind::ReadOnlyFilesystem => "Read-only file system",
        ErrorKind::FileTooLarge => "File too large",
        ErrorKind::IsADirectory => "Is a directory",
        ErrorKind::NotADirectory => "Not a directory",
        _ => why,
    })
}

/// The old text, where a syntax check wants to know it.
#[must_use]
pub fn text_before(place: &Place, before: &Before) -> Option<String> {
    match before {
        Before::File(old) if lint::wants_text_before(&place.absolute) && !old.is_empty() => {
            Some(String::from_utf8_lossy(old).into_owned())
        }
        Before::File(_) | Before::Long(_) | Before::Nothing | Before::Unread => None,
    }
}

/// A warning when a relative path leads out of where the last command left off.
#[must_use]
pub fn outside(hands: &mut Hands<'_>, path: &str, place: &Place) -> Option<String> {
    if path.starts_with(['/', '~']) || !hands.state().cwd_is_from_command {
        return None;
    }
    let root = hands.cwd();
    if std::path::Path::new(&place.absolute).starts_with(&root) {
        return None;
    }
    Some(format!(
        "Relative path {} resolved to {}, which is OUTSIDE the active workspace ({}). The edit will land in a different \
         directory than the terminal's cwd. If this is not intended (e.g. a git-worktree session writing into the main \
         checkout), pass an absolute path under the workspace instead.",
        pytext::quoted(path),
        pytext::quoted(&place.absolute),
        pytext::quoted(&root.to_string_lossy()),
    ))
}

/// The new content with the line ends and the byte order mark of the old.
#[must_use]
pub fn kept_form(before: &Before, content: &str) -> String {
    let old = match before {
        Before::File(old) => old.as_slice(),
        Before::Long(old) => old.head.as_slice(),
        Before::Nothing | Before::Unread => return content.to_owned(),
    };
    // All that counts of it is at its beginning.
    let old = String::from_utf8_lossy(old.get(..LOOKED_AT_BYTES).unwrap_or(old));
    let mut out = if line_end(&old) == Some("\r\n") {
        with_line_ends(content, "\r\n")
    } else {
        content.to_owned()
    };
    if old.starts_with('\u{feff}') && !out.starts_with('\u{feff}') {
        out.insert(0, '\u{feff}');
    }
    out
}

/// More of a text's bytes are not looked at for its line end.
const LOOKED_AT_BYTES: usize = 4 * 4096;

/// The line end a text uses, judged by its beginning.
#[must_use]
pub fn line_end(text: &str) -> Option<&'static str> {
    const LOOKED_AT: usize = 4096;
    let head = pytext::head(text, LOOKED_AT);
    if head.contains("\r\n") {
        return Some("\r\n");
    }
    head.contains('\n').then_some("\n")
}

/// The text with all line ends alike.
#[must_use]
pub fn with_line_ends(text: &str, end: &str) -> String {
    let plain = if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n")
    } else {
        text.to_owned()
    };
    if end == "\n" {
        plain
    } else {
        plain.replace('\n', end)
    }
}

/// Whether this is what a read shows rather than what a file holds.
fn is_display_text(content: &str) -> bool {
    let stripped = pytext::strip(content);
    let status = UNCHANGED.chars().count();
    if stripped.contains(UNCHANGED) && stripped.chars().count() <= 2 * status {
        return true;
    }
    let lines: Vec<&str> = pytext::lines(content)
        .into_iter()
        .filter(|line| !pytext::strip(line).is_empty())
        .collect();
    let numbers: Vec<u64> = lines
        .iter()
        .filter_map(|line| pytext::strip_start(line).split_once('|'))
        .filter(|(number, _)| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
        .filter_map(|(number, _)| number.parse().ok())
        .collect();
    if lines.len() < 2 || numbers.len() < 2 || numbers.len() * 10 < lines.len() * 6 {
        return false;
    }
    numbers
        .windows(2)
        .all(|pair| matches!(pair, [first, second] if *second == first + 1))
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::{Before, Stop, UNCHANGED, is_display_text, kept_form, unwritten};

    #[test]
    fn what_the_system_has_against_a_write_is_told_in_its_words() {
        let check = |kind, expected| {
            let stop = Stop::System(kind, "in other words".to_owned());
            assert_eq!(unwritten(&stop), Some(expected));
        };
        check(ErrorKind::StorageFull, "No space left on device");
        check(ErrorKind::ReadOnlyFilesystem, "Read-only file system");
        check(ErrorKind::PermissionDenied, "Permission denied");
        check(ErrorKind::Interrupted, "in other words");
        assert_eq!(unwritten(&Stop::Missing), None);
    }

    #[test]
    fn shown_text_is_told_from_content() {
        assert!(is_display_text("1|a\n2|b\n"));
        assert!(is_display_text(UNCHANGED));
        assert!(!is_display_text("1|a\n"));
        assert!(!is_display_text("1|a\n5|b\n"));
        assert!(!is_display_text("a\n1|b\nc\nd\n2|e\n"));
    }

    #[test]
    fn line_ends_and_marks_of_the_old_file_are_kept() {
        assert_eq!(
            kept_form(&Before::File(b"a\r\n".to_vec()), "x\ny\n"),
            "x\r\ny\r\n"
        );
        assert_eq!(
            kept_form(&Before::File("\u{feff}a\n".into()), "x\n"),
            "\u{feff}x\n"
        );
        assert_eq!(kept_form(&Before::Nothing, "x\n"), "x\n");
    }
}
