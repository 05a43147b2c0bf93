//! The files of a machine whose processor is not this one's: Debian's packages, unpacked.
//!
//! They are only laid side by side, as an installer does first. What their scripts would set
//! up is not needed, but for a list of users and for the names of programs there are several of.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::packages::Packages;
use crate::cmd;
use crate::place::{empty, write};

/// What the tests use, besides what every Debian has.
const PROGRAMS: [&str; 11] = [
    "?essential",
    "busybox-static",
    "e2fsprogs",
    "git",
    "iproute2",
    "mawk",
    "mount",
    "perl",
    "procps",
    "python3",
    "strace",
];
/// Directories that are names of those below `usr`.
const MERGED: [&str; 3] = ["bin", "sbin", "lib"];
/// Names a package's script would have chosen.
const CHOSEN: [(&str, &str); 1] = [("usr/bin/awk", "mawk")];

/// The directory of its files, made at first use.
pub fn files(packages: &Packages, dir: &Path) -> Result<PathBuf> {
    let debian = packages.processor.debian();
    let root = dir.join(format!("root-{debian}"));
    if root.exists() {
        return Ok(root);
    }
    println!("fetching the files of a machine of kind {debian}");
    let files = packages.fetch(&PROGRAMS)?;
    let part = dir.join(format!("root-{debian}.part"));
    empty(&part)?;
    for name in MERGED {
        let place = part.join("usr").join(name);
        fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
        symlink(format!("usr/{name}"), part.join(name))
            .with_context(|| format!("cannot make {name}"))?;
    }
    for file in &files {
        unpack(file, &part)?;
    }
    for name in ["passwd", "group"] {
        let known = part.join(format!("usr/share/base-passwd/{name}.master"));
        let list = fs::read_to_string(&known)
            .with_context(|| format!("cannot read {}", known.display()))?;
        write(&part.join("etc").join(name), &list)?;
    }
    for (name, chosen) in CHOSEN {
        let name = part.join(name);
        if !name.exists() {
            symlink(chosen, &name).with_context(|| format!("cannot make {}", name.display()))?;
        }
    }
    fs::rename(&part, &root).with_context(|| format!("cannot make {}", root.display()))?;
    Ok(root)
}

/// Puts a package's files where they belong, through the names of directories that are there.
fn unpack(file: &Path, root: &Path) -> Result<()> {
    let script = "dpkg-deb --fsys-tarfile \"$0\" | \
                  tar -x --no-same-owner --keep-directory-symlink -C \"$1\"";
    cmd::output(
        Command::new("bash")
            .args(["-o", "pipefail", "-c", script])
            .arg(file)
            .arg(root),
    )
    .map(drop)
}
