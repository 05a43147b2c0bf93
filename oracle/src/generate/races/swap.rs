//! What changes places with what: something harmless in the workspace, and a
//! link that leads out of it.

use bisim_world::protocol::{FileKind, FileSpec};

use crate::case::CWD_DEFAULT;

/// The link, in its own place; nobody is told of it.
pub(super) const OTHER: &str = "pz/.aside";

/// A pair of names.
#[derive(Debug)]
pub struct Swap {
    /// Stable, unique, kebab-case.
    pub name: &'static str,
    /// What changes places, relative to the workspace or from the root.
    pub one: &'static str,
    /// What the operation is given: the same, or something below it.
    pub path: &'static str,
    /// Where the link leads.
    target: &'static str,
    /// Whether a file is there.
    is_there: bool,
    /// What it says.
    text: &'static str,
    /// What is found under the same name where the link leads, if the world has no such file
    /// by itself.
    beyond: Option<&'static str>,
}

/// What a file says that lies where a link leads: a replacement is made in it as well.
const BEYOND: &str = "inside\nof somebody else\n";

/// A path of the world: those that do not say so are relative to the workspace.
pub(super) fn whole(path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{CWD_DEFAULT}/{path}")
    }
}

impl Swap {
    /// Both names, and what is below the harmless one.
    #[must_use]
    pub fn files(&self) -> Vec<FileSpec> {
        let spec = |path: &str, kind| FileSpec {
            path: whole(path),
            kind,
            mode: None,
        };
        let mut files = Vec::new();
        if self.path != self.one || !self.is_there {
            files.push(spec(self.one, FileKind::Dir(true)));
        }
        if self.is_there {
            files.push(spec(self.path, FileKind::Text(self.text.to_owned())));
        }
        let beyond = self.beyond.into_iter();
        files.extend(beyond.map(|path| spec(path, FileKind::Text(BEYOND.to_owned()))));
        files.push(spec(OTHER, FileKind::Symlink(self.target.to_owned())));
        files
    }
}

const fn swap(
    name: &'static str,
    (one, path): (&'static str, &'static str),
    target: &'static str,
    is_there: bool,
) -> Swap {
    Swap {
        name,
        one,
        path,
        target,
        is_there,
        text: "inside\n",
        beyond: None,
    }
}

/// The same with a file that nobody asks about because of its name, and that every tool
/// takes for text.
const fn plain(
    name: &'static str,
    (one, path): (&'static str, &'static str),
    target: &'static str,
    beyond: Option<&'static str>,
) -> Swap {
    Swap {
        beyond,
        ..swap(name, (one, path), target, true)
    }
}

/// A pair beyond the workspace: what changes places, a file there and what it says, and
/// where the link leads.
pub(super) const fn own(
    name: &'static str,
    one: &'static str,
    (path, text): (&'static str, &'static str),
    target: &'static str,
) -> Swap {
    Swap {
        name,
        one,
        path,
        target,
        is_there: true,
        text,
        beyond: None,
    }
}

const FILE: (&str, &str) = ("pz/flipped.txt", "pz/flipped.txt");

/// All pairs, in a fixed order.
pub const SWAPS: &[Swap] = &[
    swap("file-to-key", FILE, "/home/u/.ssh/id_rsa", true),
    swap("file-to-data", FILE, "/srv/data/db.sqlite", true),
    swap("file-to-fresh", FILE, "/srv/data/new.txt", true),
    swap(
        "directory-to-keys",
        ("pz/flipped", "pz/flipped/id_rsa"),
        "/home/u/.ssh",
        true,
    ),
    swap(
        "directory-to-data",
        ("pz/flipped", "pz/flipped/db.sqlite"),
        "/srv/data",
        true,
    ),
    swap(
        "directory-to-data-fresh",
        ("pz/flipped", "pz/flipped/new.txt"),
        "/srv/data",
        false,
    ),
    swap(
        "directory-itself",
        ("pz/flipped", "pz/flipped"),
        "/home/u/.ssh",
        false,
    ),
    swap(
        "parent-to-home",
        ("pz/flipped", "pz/flipped/.ssh/id_rsa"),
        "/home/u",
        true,
    ),
    swap(
        "parent-to-data",
        ("pz/flipped", "pz/flipped/data/db.sqlite"),
        "/srv",
        true,
    ),
    plain(
        "directory-to-text",
        ("pz/flipped", "pz/flipped/notes.txt"),
        "/srv/data",
        Some("/srv/data/notes.txt"),
    ),
    plain(
        "directory-to-room",
        ("pz/flipped", "pz/flipped/notes.txt"),
        "/srv/data",
        None,
    ),
    plain(
        "parent-to-text",
        ("pz/flipped", "pz/flipped/data/notes.txt"),
        "/srv",
        Some("/srv/data/notes.txt"),
    ),
];
