//! What a search found: the page of it that was asked for, in words.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::{Mode, Search, walk::Withheld};
use crate::{
    runtime::{Fate, ToolResult},
    text::{pyjson, pytext, redact},
    tools::search_files::lines,
};

/// From this many matches on, they are grouped by file.
const GROUPED_FROM: usize = 5;

/// A match that is shown, its secrets masked.
pub(super) struct Shown {
    path: String,
    line: u64,
    content: String,
}

/// What was found, before it is put into words.
#[derive(Default)]
pub(super) struct Results {
    pub total: u64,
    pub matches: Vec<Shown>,
    pub files: Vec<String>,
    pub counts: Vec<(String, u64)>,
    pub truncated: bool,
    /// Why it was broken off.
    pub limit_reason: Option<&'static str>,
    pub warning: Option<String>,
    pub error: Option<String>,
    /// Results that name files of secrets.
    pub omitted: usize,
    /// Files of secrets, in which nothing was looked for.
    pub unread: usize,
    /// What rules keep from being searched.
    pub withheld: Withheld,
}

impl Results {
    pub(super) fn error(message: String) -> Self {
        Self {
            error: Some(message),
            ..Self::default()
        }
    }
}

/// The page of the rows that was asked for.
pub(super) fn counted(search: &Search, rows: &[&str]) -> Results {
    match search.mode {
        Mode::Files => Results {
            total: rows.len() as u64,
            files: rows
                .iter()
                .skip(search.offset)
                .take(search.limit)
                .map(|row| (*row).to_owned())
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
                .map(|found| Shown {
                    path: found.path.to_owned(),
                    line: found.line,
                    content: redact::masked(found.content, redact::Mask::Sentinel),
                })
                .collect();
            Results {
                total: total as u64,
                matches,
                truncated: total > search.offset.saturating_add(search.limit),
                ..Results::default()
            }
        }
    }
}

/// A pattern with `\n` finds nothing; says why instead of an error.
pub(super) fn with_newline_warning(search: &Search, results: Results) -> Results {
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

pub(super) fn worded(search: &Search, results: Results, times: u32) -> ToolResult {
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
    if let Some(reason) = results.limit_reason {
        out.insert("limit_reason".into(), reason.into());
    }
    if let Some(warning) = results.warning {
        out.insert("warning".into(), warning.into());
    }
    let failed = results.error.is_some();
    if let Some(error) = results.error {
        out.insert("error".into(), error.into());
    }
    if results.withheld != Withheld::default() {
        let what = match results.withheld {
            Withheld { files, dirs: 0 } => format!("{files} file(s)"),
            Withheld { files: 0, dirs } => format!("{dirs} directory(s)"),
            Withheld { files, dirs } => format!("{files} file(s) and {dirs} directory(s)"),
        };
        let note = format!(
            "{what} not searched: rules of the user refuse to have them read, or want a question about it; \
             read_file on one of them says which."
        );
        out.insert("_withheld".into(), note.into());
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
    if results.unread > 0 {
        let note = format!(
            "{} file(s) not searched because they may hold credentials, tokens or other secrets; whether the pattern is \
             in them is not known.",
            results.unread
        );
        out.insert("_omitted".into(), note.into());
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
            search.offset.saturating_add(search.limit)
        ));
    }
    ToolResult {
        text,
        fate: if failed { Fate::ToolError } else { Fate::Ran },
    }
}

fn grouped(matches: &[Shown]) -> String {
    let mut out = String::new();
    let mut current: Option<&str> = None;
    for found in matches {
        if current != Some(found.path.as_str()) {
            out.push_str(&found.path);
            out.push('\n');
            current = Some(&found.path);
        }
        let content = pytext::strip_end(&found.content);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {}: {content}", found.line);
    }
    out.pop();
    out
}
