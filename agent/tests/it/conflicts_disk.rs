//! What is kept of a command's versions where the disk is full: those of the newest, and
//! nothing is lost without its name. The disk is a small one in memory, mounted for one run
//! of the test and seen by nobody else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fmt,
    fs::File,
    path::{Path, PathBuf},
};

use hermitcrab::state_dir::{
    conflicts::{Aside, Why, keep},
    room::Room,
};

/// What lies in the working directory of the second run.
const SECOND: &str = "hermitcrab-second-run";

/// Runs the test again on a disk of one mebibyte, and says where that is; `None` in the
/// run that does so, whose result is that of the other.
fn on_a_small_disk(name: &str) -> Option<PathBuf> {
    if Path::new(SECOND).exists() {
        return Some(std::fs::canonicalize(".").unwrap());
    }
    let dirs = tempfile::tempdir().unwrap();
    let at = dirs.path().canonicalize().unwrap();
    let ran = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c"])
        .arg("mount -t tmpfs -o size=1m,mode=700 tmpfs \"$1\" || exit 96; cd \"$1\" && : > \"$4\" && exec \"$2\" --exact \"$3\" --nocapture")
        .arg("sh")
        .arg(&at)
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .arg(SECOND)
        .output()
        .unwrap();
    if ran.status.code() == Some(96) {
        println!("SKIPPED: no disk can be mounted here");
        return None;
    }
    let told = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && told.contains("1 passed"), "{told}");
    None
}

/// A version of so many bytes, which lies elsewhere.
fn version(dir: &Path, name: &str, bytes: usize) -> (PathBuf, std::io::Result<File>) {
    let path = dir.join(name);
    std::fs::write(&path, "x".repeat(bytes)).unwrap();
    (Path::new("/w").join(name), File::open(path))
}

fn texts(at: &Path) -> Vec<(String, u64)> {
    let Ok(names) = std::fs::read_dir(at.join("w")) else {
        return Vec::new();
    };
    let mut found: Vec<(String, u64)> = names
        .map(|name| name.unwrap())
        .map(|name| {
            let length = name.metadata().unwrap().len();
            (name.file_name().into_string().unwrap(), length)
        })
        .collect();
    found.sort();
    found
}

struct Told<'a>(&'a Aside);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.tell_missed(f)?;
        self.0.tell_gave_way(f)
    }
}

#[test]
fn where_the_disk_is_full_the_newest_versions_are_kept_and_what_goes_for_them_is_told() {
    let name = "conflicts_disk::where_the_disk_is_full_the_newest_versions_are_kept_and_what_goes_for_them_is_told";
    let Some(small) = on_a_small_disk(name) else {
        return;
    };
    let elsewhere = tempfile::tempdir().unwrap();
    let from = elsewhere.path();
    let state = small.join("state");
    let kept = |files| keep(&state, files).unwrap();
    let first = kept(vec![version(from, "a", 300_000)]);
    let second = kept(vec![version(from, "b", 300_000)]);
    let third = kept(vec![version(from, "c", 200_000)]);
    assert!(third.missed.is_empty() && third.gave_way.is_empty());
    // The oldest is enough.
    let fourth = kept(vec![version(from, "d", 10), version(from, "e", 400_000)]);
    assert_eq!(fourth.missed, [], "{}", Told(&fourth));
    assert_eq!(fourth.gave_way, std::slice::from_ref(&first.at));
    let both = [("d".to_owned(), 10), ("e".to_owned(), 400_000)];
    assert_eq!(texts(&fourth.at), both);
    assert!(!first.at.exists() && second.at.exists() && third.at.exists());
    let told = Told(&fourth).to_string();
    assert!(
        told.contains(&format!(
            "kept there of earlier commands is removed: `{}`",
            first.at.display()
        )),
        "{told}"
    );
    // Not even all of them would do, so they stay, and what is not kept has its name, the
    // disk and what it lacks.
    let fifth = kept(vec![
        version(from, "big", 1_200_000),
        version(from, "small", 10),
    ]);
    assert!(second.at.exists() && third.at.exists() && fourth.at.exists());
    assert_eq!(texts(&fifth.at), [("small".to_owned(), 10)]);
    let [missed] = &fifth.missed[..] else {
        panic!("{}", Told(&fifth))
    };
    assert_eq!(missed.name, Path::new("/w/big"));
    let Why::NoRoom(1_200_000, Some(room)) = &missed.why else {
        panic!("{}", Told(&fifth))
    };
    assert_eq!(room.mounted_at, small);
    assert!(room.free_bytes < 300_000);
    let told = Told(&fifth).to_string();
    assert!(
        told.contains("`/w/big` (1200000 bytes long, and the file system at "),
        "{told}"
    );
    assert!(
        told.ends_with("make room there, then run the command again"),
        "{told}"
    );
    // Nothing at all fits: it is told, and those before stay.
    let free = Room::at(&small).unwrap().free_bytes;
    let sixth = kept(vec![version(from, "big", 1_200_000)]);
    assert_eq!((sixth.files, sixth.missed.len()), (0, 1));
    assert!(!sixth.at.exists());
    assert_eq!(Room::at(&small).unwrap().free_bytes, free);
    assert!(second.at.exists() && third.at.exists() && fourth.at.exists());
}

#[test]
fn where_not_even_a_directory_fits_the_disk_is_named() {
    let name = "conflicts_disk::where_not_even_a_directory_fits_the_disk_is_named";
    let Some(small) = on_a_small_disk(name) else {
        return;
    };
    let elsewhere = tempfile::tempdir().unwrap();
    let mut filled = File::create(small.join("fill")).unwrap();
    while std::io::Write::write(&mut filled, &[0; 4096]).is_ok() {}
    let state = small.join("state");
    let told = match keep(&state, vec![version(elsewhere.path(), "a", 10)]) {
        Ok(aside) => Told(&aside).to_string(),
        Err(why) => why,
    };
    let named = format!("the file system at {} has 0 bytes free", small.display());
    assert!(told.contains(&named), "{told}");
    assert!(
        told.contains("; make room there, then run the command again"),
        "{told}"
    );
}
