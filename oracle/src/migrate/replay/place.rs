//! Where things were, and where they are in a world.

use serde_json::Value;

/// The workspace in a world; the standard project has files of its own.
pub const WORK: &str = "/home/u/work";
/// The home in a world.
pub const HOME: &str = "/home/u";

/// The places of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Host place and what stands for it, the longest host place first.
    moved: Vec<(String, &'static str)>,
}

impl Places {
    /// A workspace and a home, as they were.
    #[must_use]
    pub fn new(workspace: Option<&str>, home: Option<&str>) -> Self {
        let mut moved: Vec<(String, &'static str)> = Vec::new();
        for (place, stands) in [(workspace, WORK), (home, HOME)] {
            let place = place
                .map(|place| place.trim_end_matches('/'))
                .unwrap_or_default();
            // `/` or `/srv` would match by accident in texts.
            if place.len() > 1
                && place.starts_with('/')
                && !moved.iter().any(|(known, _)| known == place)
            {
                moved.push((place.to_owned(), stands));
            }
        }
        moved.sort_by_key(|(place, _)| std::cmp::Reverse(place.len()));
        Self { moved }
    }

    /// The text with places of the host replaced by those of a world.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (place, stands) in &self.moved {
            out = replaced(&out, place, stands);
        }
        out
    }

    /// All texts of a value.
    #[must_use]
    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(list) => list.iter().map(|value| self.value(value)).collect(),
            Value::Object(map) => Value::Object(
                map.iter()
                    .map(|(key, value)| (key.clone(), self.value(value)))
                    .collect(),
            ),
            other => other.clone(),
        }
    }
}

/// The text with places of a world as its reader knows them: a world's home is `~`, and its
/// workspace `.`, whatever project it stood for.
#[must_use]
pub fn told(text: &str) -> String {
    replaced(&replaced(text, WORK, "."), HOME, "~")
}

/// Only whole names: `/home/me` is not a part of `/home/meg`, and neither of `/mnt/home/me`.
fn replaced(text: &str, place: &str, stands: &str) -> String {
    let name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(place) {
        let (before, from) = rest.split_at(at);
        let after = from.get(place.len()..).unwrap_or_default();
        let begins = !before
            .chars()
            .next_back()
            .is_some_and(|letter| name(letter) || letter == '/');
        let ends = !after.chars().next().is_some_and(name);
        out.push_str(before);
        out.push_str(if begins && ends { stands } else { place });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A place of a world, absolute; `None` if the text is none.
#[must_use]
pub fn absolute(path: &str) -> Option<String> {
    let path = path.trim();
    let whole = match path.strip_prefix('~') {
        Some("") => HOME.to_owned(),
        Some(rest) => format!("{HOME}/{}", rest.strip_prefix('/')?),
        None if path.starts_with('/') => path.to_owned(),
        None => format!("{WORK}/{path}"),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    (!path.is_empty() && !parts.is_empty() && !whole.contains('\0'))
        .then(|| format!("/{}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::told;
    use super::{Places, absolute};

    #[test]
    fn whole_places_move_and_parts_of_names_stay() {
        let places = Places::new(Some("/home/me/proj"), Some("/home/me"));
        for (text, expected) in [
            (
                "cat /home/me/proj/a /home/me/b",
                "cat /home/u/work/a /home/u/b",
            ),
            ("/home/me/project", "/home/u/project"),
            ("/mnt/home/me/proj", "/mnt/home/me/proj"),
            (
                "cd /home/me/proj&&ls '/home/me/proj'",
                "cd /home/u/work&&ls '/home/u/work'",
            ),
            ("/home/meg", "/home/meg"),
        ] {
            assert_eq!(places.text(text), expected);
        }
        assert_eq!(Places::new(Some("/"), None).text("/ a"), "/ a");
    }

    #[test]
    fn names_become_places_without_detours() {
        for (path, expected) in [
            ("a/../b", Some("/home/u/work/b")),
            ("~/x", Some("/home/u/x")),
            ("/etc//hosts", Some("/etc/hosts")),
            ("../x", Some("/home/u/x")),
            ("~other/x", None),
            ("", None),
            ("/", None),
        ] {
            assert_eq!(absolute(path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn who_reads_of_a_place_knows_it() {
        for (text, shown) in [
            (
                "it needs fs.create on /home/u/a.txt",
                "it needs fs.create on ~/a.txt",
            ),
            ("fs.modify in /home/u, by patch", "fs.modify in ~, by patch"),
            ("/home/u/work/src and /home/u/work", "./src and ."),
            (
                "/home/una /srv/home/u /home/u/workshop",
                "/home/una /srv/home/u ~/workshop",
            ),
        ] {
            assert_eq!(told(text), shown);
        }
    }
}
