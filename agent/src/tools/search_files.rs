//! `search_files`: finds text in files, or files by name.

use hermitcrab_core::authority::Verb;
use hermitcrab_sandbox::dircap::Kind;
use serde_json::{Map, Value, json};

use crate::{
    pyjson,
    runtime::{Fate, Hands, Place, Stop, ToolResult},
    tools::{
        args,
        args::Declared,
        pytext, read_file, redact,
        search::{basic_regex, glob, lines},
    },
};

/// Rows of a page if the call does not say.
const LIMIT_DEFAULT: i64 = 50;
/// More rows than asked for that are looked at when context is shown.
const CONTEXT_EXTRA_ROWS: usize = 200;
/// From this many matches on, they are grouped by file.
const GROUPED_FROM: usize = 5;
/// Directories and files one search looks at.
const PLACES_MAX: usize = 200_000;

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

/// A found file: as printed, and where it is.
struct Found {
    printed: String,
    place: Place,
}

/// What was found, before it is put into words.
#[derive(Default)]
struct Results {
    total: u64,
    matches: Vec<lines::Match>,
    files: Vec<String>,
    counts: Vec<(String, u64)>,
    truncated: bool,
    warning: Option<String>,
    error: Option<String>,
    omitted: usize,
}

impl Results {
    fn error(message: String) -> Self {
        Self {
            error: Some(message),
            ..Self::default()
        }
    }
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
    let by_name = matches!(text("target", "content").as_str(), "files" | "find");
    let whole = |name: &str, default: i64, least: i64| {
        usize::try_from(args::whole_or(given.get(name), default).max(least)).unwrap_or(0)
    };
    let mut search = Search {
        pattern: text("pattern", ""),
        path: text("path", "."),
        file_glob: given
            .get("file_glob")
            .and_then(Value::as_str)
            .filter(|glob| !glob.is_empty())
            .map(str::to_owned),
        limit: whole("limit", LIMIT_DEFAULT, 1),
        offset: whole("offset", 0, 0),
        mode: match text("output_mode", "content").as_str() {
            "files_only" => Mode::Files,
            "count" => Mode::Counts,
            _ => Mode::Content,
        },
        context: 0,
    };
    let key = format!(
        "search {}\n{by_name}\n{}\n{:?}\n{} {}",
        search.pattern, search.path, search.file_glob, search.limit, search.offset
    );
    let times = hands.state().reads.count_in_a_row(key);
    if times >= 4 {
        return Ok(ToolResult::failed(&json!({
            "error": format!(
                "BLOCKED: You have run this exact search {times} times in a row. The results have NOT changed. You \
                 already have this information. STOP re-searching and proceed with your task."
            ),
            "pattern": search.pattern,
            "already_searched": times,
        })));
    }
    let path = read_file::expanded(hands, &search.path);
    let place = hands.resolve(&path)?;
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
    let results = match hands.look(&place)? {
        None => not_there(hands, &path)?,
        Some(stat) => {
            let place = hands.real(&place)?;
            if by_name {
                files_named(hands, &search, &path, &place, stat.kind)?
            } else {
                files_holding(hands, &search, &path, &place, stat.kind)?
            }
        }
    };
    Ok(worded(&search, results, times))
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
        Some(0) => ("/", path.get(1..).unwrap_or_default()),
        Some(slash) => (
            path.get(..slash).unwrap_or_default(),
            path.get(slash + 1..).unwrap_or_default(),
        ),
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

fn joined(dir: &str, name: &str) -> String {
    if dir.ends_with('/') {
        format!("{dir}{name}")
    } else {
        format!("{dir}/{name}")
    }
}

/// Every regular file below, hidden directories left out, links not followed.
/// Level by level, so that one decision covers many directories.
fn files_below(hands: &mut Hands<'_>, path: &str, place: &Place) -> Result<Vec<Found>, Stop> {
    /// A directory whose names are known: its own files come before, after or
    /// between those of the directories in it, in the order they are kept in.
    enum Node {
        File(Found),
        Dir(String, Place, Vec<usize>),
    }
    let mut nodes = vec![Node::Dir(path.to_owned(), place.clone(), Vec::new())];
    let mut level = vec![0_usize];
    while !level.is_empty() && nodes.len() < PLACES_MAX {
        let places: Vec<Place> = level
            .iter()
            .filter_map(|at| match nodes.get(*at) {
                Some(Node::Dir(_, place, _)) => Some(place.clone()),
                Some(Node::File(_)) | None => None,
            })
            .collect();
        let listed = hands.names_all(&places)?;
        let mut next = Vec::new();
        for (at, entries) in level.iter().zip(listed) {
            let Some(Node::Dir(printed, place, _)) = nodes.get(*at) else {
                continue;
            };
            let (printed, place) = (printed.clone(), place.clone());
            let mut children = Vec::new();
            for entry in entries.into_iter().flatten() {
                let name = String::from_utf8_lossy(&entry.name).into_owned();
                let Some(child) = hands.child(&place, &entry.name) else {
                    continue;
                };
                if hands.is_protected(&child) {
                    continue;
                }
                let printed = joined(&printed, &name);
                match entry.kind {
                    Kind::File => {
                        children.push(nodes.len());
                        nodes.push(Node::File(Found {
                            printed,
                            place: child,
                        }));
                    }
                    Kind::Dir if !name.starts_with('.') && hands.freely(Verb::FsList, &child) => {
                        children.push(nodes.len());
                        next.push(nodes.len());
                        nodes.push(Node::Dir(printed, child, Vec::new()));
                    }
                    Kind::Dir | Kind::Symlink | Kind::Special => {}
                }
            }
            if let Some(Node::Dir(_, _, known)) = nodes.get_mut(*at) {
                *known = children;
            }
        }
        level = next;
    }
    // In order: each directory where its name stands.
    let mut slots: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    let mut found = Vec::new();
    let mut todo = vec![0_usize];
    while let Some(at) = todo.pop() {
        match slots.get_mut(at).and_then(Option::take) {
            Some(Node::File(file)) => found.push(file),
            Some(Node::Dir(_, _, children)) => todo.extend(children.into_iter().rev()),
            None => {}
        }
    }
    Ok(found)
}

fn name_of(printed: &str) -> &str {
    printed.rsplit('/').next().unwrap_or(printed)
}

/// Searches by name, newest first.
fn files_named(
    hands: &mut Hands<'_>,
    search: &Search,
    path: &str,
    place: &Place,
    kind: Kind,
) -> Result<Results, Stop> {
    let pattern = search.pattern.rsplit('/').next().unwrap_or_default();
    let files = match kind {
        Kind::Dir => files_below(hands, path, place)?,
        Kind::File => vec![Found {
            printed: path.to_owned(),
            place: place.clone(),
        }],
        Kind::Symlink | Kind::Special => Vec::new(),
    };
    let hidden_root = path
        .split('/')
        .any(|part| part.starts_with('.') && part != "." && part != "..");
    let mut files: Vec<Found> = files
        .into_iter()
        .filter(|file| glob::matches(pattern, name_of(&file.printed)))
        // A name that starts with a dot counts as hidden, like a directory's.
        .filter(|file| {
            let below = file.printed.strip_prefix(path).unwrap_or(&file.printed);
            let hidden_below = below.contains("/.") || (path.is_empty() && below.starts_with('.'));
            let hidden = if hidden_root {
                hidden_below
            } else {
                file.printed.contains("/.")
            };
            !hidden
        })
        .collect();
    let places: Vec<Place> = files.iter().map(|file| file.place.clone()).collect();
    let stamps: Vec<i128> = hands
        .look_all(&places)?
        .into_iter()
        .map(|stat| stat.map_or(0, |stat| stat.modified_ns))
        .collect();
    let mut order: Vec<(i128, String)> = stamps
        .into_iter()
        .zip(files.drain(..).map(|file| file.printed))
        .collect();
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

/// Searches in the text of files.
fn files_holding(
    hands: &mut Hands<'_>,
    search: &Search,
    path: &str,
    place: &Place,
    kind: Kind,
) -> Result<Results, Stop> {
    let regex = match basic_regex::compile(&search.pattern) {
        Ok(regex) => regex,
        Err(problem) => {
            let error = Results::error(format!("Search failed: grep: {problem}"));
            return Ok(with_newline_warning(search, error));
        }
    };
    let files = match kind {
        // A starting directory with a leading dot is hidden, too; `.` is one.
        Kind::Dir if path.starts_with('.') => Vec::new(),
        Kind::Dir => files_below(hands, path, place)?,
        Kind::File => vec![Found {
            printed: path.to_owned(),
            place: place.clone(),
        }],
        Kind::Symlink | Kind::Special => Vec::new(),
    };
    let files: Vec<Found> = files
        .into_iter()
        .filter(|file| {
            search.file_glob.as_ref().is_none_or(|pattern| match kind {
                // A file that was named itself is judged by its path.
                Kind::File => glob::matches_tail(pattern, &file.printed),
                Kind::Dir | Kind::Symlink | Kind::Special => {
                    glob::matches(pattern, name_of(&file.printed))
                }
            })
        })
        .collect();
    let (secret, plain): (Vec<Found>, Vec<Found>) = files
        .into_iter()
        .partition(|file| hands.is_sensitive(Verb::FsRead, &file.place));
    let fetch = search.limit
        + search.offset
        + if search.context > 0 {
            CONTEXT_EXTRA_ROWS
        } else {
            0
        };
    let mut rows: Vec<String> = Vec::new();
    for batch in plain.chunks(256) {
        let places: Vec<Place> = batch.iter().map(|file| file.place.clone()).collect();
        for (file, content) in batch.iter().zip(hands.read_all(&places)?) {
            let Some(content) = content else { continue };
            let printed = lines::printed(&file.printed, &content, &regex, search.context);
            match (search.mode, printed) {
                (Mode::Content, lines::Printed::Lines(text, _)) => {
                    if search.context > 0 && !rows.is_empty() {
                        rows.push("--".to_owned());
                    }
                    rows.extend(text.split_terminator('\n').map(str::to_owned));
                }
                (Mode::Content, lines::Printed::Nothing | lines::Printed::Binary(_)) => {}
                (Mode::Files, lines::Printed::Nothing) => {}
                (Mode::Files, lines::Printed::Lines(..) | lines::Printed::Binary(_)) => {
                    rows.push(file.printed.clone())
                }
                (Mode::Counts, lines::Printed::Nothing) => rows.push(format!("{}:0", file.printed)),
                (Mode::Counts, lines::Printed::Lines(_, count) | lines::Printed::Binary(count)) => {
                    rows.push(format!("{}:{count}", file.printed));
                }
            }
        }
        if rows.len() >= fetch {
            break;
        }
    }
    rows.truncate(fetch);
    let mut results = counted(search, &lines::rows(&rows.join("\n")));
    results.omitted = secret.len();
    Ok(with_newline_warning(search, results))
}

/// The page of the rows that was asked for.
fn counted(search: &Search, rows: &[String]) -> Results {
    match search.mode {
        Mode::Files => Results {
            total: rows.len() as u64,
            files: rows
                .iter()
                .skip(search.offset)
                .take(search.limit)
                .cloned()
                .collect(),
            ..Results::default()
        },
        Mode::Counts => {
            let counts: Vec<(String, u64)> = rows
                .iter()
                .filter_map(|row| row.rsplit_once(':'))
                .filter_map(|(path, count)| Some((path.to_owned(), count.parse().ok()?)))
                .collect();
            Results {
                total: counts.iter().map(|(_, count)| count).sum(),
                counts,
                ..Results::default()
            }
        }
        Mode::Content => {
            let matches = lines::matches(rows, search.context);
            let total = matches.len();
            let matches = matches
                .into_iter()
                .skip(search.offset)
                .take(search.limit)
                .map(|found| lines::Match {
                    content: redact::masked(&found.content, redact::Mask::Sentinel),
                    ..found
                })
                .collect();
            Results {
                total: total as u64,
                matches,
                truncated: total > search.offset + search.limit,
                ..Results::default()
            }
        }
    }
}

/// A pattern with `\n` finds nothing; says why instead of an error.
fn with_newline_warning(search: &Search, results: Results) -> Results {
    let mut escapes = 0;
    let escaped_newline = search.pattern.chars().any(|letter| {
        let hit = letter == 'n' && escapes % 2 == 1;
        escapes = if letter == '\\' { escapes + 1 } else { 0 };
        hit
    });
    let asks_for_newline = search.pattern.contains('\n') || escaped_newline;
    if results.total != 0 || !asks_for_newline || results.error.is_some() {
        return results;
    }
    Results {
        warning: Some(
            "0 results found. Note: search_files content search is line-oriented and does not run ripgrep with \
             -U/--multiline, so `\\n` in the regex does not match line breaks. Use context=N to inspect neighboring \
             lines, or escape as `\\\\n` when searching for a literal backslash+n."
                .to_owned(),
        ),
        ..results
    }
}

fn worded(search: &Search, results: Results, times: u32) -> ToolResult {
    let mut out = Map::new();
    out.insert("total_count".into(), results.total.into());
    if results.matches.len() >= GROUPED_FROM {
        out.insert(
            "matches_format".into(),
            "path-grouped: each file path on its own line, followed by indented '<line>: <content>' rows for matches in \
             that file"
                .into(),
        );
        out.insert("matches_text".into(), grouped(&results.matches).into());
    } else if !results.matches.is_empty() {
        let matches: Vec<Value> = results
            .matches
            .iter()
            .map(|found| json!({"path": found.path, "line": found.line, "content": found.content}))
            .collect();
        out.insert("matches".into(), matches.into());
    }
    if !results.files.is_empty() {
        out.insert("files".into(), results.files.into());
    }
    if !results.counts.is_empty() {
        let counts: Map<String, Value> = results
            .counts
            .into_iter()
            .map(|(path, count)| (path, count.into()))
            .collect();
        out.insert("counts".into(), counts.into());
    }
    if results.truncated {
        out.insert("truncated".into(), true.into());
    }
    if let Some(warning) = results.warning {
        out.insert("warning".into(), warning.into());
    }
    let failed = results.error.is_some();
    if let Some(error) = results.error {
        out.insert("error".into(), error.into());
    }
    if results.omitted > 0 {
        out.insert(
            "_omitted".into(),
            format!(
                "{} result(s) omitted because they target credential, token, cache, or secret-bearing environment files.",
                results.omitted
            )
            .into(),
        );
    }
    if times >= 3 {
        out.insert(
            "_warning".into(),
            format!(
                "You have run this exact search {times} times consecutively. The results have not changed. Use the \
                 information you already have."
            )
            .into(),
        );
    }
    let mut text = pyjson::text(&Value::Object(out));
    if results.truncated {
        text.push_str(&format!(
            "\n\n[Hint: Results truncated. Use offset={} to see more, or narrow with a more specific pattern or \
             file_glob.]",
            search.offset + search.limit
        ));
    }
    ToolResult {
        text,
        fate: if failed { Fate::ToolError } else { Fate::Ran },
    }
}

fn grouped(matches: &[lines::Match]) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut current: Option<&str> = None;
    for found in matches {
        if current != Some(found.path.as_str()) {
            out.push(found.path.clone());
            current = Some(&found.path);
        }
        out.push(format!(
            "  {}: {}",
            found.line,
            pytext::strip_end(&found.content)
        ));
    }
    out.join("\n")
}
