//! Where cases and catalogue entries are written: a report names file and line.

use std::collections::BTreeMap;
use std::path::Path;

use crate::suite::CATALOGUE;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// From the repository where it is below it, else absolute.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
}

/// Where everything with a name is written.
#[derive(Clone, Debug, Default)]
pub struct Places {
    cases: BTreeMap<(String, String), Place>,
    entries: BTreeMap<String, Place>,
    catalogue: String,
}

impl Places {
    /// Reads the files below `vectors`, which were read as vectors before. What cannot be
    /// read any more has no place.
    #[must_use]
    pub fn read(vectors: &Path, root: &Path) -> Self {
        let vectors = absolute(vectors);
        let told = |file: &Path| {
            let below = file.strip_prefix(absolute(root)).unwrap_or(file);
            below.display().to_string()
        };
        let mut places = Self {
            catalogue: told(&vectors.join(CATALOGUE)),
            ..Self::default()
        };
        let folders = ["suites", "regressions"].map(|name| vectors.join(name));
        for file in folders.iter().filter_map(|folder| folder.read_dir().ok()) {
            for file in file.flatten().map(|entry| entry.path()) {
                let suite = file.file_stem().unwrap_or_default().to_string_lossy();
                for (id, line) in named(&file, "\"id\"", ':') {
                    let key = (suite.to_string(), id);
                    let file = told(&file);
                    places.cases.entry(key).or_insert(Place { file, line });
                }
            }
        }
        for (id, line) in named(&vectors.join(CATALOGUE), "id", '=') {
            let file = places.catalogue.clone();
            places.entries.entry(id).or_insert(Place { file, line });
        }
        places
    }

    /// Where a case is.
    #[must_use]
    pub fn case(&self, suite: &str, id: &str) -> Option<&Place> {
        self.cases.get(&(suite.to_owned(), id.to_owned()))
    }

    /// Where a catalogue entry is; of several, joined as a fault names them, the first. One
    /// that is nowhere is told at the file's beginning.
    #[must_use]
    pub fn entry(&self, names: &str) -> Place {
        let first = names.split(", ").next().unwrap_or(names);
        self.entries.get(first).cloned().unwrap_or(Place {
            file: self.catalogue.clone(),
            line: 1,
        })
    }
}

/// The path from the root of the file system; as it is where that cannot be told.
fn absolute(path: &Path) -> std::path::PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The texts that follow this key, and their lines. A name is told where it stands first on
/// a line; the case's own comes before all it holds.
fn named(file: &Path, key: &str, sign: char) -> Vec<(String, usize)> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let name = |line: &str| {
        let start = line.trim_start().trim_start_matches('{').trim_start();
        let rest = start.strip_prefix(key)?.trim_start().strip_prefix(sign)?;
        let (name, _) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
        Some(name.to_owned())
    };
    let lines = text.lines().enumerate();
    lines
        .filter_map(|(place, line)| Some((name(line)?, place + 1)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::Places;

    #[test]
    fn cases_and_entries_are_found_by_their_line_and_others_by_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let vectors = folder.path().join("vectors");
        std::fs::create_dir_all(vectors.join("suites")).unwrap();
        let suite = "{\n \"cases\": [\n{\"id\":\"one\",\"held\":[{\"id\":\"h\"}]},\n  {\n   \"id\": \"two\"\n  }\n ]\n}\n";
        std::fs::write(vectors.join("suites/s.json"), suite).unwrap();
        let catalogue = "# c\n[[entry]]\nid = \"named\"\n";
        std::fs::write(vectors.join(super::CATALOGUE), catalogue).unwrap();
        let places = Places::read(&vectors, folder.path());
        let of = |id: &str| {
            let place = places.case("s", id)?;
            Some((place.file.as_str(), place.line))
        };
        assert_eq!(of("one"), Some(("vectors/suites/s.json", 3)));
        assert_eq!(of("two"), Some(("vectors/suites/s.json", 5)));
        assert_eq!(of("h"), None);
        assert_eq!(places.case("t", "one"), None);
        let entry = |names: &str| places.entry(names).line;
        assert_eq!(
            (entry("named"), entry("named, other"), entry("x")),
            (3, 3, 1)
        );
        assert_eq!(places.entry("x").file, "vectors/known-divergences.toml");
        let elsewhere = Places::read(&vectors, std::path::Path::new("/nowhere"));
        let file = &elsewhere.case("s", "one").unwrap().file;
        assert!(file.starts_with('/'), "{file}");
    }
}
