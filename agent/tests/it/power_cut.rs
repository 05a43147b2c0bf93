//! The power goes right after the program has said that something is done: whatever shows it
//! on the disk as it was left shows it on what had reached the disk.
//!
//! The disk is a file system in a file. What is in memory only is not in that file, so a copy
//! of it is the disk after a loss of power. It is mounted for one run and seen by nobody else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::home::Home;

/// Makes the disk; then, for each pair of lines it reads, does the first, runs the second on
/// the disk and on a copy of it in its place, and checks the ledger there.
const SCRIPT: &str = r#"
at=$1/at image=$1/image copy=$1/copy notes=$1/notes program=$2
options=loop,commit=300,data=writeback,noauto_da_alloc
mkdir "$at" "$notes" && truncate -s 32M "$image" &&
    mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$image" &&
    mount -o $options "$image" "$at" || exit 96
export HOME=$at/home p=$program all='--grant fs.*=.'
notes_of='--grant fs.*=~/.hermes/memories --grant fs.*=~/.hermes/skills --grant fs.*=~/.hermes/cron'
export notes_of
mkdir -p "$at/proj" "$HOME/.hermes/memories" "$HOME/.hermes/skills" "$HOME/.hermes/cron"
cd "$at/proj" && printf 'one\ntwo\n' > a.txt && sync -f . || exit 97
n=0
while IFS= read -r act && IFS= read -r look; do
    n=$((n + 1))
    eval "$act" > "$notes/$n.said" 2>&1 < /dev/null
    echo $? > "$notes/$n.status"
    cp --sparse=auto "$image" "$copy"
    eval "$look" > "$notes/$n.live" 2>&1 < /dev/null
    cd / && mount -o $options "$copy" "$at" && cd "$at/proj" || exit 98
    eval "$look" > "$notes/$n.cut" 2>&1 < /dev/null
    "$p" audit verify > "$notes/$n.ledger" 2>&1 || echo "does not hold" >> "$notes/$n.ledger"
    cd / && umount --lazy "$at" && rm "$copy" && cd "$at/proj" || exit 99
done
echo "$n" > "$notes/count"
"#;

/// Something that is done, and what shows that it is.
const DONE: [[&str; 2]; 14] = [
    [
        "$p config set safety.max_files_per_operation 7",
        "cat ~/.config/hermitcrab/config.toml",
    ],
    [
        "$p config set safety.block_rm_rf true",
        "cat ~/.config/hermitcrab/config.toml",
    ],
    [
        "$p config reset safety.max_files_per_operation",
        "cat ~/.config/hermitcrab/config.toml",
    ],
    [
        "$p exec $all -- 'echo 2 > a.txt; mkdir n; echo x > n/f'",
        "cat a.txt n/f; $p undo --list",
    ],
    ["$p undo", "cat a.txt; ls -R; $p undo --list"],
    [
        r#"$p call $all write_file '{"path": "b/c/d.txt", "content": "hello"}'"#,
        "ls -R; cat b/c/d.txt",
    ],
    [
        r#"$p call $all patch '{"path": "a.txt", "old_string": "two", "new_string": "2"}'"#,
        "cat a.txt",
    ],
    [
        r#"$p call $notes_of memory '{"action": "add", "target": "memory", "content": "likes tests"}'"#,
        "cat ~/.hermes/memories/*",
    ],
    [
        r#"$p call $notes_of skill_manage '{"action": "create", "name": "sk", "content": "---\nname: sk\ndescription: d\n---\nbody\n"}'"#,
        "find ~/.hermes/skills -type f -exec cat {} +",
    ],
    ["$p caps grant 'fs.*=./n'", "$p caps"],
    ["$p caps grant fs.modify=a.txt", "$p caps"],
    ["$p caps revoke standing1", "$p caps"],
    [
        "$p audit archive ~/records",
        "ls ~/records; $p audit verify --state-dir ~/records",
    ],
    ["$p exec $all -- 'echo 3 > a.txt'", "cat a.txt"],
];

#[test]
fn what_is_told_as_done_is_done_after_a_loss_of_power() {
    let home = Home::new();
    let lines = home.path().join("lines");
    std::fs::write(&lines, DONE.concat().join("\n") + "\n").unwrap();
    let ran = std::process::Command::new("unshare")
        .args(["--mount", "bash", "-c", SCRIPT, "bash"])
        .arg(home.path())
        .arg(env!("CARGO_BIN_EXE_hermitcrab"))
        .env_clear()
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .stdin(std::fs::File::open(&lines).unwrap())
        .output()
        .unwrap();
    if ran.status.code() == Some(96) || ran.status.code() == Some(1) {
        println!("SKIPPED: no file system in a file can be mounted here: {ran:?}");
        return;
    }
    let read = |name: &str| {
        let path = home.path().join("notes").join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}: {ran:?}"))
    };
    assert_eq!(read("count").trim(), DONE.len().to_string(), "{ran:?}");
    for (number, [act, _]) in (1..).zip(DONE) {
        let part = |name: &str| read(&format!("{number}.{name}"));
        assert_eq!(part("status"), "0\n", "{act}: {}", part("said"));
        assert!(!part("live").is_empty(), "{act}");
        assert_eq!(part("cut"), part("live"), "{act}");
        assert!(
            !part("ledger").contains("does not hold"),
            "{act}: {}",
            part("ledger")
        );
    }
}
