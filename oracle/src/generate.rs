//! Commands nobody has written down before, each with an effect to look for.
//!
//! What for: a guard that matches spellings is tested by spellings. A variant
//! starts from an effect (a seed), is rewritten by a chain of operators that
//! keep it, and counts only after a real shell in a world without any guard has
//! shown the effect ([`judge`]). Look-alike letters are the negative control.
//!
//! Nothing here runs anything, and nothing here reads Hermes: what its detector
//! says about a variant is asked of the real one. The commands are dangerous;
//! they are only ever run inside a world.

pub mod effect;
pub mod judge;
pub mod operator;
pub mod operators;
pub mod script;
pub mod variant;

#[cfg(test)]
mod tests;

pub use effect::{Effect, SEEDS, Seed};
pub use operator::{Class, Operator, Salt};
pub use variant::{DEPTH_MAX, Link, Rendered, Variant};
