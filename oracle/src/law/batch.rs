//! Planning of a batch of calls.

use std::collections::BTreeMap;

use arbitrary::Unstructured;
use hermitcrab_core::batch::{
    Footprint, Lane, LinkFact, Links, ScopePath, Standing, canonical, plan,
};

use super::{Verdict, ensure, steps, text};

const CALLS_MAX: usize = 24;
const LINKS_MAX: usize = 6;
const PATH_PIECES: &[&str] = &["/", "a", "b", "..", ".", "~", "//", "ab", "\0", "ü"];

/// A tree that is nothing but its links.
struct Tree(BTreeMap<ScopePath, String>);

impl Links for Tree {
    fn look(&self, path: &ScopePath) -> LinkFact {
        match self.0.get(path).map(String::as_str) {
            Some("") => LinkFact::Unknown,
            Some(target) => LinkFact::Target(target.to_owned()),
            None => LinkFact::NotALink,
        }
    }
}

/// Build a tree of links and a batch over it; plan the batch.
pub fn check(bytes: &[u8]) -> Verdict {
    let mut bytes = Unstructured::new(bytes);
    let links = bytes.int_in_range(0..=LINKS_MAX).unwrap_or(0);
    let tree = Tree(
        (0..links)
            .filter_map(|_| {
                let name = format!("/{}", text(&mut bytes, &["a", "b", "/", "ab"], 3));
                let target = text(&mut bytes, PATH_PIECES, 4);
                // Nobody asks for a link by another name than its canonical one.
                let path = ScopePath::lexical(&name).ok()?;
                (path.as_str() == name).then_some((path, target))
            })
            .collect(),
    );
    let standing = Standing {
        cwd: "/a/b",
        home: bytes.ratio(1, 2).unwrap_or(false).then_some("/a"),
    };
    let calls = bytes.int_in_range(0..=CALLS_MAX).unwrap_or(0);
    let mut batch = Vec::new();
    for _ in 0..calls {
        batch.push(match bytes.int_in_range(0..=5_u8).unwrap_or(0) {
            0 => Footprint::Barrier,
            1 => Footprint::Independent,
            _ => {
                let raw = text(&mut bytes, PATH_PIECES, 6);
                match canonical(&raw, standing, &tree) {
                    Ok(path) => {
                        scope_path(&path)?;
                        Footprint::Path(path)
                    }
                    Err(_) => Footprint::Barrier,
                }
            }
        });
    }
    steps::add(u64::try_from(batch.len()).unwrap_or(0));
    segments(&batch)
}

/// A scope path is its own lexical reading, and has no name that moves.
pub(super) fn scope_path(path: &ScopePath) -> Verdict {
    let again = ScopePath::lexical(path.as_str());
    ensure(again.as_ref() == Ok(path), || {
        format!("a path reads as another: {path} {again:?}")
    })?;
    // Not by its own `names`: what is between slashes is what others will read.
    let stays = match path.as_str() {
        "/" => true,
        text => text
            .strip_prefix('/')
            .is_some_and(|names| !names.split('/').any(|name| matches!(name, "" | "." | ".."))),
    };
    ensure(stays, || format!("a path has a name that moves: {path}"))
}

fn segments(batch: &[Footprint]) -> Verdict {
    let planned = plan(batch);
    // First: where a call is missing, the segments after it hold other calls.
    let calls: usize = planned.iter().map(|segment| segment.calls).sum();
    ensure(calls >= batch.len(), || {
        format!("calls left out: {} of {}", batch.len() - calls, batch.len())
    })?;
    let mut rest = batch;
    for segment in planned {
        ensure(segment.calls > 0, || "a segment of no calls".to_owned())?;
        let Some((calls, after)) = rest.split_at_checked(segment.calls) else {
            return Err("more calls planned than asked for".to_owned());
        };
        rest = after;
        match segment.lane {
            Lane::Sequential => {}
            Lane::Parallel => apart(calls)?,
        }
    }
    Ok(())
}

/// No barrier, and no two calls on overlapping paths.
fn apart(calls: &[Footprint]) -> Verdict {
    let mut paths: Vec<&ScopePath> = Vec::new();
    for call in calls {
        match call {
            Footprint::Barrier => return Err("a barrier runs beside others".to_owned()),
            Footprint::Independent => {}
            Footprint::Path(path) => {
                if let Some(other) = paths.iter().find(|held| is_on_the_way(held, path)) {
                    return Err(format!(
                        "calls on the same file run beside each other: {path} {other}"
                    ));
                }
                paths.push(path);
            }
        }
    }
    Ok(())
}

/// Whether the names of one begin with all names of the other, told by these alone.
fn is_on_the_way(one: &ScopePath, other: &ScopePath) -> bool {
    one.names()
        .zip(other.names())
        .all(|(one, other)| one == other)
}
