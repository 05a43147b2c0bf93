//! The capability primitives for programs written in Python.
//!
//! What for: a maintainer of Hermes, or of anything else in Python, can hold a
//! directory as a capability, pass on less of it for a while, take it back, and
//! replace a path check by an open that holds at the use.
//!
//! It is a thin face of `hermitcrab-core`, which decides, and of
//! `hermitcrab-sandbox`, which acts. It must never decide by itself, and knows
//! nothing of Hermes. It confines no code: whoever can import `os` does not
//! need a capability.

#[cfg(not(target_os = "linux"))]
compile_error!("the kernel's openat2 enforces these capabilities, which Linux alone has");

use pyo3::prelude::*;

mod ambient;
mod handle;
mod held;
mod refusal;
mod room;
mod within;

/// The extension module.
#[pymodule]
fn hermitcrab_caps(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<handle::DirCap>()?;
    module.add_class::<handle::Grant>()?;
    module.add_class::<handle::Entry>()?;
    module.add_class::<handle::Stat>()?;
    module.add_class::<held::PathWithin>()?;
    module.add("Denied", module.py().get_type::<refusal::Denied>())?;
    module.add_function(wrap_pyfunction!(handle::revoke, module)?)?;
    module.add_function(wrap_pyfunction!(within::validate_within_dir, module)?)?;
    module.add_function(wrap_pyfunction!(within::open_within_dir, module)?)?;
    Ok(())
}
