//! The order of single caps: what every decision comes down to.

use arbitrary::Unstructured;
use hermitcrab_core::authority::Cap;

use super::authority::cap;
use super::{Verdict, ensure};

/// Build three caps over few names, so that they often meet.
pub fn check(bytes: &[u8]) -> Verdict {
    let mut bytes = Unstructured::new(bytes);
    let dirs = super::opened::two_dirs().ok_or("no directories")?;
    let [Some(a), Some(b), Some(c)] = [(); 3].map(|()| cap(&mut bytes, dirs)) else {
        return Ok(());
    };
    ensure(a.covers(&a), || format!("one does not cover itself: {a}"))?;
    ensure(!(a.covers(&b) && b.covers(&c)) || a.covers(&c), || {
        format!("covers is not transitive: {a}, {b}, {c}")
    })?;
    ensure((a.covers(&b) && b.covers(&a)) == (a == b), || {
        format!("equal in strength, not in value: {a}, {b}")
    })?;
    ensure(!a.covers(&b) || a.verb() == b.verb(), || {
        format!("a cap covers another verb: {a}, {b}")
    })?;
    let both = a.meet(&b);
    ensure(both == b.meet(&a), || {
        format!("meet depends on the order: {a}, {b}")
    })?;
    let covers = |held: &Option<Cap>| held.as_ref().is_some_and(|held| held.covers(&c));
    ensure(covers(&both) == (a.covers(&c) && b.covers(&c)), || {
        format!("meet is not what both cover: {c} of {a} and {b}")
    })?;
    ensure(
        both.is_none_or(|both| a.covers(&both) && b.covers(&both)),
        || format!("meet amplifies: {a}, {b}"),
    )
}
