//! The package of Debian's, for Debian 12, Ubuntu 22.04 and what is newer.
//!
//! Source: Debian Policy 4.7, deb-control(5), deb-postinst(5); DPKG_ROOT is dpkg(1)'s.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::Release;
use super::program::Made;
use super::tree::{TOLD, Tree};
use crate::cmd;
use crate::place::{empty, write};

/// What is done once it was unpacked, before it is removed, and afterwards.
pub(super) const SCRIPTS: [(&str, &str); 3] = [
    ("postinst", include_str!("postinst.sh")),
    ("prerm", include_str!("prerm.sh")),
    ("postrm", include_str!("postrm.sh")),
];
const COPYRIGHT: &str = "hermitcrab is licensed under the MIT licence or the Apache License 2.0, at your choice:\n\
    see LICENSE-MIT and LICENSE-APACHE beside this file. THIRD-PARTY has the licences of what is\n\
    built into it.\n";

/// Packs the tree below `/usr`.
pub(super) fn pack(release: &Release, made: &Made, tree: &Tree, dir: &Path) -> Result<PathBuf> {
    let kind = release.processor.debian();
    let root = dir.join("package");
    empty(&root)?;
    cmd::output(
        Command::new("cp")
            .args(["--archive", "--no-target-directory"])
            .arg(tree.root())
            .arg(root.join("usr")),
    )?;
    let usr = Tree::at(&root.join("usr"));
    usr.put(&format!("{TOLD}/copyright"), COPYRIGHT.as_bytes())?;
    let control = root.join("DEBIAN");
    empty(&control)?;
    write(
        &control.join("control"),
        &described(release, made, usr.size()?),
    )?;
    write(&control.join("md5sums"), &digests(&root)?)?;
    for (name, script) in SCRIPTS {
        let at = control.join(name);
        write(&at, script)?;
        fs::set_permissions(&at, Permissions::from_mode(0o755))
            .with_context(|| format!("cannot set the rights of {name}"))?;
    }
    for place in [&root, &control] {
        fs::set_permissions(place, Permissions::from_mode(0o755))
            .with_context(|| format!("cannot set the rights of {}", place.display()))?;
    }
    let file = dir.join(format!("hermitcrab_{}_{kind}.deb", release.version));
    cmd::output(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "-Zxz", "--build"])
            .arg(&root)
            .arg(&file)
            .env("SOURCE_DATE_EPOCH", release.time.to_string()),
    )?;
    empty(&root)?;
    Ok(file)
}

/// The fields by which a package is known.
fn described(release: &Release, made: &Made, kilobytes: u64) -> String {
    format!(
        "Package: hermitcrab\n\
         Version: {}\n\
         Architecture: {}\n\
         Maintainer: The hermitcrab project <hermitcrab@localhost>\n\
         Section: devel\n\
         Priority: optional\n\
         Installed-Size: {kilobytes}\n\
         Depends: libc6 (>= {}), libgcc-s1\n\
         Suggests: git\n\
         Description: agent that can do only what it holds a capability for\n \
         A language model's commands run in a sandbox on a copy of the workspace, and\n \
         what they changed is shown before it is kept. Grants expire, run out and can\n \
         be revoked. At a terminal, in editors that speak the Agent Client Protocol,\n \
         or behind a pipe.\n",
        release.version,
        release.processor.debian(),
        made.library,
    )
}

/// What `dpkg --verify` compares.
fn digests(root: &Path) -> Result<String> {
    let list = "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum";
    let mut sum = Command::new("sh");
    sum.args(["-c", list]).current_dir(root);
    Ok(String::from_utf8_lossy(&cmd::output(&mut sum)?).into_owned())
}
