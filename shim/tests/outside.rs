//! Hermes is loaded in worlds and nowhere else.
#![allow(clippy::expect_used)]
use std::process::{Command, Output};

/// The part of the driver that imports Hermes.
const DRIVER: &str = include_str!("../src/driver.py");

/// Loads the driver with stand-ins for the modules it names, in an interpreter whose prefix and
/// whose mount of `/.hx` are as given. A stand-in for Hermes ends the process as it is imported,
/// so that nothing is installed or removed whatever `load` does.
const LOAD: &str = r#"
import os, sys, types
source, prefix, flags = sys.argv[1:4]
memory = types.ModuleType("hermes_shim_memory")
memory.compact = memory.fill = memory.join = memory.share_heap = lambda: None
sys.modules["hermes_shim_memory"] = memory
warmth = types.ModuleType("hermes_shim_warmth")
warmth.warm_up = warmth.warm_up_for = lambda *_: None
sys.modules["hermes_shim_warmth"] = warmth
class Importing:
    def find_spec(self, name, path=None, target=None):
        if name == "model_tools":
            print("imports Hermes", flush=True)
            os._exit(3)
sys.meta_path.insert(0, Importing())
if prefix:
    sys.prefix = prefix
    os.statvfs = lambda place: types.SimpleNamespace(f_flag=int(flags))
driver = types.ModuleType("driver")
exec(source, driver.__dict__)
driver.load()
"#;

/// What `statvfs` says of a mount that is read-only.
const READ_ONLY: &str = "1";

fn load(prefix: &str, flags: &str) -> Output {
    Command::new("python3")
        .args(["-I", "-c", LOAD, DRIVER, prefix, flags])
        .env("HOME", env!("CARGO_TARGET_TMPDIR"))
        .output()
        .expect("python3 is needed to build this package, too")
}

#[test]
fn outside_a_world_nothing_of_hermes_is_imported() {
    for (prefix, flags, why) in [
        ("", "0", "the interpreter is that of"),
        ("/home/u/.cache/venv", READ_ONLY, "/home/u/.cache/venv"),
        ("/.hx/venv", "0", "/.hx can be written to"),
    ] {
        let output = load(prefix, flags);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "");
        assert!(told.contains("is not loaded outside a world"), "{told}");
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn in_a_world_it_is() {
    let output = load("/.hx/venv", READ_ONLY);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "imports Hermes\n");
}
