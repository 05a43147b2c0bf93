//! What docs/SANDBOX.md names as shown by a test is shown by one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../../../../docs/SANDBOX.md");

/// The file of a test by the name it has on the page, and its own name.
fn place_of(name: &str) -> (PathBuf, &str) {
    let (modules, test) = name.rsplit_once("::").unwrap();
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let below = match modules.strip_prefix("src::") {
        Some(modules) => Path::new("src").join(modules.replace("::", "/")),
        None => Path::new("tests/it").join(modules.replace("::", "/")),
    };
    (package.join(below).with_extension("rs"), test)
}

#[test]
fn every_test_that_is_named_is_there() {
    let quoted = PAGE.split('`').skip(1).step_by(2);
    let named: Vec<_> = quoted.filter(|text| text.contains("::")).collect();
    assert!(named.len() > 80, "{}", named.len());
    for name in named.into_iter().filter(|name| !name.ends_with("::x")) {
        let (file, test) = place_of(name);
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| {
            panic!("{name}: {}: {error}", file.display());
        });
        assert!(text.contains(&format!("fn {test}()")), "{name}");
    }
}
