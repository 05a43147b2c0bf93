//! The one thing the shim reads from its surroundings: whether it has already
//! entered the world.
#![expect(
    clippy::disallowed_methods,
    reason = "this is where ambient values enter the shim"
)]

/// Set for the second start of the interpreter, inside the world.
pub(crate) const INSIDE: &str = "HERMES_SHIM_INSIDE";

/// Whether this interpreter runs inside the template tree.
pub(crate) fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}
