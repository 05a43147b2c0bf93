//! Clients and servers nobody here wrote, for the tests that talk to them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// What they are installed from.
const LOCKS: [&str; 3] = ["requirements.lock", "package.json", "package-lock.json"];
/// What drives them, or is one of them.
const SCRIPTS: [&str; 4] = ["peer.py", "peer.mjs", "tools.py", "validate.py"];

/// The programs, installed once from their locks into a directory of their own.
pub struct Peers(PathBuf);

impl Peers {
    /// The programs; why there are none here is printed.
    pub fn ready() -> Option<Self> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers");
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers");
        fs::create_dir_all(&place).unwrap();
        let lock = fs::File::create(place.join("lock")).unwrap();
        lock.lock().unwrap();
        let wanted: Vec<u8> = LOCKS
            .iter()
            .flat_map(|name| fs::read(source.join(name)).unwrap())
            .collect();
        for name in SCRIPTS {
            let script = fs::read(source.join(name)).unwrap();
            // Another test may be reading it.
            if fs::read(place.join(name)).ok() != Some(script.clone()) {
                fs::write(place.join(name), script).unwrap();
            }
        }
        if fs::read(place.join("stamp")).ok() != Some(wanted.clone()) {
            for name in LOCKS {
                fs::copy(source.join(name), place.join(name)).unwrap();
            }
            if let Err(why) = install(&place) {
                println!("SKIPPED: the peers cannot be installed here: {why}");
                return None;
            }
            fs::write(place.join("stamp"), wanted).unwrap();
        }
        Some(Self(place))
    }

    /// The interpreter that has their packages.
    pub fn python(&self) -> PathBuf {
        self.0.join("venv/bin/python")
    }

    /// One of the scripts.
    pub fn script(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "{shown}: {}",
            String::from_utf8_lossy(&output.stderr)
                .lines()
                .last()
                .unwrap_or_default()
        )),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

fn install(place: &Path) -> Result<(), String> {
    let python = ["python3.11", "python3.12", "python3.13"]
        .into_iter()
        .find(|name| run(Command::new(name).arg("--version")).is_ok())
        .ok_or("no Python from 3.11 to 3.13")?;
    let venv = place.join("venv");
    let _ = fs::remove_dir_all(&venv);
    run(Command::new(python).args(["-m", "venv"]).arg(&venv))?;
    run(Command::new(venv.join("bin/pip"))
        .args([
            "install",
            "--quiet",
            "--no-input",
            "--require-hashes",
            "--only-binary",
            ":all:",
        ])
        .args(["--disable-pip-version-check", "-r"])
        .arg(place.join("requirements.lock")))?;
    // Not `npm ci`: it insists on optional packages for other systems, which the
    // lock leaves out. What is in the lock is taken as it is there.
    run(Command::new("npm")
        .args([
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--no-save",
        ])
        .current_dir(place))
}
