//! `cargo xtask dist`: the agent as a package of Debian's and as an archive.
//!
//! Why: whoever only wants to use the program should need neither Rust nor ten minutes. What
//! comes out holds nothing of the machine it was made on, its files are those of the commit's
//! time, and the same files are packed to the same bytes.

mod archive;
mod debian;
mod notices;
mod program;
mod tree;

#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use self::program::Made;
use self::tree::Tree;
use crate::cmd::{self, Passed};
use crate::kernels::Processor;
use crate::place::empty;

/// Below which everything is made.
const PLACE: &str = "target/dist";

/// What `dist` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The kind of processor the program is for.
    #[arg(long, value_enum, default_value_t = Processor::OWN)]
    processor: Processor,
    /// What it is put into (may be repeated).
    #[arg(long, value_enum, default_values = ["deb", "tar"])]
    form: Vec<Form>,
}

/// What a program is put into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "lower")]
enum Form {
    /// A package for `apt install ./FILE`.
    Deb,
    /// An archive to unpack anywhere.
    Tar,
}

/// What all forms say of the release.
#[derive(Debug)]
struct Release {
    version: String,
    processor: Processor,
    /// Seconds since 1970: the commit's, which files get as their time.
    time: u64,
}

/// Builds the program, and makes what was asked for of it.
pub fn run(args: &Args) -> Result<Passed> {
    let dir = cmd::root().join(PLACE);
    for form in &args.form {
        form.ready()?;
    }
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let made = program::make(args.processor, &dir.join("build"))?;
    let release = Release {
        version: program::version()?,
        processor: args.processor,
        time: program::time()?,
    };
    let notices = notices::of(args.processor)?;
    let files = packed(&release, &made, &notices, &args.form, &dir)?;
    let sums = summed(&files, &dir)?;
    for file in files.iter().chain([&sums]) {
        println!("{}", file.display());
    }
    Ok(Passed::Yes)
}

/// The files of each form.
fn packed(
    release: &Release,
    made: &Made,
    notices: &str,
    forms: &[Form],
    dir: &Path,
) -> Result<Vec<PathBuf>> {
    let tree = Tree::lay(made, notices, &dir.join("tree"))?;
    let mut files = Vec::new();
    for form in forms {
        files.push(match form {
            Form::Deb => debian::pack(release, made, &tree, dir)?,
            Form::Tar => archive::pack(release, &tree, dir)?,
        });
    }
    empty(tree.root())?;
    Ok(files)
}

impl Form {
    /// Whether the program that makes it is there; says what to install.
    fn ready(self) -> Result<()> {
        let (program, package) = match self {
            Self::Deb => ("dpkg-deb", "dpkg"),
            Self::Tar => ("tar", "tar"),
        };
        anyhow::ensure!(
            cmd::is_installed(program),
            "missing: {program}, of the package {package}; `--form` leaves a form out"
        );
        Ok(())
    }
}

/// A list of the files' digests, for `sha256sum --check`.
fn summed(files: &[PathBuf], dir: &Path) -> Result<PathBuf> {
    let names = files.iter().filter_map(|file| file.file_name());
    let said = cmd::output(Command::new("sha256sum").args(names).current_dir(dir))?;
    let list = dir.join("SHA256SUMS");
    fs::write(&list, said).with_context(|| format!("cannot write {}", list.display()))?;
    Ok(list)
}
