//! Whether there can be tests of a name, told before anything is built for minutes.
//!
//! A part of a test's label is the name of a package, a program, a module or a
//! function, so it stands somewhere in the tree. Whatever does not cannot be found
//! by building; whatever does may still be no test, which the build tells.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};

/// Refuses filters none of which can match.
pub fn check(root: &Path, filters: &[String]) -> Result<()> {
    if filters.is_empty() {
        return Ok(());
    }
    let mut open: Vec<Vec<&str>> = filters
        .iter()
        .map(|filter| {
            filter
                .split([':', ' ', '/'])
                .filter(|part| !part.is_empty())
                .collect()
        })
        .collect();
    look(root, &mut open)?;
    if open.iter().any(Vec::is_empty) {
        return Ok(());
    }
    bail!(
        "no test can match {}: nothing in the tree is called so; `cargo xtask test` takes parts of names, and runs all tests without one",
        filters.join(", ")
    )
}

/// Takes out of each filter the parts that stand in or below a directory.
fn look(dir: &Path, open: &mut [Vec<&str>]) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        if open.iter().any(Vec::is_empty) {
            return Ok(());
        }
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_symlink() || name == "target" || name.starts_with('.') {
            continue;
        }
        let mut known = vec![name];
        if path.is_dir() {
            look(&path, open)?;
        } else if path
            .extension()
            .is_some_and(|kind| kind == "rs" || kind == "toml")
        {
            known.extend(fs::read_to_string(&path));
        }
        for parts in open.iter_mut() {
            parts.retain(|part| !known.iter().any(|text| text.contains(part)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_name_that_stands_nowhere_is_refused_and_any_other_is_left_to_the_build() {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        std::fs::create_dir_all(at("agent/src/chat")).unwrap();
        std::fs::create_dir_all(at("target")).unwrap();
        std::fs::write(at("target/old.rs"), "fn gone() {}").unwrap();
        std::fs::write(
            at("agent/src/chat/told.rs"),
            "#[test] fn words_are_told() {}",
        )
        .unwrap();
        let may = |filters: &[&str]| {
            let filters: Vec<String> = filters.iter().map(ToString::to_string).collect();
            check(tree.path(), &filters).is_ok()
        };
        assert!(may(&[]) && may(&["words_are"]) && may(&["chat::told::words"]));
        assert!(may(&["nothing_so", "told"]) && may(&["agent"]));
        assert!(!may(&["words_were"]) && !may(&["gone"]) && !may(&["chat::heard::words"]));
    }
}
