//! Names for capabilities, by how far they may travel.
//!
//! - `cap:3` names what one agent of one session holds. It is what a model
//!   sees; anywhere else it means nothing, so it may be in every text.
//! - `/object/<id>` is a bearer's name: 256 bits that let whoever presents them
//!   in the right session, as the right audience, have the grant, once. It is
//!   for handing a grant to another program and must never be in a text for a
//!   model, in the ledger or in a log. Only its keyed hash is kept.
//!
//! [`scan`] looks for bearers' names in texts that are about to leave.

mod exports;
pub mod object_ref;
pub mod scan;

pub use self::{
    exports::{Exports, PerSession},
    object_ref::ObjectRef,
};

use hermitcrab_core::outcome::{Denial, DenialCode};

/// How the name of something held begins.
const CAP: &str = "cap:";

/// The name of the `place`-th thing an agent holds.
#[must_use]
pub fn cap_name(place: usize) -> String {
    format!("{CAP}{place}")
}

/// Which of the things an agent holds a name stands for.
#[must_use]
pub fn cap_place(name: &str) -> Option<usize> {
    let digits = name.strip_prefix(CAP)?;
    let plain = digits == "0" || !digits.starts_with('0');
    let number = digits.bytes().all(|digit| digit.is_ascii_digit());
    (plain && number && !digits.is_empty())
        .then(|| digits.parse().ok())
        .flatten()
}

/// The one refusal of every name that leads nowhere.
#[must_use]
pub fn no_such_object() -> Denial {
    Denial::new(DenialCode::NoSuchObject, "")
}

#[cfg(test)]
mod tests {
    use super::{cap_name, cap_place};

    #[test]
    fn a_name_of_something_held_has_one_spelling() {
        for place in [0, 1, 10, 65_535] {
            assert_eq!(cap_place(&cap_name(place)), Some(place));
        }
        for name in [
            "cap:", "cap:01", "cap:+1", "cap:-1", "cap: 1", "Cap:1", "1", "cap:1 ",
        ] {
            assert_eq!(cap_place(name), None, "{name}");
        }
    }
}
