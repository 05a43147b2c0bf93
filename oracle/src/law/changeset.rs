//! What a command did, read from its private layer.
//!
//! Two trees are made up. The layer that leads from one to the other is made
//! in a directory of its own, once as a copy that is changed and once as an
//! overlay writes it, with a choice of marks; both have to read as the plain
//! difference of the trees, which is computed here without looking at any file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::SystemTime;

use arbitrary::Unstructured;
use hermitcrab_sandbox::changeset::{ChangeSet, What};
use hermitcrab_sandbox::dircap::DirCap;
use rustix::fs::{Mode, OFlags, XattrFlags};
use rustix::time::{ClockId, Timespec};

use super::{Verdict, ensure};
use crate::generate::benign::Desk;

const NAMES: [&str; 4] = ["a", "b", "c", ".hidden"];
const DEPTH_MAX: u8 = 3;
const BYTES_MAX: u64 = 1 << 20;
/// More than four names at each of four depths.
const NAMES_MAX: u64 = 1000;

type Tree = BTreeMap<&'static str, Node>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    File(u8),
    Link(u8),
    Dir(Tree),
}

/// Makes two trees and reads the layer between them.
pub fn check(bytes: &[u8]) -> Verdict {
    let mut bytes = Unstructured::new(bytes);
    let before = tree(&mut bytes, 0);
    let after = changed(&mut bytes, &before, 0);
    let mut expected = BTreeSet::new();
    compare(&before, &after, "", &mut expected);
    for overlay in [false, true] {
        let seen = read(&before, &after, overlay, &mut bytes)?;
        // Without attributes of users there is no such layer to read.
        let Some(seen) = seen else { continue };
        ensure(seen == expected, || {
            let kind = if overlay { "overlay" } else { "copy" };
            format!("{kind}: {before:?} to {after:?} is {seen:?}, not {expected:?}")
        })?;
    }
    Ok(())
}

fn tree(bytes: &mut Unstructured<'_>, depth: u8) -> Tree {
    let mut tree = Tree::new();
    for name in NAMES {
        if let Some(node) = node(bytes, depth) {
            tree.insert(name, node);
        }
    }
    tree
}

fn node(bytes: &mut Unstructured<'_>, depth: u8) -> Option<Node> {
    let content = |bytes: &mut Unstructured<'_>| bytes.int_in_range(0..=2_u8).unwrap_or(0);
    match bytes.int_in_range(0..=7_u8).unwrap_or(0) {
        0..=2 => None,
        3 | 4 => Some(Node::File(content(bytes))),
        5 => Some(Node::Link(content(bytes))),
        _ if depth < DEPTH_MAX => Some(Node::Dir(tree(bytes, depth + 1))),
        _ => None,
    }
}

fn changed(bytes: &mut Unstructured<'_>, before: &Tree, depth: u8) -> Tree {
    let mut after = Tree::new();
    for name in NAMES {
        let node = match (bytes.int_in_range(0..=3_u8).unwrap_or(0), before.get(name)) {
            (0 | 1, Some(Node::Dir(below))) => Some(Node::Dir(changed(bytes, below, depth + 1))),
            (0 | 1, same) => same.cloned(),
            (2, _) => node(bytes, depth),
            _ => None,
        };
        if let Some(node) = node {
            after.insert(name, node);
        }
    }
    after
}

/// What is different, by kind of change and path.
fn compare(before: &Tree, after: &Tree, place: &str, out: &mut BTreeSet<String>) {
    for name in NAMES {
        let path = format!("{place}/{name}");
        match (before.get(name), after.get(name)) {
            (Some(Node::Dir(before)), Some(Node::Dir(after))) => compare(before, after, &path, out),
            (Some(Node::File(old)), Some(Node::File(new))) if old != new => {
                out.insert(format!("modified file {path}"));
            }
            (old, new) if old == new => {}
            (Some(Node::File(_)), Some(Node::File(_))) => {}
            (old, new) => {
                old.inspect(|old| all(old, "deleted", &path, out));
                new.inspect(|new| all(new, "created", &path, out));
            }
        }
    }
}

fn all(node: &Node, what: &str, path: &str, out: &mut BTreeSet<String>) {
    let kind = match node {
        Node::File(_) => "file",
        Node::Link(_) => "link",
        Node::Dir(below) => {
            for (name, node) in below {
                all(node, what, &format!("{path}/{name}"), out);
            }
            "dir"
        }
    };
    out.insert(format!("{what} {kind} {path}"));
}

/// Writes both trees and reads the layer between them; `None` where the file
/// system takes no marks.
fn read(
    before: &Tree,
    after: &Tree,
    overlay: bool,
    bytes: &mut Unstructured<'_>,
) -> Result<Option<BTreeSet<String>>, String> {
    let ground = tempfile::tempdir().map_err(|error| error.to_string())?;
    let made = |error: std::io::Error| format!("cannot make the trees: {error}");
    let (lower, upper) = (ground.path().join("lower"), ground.path().join("upper"));
    for place in [&lower, &upper] {
        directory(place).map_err(made)?;
    }
    write(before, &lower).map_err(made)?;
    let id = Desk::open().ok_or("the session does not open")?.dir();
    let dir = DirCap::open_ambient_dir(&lower, id).map_err(made)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let layer_root = rustix::fs::open(&upper, flags, Mode::empty()).map_err(|e| e.to_string())?;
    let started: Timespec = rustix::time::clock_gettime(ClockId::Realtime);
    if overlay {
        directory(&ground.path().join("work")).map_err(made)?;
        match layer(before, after, &upper, bytes) {
            Err(error)
                if error.raw_os_error() == Some(rustix::io::Errno::OPNOTSUPP.raw_os_error()) =>
            {
                return Ok(None);
            }
            written => written.map_err(made)?,
        }
    } else {
        ChangeSet::copy_layer(&dir, layer_root.as_fd(), BYTES_MAX, NAMES_MAX).map_err(made)?;
        turn(before, after, &upper).map_err(made)?;
    }
    let set =
        ChangeSet::read(layer_root, &dir, BYTES_MAX, started).map_err(|error| error.to_string())?;
    let mut seen = BTreeSet::new();
    for change in set.changes() {
        let path = String::from_utf8_lossy(change.path.as_bytes()).into_owned();
        ensure(
            seen.insert(format!("{} /{path}", word(&change.what))),
            || format!("{path} is listed twice"),
        )?;
    }
    Ok(Some(seen))
}

fn word(what: &What) -> &'static str {
    match what {
        What::CreatedFile { .. } => "created file",
        What::CreatedDir { .. } => "created dir",
        What::CreatedSymlink { .. } => "created link",
        What::ModifiedFile { .. } => "modified file",
        What::DeletedFile { .. } => "deleted file",
        What::DeletedSymlink { .. } => "deleted link",
        What::DeletedDir => "deleted dir",
        What::CreatedSpecial => "created special",
        What::DeletedSpecial => "deleted special",
        What::ModifiedMode { .. } => "modified mode",
        What::ModifiedTime { .. } => "modified time",
        What::Xattrs { .. } => "modified attributes",
        What::MovedHere { .. } => "moved here",
        What::MovedAway { .. } => "moved away",
    }
}

fn directory(place: &Path) -> std::io::Result<()> {
    fs::create_dir(place)?;
    fs::set_permissions(place, fs::Permissions::from_mode(0o755))
}

fn one(node: &Node, place: &Path) -> std::io::Result<()> {
    match node {
        Node::File(content) => {
            fs::write(place, [*content])?;
            // A time would be a change by itself, and is not what this is about.
            let file = fs::File::options().append(true).open(place)?;
            file.set_modified(SystemTime::UNIX_EPOCH)?;
            fs::set_permissions(place, fs::Permissions::from_mode(0o644))
        }
        Node::Link(target) => symlink(format!("t{target}"), place),
        Node::Dir(below) => {
            directory(place)?;
            write(below, place)
        }
    }
}

fn write(tree: &Tree, place: &Path) -> std::io::Result<()> {
    tree.iter()
        .try_for_each(|(name, node)| one(node, &place.join(name)))
}

/// Makes one tree of the other, as a command would.
fn turn(before: &Tree, after: &Tree, place: &Path) -> std::io::Result<()> {
    for name in NAMES {
        let path = place.join(name);
        match (before.get(name), after.get(name)) {
            (old, new) if old == new => {}
            (Some(Node::Dir(before)), Some(Node::Dir(after))) => turn(before, after, &path)?,
            (Some(Node::File(_)), Some(Node::File(content))) => fs::write(&path, [*content])?,
            (old, new) => {
                match old {
                    Some(Node::Dir(_)) => fs::remove_dir_all(&path)?,
                    Some(Node::File(_) | Node::Link(_)) => fs::remove_file(&path)?,
                    None => {}
                }
                new.map_or(Ok(()), |new| one(new, &path))?;
            }
        }
    }
    Ok(())
}

/// Writes only what is different, with marks for what is gone. A directory may
/// be merged or hide what is below it.
fn layer(
    before: &Tree,
    after: &Tree,
    place: &Path,
    bytes: &mut Unstructured<'_>,
) -> std::io::Result<()> {
    for name in NAMES {
        let path = place.join(name);
        match (before.get(name), after.get(name)) {
            (old, new) if old == new => {}
            (Some(_), None) => {
                fs::write(&path, [])?;
                mark(&path, "user.overlay.whiteout", b"")?;
            }
            (Some(Node::Dir(below)), Some(Node::Dir(kept))) => {
                directory(&path)?;
                if bytes.arbitrary().unwrap_or(false) {
                    mark(&path, "user.overlay.opaque", b"y")?;
                    write(kept, &path)?;
                } else {
                    mark(&path, "user.overlay.opaque", b"x")?;
                    layer(below, kept, &path, bytes)?;
                }
            }
            (old, Some(new)) => {
                one(new, &path)?;
                if old.is_some() && matches!(new, Node::Dir(_)) {
                    mark(&path, "user.overlay.opaque", b"y")?;
                }
            }
            (None, None) => {}
        }
    }
    Ok(())
}

fn mark(path: &Path, name: &str, value: &[u8]) -> std::io::Result<()> {
    Ok(rustix::fs::setxattr(
        path,
        name,
        value,
        XattrFlags::empty(),
    )?)
}
