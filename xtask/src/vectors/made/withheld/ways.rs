//! Ways to get at a file.
//!
//! `{t}` is the file, `{a}` the same as an absolute path, `{n}` its last name, `{w}` what
//! is withheld of it (itself or a directory it lies in), `{d}` the directory above that,
//! `{b}` the file as seen from there. What is copied or moved is read from where it went.

/// Commands that show a file if they reach it.
pub const COMMANDS: &[(&str, &str)] = &[
    ("cat", "cat {t}"),
    ("cat-absolute", "cat {a}"),
    ("input", "cat < {t}"),
    ("descriptor", "exec 5<{t}; cat <&5"),
    ("head", "head -n 1 {t}"),
    ("tail", "tail -n 3 {t}"),
    ("tac", "tac {t}"),
    ("sort", "sort {t}"),
    ("sed", "sed -n p {t}"),
    ("awk", "awk '{print}' {t}"),
    ("grep", "grep -h '' {t}"),
    ("grep-tree", "grep -rh '' {d}"),
    ("dd", "dd if={t} status=none"),
    (
        "read-loop",
        "while read -r line; do echo \"$line\"; done < {t}",
    ),
    ("substitution", "echo \"$(< {t})\""),
    ("mapfile", "mapfile -t lines < {t}; echo \"${lines[@]}\""),
    ("source", ". ./{t} 2>&1"),
    ("diff", "diff /dev/null {t}"),
    ("paste", "paste {t} {t}"),
    ("cd", "cd {d} && cat {b}"),
    ("dots", "cat ./src/../{t}"),
    ("find-exec", "find {w} -type f -exec cat {} +"),
    ("find-xargs", "find {d} -type f -print0 | xargs -0 cat"),
    ("proc-root", "cat /proc/self/root{a}"),
    ("proc-cwd", "cat /proc/self/cwd/{t}"),
    ("proc-thread", "cat /proc/thread-self/root{a}"),
    ("proc-shell", "cat /proc/$$/cwd/{t}"),
    ("proc-first", "cat /proc/1/root{a} 2> /dev/null || cat {t}"),
    (
        "directory-descriptor",
        "exec 3< {d}; cat /proc/self/fd/3/{b}",
    ),
    ("copy", "cp {t} out.txt; cat out.txt"),
    ("copy-tree", "cp -r {d} out; cat out/{b}"),
    ("copy-links", "cp -al {d} out; cat out/{b}"),
    ("install", "install -m 600 {t} out.txt; cat out.txt"),
    ("tar", "tar cf - {d} | tar xOf -"),
    ("tar-file", "tar cf all.tar {w}; tar xOf all.tar"),
    ("hard-link", "ln {t} out.txt && cat out.txt"),
    ("symbolic-link", "ln -s {t} out.txt; cat out.txt"),
    ("link-to-directory", "ln -s {d} out; cat out/{b}"),
    ("move", "mv {w} out && cat $(find out -type f)"),
    ("move-above", "mv {d} out && cat out/{b}"),
    ("move-and-back", "mv {d} out && cat out/{b}; mv out {d}"),
    ("exchange", "mv -T src {w}; cat {t} src/{n}"),
    ("archive-of-git", "git add -f {t} && git show :{t}"),
    ("hash-of-git", "git cat-file -p $(git hash-object -w {t})"),
    ("grep-of-git", "git grep -h --no-index -e . {d}"),
    (
        "diff-of-git",
        "git --no-pager diff --no-index /dev/null {t}",
    ),
    ("python", "python3 -c \"print(open('{t}').read())\""),
    (
        "python-descriptor",
        "python3 -c \"import os; d = os.open('{d}', os.O_RDONLY); print(os.read(os.open('{b}', os.O_RDONLY, dir_fd=d), 99))\"",
    ),
    (
        "python-path",
        "python3 -c \"import os; f = os.open('{t}', os.O_PATH); print(open('/proc/self/fd/%d' % f).read())\"",
    ),
    (
        "python-map",
        "python3 -c \"import mmap; print(mmap.mmap(open('{t}', 'rb').fileno(), 0, prot=mmap.PROT_READ)[:])\"",
    ),
    (
        "python-send",
        "python3 -c \"import shutil; shutil.copyfile('{t}', 'out.txt')\"; cat out.txt",
    ),
    (
        "python-rename",
        "python3 -c \"import os; os.rename('{d}', 'out')\"; cat out/{b}",
    ),
    (
        "python-walk",
        "python3 -c \"import glob; [print(open(f).read()) for f in glob.glob('{d}/**', recursive=True) if f.endswith('{n}')]\"",
    ),
    (
        "umount",
        "umount {w} 2> /dev/null; umount -l {w} 2> /dev/null; cat {t}",
    ),
    (
        "own-mounts",
        "unshare -rm sh -c 'umount {w}; cat {t}' || cat {t}",
    ),
    (
        "bind-above",
        "unshare -rm sh -c 'mount --bind {d} /tmp && cat /tmp/{b}' || cat {t}",
    ),
    (
        "bind-all",
        "unshare -rm sh -c 'mount --rbind . /tmp && umount /tmp/{w}; cat /tmp/{t}' || cat {t}",
    ),
    (
        "overlay",
        "unshare -rm sh -c 'mount -t overlay o -o lowerdir={d}:src /tmp && cat /tmp/{b}' || cat {t}",
    ),
    (
        "namespace-of-first",
        "nsenter -t 1 -m cat {a} 2> /dev/null || cat {t}",
    ),
    ("truncated", "truncate -s 40 {t}; cat {t}"),
    ("mode", "chmod -R u+rwX {w} 2> /dev/null; cat {t}"),
    ("overwritten", "cat {t} | tee {t}.copy; echo more >> {t}"),
    ("shell", "sh -c 'sh -c \"cat {t}\"'"),
    ("glob", "cat {d}/* {d}/*/* {d}/*/*/* 2> /dev/null"),
    ("child", "(cat {t}) & wait"),
    ("encoded", "eval \"$(printf 'cat %s' '{t}')\""),
    ("removed", "cat {t}; rm {t}"),
];

/// What is known of a withheld name is what is known of any other.
pub const NAMES: &[(&str, &str)] = &[
    ("listed", "ls {d}"),
    (
        "there",
        "[ -e {w} ] && echo there; test -e {w}x || echo not there",
    ),
    ("found", "find {d} -maxdepth 1 | sort"),
];

/// One call of a tool.
pub const TOOLS: &[(&str, &str, &str)] = &[
    ("read", "read_file", r#"{"path": "{t}"}"#),
    ("read-absolute", "read_file", r#"{"path": "{a}"}"#),
    ("read-dots", "read_file", r#"{"path": "src/../{t}"}"#),
    (
        "read-part",
        "read_file",
        r#"{"path": "{t}", "offset": 1, "limit": 1}"#,
    ),
    (
        "search-tree",
        "search_files",
        r#"{"pattern": ".", "path": "{d}"}"#,
    ),
    (
        "search-whole",
        "search_files",
        r#"{"pattern": ".", "path": "{w}"}"#,
    ),
    (
        "search-file",
        "search_files",
        r#"{"pattern": ".", "path": "{t}"}"#,
    ),
    (
        "search-names",
        "search_files",
        r#"{"pattern": "*", "target": "files", "path": "{d}"}"#,
    ),
    (
        "search-name",
        "search_files",
        r#"{"pattern": "{n}", "target": "files", "path": "{w}"}"#,
    ),
    (
        "search-context",
        "search_files",
        r#"{"pattern": "needle", "path": "{d}", "context": 2}"#,
    ),
    (
        "replace",
        "patch",
        r#"{"mode": "replace", "path": "{t}", "old_string": "needle", "new_string": "thread"}"#,
    ),
    (
        "v4a-update",
        "patch",
        r#"{"mode": "patch", "patch": "*** Begin Patch\n*** Update File: {t}\n@@\n-needle\n+thread\n*** End Patch"}"#,
    ),
    (
        "v4a-delete",
        "patch",
        r#"{"mode": "patch", "patch": "*** Begin Patch\n*** Delete File: {t}\n*** End Patch"}"#,
    ),
    (
        "v4a-second",
        "patch",
        r#"{"mode": "patch", "patch": "*** Begin Patch\n*** Update File: README\n@@\n-a project\n+the project\n*** Update File: {t}\n@@\n-needle\n+thread\n*** End Patch"}"#,
    ),
    (
        "write",
        "write_file",
        r#"{"path": "{t}", "content": "written over\n"}"#,
    ),
    (
        "code",
        "execute_code",
        r#"{"code": "print(open('{t}').read())"}"#,
    ),
    (
        "code-command",
        "execute_code",
        r#"{"code": "import subprocess\nprint(subprocess.run(['cat', '{t}'], capture_output=True, text=True).stdout)"}"#,
    ),
    (
        "code-tool",
        "execute_code",
        r#"{"code": "from hermes_tools import read_file\nprint(read_file('{t}'))"}"#,
    ),
    (
        "code-terminal",
        "execute_code",
        r#"{"code": "from hermes_tools import terminal\nprint(terminal('cat {t}'))"}"#,
    ),
    (
        "workdir",
        "terminal",
        r#"{"command": "cat {b}", "workdir": "/home/u/proj/{d}"}"#,
    ),
];

/// Several calls, one after the other; the last ones show what the first ones made.
pub const SEQUENCES: &[(&str, &[(&str, &str)])] = &[
    (
        "read-again",
        &[
            ("read_file", r#"{"path": "{t}"}"#),
            ("read_file", r#"{"path": "{t}", "offset": 1, "limit": 2}"#),
        ],
    ),
    (
        "read-later",
        &[
            ("read_file", r#"{"path": "README"}"#),
            ("read_file", r#"{"path": "{t}"}"#),
        ],
    ),
    (
        "command-later",
        &[
            ("terminal", r#"{"command": "echo first"}"#),
            ("terminal", r#"{"command": "cat {t}"}"#),
        ],
    ),
    (
        "change-later",
        &[
            ("write_file", r#"{"path": "new.txt", "content": "new\n"}"#),
            (
                "write_file",
                r#"{"path": "{t}", "content": "written over\n"}"#,
            ),
        ],
    ),
    (
        "read-through-a-link",
        &[
            ("terminal", r#"{"command": "ln -s {t} out.txt"}"#),
            ("read_file", r#"{"path": "out.txt"}"#),
        ],
    ),
    (
        "read-below-a-link",
        &[
            ("terminal", r#"{"command": "ln -s {d} out"}"#),
            ("read_file", r#"{"path": "out/{b}"}"#),
        ],
    ),
    (
        "search-below-a-link",
        &[
            ("terminal", r#"{"command": "ln -s {w} out"}"#),
            (
                "search_files",
                r#"{"pattern": "needle", "path": "out", "context": 1}"#,
            ),
        ],
    ),
    (
        "read-where-it-went",
        &[
            ("terminal", r#"{"command": "mv {d} out || true"}"#),
            ("read_file", r#"{"path": "out/{b}"}"#),
        ],
    ),
    (
        "read-the-copy",
        &[
            ("terminal", r#"{"command": "cp {t} out.txt; cat out.txt"}"#),
            ("read_file", r#"{"path": "out.txt"}"#),
        ],
    ),
    (
        "read-the-second-name",
        &[
            ("terminal", r#"{"command": "ln {t} out.txt; cat out.txt"}"#),
            ("read_file", r#"{"path": "out.txt"}"#),
        ],
    ),
    (
        "background",
        &[
            (
                "terminal",
                r#"{"command": "cat {t}", "background": true, "notify_on_complete": true}"#,
            ),
            (
                "process",
                r#"{"action": "wait", "session_id": {"$from": 1, "at": "/session_id"}}"#,
            ),
        ],
    ),
    (
        "background-of-a-background",
        &[
            (
                "terminal",
                r#"{"command": "sleep 0.2; sh -c 'cat {t}'; cp {t} out.txt", "background": true, "notify_on_complete": true}"#,
            ),
            (
                "process",
                r#"{"action": "wait", "session_id": {"$from": 1, "at": "/session_id"}}"#,
            ),
            ("terminal", r#"{"command": "cat out.txt"}"#),
        ],
    ),
    (
        "code-later",
        &[
            ("execute_code", r#"{"code": "print('first')"}"#),
            ("execute_code", r#"{"code": "print(open('{t}').read())"}"#),
        ],
    ),
];
