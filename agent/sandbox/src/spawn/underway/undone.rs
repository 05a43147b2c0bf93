//! What a look leaves behind that could not be carried over.
//!
//! What for: a commit that is taken back has moved files of the directory to and fro, and
//! for that moment its command may have seen a name again that it had given up, which the
//! kernel then keeps for its view. Neither may be left: what came back is nobody's change,
//! and the command must find no name taken that it gave up.

use std::os::fd::AsFd as _;

use hermitcrab_core::path::RelPath;

use super::{Inner, Layer, SoFar};
use crate::changeset::node::kind_of;
use crate::changeset::{ChangeSet, Layer as Kept, now};
use crate::dircap::Kind;
use crate::dircap::open::{open_parent, stat_name};

impl SoFar<'_> {
    /// It could not be carried over, and what of it had been was taken back.
    pub fn was_taken_back(&mut self) {
        let (of, state) = (self.of, &mut *self.state);
        for (place, set) in self.sets.iter().enumerate() {
            if let Some(settled) = state.settled.get_mut(place) {
                set.came_back(settled);
            }
            if let Some(layer) = state.layers.get(place) {
                for path in set.given_up() {
                    // What cannot be cleared stays as it is.
                    let _cleared = of.clear(place, layer, (set, path));
                }
            }
        }
    }
}

impl Inner {
    /// Clears a name that the command gave up, that is nowhere any more, and that its view
    /// shows all the same.
    fn clear(&self, view: usize, layer: &Layer, (set, path): (&ChangeSet, &RelPath)) -> Option<()> {
        if Kept::of(layer.upper.as_fd()).ok()? == Kept::Copy {
            return None;
        }
        let outside = self.views.get(view)?;
        if now(outside.as_fd(), path).is_some() {
            return None;
        }
        let (parent, name) = open_parent(layer.merged.as_fd(), path).ok()?;
        let shown = stat_name(parent.as_fd(), &name, path).ok()??;
        let kind = kind_of(&shown);
        // What it made under that name since has a name where it lies, and what was put
        // there has none any more, but for those of a file it was linked to.
        let is_its_own = shown.st_nlink > 0 && !set.has_linked(shown.st_ino);
        if kind != Kind::Dir && is_its_own {
            return None;
        }
        layer.clear(path, kind)
    }
}
