//! The directories a question makes on the way to its files.

use hermitcrab_core::{
    approval::Question,
    authority::{Object, Verb},
};

use super::{super::place::Place, named};

/// One line for each directory that is made on the way to one of these new files.
pub(super) fn on_the_way<'p>(
    question: &Question,
    places: impl Iterator<Item = &'p Place>,
) -> Vec<String> {
    let mut lines = Vec::new();
    for place in places {
        for action in question.actions() {
            let Object::Dir { dir, below, .. } = action.object() else {
                continue;
            };
            let is_made = action.verb() == Verb::FsCreate && *dir == place.dir;
            let Some(rest) = place.below.strip_prefix(below).filter(|_| is_made) else {
                continue;
            };
            let mut name = place.absolute.as_str();
            let mut names = rest.components();
            if names.clone().next().is_none() {
                continue;
            }
            while names.next().is_some() {
                name = name.rsplit_once('/').map_or("", |(above, _)| above);
            }
            let line = format!("new directory {}", named(name));
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}
