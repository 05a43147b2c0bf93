//! Where does a name lead, below a directory?
//!
//! Asked of the directory capability and thereby of the kernel, with a permit
//! from a session that holds just that directory. What is created to find out
//! is removed again before the answer is given.

use std::io;
use std::path::Path;

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{DirId, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::grant::AgentId;
use hermitcrab_core::outcome::{Denial, DenialCode};
use hermitcrab_core::path::RelPath;
use hermitcrab_core::session::{Asking, Call, Event, Session};
use hermitcrab_core::time::Instant;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::dircap::Base;
use hermitcrab_sandbox::{DirCap, FsError, sha256};

use super::{Held, Setting, Standing, hold};

/// The longest file that is read to find out whether it can be.
const BYTES_MAX: usize = 1 << 20;

/// What is tried on a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Try {
    /// Look at what is there.
    Look,
    /// Read it.
    Read,
    /// Put a file there; what was put is taken away again.
    Create,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reached {
    /// It worked, or would but for a reason that has nothing to do with authority.
    Inside,
    /// It stays inside, and nothing is there.
    Missing,
    /// It was refused.
    Refused(DenialCode),
    /// The kernel found no way: a loop of links, a file used as a directory.
    NoWay(String),
}

/// Tries `name` below the directory `root`, which the caller may open.
///
/// # Errors
/// `root` cannot be opened.
pub fn reach(root: &str, name: &[u8], what: Try) -> io::Result<Reached> {
    let path = match RelPath::parse_dir(name) {
        Ok(path) => path,
        Err(error) => return Ok(Reached::Refused(error.code())),
    };
    let verbs = vec![
        Verb::FsRead,
        Verb::FsList,
        Verb::FsCreate,
        Verb::FsModify,
        Verb::FsDelete,
    ];
    let setting = Setting {
        home: "/",
        cwd: "/",
        protected: &[],
        // The directory is the session's `/`: the name is judged by where it leads, not by how it reads.
        held: &[Standing {
            verbs,
            on: "/".to_owned(),
        }],
        asking: Asking::Refuse,
        hash: sha256,
    };
    let Ok(Held {
        mut session,
        root: id,
    }) = hold(&setting)
    else {
        return Ok(Reached::Refused(DenialCode::NoCap));
    };
    let dir = DirCap::open_ambient_dir(Path::new(root), id)?;
    let tried = match what {
        Try::Look => once(
            &mut session,
            id,
            Verb::FsList,
            &path,
            Digest::NONE,
            |permit| dir.stat(permit, &path).map(drop),
        ),
        Try::Read => once(
            &mut session,
            id,
            Verb::FsRead,
            &path,
            Digest::NONE,
            |permit| dir.read(permit, &path, BYTES_MAX).map(drop),
        ),
        Try::Create => create(&mut session, &dir, &path),
    };
    Ok(match tried {
        Ok(()) => Reached::Inside,
        Err(FsError::Denied(denial)) => Reached::Refused(denial.code()),
        Err(FsError::Io { source, .. }) => match source.kind() {
            io::ErrorKind::NotFound => Reached::Missing,
            // The name leads to something inside that the process has no right to.
            io::ErrorKind::PermissionDenied => Reached::Inside,
            _ => Reached::NoWay(source.to_string()),
        },
    })
}

fn create(session: &mut Session, dir: &DirCap, path: &RelPath) -> Result<(), FsError> {
    let id = dir.id();
    once(session, id, Verb::FsCreate, path, sha256(b""), |permit| {
        dir.write(permit, path, b"", Base::Absent, None)
    })?;
    once(session, id, Verb::FsDelete, path, Digest::NONE, |permit| {
        dir.remove(permit, path)
    })
}

/// One action through the session, spent at once.
fn once(
    session: &mut Session,
    dir: DirId,
    verb: Verb,
    path: &RelPath,
    content: Digest,
    spend: impl FnOnce(hermitcrab_core::Permit<'_>) -> Result<(), FsError>,
) -> Result<(), FsError> {
    let action = Action::on_path(verb, dir, path.clone(), content)
        .map_err(|_| Denial::new(DenialCode::EffectNotCovered, path))?;
    let call = Call {
        by: AgentId::FIRST,
        tool: Tool::Directory,
        actions: vec![action],
    };
    let parts = session.step(Instant::BOOT, Event::Call(call)).into_parts();
    match (
        parts.permits.into_iter().next(),
        parts.denials.into_iter().next(),
    ) {
        (Some(permit), _) => spend(permit),
        (None, Some((_, denial))) => Err(denial.into()),
        (None, None) => Err(Denial::new(DenialCode::NoCap, path).into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn check(name: &str, what: Try, expected: Reached) {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path().join("root");
        std::fs::create_dir_all(root.join("a")).unwrap();
        std::fs::write(root.join("a/f"), "x").unwrap();
        std::fs::write(tree.path().join("secret"), "s").unwrap();
        symlink("a", root.join("in")).unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let before = std::fs::read_dir(root.join("a")).unwrap().count();
        let reached = reach(root.to_str().unwrap(), name.as_bytes(), what).unwrap();
        match (&reached, &expected) {
            (Reached::NoWay(_), Reached::NoWay(_)) => {}
            _ => assert_eq!(reached, expected, "{name}"),
        }
        assert_eq!(
            std::fs::read_dir(root.join("a")).unwrap().count(),
            before,
            "{name} left something"
        );
    }

    #[test]
    fn a_name_that_stays_inside_is_reached_or_missing() {
        check("a/f", Try::Look, Reached::Inside);
        check("in/f", Try::Read, Reached::Inside);
        check("a/none", Try::Look, Reached::Missing);
        check("a/new", Try::Create, Reached::Inside);
        check("a/", Try::Look, Reached::Inside);
    }

    #[test]
    fn a_name_that_leads_out_is_refused_with_the_reason() {
        check(
            "../secret",
            Try::Look,
            Reached::Refused(DenialCode::PathEscapes),
        );
        check(
            "/etc/passwd",
            Try::Read,
            Reached::Refused(DenialCode::PathAbsolute),
        );
        check("out", Try::Look, Reached::Refused(DenialCode::OutsideRoot));
        check(
            "in/new",
            Try::Create,
            Reached::Refused(DenialCode::SymlinkRefused),
        );
        check("", Try::Look, Reached::Refused(DenialCode::PathEmpty));
    }

    #[test]
    fn a_loop_of_links_or_a_file_as_a_directory_is_no_way() {
        check("loop/x", Try::Look, Reached::NoWay(String::new()));
        check("a/f/x", Try::Look, Reached::NoWay(String::new()));
    }
}
