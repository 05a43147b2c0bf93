//! The processes that descend from one, as `/proc` shows them.
//!
//! It only counts. Whoever counts what is left over makes itself the reaper of
//! its descendants first ([`adopt`]), so that none escapes by losing its parent.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// The kernel counts processor time for user space in hundredths of a second.
const TICK_MS: u64 = 10;

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    name: String,
    parent: i32,
    is_dead: bool,
    /// Its own time and that of the children it has waited for, in ticks.
    ticks: u64,
    /// When it was started, in ticks since the machine was.
    started: u64,
}

/// Makes this process the one that orphaned descendants fall to.
///
/// # Errors
/// The kernel refuses.
pub fn adopt() -> Result<(), String> {
    nix::sys::prctl::set_child_subreaper(true)
        .map_err(|errno| format!("cannot become the reaper of orphans: {errno}"))
}

/// Waits for every descendant that has fallen to this process and is dead.
/// Only for when nobody in this process holds a child of its own.
pub fn reap() {
    while let Ok(status) = waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)) {
        if status == WaitStatus::StillAlive {
            return;
        }
    }
}

/// The living and dead descendants of a process, by number, with their names.
#[must_use]
pub fn descendants(of: u32) -> BTreeMap<i32, String> {
    let all = processes();
    below(of, &all)
        .into_iter()
        .filter_map(|pid| {
            let line = all.get(&pid)?;
            let end = if line.is_dead { " (dead)" } else { "" };
            Some((pid, format!("{}{end}", line.name)))
        })
        .collect()
}

/// The children of a process, the oldest first.
#[must_use]
pub fn children(of: i32) -> Vec<i32> {
    let mut found: Vec<_> = processes()
        .into_iter()
        .filter(|(_, line)| line.parent == of && !line.is_dead)
        .map(|(pid, line)| (line.started, pid))
        .collect();
    // Numbers say nothing of age: they begin anew when they are used up.
    found.sort_unstable();
    found.into_iter().map(|(_, pid)| pid).collect()
}

/// The processor time a process and its descendants have used so far, with that
/// of every one that was waited for, in milliseconds.
#[must_use]
pub fn cpu_ms(of: u32) -> u64 {
    let all = processes();
    let own = i32::try_from(of).ok();
    below(of, &all)
        .into_iter()
        .chain(own)
        .filter_map(|pid| all.get(&pid))
        .map(|line| line.ticks * TICK_MS)
        .sum()
}

/// What a process and its descendants hold: by name, descriptors and mounts of each.
///
/// # Errors
/// One of them does not show what it holds.
pub fn holdings(of: u32) -> Result<Vec<String>, String> {
    let mut told = Vec::new();
    let own = i32::try_from(of).ok();
    for pid in own.into_iter().chain(descendants(of).into_keys()) {
        let look = |what: &str| format!("/proc/{pid}/{what}");
        let failed = |error: std::io::Error| format!("cannot look at process {pid}: {error}");
        let descriptors = fs::read_dir(look("fd")).map_err(failed)?.count();
        let mounts = fs::read_to_string(look("mountinfo")).map_err(failed)?;
        let name = fs::read_to_string(look("comm")).map_err(failed)?;
        told.push(format!(
            "{}: {descriptors} descriptors, {} mounts",
            name.trim(),
            mounts.lines().count()
        ));
    }
    told.sort();
    Ok(told)
}

fn below(of: u32, all: &BTreeMap<i32, Line>) -> BTreeSet<i32> {
    let Ok(root) = i32::try_from(of) else {
        return BTreeSet::new();
    };
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, line) in all {
        children.entry(line.parent).or_default().push(*pid);
    }
    let mut found = BTreeSet::new();
    let mut next = vec![root];
    while let Some(one) = next.pop() {
        for child in children.get(&one).into_iter().flatten() {
            if found.insert(*child) {
                next.push(*child);
            }
        }
    }
    found
}

fn processes() -> BTreeMap<i32, Line> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            // One that ends while it is looked at is no longer there.
            let text = fs::read(entry.path().join("stat")).ok()?;
            Some((pid, line(&String::from_utf8_lossy(&text))?))
        })
        .collect()
}

/// `pid (name) state parent ...`; a name may hold anything, so it ends at the last bracket.
fn line(stat: &str) -> Option<Line> {
    let (head, rest) = stat.rsplit_once(") ")?;
    let (_, name) = head.split_once('(')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = fields
        .get(11..15)?
        .iter()
        .map(|field| field.parse::<u64>().ok())
        .sum::<Option<u64>>()?;
    Some(Line {
        name: name.to_owned(),
        parent: fields.get(1)?.parse().ok()?,
        is_dead: matches!(*fields.first()?, "Z" | "X"),
        ticks,
        started: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_line_of_proc_is_read_whatever_the_name_holds() {
        let stat = "7 (a) Z (b) S 3 7 7 0 -1 0 1 2 3 4 10 20 30 40 20 0 1 0 5 6 7";
        let expected = Line {
            name: "a) Z (b".to_owned(),
            parent: 3,
            is_dead: false,
            ticks: 100,
            started: 5,
        };
        assert_eq!(line(stat), Some(expected));
        assert!(line(&stat.replace(" S ", " Z ")).unwrap().is_dead);
        for bad in [
            "",
            "7",
            "7 (a",
            "7 (a) S",
            "7 (a) S x 7 7 0 -1 0 1 2 3 4 1 2 3 4",
        ] {
            assert_eq!(line(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_grandchild_is_found_while_it_lives_and_no_longer() {
        let mut child = Command::new("sh")
            .args(["-c", "cat | cat; true"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let id = child.id();
        while descendants(id)
            .values()
            .filter(|name| *name == "cat")
            .count()
            < 2
        {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(descendants(std::process::id()).len() >= 3);
        assert_eq!(holdings(id).unwrap().len(), 3);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(descendants(id).is_empty());
    }
}
