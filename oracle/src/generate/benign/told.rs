//! Work with programs that no world has: what it does is told and was not seen.
//!
//! Worlds have stand-ins for `cargo` and for what reaches registries. What these leave is known
//! from their documentation; a part of the draws is of them, and is counted apart.

use arbitrary::Unstructured;

use super::names::Letters;
use super::{Benign, Does, Fate, Part, Way};

/// A command, and what it does; `%` stands for a name.
type Told = (&'static str, &'static [(&'static str, Fate)]);

const NEW: Fate = Fate::File(0o644, None);
const OLD: Fate = Fate::Changed;

/// All of it.
pub const TOLD: &[Told] = &[
    (
        "cargo build -p %",
        &[
            ("target/debug/%", Fate::File(0o755, None)),
            ("target/.rustc_info.json", OLD),
            ("Cargo.lock", OLD),
        ],
    ),
    (
        "cargo test %",
        &[("target/debug/deps/%", NEW), ("target/debug/deps/%.d", NEW)],
    ),
    ("cargo clean -p %", &[("target/debug/%", Fate::Gone)]),
    ("cargo add %", &[("Cargo.toml", OLD), ("Cargo.lock", OLD)]),
    (
        "cmake --build out --target %",
        &[("out/%", NEW), ("out/CMakeCache.txt", OLD)],
    ),
    ("go build ./cmd/%", &[("%", Fate::File(0o755, None))]),
    ("go mod tidy", &[("go.mod", OLD), ("go.sum", OLD)]),
    ("tsc -p .", &[("lib/%.js", NEW), ("lib/%.d.ts", NEW)]),
    (
        "pytest tests/test_%.py",
        &[(".pytest_cache/v/cache/lastfailed", NEW)],
    ),
    (
        "npm install %",
        &[
            ("node_modules/%/index.js", NEW),
            ("package.json", OLD),
            ("package-lock.json", OLD),
        ],
    ),
    (
        "pip install --target vendor %",
        &[("vendor/%/__init__.py", NEW)],
    ),
    (
        "javac -d classes src/%.java",
        &[("classes", Fate::Dir(0o755)), ("classes/%.class", NEW)],
    ),
    ("npm pack", &[("%-1.0.0.tgz", NEW)]),
    (
        "uv sync",
        &[
            (".venv/lib/python3.11/site-packages/%/__init__.py", NEW),
            ("uv.lock", OLD),
        ],
    ),
];

/// What is told has this family.
pub const FAMILY: &str = "told, not seen";

/// One of them.
///
/// # Errors
/// The bytes ran out.
pub(super) fn job(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Benign> {
    let (shape, does) = *bytes.choose(TOLD)?;
    let name = Letters::Plain.name(bytes)?;
    let does: Does = does
        .iter()
        .map(|(path, fate)| (path.replace('%', &name), *fate))
        .collect();
    Ok(Benign {
        parts: vec![Part {
            family: FAMILY,
            kind: "told",
            shape,
            way: Way::Told,
            letters: Letters::Plain,
        }],
        program: shape.split_whitespace().next().unwrap_or_default(),
        prepare: None,
        command: shape.replace('%', &name),
        does,
    })
}
