//! Sorting a directory's files into directories by what their names say they are.

use std::collections::BTreeSet;

use hermitcrab_core::{
    authority::Extent,
    plan::{Failure, interp::ToolCall},
};
use hermitcrab_sandbox::dircap::Kind;

use super::{Acted, Did, Trouble, files, record, stopped, text, whole};
use crate::runtime::{FileChange, Hands};

/// The directories and the endings that go there, small letters.
pub const CATEGORIES: [(&str, &[&str]); 8] = [
    (
        "Images",
        &[
            "jpg", "jpeg", "png", "gif", "bmp", "svg", "webp", "tif", "tiff", "heic", "avif",
            "ico", "raw", "psd",
        ],
    ),
    (
        "Videos",
        &[
            "mp4", "mkv", "avi", "mov", "wmv", "flv", "webm", "m4v", "mpg", "mpeg", "3gp",
        ],
    ),
    (
        "Audio",
        &[
            "mp3", "wav", "flac", "ogg", "oga", "opus", "m4a", "aac", "wma", "aiff", "mid",
        ],
    ),
    (
        "Documents",
        &[
            "pdf", "doc", "docx", "odt", "rtf", "txt", "md", "tex", "epub", "mobi", "ppt", "pptx",
            "odp", "pages", "key",
        ],
    ),
    (
        "Archives",
        &[
            "zip", "tar", "gz", "tgz", "bz2", "xz", "7z", "rar", "zst", "lz4", "iso", "deb", "rpm",
        ],
    ),
    (
        "Code",
        &[
            "py", "js", "ts", "jsx", "tsx", "java", "c", "h", "cpp", "hpp", "cc", "cs", "go", "rs",
            "rb", "php", "swift", "kt", "scala", "sh", "bash", "html", "css", "lua", "pl", "r",
            "ipynb",
        ],
    ),
    (
        "Data",
        &[
            "csv", "tsv", "json", "jsonl", "xml", "yaml", "yml", "toml", "sql", "db", "sqlite",
            "xls", "xlsx", "ods", "parquet", "log",
        ],
    ),
    ("Other", &[]),
];

/// Where a file of this name goes.
#[must_use]
pub fn category(name: &str) -> &'static str {
    let ending = match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => ending.to_ascii_lowercase(),
        _ => String::new(),
    };
    CATEGORIES
        .iter()
        .find(|(_, endings)| endings.contains(&ending.as_str()))
        .map_or("Other", |(category, _)| category)
}

pub(super) fn organize(hands: &mut Hands<'_>, call: &ToolCall) -> Acted {
    let path = text(call, "path")?;
    let dir = files::place_to_change(hands, path)?;
    let listed = files::names(hands, &dir)?;
    let there: BTreeSet<String> = listed
        .iter()
        .filter(|(_, kind)| *kind != Kind::Dir)
        .map(|(name, _)| name.clone())
        .collect();
    let mut changes = Vec::new();
    let mut left = 0_usize;
    for (name, kind) in &listed {
        if *kind != Kind::File || name.starts_with('.') {
            continue;
        }
        let category = category(name);
        let goal = hands
            .child(&dir, category.as_bytes())
            .and_then(|place| hands.child(&place, name.as_bytes()));
        let (Some(from), Some(to)) = (hands.child(&dir, name.as_bytes()), goal) else {
            left += 1;
            continue;
        };
        // Never over another file; a file that has a category's name stays, too.
        let blocked = there.contains(category) || hands.look(&to).map_err(stopped)?.is_some();
        if blocked || changes.len() >= files::NAMES_MAX {
            left += 1;
            continue;
        }
        changes.push(FileChange::Move {
            from,
            to,
            extent: Extent::Alone,
        });
    }
    if !changes.is_empty() {
        hands.change(&changes).map_err(stopped)?;
    }
    let told = format!("{} sorted, {left} left where they were", changes.len());
    let result = record(vec![("moved", whole(changes.len())), ("left", whole(left))]);
    if listed.is_empty() {
        // A directory that is not there was a failure by now.
        return Ok(Did {
            already: true,
            ..Did::new(result, told)
        });
    }
    if changes.is_empty() && left > 0 {
        return Err(Trouble::new(
            Failure::Exists,
            "everything there is in the way of something else",
        ));
    }
    Ok(Did::new(result, told).kept())
}

#[cfg(test)]
mod tests {
    use super::category;

    #[test]
    fn endings_count_whatever_their_letters_and_whatever_else_is_in_the_name() {
        for (name, wanted) in [
            ("a.JPG", "Images"),
            ("-rf.mp3", "Audio"),
            ("x y.tar.GZ", "Archives"),
            ("main.rs", "Code"),
            ("t.json", "Data"),
            ("README", "Other"),
            (".bashrc", "Other"),
            ("a.jpg.exe", "Other"),
        ] {
            assert_eq!(category(name), wanted, "{name}");
        }
    }
}
