//! Things nobody has written down before: commands with an effect to look for,
//! names that lead elsewhere, orders of grants and calls, plans an attacker had a hand in.
//!
//! What for: a campaign ([`specimen`]), the tests and the fuzz targets all make
//! what they make here. A guard that matches spellings is tested by spellings. A variant
//! starts from an effect (a seed), is rewritten by a chain of operators that
//! keep it, and counts only after a real shell in a world without any guard has
//! shown the effect ([`judge`]). Look-alike letters are the negative control.
//!
//! Nothing here runs anything, and nothing here reads Hermes: what its detector
//! says about a variant is asked of the real one. The commands are dangerous;
//! they are only ever run inside a world.

pub mod benign;
pub mod choices;
pub mod conversations;
pub mod crashes;
pub mod effect;
pub mod judge;
pub mod operator;
pub mod operators;
pub mod paths;
pub mod plans;
pub mod races;
pub mod rendered;
pub mod script;
pub mod sequences;
pub mod specimen;
pub mod surroundings;
pub mod targeted;
pub mod variant;
pub mod work;

#[cfg(test)]
mod strategy;
#[cfg(test)]
mod tests;

pub use choices::Choices;
pub use conversations::Talk;
pub use crashes::{CRASHES, Crash};
pub use effect::{Effect, SEEDS, Seed};
pub use operator::{Class, Operator, Salt};
pub use paths::PathCall;
pub use plans::Trial;
pub use races::Race;
pub use rendered::Rendered;
pub use sequences::Sequence;
pub use specimen::{Specimen, Target};
pub use surroundings::{CONTEXTS, USUAL};
pub use targeted::TARGETED;
pub use variant::{DEPTH_MAX, Link, Variant};
pub use work::Errand;
