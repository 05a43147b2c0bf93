//! Actions on files and directories, carried out on directory capabilities.

use std::collections::{BTreeMap, BTreeSet};

use hermitcrab_core::{
    authority::{Extent, Verb},
    plan::{Failure, Raw, Value, eval::Moment, interp::ToolCall},
};
use hermitcrab_sandbox::dircap::{Entry, Kind, Stat};

use super::{Acted, Did, Trouble, Way, record, stopped, text, text_or, texts, truth, whole};
use crate::{
    runtime::{Before, FileChange, Hands, Place, Spot, Stop, in_bytes},
    text::glob,
};

/// Names one action looks at.
pub(super) const NAMES_MAX: usize = 20_000;
/// How deep a search goes.
const DEPTH_MAX: usize = 64;
/// The longest file an action copies or reads, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

const fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Dir => "directory",
        Kind::Symlink => "link",
        Kind::Special => "other",
    }
}

pub(super) fn place(hands: &Hands<'_>, path: &str) -> Result<Place, Trouble> {
    hands.resolve(path).map_err(stopped)
}

/// The place a step changes: no path that goes up from a link leads to one.
pub(super) fn place_to_change(hands: &mut Hands<'_>, path: &str) -> Result<Place, Trouble> {
    hands.resolve_to_change(path).map_err(stopped)
}

fn missing(path: &str) -> Trouble {
    Trouble::new(Failure::Missing, format!("`{path}` is not there"))
}

/// A name below a directory, spelled as the directory was.
fn below(dir: &str, name: &str) -> String {
    match dir {
        "." | "" => name.to_owned(),
        dir => format!("{}/{name}", dir.trim_end_matches('/')),
    }
}

/// The names in a directory that are texts, in their order.
pub(super) fn names(hands: &mut Hands<'_>, place: &Place) -> Result<Vec<(String, Kind)>, Trouble> {
    let entries = hands.names(place).map_err(stopped)?;
    Ok(entries
        .into_iter()
        .filter_map(|Entry { name, kind }| Some((String::from_utf8(name).ok()?, kind)))
        .collect())
}

pub(super) fn list(hands: &mut Hands<'_>, call: &ToolCall) -> Acted {
    let path = text_or(call, "path", ".");
    let all = truth(call, "all");
    let dir = place(hands, path)?;
    let found: Vec<(String, Kind)> = names(hands, &dir)?
        .into_iter()
        .filter(|(name, _)| all || !name.starts_with('.'))
        .collect();
    // What rules keep from being looked at is named, and nothing more is said of it.
    let places: Vec<(usize, Place)> = found
        .iter()
        .enumerate()
        .filter_map(|(at, (name, _))| Some((at, hands.child(&dir, name.as_bytes())?)))
        .collect();
    let (_, places) = hands.by_rules(Verb::FsList, places.iter().collect(), |(_, place)| {
        Spot::At(place)
    });
    let spots: Vec<Spot<'_>> = places.iter().map(|(_, place)| Spot::At(place)).collect();
    let facts = hands.look_all(&spots).map_err(stopped)?;
    let facts: BTreeMap<usize, Option<Stat>> =
        places.iter().map(|(at, _)| *at).zip(facts).collect();
    let mut entries = Vec::with_capacity(found.len());
    for (at, (name, kind)) in found.iter().enumerate() {
        let size = facts
            .get(&at)
            .and_then(Option::as_ref)
            .map_or(0, |stat| stat.bytes);
        entries.push(record(vec![
            ("name", Raw::Text(name.clone())),
            ("path", Raw::Text(below(path, name))),
            ("kind", Raw::Text(kind_word(*kind).to_owned())),
            ("size", Raw::Whole(i64::try_from(size).unwrap_or(i64::MAX))),
        ]));
    }
    let told = format!("{} names in {path}", entries.len());
    Ok(Did::new(
        record(vec![("entries", Raw::List(entries))]),
        told,
    ))
}

pub(super) fn find(hands: &mut Hands<'_>, call: &ToolCall) -> Acted {
    let (pattern, path) = (text(call, "pattern")?, text_or(call, "path", "."));
    let wanted = call.arg("kind").and_then(Value::as_text);
    let mut found = Vec::new();
    let mut seen = 0;
    let root = place(hands, path)?;
    let mut todo = vec![(path.to_owned(), root, 0)];
    while let Some((spelled, dir, depth)) = todo.pop() {
        // A directory that vanished or is closed to us holds nothing for us.
        let listed = match names(hands, &dir) {
            Err(trouble) if depth == 0 => return Err(trouble),
            Err(_) => continue,
            Ok(listed) => listed,
        };
        for (name, kind) in listed {
            seen += 1;
            if seen > NAMES_MAX {
                return Err(Trouble::new(
                    Failure::TooMuch,
                    format!("more than {NAMES_MAX} names below `{path}`"),
                ));
            }
            let at = below(&spelled, &name);
            let is_wanted = wanted.is_none_or(|wanted| kind_word(kind) == wanted);
            if is_wanted && glob::matches(pattern, &name) {
                found.push(at.clone());
            }
            if kind == Kind::Dir && depth >= DEPTH_MAX {
                return Err(Trouble::new(
                    Failure::TooMuch,
                    format!("more than {DEPTH_MAX} directories in each other below `{path}`"),
                ));
            }
            if kind == Kind::Dir
                && let Some(child) = hands.child(&dir, name.as_bytes())
            {
                todo.push((at, child, depth + 1));
            }
        }
    }
    found.sort();
    let told = format!("{} found below {path}", found.len());
    let paths = found.into_iter().map(Raw::Text).collect();
    Ok(Did::new(record(vec![("paths", Raw::List(paths))]), told))
}

/// A regular file's whole content.
fn content(hands: &mut Hands<'_>, path: &str) -> Result<Vec<u8>, Trouble> {
    let at = place(hands, path)?;
    let Some(stat) = hands.look(&at).map_err(stopped)? else {
        return Err(missing(path));
    };
    if stat.kind == Kind::Dir {
        return Err(Trouble::new(
            Failure::WrongKind,
            format!("`{path}` is a directory"),
        ));
    }
    if stat.bytes > FILE_BYTES_MAX {
        return Err(Trouble::new(
            Failure::TooMuch,
            format!("`{path}` is longer than {FILE_BYTES_MAX} bytes"),
        ));
    }
    hands.read(&at).map_err(|stop| match stop {
        Stop::Missing => missing(path),
        stop => stopped(stop),
    })
}

pub(super) fn read(hands: &mut Hands<'_>, call: &ToolCall) -> Acted {
    let path = text(call, "path")?;
    let bytes = content(hands, path)?;
    let size = whole(bytes.len());
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(Trouble::new(
            Failure::NotText,
            format!("`{path}` is not text"),
        ));
    };
    let told = format!("{} of {path}", in_bytes(text.len()));
    let result = record(vec![("text", Raw::Text(text)), ("size", size)]);
    Ok(Did::new(result, told))
}

pub(super) fn info(hands: &mut Hands<'_>, call: &ToolCall) -> Acted {
    let path = text(call, "path")?;
    let at = place(hands, path)?;
    let Some(stat) = hands.look(&at).map_err(stopped)? else {
        return Err(missing(path));
    };
    let minutes = i64::try_from(stat.modified_ns / 60_000_000_000).unwrap_or(0);
    let modified = Moment::parse("1970-01-01T00:00")
        .and_then(|start| start.later(minutes))
        .map_or_else(|| "1970-01-01".to_owned(), Moment::text);
    let result = record(vec![
        ("kind", Raw::Text(kind_word(stat.kind).to_owned())),
        (
            "size",
            Raw::Whole(i64::try_from(stat.bytes).unwrap_or(i64::MAX)),
        ),
        ("modified", Raw::Text(modified)),
    ]);
    Ok(Did::new(
        result,
        format!("{}, {path}", in_bytes(stat.bytes)),
    ))
}

/// The directory a new name is to lie in must be there, unless a rule has it made with the
/// change.
fn has_parent(hands: &mut Hands<'_>, at: &Place, path: &str, way: Way) -> Result<(), Trouble> {
    let Some(parent) = at.below.parent() else {
        return Err(Trouble::new(
            Failure::WrongKind,
            format!("`{path}` is the workspace itself"),
        ));
    };
    if parent.is_root() {
        return Ok(());
    }
    let mut absolute = at.absolute.clone();
    absolute.truncate(absolute.rfind('/').unwrap_or(0));
    let parent = Place {
        dir: at.dir,
        below: parent,
        absolute,
    };
    match hands.look(&parent).map_err(stopped)? {
        None if way == Way::IsMade => Ok(()),
        None => Err(Trouble::new(
            Failure::MissingDirectory,
            format!("the directory of `{path}` is not there"),
        )),
        Some(stat) if stat.kind != Kind::Dir => Err(Trouble::new(
            Failure::WrongKind,
            format!("what `{path}` would lie in is no directory"),
        )),
        Some(_) => Ok(()),
    }
}

fn put(hands: &mut Hands<'_>, path: &str, bytes: &[u8], (replace, way): (bool, Way)) -> Acted {
    let at = place_to_change(hands, path)?;
    has_parent(hands, &at, path, way)?;
    let before = hands.before(&at).map_err(stopped)?;
    let taken = || {
        Trouble::new(
            Failure::Exists,
            format!("`{path}` is there already and holds something else"),
        )
    };
    match &before {
        Before::File(old) if old == bytes => {
            let told = format!("{path} is so already");
            return Ok(Did {
                already: true,
                ..Did::new(Raw::Nothing, told)
            });
        }
        Before::File(_) | Before::Long(_) | Before::Unread if !replace => return Err(taken()),
        Before::Nothing | Before::File(_) | Before::Long(_) | Before::Unread => {}
    }
    let change = FileChange::Write {
        place: at,
        before,
        content: bytes.to_vec(),
        mode: None,
    };
    hands.change(&[change]).map_err(stopped)?;
    let told = format!("{path}, {}", in_bytes(bytes.len()));
    Ok(Did::new(Raw::Nothing, told).kept())
}

pub(super) fn create(hands: &mut Hands<'_>, call: &ToolCall, way: Way) -> Acted {
    let bytes = text(call, "text")?.as_bytes();
    let how = (truth(call, "replace"), way);
    put(hands, text(call, "path")?, bytes, how)
}

pub(super) fn copy(hands: &mut Hands<'_>, call: &ToolCall, way: Way) -> Acted {
    let bytes = content(hands, text(call, "from")?)?;
    put(hands, text(call, "to")?, &bytes, (false, way))
}

pub(super) fn make_directory(hands: &mut Hands<'_>, call: &ToolCall) -> Acted {
    let path = text(call, "path")?;
    let at = place_to_change(hands, path)?;
    let made = hands.make_dirs(&at).map_err(stopped)?;
    if made.is_empty() {
        return match hands.look(&at).map_err(stopped)? {
            Some(stat) if stat.kind != Kind::Dir => Err(Trouble::new(
                Failure::Exists,
                format!("`{path}` is there already and is no directory"),
            )),
            _ => Ok(Did {
                already: true,
                ..Did::new(Raw::Nothing, format!("{path} is so already"))
            }),
        };
    }
    Ok(Did::new(Raw::Nothing, format!("directory {path}")).kept())
}

/// One move, if it can be made.
fn one_move(hands: &mut Hands<'_>, from: &str, to: &str, way: Way) -> Result<FileChange, Trouble> {
    let at = place_to_change(hands, from)?;
    let goal = place_to_change(hands, to)?;
    if at.below.is_root() || goal.below.starts_with(&at.below) {
        return Err(Trouble::new(
            Failure::WrongKind,
            format!("`{from}` cannot be moved to `{to}`"),
        ));
    }
    if at.dir != goal.dir {
        return Err(Trouble::new(
            Failure::WrongKind,
            format!("`{from}` and `{to}` are not below the same directory"),
        ));
    }
    let Some(stat) = hands.look(&at).map_err(stopped)? else {
        return Err(missing(from));
    };
    has_parent(hands, &goal, to, way)?;
    if hands.look(&goal).map_err(stopped)?.is_some() {
        return Err(Trouble::new(
            Failure::Exists,
            format!("`{to}` is there already"),
        ));
    }
    let extent = match stat.kind {
        Kind::Dir => Extent::Tree,
        Kind::File | Kind::Symlink | Kind::Special => Extent::Alone,
    };
    Ok(FileChange::Move {
        from: at,
        to: goal,
        extent,
    })
}

pub(super) fn move_one(hands: &mut Hands<'_>, call: &ToolCall, way: Way) -> Acted {
    let (from, to) = (text(call, "from")?, text(call, "to")?);
    let change = one_move(hands, from, to, way)?;
    hands.change(&[change]).map_err(stopped)?;
    Ok(Did::new(Raw::Nothing, format!("{from} is now {to}")).kept())
}

pub(super) fn move_many(hands: &mut Hands<'_>, call: &ToolCall, way: Way) -> Acted {
    let (paths, into) = (texts(call, "paths"), text(call, "into")?);
    let dir = place_to_change(hands, into)?;
    match hands.look(&dir).map_err(stopped)? {
        None if way == Way::IsMade && paths.is_empty() => {
            hands.make_dirs(&dir).map_err(stopped)?;
        }
        None if way == Way::IsMade => {}
        None => {
            return Err(Trouble::new(
                Failure::MissingDirectory,
                format!("the directory `{into}` is not there"),
            ));
        }
        Some(stat) if stat.kind != Kind::Dir => {
            return Err(Trouble::new(
                Failure::WrongKind,
                format!("`{into}` is no directory"),
            ));
        }
        Some(_) => {}
    }
    let mut changes = Vec::with_capacity(paths.len());
    let mut goals = BTreeSet::new();
    for path in &paths {
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or("");
        let goal = below(into, name);
        if !goals.insert(goal.clone()) {
            return Err(Trouble::new(
                Failure::Exists,
                format!("two of them would become `{goal}`"),
            ));
        }
        changes.push(one_move(hands, path, &goal, way)?);
    }
    if !changes.is_empty() {
        hands.change(&changes).map_err(stopped)?;
    }
    let result = record(vec![("moved", whole(changes.len()))]);
    Ok(Did::new(result, format!("{} moved into {into}", changes.len())).kept())
}

pub(super) fn delete(hands: &mut Hands<'_>, call: &ToolCall) -> Acted {
    let recursive = truth(call, "recursive");
    let mut changes = Vec::new();
    let paths = texts(call, "paths");
    for path in &paths {
        let at = place_to_change(hands, path)?;
        if at.below.is_root() {
            return Err(Trouble::new(
                Failure::WrongKind,
                format!("`{path}` is the workspace itself"),
            ));
        }
        let Some(stat) = hands.look(&at).map_err(stopped)? else {
            return Err(missing(path));
        };
        match stat.kind {
            Kind::Dir if !recursive => {
                return Err(Trouble::new(
                    Failure::WrongKind,
                    format!("`{path}` is a directory"),
                ));
            }
            kind => gather(hands, at, kind, &mut changes)?,
        }
    }
    if !changes.is_empty() {
        hands.change(&changes).map_err(stopped)?;
    }
    let result = record(vec![("deleted", whole(changes.len()))]);
    let told = format!("{} deleted", changes.len());
    Ok(Did::new(result, told).kept())
}

/// Everything below a place and then the place, as changes.
fn gather(
    hands: &mut Hands<'_>,
    at: Place,
    kind: Kind,
    changes: &mut Vec<FileChange>,
) -> Result<(), Trouble> {
    if changes.len() >= NAMES_MAX {
        return Err(Trouble::new(
            Failure::TooMuch,
            format!("more than {NAMES_MAX} names"),
        ));
    }
    match kind {
        Kind::Dir => {
            for Entry { name, kind } in hands.names(&at).map_err(stopped)? {
                if let Some(child) = hands.child(&at, &name) {
                    gather(hands, child, kind, changes)?;
                }
            }
            changes.push(FileChange::RemoveDir { place: at });
        }
        Kind::File => {
            let before = hands.read(&at).map_err(stopped)?;
            changes.push(FileChange::Delete { place: at, before });
        }
        // The name goes, whatever it leads to stays.
        Kind::Symlink | Kind::Special => changes.push(FileChange::RemoveDir { place: at }),
    }
    Ok(())
}
