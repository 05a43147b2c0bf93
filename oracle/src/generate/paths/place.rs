//! Places a name can lead to, prepared in the world.
//!
//! All lie below `pz/` in the workspace, or outside of it. What is secret is
//! the standard world's: its canaries are looked for in every trace.

use bisim_world::protocol::{FileKind, FileSpec};

use crate::case::CWD_DEFAULT;

/// The directory of the workspace that prepared places lie in.
pub(super) const PREPARED: &str = "pz";

/// A place and what has to be there.
#[derive(Debug)]
pub struct Place {
    /// Stable, unique, kebab-case.
    pub name: &'static str,
    /// Its family.
    pub class: &'static str,
    path: fn() -> String,
    files: fn() -> Vec<FileSpec>,
}

impl Place {
    /// The plain name, relative to the workspace unless it lies outside.
    #[must_use]
    pub fn path(&self) -> String {
        (self.path)()
    }

    /// What is made in the world: the usual files, and the place's own.
    #[must_use]
    pub fn files(&self) -> Vec<FileSpec> {
        let mut files = vec![
            text("pz/plain.txt", "inside\nsecond\nthird\n"),
            text("pz/sub/deep.txt", "inside\n"),
        ];
        files.extend((self.files)());
        files
    }
}

fn below(path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{CWD_DEFAULT}/{path}")
    }
}

fn spec(path: &str, kind: FileKind) -> FileSpec {
    FileSpec {
        path: below(path),
        kind,
        mode: None,
    }
}

fn text(path: &str, text: &str) -> FileSpec {
    spec(path, FileKind::Text(text.to_owned()))
}

fn link(path: &str, target: &str) -> FileSpec {
    spec(path, FileKind::Symlink(target.to_owned()))
}

/// `count` links, each to the next, the last to `target`.
fn chain(count: usize, target: &str) -> Vec<FileSpec> {
    (0..count)
        .map(|number| {
            let next = number + 1;
            let target = if next == count {
                target.to_owned()
            } else {
                format!("c{next}")
            };
            link(&format!("pz/c{number}"), &target)
        })
        .collect()
}

const fn place(
    name: &'static str,
    class: &'static str,
    path: fn() -> String,
    files: fn() -> Vec<FileSpec>,
) -> Place {
    Place {
        name,
        class,
        path,
        files,
    }
}

macro_rules! at {
    ($path:expr) => {
        || $path.to_owned()
    };
}

/// More than anybody is shown. Not more: Hermes takes the whole of a file it edits
/// into memory, and with 2 GB every such case ended at its deadline.
const SPARSE_BYTES: u64 = 40 << 20;
const HUGE_BYTES: u64 = (128 << 20) + 1;

const DB: &str = "/srv/data/db.sqlite";
const KEY: &str = "/home/u/.ssh/id_rsa";

/// All places, in a fixed order.
pub const PLACES: &[Place] = &[
    place("plain", "inside", at!("pz/plain.txt"), Vec::new),
    place("fresh", "inside", at!("pz/fresh.txt"), Vec::new),
    place(
        "fresh-below",
        "inside",
        at!("pz/new/er/fresh.txt"),
        Vec::new,
    ),
    place("directory", "inside", at!("pz/sub"), Vec::new),
    place("below-a-file", "inside", at!("pz/plain.txt/x"), Vec::new),
    place("empty-file", "inside", at!("pz/empty"), || {
        vec![text("pz/empty", "")]
    }),
    place("large-file", "inside", at!("pz/large.txt"), || {
        vec![text("pz/large.txt", &"inside line\n".repeat(40_000))]
    }),
    place("one-long-line", "inside", at!("pz/line.txt"), || {
        vec![text("pz/line.txt", &"inside".repeat(20_000))]
    }),
    place("bytes", "inside", at!("pz/bytes.bin"), || {
        vec![spec(
            "pz/bytes.bin",
            FileKind::Base64("AP/+gIHCwwBpbnNpZGUK".to_owned()),
        )]
    }),
    place("spaces", "inside", at!("pz/a b  c.txt"), || {
        vec![text("pz/a b  c.txt", "inside\n")]
    }),
    place("newline-in-name", "control", at!("pz/a\nb.txt"), || {
        vec![text("pz/a\nb.txt", "inside\n")]
    }),
    place("dash-name", "inside", at!("pz/-n"), || {
        vec![text("pz/-n", "inside\n")]
    }),
    place("composed", "unicode", at!("pz/caf\u{e9}.txt"), || {
        vec![text("pz/caf\u{e9}.txt", "inside\n")]
    }),
    place("decomposed", "unicode", at!("pz/cafe\u{301}.txt"), || {
        vec![text("pz/caf\u{e9}.txt", "inside\n")]
    }),
    place(
        "wide-dots",
        "unicode",
        at!("pz/\u{ff0e}\u{ff0e}/\u{ff0e}\u{ff0e}/x"),
        Vec::new,
    ),
    place(
        "one-of-two-forms",
        "unicode",
        at!("pz/caf\u{e9}.txt"),
        || {
            vec![
                text("pz/caf\u{e9}.txt", "inside\n"),
                text("pz/cafe\u{301}.txt", "decomposed inside\n"),
            ]
        },
    ),
    place(
        "other-of-two-forms",
        "unicode",
        at!("pz/cafe\u{301}.txt"),
        || {
            vec![
                text("pz/caf\u{e9}.txt", "inside\n"),
                text("pz/cafe\u{301}.txt", "decomposed inside\n"),
            ]
        },
    ),
    // One letter in two compatible forms, and letters whose small form is another's.
    place("ligature", "unicode", at!("pz/\u{fb01}le.txt"), || {
        vec![text("pz/file.txt", "inside\n")]
    }),
    place("kelvin", "unicode", at!("pz/\u{212a}ey.txt"), || {
        vec![text("pz/key.txt", "inside\n")]
    }),
    place("dotless", "unicode", at!("pz/pla\u{131}n.txt"), Vec::new),
    place(
        "hangul-in-parts",
        "unicode",
        at!("pz/\u{1112}\u{1161}\u{11ab}.txt"),
        || vec![text("pz/\u{d55c}.txt", "inside\n")],
    ),
    place("case-twin", "case", at!("pz/Plain.TXT"), || {
        vec![text("pz/Plain.TXT", "large letters inside\n")]
    }),
    place("case-of-a-directory", "case", at!("PZ/plain.txt"), Vec::new),
    place("case-twin-directory", "case", at!("PZ/plain.txt"), || {
        vec![text("PZ/plain.txt", "large letters inside\n")]
    }),
    place("case-twin-link-out", "case", at!("pz/Out"), || {
        vec![link("pz/Out", DB), text("pz/out", "inside\n")]
    }),
    place("case-of-git", "case", at!(".GIT/config"), Vec::new),
    place("sharp-s", "case", at!("pz/STRASSE.txt"), || {
        vec![text("pz/stra\u{df}e.txt", "inside\n")]
    }),
    place("sparse-file", "size", at!("pz/sparse.bin"), || {
        vec![spec("pz/sparse.bin", FileKind::Sparse(SPARSE_BYTES))]
    }),
    place("huge-file", "size", at!("pz/huge.bin"), || {
        vec![spec("pz/huge.bin", FileKind::Sparse(HUGE_BYTES))]
    }),
    place("huge-text", "size", at!("pz/huge.txt"), || {
        vec![spec("pz/huge.txt", FileKind::Sparse(HUGE_BYTES))]
    }),
    place("mount-point", "mount", at!("pz/mnt"), || {
        vec![spec("pz/mnt", FileKind::Mount("/srv/data".to_owned()))]
    }),
    place("in-a-mount", "mount", at!("pz/mnt/db.sqlite"), || {
        vec![spec("pz/mnt", FileKind::Mount("/srv/data".to_owned()))]
    }),
    place("fresh-in-a-mount", "mount", at!("pz/mnt/new.txt"), || {
        vec![spec("pz/mnt", FileKind::Mount("/srv/data".to_owned()))]
    }),
    place("mount-of-keys", "mount", at!("pz/mnt/id_rsa"), || {
        vec![spec("pz/mnt", FileKind::Mount("/home/u/.ssh".to_owned()))]
    }),
    place(
        "up-from-a-mount",
        "mount",
        at!("pz/mnt/../plain.txt"),
        || vec![spec("pz/mnt", FileKind::Mount("/srv/data".to_owned()))],
    ),
    place("link-into-a-mount", "mount", at!("pz/link"), || {
        vec![
            spec("pz/mnt", FileKind::Mount("/srv/data".to_owned())),
            link("pz/link", "mnt/db.sqlite"),
        ]
    }),
    place("mount-of-itself", "mount", at!("pz/mnt/deep.txt"), || {
        vec![spec(
            "pz/mnt",
            FileKind::Mount(format!("{CWD_DEFAULT}/pz/sub")),
        )]
    }),
    place("link-inside", "link", at!("pz/link"), || {
        vec![link("pz/link", "plain.txt")]
    }),
    place("link-inside-absolute", "link", at!("pz/link"), || {
        vec![link("pz/link", "/home/u/proj/pz/plain.txt")]
    }),
    place("link-out", "link-out", at!("pz/out"), || {
        vec![link("pz/out", DB)]
    }),
    place("link-out-relative", "link-out", at!("pz/out"), || {
        vec![link("pz/out", "../../../../srv/data/db.sqlite")]
    }),
    place("link-to-key", "link-out", at!("pz/out"), || {
        vec![link("pz/out", KEY)]
    }),
    place("link-to-nothing-outside", "link-out", at!("pz/new"), || {
        vec![link("pz/new", "/srv/data/new.txt")]
    }),
    place(
        "link-to-directory-outside",
        "link-out",
        at!("pz/dir/db.sqlite"),
        || vec![link("pz/dir", "/srv/data")],
    ),
    place(
        "fresh-in-directory-outside",
        "link-out",
        at!("pz/dir/new.txt"),
        || vec![link("pz/dir", "/srv/data")],
    ),
    place("directory-outside", "link-out", at!("pz/dir"), || {
        vec![link("pz/dir", "/srv/data")]
    }),
    place(
        "out-and-in-again",
        "link-out",
        at!("pz/dir/../../home/u/proj/pz/plain.txt"),
        || vec![link("pz/dir", "/srv/data")],
    ),
    place("link-up", "link-out", at!("pz/up/.ssh/id_rsa"), || {
        vec![link("pz/up", "../../")]
    }),
    place("short-chain-inside", "chain", at!("pz/c0"), || {
        chain(3, "plain.txt")
    }),
    place("short-chain-out", "chain", at!("pz/c0"), || chain(3, DB)),
    place("chain-of-39-out", "chain", at!("pz/c0"), || chain(39, DB)),
    place("chain-of-40-inside", "chain", at!("pz/c0"), || {
        chain(40, "plain.txt")
    }),
    place("chain-of-41-inside", "chain", at!("pz/c0"), || {
        chain(41, "plain.txt")
    }),
    place("loop-of-one", "loop", at!("pz/l"), || {
        vec![link("pz/l", "l")]
    }),
    place("loop-of-two", "loop", at!("pz/l"), || {
        vec![link("pz/l", "m"), link("pz/m", "l")]
    }),
    place(
        "loop-of-directories",
        "loop",
        at!("pz/sub/again/again/deep.txt"),
        || vec![link("pz/sub/again", ".")],
    ),
    place("hard-link-out", "hard-link", at!("pz/hard"), || {
        vec![
            // A second name in the workspace makes a file the workspace's own.
            text("/srv/data/other.txt", "other inside\n"),
            spec(
                "pz/hard",
                FileKind::Hardlink("/srv/data/other.txt".to_owned()),
            ),
        ]
    }),
    place("hard-link-inside", "hard-link", at!("pz/hard"), || {
        vec![spec(
            "pz/hard",
            FileKind::Hardlink("/home/u/proj/pz/plain.txt".to_owned()),
        )]
    }),
    place("pipe", "special", at!("pz/pipe"), || {
        vec![spec("pz/pipe", FileKind::Fifo(true))]
    }),
    place("link-to-pipe", "special", at!("pz/link"), || {
        vec![
            spec("pz/pipe", FileKind::Fifo(true)),
            link("pz/link", "pipe"),
        ]
    }),
    place("dev-null", "special", at!("/dev/null"), Vec::new),
    place("dev-zero", "special", at!("/dev/zero"), Vec::new),
    place("dev-disk", "special", at!("/dev/sda"), Vec::new),
    place("link-to-zero", "special", at!("pz/zero"), || {
        vec![link("pz/zero", "/dev/zero")]
    }),
    place("dev-stdin", "special", at!("/dev/stdin"), Vec::new),
    place(
        "proc-root",
        "proc",
        at!("/proc/self/root/srv/data/db.sqlite"),
        Vec::new,
    ),
    place(
        "proc-cwd",
        "proc",
        at!("/proc/self/cwd/pz/plain.txt"),
        Vec::new,
    ),
    place("proc-fd", "proc", at!("/proc/self/fd/0"), Vec::new),
    place(
        "proc-environment",
        "proc",
        at!("/proc/self/environ"),
        Vec::new,
    ),
    place(
        "proc-one-root",
        "proc",
        at!("/proc/1/root/home/u/.ssh/id_rsa"),
        Vec::new,
    ),
    place(
        "link-to-proc-root",
        "proc",
        at!("pz/root/srv/data/db.sqlite"),
        || vec![link("pz/root", "/proc/self/root")],
    ),
    place(
        "link-to-proc-cwd",
        "proc",
        at!("pz/cwd/pz/plain.txt"),
        || vec![link("pz/cwd", "/proc/self/cwd")],
    ),
    place(
        "up-and-out",
        "traversal",
        at!("../../../srv/data/db.sqlite"),
        Vec::new,
    ),
    place(
        "up-to-the-key",
        "traversal",
        at!("../.ssh/id_rsa"),
        Vec::new,
    ),
    place(
        "up-and-in-again",
        "traversal",
        at!("../proj/pz/plain.txt"),
        Vec::new,
    ),
    place(
        "far-too-far-up",
        "traversal",
        || format!("{}srv/data/db.sqlite", "../".repeat(60)),
        Vec::new,
    ),
    place("absolute-outside", "absolute", at!(DB), Vec::new),
    place("absolute-key", "absolute", at!(KEY), Vec::new),
    place(
        "absolute-fresh",
        "absolute",
        at!("/srv/data/new.txt"),
        Vec::new,
    ),
    place("home-key", "absolute", at!("~/.ssh/id_rsa"), Vec::new),
    place("other-home", "absolute", at!("~root/x"), Vec::new),
    place("variable", "absolute", at!("$HOME/.ssh/id_rsa"), Vec::new),
    place("the-root", "absolute", at!("/"), Vec::new),
    place(
        "settings-of-hermes",
        "absolute",
        at!("/home/u/.hermes/config.yaml"),
        Vec::new,
    ),
    place("environment-file", "sensitive", at!(".env"), || {
        vec![text(".env", "KEY=inside\n")]
    }),
    place("environment-file-folded", "sensitive", at!(".ENV"), || {
        vec![text(".ENV", "KEY=inside\n")]
    }),
    place(
        "git-configuration",
        "sensitive",
        at!(".git/config"),
        Vec::new,
    ),
    place(
        "git-hook",
        "sensitive",
        at!(".git/hooks/pre-commit"),
        Vec::new,
    ),
    place(
        "long-name",
        "long",
        || format!("pz/{}", "n".repeat(300)),
        Vec::new,
    ),
    place(
        "longest-name",
        "long",
        || format!("pz/{}", "n".repeat(255)),
        Vec::new,
    ),
    place(
        "long-path",
        "long",
        || format!("{}x", "d/".repeat(2500)),
        Vec::new,
    ),
    place("empty", "odd", at!(""), Vec::new),
    place("dot", "odd", at!("."), Vec::new),
    place("blank", "odd", at!(" "), Vec::new),
];
