//! `DirCap` and `Grant`: what Python holds.
//!
//! A grant is a directory capability that can end, and is used like one. Every
//! method names a relative place, asks the directory's session, and lets the
//! kernel check at the use itself that the place lies below the directory. The
//! interpreter runs on meanwhile.
//!
//! Nothing here may take an absolute path to act on.

use std::ffi::OsString;
use std::os::fd::IntoRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{Cap, Object, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::grant::{Lifetime, Uses};
use hermitcrab_core::monitor::Permit;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::path::RelPath;
use hermitcrab_core::time::Millis;
use hermitcrab_sandbox::dircap::{self, Base, Kind};
use hermitcrab_sandbox::{FsError, sha256};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rustix::io::Errno;

use crate::refusal::{Failure, unshown};
use crate::room::{self, Hold, Narrower};

/// How much `read` returns at most when nobody says.
const READ_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An open directory and the right to do something in it.
#[pyclass(frozen, subclass, module = "hermitcrab_caps")]
pub(crate) struct DirCap {
    dir: Arc<hermitcrab_sandbox::DirCap>,
    hold: Arc<Hold>,
}

/// A capability made from another one: narrower, with an end, revocable.
#[pyclass(frozen, extends = DirCap, module = "hermitcrab_caps")]
pub(crate) struct Grant;

/// One name in a directory.
#[pyclass(frozen, module = "hermitcrab_caps")]
pub(crate) struct Entry {
    #[pyo3(get)]
    name: OsString,
    #[pyo3(get)]
    kind: &'static str,
}

/// Facts about a file.
#[pyclass(frozen, module = "hermitcrab_caps")]
pub(crate) struct Stat {
    #[pyo3(get)]
    kind: &'static str,
    #[pyo3(get)]
    size: u64,
    #[pyo3(get)]
    mode: u32,
    #[pyo3(get)]
    links: u64,
    #[pyo3(get)]
    modified_ns: i128,
}

impl DirCap {
    /// Opens a directory with the authority of the process.
    pub(crate) fn open_dir(py: Python<'_>, path: &Path, verbs: &[Verb]) -> PyResult<Self> {
        let (dir, hold) = py.detach(|| room::open(path, verbs))?;
        Ok(Self {
            dir: Arc::new(dir),
            hold: Arc::new(hold),
        })
    }

    fn place(&self, path: &RelPath) -> Result<RelPath, Failure> {
        self.dir
            .place(path)
            .map_err(|error| Failure::denied(error.code(), path))
    }

    fn action(&self, verb: Verb, path: &RelPath, digest: Digest) -> Result<Action, Failure> {
        Action::on_path(verb, self.dir.id(), self.place(path)?, digest)
            .map_err(|error| Failure::denied(DenialCode::BadArguments, error))
    }

    /// On all that lies below a place as well.
    fn action_on_all(&self, verb: Verb, path: &RelPath) -> Result<Action, Failure> {
        Action::on_tree(verb, self.dir.id(), self.place(path)?, Digest::NONE)
            .map_err(|error| Failure::denied(DenialCode::BadArguments, error))
    }

    /// One action, done with its permit while the interpreter runs on.
    fn act<T: Send>(
        &self,
        py: Python<'_>,
        verb: Verb,
        path: &RelPath,
        digest: Digest,
        spend: impl FnOnce(Permit<'_>) -> Result<T, FsError> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| {
            let action = self.action(verb, path, digest)?;
            self.hold.act(vec![action], |permits| {
                let mut permits = permits.into_iter();
                permits.next().map_or_else(|| Err(lost(path)), spend)
            })
        });
        Ok(done?)
    }

    /// Looking at a name is a part of listing and of reading.
    fn look(&self, path: &RelPath) -> Result<Verb, Failure> {
        let below = self.place(path)?;
        let dir = self.dir.id();
        let list = Cap::new(Verb::FsList, Object::alone(dir, below))
            .map_err(|error| Failure::denied(DenialCode::BadArguments, error))?;
        let lists = self.hold.covers(&list)?;
        Ok(if lists { Verb::FsList } else { Verb::FsRead })
    }

    /// An open file as an object of Python.
    pub(crate) fn open_file<'py>(
        &self,
        py: Python<'py>,
        path: &RelPath,
    ) -> PyResult<Bound<'py, PyAny>> {
        let file = self.act(py, Verb::FsRead, path, Digest::NONE, |permit| {
            self.dir.open(permit, path)
        })?;
        py.import("os")?
            .call_method1("fdopen", (file.into_raw_fd(), "rb"))
    }

    fn narrower(
        &self,
        py: Python<'_>,
        rights: Option<Vec<String>>,
        uses: Option<u64>,
        seconds: Option<f64>,
        below: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let uses = match uses {
            Some(0) => return Err(PyValueError::new_err("uses: at least 1")),
            Some(count) => Uses::AtMost(count),
            None => Uses::Uncounted,
        };
        let wanted = Narrower {
            verbs: rights.map(|names| verbs(&names)).transpose()?,
            place: self.place(&name(below)?)?,
            uses,
            lifetime: seconds.map_or(Ok(Lifetime::Session), lifetime)?,
        };
        let hold = py.detach(|| self.hold.narrow(self.dir.id(), wanted))?;
        Ok(Self {
            dir: Arc::clone(&self.dir),
            hold: Arc::new(hold),
        })
    }
}

#[pymethods]
impl DirCap {
    #[new]
    #[pyo3(signature = (path, rights=None))]
    fn new(py: Python<'_>, path: PathBuf, rights: Option<Vec<String>>) -> PyResult<Self> {
        let verbs = rights.map_or(Ok(Verb::FILES.to_vec()), |names| verbs(&names))?;
        Self::open_dir(py, &path, &verbs)
    }

    /// A file's content.
    #[pyo3(signature = (path, max_bytes=READ_BYTES_MAX))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        path: &Bound<'_, PyAny>,
        max_bytes: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let path = name(path)?;
        let content = self.act(py, Verb::FsRead, &path, Digest::NONE, |permit| {
            self.dir.read(permit, &path, max_bytes)
        })?;
        Ok(PyBytes::new(py, &content))
    }

    /// A file open for reading.
    fn open<'py>(&self, py: Python<'py>, path: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.open_file(py, &name(path)?)
    }

    /// Makes a file that must not be there yet.
    #[pyo3(signature = (path, data, mode=None))]
    fn create(
        &self,
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        data: &[u8],
        mode: Option<u32>,
    ) -> PyResult<()> {
        let path = name(path)?;
        self.act(py, Verb::FsCreate, &path, sha256(data), |permit| {
            let made = self.dir.write(permit, &path, data, Base::Absent, mode);
            made.map_err(|error| unshown(error, Errno::EXIST, "create", &path))
        })
    }

    /// Replaces the content of a file that is there, all at once.
    fn write(&self, py: Python<'_>, path: &Bound<'_, PyAny>, data: &[u8]) -> PyResult<()> {
        let path = name(path)?;
        self.act(py, Verb::FsModify, &path, sha256(data), |permit| {
            let written = self.dir.write(permit, &path, data, Base::AnyFile, None);
            written.map_err(|error| unshown(error, Errno::NOENT, "write", &path))
        })
    }

    /// Adds to the end of a file that is there.
    fn append(&self, py: Python<'_>, path: &Bound<'_, PyAny>, data: &[u8]) -> PyResult<()> {
        let path = name(path)?;
        self.act(py, Verb::FsModify, &path, sha256(data), |permit| {
            self.dir.append(permit, &path, data)
        })
    }

    /// The names in a directory, sorted by bytes.
    #[pyo3(signature = (path=None))]
    fn list(&self, py: Python<'_>, path: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Entry>> {
        let path = path.map_or(Ok(RelPath::root()), name)?;
        let found = self.act(py, Verb::FsList, &path, Digest::NONE, |permit| {
            self.dir.list(permit, &path)
        })?;
        let entry = |entry: dircap::Entry| Entry {
            name: std::os::unix::ffi::OsStringExt::from_vec(entry.name),
            kind: kind_name(entry.kind),
        };
        Ok(found.into_iter().map(entry).collect())
    }

    /// Facts about what a name leads to.
    fn stat(&self, py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<Stat> {
        let path = name(path)?;
        let verb = self.look(&path)?;
        let stat = self.act(py, verb, &path, Digest::NONE, |permit| {
            self.dir.stat(permit, &path)
        })?;
        Ok(Stat {
            kind: kind_name(stat.kind),
            size: stat.bytes,
            mode: stat.mode,
            links: stat.links,
            modified_ns: stat.modified_ns,
        })
    }

    /// A directory below as a capability of its own, which ends with this one.
    fn subdir(&self, py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<DirCap> {
        let path = name(path)?;
        let verb = self.look(&path)?;
        let dir = py.detach(|| {
            let action = self.action_on_all(verb, &path)?;
            self.hold.act(vec![action], |permits| {
                let mut permits = permits.into_iter();
                let permit = permits.next().ok_or_else(|| lost(&path))?;
                self.dir.subdir(permit, &path)
            })
        })?;
        Ok(DirCap {
            dir: Arc::new(dir),
            hold: Arc::clone(&self.hold),
        })
    }

    /// Makes a directory.
    #[pyo3(signature = (path, mode=0o755))]
    fn mkdir(&self, py: Python<'_>, path: &Bound<'_, PyAny>, mode: u32) -> PyResult<()> {
        let path = name(path)?;
        let digest = dircap::dir_digest(mode);
        self.act(py, Verb::FsCreate, &path, digest, |permit| {
            let made = self.dir.make_dir(permit, &path, mode);
            made.map_err(|error| unshown(error, Errno::EXIST, "make directory", &path))
        })
    }

    /// Removes a file, a link or an empty directory.
    fn remove(&self, py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<()> {
        let path = name(path)?;
        self.act(py, Verb::FsDelete, &path, Digest::NONE, |permit| {
            self.dir.remove(permit, &path)
        })
    }

    /// Gives a file another name, which must be free; two uses.
    fn rename(
        &self,
        py: Python<'_>,
        old: &Bound<'_, PyAny>,
        new: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (from, to) = (name(old)?, name(new)?);
        let done = py.detach(|| {
            let actions = vec![
                // What has the name by then can be a directory.
                self.action_on_all(Verb::FsDelete, &from)?,
                self.action_on_all(Verb::FsCreate, &to)?,
            ];
            self.hold.act(actions, |permits| {
                let mut permits = permits.into_iter();
                match (permits.next(), permits.next()) {
                    (Some(away), Some(here)) => self
                        .dir
                        .rename(away, here, &from, &to)
                        .map_err(|error| unshown(error, Errno::EXIST, "rename", &to)),
                    _ => Err(lost(&from)),
                }
            })
        });
        Ok(done?)
    }

    /// A narrower capability that can end.
    #[pyo3(signature = (rights=None, uses=None, seconds=None, below=None))]
    fn grant(
        slf: &Bound<'_, Self>,
        rights: Option<Vec<String>>,
        uses: Option<u64>,
        seconds: Option<f64>,
        below: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Grant>> {
        let py = slf.py();
        let made = Grant::new(py, slf, rights, uses, seconds, below)?;
        Py::new(py, made)
    }

    /// `live`, `revoked`, `expired` or `exhausted`.
    #[getter]
    fn state(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        let state = py.detach(|| self.hold.state())?;
        Ok(state.map(|state| state.as_str()))
    }
}

#[pymethods]
impl Grant {
    #[new]
    #[pyo3(signature = (cap, rights=None, uses=None, seconds=None, below=None))]
    fn new(
        py: Python<'_>,
        cap: &Bound<'_, DirCap>,
        rights: Option<Vec<String>>,
        uses: Option<u64>,
        seconds: Option<f64>,
        below: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Grant>> {
        let here = pyo3::types::PyString::new(py, ".").into_any();
        let below = below.unwrap_or(&here);
        let base = cap.get().narrower(py, rights, uses, seconds, below)?;
        Ok(PyClassInitializer::from(base).add_subclass(Grant))
    }
}

/// Ends a grant and everything made from it; says how many grants that were.
#[pyfunction]
pub(crate) fn revoke(py: Python<'_>, grant: &Bound<'_, Grant>) -> PyResult<usize> {
    let base = grant.as_super().get();
    Ok(py.detach(|| base.hold.revoke())?)
}

/// A relative name, given as `str`, `bytes` or a path object.
fn name(path: &Bound<'_, PyAny>) -> PyResult<RelPath> {
    let bytes = path.py().import("os")?.call_method1("fsencode", (path,))?;
    let bytes: &[u8] = bytes.extract()?;
    let parsed = RelPath::parse(bytes);
    Ok(parsed.map_err(|error| Failure::denied(error.code(), bytes.escape_ascii()))?)
}

/// Verbs by their names, `fs.*` being all of them.
fn verbs(names: &[String]) -> PyResult<Vec<Verb>> {
    let mut found = Vec::new();
    for name in names {
        match Verb::parse(name) {
            Some(verb) if Verb::FILES.contains(&verb) => found.push(verb),
            _ if name == "fs.*" => found.extend(Verb::FILES),
            _ => {
                let known = Verb::FILES.map(Verb::as_str).join(", ");
                return Err(PyValueError::new_err(format!(
                    "rights: no such right `{name}`; there are fs.*, {known}"
                )));
            }
        }
    }
    Ok(found)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be positive; the cast of a float saturates"
)]
fn lifetime(seconds: f64) -> PyResult<Lifetime> {
    if seconds.is_nan() || seconds <= 0.0 {
        return Err(PyValueError::new_err("seconds: more than 0"));
    }
    Ok(Lifetime::For(Millis::new((seconds * 1000.0) as u64)))
}

const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Dir => "dir",
        Kind::Symlink => "symlink",
        Kind::Special => "special",
    }
}

/// The session gave fewer permits than actions, which it never does.
fn lost(path: &RelPath) -> FsError {
    FsError::Denied(hermitcrab_core::outcome::Denial::new(
        DenialCode::PermitMismatch,
        path,
    ))
}
