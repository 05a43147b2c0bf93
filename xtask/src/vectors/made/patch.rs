//! `patch`: a quotation of a file, exact or not, and what stands in its place.

use serde_json::json;

use super::document::{self, Kind};
use super::draw::Draw;
use super::{service, v4a, world};
use crate::vectors::draft::Draft;
use crate::vectors::emit::Suite;

const SEED: &str = "patch-1";

/// The suite.
pub fn suite() -> anyhow::Result<Suite> {
    let mut draw = Draw::seeded(SEED);
    let mut cases = Vec::new();
    for _ in 0..470 {
        cases.push(replace(&mut draw)?);
    }
    for _ in 0..40 {
        cases.push(repeated(&mut draw)?);
    }
    for _ in 0..40 {
        cases.push(odd(&mut draw)?);
    }
    for _ in 0..330 {
        cases.push(v4a::case(&mut draw)?);
    }
    Ok(Suite {
        name: "patch",
        description: "Patching files: quotations from exact to vague, their refusals and hints, and patches of several files in the V4A form.",
        flags: vec![
            service("exact", "a quotation as the file has it"),
            service("blanks", "a quotation with other blanks or indentation"),
            service(
                "letters",
                "a quotation with plain letters for typographic ones, or escapes for control letters",
            ),
            service(
                "vague",
                "a quotation with other lines or letters in its middle",
            ),
            service(
                "not-there",
                "a quotation the file does not have, has twice, or that changes nothing",
            ),
            service(
                "repeated",
                "several patches of one file, one after the other",
            ),
            service(
                "odd-argument",
                "an argument of another type than declared, missing or unknown",
            ),
            service("v4a", "a patch of one file or several that fits"),
            service(
                "v4a-unfit",
                "a patch that does not fit the files, or whose text has mistakes",
            ),
        ],
        defaults: super::defaults(SEED),
        rows: cases.len(),
        cases: super::numbered("patch", cases),
        left_out: Vec::new(),
    })
}

/// A file that nothing checks.
fn a_file(draw: &mut Draw) -> anyhow::Result<(String, Vec<String>, document::Form)> {
    let kind = draw.one(&Kind::ALL)?;
    let lines = document::lines(draw, kind)?;
    let form = document::form(draw)?;
    Ok((
        format!("{}.{}", document::word(draw)?, kind.ending()),
        lines,
        form,
    ))
}

fn indentation(line: &str) -> (&str, &str) {
    let rest = line.trim_start();
    line.split_at(line.len() - rest.len())
}

/// The lines as somebody quotes them who does not look closely.
fn quoted(draw: &mut Draw, how: usize, lines: &[String]) -> anyhow::Result<Vec<String>> {
    let mut out = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        let (indent, rest) = indentation(line);
        out.push(match how {
            0 => line.clone(),
            1 => format!("{line}{}", draw.one(&["", " ", "\t", "   "])?),
            2 => rest.to_owned(),
            3 => format!("{indent}    {rest}"),
            4 => format!("{}{rest}", indent.replace('\t', "    ")),
            5 => format!(
                "{indent}{}",
                rest.replace(' ', draw.one(&["  ", "\t", "   "])?)
            ),
            6 if at == 0 || at + 1 == lines.len() => format!("  {}  ", line.trim()),
            6 => line.clone(),
            7 => plain(line),
            8 => line.replace('\t', "\\t"),
            9 if at > 0 && at + 1 < lines.len() => swapped(line),
            9 => line.clone(),
            10 if at % 2 == 1 => swapped(line),
            10 => line.clone(),
            _ => line.replace('\'', "\\'").replace('"', "\\\""),
        });
    }
    Ok(out)
}

/// A line with a few other letters.
fn swapped(line: &str) -> String {
    line.replacen('e', "o", 1).replacen('a', "u", 1)
}

/// Typographic letters spelled plainly.
fn plain(line: &str) -> String {
    let mut out = line.to_owned();
    for (letter, spelling) in [
        ("\u{201c}", "\""),
        ("\u{201d}", "\""),
        ("\u{2018}", "'"),
        ("\u{2019}", "'"),
        ("\u{2014}", "--"),
        ("\u{2013}", "-"),
        ("\u{2026}", "..."),
    ] {
        out = out.replace(letter, spelling);
    }
    out
}

fn draft(flag: &str, name: &str, text: String) -> Draft {
    Draft::made()
        .flag(flag)
        .field("world", world(&[(name.to_owned(), text)]))
}

fn replace(draw: &mut Draw) -> anyhow::Result<Draft> {
    let (name, mut lines, form) = a_file(draw)?;
    let how = draw.below(16)?;
    if how == 13 && !lines.is_empty() {
        // Twice the same lines: which of them is meant?
        let again = document::block(draw, &lines)?;
        lines.extend(again);
    }
    let found = document::block(draw, &lines)?;
    let new = document::changed(draw, &found)?;
    let (flag, old, new) = match how {
        0 => ("exact", found.join("\n"), new.join("\n")),
        1 => {
            // A part of one line.
            let line = found.first().cloned().unwrap_or_default();
            let letters: Vec<char> = line.chars().collect();
            let start = draw.below(letters.len())?;
            let part: String = letters
                .iter()
                .skip(start)
                .take(1 + draw.below(12)?)
                .collect();
            ("exact", part, document::word(draw)?)
        }
        2 => ("exact", found.join(form.end), new.join(form.end)),
        3 => ("exact", format!("{}\n", found.join("\n")), String::new()),
        12 => ("letters", found.join("\\n"), new.join("\n")),
        13 => ("not-there", found.join("\n"), new.join("\n")),
        14 => {
            let word = document::word(draw)?;
            (
                "not-there",
                draw.one(&[
                    format!("no {word} here"),
                    format!("{word}\n{word}"),
                    "zzzz".to_owned(),
                    String::new(),
                ])?,
                word,
            )
        }
        15 => ("not-there", found.join("\n"), found.join("\n")),
        _ => {
            let way = how - 3;
            let other = 1 + draw.below(11)?;
            let way = draw.one(&[way, other])?;
            let flag = match way {
                1..=6 => "blanks",
                7 | 8 | 11 => "letters",
                _ => "vague",
            };
            let (old, new) = (
                quoted(draw, way, &found)?,
                quoted(draw, if way > 8 && way != 11 { 0 } else { way }, &new)?,
            );
            (flag, old.join("\n"), new.join("\n"))
        }
    };
    let mut args = json!({"mode": "replace", "path": name, "old_string": old, "new_string": new});
    if draw.chance(20)? {
        args["replace_all"] = json!(true);
    }
    let mut draft = draft(flag, &name, document::text(&lines, form));
    if draw.chance(12)? {
        draft = draft.call("read_file", &json!({"path": name}));
    }
    Ok(draft.call("patch", &args))
}

fn repeated(draw: &mut Draw) -> anyhow::Result<Draft> {
    let (name, lines, form) = a_file(draw)?;
    let mut draft = draft("repeated", &name, document::text(&lines, form));
    for _ in 0..2 + draw.below(3)? {
        let found = document::block(draw, &lines)?;
        let new = document::changed(draw, &found)?;
        let old = if draw.chance(50)? {
            "qqqq wwww".to_owned()
        } else {
            found.join("\n")
        };
        draft = draft.call("patch", &json!({"mode": "replace", "path": name, "old_string": old, "new_string": new.join("\n")}));
    }
    Ok(draft.call("read_file", &json!({"path": name})))
}

fn odd(draw: &mut Draw) -> anyhow::Result<Draft> {
    let (name, lines, form) = a_file(draw)?;
    let line = lines.first().cloned().unwrap_or_default();
    let whole = json!({"mode": "replace", "path": name, "old_string": line, "new_string": "new"});
    let mut args = whole.clone();
    match draw.below(6)? {
        0 => {
            let key = draw.one(&["mode", "path", "old_string", "new_string"])?;
            if let Some(map) = args.as_object_mut() {
                map.remove(key);
            }
        }
        1 => {
            args["replace_all"] = draw.one(&[
                json!("true"),
                json!("false"),
                json!("FALSE "),
                json!("yes"),
                json!(1),
                json!(0),
                json!(null),
                json!([]),
            ])?
        }
        2 => {
            args["mode"] = draw.one(&[
                json!("Replace"),
                json!(""),
                json!("patch"),
                json!("v4a"),
                json!(null),
                json!(3),
            ])?
        }
        3 => args["unknown"] = json!({"a": 1}),
        4 => {
            args["path"] = draw.one(&[
                json!(""),
                json!("absent.txt"),
                json!("src"),
                json!(null),
                json!("no/dir/x.c"),
            ])?
        }
        _ => args["old_string"] = draw.one(&[json!(null), json!(""), json!("\n")])?,
    }
    Ok(draft("odd-argument", &name, document::text(&lines, form)).call("patch", &args))
}
