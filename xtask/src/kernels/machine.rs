//! One virtual machine: made, started, waited for.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use super::package::Kernel;
use super::processor::Processor;
use crate::cmd;
use crate::place::{empty, write};
use crate::test;

/// What the machine begins with.
const INIT: &str = include_str!("init.sh");
/// What its first process needs to reach this machine's files, each with what it depends on.
const MODULES: [&str; 7] = [
    "virtio_pci",
    "virtio_blk",
    "9pnet_virtio",
    "9p",
    "ext4",
    "overlay",
    "fuse",
];
/// Programs, and the packages of Debian that have them.
const TOOLS: [(&str, &str); 6] = [
    ("modprobe", "kmod"),
    ("depmod", "kmod"),
    ("cpio", "cpio"),
    ("xz", "xz-utils"),
    ("mke2fs", "e2fsprogs"),
    ("dpkg-deb", "dpkg"),
];
const BUSYBOX: &str = "bin/busybox";
const MEMORY_MB: u32 = 4096;
const DISK_BYTES: u64 = 16 << 30;

/// What a machine is made of.
pub struct Kind {
    /// Its processor.
    pub processor: Processor,
    /// Its files.
    pub files: PathBuf,
}

/// What is to be run in it.
pub struct Tests {
    /// The list of test programs.
    pub list: PathBuf,
    /// The program that runs them, built for the machine.
    pub runner: PathBuf,
    /// Only those whose name contains one of these.
    pub filter: Vec<String>,
}

/// Whether the programs that make a machine are there; says what to install.
pub fn tools(processor: Processor) -> Result<()> {
    // What a machine of another kind begins with is not of this one.
    let own = ("busybox", "busybox-static");
    let own = (!processor.is_foreign()).then_some(own);
    let mut missing: Vec<&str> = std::iter::once(processor.emulator())
        .chain(own)
        .chain(TOOLS)
        .filter(|(program, _)| !cmd::is_installed(program))
        .map(|(_, package)| package)
        .collect();
    if missing.is_empty() && own.is_some() && needs_libraries(&Path::new("/").join(BUSYBOX))? {
        missing.push("busybox-static");
    }
    ensure!(
        missing.is_empty(),
        "missing: {0}; install with `apt-get install {0}`",
        missing.join(" ")
    );
    Ok(())
}

/// Whether a program names a loader: nothing else is there where it is to run.
fn needs_libraries(program: &Path) -> Result<bool> {
    let bytes = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let loader = b"/ld-linux";
    Ok(bytes.windows(loader.len()).any(|part| part == loader))
}

/// Runs the tests under this kernel; where the counts will be.
pub fn run(
    kind: &Kind,
    kernel: &Kernel,
    dir: &Path,
    tests: &Tests,
    patience: Duration,
) -> Result<PathBuf> {
    let results = dir.join(format!("results-{}", kernel.version));
    empty(&results)?;
    let summary = results.join("summary.json");
    write(&results.join("tests.sh"), &script(tests))?;
    write(&results.join("here"), &cmd::root().display().to_string())?;
    let begins_with = initial(kind, kernel, dir)?;
    let disk = disk(dir)?;
    let (emulator, _) = kind.processor.emulator();
    let mut machine = Command::new(emulator);
    machine
        .args(["-accel", "tcg,thread=multi", "-smp", "2"])
        .args(kind.processor.hardware())
        .args(["-m", &MEMORY_MB.to_string(), "-nic", "none"])
        .args(["-display", "none", "-monitor", "none", "-serial", "stdio"])
        .args(["-no-reboot", "-append"])
        .arg(format!(
            "console={} quiet loglevel=1 panic=-1",
            kind.processor.console()
        ))
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(&begins_with);
    share(
        &mut machine,
        "files",
        &kind.files,
        ",readonly=on,multidevs=remap",
    );
    if kind.processor.is_foreign() {
        share(&mut machine, "here", &cmd::root(), ",readonly=on");
    }
    share(&mut machine, "results", &results, "");
    let drive = format!("file={},format=raw,if=virtio,cache=unsafe", disk.display());
    machine.args(["-drive", &drive]).stdin(Stdio::null());
    let mut child = machine
        .spawn()
        .with_context(|| format!("cannot start {emulator}"))?;
    let ended = test::wait(&mut child, patience)?;
    fs::remove_file(&disk).with_context(|| format!("cannot remove {}", disk.display()))?;
    match ended {
        Some(status) => ensure!(status.success(), "{emulator} ended with {status}"),
        None => bail!("the machine ran longer than {} s", patience.as_secs()),
    }
    let failed = results.join("failed");
    ensure!(
        !failed.exists(),
        "the machine could not begin: {}",
        fs::read_to_string(&failed).unwrap_or_default().trim_end()
    );
    Ok(summary)
}

/// A directory of this machine, for the other one to mount by its name.
fn share(machine: &mut Command, name: &str, dir: &Path, more: &str) {
    // A comma in a path would begin another option.
    let path = dir.display().to_string().replace(',', ",,");
    let local = format!("local,id={name},path={path},security_model=none{more}");
    let device = format!("virtio-9p-pci,fsdev={name},mount_tag={name}");
    machine.args(["-fsdev", &local, "-device", &device]);
}

/// What a person there would type. They are in a group of their own, as everybody is.
fn script(tests: &Tests) -> String {
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    let mut script = format!(
        "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root\n\
         echo $$ > /sys/fs/cgroup/person/cgroup.procs\n\
         cd {} && {} test --built {} --jobs 1 --summary /run/results/summary.json",
        quoted(&cmd::root()),
        quoted(&tests.runner),
        quoted(&tests.list),
    );
    for word in &tests.filter {
        // A name of a test has no quotes in it; one that has is none.
        let _written = write!(script, " {}", quoted(Path::new(word)));
    }
    script.push_str("\nsync\necho o > /proc/sysrq-trigger\nwhile :; do sleep 1; done\n");
    script
}

/// The file system the machine begins with.
fn initial(kind: &Kind, kernel: &Kernel, dir: &Path) -> Result<PathBuf> {
    let tree = dir.join("begin");
    empty(&tree)?;
    for name in [
        "bin", "modules", "files", "results", "disk", "root", "proc", "sys", "dev", "here",
    ] {
        fs::create_dir(tree.join(name)).with_context(|| format!("cannot make {name}"))?;
    }
    write(&tree.join("init"), INIT)?;
    cmd::output(Command::new("chmod").arg("755").arg(tree.join("init")))?;
    fs::copy(kind.files.join(BUSYBOX), tree.join(BUSYBOX)).context("cannot copy busybox")?;
    for (number, module) in modules(kernel)?.iter().enumerate() {
        let name = module.file_name().unwrap_or_default().to_string_lossy();
        // In the order in which they are to be loaded.
        let to = tree.join(format!(
            "modules/{number:03}-{}",
            name.trim_end_matches(".xz")
        ));
        if name.ends_with(".xz") {
            let bytes = cmd::output(Command::new("xz").arg("-dc").arg(module))?;
            fs::write(&to, bytes)
        } else {
            fs::copy(module, &to).map(|_| ())
        }
        .with_context(|| format!("cannot write {}", to.display()))?;
    }
    let image = dir.join("begin.cpio");
    let pack = "cd \"$0\" && find . | cpio --quiet -o -H newc > \"$1\"";
    cmd::output(Command::new("sh").args(["-c", pack]).arg(&tree).arg(&image))?;
    Ok(image)
}

/// The files of the modules, what one depends on before it; none for what is built in.
fn modules(kernel: &Kernel) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for module in MODULES {
        let list = cmd::output(Command::new("modprobe").arg("-d").arg(&kernel.dir).args([
            "-S",
            &kernel.version,
            "--show-depends",
            module,
        ]))?;
        for line in String::from_utf8_lossy(&list).lines() {
            if let Some(file) = line.strip_prefix("insmod ") {
                let file = PathBuf::from(file.trim_end());
                if !files.contains(&file) {
                    files.push(file);
                }
            }
        }
    }
    Ok(files)
}

/// A disk for what is written: other file systems keep other attributes.
fn disk(dir: &Path) -> Result<PathBuf> {
    let disk = dir.join("disk.raw");
    let file =
        fs::File::create(&disk).with_context(|| format!("cannot make {}", disk.display()))?;
    // Of nothing but holes: it takes as much room as is written.
    file.set_len(DISK_BYTES)
        .with_context(|| format!("cannot make {}", disk.display()))?;
    cmd::output(
        Command::new("mke2fs")
            .args(["-q", "-F", "-t", "ext4", "-O", "^has_journal"])
            .arg(&disk),
    )?;
    Ok(disk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_there_keeps_odd_names_whole() {
        let tests = Tests {
            list: PathBuf::from("/a b/it's.json"),
            runner: PathBuf::from("/a b/xtask"),
            filter: vec!["groups::".to_owned(), "$(x)".to_owned()],
        };
        let script = script(&tests);
        assert!(script.contains(r"--built '/a b/it'\''s.json'"), "{script}");
        assert!(script.contains(" 'groups::' '$(x)'\n"), "{script}");
    }

    #[test]
    fn a_program_that_needs_a_loader_is_told_from_one_that_does_not() {
        assert!(needs_libraries(Path::new("/bin/sh")).unwrap());
        let temp = tempfile::tempdir().unwrap();
        let plain = temp.path().join("plain");
        fs::write(&plain, "\u{7f}ELF").unwrap();
        assert!(!needs_libraries(&plain).unwrap());
        assert!(needs_libraries(&temp.path().join("none")).is_err());
    }

    #[test]
    fn a_shared_directory_is_one_option_whatever_its_name() {
        let mut command = Command::new("true");
        share(&mut command, "files", Path::new("/a,path=/b"), "");
        let said: Vec<_> = command.get_args().collect();
        assert_eq!(
            said[1],
            "local,id=files,path=/a,,path=/b,security_model=none"
        );
    }
}
