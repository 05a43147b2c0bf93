//! Programs and tests share one build of what they stand on.
//!
//! Cargo builds a package once for each set of features it is asked for. Where tests ask for
//! one more, all that stands above it is built twice, which costs everybody minutes and tells
//! nobody (`docs/decisions/0145-one-build-for-programs-and-tests.md`).

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::cmd;

/// What of `cargo tree` says who is built with what.
const SHAPE: [&str; 4] = ["--prefix", "none", "--format", "{p}|{f}"];

/// Packages that programs are built with other features than tests are.
pub fn findings() -> Result<Vec<String>> {
    let tree = |args: &[&str]| -> Result<String> {
        let bytes = cmd::output(cmd::cargo().arg("tree").args(SHAPE).args(args))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let programs = tree(&["--package", "xtask", "--edges", "normal,build"])?;
    let tests = tree(&["--workspace", "--edges", "all"])?;
    Ok(apart(&programs, &tests))
}

/// Of two lists of packages, each with its features, what the first has and the second has not.
fn apart(programs: &str, tests: &str) -> Vec<String> {
    let tests = built(tests);
    let none = BTreeSet::new();
    let mut findings = Vec::new();
    for (package, features) in built(programs) {
        let known = tests.get(package).unwrap_or(&none);
        for missing in features.difference(known) {
            let known: Vec<&str> = known.iter().copied().collect();
            findings.push(format!(
                "{package} is built with the features `{missing}` for programs and with `{}` for tests, \
                 and all above it twice: see docs/decisions/0145-one-build-for-programs-and-tests.md",
                known.join("` and `")
            ));
        }
    }
    findings
}

/// Every set of features that each package is built with.
fn built(tree: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in tree.lines() {
        // What was shown before is marked.
        let line = line.trim_end_matches(" (*)");
        if let Some((package, features)) = line.split_once('|') {
            all.entry(package.trim()).or_default().insert(features);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_tests_ask_more_of_is_named_and_others_are_not() {
        let programs = "bisim v0.1.0|\nsyn v3.0.9|full\nmemchr v2.8.3|alloc,std\nmemchr v2.8.3|alloc,default,std (*)\n";
        let tests = "bisim v0.1.0|\nsyn v3.0.9|full,visit\nsyn v3.0.9|full,visit (*)\nmemchr v2.8.3|alloc,default,std\nmemchr v2.8.3|alloc,std\ninsta v1.0.0|\n";
        let findings = apart(programs, tests);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(
            findings[0].starts_with(
                "syn v3.0.9 is built with the features `full` for programs and with `full,visit`"
            ),
            "{findings:?}"
        );
        assert_eq!(apart(programs, programs), Vec::<String>::new());
        // One of several sets that only programs have is enough.
        assert_eq!(apart("memchr v2.8.3|std", "memchr v2.8.3|alloc").len(), 1);
    }
}
