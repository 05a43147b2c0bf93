//! Small trees for path questions: `/fx` and `/ov`.
//!
//! `/fx` holds a root with links that stay inside, leave it, dangle and loop.
use super::Entry::{self, Dir, File, Link};

/// Paths and what is there, parents first.
pub(super) const ENTRIES: &[(&str, Entry)] = &[
    ("/fx/root/a/b", Dir(0o755)),
    ("/fx/root/skills/x", Dir(0o755)),
    ("/fx/root/empty", Dir(0o755)),
    ("/fx/outside/d", Dir(0o755)),
    ("/fx/rootless", Dir(0o755)),
    ("/fx/root/a/f.txt", File("x", 0o644)),
    ("/fx/root/a/b/g.txt", File("x", 0o644)),
    ("/fx/root/skills/x/SKILL.md", File("s", 0o644)),
    ("/fx/outside/secret.txt", File("s", 0o644)),
    ("/fx/outside/d/k", File("k", 0o644)),
    ("/fx/rootless/z", File("z", 0o644)),
    ("/fx/root/in", Link("a")),
    ("/fx/root/in_abs", Link("/fx/root/a")),
    ("/fx/root/out", Link("../outside")),
    ("/fx/root/out_abs", Link("/fx/outside")),
    ("/fx/root/out_file", Link("../outside/secret.txt")),
    ("/fx/root/dangling", Link("../outside/missing")),
    ("/fx/root/dangling_in", Link("a/missing")),
    ("/fx/root/loop", Link("loop")),
    ("/fx/root/chain", Link("in")),
    ("/fx/root/chain_out", Link("out")),
    ("/fx/root/a/up", Link("..")),
    ("/fx/root/a/upup", Link("../..")),
    ("/fx/root/proc", Link("/proc/self/root/fx/outside")),
    ("/fx/root/self", Link(".")),
    ("/fx/rootlink", Link("root")),
    ("/ov/d/e", Dir(0o755)),
    ("/ov/f", File("f", 0o644)),
    ("/ov/l", Link("d")),
    ("/ov/lf", Link("f")),
    ("/ov/up", Link("..")),
];
