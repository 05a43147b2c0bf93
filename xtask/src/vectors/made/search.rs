//! `search_files`: text in files, and files by name.

use serde_json::{Value, json};

use super::document::{self, Kind};
use super::draw::Draw;
use super::{service, world};
use crate::vectors::draft::Draft;
use crate::vectors::emit::Suite;

const SEED: &str = "search-1";
const HERE_SEED: &str = "search-here-1";

/// The suite.
pub fn suite() -> anyhow::Result<Suite> {
    let mut draw = Draw::seeded(SEED);
    let mut cases = Vec::new();
    for _ in 0..280 {
        cases.push(text(&mut draw)?);
    }
    for _ in 0..110 {
        cases.push(names(&mut draw)?);
    }
    for _ in 0..50 {
        cases.push(odd(&mut draw)?);
    }
    Ok(Suite {
        name: "search",
        description: "Searching a workspace: patterns in text with context, counts and parts, files by name, arguments of the wrong type.",
        flags: vec![
            service("text", "a search in the text of files"),
            service("names", "a search for files by name"),
            service(
                "odd-argument",
                "an argument of another type than declared, missing or unknown",
            ),
        ],
        defaults: super::defaults(SEED),
        rows: cases.len(),
        cases: super::numbered("search", cases),
        left_out: Vec::new(),
    })
}

/// Searches of text that begin where the agent is. Without ripgrep, which the worlds do
/// not have, Hermes takes such a start for a hidden directory and finds nothing in it.
pub fn here() -> anyhow::Result<Suite> {
    let mut draw = Draw::seeded(HERE_SEED);
    let mut cases = Vec::new();
    for number in 0..40 {
        let start = [None, Some("."), Some("./"), Some("./lib")][number % 4];
        let mut same = json!(null);
        let case = text_from(&mut draw, |args| {
            same = args.clone();
            same["path"] = json!(match start {
                Some("./lib") => super::at("lib"),
                _ => super::WORKSPACE.to_owned(),
            });
            match (start, args.as_object_mut()) {
                (Some(start), Some(args)) => drop(args.insert("path".to_owned(), json!(start))),
                (None, Some(args)) => drop(args.remove("path")),
                (_, None) => {}
            }
        })?;
        // The same from the same place by its whole name: there both find the same.
        cases.push(case.call("search_files", &same));
    }
    Ok(Suite {
        name: "search-here",
        description: "Searching the text of files from where the agent is: no start is named, or one that begins with a dot.",
        flags: vec![service("text", "a search in the text of files")],
        defaults: super::defaults(HERE_SEED),
        rows: cases.len(),
        cases: super::numbered("search-here", cases),
        left_out: Vec::new(),
    })
}

/// A small tree below `lib`.
fn tree(draw: &mut Draw) -> anyhow::Result<Vec<(String, String)>> {
    let mut files: Vec<(String, String)> = Vec::new();
    for _ in 0..2 + draw.below(4)? {
        let kind = draw.one(&Kind::ALL)?;
        let lines = document::lines(draw, kind)?;
        let form = document::form(draw)?;
        let folder = draw.one(&["lib/", "lib/", "lib/inner/", "lib/.hidden/", ""])?;
        let dot = draw.one(&["", "", "", "", "."])?;
        let name = format!("{folder}{dot}{}.{}", document::word(draw)?, kind.ending());
        if !files.iter().any(|(known, _)| *known == name) {
            files.push((name, document::text(&lines, form)));
        }
    }
    Ok(files)
}

const PATTERNS: &[&str] = &[
    "return",
    "alpha",
    "e",
    "=",
    "[0-9][0-9]*",
    "^def",
    "^$",
    ";$",
    "int .*_",
    "\\bcount\\b",
    "value\\|token",
    "a.b",
    "(",
    ")",
    "[",
    "*",
    "\\(al\\)pha",
    "{",
    "print('",
    "\"",
    "caf\u{e9}",
    "\u{2014}",
    "It.s",
    "x\\?",
    "co\\+",
    "^#",
    "\\.",
    "a\\{2\\}",
    "[[:digit:]]\\+",
    "^\\s*return",
    "\\w*_[0-9]",
    "no such text",
    "\\n",
    "key =",
    "-",
    "a\nb",
    "\\<f",
    "The .* is",
    " $",
    "\t",
    "[a",
    "a\\",
    "\\d",
    "if ",
];

fn text(draw: &mut Draw) -> anyhow::Result<Draft> {
    text_from(draw, |_| ())
}

fn text_from(draw: &mut Draw, start: impl FnOnce(&mut Value)) -> anyhow::Result<Draft> {
    let files = tree(draw)?;
    let pattern = if draw.chance(35)? {
        document::word(draw)?
    } else {
        draw.one(PATTERNS)?.to_owned()
    };
    let mut args = json!({"pattern": pattern});
    let path = match draw.below(6)? {
        0 | 1 => Some(super::WORKSPACE.to_owned()),
        2 => files.first().map(|(name, _)| name.clone()),
        3 => Some(super::at("lib")),
        4 => Some("lib/".to_owned()),
        _ => Some("lib".to_owned()),
    };
    if let Some(path) = path {
        args["path"] = json!(path);
    }
    if draw.chance(30)? {
        args["file_glob"] = json!(draw.one(&[
            "*.txt", "*.c", "*.{c,md}", "*", "lib/*", "[a-m]*", "?????.*", "*.none", "inner"
        ])?);
    }
    if draw.chance(35)? {
        args["output_mode"] =
            json!(draw.one(&["content", "files_only", "count", "count", "other"])?);
    }
    if draw.chance(35)? {
        args["context"] = json!(draw.one(&[0, 1, 2, 5])?);
    }
    if draw.chance(35)? {
        args["limit"] = json!(draw.one(&[1, 2, 4, 5, 100])?);
    }
    if draw.chance(20)? {
        args["offset"] = json!(draw.one(&[0, 1, 3, 50])?);
    }
    start(&mut args);
    let mut draft = Draft::made()
        .flag("text")
        .field("world", world(&files))
        .call("search_files", &args);
    if draw.chance(8)? {
        for _ in 0..1 + draw.below(3)? {
            draft = draft.call("search_files", &args);
        }
    }
    Ok(draft)
}

fn names(draw: &mut Draw) -> anyhow::Result<Draft> {
    let files = tree(draw)?;
    let pattern = draw.one(&[
        "*",
        "*.txt",
        "*.c",
        "*.md",
        "*a*",
        "[a-f]*",
        "?????.*",
        "main.py",
        "lib/*.c",
        "**/*.txt",
        "*.none",
        "README",
        "",
        "**",
        "*.{c,txt}",
        ".*",
        "*.",
        "\\*",
    ])?;
    let mut args = json!({"pattern": pattern, "target": draw.one(&["files", "files", "find"])?});
    if draw.chance(70)? {
        args["path"] = json!(draw.one(&[
            "lib",
            "lib/",
            ".",
            "src",
            "lib/inner",
            "lib/.hidden",
            ".github",
            "README"
        ])?);
    }
    if draw.chance(30)? {
        args["limit"] = json!(draw.one(&[1, 2, 3, 100])?);
    }
    if draw.chance(20)? {
        args["offset"] = json!(draw.one(&[1, 2, 40])?);
    }
    Ok(Draft::made()
        .flag("names")
        .field("world", world(&files))
        .call("search_files", &args))
}

fn odd(draw: &mut Draw) -> anyhow::Result<Draft> {
    let files = tree(draw)?;
    let mut args = json!({"pattern": "e", "path": "lib"});
    let value = draw.one(&[
        json!("2"),
        json!(" 3 "),
        json!("2.0"),
        json!("2.5"),
        json!("x"),
        json!(""),
        json!(1.5),
        json!(-1),
        json!(0),
        json!(true),
        json!(null),
    ])?;
    match draw.below(6)? {
        0 => args["limit"] = value,
        1 => args["offset"] = value,
        2 => {
            args["context"] = draw.one(&[
                json!("1"),
                json!("0"),
                json!(true),
                json!(false),
                json!(-2),
                json!("1.0"),
            ])?
        }
        3 => {
            args["target"] = draw.one(&[
                json!("grep"),
                json!("CONTENT"),
                json!(""),
                json!("find"),
                json!("x"),
            ])?
        }
        4 => args["unknown"] = json!([1]),
        _ => {
            if let Some(map) = args.as_object_mut() {
                match draw.one(&["pattern", "path"])? {
                    // Where a search begins if nothing is said is the suite `search-here`.
                    "path" => map.insert("path".to_owned(), json!(super::WORKSPACE)),
                    field => map.remove(field),
                };
            }
        }
    }
    Ok(Draft::made()
        .flag("odd-argument")
        .field("world", world(&files))
        .call("search_files", &args))
}
