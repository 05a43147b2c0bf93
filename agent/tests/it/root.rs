//! Started by root, the program keeps only what it needs of root's powers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::{Command, Stdio};

use crate::support::home::Home;

/// Capabilities by their numbers, as capabilities(7) has them.
const KEPT: [u32; 6] = [0, 1, 2, 3, 4, 5];
/// Ids, for a thread that makes files for a command; in use in no other.
const FOR_THREADS: [u32; 2] = [6, 7];
const GONE_FOR_GOOD: [(u32, &str); 8] = [
    (13, "raw sockets"),
    (16, "modules"),
    (17, "raw input and output"),
    (22, "reboot"),
    (25, "the clock"),
    (34, "the kernel's log"),
    (38, "watching the kernel"),
    (39, "programs in the kernel"),
];

fn sets(status: &str, name: &str) -> u64 {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap();
    u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap()
}

#[test]
fn root_s_powers_are_given_up_but_for_files_and_what_building_sandboxes_takes() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root has powers to give up");
        return;
    }
    let home = Home::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_hermitcrab"))
        .current_dir(home.project())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It answers, so it has begun.
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::Write::write_all(&mut stdin, b"!echo $((40 + 2)) > b.txt; cat b.txt\nhelp\n").unwrap();
    let mut said = String::new();
    while !said.contains("dry-run") {
        assert_ne!(
            std::io::BufRead::read_line(&mut stdout, &mut said).unwrap(),
            0,
            "{said}"
        );
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    drop(stdin);
    std::io::Read::read_to_string(&mut stdout, &mut said).unwrap();
    assert!(child.wait().unwrap().code().is_some());
    let kept: u64 = KEPT.iter().map(|number| 1 << number).sum();
    let for_threads: u64 = FOR_THREADS.iter().map(|number| 1 << number).sum();
    assert_eq!(sets(&status, "CapEff"), kept, "{status}");
    assert_eq!(sets(&status, "CapPrm"), kept | for_threads, "{status}");
    assert_eq!(sets(&status, "CapInh"), 0, "{status}");
    for (number, what) in GONE_FOR_GOOD {
        assert_eq!(sets(&status, "CapBnd") >> number & 1, 0, "{what}: {status}");
    }
    // Commands run all the same: this one printed, and was not granted its change.
    assert!(said.contains("42"), "{said}");
    assert!(!home.project().join("b.txt").exists());
}
