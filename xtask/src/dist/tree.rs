//! The files of an installed program, below a directory that stands for `/usr`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::program::Made;
use crate::cmd;
use crate::place::empty;

/// For each shell: where it looks for what it completes.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/hermitcrab"),
    ("zsh", "share/zsh/vendor-completions/_hermitcrab"),
    ("fish", "share/fish/vendor_completions.d/hermitcrab.fish"),
];
const PAGES: &str = "share/man/man1";
/// Where it is told whose work it is.
pub(super) const TOLD: &str = "share/doc/hermitcrab";
const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// Files that were laid out.
#[derive(Debug)]
pub(super) struct Tree {
    root: PathBuf,
}

impl Tree {
    /// Lays them out in a directory, which has nothing else in it afterwards.
    pub(super) fn lay(made: &Made, notices: &str, root: &Path) -> Result<Self> {
        empty(root)?;
        let tree = Self::at(root);
        let program = tree.place("bin/hermitcrab")?;
        fs::copy(&made.file, &program)
            .with_context(|| format!("cannot copy {}", made.file.display()))?;
        let pages = tree.directory(PAGES)?;
        cmd::output(
            Command::new(&made.speaker)
                .args(["man", "--to"])
                .arg(&pages),
        )?;
        for (shell, place) in COMPLETIONS {
            let text = cmd::output(Command::new(&made.speaker).args(["completions", shell]))?;
            tree.put(place, &text)?;
        }
        for name in LICENCES {
            let text =
                fs::read(cmd::root().join(name)).with_context(|| format!("cannot read {name}"))?;
            tree.put(&format!("{TOLD}/{name}"), &text)?;
        }
        tree.put(&format!("{TOLD}/THIRD-PARTY"), notices.as_bytes())?;
        tree.pressed(&pages)?;
        tree.open_to_all(&tree.root)?;
        set(&program, 0o755)?;
        Ok(tree)
    }

    /// Those that lie here already.
    pub(super) fn at(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
        }
    }

    /// Kilobytes of all files.
    pub(super) fn size(&self) -> Result<u64> {
        fn of(place: &Path) -> Result<u64> {
            if !place.is_dir() {
                let told = fs::metadata(place)
                    .with_context(|| format!("cannot look at {}", place.display()))?;
                return Ok(told.len().div_ceil(1024));
            }
            listed(place)?
                .iter()
                .try_fold(0, |sum: u64, name| Ok(sum.saturating_add(of(name)?)))
        }
        of(&self.root)
    }

    /// Where they are.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Adds a file, which everybody may read.
    pub(super) fn put(&self, place: &str, content: &[u8]) -> Result<()> {
        let to = self.place(place)?;
        fs::write(&to, content).with_context(|| format!("cannot write {}", to.display()))?;
        self.open_to_all(&self.root.join(place))
    }

    fn directory(&self, place: &str) -> Result<PathBuf> {
        let dir = self.root.join(place);
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        Ok(dir)
    }

    /// A place whose directory is there.
    fn place(&self, place: &str) -> Result<PathBuf> {
        if let Some(dir) = Path::new(place).parent() {
            set(&self.directory(&dir.to_string_lossy())?, 0o755)?;
        }
        Ok(self.root.join(place))
    }

    /// Manual pages are kept pressed, as readers of manuals expect them; no name or time of
    /// the making goes into them.
    fn pressed(&self, pages: &Path) -> Result<()> {
        let mut press = Command::new("gzip");
        press.args(["--no-name", "--best", "--"]);
        for page in listed(pages)? {
            press.arg(page);
        }
        cmd::output(&mut press).map(|_| ())
    }

    /// Rights that do not depend on who made the files.
    fn open_to_all(&self, below: &Path) -> Result<()> {
        if !below.is_dir() {
            return set(below, 0o644);
        }
        set(below, 0o755)?;
        for name in listed(below)? {
            self.open_to_all(&name)?;
        }
        Ok(())
    }
}

/// What lies in a directory, in the order of the names.
fn listed(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    let mut names = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .with_context(|| format!("cannot list {}", dir.display()))?;
    names.sort();
    Ok(names)
}

fn set(place: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(place, Permissions::from_mode(mode))
        .with_context(|| format!("cannot set the rights of {}", place.display()))
}
