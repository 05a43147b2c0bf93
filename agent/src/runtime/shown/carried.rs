//! What goes with what gets another name, as far as somebody is asked about it.

use hermitcrab_core::{
    approval::Question,
    authority::{Object, Verb},
    path::RelPath,
};
use hermitcrab_sandbox::changeset::Arrival;

use super::{Effort, diffs, in_bytes, with_content};
use crate::{
    ports::FileDiff,
    runtime::{arrivals::Arrivals, place::Place, visible::named},
};

/// So many of them are told by their names.
const NAMES_MAX: usize = 20;

/// The names below it that are asked about by themselves, as they come to lie there, but for
/// those that are told with what they hold.
pub(super) fn told(question: &Question, to: &Place, arrivals: &Arrivals) -> Vec<String> {
    let names: Vec<String> = question
        .uncovered()
        .filter(|action| action.verb() == Verb::FsCreate)
        .filter_map(|action| match action.object() {
            Object::Dir { dir, below, .. } if *dir == to.dir && !arrivals.tells(*dir, below) => {
                below.strip_prefix(&to.below)
            }
            _ => None,
        })
        .filter(|below| !below.is_root())
        .map(|below| format!("with {}", named(&format!("{}/{below}", to.absolute))))
        .collect();
    let more = names.len().saturating_sub(NAMES_MAX);
    let mut lines: Vec<String> = names.into_iter().take(NAMES_MAX).collect();
    if more > 0 {
        lines.push(format!("and with {more} more names like these"));
    }
    lines
}

/// What of it comes under names that are asked about each time, with all that it holds.
pub(super) fn arriving(to: &Place, arrivals: &Arrivals, effort: &mut Effort) -> String {
    let mut out = String::new();
    for (below, arrival) in arrivals.at(to) {
        let path = named(&absolute(to, &below));
        match arrival {
            Arrival::File {
                bytes,
                mode,
                digest,
                content,
            } => {
                let head = format!("with file {path}, {}, mode {mode:o}", in_bytes(*bytes));
                out.push_str(&match content {
                    None => format!("{head}, sha256 {digest}, not shown as text\n"),
                    Some(content) => {
                        let sides = (None, Some(content.as_slice()));
                        with_content(&head, &path, digest, sides, effort)
                    }
                });
            }
            Arrival::Link(target) => out.push_str(&format!("{}\n", link(&path, target))),
            Arrival::Other => {}
        }
    }
    out
}

/// The same for a front end that shows files by itself.
pub(super) fn arriving_files(to: &Place, arrivals: &Arrivals) -> (Vec<FileDiff>, Vec<String>) {
    let (mut files, mut besides) = (Vec::new(), Vec::new());
    for (below, arrival) in arrivals.at(to) {
        let path = absolute(to, &below);
        match arrival {
            Arrival::File {
                bytes,
                mode,
                digest,
                content,
            } => {
                let (file, words) =
                    diffs::arrived(path, (*bytes, *mode, *digest), content.as_deref());
                files.push(file);
                besides.extend(words);
            }
            Arrival::Link(target) => besides.push(link(&named(&path), target)),
            Arrival::Other => {}
        }
    }
    (files, besides)
}

fn absolute(to: &Place, below: &RelPath) -> String {
    match below.is_root() {
        true => to.absolute.clone(),
        false => format!("{}/{below}", to.absolute),
    }
}

fn link(path: &str, target: &[u8]) -> String {
    let target = named(&String::from_utf8_lossy(target));
    format!("with link {path} to {target}")
}
