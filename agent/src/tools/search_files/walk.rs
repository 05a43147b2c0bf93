//! Every file below a directory, in the order the file system keeps them.

use hermitcrab_core::authority::Verb;
use hermitcrab_sandbox::dircap::Kind;

use crate::runtime::{Hands, Place, Stop};

/// Directories and files one search looks at.
const PLACES_MAX: usize = 200_000;

/// A found file: as printed, and where it is.
pub(super) struct Found {
    pub printed: String,
    pub place: Place,
}

pub(super) fn joined(dir: &str, name: &str) -> String {
    if dir.ends_with('/') {
        format!("{dir}{name}")
    } else {
        format!("{dir}/{name}")
    }
}

/// Every regular file below, hidden directories left out, links not followed.
/// Level by level, so that one decision covers many directories.
pub(super) fn files_below(
    hands: &mut Hands<'_>,
    path: &str,
    place: &Place,
) -> Result<Vec<Found>, Stop> {
    /// A directory whose names are known: its own files come before, after or
    /// between those of the directories in it, in the order they are kept in.
    enum Node {
        File(Found),
        Dir(String, Place, Vec<usize>),
    }
    let mut nodes = vec![Node::Dir(path.to_owned(), place.clone(), Vec::new())];
    let mut level = vec![0_usize];
    while !level.is_empty() && nodes.len() < PLACES_MAX {
        let places: Vec<Place> = level
            .iter()
            .filter_map(|at| match nodes.get(*at) {
                Some(Node::Dir(_, place, _)) => Some(place.clone()),
                Some(Node::File(_)) | None => None,
            })
            .collect();
        let listed = hands.names_all(&places)?;
        let mut next = Vec::new();
        for (at, entries) in level.iter().zip(listed) {
            let Some(Node::Dir(printed, place, _)) = nodes.get(*at) else {
                continue;
            };
            let (printed, place) = (printed.clone(), place.clone());
            let mut children = Vec::new();
            for entry in entries.into_iter().flatten() {
                let name = String::from_utf8_lossy(&entry.name).into_owned();
                let Some(child) = hands.child(&place, &entry.name) else {
                    continue;
                };
                if hands.is_protected(&child) {
                    continue;
                }
                let printed = joined(&printed, &name);
                match entry.kind {
                    Kind::File => {
                        children.push(nodes.len());
                        nodes.push(Node::File(Found {
                            printed,
                            place: child,
                        }));
                    }
                    Kind::Dir if !name.starts_with('.') && hands.freely(Verb::FsList, &child) => {
                        children.push(nodes.len());
                        next.push(nodes.len());
                        nodes.push(Node::Dir(printed, child, Vec::new()));
                    }
                    Kind::Dir | Kind::Symlink | Kind::Special => {}
                }
            }
            if let Some(Node::Dir(_, _, known)) = nodes.get_mut(*at) {
                *known = children;
            }
        }
        level = next;
    }
    // In order: each directory where its name stands.
    let mut slots: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    let mut found = Vec::new();
    let mut todo = vec![0_usize];
    while let Some(at) = todo.pop() {
        match slots.get_mut(at).and_then(Option::take) {
            Some(Node::File(file)) => found.push(file),
            Some(Node::Dir(_, _, children)) => todo.extend(children.into_iter().rev()),
            None => {}
        }
    }
    Ok(found)
}
