//! From the path a model writes to a place it can be held to.

use std::path::{Path, PathBuf};

use hermitcrab_core::{
    authority::{DirId, Extent},
    limits::{NAME_BYTES_MAX, PATH_BYTES_MAX},
    outcome::{Denial, DenialCode},
    path::{PathError, RelPath},
};

use super::{
    mounts::{Mounts, lexical},
    visible::one_line,
};
use crate::ambient;

/// Where a path leads, by spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The directory it lies in.
    pub dir: DirId,
    /// Where in it.
    pub below: RelPath,
    /// The whole path, for results; the model gave it or could have.
    pub absolute: String,
}

/// A place, or a name in the directory at a place: what a search finds by the
/// thousand, and mostly only looks at by name.
#[derive(Clone, Copy, Debug)]
pub enum Spot<'p> {
    /// This place.
    At(&'p Place),
    /// This place and all that lies below it.
    All(&'p Place),
    /// This name in the directory there.
    In(&'p Place, &'p [u8]),
}

impl Spot<'_> {
    /// The directory it lies in, as the session knows it.
    pub(super) fn dir(self) -> DirId {
        match self {
            Self::At(place) | Self::All(place) | Self::In(place, _) => place.dir,
        }
    }

    /// Where in that.
    ///
    /// # Errors
    /// The name is none, or the path is too long.
    pub(super) fn below(self) -> Result<RelPath, PathError> {
        match self {
            Self::At(place) | Self::All(place) => Ok(place.below.clone()),
            Self::In(place, name) => place.below.child(name),
        }
    }

    /// How much of what is there it stands for.
    pub(super) const fn extent(self) -> Extent {
        match self {
            Self::At(_) | Self::In(..) => Extent::Alone,
            Self::All(_) => Extent::Tree,
        }
    }

    /// What is asked about, in a question.
    pub(super) fn asked(self) -> String {
        let of = self.extent().asked_as();
        format!("{of}{}", one_line(&self.absolute()))
    }

    /// The whole path, for results.
    pub(super) fn absolute(self) -> String {
        match self {
            Self::At(place) | Self::All(place) => place.absolute.clone(),
            Self::In(Place { absolute, .. }, name) => {
                let between = if absolute.ends_with('/') { "" } else { "/" };
                format!("{absolute}{between}{}", String::from_utf8_lossy(name))
            }
        }
    }

    /// The place.
    ///
    /// # Errors
    /// The name is none, or the path is too long.
    pub fn place(self) -> Result<Place, PathError> {
        Ok(Place {
            dir: self.dir(),
            below: self.below()?,
            absolute: self.absolute(),
        })
    }
}

/// Works out where a path leads, seen from `cwd`.
///
/// A path outside every known directory is refused here: there is no handle to
/// name it by.
pub fn resolve(path: &str, cwd: &Path, home: &Path, mounts: &Mounts) -> Result<Place, Denial> {
    if path.contains('\0') {
        return Err(Denial::new(DenialCode::PathNul, path));
    }
    let written = written(path, home);
    let relative = written.is_relative();
    let absolute =
        lexical(&cwd.join(written)).ok_or_else(|| Denial::new(DenialCode::NoCap, path))?;
    match mounts.locate(&absolute) {
        Some((dir, below)) => Ok(Place {
            dir,
            below,
            absolute: absolute.to_string_lossy().into_owned(),
        }),
        None if relative && path.split('/').any(|name| name == "..") => {
            Err(Denial::new(DenialCode::PathEscapes, path))
        }
        None => Err(Denial::new(DenialCode::NoCap, path)),
    }
}

/// The absolute spelling of a path that leads below a known directory and is, or
/// holds a name that is, longer than the system takes.
pub fn too_long(path: &str, cwd: &Path, home: &Path, mounts: &Mounts) -> Option<String> {
    if path.len() <= NAME_BYTES_MAX || path.contains('\0') {
        return None;
    }
    let absolute = lexical(&cwd.join(written(path, home)))?;
    let long = absolute.as_os_str().len() > PATH_BYTES_MAX
        || absolute.iter().any(|name| name.len() > NAME_BYTES_MAX);
    let known = || {
        let mut above = absolute.ancestors();
        above.any(|above| mounts.locate(above).is_some())
    };
    (long && known()).then(|| absolute.to_string_lossy().into_owned())
}

/// Whether a path begins at the home directory of a user there is none of.
pub fn is_of_nobody(path: &str) -> bool {
    let name = path
        .strip_prefix('~')
        .and_then(|rest| rest.split('/').next());
    name.is_some_and(|name| !name.is_empty() && ambient::home_of(name).is_none())
}

/// A path as a shell reads its beginning: `~name` from that user's home directory,
/// if there is such a user. Where that leads is held or not, like any place.
fn written(path: &str, home: &Path) -> PathBuf {
    let named = path.strip_prefix('~').filter(|rest| !rest.is_empty());
    let (name, below) = match named.map(|rest| rest.split_once('/').unwrap_or((rest, ""))) {
        Some((name, below)) if !name.is_empty() => (name, below),
        _ => return tilde_expanded(path, home),
    };
    match ambient::home_of(name) {
        Some(home) if below.is_empty() => home,
        Some(home) => home.join(below.trim_start_matches('/')),
        None => PathBuf::from(path),
    }
}

/// `~` and `~/x` from the home directory; anything else as it is.
pub fn tilde_expanded(path: &str, home: &Path) -> PathBuf {
    match path.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    }
}
