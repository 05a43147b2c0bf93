//! Relative paths.

use hermitcrab_core::limits::{NAME_BYTES_MAX, PATH_BYTES_MAX};
use hermitcrab_core::path::RelPath;

use super::{Verdict, ensure};

/// Cut the bytes in two and read both as paths.
pub fn check(bytes: &[u8]) -> Verdict {
    let (left, right) = bytes.split_at(bytes.len() / 2);
    one(bytes)?;
    let (Ok(left), Ok(right)) = (RelPath::parse_dir(left), RelPath::parse_dir(right)) else {
        return Ok(());
    };
    if let Ok(joined) = left.join(&right) {
        ensure(joined.starts_with(&left), || {
            format!("a joined path is not below its first: {joined:?} {left:?}")
        })?;
        ensure(joined.strip_prefix(&left).as_ref() == Some(&right), || {
            format!(
                "a joined path without its first is not the rest: {joined:?} {left:?} {right:?}"
            )
        })?;
    }
    let both = left.starts_with(&right) && right.starts_with(&left);
    ensure(both == (left == right), || {
        format!("two paths each contain the other: {left:?} {right:?}")
    })
}

fn one(bytes: &[u8]) -> Verdict {
    let Ok(path) = RelPath::parse_dir(bytes) else {
        return ensure(RelPath::parse(bytes).is_err(), || {
            "a file where no directory can be".to_owned()
        });
    };
    ensure(!bytes.starts_with(b"/"), || {
        format!("it was given as an absolute path: {path:?}")
    })?;
    ensure(
        path.is_root() || !bytes.ends_with(b"/") || RelPath::parse(bytes).is_err(),
        || format!("it ends in a slash and names a file: {path:?}"),
    )?;
    ensure(
        path.as_bytes().len() <= PATH_BYTES_MAX
            && path.components().all(|name| name.len() <= NAME_BYTES_MAX),
        || format!("it is longer than the kernel takes: {path:?}"),
    )?;
    let text = path.as_bytes();
    ensure(!text.starts_with(b"/") && !text.contains(&0), || {
        format!("it is absolute or holds a nought: {path:?}")
    })?;
    let mut names = text.split(|byte| *byte == b'/');
    ensure(names.clone().all(|name| name != b".."), || {
        format!("it leads up: {path:?}")
    })?;
    ensure(
        path.is_root() == (text == b".") && (path.is_root() || names.all(is_name)),
        || format!("it has a name for where it is: {path:?}"),
    )?;
    ensure(RelPath::parse(text).as_ref() == Ok(&path), || {
        format!("it reads back otherwise: {path:?}")
    })?;
    match (path.parent(), path.file_name()) {
        (None, None) => ensure(path.is_root(), || format!("it has no parent: {path:?}")),
        (Some(parent), Some(name)) => ensure(parent.child(name).as_ref() == Ok(&path), || {
            format!("it is not the child of its parent: {path:?}")
        }),
        (Some(_), None) | (None, Some(_)) => Err(format!("it has half a parent: {path:?}")),
    }
}

fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b".")
}
