//! What of a server's own files it is not shown: a program in the home that is not found says
//! only that there is no such file, which its user sees there.

use std::path::Path;

use super::{
    super::{Runtime, mounts::real},
    Program,
};

impl Runtime {
    /// Of the words a server is started with, the first that names a file which commands are
    /// not shown, and what shows it to them.
    pub(super) fn not_shown(&self, program: &Program) -> Option<String> {
        let home = real(&self.config.home);
        let file = program.argv.iter().map(Path::new).find(|file| {
            let place = real(file);
            file.is_absolute()
                && place.starts_with(&home)
                && place.is_file()
                && self.mounts.locate(&place).is_none()
        })?;
        let (file, dir) = (file.to_str()?, file.parent()?);
        if !is_plain(file) {
            return Some("commands are not shown what lies in your home; `hermitcrab config add-directory DIR` shows them a directory".to_owned());
        }
        // The whole home is shown to nobody.
        if real(dir) == home {
            return Some(format!(
                "commands are not shown `{file}`; in a directory of its own they are, after `hermitcrab config add-directory DIR`"
            ));
        }
        Some(format!(
            "commands are not shown `{file}`; `hermitcrab config add-directory {}` shows them the directory",
            dir.display()
        ))
    }
}

/// Whether no letter of it means anything on a command line.
fn is_plain(path: &str) -> bool {
    path.chars()
        .all(|letter| letter.is_ascii_alphanumeric() || "/._-+@".contains(letter))
}
