//! Programs that are no part of the machine: those a person has put into their home or into
//! what they work on, and looks for by `PATH`.
//!
//! A command finds them where it is shown their directory. Where one was not found, and is in a
//! directory that commands are not shown, the person is told how it is shown to them.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use super::Ground;
use crate::{ambient, cli::quoted::quoted, runtime::real, screen::on_one_line};

impl Ground {
    /// The directories of programs of this person's that commands are shown, in the person's
    /// order, as they are named where commands run.
    pub(super) fn programs_shown(&self) -> Vec<String> {
        let shown = ambient::own_program_dirs();
        let shown = shown.into_iter().filter_map(|dir| self.shown_as(&dir));
        // What cannot be written into a list with colons is none of it.
        let mut listed: Vec<String> = Vec::new();
        for dir in shown.filter_map(|dir| dir.into_os_string().into_string().ok()) {
            if !dir.contains(':') && !listed.contains(&dir) {
                listed.push(dir);
            }
        }
        listed
    }

    /// Whether a place lies in the workspace or in a directory that is configured.
    pub fn shows(&self, place: &Path) -> bool {
        let mut directories = self.directories().map(|dir| real(&dir));
        place.starts_with(&self.workspace) || directories.any(|dir| place.starts_with(dir))
    }

    /// The directories that are configured.
    fn directories(&self) -> impl Iterator<Item = PathBuf> {
        let configured = self.config.directories().iter();
        let all = configured.chain(self.admin.directories());
        all.map(|place| from_home(place, &self.places.home))
    }

    /// The name of a directory where commands run, if they are shown it.
    fn shown_as(&self, dir: &Path) -> Option<PathBuf> {
        if self.directories().any(|shown| dir.starts_with(shown)) {
            return Some(dir.to_owned());
        }
        // The shell may have come here through a link.
        Some(real(dir)).filter(|dir| dir.starts_with(&self.workspace))
    }

    /// Those that commands are not shown and in which something is.
    pub fn programs_hidden(&self) -> Vec<PathBuf> {
        let is_some =
            |dir: &PathBuf| std::fs::read_dir(dir).is_ok_and(|mut all| all.next().is_some());
        let mut hidden = Vec::new();
        for dir in ambient::own_program_dirs() {
            if self.shown_as(&dir).is_none() && is_some(&dir) && !hidden.contains(&dir) {
                hidden.push(dir);
            }
        }
        hidden
    }

    /// What this person can do where a command did not find one of these programs, if it is
    /// one of theirs.
    pub fn where_it_is<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Option<String> {
        let own = ambient::own_program_dirs();
        let hidden = own.iter().filter(|dir| self.shown_as(dir).is_none());
        let hidden: Vec<&PathBuf> = hidden.collect();
        names.into_iter().find_map(|name| {
            let dir = hidden.iter().find(|dir| is_program(&dir.join(name)))?;
            advice(name, dir, &self.places.home)
        })
    }
}

/// Nothing where a directory cannot be told as it is.
fn advice(name: &str, dir: &Path, home: &Path) -> Option<String> {
    let needed = needed(&dir.join(name), dir, home);
    let needed = needed.iter().map(|dir| word(dir, home));
    Some(format!(
        "`{}` is in `{}`, which commands are not shown; `hermitcrab config add-directory {}` lets them read it and run what is there",
        on_one_line(name),
        on_one_line(dir.to_str()?),
        needed.collect::<Option<Vec<_>>>()?.join(" ")
    ))
}

/// A directory as a word of a command line.
fn word(dir: &Path, home: &Path) -> Option<String> {
    let (tilde, path) = match dir.strip_prefix(home) {
        Ok(below) => ("~/", below.to_str()?),
        Err(_) => ("", dir.to_str()?),
    };
    if on_one_line(path) != path || path.contains('`') {
        return None;
    }
    // Within quotation marks `~` is none to a shell.
    match quoted(path) == path {
        true => Some(format!("{tilde}{path}")),
        false => Some(quoted(dir.to_str()?)),
    }
}

/// The directories a program of this one needs, as far as that is known: what manages several
/// releases of a language keeps them elsewhere.
fn needed(program: &Path, dir: &Path, home: &Path) -> Vec<PathBuf> {
    let real = real(program);
    if real.file_name().is_some_and(|name| name == "rustup") {
        let above = dir.parent().and_then(Path::parent).unwrap_or(home);
        return vec![dir.to_owned(), above.join(".rustup")];
    }
    let pyenv = home.join(".pyenv");
    if dir.starts_with(&pyenv) {
        return vec![pyenv];
    }
    // A release of node: `npm` is a link from `bin` into `lib`.
    let release = dir.parent().filter(|_| dir.ends_with("bin"));
    // Where packages are put straight into the home, or below it (`~/.local`), not all of that.
    if let Some(release) = release.filter(|release| release.join("lib/node_modules").is_dir())
        && release.parent() != Some(home)
        && !home.starts_with(release)
    {
        return vec![release.to_owned()];
    }
    vec![dir.to_owned()]
}

fn is_program(path: &Path) -> bool {
    let meta = std::fs::metadata(path);
    meta.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

pub(super) fn from_home(written: &str, home: &Path) -> PathBuf {
    match Path::new(written).strip_prefix("~") {
        Ok(below) => home.join(below),
        Err(_) => PathBuf::from(written),
    }
}
