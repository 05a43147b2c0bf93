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
            format!("{joined:?} is not below {left:?}")
        })?;
        ensure(joined.strip_prefix(&left).as_ref() == Some(&right), || {
            format!("{joined:?} without {left:?} is not {right:?}")
        })?;
    }
    let both = left.starts_with(&right) && right.starts_with(&left);
    ensure(both == (left == right), || {
        format!("{left:?} and {right:?} each contain the other")
    })
}

fn one(bytes: &[u8]) -> Verdict {
    let Ok(path) = RelPath::parse_dir(bytes) else {
        return ensure(RelPath::parse(bytes).is_err(), || {
            "a file where no directory can be".to_owned()
        });
    };
    ensure(!bytes.starts_with(b"/"), || {
        format!("{path:?} was given as an absolute path")
    })?;
    ensure(
        path.is_root() || !bytes.ends_with(b"/") || RelPath::parse(bytes).is_err(),
        || format!("{path:?} ends in a slash and names a file"),
    )?;
    ensure(
        path.as_bytes().len() <= PATH_BYTES_MAX
            && path.components().all(|name| name.len() <= NAME_BYTES_MAX),
        || format!("{path:?} is longer than the kernel takes"),
    )?;
    let text = path.as_bytes();
    ensure(!text.starts_with(b"/") && !text.contains(&0), || {
        format!("{path:?} is absolute or holds a NUL")
    })?;
    ensure(
        text == b"." || text.split(|byte| *byte == b'/').all(is_name),
        || format!("{path:?} has a name that moves"),
    )?;
    ensure(RelPath::parse(text).as_ref() == Ok(&path), || {
        format!("{path:?} reads back otherwise")
    })?;
    match (path.parent(), path.file_name()) {
        (None, None) => ensure(path.is_root(), || format!("{path:?} has no parent")),
        (Some(parent), Some(name)) => ensure(parent.child(name).as_ref() == Ok(&path), || {
            format!("{path:?} is not the child of its parent")
        }),
        (Some(_), None) | (None, Some(_)) => Err(format!("{path:?} has half a parent")),
    }
}

fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..")
}
