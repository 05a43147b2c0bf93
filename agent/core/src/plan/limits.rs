//! Every bound of the plan language, by name.

/// Steps of one plan, those inside loops and branches counted once.
pub const STEPS_MAX: usize = 128;
/// How deep loops and branches may lie in each other.
pub const BLOCK_DEPTH_MAX: usize = 5;
/// How deep one expression or type may be.
pub const EXPR_DEPTH_MAX: usize = 16;
/// Parts of all expressions of a plan.
pub const EXPR_PARTS_MAX: usize = 20_000;
/// Bytes of one text written in a plan.
pub const LITERAL_BYTES_MAX: usize = 64 << 10;
/// Bytes of a name.
pub const NAME_BYTES_MAX: usize = 40;
/// Turns of one loop if it does not say.
pub const LOOP_TURNS_DEFAULT: u32 = 256;
/// Turns of one loop at most.
pub const LOOP_TURNS_MAX: u32 = 1000;
/// Calls of one plan at most, every loop at its bound.
pub const CALLS_MAX: u64 = 100_000;
/// Errors told about one draft.
pub const ERRORS_MAX: usize = 16;
/// Arguments of one call or function.
pub const ARGUMENTS_MAX: usize = 64;
/// Fields of one record, choices of one choice.
pub const FIELDS_MAX: usize = 64;
/// Work one plan may spend on expressions, in bytes built and copied: so much memory its
/// values take at most, and it is over in seconds.
pub const FUEL: u64 = 1 << 30;
/// What a value counts besides its text: what it and its tag take, and their part of a list.
pub const VALUE_BYTES: usize = 128;
/// Bytes of one value's text that an expression may build.
pub const TEXT_BYTES_MAX: usize = 16 << 20;

/// Items of a list that a text is taken apart into.
pub const ITEMS_MAX: usize = 100_000;

const _: () = assert!(STEPS_MAX <= 128, "origins are a set of 128 bits");
const _: () = assert!(LOOP_TURNS_DEFAULT <= LOOP_TURNS_MAX);
