//! A path that is held: what passes the check is what is used.
//!
//! A program that checks a path and then opens it by its name keeps both lines and
//! makes the path another way: `PathWithin(root, name)` in place of `root / name`.
//! The check answers as ever; the reading, looking and writing after it go below
//! the directory that was opened when the path was made.
//!
//! It is no `pathlib.Path` and no `os.PathLike`: whatever would act by its name
//! alone must fail, and not succeed without a check.

use hermitcrab_core::authority::Verb;
use pyo3::exceptions::{PyFileNotFoundError, PyNotADirectoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::handle::DirCap;
use crate::within;

/// A path below a directory that is open.
#[pyclass(frozen, module = "hermitcrab_caps")]
pub(crate) struct PathWithin {
    cap: Py<DirCap>,
    root: Py<PyAny>,
    path: Py<PyAny>,
}

impl PathWithin {
    /// Calls a method of the directory with the path's place in it.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        data: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let below = within::below(self.path.bind(py), self.root.bind(py))?.1;
        let below = PyBytes::new(py, below.as_bytes());
        let cap = self.cap.bind(py);
        match data {
            Some(data) => cap.call_method1(method, (below, data)),
            None => cap.call_method1(method, (below,)),
        }
    }

    /// What the name leads to, if it leads to something.
    fn kind(&self, py: Python<'_>) -> PyResult<Option<String>> {
        match self.ask(py, "stat", None) {
            Ok(stat) => Ok(Some(stat.getattr("kind")?.extract()?)),
            Err(error)
                if error.is_instance_of::<PyFileNotFoundError>(py)
                    || error.is_instance_of::<PyNotADirectoryError>(py) =>
            {
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }
}

#[pymethods]
impl PathWithin {
    #[new]
    #[pyo3(signature = (root, *parts))]
    fn new(root: &Bound<'_, PyAny>, parts: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let py = root.py();
        let root = py.import("pathlib")?.call_method1("Path", (root,))?;
        let real: std::path::PathBuf = root.call_method0("resolve")?.extract()?;
        let cap = DirCap::open_dir(py, &real, &Verb::FILES)?;
        Ok(Self {
            cap: Py::new(py, cap)?,
            path: root.call_method1("joinpath", parts.clone())?.unbind(),
            root: root.unbind(),
        })
    }

    fn __truediv__(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            cap: self.cap.clone_ref(py),
            root: self.root.clone_ref(py),
            path: self
                .path
                .bind(py)
                .call_method1("joinpath", (name,))?
                .unbind(),
        })
    }

    /// Where it leads now, as a path that holds nothing.
    fn resolve<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.path.bind(py).call_method0("resolve")
    }

    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.path.bind(py).getattr("name")
    }

    #[getter]
    fn suffix<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.path.bind(py).getattr("suffix")
    }

    fn exists(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.kind(py)?.is_some())
    }

    fn is_file(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.kind(py)?.is_some_and(|kind| kind == "file"))
    }

    fn is_dir(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.kind(py)?.is_some_and(|kind| kind == "dir"))
    }

    fn read_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, "read", None)
    }

    #[pyo3(signature = (encoding=None, errors=None))]
    fn read_text<'py>(
        &self,
        py: Python<'py>,
        encoding: Option<&str>,
        errors: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let file = self.open(py, "r", encoding, errors)?;
        let text = file.call_method0("read");
        file.call_method0("close")?;
        text
    }

    /// For reading, as text or as bytes.
    #[pyo3(signature = (mode="r", encoding=None, errors=None))]
    fn open<'py>(
        &self,
        py: Python<'py>,
        mode: &str,
        encoding: Option<&str>,
        errors: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if !matches!(mode, "r" | "rt" | "rb") {
            return Err(PyValueError::new_err(
                "mode: `r` or `rb`; write_text and write_bytes replace a file",
            ));
        }
        let file = self.ask(py, "open", None)?;
        if mode == "rb" {
            return Ok(file);
        }
        let how = PyDict::new(py);
        how.set_item("encoding", encoding)?;
        how.set_item("errors", errors)?;
        py.import("io")?
            .getattr("TextIOWrapper")?
            .call((file,), Some(&how))
    }

    /// All of the file, at once; it is made if it is not there.
    fn write_bytes<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>) -> PyResult<usize> {
        let method = match self.kind(py)? {
            Some(_) => "write",
            None => "create",
        };
        self.ask(py, method, Some(data))?;
        data.len()
    }

    #[pyo3(signature = (text, encoding="utf-8", errors="strict"))]
    fn write_text<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        encoding: &str,
        errors: &str,
    ) -> PyResult<usize> {
        let data = text.call_method1("encode", (encoding, errors))?;
        self.write_bytes(py, &data)?;
        text.len()
    }

    fn __str__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.path.bind(py).str()?.into_any())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let root = self.root.bind(py).str()?;
        Ok(format!("PathWithin({root}: {})", self.path.bind(py).str()?))
    }
}
