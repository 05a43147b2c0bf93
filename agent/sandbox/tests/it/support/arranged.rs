//! A test that runs itself once more in surroundings arranged for it by the tools
//! of util-linux, which only root can arrange.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command as Bare;

/// What lies in the working directory of the second run.
const INSIDE: &str = "hermitcrab-second-run";

/// In mounts of its own, which go with it.
pub const UNSHARE: [&str; 4] = ["unshare", "--mount", "--propagation", "private"];

/// What starts the rest as an ordinary user, who is root only there.
macro_rules! as_nobody {
    () => {
        "as() { setpriv --reuid=65534 --regid=65534 --clear-groups unshare --user \
         --map-root-user --mount --propagation private \"$@\"; }; \
         as test -x \"$4\" || exit 77; as \"$@\""
    };
}

/// The same by an ordinary user, who is root only there.
pub const UNPRIVILEGED: [&str; 4] = ["sh", "-c", as_nobody!(), "sh"];

/// By an ordinary user, to whom modes are no suggestion.
pub const ORDINARY: [&str; 4] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
];

macro_rules! as_root_of {
    ($maps:literal) => {
        concat!(
            "chown 1000:1000 . && mkfifo -m 666 go || exit 77; \
             setpriv --reuid=1000 --regid=1000 --clear-groups test -x \"$4\" || exit 77; \
             setpriv --reuid=1000 --regid=1000 --clear-groups unshare --user \
               sh -c 'read -r _ < go && rm go && exec unshare --mount --propagation private \"$@\"' sh \"$@\" & \
             for _ in $(seq 500); do \
               [ \"$(readlink /proc/$!/ns/user)\" = \"$(readlink /proc/self/ns/user)\" ] || break; sleep 0.01; \
             done; \
             for map in uid_map gid_map; do \
               printf '",
            $maps,
            "' > /proc/$!/$map || { kill $!; exit 77; }; \
             done; \
             echo > go; wait $!"
        )
    };
}

/// Root of a container without root: a user namespace of many ids, its root user 1000 of
/// the machine, who gets the directory it all happens in. Nothing there is the machine's
/// root's, and no file system of the machine is the namespace's.
pub const ROOTLESS: [&str; 4] = [
    "sh",
    "-c",
    as_root_of!("0 1000 1\\n1 100000 65536\\n"),
    "sh",
];

/// The same with no id but root's.
pub const ROOTLESS_ALONE: [&str; 4] = ["sh", "-c", as_root_of!("0 1000 1\\n"), "sh"];

/// By an ordinary user for whom there is /dev/fuse, which is root's alone where
/// nothing has made it anybody's.
pub const UNPRIVILEGED_WITH_FUSE: [&str; 8] = [
    "unshare",
    "--mount",
    "--propagation",
    "private",
    "sh",
    "-c",
    concat!(
        "mknod -m 666 fuse c 10 229 && mount --bind fuse /dev/fuse || exit 77; ",
        as_nobody!()
    ),
    "sh",
];

/// Which of the two runs this is.
pub enum Run {
    /// Everything was done by the second.
    Outer,
    Inner,
}

/// Runs the test `name` once more, started by a shell that has run `arrange` in
/// the directory the second run begins in, and what begins a command in
/// `starting`, if anything. Nothing, where that cannot be done.
pub fn twice(name: &str, starter: &[&str], arrange: &str, starting: &str) -> Option<Run> {
    if Path::new(INSIDE).exists() {
        return Some(Run::Inner);
    }
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can arrange what the kernel is to refuse");
        return None;
    }
    let place = tempfile::tempdir().unwrap();
    // Sandboxes of root are nobody's outside.
    let is_another = [
        &UNPRIVILEGED[..],
        &ORDINARY,
        &UNPRIVILEGED_WITH_FUSE,
        &ROOTLESS,
        &ROOTLESS_ALONE,
    ];
    let mode = if is_another.contains(&starter) {
        0o777
    } else {
        0o755
    };
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    let own = std::fs::read_link("/proc/self/exe").unwrap();
    let script = format!(
        "{{ {arrange}\n}} || exit 77; mkdir -p \"${{TMPDIR:-/tmp}}\"; : > {INSIDE} && exec {starting} \"$0\" --exact {name} --nocapture"
    );
    let told = Bare::new(starter[0])
        .args(&starter[1..])
        .args(["sh", "-c", &script])
        .arg(own)
        .current_dir(place.path())
        .output();
    let told = match told {
        Ok(told) if told.status.code() != Some(77) => told,
        other => {
            println!("SKIPPED: it cannot be arranged here: {other:?}");
            return None;
        }
    };
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(
        told.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&told.stderr)
    );
    // What could not be tried there was not tried; and what was found is told.
    let told = ["SKIPPED", "ORDINARY"];
    text.lines()
        .filter(|line| told.iter().any(|mark| line.starts_with(mark)))
        .for_each(|line| println!("{line}"));
    Some(Run::Outer)
}

/// A disk that really is full soon: in memory, of two megabytes. Runs the test called `name`
/// again where it is mounted; `None` where there is nothing more to do here.
pub fn small_disk(name: &str) -> Option<PathBuf> {
    let arrange = "mkdir small && mount -t tmpfs -o size=2m none small";
    match twice(name, &UNSHARE, arrange, "") {
        Some(Run::Inner) => Some(std::fs::canonicalize("small").unwrap()),
        _ => None,
    }
}
