//! Criterion benchmarks; they live in `benches/`, this library is empty.
//!
//! ```console
//! $ cargo bench -p benches                     # measures, in an optimised build
//! $ cargo test -p benches --benches            # runs each once, as a gate does
//! ```
//!
//! No gate judges a time: machines differ, and a shared one differs from itself.
