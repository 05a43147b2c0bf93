//! What goes with a directory that gets another name, as far as somebody is asked about it.

use hermitcrab_core::{approval::Question, authority::Object, authority::Verb};

use crate::runtime::{place::Place, visible::named};

/// So many of them are told by their names.
const NAMES_MAX: usize = 20;

/// The names below it that are asked about by themselves, as they come to lie there.
pub(super) fn told(question: &Question, to: &Place) -> Vec<String> {
    let names: Vec<String> = question
        .uncovered()
        .filter(|action| action.verb() == Verb::FsCreate)
        .filter_map(|action| match action.object() {
            Object::Dir { dir, below, .. } if *dir == to.dir => below.strip_prefix(&to.below),
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
