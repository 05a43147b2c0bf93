//! What `git init` makes, and what libgit2 makes for `cargo new`, to the byte; and the
//! directory `jj git init` makes.
//!
//! Settings and hooks of git name programs, and whoever works in a repository has them
//! run: making one is asked about each time. What git itself makes of an empty place names
//! none, and people begin projects. So the parts of a new store that say nothing but
//! that it is one are left to the grants, and settings with them that name no program and
//! no place ([`crate::store_settings`]). Anything else is asked about as ever.

use crate::action::Action;
use crate::authority::Verb;
use crate::digest::Digest;
use crate::path::RelPath;
use crate::tool::Tool;

/// What a new directory is bound to, of the modes 0700, 0750, 0755 and 0775: so it is
/// neither a file nor a link.
const DIRS: [Digest; 4] = [
    Digest::from_bytes([
        0x80, 0xa6, 0x40, 0x00, 0xbc, 0xdf, 0x0b, 0xd8, 0xc8, 0x02, 0xd5, 0xef, 0x50, 0x8b, 0x8b,
        0x50, 0x97, 0x28, 0xe0, 0xc5, 0x54, 0xe7, 0x65, 0x28, 0xc8, 0x6f, 0x5e, 0x8b, 0x81, 0x70,
        0xc6, 0x7d,
    ]),
    Digest::from_bytes([
        0x38, 0x24, 0x29, 0x23, 0x8d, 0x7e, 0xf0, 0xbe, 0x6d, 0x8d, 0xb1, 0xfc, 0x40, 0x34, 0xc5,
        0xf4, 0xda, 0x97, 0xf5, 0x98, 0xcc, 0xea, 0xd8, 0x82, 0x27, 0xf0, 0xe0, 0xfe, 0x82, 0xdf,
        0xb7, 0x77,
    ]),
    Digest::from_bytes([
        0xc7, 0xb0, 0x53, 0xf9, 0x61, 0x36, 0xed, 0x97, 0x34, 0x96, 0xaf, 0x49, 0xf7, 0x75, 0xd0,
        0xf2, 0x5c, 0x68, 0xcd, 0xc4, 0xc8, 0x4f, 0x19, 0x91, 0x68, 0x51, 0xf0, 0x9c, 0x8d, 0xcb,
        0xdb, 0xfd,
    ]),
    Digest::from_bytes([
        0x64, 0xcf, 0x6e, 0x7e, 0x92, 0xdf, 0x9e, 0x82, 0x15, 0xa8, 0xad, 0x8e, 0xe0, 0x71, 0x4f,
        0x11, 0x60, 0xca, 0x6f, 0xb5, 0xe2, 0x0f, 0xaf, 0x06, 0x85, 0x10, 0xa7, 0xd8, 0x2d, 0x31,
        0x7f, 0x6b,
    ]),
];

/// The settings of a new store: its version, that modes count, that it has a tree, and
/// that changes of branches are noted. Git writes them in one order, libgit2 in another.
const SETTINGS: [Digest; 2] = [SETTINGS_OF_GIT, SETTINGS_OF_LIBGIT2];
const SETTINGS_OF_GIT: Digest = Digest::from_bytes([
    0xcf, 0xe7, 0xba, 0x12, 0x38, 0xc9, 0xa7, 0x8b, 0xe7, 0x53, 0x5d, 0x7c, 0x63, 0xbc, 0xaf, 0x5a,
    0x4d, 0x50, 0x11, 0xd4, 0x6b, 0x07, 0xc9, 0xb4, 0x5d, 0x3b, 0xbf, 0x7d, 0x6c, 0x31, 0x2d, 0xfe,
]);

const SETTINGS_OF_LIBGIT2: Digest = Digest::from_bytes([
    0xce, 0x8d, 0xab, 0xcd, 0xe6, 0x97, 0x4b, 0xb7, 0x3b, 0xbd, 0x4c, 0xa0, 0xf6, 0xfb, 0x29, 0x72,
    0xb1, 0x76, 0xeb, 0xa0, 0x43, 0x03, 0xd8, 0x36, 0xde, 0x2f, 0xa1, 0xf3, 0xf7, 0x00, 0x04, 0x65,
]);

/// The directory that becomes a repository, where this makes a part of its store as git
/// makes it. What else that directory is, is not looked at here.
pub(super) fn begun_by(tool: Tool, action: &Action, location: &RelPath) -> Option<RelPath> {
    // Git is run by way of these; nobody else makes stores.
    let is_gits = matches!(tool, Tool::Terminal | Tool::ExecuteCode);
    if !is_gits || action.verb() != Verb::FsCreate {
        return None;
    }
    let is_dir = DIRS.contains(&action.digest());
    let mut names = location.components().rev();
    if (names.next(), names.next()) == (Some(b"repo"), Some(b".jj")) {
        // A directory there leads nowhere.
        return location.parent()?.parent().filter(|_| is_dir);
    }
    let mut inside = location.components();
    // The outermost one: what lies in a store is not a store of its own here.
    inside.find(|name| *name == b".git")?;
    let (is_part, above) = match (inside.next(), inside.next(), inside.next()) {
        (None, ..) => (is_dir, 1),
        (Some(b"config"), None, _) => {
            let is_begun = SETTINGS.contains(&action.digest());
            (is_begun || action.settings().is_some(), 2)
        }
        (Some(b"hooks" | b"branches"), None, _) => (is_dir, 2),
        // Git runs none of this name.
        (Some(b"hooks"), Some(name), None) => (name.ends_with(b".sample"), 3),
        (Some(_), ..) => (false, 0),
    };
    let mut place = location.clone();
    for _ in 0..above {
        place = place.parent()?;
    }
    is_part.then_some(place)
}
