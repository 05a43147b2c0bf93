//! Kernels of Debian's packages, fetched by apt, which checks their signatures.

use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use super::packages::Packages;
use super::processor::Processor;
use crate::cmd;

/// A kernel that lies unpacked in a directory.
#[derive(Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The whole version, as in `/lib/modules`.
    pub version: String,
    /// Its image.
    pub image: PathBuf,
    /// The directory that has `lib/modules`.
    pub dir: PathBuf,
}

/// The kernel called `name`, fetched into `dir` if it is a version.
pub fn find(name: &str, packages: &Packages, dir: &Path) -> Result<Kernel> {
    if name.contains('/') {
        return unpacked(Path::new(name));
    }
    packages.begin()?;
    fetched(name, packages, dir).or_else(|_| {
        packages.renew()?;
        fetched(name, packages, dir)
    })
}

/// The newest kernel the lists name, fetched where it is not there yet.
fn fetched(name: &str, packages: &Packages, dir: &Path) -> Result<Kernel> {
    let package = newest(name, packages)?;
    let at = dir.join(&package);
    if !at.exists() {
        fetch(&package, packages, dir, &at)?;
    }
    unpacked(&at)
}

/// The newest package of an ordinary kernel whose version begins like this.
fn newest(version: &str, packages: &Packages) -> Result<String> {
    let pattern = format!("^linux-image-{}[.+-]", version.replace('.', r"\."));
    let mut search = packages.apt("apt-cache");
    search.args(["search", "--names-only", &pattern]);
    let list = cmd::output(&mut search)?;
    let list = String::from_utf8_lossy(&list);
    let names = list.lines().filter_map(|line| line.split(' ').next());
    choose(names, packages.processor).with_context(|| {
        format!("Debian has no kernel {version} for this machine's release; name another with `--kernel`")
    })
}

/// The newest one for a processor that is neither for clouds, which lack what
/// shares files, nor a real-time one.
fn choose<'a>(names: impl Iterator<Item = &'a str>, processor: Processor) -> Option<String> {
    let ending = format!("-{}", processor.debian());
    names
        .filter(|name| name.ends_with(&ending) && numbers(name).len() > 2)
        .filter(|name| !name.contains("-cloud-") && !name.contains("-rt-"))
        .max_by(|one, other| compare(one, other))
        .map(str::to_owned)
}

fn compare(one: &str, other: &str) -> Ordering {
    numbers(one).cmp(&numbers(other))
}

/// The numbers in a name, in their order.
fn numbers(name: &str) -> Vec<u64> {
    name.trim_end_matches("-amd64")
        .trim_end_matches("-arm64")
        .split(|letter: char| !letter.is_ascii_digit())
        .filter_map(|part| part.parse().ok())
        .collect()
}

fn fetch(package: &str, packages: &Packages, dir: &Path, at: &Path) -> Result<()> {
    println!("fetching {package}");
    let part = dir.join(format!("{package}.part"));
    if part.exists() {
        fs::remove_dir_all(&part).with_context(|| format!("cannot remove {}", part.display()))?;
    }
    fs::create_dir_all(&part).with_context(|| format!("cannot make {}", part.display()))?;
    cmd::output(
        packages
            .apt("apt-get")
            .args(["download", "--quiet", package])
            .current_dir(&part),
    )?;
    let file = only(&part, "")?;
    cmd::output(Command::new("dpkg-deb").arg("-x").arg(&file).arg(&part))?;
    fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
    let version = unpacked(&part)?.version;
    cmd::output(Command::new("depmod").arg("-b").arg(&part).arg(&version))?;
    fs::rename(&part, at).with_context(|| format!("cannot make {}", at.display()))
}

fn unpacked(dir: &Path) -> Result<Kernel> {
    let image = only(&dir.join("boot"), "vmlinuz-")?;
    let modules = only(&dir.join("lib/modules"), "")?;
    let version = modules.file_name().unwrap_or_default();
    Ok(Kernel {
        version: version.to_string_lossy().into_owned(),
        image,
        dir: dir.to_owned(),
    })
}

/// The one entry of a directory whose name begins like this.
fn only(dir: &Path, start: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot list {}", dir.display()))?;
        if entry.file_name().to_string_lossy().starts_with(start) {
            found.push(entry.path());
        }
    }
    ensure!(
        found.len() < 2,
        "{} holds several of `{start}*`",
        dir.display()
    );
    match found.pop() {
        Some(path) => Ok(path),
        None => bail!("{} holds no `{start}*`", dir.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_ordinary_kernel_is_chosen() {
        let names = [
            "linux-image-6.1.0-9-amd64",
            "linux-image-6.1.0-56-amd64",
            "linux-image-6.1.0-57-cloud-amd64",
            "linux-image-6.1.0-58-rt-amd64",
            "linux-image-6.1.0-59-arm64",
            "linux-image-6.1.0-60-amd64-dbg",
            "linux-image-6.1-amd64",
        ];
        for (processor, wanted) in [
            (Processor::Aarch64, "linux-image-6.1.0-59-arm64"),
            (Processor::X86_64, "linux-image-6.1.0-56-amd64"),
        ] {
            let chosen = choose(names.into_iter(), processor);
            assert_eq!(chosen.as_deref(), Some(wanted));
        }
        let without_a_number = ["linux-image-6.1-amd64"].into_iter();
        assert_eq!(choose(without_a_number, Processor::X86_64), None);
    }

    #[test]
    fn an_unpacked_kernel_tells_its_version_and_a_directory_without_one_is_an_error() {
        let temp = tempfile::tempdir().unwrap();
        assert!(unpacked(temp.path()).is_err());
        for dir in ["boot", "lib/modules/6.1.0-1-amd64"] {
            fs::create_dir_all(temp.path().join(dir)).unwrap();
        }
        assert!(unpacked(temp.path()).is_err());
        let image = temp.path().join("boot/vmlinuz-6.1.0-1-amd64");
        fs::write(&image, "").unwrap();
        let found = Kernel {
            version: "6.1.0-1-amd64".to_owned(),
            image,
            dir: temp.path().to_owned(),
        };
        assert_eq!(unpacked(temp.path()).unwrap(), found);
    }
}
