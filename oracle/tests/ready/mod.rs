//! Whether this machine can run the real thing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

use std::env::var_os;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether this machine can run the real thing; says so if not.
///
/// The doctor starts Hermes to say so, which is most of what a short test takes. A yes is
/// kept for the program that was built, this start of the machine, and the same places.
pub fn can_run() -> bool {
    let program = env!("CARGO_BIN_EXE_bisim");
    let built = fs::metadata(program).unwrap();
    let asked = format!(
        "{} {:?} {} {:?}",
        fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap(),
        built.modified().unwrap(),
        built.len(),
        ["HERMITCRAB_CACHE", "XDG_CACHE_HOME", "HOME"].map(var_os),
    );
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    if fs::read_to_string(place.join("doctor")).ok().as_ref() == Some(&asked) {
        return true;
    }
    let output = Command::new(program)
        .arg("doctor")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let is_ready = output.status.success();
    if is_ready {
        // Under its name at once, since another test may be reading it.
        let file = tempfile::NamedTempFile::new_in(place).unwrap();
        fs::write(file.path(), asked).unwrap();
        file.persist(place.join("doctor")).unwrap();
    } else {
        let errors = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
        println!("SKIPPED: bisim doctor: {errors}");
    }
    is_ready
}
