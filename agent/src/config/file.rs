//! The file a configuration stands in, as it is read.
//!
//! It decides what is granted and what is asked about. So it counts only if nobody but the
//! person who runs the program, and root, can have written it; and whatever stands in its
//! place, reading it comes to an end.

use std::{
    fs::Metadata,
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use super::ConfigError;
use crate::given_file;

/// Longer than anybody writes.
const BYTES_MAX: u64 = 16 << 20;

/// What stands in a person's own file; `None` if there is none. A link that leads nowhere is
/// more than none: what it led to may have said what is never allowed.
///
/// # Errors
/// It cannot be read, is no file, or somebody else may write it.
pub(super) fn text(path: &Path) -> Result<Option<String>, ConfigError> {
    let io = |error| ConfigError::Io(path.to_owned(), error);
    let (file, seen) = match given_file::open(path) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if given_file::is_of_a_link(path, &error) => {
            return Err(ConfigError::Link(error.to_string()));
        }
        // What lies there and is no file is told as that.
        Err(error) if error.kind() == io::ErrorKind::Other => {
            return Err(ConfigError::Form(path.to_owned(), error.to_string()));
        }
        Err(error) => return Err(io(error)),
    };
    closed(path, &seen)?;
    // Who may write the directory may put another file there, of the person's own as well.
    let real = std::fs::canonicalize(path).map_err(io)?;
    if let Some(dir) = real.parent() {
        closed(dir, &std::fs::metadata(dir).map_err(io)?)?;
    }
    if seen.len() > BYTES_MAX {
        let what = format!("it is longer than {} MiB", BYTES_MAX >> 20);
        return Err(ConfigError::Form(path.to_owned(), what));
    }
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text).map_err(io)?;
    Ok(Some(text))
}

/// Whether nobody else may write it. A group of the same number as the owner is theirs
/// alone, by the custom of systems that give every person one.
fn closed(path: &Path, seen: &Metadata) -> Result<(), ConfigError> {
    let owner = seen.uid();
    let others = |what: String| Err(ConfigError::Others(path.to_owned(), what));
    let close = |who: &str, bit: &str| {
        let named = path.display();
        others(format!(
            "{who} may write it, so it is not used; `chmod {bit} {named}` closes it"
        ))
    };
    if owner != rustix::process::geteuid().as_raw() && owner != 0 {
        return others(format!(
            "it belongs to user {owner}, so it is not used; have its owner give it back, or move it away yourself"
        ));
    }
    // Where everybody may put files and only their owners take them away, each is as good as
    // its own owner and mode say.
    let is_shared = seen.is_dir() && seen.mode() & 0o1000 != 0;
    match seen.mode() {
        _ if is_shared => Ok(()),
        mode if mode & 0o002 != 0 => close("anybody", "o-w"),
        mode if mode & 0o020 != 0 && seen.gid() != owner => close("its group", "g-w"),
        _ => Ok(()),
    }
}
