//! Where a conversation comes apart: whenever one of its models is asked for its next answer,
//! all it called for before is over.

use std::cell::RefCell;
use std::rc::Rc;

use bisim_world::WorldError;
use bisim_world::driver::Parts;

use super::user::Said;

/// Tells whoever watches the world what was asked so far.
#[derive(Clone)]
pub struct Between {
    said: Rc<Said>,
    parts: Rc<RefCell<Parts>>,
}

impl Between {
    pub(super) fn new(said: &Rc<Said>, parts: Parts) -> Self {
        Self {
            said: Rc::clone(said),
            parts: Rc::new(RefCell::new(parts)),
        }
    }

    /// A part is over; comes back when what was done so far is noted.
    ///
    /// # Errors
    /// Nobody watches any more.
    pub fn end_part(&self) -> Result<(), WorldError> {
        self.parts.borrow_mut().end(self.said.asked_so_far())
    }
}
