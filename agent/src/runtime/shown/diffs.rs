//! The same that is shown in words, as files with an old and a new text.
//!
//! For a front end that shows differences by itself. It must leave nothing out
//! that the words say: what is no file's content is listed beside the files.

use std::{collections::BTreeSet, io};

use hermitcrab_core::{digest::Digest, letters::is_unseen, path::RelPath};
use hermitcrab_sandbox::changeset::{Change, ChangeSet, What};

use super::{
    Renamed, SHOWN_BYTES_MAX, deleted_link, difference, legible_at, longest_of, moment, new_link,
    too_much,
};
use crate::{
    digest::sha256,
    ports::{FileDiff, Side},
    runtime::{
        edit::{Before, FileChange},
        place::Place,
        visible::{named, one_line},
    },
    text::difflib::Effort,
};

/// Lines with letters nobody sees that are told of a file.
const HIDING_LINES_MAX: usize = 8;
/// Letters that are told of such a line, from a little before the first of them.
const HIDING_LETTERS: usize = 200;
/// The permission bits a new file may have without being told: neither a program, nor
/// everybody's to write.
const USUAL_BITS: u32 = 0o664;

/// A content as a side: whole, or by length and digest.
fn side(content: &[u8]) -> Side {
    let opaque = || Side::Opaque {
        bytes: u64::try_from(content.len()).ok(),
        digest: sha256(content),
    };
    if content.len() > SHOWN_BYTES_MAX || content.contains(&0) {
        return opaque();
    }
    match std::str::from_utf8(content) {
        Ok(text) => Side::Text(text.to_owned()),
        Err(_) => opaque(),
    }
}

pub(super) fn written(place: &Place, before: &Before, content: &[u8]) -> FileDiff {
    FileDiff {
        path: place.absolute.clone(),
        before: match before {
            Before::Nothing => Side::Nothing,
            Before::File(old) => side(old),
            Before::Long(old) => Side::Opaque {
                bytes: None,
                digest: old.digest,
            },
            Before::Unread => Side::Unread,
        },
        after: side(content),
    }
}

/// What is told beside a file that is written.
pub(super) fn besides_written(place: &Place, before: &Before, content: &[u8]) -> Vec<String> {
    let old = match before {
        Before::File(old) => Some(old.as_slice()),
        Before::Nothing | Before::Long(_) | Before::Unread => None,
    };
    let file = written(place, before, content);
    unshown(&file, old, Some(content), &mut Effort::of_a_question())
}

/// A file that comes as it is, and what is told beside it.
pub(super) fn arrived(
    path: String,
    (bytes, mode, digest): (u64, u32, Digest),
    content: Option<&[u8]>,
) -> (FileDiff, Vec<String>) {
    let opaque = Side::Opaque {
        bytes: Some(bytes),
        digest,
    };
    let file = FileDiff {
        path,
        before: Side::Nothing,
        after: content.map_or(opaque, side),
    };
    let mut words = unshown(&file, None, content, &mut Effort::of_a_question());
    if mode & !USUAL_BITS != 0 {
        words.push(format!("{}: mode {mode:o}", named(&file.path)));
    }
    (file, words)
}

/// What an editor's own view of a file does not show, in words: letters that leave no
/// mark, and a text of which some bytes are none.
fn unshown(
    file: &FileDiff,
    old: Option<&[u8]>,
    new: Option<&[u8]>,
    effort: &mut Effort,
) -> Vec<String> {
    let name = named(&file.path);
    let mut out = Vec::new();
    if one_line(&file.path) != file.path {
        out.push(format!("{name}: a name with letters that nobody sees"));
    }
    if matches!(file.after, Side::Opaque { .. })
        && new.is_some_and(|new| legible_at(&name, new).is_some())
    {
        out.push(difference(&name, old, new, effort).trim_end().to_owned());
    }
    let Side::Text(after) = &file.after else {
        return out;
    };
    let known: BTreeSet<&str> = file.before.text().unwrap_or_default().lines().collect();
    let mut hiding = after
        .lines()
        .zip(1_usize..)
        .filter(|(line, _)| line.chars().any(hides) && !known.contains(line));
    for (line, number) in hiding.by_ref().take(HIDING_LINES_MAX) {
        let letters: Vec<char> = line.chars().collect();
        let first = letters.iter().position(|letter| hides(*letter));
        let from = first.unwrap_or(0).saturating_sub(HIDING_LETTERS / 4);
        let part: String = letters.iter().skip(from).take(HIDING_LETTERS).collect();
        out.push(format!(
            "{name}: line {number} has letters that nobody sees: {}",
            one_line(&part)
        ));
    }
    match hiding.count() {
        0 => {}
        more => out.push(format!("{name}: {more} more lines have such letters")),
    }
    out
}

fn hides(letter: char) -> bool {
    (letter.is_control() && !matches!(letter, '\t' | '\r')) || is_unseen(letter)
}

pub(super) fn of_changes(changes: &[FileChange]) -> (Vec<FileDiff>, Vec<String>) {
    let mut files = Vec::new();
    let mut besides = Vec::new();
    for change in changes {
        match change {
            FileChange::Write {
                place,
                before,
                content,
                mode,
            } => {
                files.push(written(place, before, content));
                besides.extend(besides_written(place, before, content));
                if let Some(mode) = mode {
                    besides.push(format!("{}: mode {mode:o}", named(&place.absolute)));
                }
            }
            FileChange::Delete { place, before } => files.push(FileDiff {
                path: place.absolute.clone(),
                before: side(before),
                after: Side::Nothing,
            }),
            FileChange::RemoveDir { place } => {
                besides.push(format!("removed directory {}", named(&place.absolute)));
            }
            FileChange::RemoveLink { place, says } => besides.push(deleted_link(place, says)),
            FileChange::PutLink { place, says } => besides.push(new_link(place, says)),
            FileChange::Move { from, to, .. } => besides.push(format!(
                "{} becomes {}, as it is",
                named(&from.absolute),
                named(&to.absolute)
            )),
            FileChange::Rename {
                from,
                to,
                before,
                content,
            } => {
                besides.push(format!(
                    "{} becomes {}",
                    named(&from.absolute),
                    named(&to.absolute)
                ));
                files.push(FileDiff {
                    path: from.absolute.clone(),
                    before: side(before),
                    after: Side::Nothing,
                });
                files.push(FileDiff {
                    path: to.absolute.clone(),
                    before: Side::Nothing,
                    after: side(content),
                });
            }
        }
    }
    (files, besides)
}

pub(super) fn of_sets(
    sets: &[(String, &ChangeSet)],
    each_time: &[BTreeSet<RelPath>],
) -> (Vec<FileDiff>, Vec<String>) {
    let mut effort = Effort::of_a_question();
    let longest = longest_of(sets);
    let mut untold = 0_usize;
    let mut files = Vec::new();
    let mut besides = Vec::new();
    let nothing = BTreeSet::new();
    for (at, (root, set)) in sets.iter().enumerate() {
        let each_time = each_time.get(at).unwrap_or(&nothing);
        let renamed = Renamed::of(set, each_time, longest);
        besides.extend(renamed.as_they_are(root));
        let is_told = |change: &&Change| renamed.is_told(&change.path);
        for change in set.changes().iter().filter(is_told) {
            let path = if change.path.is_root() {
                root.clone()
            } else {
                format!("{root}/{}", change.path)
            };
            // What is too long reads as what is longer than it may be.
            let is_shown = each_time.contains(&change.path) || set.bytes_of(change) <= longest;
            untold += usize::from(!is_shown);
            let bytes_max = if is_shown { SHOWN_BYTES_MAX } else { 0 };
            match of_change(set, change, &path, bytes_max) {
                Ok(mut file) => {
                    if let Some(from) = renamed.old_name(&change.path) {
                        let old = set.content_before(from, bytes_max);
                        file.before = old.map_or(Side::Unread, |old| side(&old));
                        let from = named(&format!("{root}/{from}"));
                        besides.push(format!("renamed {from} to {} and changed", named(&path)));
                    }
                    let read = |content: io::Result<Vec<u8>>| content.ok();
                    let odd = matches!(file.after, Side::Opaque { .. });
                    let old = || read(set.content_before(&change.path, bytes_max));
                    let new = || read(set.content_after(&change.path, bytes_max));
                    let (old, new) = if odd { (old(), new()) } else { (None, None) };
                    let more = unshown(&file, old.as_deref(), new.as_deref(), &mut effort);
                    besides.extend(more);
                    files.push(file);
                }
                Err(words) => besides.push(words),
            }
            if let Some(first) = set.second_name_of(&change.path) {
                let first = format!("{root}/{first}");
                besides.push(second_name(&path, &first));
            }
            if let What::CreatedFile { mode, .. } = &change.what
                && mode & !USUAL_BITS != 0
            {
                besides.push(format!("new file {}, mode {mode:o}", named(&path)));
            }
            if let What::ModifiedFile {
                mode_before, mode, ..
            } = &change.what
                && mode_before != mode
            {
                besides.push(format!(
                    "mode of {}: {mode_before:o} becomes {mode:o}",
                    named(&path)
                ));
            }
        }
    }
    if untold > 0 {
        besides.push(too_much(untold));
    }
    (files, besides)
}

/// That a new name is another one of a file that was there.
pub(super) fn second_name(path: &str, first: &str) -> String {
    let (path, first) = (named(path), named(first));
    format!("{path} is a second name of {first}: what is written to one is in both")
}

/// A change of a file's content, or any other change in words.
fn of_change(
    set: &ChangeSet,
    change: &Change,
    path: &str,
    bytes_max: usize,
) -> Result<FileDiff, String> {
    let shown = named(path);
    let before = |digest: Digest| {
        set.content_before(&change.path, bytes_max).map_or(
            Side::Opaque {
                bytes: None,
                digest,
            },
            |content| side(&content),
        )
    };
    let after = |digest: Digest, bytes: u64| {
        set.content_after(&change.path, bytes_max).map_or(
            Side::Opaque {
                bytes: Some(bytes),
                digest,
            },
            |content| side(&content),
        )
    };
    let (before, after) = match &change.what {
        What::CreatedFile { digest, bytes, .. } => (Side::Nothing, after(*digest, *bytes)),
        What::ModifiedFile {
            base,
            digest,
            bytes,
            ..
        } => (before(*base), after(*digest, *bytes)),
        What::DeletedFile { base } => (before(*base), Side::Nothing),
        What::CreatedDir { mode } => return Err(format!("new directory {shown}, mode {mode:o}")),
        What::CreatedSymlink { target } => {
            return Err(format!(
                "new link {shown} to {}",
                named(&String::from_utf8_lossy(target))
            ));
        }
        What::CreatedSpecial => return Err(format!("new pipe or socket {shown} (never kept)")),
        What::ModifiedMode { before, mode } => {
            return Err(format!("mode of {shown}: {before:o} becomes {mode:o}"));
        }
        What::ModifiedTime { before, time } => {
            return Err(format!(
                "time of {shown}: {} becomes {}",
                moment(*before),
                moment(*time)
            ));
        }
        What::Xattrs { names, digest, .. } => {
            let names: Vec<String> = names
                .iter()
                .map(|name| one_line(&String::from_utf8_lossy(name)))
                .collect();
            return Err(format!(
                "attributes of {shown}: {} set or removed, sha256 of all {digest}",
                names.join(", ")
            ));
        }
        What::DeletedSymlink { target } => {
            return Err(format!(
                "deleted link {shown} to {}",
                named(&String::from_utf8_lossy(target))
            ));
        }
        What::DeletedDir => return Err(format!("deleted directory {shown}")),
        What::DeletedSpecial => return Err(format!("deleted pipe, socket or device {shown}")),
        What::MovedHere { from, .. } => {
            return Err(format!("{shown} is what was {}", named(&from.to_string())));
        }
        What::MovedAway { .. } => return Err(format!("{shown} gets another name")),
    };
    Ok(FileDiff {
        path: path.to_owned(),
        before,
        after,
    })
}

#[cfg(test)]
mod tests {
    use super::{SHOWN_BYTES_MAX, side};
    use crate::ports::Side;

    #[test]
    fn only_a_whole_text_is_shown_as_text() {
        assert_eq!(side(b"a\n"), Side::Text("a\n".into()));
        assert_eq!(side(b""), Side::Text(String::new()));
        for odd in [&b"a\0b"[..], b"\xff", &vec![b'x'; SHOWN_BYTES_MAX + 1]] {
            assert!(matches!(side(odd), Side::Opaque { bytes: Some(_), .. }));
        }
    }
}
