//! Where programs that work in a person's home find what is theirs when a command starts them.
//!
//! Of the home nothing is there but what is shown, and nothing else can be made in it. A program
//! that keeps what it fetched in a directory of the home, and stops where it cannot make that
//! (`npm`, `cargo`, `go`, `gradle`, `mvn`), is told of one in the command's own temporary directory, which is gone
//! with the command. Whoever shows the directory itself has it used.

use std::path::{Path, PathBuf};

use super::{Ground, programs::from_home};
use crate::ambient;

/// A variable by which programs find a directory, where that is in a home unless the variable
/// says otherwise, and what takes its place.
const FETCHED: [(&str, &str, &str); 5] = [
    ("XDG_CACHE_HOME", ".cache", "/tmp/.cache"),
    ("npm_config_cache", ".npm", "/tmp/.npm"),
    ("CARGO_HOME", ".cargo", "/tmp/.cargo"),
    ("GOPATH", "go", "/tmp/go"),
    ("GRADLE_USER_HOME", ".gradle", "/tmp/.gradle"),
];
/// Maven goes by no such variable, but by an option of the machine it runs on; the person's own
/// variable of that name is not handed on. What says where its proxy is comes after it.
const MAVEN: (&str, &str) = ("MAVEN_OPTS", "-Dmaven.repo.local=/tmp/.m2/repository");
/// Variables that name where releases of a program are installed. They are of use to a
/// command that is shown the directory, and to no other.
const INSTALLED: [&str; 2] = ["RUSTUP_HOME", "PYENV_ROOT"];

impl Ground {
    /// What commands start with so that such programs find their way.
    pub(super) fn homes_of_programs(&self) -> Vec<(String, String)> {
        let home = &self.places.home;
        let directories = self.config.directories().iter();
        let mut shown: Vec<PathBuf> = directories
            .chain(self.admin.directories())
            .map(|written| from_home(written, home))
            .collect();
        shown.push(self.workspace.clone());
        let mut env = Vec::new();
        let mut say = |name: &str, dir: &Path| {
            env.push((name.to_owned(), dir.to_string_lossy().into_owned()));
        };
        for (name, usual, instead) in FETCHED {
            let own = ambient::own_dir(name);
            let place = own.clone().unwrap_or_else(|| home.join(usual));
            match (is_used(&place, &shown), own) {
                (true, Some(own)) => say(name, &own),
                (true, None) => {}
                (false, _) => say(name, Path::new(instead)),
            }
        }
        if !is_used(&home.join(".m2"), &shown) {
            say(MAVEN.0, Path::new(MAVEN.1));
        }
        for name in INSTALLED {
            if let Some(dir) = ambient::own_dir(name)
                && shown.iter().any(|shown| dir.starts_with(shown))
            {
                say(name, &dir);
            }
        }
        env
    }
}

/// Whether a command is shown that directory or a part of it. Programs in it (`~/.cargo/bin`) are
/// found by `PATH`.
fn is_used(place: &Path, shown: &[PathBuf]) -> bool {
    shown
        .iter()
        .any(|dir| place.starts_with(dir) || (dir.starts_with(place) && *dir != place.join("bin")))
}
