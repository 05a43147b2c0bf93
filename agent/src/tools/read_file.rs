//! `read_file`: reads a part of a text file, with line numbers.

mod long;
mod paged;

use std::borrow::Cow;

use hermitcrab_core::{
    authority::Verb,
    fault::{self, Fault},
};
use hermitcrab_sandbox::dircap::Kind;
use serde_json::{Map, Value, json};

use self::{long::Part, paged::Paged};
use crate::{
    runtime::{Content, Fate, Hands, Place, Stop, ToolResult},
    text::{
        args::{self, Declared},
        fence, pyjson, pytext,
    },
    tools::{documents, mistyped, write_file::UNCHANGED},
};

/// Lines of a part if the call does not say.
const LIMIT_DEFAULT: i64 = 500;
/// Lines of a part at most.
const LIMIT_MAX: i64 = 2000;
/// Files longer than this get a hint.
const LARGE_BYTES: u64 = 512_000;
/// Bytes looked at to tell text from other content.
const SAMPLE_BYTES: usize = 1000;

/// Endings of files that are not text.
const NOT_TEXT: &[&str] = &[
    "png", "jpg", "jpeg", "gif", "bmp", "ico", "webp", "tiff", "tif", "mp4", "mov", "avi", "mkv",
    "webm", "wmv", "flv", "m4v", "mpeg", "mpg", "mp3", "wav", "ogg", "flac", "aac", "m4a", "wma",
    "aiff", "opus", "zip", "tar", "gz", "bz2", "7z", "rar", "xz", "z", "tgz", "iso", "exe", "dll",
    "so", "dylib", "bin", "o", "a", "obj", "lib", "app", "msi", "deb", "rpm", "doc", "docx", "xls",
    "xlsx", "ppt", "pptx", "odt", "ods", "odp", "ttf", "otf", "woff", "woff2", "eot", "pyc", "pyo",
    "class", "jar", "war", "ear", "node", "wasm", "rlib", "sqlite", "sqlite3", "db", "mdb", "idx",
    "psd", "ai", "eps", "sketch", "fig", "xd", "blend", "3ds", "max", "swf", "fla", "lockb", "dat",
    "data",
];

/// Runs the call.
///
/// # Errors
/// It was refused, or the machinery failed.
pub fn run(hands: &mut Hands<'_>, given: &Value) -> Result<ToolResult, Stop> {
    let given = args::coerced(
        given,
        &[
            ("path", Declared::Text),
            ("offset", Declared::Whole),
            ("limit", Declared::Whole),
        ],
    );
    let path = match given.get("path") {
        Some(Value::String(path)) => path.clone(),
        None => String::new(),
        other => {
            return Ok(ToolResult::error(&format!(
                "expected str, bytes or os.PathLike object, not {}",
                args::type_name(other)
            )));
        }
    };
    let offset = args::wide_or(given.get("offset"), 1).max(1);
    let limit = args::whole_or(given.get("limit"), LIMIT_DEFAULT).clamp(1, LIMIT_MAX);
    if let Some(result) = mistyped::has_nul(&path, "") {
        return Ok(result);
    }
    if hands.is_of_nobody(path.trim_start_matches("./")) {
        return Ok(ToolResult::error("Could not determine home directory."));
    }
    if let Some(absolute) = hands.is_too_long(&path) {
        let result = missing(hands, &path)?;
        let times = note(hands, &path, (absolute, offset, limit), None, true);
        return Ok(match counted(result, &path, times) {
            Ok(result) => ToolResult::failed(&Value::Object(result)),
            Err(blocked) => blocked,
        });
    }
    let place = hands.resolve(&path)?;
    hands.state().shell_is_used = true;
    if let Some(result) = document(hands, &place, offset, limit)? {
        return Ok(ToolResult::ran(&Value::Object(result)));
    }
    if let Some(ending) = not_text_ending(&place.absolute) {
        return Ok(ToolResult {
            text: pyjson::ascii_text(&json!({
                "error": format!(
                    "Cannot read binary file '{path}' (.{ending}). Use vision_analyze for images, or terminal to inspect \
                     binary files."
                ),
            })),
            fate: Fate::ToolError,
        });
    }
    // Two names of one file are one file; a counted use is not spent on knowing that.
    let (mut real, mut read) = (None, None);
    let mut pieces = Part::new(offset, limit);
    let stat = if hands.freely(Verb::FsRead, &place) {
        let (stat, leads_to) = hands.look_through(&place)?.unzip();
        real = leads_to.flatten();
        stat
    } else if hands.looks_by_use(&place) {
        let (stat, content) = hands.look_and_read(&place, &mut pieces)?.unzip();
        read = content.flatten();
        stat
    } else {
        hands.look(&place)?
    };
    let absolute = real.map_or_else(|| place.absolute.clone(), |real| real.absolute);
    let part = (absolute, offset, limit);
    let stamp = stat.map(|stat| stat.modified_ns);
    if let Some(times) = hands.state().reads.repetition(&part, stamp) {
        return Ok(repeated(&path, times));
    }
    let content = match stat {
        // A name with a slash behind it is a directory's: nobody opens a file by it, though it
        // counts as one that was asked for.
        Some(stat) if stat.kind != Kind::Dir && !is_of_a_directory(&path) => {
            match read.map_or_else(|| hands.read_as_seen(&place, &mut pieces), Ok) {
                Ok(content) => Some(content),
                // A file nobody may open is none, as far as a reader can tell.
                Err(Stop::Missing | Stop::System(std::io::ErrorKind::PermissionDenied, _)) => None,
                Err(stop) => return Err(stop),
            }
        }
        Some(_) | None => None,
    };
    let Some(content) = content else {
        let result = missing(hands, &path)?;
        let times = note(hands, &path, part, stamp, true);
        return Ok(match counted(result, &path, times) {
            Ok(result) => ToolResult::failed(&Value::Object(result)),
            Err(blocked) => blocked,
        });
    };
    let pieces = pieces.finished();
    let (bytes, sample) = match &content {
        Content::Whole(content) => (content.len() as u64, content),
        Content::Passed(_) => (pieces.bytes, &pieces.sample),
    };
    if looks_binary(sample) {
        let bytes = stat.map_or(bytes, |stat| stat.bytes.max(bytes));
        let result = json!({
            "content": "", "total_lines": 0, "file_size": bytes, "truncated": false, "is_binary": true, "is_image": false,
            "error": "Binary file - cannot display as text. Use appropriate tools to handle this file type.",
        });
        // That it is none was told as well, and is not told again.
        let times = note(hands, &path, part, stamp, offset == 1);
        let result = result.as_object().cloned().unwrap_or_default();
        return Ok(match counted(result, &path, times) {
            Ok(result) => ToolResult::failed(&Value::Object(result)),
            Err(blocked) => blocked,
        });
    }
    if let Some(problem) = lost_line(given.get("offset")) {
        return Ok(ToolResult::failed(&json!({
            "content": "", "total_lines": 0, "file_size": 0, "truncated": false, "is_binary": false, "is_image": false,
            "error": problem,
        })));
    }
    let mut result = match &content {
        Content::Whole(content) => shown(&String::from_utf8_lossy(content), bytes, offset, limit),
        Content::Passed(_) => told(&pieces.text, pieces.lines, bytes, offset, limit),
    };
    let truncated = result.get("truncated") == Some(&Value::Bool(true));
    if bytes > LARGE_BYTES && limit > 200 && truncated {
        result.insert(
            "_hint".into(),
            format!(
                "This file is large ({} bytes). Consider reading only the section you need with offset and limit to \
                 keep context usage efficient.",
                pytext::thousands(bytes)
            )
            .into(),
        );
    }
    let times = note(hands, &path, part, stamp, offset == 1 && !truncated);
    Ok(match counted(result, &path, times) {
        Ok(result) => ToolResult::ran(&Value::Object(result)),
        Err(blocked) => blocked,
    })
}

/// A document is told as the text in it; `None` for any other file. It is not
/// remembered that it was read.
fn document(
    hands: &mut Hands<'_>,
    place: &Place,
    offset: i128,
    limit: i64,
) -> Result<Option<Map<String, Value>>, Stop> {
    let name = place.absolute.rsplit('/').next().unwrap_or_default();
    let Some(kind) = documents::Kind::of(name) else {
        return Ok(None);
    };
    let mut nobody = Part::new(1, 1);
    let content = if hands.looks_by_use(place) {
        hands
            .look_and_read(place, &mut nobody)
            .map(|seen| seen.and_then(|(_, content)| content))
    } else if matches!(hands.look(place)?, Some(stat) if stat.kind != Kind::Dir) {
        hands.read_as_seen(place, &mut nobody).map(Some)
    } else {
        Ok(None)
    };
    let content = match content {
        Ok(Some(Content::Whole(content))) => content,
        // One too long to be in memory is not unpacked.
        Ok(None | Some(Content::Passed(_))) | Err(Stop::Missing | Stop::System(..)) => {
            return Ok(None);
        }
        Err(stop) => return Err(stop),
    };
    let Some(text) = kind.text(&content) else {
        return Ok(None);
    };
    let lines = pytext::lines(&text);
    let (from, last) = span(offset, limit);
    let count = usize::try_from(limit).unwrap_or(0);
    let page: Vec<&str> = lines.iter().skip(from).take(count).copied().collect();
    let total = i128::try_from(lines.len()).unwrap_or(i128::MAX);
    let content_bytes = content.len() as u64;
    let page = page.join("\n");
    let mut paged = Paged::of(&page, total, offset, last);
    if page.is_empty() {
        paged.content.clear();
    }
    Ok(Some(paged.told(
        content_bytes,
        &["extracted_document"],
        &[],
    )))
}

/// How many lines come before a part, and which is the last of it.
fn span(offset: i128, limit: i64) -> (usize, i128) {
    let last = offset.saturating_add(i128::from(limit)).saturating_sub(1);
    (usize::try_from(offset - 1).unwrap_or(0), last)
}

/// The result, with a word to whoever asks for it again and again; in its place
/// the refusal that follows such words.
fn counted(
    mut result: Map<String, Value>,
    path: &str,
    times: u32,
) -> Result<Map<String, Value>, ToolResult> {
    if times >= 4 {
        return Err(ToolResult::failed(&json!({
            "error": format!(
                "BLOCKED: You have read this exact file region {times} times in a row. The content has NOT changed. You \
                 already have this information. STOP re-reading and proceed with your task."
            ),
            "path": path,
            "already_read": times,
        })));
    }
    if times >= 3 {
        result.insert(
            "_warning".into(),
            format!(
                "You have read this exact file region {times} times consecutively. The content has not changed since \
                 your last read. Use the information you already have. If you are stuck in a loop, stop reading and \
                 proceed with writing or responding."
            )
            .into(),
        );
    }
    Ok(result)
}

/// Remembers the read; says how often in a row the same was asked for.
fn note(
    hands: &mut Hands<'_>,
    path: &str,
    part: (String, i128, i64),
    stamp: Option<i128>,
    whole: bool,
) -> u32 {
    let reads = &mut hands.state().reads;
    let times = reads.count_in_a_row(format!("read {path}\n{} {}", part.1, part.2));
    if let Some(stamp) = stamp {
        hands.note_read(part, stamp, whole);
    }
    times
}

fn repeated(path: &str, times: u32) -> ToolResult {
    if times < 2 {
        return ToolResult::ran(&json!({
            "status": "unchanged", "message": UNCHANGED, "path": path, "dedup": true, "content_returned": false,
        }));
    }
    let calls = times + 1;
    ToolResult::failed(&json!({
        "error": format!(
            "BLOCKED: You have called read_file on this exact region {calls} times and the file has NOT changed. STOP \
             calling read_file for this path \u{2014} the content from your earlier read_file result in this conversation \
             is still current. Proceed with your task using the information you already have."
        ),
        "path": path,
        "already_read": calls,
    }))
}

/// The ending, without its dot, if files with it are not text.
fn not_text_ending(path: &str) -> Option<String> {
    let ending = path.rsplit_once('.')?.1.to_lowercase();
    NOT_TEXT.contains(&ending.as_str()).then_some(ending)
}

/// Whether a file with this ending (dot included) and content is no text.
#[must_use]
pub fn is_binary(ending: &str, content: &[u8]) -> bool {
    NOT_TEXT.contains(&ending.strip_prefix('.').unwrap_or(ending)) || looks_binary(content)
}

/// More than three in ten letters at the beginning cannot be printed.
fn looks_binary(content: &[u8]) -> bool {
    let sample =
        String::from_utf8_lossy(content.get(..SAMPLE_BYTES).unwrap_or(content)).into_owned();
    let total = sample.chars().count();
    let odd = sample
        .chars()
        .filter(|letter| (*letter as u32) < 32 && !matches!(letter, '\n' | '\r' | '\t'))
        .count();
    total > 0 && odd * 10 > total * 3
}

/// Why an offset names no line to the program that is to print it: it counts in
/// 64 bits, and beyond them it may arrive at line 0, which it refuses.
fn lost_line(offset: Option<&Value>) -> Option<String> {
    let offset = offset.filter(|offset| offset.is_f64())?;
    let number = offset.as_f64().filter(|number| *number >= 2_f64.powi(64))?;
    if number % 2_f64.powi(64) != 0.0 {
        return None;
    }
    let digits = format!("{number:.0}").len();
    let at = 2 * digits + ",p".len();
    Some(format!(
        "Failed to read file: sed: -e expression #1, char {at}: invalid usage of line address 0\n"
    ))
}

/// Lines `offset` and following, numbered, with what there is to say about them.
fn shown(text: &str, bytes: u64, offset: i128, limit: i64) -> Map<String, Value> {
    let (from, _) = span(offset, limit);
    let count = usize::try_from(limit).unwrap_or(0);
    let mut page: String = text.split_inclusive('\n').skip(from).take(count).collect();
    if let Cow::Owned(plain) = fence::stripped(&page) {
        page = plain;
    }
    told(&page, text.matches('\n').count(), bytes, offset, limit)
}

/// A page of a text that has so many lines and bytes.
fn told(page: &str, lines: usize, bytes: u64, offset: i128, limit: i64) -> Map<String, Value> {
    let (_, last) = span(offset, limit);
    let mut page = page;
    if offset == 1 {
        page = page.strip_prefix('\u{feff}').unwrap_or(page);
    }
    if fault::is(Fault::ReadTruncates) {
        page = pytext::head(page, page.chars().count() / 2);
    }
    let total = i128::try_from(lines).unwrap_or(i128::MAX);
    Paged::of(page, total, offset, last).told(bytes, &[], &["is_binary", "is_image"])
}

/// The answer for a file that is not there, with names like it.
fn missing(hands: &mut Hands<'_>, path: &str) -> Result<Map<String, Value>, Stop> {
    let path = expanded(hands, path);
    let (dir, name) = match path.rfind('/') {
        Some(0) => ("/", path.get(1..).unwrap_or_default()),
        Some(slash) => (
            path.get(..slash).unwrap_or_default(),
            path.get(slash + 1..).unwrap_or_default(),
        ),
        None => (".", path.as_str()),
    };
    let mut similar = Vec::new();
    if let Ok(place) = hands.resolve(dir)
        && hands.freely(Verb::FsList, &place)
    {
        // To list a file names the file, as it was written.
        let is_file = matches!(hands.look(&place), Ok(Some(stat)) if stat.kind != Kind::Dir);
        let names = if is_file {
            vec![dir.to_owned()]
        } else {
            visible_names(hands, &place)?
        };
        similar = alike(dir, name, &names);
    }
    let mut result = Map::new();
    result.insert("content".into(), "".into());
    for (key, value) in [("total_lines", json!(0)), ("file_size", json!(0))] {
        result.insert(key.into(), value);
    }
    for key in ["truncated", "is_binary", "is_image"] {
        result.insert(key.into(), false.into());
    }
    result.insert("error".into(), format!("File not found: {path}").into());
    if !similar.is_empty() {
        result.insert("similar_files".into(), similar.into());
    }
    Ok(result)
}

/// The path with `~` written out.
#[must_use]
pub fn expanded(hands: &Hands<'_>, path: &str) -> String {
    match path.strip_prefix('~') {
        Some("") => hands.home().to_string_lossy().into_owned(),
        Some(rest) if rest.starts_with('/') => format!("{}{rest}", hands.home().display()),
        _ => path.to_owned(),
    }
}

/// Whether a path, as it is written, leads to nothing but a directory.
#[must_use]
pub fn is_of_a_directory(path: &str) -> bool {
    path.ends_with('/') || path.ends_with("/.")
}

/// Names in a directory that do not start with a dot, sorted; none if it cannot be listed.
pub fn visible_names(hands: &mut Hands<'_>, place: &Place) -> Result<Vec<String>, Stop> {
    match hands.names(place) {
        Ok(entries) => Ok(entries
            .into_iter()
            .map(|entry| String::from_utf8_lossy(&entry.name).into_owned())
            .filter(|name| !name.starts_with('.'))
            .collect()),
        Err(Stop::Missing | Stop::Io(_) | Stop::System(..)) => Ok(Vec::new()),
        Err(stop) => Err(stop),
    }
}

/// Up to five of the names most like the one asked for.
fn alike(dir: &str, name: &str, names: &[String]) -> Vec<String> {
    const LOOKED_AT: usize = 50;
    const SHOWN: usize = 5;
    let wanted = name.to_lowercase();
    let (stem, ending) = pytext::split_extension(name);
    let (stem, ending) = (stem.to_lowercase(), ending.to_lowercase());
    let mut scored: Vec<(u32, &String)> = names
        .iter()
        .take(LOOKED_AT)
        .map(|candidate| {
            (
                score(&wanted, &stem, &ending, &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(score, _)| *score > 0)
        .collect();
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored
        .into_iter()
        .take(SHOWN)
        .map(|(_, candidate)| {
            if candidate.starts_with('/') {
                candidate.clone()
            } else if dir.ends_with('/') {
                format!("{dir}{candidate}")
            } else {
                format!("{dir}/{candidate}")
            }
        })
        .collect()
}

fn score(wanted: &str, stem: &str, ending: &str, candidate: &str) -> u32 {
    let (candidate_stem, candidate_ending) = pytext::split_extension(candidate);
    if candidate == wanted {
        100
    } else if candidate_stem == stem {
        90
    } else if candidate.starts_with(wanted) || wanted.starts_with(candidate) {
        70
    } else if candidate.contains(wanted) {
        60
    } else if wanted.contains(candidate) && candidate.chars().count() > 2 {
        40
    } else if !ending.is_empty() && candidate_ending == ending {
        let letters = |text: &str| text.chars().collect::<std::collections::BTreeSet<char>>();
        let common = letters(wanted).intersection(&letters(candidate)).count();
        let longest = wanted.chars().count().max(candidate.chars().count());
        if common * 10 >= longest * 4 { 30 } else { 0 }
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{alike, looks_binary, lost_line, shown};

    #[test]
    fn parts_are_numbered_and_say_how_to_go_on() {
        assert_eq!(
            json!(shown("one\ntwo\nthree\n", 14, 2, 1)),
            json!({"content": "2|two\n3|", "total_lines": 3, "file_size": 14, "truncated": true,
                "hint": "Use offset=3 to continue reading (showing 2-2 of 3 lines)", "is_binary": false, "is_image": false})
        );
        assert_eq!(shown("x", 1, 1, 500).get("content"), Some(&json!("1|x")));
        assert_eq!(shown("", 0, 1, 500).get("content"), Some(&json!("1|")));
        assert_eq!(
            shown("\u{feff}a\n", 5, 1, 500).get("content"),
            Some(&json!("1|a\n2|"))
        );
    }

    #[test]
    fn the_largest_offset_is_behind_every_file() {
        let part = shown("one\n", 4, i128::from(u64::MAX), 2000);
        assert_eq!(part.get("truncated"), Some(&json!(false)));
        assert_eq!(part.get("content"), Some(&json!(format!("{}|", u64::MAX))));
    }

    #[test]
    fn an_offset_that_wraps_to_nothing_is_refused_and_others_are_not() {
        let told = lost_line(Some(&json!(1e300)));
        assert!(told.is_some_and(|told| told.contains("char 604: invalid usage")));
        assert_eq!(lost_line(Some(&json!(u64::MAX))), None);
        assert_eq!(lost_line(Some(&json!(7.5))), None);
        assert_eq!(lost_line(None), None);
    }

    #[test]
    fn long_parts_are_cut_between_lines() {
        let text = format!("{}\n", "x".repeat(1999)).repeat(100);
        let part = shown(&text, 200_000, 1, 500);
        assert_eq!(part.get("truncated_by"), Some(&json!("bytes")));
        assert_eq!(part.get("next_offset"), Some(&json!(50)));
    }

    #[test]
    fn similar_names_are_ranked() {
        let names: Vec<String> = ["a.txt", "bad.txt", "bin.dat", "bom.txt"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(
            alike(".", "b.txt", &names),
            ["./a.txt", "./bad.txt", "./bom.txt"]
        );
        assert_eq!(alike("d", "a.md", &names), ["d/a.txt"]);
    }

    #[test]
    fn control_letters_make_a_file_binary() {
        assert!(looks_binary(&[0, 1, 2, 3]));
        assert!(!looks_binary(b"a\tb\r\n"));
        assert!(!looks_binary(b""));
    }
}
