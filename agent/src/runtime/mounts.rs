//! The directories a session knows, and which of them a path lies in.

use std::{
    ffi::OsStr,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use hermitcrab_core::{authority::DirId, path::RelPath, session::Event};
use hermitcrab_sandbox::dircap::DirCap;

use super::{RuntimeError, machine::Machine};
use crate::audit::printed::note_of_dir;

/// An open directory and the path it was opened at.
#[derive(Debug)]
pub struct Mount {
    /// Absolute, without `.` and `..`.
    pub path: PathBuf,
    /// Where it lay, with links followed, when it was opened.
    lies: PathBuf,
    /// The capability.
    pub cap: DirCap,
}

/// All open directories. A place belongs to the deepest one above it, so every
/// place has one name.
#[derive(Clone, Debug, Default)]
pub struct Mounts {
    list: Vec<Arc<Mount>>,
}

impl Mounts {
    /// Opens a directory unless it is known.
    pub fn open(&mut self, machine: &Machine, path: &Path) -> Result<DirId, RuntimeError> {
        let path = lexical(path).ok_or_else(|| RuntimeError::Path(path.to_owned()))?;
        if let Some(known) = self.list.iter().find(|mount| mount.path == path) {
            return Ok(known.cap.id());
        }
        // The rules hold for places, so they are told where a link leads.
        let lies = real(&path);
        let place = from_root(&lies)?;
        let id = machine
            .arrange(|session| session.add_dir(place))
            .map_err(RuntimeError::Limit)?;
        let cap = DirCap::open_ambient_dir(&path, id)
            .map_err(|error| RuntimeError::Directory(path.clone(), error))?;
        // Records name it by its number; whoever reads them finds its path here.
        let spelled = match from_root(&path)? {
            below if below.is_root() => "/".to_owned(),
            below => format!("/{below}"),
        };
        machine.step(Event::Note(note_of_dir(&id.to_string(), &spelled)))?;
        self.list.push(Arc::new(Mount { path, lies, cap }));
        Ok(id)
    }

    /// The directory with this handle.
    pub fn get(&self, id: DirId) -> Option<&Mount> {
        self.list
            .iter()
            .find(|mount| mount.cap.id() == id)
            .map(Arc::as_ref)
    }

    /// The deepest directory above a path, and the path from there.
    pub fn locate(&self, path: &Path) -> Option<(DirId, RelPath)> {
        let mount = self
            .list
            .iter()
            .filter(|mount| path.starts_with(&mount.path))
            .max_by_key(|mount| mount.path.as_os_str().len())?;
        let below = relative(path, &mount.path)?;
        Some((mount.cap.id(), below))
    }

    /// What a path is called where its directory really lies, if that was opened through a link.
    pub fn behind_links(&self, path: &Path) -> Option<PathBuf> {
        let (dir, below) = self.locate(path)?;
        let mount = self.get(dir)?;
        (mount.lies != mount.path).then(|| match below.is_root() {
            true => mount.lies.clone(),
            false => mount.lies.join(OsStr::from_bytes(below.as_bytes())),
        })
    }

    /// The directories strictly below a path.
    pub fn below(&self, path: &Path) -> impl Iterator<Item = &Mount> {
        let path = path.to_owned();
        self.list
            .iter()
            .map(Arc::as_ref)
            .filter(move |mount| mount.path != path && mount.path.starts_with(&path))
    }

    /// The absolute path of a place.
    pub fn absolute(&self, id: DirId, below: &RelPath) -> Option<PathBuf> {
        let mount = self.get(id)?;
        if below.is_root() {
            return Some(mount.path.clone());
        }
        Some(mount.path.join(OsStr::from_bytes(below.as_bytes())))
    }
}

fn relative(path: &Path, base: &Path) -> Option<RelPath> {
    let rest = path.strip_prefix(base).ok()?;
    if rest.as_os_str().is_empty() {
        return Some(RelPath::root());
    }
    RelPath::parse_dir(rest.as_os_str().as_bytes()).ok()
}

/// An absolute path as seen from `/`.
pub fn from_root(path: &Path) -> Result<RelPath, RuntimeError> {
    let path = lexical(path).ok_or_else(|| RuntimeError::Path(path.to_owned()))?;
    relative(&path, Path::new("/")).ok_or(RuntimeError::Path(path))
}

/// Where a path leads once links are followed, as far as it exists.
pub fn real(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        let Ok(found) = ancestor.canonicalize() else {
            continue;
        };
        return match path.strip_prefix(ancestor) {
            Ok(rest) if !rest.as_os_str().is_empty() => found.join(rest),
            _ => found,
        };
    }
    path.to_owned()
}

/// An absolute path with `.`, `..` and double slashes worked out by spelling
/// alone; `None` if it is not absolute.
pub fn lexical(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    let mut names: Vec<&OsStr> = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            Component::ParentDir => {
                names.pop();
            }
            Component::Normal(name) => names.push(name),
        }
    }
    let mut bytes = Vec::new();
    for name in names {
        bytes.push(b'/');
        bytes.extend_from_slice(name.as_bytes());
    }
    if bytes.is_empty() {
        bytes.push(b'/');
    }
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::lexical;

    #[test]
    fn spelling_is_worked_out_without_looking() {
        let check = |path: &str, expected: &str| {
            assert_eq!(lexical(Path::new(path)), Some(PathBuf::from(expected)))
        };
        check("/a/./b//c/../d", "/a/b/d");
        check("/../..", "/");
        check("/a/", "/a");
        assert_eq!(lexical(Path::new("a/b")), None);
    }
}
