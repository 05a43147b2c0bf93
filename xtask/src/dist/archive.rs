//! The archive: one directory, to be unpacked anywhere.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::Release;
use super::tree::Tree;
use crate::cmd;

/// Packs the tree, the same bytes for the same files.
pub(super) fn pack(release: &Release, tree: &Tree, dir: &Path) -> Result<PathBuf> {
    let name = format!("hermitcrab-{}-{}-linux", release.version, release.processor);
    let file = dir.join(format!("{name}.tar.gz"));
    let mut pack = Command::new("tar");
    pack.args(["--create", "--format=gnu", "--sort=name"])
        .args(["--owner=root:0", "--group=root:0"])
        .arg(format!("--mtime=@{}", release.time))
        // Only the topmost name is another.
        .arg(format!(r"--transform=s,^\.\(/\|$\),{name}\1,"))
        .arg("--use-compress-program=gzip --no-name --best")
        .arg("--file")
        .arg(&file)
        .arg("--directory")
        .arg(tree.root())
        .arg(".");
    cmd::output(&mut pack)?;
    Ok(file)
}
