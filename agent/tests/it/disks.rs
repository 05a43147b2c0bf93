//! Disks that are full or read-only: the tool says so in its own shape, and
//! everything is as it was. The disk is a small one in memory, mounted for one
//! run of the program and seen by nobody else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use serde_json::{Value, json};

use crate::support::home::Home;

/// Makes the disk, makes the call (or, named by itself, does that), and says what the
/// disk holds afterwards.
const SCRIPT: &str = r#"
mount -t tmpfs -o size=64k,mode=755 tmpfs "$1" || exit 96
cd "$1" || exit 96
mkdir -p proj hermes/memories hermes/skills/old "$3/home/.hermes"
mount --bind hermes "$3/home/.hermes" || exit 96
printf 'one\ntwo\n' > proj/a.txt
printf 'kept\n' > hermes/memories/MEMORY.md
printf -- '---\nname: old\ndescription: d\n---\nbody\n' > hermes/skills/old/SKILL.md
case $2 in
full) dd if=/dev/zero of=fill bs=4096 2>/dev/null ;;
ro) mount -o remount,ro "$1" || exit 96 ;;
esac
find . ! -name fill -type f -exec sha256sum {} + | sort > "$3/before"
cd proj
case $5 in
exec) set -- "$1" "$2" "$3" "$4" --grant 'fs.*=.' -- "$6"; did=exec ;;
*) set -- "$1" "$2" "$3" "$4" --grant 'fs.*=.' --grant 'fs.*=~/.hermes/memories' --grant 'fs.*=~/.hermes/skills' \
    "$5" "$6"; did=call ;;
esac
notes=$3 program=$4
shift 4
HOME=$notes/home "$program" $did "$@" > "$notes/said" 2> "$notes/complained"
echo $? > "$notes/status"
set -- "" "" "$notes"
cd ..
find . ! -name fill -type f -exec sha256sum {} + | sort > "$3/after"
"#;

#[derive(Clone, Copy)]
enum Disk {
    Full,
    ReadOnly,
}

impl Disk {
    fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::ReadOnly => "ro",
        }
    }
}

/// What the program said on such a disk.
struct Said {
    status: String,
    stdout: String,
    stderr: String,
}

/// What the tool says on such a disk; `None` (and it is said why) where none can
/// be made.
fn said(disk: Disk, tool: &str, arguments: &Value) -> Option<Value> {
    let told = told(disk, tool, &arguments.to_string())?;
    let said = serde_json::from_str(&told.stdout)
        .unwrap_or_else(|error| panic!("{tool}: {error}: {} {}", told.stdout, told.stderr));
    Some(said)
}

/// The same for a tool, or `exec` and a line for the shell. Whatever is said, nothing
/// may have changed.
fn told(disk: Disk, what: &str, with: &str) -> Option<Said> {
    let home = Home::new();
    let (disk_at, notes) = (home.path().join("disk"), home.path().join("notes"));
    std::fs::create_dir(&disk_at).unwrap();
    std::fs::create_dir(&notes).unwrap();
    let ran = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", SCRIPT, "sh"])
        .arg(&disk_at)
        .arg(disk.word())
        .arg(&notes)
        .arg(env!("CARGO_BIN_EXE_hermitcrab"))
        .args([what, with])
        .env_clear()
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .output()
        .unwrap();
    let read = |name: &str| std::fs::read_to_string(notes.join(name)).unwrap_or_default();
    if ran.status.code() == Some(96) || read("before").is_empty() {
        println!("SKIPPED: no disk can be mounted here: {ran:?}");
        return None;
    }
    assert_eq!(read("before"), read("after"), "{what}: {}", read("said"));
    Some(Said {
        status: read("status").trim().to_owned(),
        stdout: read("said"),
        stderr: read("complained"),
    })
}

/// Long enough to need room of its own.
fn long() -> String {
    "a line of some length\n".repeat(400)
}

#[test]
fn a_write_to_a_full_disk_is_told_in_hermes_words_and_leaves_everything() {
    let full = "Failed to write file: No space left on device\n";
    let write = |path: &str| json!({"path": path, "content": long()});
    for path in ["new.txt", "a.txt"] {
        let Some(said) = said(Disk::Full, "write_file", &write(path)) else {
            return;
        };
        assert_eq!(said["error"], full, "{said}");
        assert_eq!(said["bytes_written"], 0, "{said}");
    }
    let args =
        json!({"mode": "replace", "path": "a.txt", "old_string": "two", "new_string": long()});
    let patched = said(Disk::Full, "patch", &args).unwrap();
    assert_eq!(
        patched["error"],
        format!("Failed to write changes: {full}"),
        "{patched}"
    );
}

#[test]
fn a_write_to_a_read_only_disk_is_told_in_hermes_words() {
    let shut = "Failed to write file: Read-only file system\n";
    for path in ["new.txt", "a.txt"] {
        let args = json!({"path": path, "content": "x\n"});
        let Some(said) = said(Disk::ReadOnly, "write_file", &args) else {
            return;
        };
        assert_eq!(said["error"], shut, "{said}");
        assert_eq!(said["bytes_written"], 0, "{said}");
    }
    let args = json!({"mode": "replace", "path": "a.txt", "old_string": "two", "new_string": "2"});
    let patched = said(Disk::ReadOnly, "patch", &args).unwrap();
    assert_eq!(
        patched["error"],
        format!("Failed to write changes: {shut}"),
        "{patched}"
    );
}

#[test]
fn of_a_patch_of_several_files_nothing_stays_where_there_is_no_room_for_all() {
    let added: String = long().lines().map(|line| format!("+{line}\n")).collect();
    let patch = format!(
        "*** Begin Patch\n*** Update File: a.txt\n-two\n+2\n*** Add File: b.txt\n{added}*** End Patch"
    );
    for disk in [Disk::Full, Disk::ReadOnly] {
        let args = json!({"mode": "patch", "patch": patch});
        let Some(said) = said(disk, "patch", &args) else {
            return;
        };
        assert_eq!(said["success"], false, "{said}");
        let error = said["error"].as_str().unwrap();
        assert!(error.contains("no files were modified"), "{said}");
    }
}

#[test]
fn what_a_command_did_is_not_half_kept_where_there_is_no_room_for_it() {
    let command = "printf 'changed\n' > a.txt; head -c 200000 /dev/zero > big; echo printed";
    let Some(said) = said(Disk::Full, "terminal", &json!({ "command": command })) else {
        return;
    };
    let error = said["error"].as_str().unwrap();
    let begins = "The command ran on a copy and its changes were discarded (no-room): the ";
    assert!(error.starts_with(begins), "{said}");
    assert!(error.contains("disk/proj/"), "{said}");
    assert!(error.contains("/disk has 0 bytes free)"), "{said}");
    assert!(error.ends_with(", then run it again."), "{said}");
    // Its changes are gone, not its words.
    assert!(
        said["output"].as_str().unwrap().contains("printed"),
        "{said}"
    );

    let told = told(Disk::Full, "exec", command).unwrap();
    assert_eq!(told.status, "77", "{}", told.stderr);
    assert_eq!(told.stdout, "printed\n");
    let begins = "hermitcrab: what it changed is discarded (no-room): the ";
    assert!(told.stderr.starts_with(begins), "{}", told.stderr);
    assert!(told.stderr.contains("disk/proj/"), "{}", told.stderr);
}

#[test]
fn a_command_learns_itself_that_its_directory_is_mounted_read_only() {
    let command =
        "echo b > a.txt; mkdir d; rm -f a.txt; cat a.txt; echo x > /tmp/own && echo printed";
    let refusals = [
        "a.txt: Read-only file system",
        "mkdir: cannot create directory",
        "rm: cannot remove 'a.txt': Read-only file system",
    ];
    let Some(said) = said(Disk::ReadOnly, "terminal", &json!({ "command": command })) else {
        return;
    };
    let output = said["output"].as_str().unwrap();
    for refusal in refusals {
        assert!(output.contains(refusal), "{refusal}: {said}");
    }
    assert!(output.ends_with("one\ntwo\nprinted"), "{said}");
    assert_eq!(
        (&said["exit_code"], &said["error"]),
        (&json!(0), &json!(null))
    );

    let told = told(Disk::ReadOnly, "exec", command).unwrap();
    assert_eq!((&*told.status, &*told.stdout), ("0", "one\ntwo\nprinted\n"));
    for refusal in refusals {
        assert!(told.stderr.contains(refusal), "{refusal}: {}", told.stderr);
    }
}

#[test]
fn skills_and_memory_on_such_a_disk_are_told_in_their_shape() {
    let skill = format!("---\nname: new\ndescription: d\n---\n{}", long());
    let calls = [
        (
            "skill_manage",
            json!({"action": "create", "name": "new", "content": skill}),
        ),
        (
            "memory",
            json!({"action": "add", "target": "memory", "content": "remember this"}),
        ),
    ];
    for disk in [Disk::Full, Disk::ReadOnly] {
        for (tool, args) in &calls {
            let Some(said) = said(disk, tool, args) else {
                return;
            };
            assert_eq!(said["success"], false, "{tool}: {said}");
            assert!(said["error"].is_string(), "{tool}: {said}");
        }
    }
}

/// Where there is no room for a store there is none, and none that is damaged.
#[test]
fn a_store_there_is_no_room_for_is_not_half_made() {
    let home = Home::new();
    let state = home.path().join("small");
    std::fs::create_dir(&state).unwrap();
    let script = "mount -t tmpfs -o size=$3,mode=700 tmpfs \"$1\" || exit 96; \
                  \"$2\" caps --state-dir \"$1\" grant fs.read=.; echo $?; ls \"$1\"; \
                  mount -o remount,size=4m \"$1\"; \"$2\" caps --state-dir \"$1\" grant fs.read=.; echo $?";
    let mut refused = 0;
    for size in ["12k", "24k", "36k", "48k", "60k"] {
        let ran = std::process::Command::new("unshare")
            .args(["--mount", "sh", "-c", script, "sh"])
            .args([&state, Path::new(env!("CARGO_BIN_EXE_hermitcrab"))])
            .arg(size)
            .current_dir(home.project())
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
            .output()
            .unwrap();
        if ran.status.code() == Some(96) {
            println!("SKIPPED: no disk can be mounted here");
            return;
        }
        let told = String::from_utf8_lossy(&ran.stdout);
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(!errors.contains("damaged"), "{size}: {errors}");
        assert!(told.ends_with("\n0\n"), "{size}: {told}{errors}");
        if told.starts_with("69\n") {
            refused += 1;
            assert!(errors.contains("No space left on device"), "{errors}");
            let first = told.split("standing").next().unwrap();
            assert!(!first.contains("store.redb"), "{size}: {told}");
        }
    }
    assert!(refused > 0);
}

/// What holds no files, and what the user may not write, is no place to work in.
#[test]
fn the_doctor_says_where_commands_have_nothing_of_the_machine() {
    let home = Home::new();
    let told = |workspace: &str| {
        let ran = home.run(&["doctor", "--workspace", workspace]);
        ran.out + &ran.err
    };
    for place in ["/sys", "/proc", "/dev"] {
        let told = told(place);
        assert!(!told.contains("commands work in"), "{told}");
        assert!(
            told.contains(&format!("`{place}` cannot be worked in, because ")),
            "{told}"
        );
    }
}

/// The temporary directory, where the sandbox is tried out, says nothing of the workspace.
#[test]
fn the_doctor_tries_the_workspace_itself_and_says_what_cannot_be_kept() {
    let home = Home::new();
    let told = home.ok(&["doctor"]);
    let place = home.project().canonicalize().unwrap();
    let works = format!("workspace: commands work in `{}`", place.display());
    assert!(told.lines().any(|line| line == works), "{told}");
    assert!(!home.state("ledger.jsonl").exists(), "nothing is written");

    let disk = home.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let script = "mount -t tmpfs -o size=64k,mode=755 tmpfs \"$1\" && mkdir \"$1/proj\" && \
                  mount -o remount,ro \"$1\" || exit 96; cd \"$1/proj\" && exec \"$2\" doctor";
    let ran = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(&disk)
        .arg(env!("CARGO_BIN_EXE_hermitcrab"))
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .output();
    let Some(ran) = ran
        .ok()
        .filter(|ran| ran.status.code() != Some(96) && !ran.stdout.is_empty())
    else {
        println!("SKIPPED: no disk can be mounted here");
        return;
    };
    let told = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert!(
        told.contains("disk/proj` and change nothing in it: its file system is read-only"),
        "{told}"
    );
    // Where nothing can be recorded, nothing runs, whatever the sandbox can do.
    let state = disk.join("state");
    let script = "mount -t tmpfs -o ro tmpfs \"$1\" || exit 96; cd \"$3\" && \"$2\" doctor --state-dir \"$4\"; \
                  echo $?; \"$2\" exec --state-dir \"$4\" -- true; echo $?";
    let ran = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(&disk)
        .arg(env!("CARGO_BIN_EXE_hermitcrab"))
        .args([home.project(), state])
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .output()
        .unwrap();
    let (told, errors) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    assert!(told.ends_with("\n69\n69\n"), "{told}{errors}");
    let why = "disk/state`, so nothing runs: its file system is read-only; `--state-dir DIR` names";
    assert!(errors.contains(why), "{errors}");
    let why = "Read-only file system (os error 30); `--state-dir DIR` names another";
    assert!(errors.contains(why), "{errors}");
}
