//! Debian's packages for one kind of processor, fetched by apt, which checks their signatures.
//!
//! For another kind apt is given lists and a cache of its own: this machine's are not touched,
//! and nobody needs to be root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::place::{empty, write};
use super::processor::Processor;
use crate::cmd;

/// Where packages come from.
pub struct Packages {
    /// Whose they are.
    pub processor: Processor,
    /// Given to apt each time.
    options: Vec<String>,
    cache: Option<PathBuf>,
}

impl Packages {
    /// Those of a processor; `dir` is where lists and a cache can be kept.
    pub fn of(processor: Processor, dir: &Path) -> Result<Self> {
        if !processor.is_foreign() {
            return Ok(Self {
                processor,
                options: Vec::new(),
                cache: None,
            });
        }
        let debian = processor.debian();
        let own = dir.join(format!("apt-{debian}"));
        let (state, cache) = (own.join("state"), own.join("cache"));
        let packages = Self {
            processor,
            options: [
                format!("APT::Architecture={debian}"),
                format!("APT::Architectures={debian}"),
                format!("Dir::State={}", state.display()),
                format!("Dir::Cache={}", cache.display()),
                format!("Dir::State::status={}", own.join("status").display()),
            ]
            .into_iter()
            .flat_map(|option| ["-o".to_owned(), option])
            .collect(),
            cache: Some(cache.join("archives")),
        };
        if !own.join("current").exists() {
            println!("reading what packages there are for {debian}");
            empty(&own)?;
            for place in [state.join("lists/partial"), cache.join("archives/partial")] {
                fs::create_dir_all(&place)
                    .with_context(|| format!("cannot make {}", place.display()))?;
            }
            write(&own.join("status"), "")?;
            cmd::output(packages.apt("apt-get").args(["update", "--quiet"]))?;
            write(&own.join("current"), "")?;
        }
        Ok(packages)
    }

    /// One of apt's programs, about these packages.
    pub fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(&self.options);
        command
    }

    /// Fetches packages and all they need; their files. Only for a processor that is not
    /// this machine's: what is installed here already would not be fetched.
    pub fn fetch(&self, names: &[&str]) -> Result<Vec<PathBuf>> {
        let cache = self.cache.as_ref().context("these are installed here")?;
        let mut get = self.apt("apt-get");
        get.args(["install", "--quiet", "--yes", "--download-only"])
            .arg("--no-install-recommends")
            .args(names);
        cmd::output(&mut get)?;
        let mut files = Vec::new();
        let entries =
            fs::read_dir(cache).with_context(|| format!("cannot list {}", cache.display()))?;
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
