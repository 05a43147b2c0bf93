//! Debian's packages for one kind of processor, fetched by apt, which checks their signatures.
//!
//! Apt is given lists and a cache of its own: this machine's may be old, or of another kind,
//! and are not touched, and nobody needs to be root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::processor::Processor;
use crate::cmd;
use crate::place::{empty, write};

/// Where packages come from.
pub struct Packages {
    /// Whose they are.
    pub processor: Processor,
    /// Given to apt each time.
    options: Vec<String>,
    /// The directory of its lists and its cache.
    own: PathBuf,
}

impl Packages {
    /// Those of a processor; `dir` is where lists and a cache can be kept.
    pub fn of(processor: Processor, dir: &Path) -> Self {
        let debian = processor.debian();
        let own = dir.join(format!("apt-{debian}"));
        Self {
            processor,
            options: [
                format!("APT::Architecture={debian}"),
                format!("APT::Architectures={debian}"),
                format!("Dir::State={}", own.join("state").display()),
                format!("Dir::Cache={}", own.join("cache").display()),
                format!("Dir::State::status={}", own.join("status").display()),
            ]
            .into_iter()
            .flat_map(|option| ["-o".to_owned(), option])
            .collect(),
            own,
        }
    }

    /// Is there once all lists were read.
    fn read(&self) -> PathBuf {
        self.own.join("read")
    }

    /// Reads the lists, if that was not done yet.
    pub fn begin(&self) -> Result<()> {
        if self.read().exists() {
            return Ok(());
        }
        self.renew()
    }

    fn archives(&self) -> PathBuf {
        self.own.join("cache/archives")
    }

    /// Reads the lists anew: what an old one names may be gone.
    pub fn renew(&self) -> Result<()> {
        println!(
            "reading what packages there are for {}",
            self.processor.debian()
        );
        empty(&self.own)?;
        for place in [
            self.own.join("state/lists/partial"),
            self.archives().join("partial"),
        ] {
            fs::create_dir_all(&place)
                .with_context(|| format!("cannot make {}", place.display()))?;
        }
        write(&self.own.join("status"), "")?;
        cmd::output(self.apt("apt-get").args(["update", "--quiet"]))
            .context("kernels take apt; `--kernel DIRECTORY` names an unpacked one")?;
        write(&self.read(), "")
    }

    /// One of apt's programs, about these packages.
    pub fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(&self.options);
        command
    }

    /// Fetches packages and all they need; their files.
    pub fn fetch(&self, names: &[&str]) -> Result<Vec<PathBuf>> {
        self.begin()?;
        let mut get = self.apt("apt-get");
        get.args(["install", "--quiet", "--yes", "--download-only"])
            .arg("--no-install-recommends")
            .args(names);
        if cmd::output(&mut get).is_err() {
            self.renew()?;
            cmd::output(&mut get)?;
        }
        let cache = self.archives();
        let mut files = Vec::new();
        let entries =
            fs::read_dir(&cache).with_context(|| format!("cannot list {}", cache.display()))?;
        for entry in entries {
            let path = entry
                .with_context(|| format!("cannot list {}", cache.display()))?
                .path();
            if path.extension().is_some_and(|kind| kind == "deb") {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }
}
