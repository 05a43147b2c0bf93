//! The terminal front end.
fn main() {}
