//! Every file below a directory, in the order the file system keeps them.

use hermitcrab_core::authority::Verb;
use hermitcrab_sandbox::dircap::{Entry, Kind};

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

/// A directory whose names are known: its own files come before, after or
/// between those of the directories in it, in the order they are kept in.
enum Node {
    File(Found),
    Dir(String, Place, Vec<usize>),
}

/// Every regular file below, hidden directories left out, links not followed.
/// Level by level, so that one decision covers many directories; `names` are
/// those of the first one, if it was listed already.
pub(super) fn files_below(
    hands: &mut Hands<'_>,
    path: &str,
    place: &Place,
    names: Option<Vec<Entry>>,
) -> Result<Vec<Found>, Stop> {
    let mut nodes = vec![Node::Dir(path.to_owned(), place.clone(), Vec::new())];
    let mut level = vec![0_usize];
    let mut known = names.map(|names| vec![Some(names)]);
    while !level.is_empty() && nodes.len() < PLACES_MAX {
        let listed = match known.take() {
            Some(listed) => listed,
            None => {
                let places: Vec<&Place> = level
                    .iter()
                    .filter_map(|at| match nodes.get(*at) {
                        Some(Node::Dir(_, place, _)) => Some(place),
                        Some(Node::File(_)) | None => None,
                    })
                    .collect();
                hands.names_all(&places)?
            }
        };
        let mut next = Vec::new();
        for (at, entries) in level.iter().zip(listed) {
            let Some(Node::Dir(printed, place, _)) = nodes.get(*at) else {
                continue;
            };
            let printed = printed.clone();
            let entries = hands.children(place, entries.unwrap_or_default());
            let mut children = Vec::with_capacity(entries.len());
            for (entry, child) in entries {
                let is_dir = match entry.kind {
                    Kind::File => false,
                    Kind::Dir => true,
                    Kind::Symlink | Kind::Special => continue,
                };
                if is_dir && (entry.name.starts_with(b".") || !hands.freely(Verb::FsList, &child)) {
                    continue;
                }
                let printed = joined(&printed, &String::from_utf8_lossy(&entry.name));
                children.push(nodes.len());
                nodes.push(if is_dir {
                    next.push(nodes.len());
                    Node::Dir(printed, child, Vec::new())
                } else {
                    Node::File(Found {
                        printed,
                        place: child,
                    })
                });
            }
            if let Some(Node::Dir(_, _, known)) = nodes.get_mut(*at) {
                *known = children;
            }
        }
        level = next;
    }
    // In order: each directory where its name stands.
    let mut slots: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    let mut found = Vec::with_capacity(slots.len());
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
