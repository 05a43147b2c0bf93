//! What is packed of a program that is only a script.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::notices::Package;
use super::*;

/// A machine's worth of directories.
struct Bench {
    dir: tempfile::TempDir,
    made: Made,
}

const NOTICES: &str = "a 1.0: MIT\n";
const SCRIPT: &str = r#"#!/bin/sh
case "$1" in
man) echo .TH > "$3/hermitcrab.1"; echo .TH exec > "$3/hermitcrab-exec.1" ;;
completions) echo "for $2" ;;
doctor) echo "profile for ${2#--apparmor=}" ;;
esac
"#;

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("program");
        fs::write(&file, SCRIPT).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o700)).unwrap();
        let made = Made {
            speaker: file.clone(),
            file,
            library: "2.34".to_owned(),
        };
        Self { dir, made }
    }

    fn packed(&self, into: &str, form: Form) -> PathBuf {
        let dir = self.dir.path().join(into);
        fs::create_dir_all(&dir).unwrap();
        let release = Release {
            version: "1.2.3".to_owned(),
            processor: Processor::X86_64,
            time: 1_700_000_000,
        };
        let files = packed(&release, &self.made, NOTICES, &[form], &dir).unwrap();
        let [file] = files.try_into().unwrap();
        file
    }
}

fn said(command: &mut Command) -> String {
    String::from_utf8(cmd::output(command.env("TZ", "UTC").env("LC_ALL", "C")).unwrap()).unwrap()
}

#[test]
fn the_same_files_make_the_same_bytes_and_belong_to_root() {
    let bench = Bench::new();
    for form in [Form::Tar, Form::Deb] {
        let one = bench.packed("one", form);
        let other = bench.packed("other", form);
        assert_eq!(one.file_name(), other.file_name());
        assert!(
            fs::read(one).unwrap() == fs::read(other).unwrap(),
            "{form:?}"
        );
    }
}

#[test]
fn an_archive_has_all_of_it_below_one_name() {
    let bench = Bench::new();
    let file = bench.packed("one", Form::Tar);
    let list = said(Command::new("tar").arg("-tvzf").arg(&file));
    let top = "hermitcrab-1.2.3-x86_64-linux";
    for (rights, place) in [
        ("drwxr-xr-x", ""),
        ("-rwxr-xr-x", "bin/hermitcrab"),
        ("-rw-r--r--", "share/man/man1/hermitcrab-exec.1.gz"),
        ("-rw-r--r--", "share/bash-completion/completions/hermitcrab"),
        ("-rw-r--r--", "share/zsh/vendor-completions/_hermitcrab"),
        (
            "-rw-r--r--",
            "share/fish/vendor_completions.d/hermitcrab.fish",
        ),
        ("-rw-r--r--", "share/doc/hermitcrab/THIRD-PARTY"),
        ("-rw-r--r--", "share/doc/hermitcrab/LICENSE-MIT"),
    ] {
        let end = format!(" 2023-11-14 22:13 {top}/{place}");
        let line = list.lines().find(|line| line.ends_with(&end));
        let line = line.unwrap_or_else(|| panic!("{end}: {list}"));
        assert!(line.starts_with(&format!("{rights} root/root")), "{line}");
    }
    assert!(list.lines().all(|line| line.contains(top)), "{list}");
}

#[test]
fn a_package_says_what_it_needs_and_has_digests_of_its_files() {
    let bench = Bench::new();
    let file = bench.packed("one", Form::Deb);
    let field = |name: &str| said(Command::new("dpkg-deb").arg("-f").arg(&file).arg(name));
    assert_eq!(field("Version"), "1.2.3\n");
    assert_eq!(field("Architecture"), "amd64\n");
    assert_eq!(field("Depends"), "libc6 (>= 2.34), libgcc-s1\n");
    let root = bench.dir.path().join("root");
    cmd::output(Command::new("dpkg-deb").arg("-R").arg(&file).arg(&root)).unwrap();
    let check = "md5sum --quiet -c DEBIAN/md5sums && wc -l < DEBIAN/md5sums";
    let counted = said(Command::new("sh").args(["-c", check]).current_dir(&root));
    let files = said(
        Command::new("find")
            .arg(root.join("usr"))
            .args(["-type", "f"]),
    );
    assert_eq!(counted.trim().parse(), Ok(files.lines().count()));
    assert_eq!(
        fs::read_to_string(root.join("usr/share/doc/hermitcrab/THIRD-PARTY")).unwrap(),
        NOTICES
    );
}

/// A root of its own, in which the scripts of a package work.
fn script(root: &Path, name: &str, word: &str) {
    let (_, text) = debian::SCRIPTS
        .iter()
        .find(|known| known.0 == name)
        .unwrap();
    let mut run = Command::new("sh");
    run.args(["-c", text, name, word]).env("DPKG_ROOT", root);
    cmd::output(&mut run).unwrap();
}

#[test]
fn apparmor_gets_a_profile_where_it_has_the_rule_and_keeps_what_somebody_made_of_it() {
    let bench = Bench::new();
    let root = bench.dir.path().join("root");
    fs::create_dir_all(root.join("usr/bin")).unwrap();
    fs::copy(&bench.made.file, root.join("usr/bin/hermitcrab")).unwrap();
    let profile = root.join("etc/apparmor.d/usr.bin.hermitcrab");
    let here = || {
        profile
            .exists()
            .then(|| fs::read_to_string(&profile).unwrap())
    };

    // No AppArmor, and one that is too old to have the rule.
    script(&root, "postinst", "configure");
    fs::create_dir_all(root.join("etc/apparmor.d/abi")).unwrap();
    script(&root, "postinst", "configure");
    assert_eq!(here(), None);

    fs::write(root.join("etc/apparmor.d/abi/4.0"), "").unwrap();
    script(&root, "postinst", "configure");
    let own = Some("profile for /usr/bin/hermitcrab\n".to_owned());
    assert_eq!(here(), own);
    script(&root, "prerm", "upgrade");
    assert_eq!(here(), own);
    script(&root, "prerm", "remove");
    assert_eq!(here(), None);
    script(&root, "prerm", "remove");

    // What an administrator wrote stays until the package is purged.
    let changed = Some("mine\n".to_owned());
    fs::write(&profile, "mine\n").unwrap();
    script(&root, "postinst", "configure");
    script(&root, "prerm", "remove");
    script(&root, "postrm", "remove");
    assert_eq!(here(), changed);
    script(&root, "postrm", "purge");
    assert_eq!(here(), None);
}

#[test]
fn the_oldest_library_is_the_greatest_version_that_is_asked_for() {
    let said = "  0x0010:   Name: GLIBC_2.9  Flags: none  Version: 4\n\
                 000: 0 (*local*)  2 (GLIBC_2.2.5)  3 (GLIBC_2.34) 4 (GCC_3.0) 5 (GLIBC_PRIVATE)\n";
    assert_eq!(program::oldest_library(said).as_deref(), Some("2.34"));
    assert_eq!(program::oldest_library("none"), None);
}

#[test]
fn each_text_of_a_licence_is_told_once_with_all_it_is_of() {
    let temp = tempfile::tempdir().unwrap();
    let package = |name: &str, text: &str| {
        let sources = temp.path().join(name);
        fs::create_dir(&sources).unwrap();
        fs::write(sources.join("LICENSE-MIT"), text).unwrap();
        fs::write(sources.join("README"), "no licence").unwrap();
        Package {
            name: format!("{name} 1.0.0"),
            licence: "MIT".to_owned(),
            sources,
        }
    };
    let packages = [
        package("a", "be nice  \r\n"),
        package("b", "be nice\n"),
        package("c", "be nicer\n"),
    ];
    let told = notices::told(&packages.into_iter().collect()).unwrap();
    assert!(told.contains("\nc 1.0.0: MIT\n"), "{told}");
    assert!(told.contains("\na 1.0.0, b 1.0.0\n"), "{told}");
    assert_eq!(told.matches("be nice\n").count(), 1, "{told}");
    assert!(!told.contains("no licence"), "{told}");
}

#[test]
fn what_is_built_in_says_its_licence() {
    let told = notices::of(Processor::OWN).unwrap();
    for name in ["regex ", "rustls ", "tokio ", "serde "] {
        assert!(told.lines().any(|line| line.starts_with(name)), "{name}");
    }
    // Of the tests and of the oracle nothing is handed on.
    assert!(!told.lines().any(|line| line.starts_with("proptest ")));
    assert!(!told.lines().any(|line| line.starts_with("pyo3 ")));
}
