//! `search_files`: finds text in files, or files by name.

mod basic_regex;
mod lines;
mod options;
mod results;
mod scan;
mod walk;

use std::io::ErrorKind;

use hermitcrab_core::{authority::Verb, time::Millis};
use hermitcrab_sandbox::dircap::{Kind, Names};
use regex::Regex;
use serde_json::{Value, json};

use crate::{
    runtime::{Content, Hands, Passed, Place, Spot, Stop, ToolResult},
    text::{
        args::{self, Declared},
        glob, pytext,
    },
    tools::{mistyped, read_file},
};

use self::{
    results::{Results, counted, with_newline_warning, worded},
    scan::{Scan, Wanted},
    walk::{Found, Tree, joined},
};

/// Rows of a page if the call does not say.
const LIMIT_DEFAULT: i64 = 50;
/// More rows than asked for that are looked at when context is shown.
const CONTEXT_EXTRA_ROWS: usize = 200;

/// Files read under one decision at least, where rows are lacking, and at most.
const FILES_AT_ONCE: (usize, usize) = (8, 256);

/// How long a search in texts goes on; what it found by then is told.
const TIME_MAX: Millis = Millis::from_seconds(60);

/// What a search prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Content,
    Files,
    Counts,
}

/// A search as asked for.
struct Search {
    pattern: String,
    path: String,
    file_glob: Option<String>,
    limit: usize,
    offset: usize,
    mode: Mode,
    context: u64,
}

/// Runs the call.
///
/// # Errors
/// It was refused, or the machinery failed.
pub fn run(hands: &mut Hands<'_>, given: &Value) -> Result<ToolResult, Stop> {
    let given = args::coerced(
        given,
        &[
            ("pattern", Declared::Text),
            ("target", Declared::Text),
            ("path", Declared::Text),
            ("file_glob", Declared::Text),
            ("limit", Declared::Whole),
            ("offset", Declared::Whole),
            ("output_mode", Declared::Text),
            ("context", Declared::Whole),
        ],
    );
    let text = |name: &str, default: &str| {
        given
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or(default)
            .to_owned()
    };
    let target = match given.get("target").unwrap_or(&Value::Null) {
        Value::Null if !given.contains_key("target") => json!("content"),
        Value::String(word) if word == "find" => json!("files"),
        Value::String(word) if word == "grep" => json!("content"),
        other => other.clone(),
    };
    if let Value::Array(_) | Value::Object(_) = &target {
        let problem = mistyped::unhashable(&target);
        return Ok(mistyped::uncaught("TypeError", &problem));
    }
    let by_name = target == "files";
    let wide =
        |name: &str, default: i64, least: i128| args::wide_or(given.get(name), default).max(least);
    let (limit, offset) = (wide("limit", LIMIT_DEFAULT, 1), wide("offset", 0, 0));
    let counted = |number: i128| usize::try_from(number).unwrap_or(usize::MAX);
    let mut search = Search {
        pattern: text("pattern", ""),
        path: text("path", "."),
        file_glob: given
            .get("file_glob")
            .and_then(Value::as_str)
            .filter(|glob| !glob.is_empty())
            .map(str::to_owned),
        limit: counted(limit),
        offset: counted(offset),
        mode: match text("output_mode", "content").as_str() {
            "files_only" => Mode::Files,
            "count" => Mode::Counts,
            _ => Mode::Content,
        },
        context: 0,
    };
    let glob = given
        .get("file_glob")
        .filter(|glob| args::truthy(Some(glob)));
    let key = format!(
        "search {}\n{target}\n{}\n{glob:?}\n{limit} {offset}",
        given.get("pattern").unwrap_or(&json!("")),
        args::text_of(given.get("path").unwrap_or(&json!("."))),
    );
    let times = hands.state().reads.count_in_a_row(key);
    if times >= 4 {
        return Ok(ToolResult::failed(&json!({
            "error": format!(
                "BLOCKED: You have run this exact search {times} times in a row. The results have NOT changed. You \
                 already have this information. STOP re-searching and proceed with your task."
            ),
            "pattern": given.get("pattern").unwrap_or(&json!("")),
            "already_searched": times,
        })));
    }
    if let Some(problem) = given.get("path").and_then(mistyped::path_problem) {
        return Ok(ToolResult::error(&problem));
    }
    let texts = [
        Some(&search.path),
        Some(&search.pattern),
        search.file_glob.as_ref(),
    ];
    if let Some(result) = texts
        .into_iter()
        .flatten()
        .find_map(|text| mistyped::has_nul(text, ""))
    {
        return Ok(result);
    }
    let path = read_file::expanded(hands, &search.path);
    // No name is no place, and not the one that names start from.
    if path.is_empty() || hands.is_too_long(&path).is_some() {
        return Ok(worded(&search, not_there(hands, &path)?, times));
    }
    let place = hands.resolve(&path)?;
    let looks: &[Verb] = if by_name {
        &[Verb::FsList]
    } else {
        &[Verb::FsList, Verb::FsRead]
    };
    hands.ask_for_all_unseen(&place, looks)?;
    hands.state().shell_is_used = true;
    match context(given.get("context")) {
        Context::Lines(lines) => search.context = lines,
        Context::Unordered(kind) => {
            if !by_name && hands.look(&place)?.is_some() {
                return Ok(ToolResult::error(&format!(
                    "'>' not supported between instances of '{kind}' and 'int'"
                )));
            }
        }
        Context::NoLength(written) => {
            if !by_name && hands.look(&place)?.is_some() {
                let results = Results::error(format!(
                    "Search failed: grep: {written}: invalid context length argument"
                ));
                return Ok(worded(
                    &search,
                    with_newline_warning(&search, results),
                    times,
                ));
            }
        }
    }
    if let Some(problem) = no_text(given.get("pattern"), glob, by_name)
        && hands.look(&place)?.is_some()
    {
        return Ok(ToolResult::error(&problem));
    }
    // The program that cuts the page out counts in 64 bits, and prints nothing
    // when told more.
    let context_rows = if search.context > 0 {
        CONTEXT_EXTRA_ROWS
    } else {
        0
    };
    let rows = if by_name {
        limit
    } else {
        limit
            .saturating_add(offset)
            .saturating_add(context_rows as i128)
    };
    if rows > i128::from(u64::MAX) && hands.look(&place)?.is_some() {
        return Ok(worded(&search, Results::default(), times));
    }
    let results = match hands.look_into(&place)? {
        None => not_there(hands, &path)?,
        // The system looks for a directory of that name, and there is none.
        Some((stat, ..)) if stat.kind == Kind::File && read_file::is_of_a_directory(&path) => {
            not_there(hands, &path)?
        }
        Some((stat, real, names)) => {
            let place = match real {
                Some(real) => real,
                None => hands.real(&place)?,
            };
            let start = Start {
                path: &path,
                place: &place,
                kind: stat.kind,
                names,
            };
            if by_name {
                files_named(hands, &search, start)?
            } else {
                files_holding(hands, &search, start)?
            }
        }
    };
    Ok(worded(&search, results, times))
}

/// What is said of a pattern or a filter that is no text.
fn no_text(pattern: Option<&Value>, glob: Option<&Value>, by_name: bool) -> Option<String> {
    let is_other = |value: &&Value| !value.is_string();
    let pattern = pattern.filter(is_other);
    if by_name {
        return pattern.map(|pattern| mistyped::no_attribute(pattern, "startswith"));
    }
    let first = glob.filter(is_other).or(pattern)?;
    Some(mistyped::no_attribute(first, "replace"))
}

/// Where a search begins.
struct Start<'s> {
    /// As written.
    path: &'s str,
    /// Where that leads.
    place: &'s Place,
    kind: Kind,
    /// The names in it, if it was listed already.
    names: Option<Names>,
}

impl Start<'_> {
    /// What is to be searched, where this is done to the files.
    fn tree(self, hands: &mut Hands<'_>, besides: Option<Verb>) -> Result<Tree, Stop> {
        match self.kind {
            Kind::Dir => Tree::below(hands, self.path, self.place, (self.names, besides)),
            Kind::File => Ok(Tree::of_file(self.path, self.place)),
            Kind::Symlink | Kind::Special => Ok(Tree::empty()),
        }
    }
}

/// How many lines around a match were asked for.
enum Context {
    Lines(u64),
    /// A positive number that is no length, as written.
    NoLength(String),
    /// A value of this type, which is neither more nor less than a number.
    Unordered(&'static str),
}

fn context(value: Option<&Value>) -> Context {
    match value {
        None | Some(Value::Bool(false)) => Context::Lines(0),
        Some(Value::Bool(true)) => Context::NoLength("True".to_owned()),
        Some(Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Context::Lines(u64::try_from(whole).unwrap_or(0)),
            (None, Some(part)) if part <= 0.0 => Context::Lines(0),
            (None, _) => Context::NoLength(number.to_string()),
        },
        other => Context::Unordered(args::type_name(other)),
    }
}

/// The answer for a path that is not there, with names like it.
fn not_there(hands: &mut Hands<'_>, path: &str) -> Result<Results, Stop> {
    const LOOKED_AT: usize = 20;
    const SHOWN: usize = 5;
    let mut message = format!("Path not found: {path}");
    let (parent, name) = match path.rfind('/') {
        Some(slash) => {
            let parent = path.get(..slash).unwrap_or_default();
            let parent = parent.trim_end_matches('/');
            let parent = if parent.is_empty() { "/" } else { parent };
            (parent, path.get(slash + 1..).unwrap_or_default())
        }
        None => (".", path),
    };
    if !name.is_empty()
        && let Ok(place) = hands.resolve(parent)
        && hands.freely(Verb::FsList, &place)
    {
        let wanted = name.to_lowercase();
        let start = pytext::head(&wanted, 3).to_owned();
        let similar: Vec<String> = read_file::visible_names(hands, &place)?
            .into_iter()
            .take(LOOKED_AT)
            .filter(|name| {
                let name = name.to_lowercase();
                name.contains(&wanted) || wanted.contains(&name) || name.starts_with(&start)
            })
            .map(|name| joined(parent, &name))
            .take(SHOWN)
            .collect();
        if !similar.is_empty() {
            message = format!("{message}. Similar paths: {}", similar.join(", "));
        }
    }
    Ok(Results::error(message))
}

/// Searches by name, newest first.
fn files_named(hands: &mut Hands<'_>, search: &Search, start: Start<'_>) -> Result<Results, Stop> {
    let (path, kind) = (start.path, start.kind);
    let pattern = search.pattern.rsplit('/').next().unwrap_or_default();
    let tree = start.tree(hands, None)?;
    let hidden_root = path
        .split('/')
        .any(|part| part.starts_with('.') && part != "." && part != "..");
    let mut files = tree.files();
    files.retain(|file| glob::matches(pattern, &file.name()));
    let (withheld, files) = match kind {
        Kind::Dir => hands.by_rules(Verb::FsList, files, |file| file.spot()),
        Kind::File | Kind::Symlink | Kind::Special => (Vec::new(), files),
    };
    let (spots, printed): (Vec<Spot<'_>>, Vec<String>) = files
        .into_iter()
        .map(|file| (file.spot(), file.printed().into_owned()))
        // A name that starts with a dot counts as hidden, like a directory's.
        .filter(|(_, printed)| {
            let below = printed.strip_prefix(path).unwrap_or(printed);
            let hidden_below = below.contains("/.") || (path.is_empty() && below.starts_with('.'));
            let hidden = if hidden_root {
                hidden_below
            } else {
                printed.contains("/.")
            };
            !hidden
        })
        .unzip();
    let stamps = hands
        .look_all(&spots)?
        .into_iter()
        .map(|stat| stat.map_or(0, |stat| stat.modified_ns));
    let mut order: Vec<(i128, String)> = stamps.zip(printed).collect();
    order.sort_by(|left, right| right.cmp(left));
    let files: Vec<String> = order
        .into_iter()
        .map(|(_, printed)| printed)
        .skip(search.offset)
        .take(search.limit)
        .collect();
    let mut results = Results {
        total: files.len() as u64,
        files,
        withheld: tree.withheld(&withheld),
        ..Results::default()
    };
    let all = results.files.len();
    let mut kept = Vec::with_capacity(all);
    for file in std::mem::take(&mut results.files) {
        let place = hands.resolve(&file)?;
        if !hands.is_sensitive(Verb::FsRead, &place) {
            kept.push(file);
        }
    }
    results.omitted = all - kept.len();
    results.files = kept;
    Ok(results)
}

/// The pattern, compiled unless it was searched for last.
fn compiled(hands: &mut Hands<'_>, pattern: &str) -> Result<Regex, String> {
    let known = hands.state().pattern.as_ref();
    if let Some((_, regex)) = known.filter(|(known, _)| known == pattern) {
        return Ok(regex.clone());
    }
    let regex = basic_regex::compile(pattern)?;
    hands.state().pattern = Some((pattern.to_owned(), regex.clone()));
    Ok(regex)
}

/// How many files are to be read next, after so many: as many as will have the rows
/// that are lacking if they are like those before, and at first as if each had one
/// match. Where that is far off, no more than twice as many as were read.
fn at_once(read: usize, output: &lines::Output, rows_of_match: usize) -> usize {
    let (least, most) = FILES_AT_ONCE;
    let lacking = output.lacking();
    let wanted = match (read, output.rows()) {
        (0, _) => lacking.div_ceil(rows_of_match.max(1)),
        (read, 0) => read.saturating_mul(2),
        (read, rows) => lacking
            .saturating_mul(read)
            .div_ceil(rows)
            .min(read.saturating_mul(2)),
    };
    wanted.clamp(least, most)
}

/// Searches in the text of files.
fn files_holding(
    hands: &mut Hands<'_>,
    search: &Search,
    start: Start<'_>,
) -> Result<Results, Stop> {
    let found = match options::refused(&search.pattern, start.path) {
        Some(problem) => Err(problem),
        None => compiled(hands, &search.pattern),
    };
    let regex = match found {
        Ok(regex) => regex,
        Err(problem) => {
            let error = Results::error(format!("Search failed: grep: {problem}"));
            return Ok(with_newline_warning(search, error));
        }
    };
    let kind = start.kind;
    // Of the strokes a path ends with one is told.
    let path = match start.path.trim_end_matches('/') {
        "" => start.path,
        rest => start.path.get(..=rest.len()).unwrap_or(rest),
    };
    let root = start.place;
    let tree = Start { path, ..start }.tree(hands, Some(Verb::FsRead))?;
    let mut files = tree.files();
    if let Some(pattern) = &search.file_glob {
        files.retain(|file| match kind {
            // A file that was named itself is judged by its path.
            Kind::File => glob::matches_tail(pattern, &file.printed()),
            Kind::Dir | Kind::Symlink | Kind::Special => glob::matches(pattern, &file.name()),
        });
    }
    // A search asks nobody about single files: what rules keep is left out, and told.
    let (kept, files) = match kind {
        Kind::Dir => hands.by_rules(Verb::FsRead, files, |file| file.spot()),
        Kind::File | Kind::Symlink | Kind::Special => (Vec::new(), files),
    };
    let (secret, plain) = hands.by_sensitivity(Verb::FsRead, files, |file| file.spot());
    let context_rows = if search.context > 0 {
        CONTEXT_EXTRA_ROWS
    } else {
        0
    };
    let fetch = search
        .limit
        .saturating_add(search.offset)
        .saturating_add(context_rows);
    let mut output = lines::Output::new(fetch);
    let rows_of_match = match search.mode {
        Mode::Content => usize::try_from(search.context)
            .unwrap_or(usize::MAX)
            .saturating_mul(2)
            .saturating_add(1),
        Mode::Files | Mode::Counts => 1,
    };
    let mut unread: Vec<Found<'_>> = Vec::new();
    let mut rest = plain.as_slice();
    let asks = kind == Kind::Dir && hands.lacks_all(Verb::FsRead, root);
    let until = hands.now().after(TIME_MAX);
    let mut is_late = false;
    while !rest.is_empty() && !output.is_full() && !is_late {
        let read = plain.len() - rest.len();
        let batch = rest
            .split_at(at_once(read, &output, rows_of_match).min(rest.len()))
            .0;
        let spots: Vec<Spot<'_>> = batch.iter().map(|file| file.spot()).collect();
        // More than one question about files would come: there is one about all of them.
        if asks && batch.len() < rest.len() && hands.lacks_any(Verb::FsRead, &spots) {
            hands.ask_for_all(root, &[Verb::FsRead])?;
        }
        let first = batch.first().map(|file| file.printed()).unwrap_or_default();
        let wanted = Wanted {
            path: &first,
            regex: &regex,
            mode: search.mode,
            context: search.context,
            rows: output.lacking(),
        };
        let mut scan = Scan::new(wanted);
        let contents = hands.read_all(&spots, &mut scan, until)?;
        rest = rest.get(contents.len().max(1)..).unwrap_or_default();
        is_late = contents.contains(&Some(Content::Passed(Passed::TimeOver)))
            || (!rest.is_empty() && hands.now() > until);
        let passed = scan.finished();
        let passed = (passed.text, passed.count);
        for (file, content) in batch.iter().zip(contents) {
            let path = file.printed();
            let (text, count) = match content {
                None => {
                    unread.push(*file);
                    continue;
                }
                Some(Content::Whole(bytes)) => {
                    let wanted = Wanted {
                        path: &path,
                        ..wanted
                    };
                    scan::printed(wanted, &bytes)
                }
                Some(Content::Passed(_)) => passed.clone(),
            };
            match search.mode {
                Mode::Content if text.is_empty() => {}
                Mode::Content => {
                    if search.context > 0 && !output.is_empty() {
                        output.push("--\n");
                    }
                    output.push(&text);
                }
                Mode::Files if count == 0 => {}
                Mode::Files => output.push(&format!("{path}\n")),
                Mode::Counts => output.push(&format!("{path}:{count}\n")),
            }
        }
    }
    if output.is_empty() {
        // Nothing was found, and not everything was searched.
        let mut shut = Vec::new();
        for file in unread {
            let Ok(place) = file.spot().place() else {
                continue;
            };
            if let Err(Stop::System(ErrorKind::PermissionDenied, _)) = hands.read(&place) {
                shut.push(format!("grep: {}: Permission denied", file.printed()));
            }
        }
        if !shut.is_empty() {
            let error = Results::error(format!("Search failed: {}", shut.join("\n")));
            return Ok(with_newline_warning(search, error));
        }
    }
    let printed = output.first_rows();
    let mut results = counted(search, &lines::rows(printed));
    results.truncated |= is_late || output.is_cut();
    results.limit_reason = is_late.then_some("search_timeout");
    results.unread = secret.len();
    results.withheld = tree.withheld(&kept);
    Ok(with_newline_warning(search, results))
}
