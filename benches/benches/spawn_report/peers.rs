//! The other sandboxes, as far as they are installed: how each is told to run
//! one command, with namespaces of its own where it can make them.
//!
//! Of crates.io, hakoniwa-cli and birdcage were looked at and are not here: the first
//! wants libseccomp to link and builds for minutes, the second has no program.

use std::path::Path;
use std::process::{Command as Bare, Stdio};
use std::time::Duration;

use crate::{Contender, bare};

const UNSHARE: [&str; 7] = ["unshare", "-m", "-p", "-n", "-i", "-u", "-f"];

/// A name, what to install, and the words.
type Peer = (&'static str, &'static str, Vec<String>);

/// All of them. `bundle` is a directory for the two that want one.
fn peers(bundle: &Path) -> Vec<Peer> {
    let words = |line: &[&str]| line.iter().map(|word| (*word).to_owned()).collect();
    let unshare = |rest: &[&str]| words(&[&UNSHARE[..], rest].concat());
    let bundled = |program: &str| {
        let name = format!("hermitcrab-{}", std::process::id());
        let bundle = bundle.display().to_string();
        words(&[program, "run", "--bundle", &bundle, &name])
    };
    vec![
        (
            "bubblewrap",
            "Debian: bubblewrap",
            words(&[
                "bwrap",
                "--ro-bind",
                "/",
                "/",
                "--proc",
                "/proc",
                "--dev",
                "/dev",
                "--tmpfs",
                "/tmp",
                "--unshare-all",
                "/bin/true",
            ]),
        ),
        (
            "minijail",
            "not in Debian 12",
            words(&[
                "minijail0",
                "-p",
                "-v",
                "-N",
                "-l",
                "-e",
                "--uts",
                "-u",
                "nobody",
                "-g",
                "nogroup",
                "-n",
                "--",
                "/bin/true",
            ]),
        ),
        (
            "nsjail",
            "not in Debian 12",
            words(&["nsjail", "-Mo", "-Q", "--chroot", "/", "--", "/bin/true"]),
        ),
        (
            "firejail",
            "Debian: firejail",
            words(&[
                "firejail",
                "--quiet",
                "--noprofile",
                "--net=none",
                "/bin/true",
            ]),
        ),
        ("runc", "Debian: runc", bundled("runc")),
        ("crun", "Debian: crun", bundled("crun")),
        (
            "unshare alone",
            "Debian: util-linux",
            unshare(&["/bin/true"]),
        ),
        (
            "unshare + chroot",
            "Debian: util-linux",
            unshare(&["chroot", "/", "/bin/true"]),
        ),
        (
            "unshare + chroot + python3 wrapper",
            "Debian: util-linux, python3",
            unshare(&[
                "chroot",
                "/",
                "/usr/bin/python3",
                "-c",
                "import os; os.execv('/bin/true', ['/bin/true'])",
            ]),
        ),
    ]
}

/// Those that run here; a note about each.
pub fn that_run(bundle: &Path, notes: &mut Vec<String>) -> Vec<Contender<'static>> {
    if let Err(error) = fill(bundle) {
        notes.push(format!("no bundle for runc and crun: {error}"));
    }
    let mut running: Vec<Contender<'static>> = Vec::new();
    for (name, source, argv) in peers(bundle) {
        let program = argv.first().map_or("", String::as_str);
        let tried = Bare::new(program)
            .args(argv.iter().skip(1))
            .stdin(Stdio::null())
            .output();
        match tried {
            Ok(output) if output.status.success() => {
                notes.push(format!("{name}: {}", version(program)));
                running.push((
                    name.into(),
                    None,
                    Box::new(move || -> Duration {
                        bare(&argv.iter().map(String::as_str).collect::<Vec<_>>())
                    }),
                ));
            }
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                let said = said.lines().next_back().unwrap_or_default().trim();
                notes.push(format!(
                    "{name} does not run here ({}: {said})",
                    output.status
                ));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                notes.push(format!("{name} is not installed ({source})"));
            }
            Err(error) => notes.push(format!("{name} cannot be started ({error})")),
        }
    }
    running
}

/// The least that runs /bin/true for those that want a bundle: the system
/// read-only, a /proc and a /tmp, and the namespaces the others make.
fn fill(bundle: &Path) -> std::io::Result<()> {
    let root = bundle.join("rootfs");
    for dir in ["usr", "proc", "dev", "tmp"] {
        std::fs::create_dir_all(root.join(dir))?;
    }
    for link in ["bin", "lib", "lib64"] {
        std::os::unix::fs::symlink(format!("usr/{link}"), root.join(link))?;
    }
    let namespaces =
        ["pid", "network", "ipc", "uts", "mount"].map(|kind| serde_json::json!({ "type": kind }));
    let config = serde_json::json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false,
            "user": { "uid": 65534, "gid": 65534 },
            "args": ["/bin/true"],
            "env": ["PATH=/usr/bin:/bin"],
            "cwd": "/",
            "noNewPrivileges": true,
            "capabilities": {},
        },
        "root": { "path": "rootfs", "readonly": true },
        "mounts": [
            {
                "destination": "/usr", "type": "bind", "source": "/usr",
                "options": ["rbind", "ro", "nosuid", "nodev"],
            },
            { "destination": "/proc", "type": "proc", "source": "proc" },
            {
                "destination": "/tmp", "type": "tmpfs", "source": "tmpfs",
                "options": ["nosuid", "nodev"],
            },
        ],
        "linux": { "namespaces": namespaces },
    });
    std::fs::write(bundle.join("config.json"), config.to_string())
}

/// The first line a program says about its version.
fn version(program: &str) -> String {
    let told = Bare::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    told.ok()
        .and_then(|output| {
            let text = [output.stdout, output.stderr].concat();
            let first = String::from_utf8_lossy(&text).lines().next()?.to_owned();
            Some(first)
        })
        .filter(|line| !line.is_empty())
        .unwrap_or_else(|| String::from("says no version"))
}
