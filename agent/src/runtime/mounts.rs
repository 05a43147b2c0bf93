//! The directories a session knows, and which of them a path lies in.

use std::{
    ffi::{OsStr, OsString},
    os::{
        fd::AsFd as _,
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use hermitcrab_core::{authority::DirId, path::RelPath, session::Event};
use hermitcrab_sandbox::dircap::DirCap;

use super::{
    RuntimeError,
    machine::Machine,
    other_names::{OtherName, other_names},
};
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
    /// Whether it is another file system than the directory above it that was open before.
    pub is_mounted: bool,
}

/// All open directories. A place belongs to the deepest one above it, so every
/// place has one name.
#[derive(Clone, Debug, Default)]
pub struct Mounts {
    list: Vec<Arc<Mount>>,
}

/// As many links as the kernel follows.
const LINKS_MAX: usize = 40;

impl Mounts {
    /// Opens a directory unless it is known.
    pub fn open(&mut self, machine: &Machine, path: &Path) -> Result<DirId, RuntimeError> {
        let path = lexical(path).ok_or_else(|| RuntimeError::Path(path.to_owned()))?;
        if let Some(known) = self.list.iter().find(|mount| mount.path == path) {
            return Ok(known.cap.id());
        }
        // The rules hold for places, so they are told where a link leads.
        let lies = real(&path);
        let open = |id| DirCap::open_ambient_dir(&path, id);
        self.add(machine, (path.clone(), lies), false, open)
    }

    /// Opens every directory on the way to a place on which another file system is mounted:
    /// what is held of the one above ends there.
    pub fn open_mounted(&mut self, machine: &Machine, place: &Path) -> Result<(), RuntimeError> {
        // Each one opened is nearer to the place than the one before.
        while let Some((dir, below)) = self.locate(place)
            && let Some(above) = self
                .list
                .iter()
                .find(|mount| mount.cap.id() == dir)
                .cloned()
            && let Some(at) = above.cap.mounted_towards(&below)
        {
            let from = |base: &Path| base.join(OsStr::from_bytes(at.as_bytes()));
            let named = (from(&above.path), from(&above.lies));
            self.add(machine, named, true, |id| above.cap.open_mounted(&at, id))?;
        }
        Ok(())
    }

    /// Opens a directory under the number that the rules know it by, and keeps it.
    fn add(
        &mut self,
        machine: &Machine,
        (path, lies): (PathBuf, PathBuf),
        is_mounted: bool,
        open: impl FnOnce(DirId) -> std::io::Result<DirCap>,
    ) -> Result<DirId, RuntimeError> {
        let place = from_root(&lies)?;
        let id = machine
            .arrange(|session| session.add_dir(place))
            .map_err(RuntimeError::Limit)?;
        let cap = open(id).map_err(|error| RuntimeError::Directory(path.clone(), error))?;
        // What is said of a place by another path of it holds for it by this one.
        let others = other_names(cap.as_fd(), &lies)
            .map_err(|error| RuntimeError::Directory(path.clone(), error))?;
        for OtherName { below, at } in others {
            let (below, at) = (from_root(&Path::new("/").join(below))?, from_root(&at)?);
            machine
                .arrange(|session| session.also_lies(id, below, at))
                .map_err(RuntimeError::Limit)?;
        }
        // Records name it by its number; whoever reads them finds its path here.
        let spelled = match from_root(&path)? {
            below if below.is_root() => "/".to_owned(),
            below => format!("/{below}"),
        };
        machine.step(Event::Note(note_of_dir(&id.to_string(), &spelled)))?;
        let mount = Mount {
            path,
            lies,
            cap,
            is_mounted,
        };
        self.list.push(Arc::new(mount));
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

/// The same, also through links that lead to nothing yet: who makes that later has made
/// what is found under this name.
pub fn led_to(path: &Path) -> PathBuf {
    way_to(path).1
}

/// The links on the way to what an absolute path names, each by where it really lies, and where
/// the last of them leads, whether anything is there or not. Who may change one of these links
/// decides what the path names.
pub fn way_to(path: &Path) -> (Vec<PathBuf>, PathBuf) {
    let mut links = Vec::new();
    let mut at = PathBuf::new();
    let names = |path: &Path| -> Vec<OsString> {
        let parts = path.components().rev();
        parts.map(|part| part.as_os_str().to_owned()).collect()
    };
    let mut left = names(path);
    while let Some(name) = left.pop() {
        let next = at.join(&name);
        if name == ".." {
            at.pop();
        } else if name == "." {
            // A link may begin with it.
        } else if links.len() < LINKS_MAX
            && let Ok(target) = std::fs::read_link(&next)
        {
            links.push(next);
            left.extend(names(&target));
        } else {
            at = next;
        }
    }
    (links, at)
}

/// A place as it is written, where it leads, and each link on the way. What a link in the midst
/// of it leads to is none of these: other things lie there, too.
pub fn names_of(place: &Path) -> Vec<PathBuf> {
    let (links, led_to) = way_to(place);
    let mut names = vec![place.to_owned(), led_to];
    names.extend(links);
    names
}

/// Where a path leads, if a link stands on the way to it from `home` in a directory that its
/// user can write. Whoever wrote the path down may not have meant that: who may change
/// the directory it named can have put the link there since.
pub fn led_elsewhere(path: &Path, home: &Path) -> Option<PathBuf> {
    use rustix::fs::{Access, access};
    let mut at = path.to_owned();
    for _ in 0..LINKS_MAX {
        let mut way: Vec<&Path> = at.ancestors().collect();
        way.reverse();
        let mut below_home = way.into_iter().filter(|on| !home.starts_with(on));
        let link = below_home.find_map(|on| Some((on, std::fs::read_link(on).ok()?)));
        let (link, target) = link?;
        let above = link.parent()?;
        if access(above, Access::WRITE_OK).is_ok() {
            return Some(real(path));
        }
        let led = above.join(target).join(at.strip_prefix(link).ok()?);
        at = lexical(&led)?;
    }
    Some(real(path))
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
    use std::{
        fs,
        os::unix::fs::symlink,
        path::{Path, PathBuf},
    };

    use super::{led_to, lexical, way_to};

    #[test]
    fn a_link_is_followed_to_what_is_not_there_yet() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        for (target, link) in [
            ("../b/none", "a/far"),
            ("../far", "a/b/twice"),
            ("a/b", "there"),
            ("none/../../x", "odd"),
            ("loop", "loop"),
            ("./b/../b", "a/here"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        for (path, expected) in [
            ("a/far", "b/none"),
            ("a/far/c/d", "b/none/c/d"),
            ("there/twice", "b/none"),
            ("a/b", "a/b"),
            ("a/here/x", "a/b/x"),
            ("there/new", "a/b/new"),
            ("new/far", "new/far"),
            ("loop", "loop"),
        ] {
            assert_eq!(led_to(&root.join(path)), root.join(expected), "{path}");
        }
        let odd = root.parent().unwrap().join("x");
        assert_eq!(led_to(&root.join("odd")), odd);
    }

    #[test]
    fn each_link_on_the_way_is_told_by_where_it_lies() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("real/b")).unwrap();
        for (target, link) in [
            ("real", "by"),
            ("/none", "real/b/out"),
            ("b/out", "real/twice"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        let check = |path: &str, links: &[&str], led_to: &str| {
            let links = links.iter().map(|link| root.join(link)).collect();
            assert_eq!(
                way_to(&root.join(path)),
                (links, root.join(led_to)),
                "{path}"
            );
        };
        check("real/b/x", &[], "real/b/x");
        check("by/b", &["by"], "real/b");
        check("by/twice/x", &["by", "real/twice", "real/b/out"], "/none/x");
        check("real/twice/../x", &["real/twice", "real/b/out"], "/x");
        // One that leads round in a circle is met as often as the kernel would follow it.
        symlink("loop", root.join("loop")).unwrap();
        let (links, at) = way_to(&root.join("loop"));
        assert_eq!((links.len(), at), (super::LINKS_MAX, root.join("loop")));
    }

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
