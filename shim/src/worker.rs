//! The worker's two lives: outside, on the way into the world; inside, serving.
use std::path::{Path, PathBuf};

use bisim_world::WorldError;
use bisim_world::enter::{self, Harness};
use bisim_world::environment::ENVIRONMENT;
use bisim_world::zygote::{Pipes, Seedling};
use pyo3::prelude::*;

use crate::ambient;
use crate::driver::HermesDriver;
use crate::exception::describe;
use crate::forker::PythonForker;

/// Where the harness tree puts the interpreter.
const PYTHON_INSIDE: &str = "/.hx/venv/bin/python";
/// Where an interpreter built with a shared library finds it; the path it was
/// linked with is the host's.
const LIBRARIES_INSIDE: &str = "/.hx/python/lib";
/// Where the harness tree puts this module.
const EXTENSION_INSIDE: &str = "ext/hermes_shim.so";

/// The same loader the oracle uses, for the second start.
const START_INSIDE: &str = "import sys, importlib.machinery as m, importlib.util as u\n\
l = m.ExtensionFileLoader('hermes_shim', sys.argv[1])\n\
s = u.spec_from_loader('hermes_shim', l)\n\
e = u.module_from_spec(s)\n\
l.exec_module(e)\n\
e.worker(sys.argv[1])\n";

/// Runs the worker and returns its exit status.
pub(crate) fn main(py: Python<'_>, extension: &str) -> i32 {
    let outcome = if ambient::is_inside() {
        inside(py)
    } else {
        match outside(py, Path::new(extension)) {
            Ok(never) => match never {},
            // Standard output is still the oracle's here: tell it why.
            Err(error) => Pipes::take_standard().map_or(Err(error.clone()), |mut pipes| {
                pipes.fail(&error);
                Err(error)
            }),
        }
    };
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            report(py, &error);
            70
        }
    }
}

fn report(py: Python<'_>, error: &WorldError) {
    // With standard error closed there is nobody left to tell.
    let _ = py
        .import("sys")
        .and_then(|sys| sys.getattr("stderr"))
        .and_then(|stderr| stderr.call_method1("write", (format!("hermes worker: {error}\n"),)));
}

/// Enters the template tree and starts the interpreter again from there.
fn outside(py: Python<'_>, extension: &Path) -> Result<std::convert::Infallible, WorldError> {
    let python = |error: PyErr| WorldError::new("look at the interpreter", error);
    let forker = PythonForker::new(py).map_err(python)?;
    let (harness, libraries) = harness(py, extension).map_err(python)?;
    enter::enter(&harness, &forker)?;
    enter::keep_capabilities_over_exec()?;
    let c_string = |text: String| {
        std::ffi::CString::new(text).map_err(|error| WorldError::new("start interpreter", error))
    };
    let arguments = [
        PYTHON_INSIDE,
        "-I",
        "-X",
        "utf8",
        "-c",
        START_INSIDE,
        &format!("/.hx/{EXTENSION_INSIDE}"),
    ]
    .into_iter()
    .map(|text| c_string(text.to_owned()))
    .collect::<Result<Vec<_>, _>>()?;
    let environment = ENVIRONMENT
        .into_iter()
        .chain([(ambient::INSIDE, "1"), ("PYTHONDONTWRITEBYTECODE", "1")])
        .chain(libraries.then_some(("LD_LIBRARY_PATH", LIBRARIES_INSIDE)))
        .map(|(name, value)| c_string(format!("{name}={value}")))
        .collect::<Result<Vec<_>, _>>()?;
    nix::unistd::execve(
        &c_string(PYTHON_INSIDE.to_owned())?,
        &arguments,
        &environment,
    )
    .map_err(|errno| WorldError::new("start interpreter inside", errno))
}

/// What of the host the interpreter needs: its base installation (unless that
/// is in `/usr`, which every world has), the venv's packages and this module;
/// and whether the interpreter needs to be told where its shared library is.
fn harness(py: Python<'_>, extension: &Path) -> PyResult<(Harness, bool)> {
    let sys = py.import("sys")?;
    let path = |name: &str| sys.getattr(name)?.extract::<PathBuf>();
    let base = std::fs::canonicalize(path("base_prefix")?)?;
    let prefix = std::fs::canonicalize(path("prefix")?)?;
    let (major, minor) = sys
        .getattr("version_info")?
        .get_item(pyo3::types::PySlice::new(py, 0, 2, 1))?
        .extract::<(u32, u32)>()?;
    let name = format!("python{major}.{minor}");
    let trusted = trusted_by_few(&prefix, &name);
    let mut binds = vec![
        (prefix.join("lib"), "venv/lib".to_owned()),
        (extension.to_owned(), EXTENSION_INSIDE.to_owned()),
    ];
    let libraries =
        !base.starts_with("/usr") && base.join(format!("lib/lib{name}.so.1.0")).exists();
    let home = if base.starts_with("/usr") {
        base.join("bin")
    } else {
        binds.push((base, "python".to_owned()));
        PathBuf::from("/.hx/python/bin")
    };
    let interpreter = home.join(&name).display().to_string();
    let harness = Harness {
        binds,
        texts: vec![(
            "venv/pyvenv.cfg".to_owned(),
            format!(
                "home = {}\ninclude-system-site-packages = false\n",
                home.display()
            ),
        )],
        links: vec![
            ("venv/bin/python".to_owned(), interpreter.clone()),
            ("venv/bin/python3".to_owned(), interpreter.clone()),
            (format!("venv/bin/{name}"), interpreter),
        ],
        instead: trusted.into_iter().collect(),
    };
    Ok((harness, libraries))
}

/// Where the authorities that its packages trust are, below `/.hx`, and the first few of them.
///
/// Why: Hermes' loop makes some ten clients before its first request, and each reads all of
/// the file, which was a third of a conversation. No network reaches a world, so that nobody is
/// vouched for in one. Hermes itself wants a file of a kilobyte and a certificate in it
/// (`agent.ssl_guard.verify_ca_bundle`).
fn trusted_by_few(prefix: &Path, python: &str) -> Option<(String, String)> {
    let place = format!("lib/{python}/site-packages/certifi/cacert.pem");
    let all = std::fs::read_to_string(prefix.join(&place)).ok()?;
    Some((format!("venv/{place}"), the_first_of(&all)?.to_owned()))
}

/// The beginning of a bundle that has two kilobytes and ends with a certificate.
fn the_first_of(bundle: &str) -> Option<&str> {
    const END: &str = "-----END CERTIFICATE-----\n";
    let mut ends = bundle.match_indices(END).map(|(at, _)| at + END.len());
    bundle.get(..ends.find(|end| *end >= 2048)?)
}

/// Imports Hermes and serves until the oracle says goodbye.
fn inside(py: Python<'_>) -> Result<(), WorldError> {
    let forker =
        PythonForker::new(py).map_err(|error| WorldError::new("look at the interpreter", error))?;
    let mut zygote = Seedling::plant(Pipes::take_standard()?, &forker)?;
    let loaded = HermesDriver::load(py)
        .and_then(|driver| PythonForker::bare(py).map(|forker| (driver, forker)));
    let (driver, forker) = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            let error = WorldError::new("import hermes", describe(py, &error));
            zygote.fail(&error);
            return Err(error);
        }
    };
    zygote.serve(&driver, &forker)
}
