//! Where the directories of the law lie, what is protected, and what lies there.

use std::sync::LazyLock;

use hermitcrab_core::authority::{Cap, Object};
use hermitcrab_core::grant::Grant;
use hermitcrab_core::path::RelPath;
use hermitcrab_core::session::Session;

use super::super::opened::{LOCATIONS, PROTECTED};

/// Where the two directories lie, and what is protected.
static KNOWN_PLACES: LazyLock<[Option<RelPath>; 3]> = LazyLock::new(|| {
    let [first, second] = LOCATIONS;
    [first, second, PROTECTED].map(|place| RelPath::parse(place).ok())
});

/// Where a place lies, seen from `/`.
fn location(cap: &Cap) -> Option<RelPath> {
    let Object::Dir { dir, below, .. } = cap.object() else {
        return None;
    };
    let [first, second, _] = &*KNOWN_PLACES;
    let location = match dir.index() {
        0 => first,
        1 => second,
        _ => &None,
    };
    location.as_ref()?.join(below).ok()
}

/// Is all of it, as far as it is about files, where the session works?
pub(super) fn is_where_it_works(grant: &Grant) -> bool {
    let [workspace, ..] = &*KNOWN_PLACES;
    let is_there = |cap: &Cap| match (cap.object(), location(cap), workspace) {
        (Object::Dir { .. }, Some(place), Some(workspace)) => place.starts_with(workspace),
        (Object::Dir { .. }, ..) => false,
        _ => true,
    };
    grant.authority().caps().iter().all(is_there)
}

/// Does `cap` change what is protected?
pub(super) fn is_protected_change(session: &Session, cap: &Cap) -> bool {
    let Object::Dir { .. } = cap.object() else {
        return false;
    };
    let [.., protected] = &*KNOWN_PLACES;
    let inside = match (location(cap), protected) {
        (Some(place), Some(protected)) => place.starts_with(protected),
        _ => true,
    };
    inside && cap.verb().changes_files() && !session.has_ended()
}
