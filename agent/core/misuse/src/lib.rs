//! Programs against the core that must not compile: see `tests/`.
//!
//! They are a package of their own because `trybuild` compiles them beside all that the
//! package of its test depends on, in a directory of its own. The core itself depends on
//! nothing; the tests of the core depend on forty packages.
