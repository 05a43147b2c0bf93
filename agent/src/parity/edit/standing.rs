//! Whether an edit is covered by what the user granted for the session.
//!
//! A client's mode becomes grants in a session of the core, and each edit is
//! put to that session as the call it is. So "approved for the session" means
//! here what it means everywhere: a live grant covers the file, and no rule
//! above the grants wants the user to be asked.

use std::fs;

use hermitcrab_core::authority::Verb;
use hermitcrab_core::batch::{
    LinkFact, Links, ScopeError, ScopePath, Standing, canonical, physical,
};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::edit::{EditMode, Reach};
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::session::Asking;
use hermitcrab_core::tool::Tool;
use sha2::{Digest as _, Sha256};

use crate::parity::batch::HostLinks;
use crate::parity::path::{self, Ruling, Setting};

/// The verbs a grant for edits holds.
const EDIT_VERBS: [Verb; 5] = [
    Verb::FsList,
    Verb::FsRead,
    Verb::FsCreate,
    Verb::FsModify,
    Verb::FsDelete,
];

/// What one mode grants, and where the session stands.
#[derive(Debug)]
pub struct Desk<'a> {
    held: Vec<path::Standing>,
    standing: Standing<'a>,
}

impl<'a> Desk<'a> {
    /// The grants of a session in which `mode` was chosen for `workspace`;
    /// `temp` is the directory for temporary files.
    ///
    /// # Errors
    /// A directory has no settled name, so nothing can be granted on it.
    pub fn open(
        mode: EditMode,
        workspace: Option<&str>,
        temp: &str,
        standing: Standing<'a>,
    ) -> Result<Self, ScopeError> {
        let places: Vec<&str> = match mode.reach() {
            Reach::Nowhere => Vec::new(),
            Reach::WorkspaceAndTemp => workspace.into_iter().chain([temp]).collect(),
            Reach::Anywhere => vec!["/"],
        };
        let grant = |place: &&str| {
            // The user means the directory itself, whatever links lead to it.
            canonical(place, standing, &HostLinks).map(|place| path::Standing {
                verbs: EDIT_VERBS.to_vec(),
                on: place.to_string(),
            })
        };
        Ok(Self {
            held: places.iter().map(grant).collect::<Result<_, _>>()?,
            standing,
        })
    }

    /// May `tool` change the file at `path`, as the model wrote it? First the
    /// monitor is asked, then what the directory capability would say.
    #[must_use]
    pub fn judge(&self, tool: Tool, path: &str) -> Ruling {
        let place = match canonical(path, self.standing, &AsWritten) {
            Ok(place) => place,
            Err(error) => return Ruling::Deny(code_of(error)),
        };
        let there = There::look(&place);
        match self.monitor(tool, &place, there) {
            Ruling::Permit => {}
            ruling @ (Ruling::Ask(_) | Ruling::Deny(_)) => return ruling,
        }
        match self.passed(tool, path) {
            Ruling::Permit => self.containment(path, &place, there),
            ruling @ (Ruling::Ask(_) | Ruling::Deny(_)) => ruling,
        }
    }

    fn monitor(&self, tool: Tool, place: &ScopePath, there: There) -> Ruling {
        let verb = match there {
            There::Nothing => Verb::FsCreate,
            There::File | There::NotAFile => Verb::FsModify,
        };
        let setting = Setting {
            home: self.standing.home.unwrap_or("/"),
            cwd: self.standing.cwd,
            protected: &[],
            held: &self.held,
            asking: Asking::Prompt,
            hash: sha256,
        };
        path::judge(&setting, tool, verb, &place.to_string())
    }

    /// A path that names a sensitive place and leaves it again by `..` is no
    /// way around being asked: who reads it quickly reads that name.
    fn passed(&self, tool: Tool, path: &str) -> Ruling {
        let dots = path.match_indices("..").filter(|(start, dots)| {
            let before = path.get(..*start).unwrap_or_default();
            let after = path.get(start + dots.len()..).unwrap_or_default();
            (before.is_empty() || before.ends_with('/'))
                && (after.is_empty() || after.starts_with('/'))
        });
        for (start, _) in dots {
            let before = path.get(..start).unwrap_or_default();
            let Ok(place) = canonical(before, self.standing, &AsWritten) else {
                return Ruling::Deny(DenialCode::PathEscapes);
            };
            match self.monitor(tool, &place, There::Nothing) {
                Ruling::Ask(why @ DenialCode::SensitivePath) => return Ruling::Ask(why),
                Ruling::Deny(why @ DenialCode::Protected) => return Ruling::Deny(why),
                // Passing by needs no grant.
                Ruling::Permit | Ruling::Ask(_) | Ruling::Deny(_) => {}
            }
        }
        Ruling::Permit
    }

    /// What the directory capability says to a change there, told beforehand.
    fn containment(&self, path: &str, place: &ScopePath, there: There) -> Ruling {
        if path.is_empty() {
            return Ruling::Deny(DenialCode::PathEmpty);
        }
        if path.ends_with('/') {
            return Ruling::Deny(DenialCode::PathTrailingSlash);
        }
        match physical(path, self.standing, &HostLinks) {
            Err(error) => return Ruling::Deny(code_of(error)),
            Ok(followed) if followed != *place => {
                return Ruling::Deny(DenialCode::SymlinkRefused);
            }
            Ok(_) => {}
        }
        match there {
            There::NotAFile => Ruling::Deny(DenialCode::NotRegularFile),
            There::File | There::Nothing => Ruling::Permit,
        }
    }
}

/// What is at a place, not following a link there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum There {
    Nothing,
    File,
    NotAFile,
}

impl There {
    fn look(place: &ScopePath) -> Self {
        match fs::symlink_metadata(place.as_str()) {
            Ok(found) if found.is_file() => Self::File,
            Ok(_) => Self::NotAFile,
            Err(_) => Self::Nothing,
        }
    }
}

/// Follows no link.
struct AsWritten;

impl Links for AsWritten {
    fn look(&self, _path: &ScopePath) -> LinkFact {
        LinkFact::NotALink
    }
}

fn code_of(error: ScopeError) -> DenialCode {
    match error {
        ScopeError::HasNul => DenialCode::PathNul,
        ScopeError::TooLong => DenialCode::PathTooLong,
        ScopeError::UnknownHome | ScopeError::RelativeBase => DenialCode::NoCap,
        ScopeError::LinkLoop | ScopeError::LinkUnknown => DenialCode::SymlinkRefused,
    }
}

fn sha256(bytes: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(bytes).into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// `ws/` with `a.txt`, `sub/` and `out -> ../home`; `tmp/`; `home/`.
    fn check(mode: &str, path: &str, expected: Ruling) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["ws/sub", "tmp", "home"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("ws/a.txt"), "x").unwrap();
        symlink("../home", root.join("ws/out")).unwrap();
        let place = |name: &str| root.join(name).to_str().unwrap().to_owned();
        let (ws, tmp, home) = (place("ws"), place("tmp"), place("home"));
        let standing = Standing {
            cwd: &ws,
            home: Some(&home),
        };
        let desk = Desk::open(EditMode::read(mode), Some(&ws), &tmp, standing).unwrap();
        let path = path.replace("TMP", &tmp);
        assert_eq!(
            desk.judge(Tool::WriteFile, &path),
            expected,
            "{mode} {path}"
        );
    }

    #[test]
    fn what_the_mode_grants_is_not_asked_about() {
        for mode in ["workspace_session", "session", " session "] {
            for path in [
                "a.txt",
                "./new.txt",
                "sub/../a.txt",
                "Makefile",
                "TMP/x",
                "a.txt ",
                ".gitignore",
            ] {
                check(mode, path, Ruling::Permit);
            }
        }
        check("session", "~/x", Ruling::Permit);
    }

    #[test]
    fn what_is_not_granted_is_asked_about() {
        for mode in ["ask", "", "bogus", "WORKSPACE_SESSION"] {
            check(mode, "a.txt", Ruling::Ask(DenialCode::NoCap));
        }
        for path in ["~/x", "../x", "TMP/../home/x", "/"] {
            check("workspace_session", path, Ruling::Ask(DenialCode::NoCap));
        }
    }

    #[test]
    fn sensitive_names_are_asked_about_whatever_is_granted() {
        for path in [
            ".env",
            "sub/.env.production",
            ".git/config",
            ".SSH/x",
            "id_rsa",
            ".aws/credentials",
            ".ssh/../a.txt",
            "sub/.git/../../a.txt",
        ] {
            check("session", path, Ruling::Ask(DenialCode::SensitivePath));
        }
    }

    #[test]
    fn a_granted_edit_that_cannot_be_contained_is_refused() {
        check(
            "workspace_session",
            "out/x",
            Ruling::Deny(DenialCode::SymlinkRefused),
        );
        check("session", "out/x", Ruling::Deny(DenialCode::SymlinkRefused));
        check("session", "out", Ruling::Deny(DenialCode::SymlinkRefused));
        check("session", "sub", Ruling::Deny(DenialCode::NotRegularFile));
        check(
            "session",
            "a.txt/",
            Ruling::Deny(DenialCode::PathTrailingSlash),
        );
        check("session", "", Ruling::Deny(DenialCode::PathEmpty));
        check("session", "a\0b", Ruling::Deny(DenialCode::PathNul));
    }
}
