//! What becomes of one name, and of one that several commands did something to.

use std::collections::BTreeMap;
use std::fmt;

use bisim_world::protocol::FsEffect;
use hermitcrab_core::action::Action;
use hermitcrab_core::authority::DirId;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::behind_a_link;
use hermitcrab_sandbox::changeset::What;

/// What becomes of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// There is a new file, with these permission bits; of settings and hooks of git it is
    /// told what they hold, since the decision goes by that.
    File(u32, Option<Digest>),
    /// There is a new directory with these.
    Dir(u32),
    /// There is a new symbolic link.
    Link,
    /// What was there is another.
    Changed,
    /// It is gone.
    Gone,
}

/// What becomes of names, by path.
pub type Does = BTreeMap<String, Fate>;

/// As the catalogue writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line(pub String, pub Fate);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Fate::File(mode, None) => write!(f, "+f{mode:o} {}", self.0),
            Fate::File(mode, Some(holds)) => {
                let holds = data_encoding::HEXLOWER.encode(holds.as_bytes());
                write!(f, "+f{mode:o}:{holds} {}", self.0)
            }
            Fate::Dir(mode) => write!(f, "+d{mode:o} {}", self.0),
            Fate::Link => write!(f, "+l {}", self.0),
            Fate::Changed => write!(f, "~ {}", self.0),
            Fate::Gone => write!(f, "- {}", self.0),
        }
    }
}

impl Line {
    /// Reads one; `None` for anything else.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let (mark, path) = line.split_once(' ')?;
        let mode = |text: &str| u32::from_str_radix(text, 8).ok();
        let fate = match mark {
            "~" => Fate::Changed,
            "-" => Fate::Gone,
            "+l" => Fate::Link,
            _ => match mark.split_at_checked(2)? {
                ("+d", bits) => Fate::Dir(mode(bits)?),
                ("+f", bits) => match bits.split_once(':') {
                    None => Fate::File(mode(bits)?, None),
                    Some((bits, holds)) => Fate::File(mode(bits)?, Some(digest(holds)?)),
                },
                _ => return None,
            },
        };
        (!path.is_empty()).then(|| Self(path.to_owned(), fate))
    }
}

fn digest(hex: &str) -> Option<Digest> {
    let bytes = data_encoding::HEXLOWER.decode(hex.as_bytes()).ok()?;
    Some(Digest::from_bytes(bytes.try_into().ok()?))
}

/// What happened in a directory between two looks at a world, both told as what differs
/// from where the world began. Nothing was in the directory then.
#[must_use]
pub fn between(before: &[FsEffect], after: &[FsEffect], dir: &str) -> Does {
    let old: BTreeMap<&str, &FsEffect> = below(before, dir).collect();
    let new: BTreeMap<&str, &FsEffect> = below(after, dir).collect();
    let mut does = Does::new();
    for (path, effect) in &new {
        match old.get(path) {
            Some(known) if is_alike(known, effect) => {}
            Some(_) => {
                does.insert((*path).to_owned(), Fate::Changed);
            }
            None => {
                does.insert((*path).to_owned(), made(path, effect));
            }
        }
    }
    let gone = old.keys().filter(|path| !new.contains_key(*path));
    does.extend(gone.map(|path| ((*path).to_owned(), Fate::Gone)));
    does
}

fn is_alike(one: &FsEffect, other: &FsEffect) -> bool {
    (&one.digest, one.mode, one.size) == (&other.digest, other.mode, other.size)
}

fn below<'e>(
    effects: &'e [FsEffect],
    dir: &'e str,
) -> impl Iterator<Item = (&'e str, &'e FsEffect)> {
    effects.iter().filter_map(move |effect| {
        let path = effect.path.strip_prefix(dir)?.strip_prefix('/')?;
        Some((path, effect))
    })
}

fn made(path: &str, effect: &FsEffect) -> Fate {
    match (effect.digest.as_str(), effect.mode) {
        ("", mode) => Fate::Dir(mode),
        (_, 0) => Fate::Link,
        (holds, mode) => {
            let steers = path.ends_with(".git/config") || path.contains(".git/hooks/");
            Fate::File(mode, steers.then(|| digest(holds)).flatten())
        }
    }
}

/// Adds what was done afterwards.
pub fn then(does: &mut Does, path: String, next: Fate) {
    let first = does.remove(&path);
    let both = match (first, next) {
        (None, next) => Some(next),
        // What was made and changed was made; what was made and removed was nothing.
        (Some(made @ (Fate::File(..) | Fate::Dir(_) | Fate::Link)), Fate::Changed) => Some(made),
        (Some(Fate::File(..) | Fate::Dir(_) | Fate::Link), Fate::Gone) => None,
        (Some(Fate::Gone), Fate::Dir(_)) => None,
        (Some(Fate::Gone | Fate::Changed), Fate::File(..) | Fate::Link | Fate::Dir(_)) => {
            Some(Fate::Changed)
        }
        (Some(_), next) => Some(next),
    };
    if let Some(both) = both {
        does.insert(path, both);
    }
}

/// The actions that are decided about, as the agent makes them of what it finds in a layer.
///
/// # Errors
/// A path is none.
pub fn actions(does: &Does, dir: DirId) -> Result<Vec<Action>, String> {
    let mut actions = Vec::with_capacity(does.len());
    let mut behind = Vec::new();
    for (path, fate) in does {
        let what = what(*fate);
        let path = RelPath::parse(path.as_bytes()).map_err(|error| format!("{path}: {error}"))?;
        if *fate == Fate::Link {
            behind.extend(behind_a_link(&path));
        }
        let action = Action::on_path(what.verb(), dir, path, what.digest());
        actions.push(action.map_err(|error| error.to_string())?);
    }
    for path in behind {
        let what = what(Fate::Link);
        let action = Action::on_path(what.verb(), dir, path, what.digest());
        actions.push(action.map_err(|error| error.to_string())?);
    }
    Ok(actions)
}

/// In the agent's own words; what a file holds counts only where it is told.
fn what(fate: Fate) -> What {
    match fate {
        Fate::File(mode, holds) => What::CreatedFile {
            digest: holds.unwrap_or(Digest::NONE),
            bytes: 1,
            mode,
        },
        Fate::Dir(mode) => What::CreatedDir { mode },
        Fate::Link => What::CreatedSymlink {
            target: b"there".to_vec(),
        },
        Fate::Changed => What::ModifiedFile {
            base: Digest::NONE,
            digest: Digest::NONE,
            bytes: 1,
            mode_before: 0o644,
            mode: 0o644,
        },
        Fate::Gone => What::DeletedFile { base: Digest::NONE },
    }
}

/// What no two runs have in common: names of objects and packs, and of the version that
/// compiled something.
#[must_use]
pub fn steady(does: &Does) -> Does {
    let mut steady = Does::new();
    for (path, fate) in does {
        let path = path.split('/').map(plain).collect::<Vec<_>>().join("/");
        let path = match path.split_once(".git/objects/") {
            // How many directories of objects are new goes by chance.
            Some((store, rest)) if !rest.starts_with("pack") && !rest.starts_with("info") => {
                format!("{store}.git/objects/ab/{}", "c".repeat(38))
            }
            Some((store, rest)) => match rest.rsplit_once('.') {
                Some((_, ending)) => {
                    format!("{store}.git/objects/pack/pack-{}.{ending}", "d".repeat(40))
                }
                None => path,
            },
            None => path,
        };
        if path.ends_with(&"c".repeat(38)) && *fate != Fate::Gone {
            steady.insert(path, Fate::File(0o444, None));
        } else {
            steady.insert(path, *fate);
        }
    }
    steady
}

fn plain(name: &str) -> String {
    match name.split_once(".cpython-") {
        Some((head, rest)) => {
            let rest = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
            format!("{head}.cpython-311{rest}")
        }
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bisim_world::protocol::EffectKind;

    fn effect(path: &str, digest: &str, mode: u32) -> FsEffect {
        FsEffect {
            path: path.to_owned(),
            kind: EffectKind::Created,
            digest: digest.to_owned(),
            size: 0,
            mode,
        }
    }

    #[test]
    fn a_line_is_read_as_it_is_written_and_other_lines_are_none() {
        let holds = "0a".repeat(32);
        for line in [
            "+f644 a b",
            &format!("+f755:{holds} .git/config"),
            "+d755 x/y",
            "+l l",
            "~ z",
            "- ü/w",
        ] {
            assert_eq!(Line::read(line).unwrap().to_string(), line);
        }
        for line in [
            "",
            "x",
            "~",
            "~ ",
            "+f a",
            "+f9 a",
            "+d a",
            "+f644:00 a",
            "*x y",
        ] {
            assert_eq!(Line::read(line), None, "{line}");
        }
    }

    #[test]
    fn what_differs_between_two_looks_is_made_changed_or_gone() {
        let before = [
            effect("/w/d", "", 0o755),
            effect("/w/d/a", "1", 0o644),
            effect("/w/d/b", "1", 0o644),
            effect("/w/d/same", "1", 0o644),
            effect("/w/dd/other", "1", 0o644),
        ];
        let after = [
            effect("/w/d", "", 0o755),
            effect("/w/d/a", "1", 0o600),
            effect("/w/d/l", "1", 0),
            effect("/w/d/n", "", 0o700),
            effect("/w/d/n/f", "1", 0o644),
            effect("/w/d/same", "1", 0o644),
        ];
        let expected = [
            ("a", Fate::Changed),
            ("b", Fate::Gone),
            ("l", Fate::Link),
            ("n", Fate::Dir(0o700)),
            ("n/f", Fate::File(0o644, None)),
        ];
        let expected = expected.map(|(path, fate)| (path.to_owned(), fate));
        assert_eq!(between(&before, &after, "/w/d"), expected.into());
    }

    #[test]
    fn what_two_commands_did_to_a_name_is_one_thing_or_nothing() {
        let file = Fate::File(0o644, None);
        for (first, next, both) in [
            (file, Fate::Changed, Some(file)),
            (file, Fate::Gone, None),
            (Fate::Dir(0o755), Fate::Gone, None),
            (Fate::Gone, Fate::Dir(0o755), None),
            (Fate::Gone, file, Some(Fate::Changed)),
            (Fate::Changed, Fate::Changed, Some(Fate::Changed)),
            (Fate::Changed, Fate::Gone, Some(Fate::Gone)),
        ] {
            let mut does = Does::from([("a".to_owned(), first)]);
            then(&mut does, "a".to_owned(), next);
            assert_eq!(does.get("a").copied(), both, "{first:?} {next:?}");
        }
    }

    #[test]
    fn names_that_go_by_chance_are_one_name() {
        let object = |two: &str| format!(".git/objects/{two}/{}", "1".repeat(38));
        let does = Does::from([
            (".git/objects/aa".to_owned(), Fate::Dir(0o755)),
            (object("aa"), Fate::File(0o444, None)),
            (object("bb"), Fate::File(0o444, None)),
            (
                "p/__pycache__/m.cpython-313.pyc".to_owned(),
                Fate::File(0o644, None),
            ),
        ]);
        let paths: Vec<String> = steady(&does).into_keys().collect();
        let object = format!(".git/objects/ab/{}", "c".repeat(38));
        assert_eq!(
            paths,
            [object, "p/__pycache__/m.cpython-311.pyc".to_owned()]
        );
    }
}
