//! The oracle, as a program.
fn main() {}
