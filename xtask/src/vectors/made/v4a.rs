//! Patches of several files in the V4A form, well and badly written.

use serde_json::json;

use super::document::{self, Kind};
use super::draw::Draw;
use super::world;
use crate::vectors::draft::Draft;

struct File {
    name: String,
    lines: Vec<String>,
    form: document::Form,
}

/// One case.
pub fn case(draw: &mut Draw) -> anyhow::Result<Draft> {
    let mut files: Vec<File> = Vec::new();
    for _ in 0..1 + draw.below(3)? {
        let kind = draw.one(&Kind::ALL)?;
        let folder = draw.one(&["", "", "lib/"])?;
        let name = format!("{folder}{}.{}", document::word(draw)?, kind.ending());
        if files.iter().all(|file| file.name != name) {
            let lines = document::lines(draw, kind)?;
            let form = document::form(draw)?;
            files.push(File { name, lines, form });
        }
    }
    let unfit = draw.chance(30)?;
    let mut body = String::new();
    let mut gone: Vec<usize> = Vec::new();
    for at in 0..files.len() {
        let Some(file) = files.get(at) else { continue };
        match draw.below(10)? {
            0 => {
                body.push_str(&format!("*** Delete File: {}\n", file.name));
                gone.push(at);
            }
            1 => {
                body.push_str(&format!(
                    "*** Move File: {} -> {}.moved\n",
                    file.name, file.name
                ));
                gone.push(at);
            }
            _ => update(draw, file, &mut body)?,
        }
        if draw.chance(25)? {
            add(draw, &mut body)?;
        }
    }
    if unfit {
        spoil(draw, &files, &mut body)?;
    }
    let text = dressed(draw, &body)?;
    let mut args = json!({"mode": "patch", "patch": text});
    if draw.chance(4)? {
        args["path"] = json!("src/main.py");
    }
    let listed: Vec<(String, String)> = files
        .iter()
        .map(|file| (file.name.clone(), document::text(&file.lines, file.form)))
        .collect();
    let flag = if unfit { "v4a-unfit" } else { "v4a" };
    let draft = Draft::made()
        .flag(flag)
        .field("world", world(&listed))
        .call("patch", &args);
    Ok(match listed.first() {
        Some((name, _)) if draw.chance(10)? => draft.call("read_file", &json!({"path": name})),
        _ => draft,
    })
}

fn update(draw: &mut Draw, file: &File, body: &mut String) -> anyhow::Result<()> {
    body.push_str(&format!(
        "{}Update File: {}\n",
        draw.one(&["*** ", "*** ", "*** ", "***"])?,
        file.name
    ));
    let hunks = 1 + draw.below(2)?;
    let half = file.lines.len() / 2;
    for hunk in 0..hunks {
        let part = match (hunks, hunk) {
            (1, _) => file.lines.as_slice(),
            (_, 0) => file.lines.get(..half.max(1)).unwrap_or_default(),
            _ => file.lines.get(half.max(1)..).unwrap_or_default(),
        };
        if part.is_empty() {
            continue;
        }
        let hint = draw.one(part)?;
        match draw.below(4)? {
            0 => body.push_str("@@\n"),
            1 => body.push_str(&format!("@@ {} @@\n", hint.trim())),
            2 if hunk == 0 => {}
            _ => body.push_str("@@ ... @@\n"),
        }
        if draw.chance(12)? {
            // Nothing but a new line: at the hint, or at the end.
            body.push_str(&format!(
                "+{} {}\n",
                document::word(draw)?,
                document::word(draw)?
            ));
            continue;
        }
        lines(draw, part, body)?;
    }
    if draw.chance(8)? {
        body.push_str("\\ No newline at end of file\n");
    }
    Ok(())
}

/// Context, lines that go, lines that come.
fn lines(draw: &mut Draw, part: &[String], body: &mut String) -> anyhow::Result<()> {
    let found = document::block(draw, part)?;
    let new = document::changed(draw, &found)?;
    let bare = draw.chance(10)?;
    let same_start = found
        .iter()
        .zip(&new)
        .take_while(|(old, new)| old == new)
        .count();
    let rest = found.len().min(new.len()) - same_start;
    let same_end = found
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(rest)
        .take_while(|(old, new)| old == new)
        .count();
    for line in found.iter().take(same_start) {
        let mark = if bare && !line.is_empty() && !line.starts_with([' ', '+', '-', '@', '*', '\\'])
        {
            ""
        } else {
            " "
        };
        body.push_str(&format!("{mark}{line}\n"));
    }
    for line in found.iter().take(found.len() - same_end).skip(same_start) {
        body.push_str(&format!("-{line}\n"));
    }
    for line in new.iter().take(new.len() - same_end).skip(same_start) {
        body.push_str(&format!("+{line}\n"));
    }
    for line in found.iter().skip(found.len() - same_end) {
        body.push_str(&format!(" {line}\n"));
    }
    Ok(())
}

fn add(draw: &mut Draw, body: &mut String) -> anyhow::Result<()> {
    let kind = draw.one(&Kind::ALL)?;
    let folder = draw.one(&["", "fresh/", "fresh/deep/"])?;
    let name = format!("{folder}new_{}.{}", draw.below(100)?, kind.ending());
    body.push_str(&format!("*** Add File: {name}\n"));
    for line in document::lines(draw, kind)? {
        body.push_str(&format!("+{line}\n"));
    }
    Ok(())
}

/// A mistake, in the text or about the files.
fn spoil(draw: &mut Draw, files: &[File], body: &mut String) -> anyhow::Result<()> {
    let name = draw.one(
        &files
            .iter()
            .map(|file| file.name.clone())
            .collect::<Vec<_>>(),
    )?;
    let more = match draw.below(12)? {
        0 => "*** Update File: absent.txt\n-a\n+b\n".to_owned(),
        1 => "*** Delete File: absent.txt\n".to_owned(),
        2 => format!("*** Move File: absent.txt -> {name}\n"),
        3 => format!("*** Move File: {name} -> src/main.py\n"),
        4 => format!("*** Update File: {name}\n"),
        5 => format!("*** Update File: {name}\n@@ nowhere at all @@\n+x\n"),
        6 => format!("*** Update File: {name}\n@@ e @@\n+x\n"),
        7 => format!("*** Update File: {name}\n-not a line of it\n+x\n"),
        8 => "*** Add File: up/../out.txt\n+x\n".to_owned(),
        9 => "*** Update File:  \n-x\n+y\n*** Move File: a -> \n".to_owned(),
        10 => "*** Delete File: src\n".to_owned(),
        _ => format!("*** Update File: {name}\n@@ h @@\n"),
    };
    match draw.below(4)? {
        0 => *body = more,
        1 => *body = String::new(),
        _ => body.push_str(&more),
    }
    if body.is_empty() {
        let line = files
            .first()
            .and_then(|file| file.lines.first())
            .cloned()
            .unwrap_or_default();
        *body = draw.one(&[
            String::new(),
            "no patch\n".to_owned(),
            format!("*** Update File: {name}\n {line}\n"),
        ])?;
    }
    Ok(())
}

/// The body between its marks, which are sometimes odd.
fn dressed(draw: &mut Draw, body: &str) -> anyhow::Result<String> {
    Ok(match draw.below(10)? {
        0 => body.to_owned(),
        1 => format!("***Begin Patch\n{body}***End Patch\n"),
        2 => format!("Here is the patch:\n*** Begin Patch\n{body}*** End Patch\nDone.\n"),
        3 => format!("*** Begin Patch\n{body}"),
        _ => format!("*** Begin Patch\n{body}*** End Patch"),
    })
}
