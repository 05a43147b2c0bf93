//! System calls of 64-bit ARM: it has none but those that every processor has.
use nix::libc::user_regs_struct;

/// No call opens a path without a directory.
pub(super) const OPEN: Option<i64> = None;

/// A call's number and its arguments.
pub(super) const fn call(registers: &user_regs_struct) -> (i64, [u64; 5]) {
    // The number is in the ninth register and the arguments are in the first ones. The eighth
    // is overwritten while a process stands at a call, and is neither.
    let [a, b, c, d, e, _, _, _, number, ..] = registers.regs;
    (number.cast_signed(), [a, b, c, d, e])
}

/// Calls of its own that change files.
pub(super) const ALWAYS: [i64; 0] = [];

/// Which arguments of a call of its own are paths.
pub(super) const fn places(_number: i64) -> &'static [usize] {
    &[]
}
