//! `rename(2)` of directories that were there before, which an overlay alone refuses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::os::unix::fs::PermissionsExt as _;

use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::Withheld;
use hermitcrab_sandbox::layers::memory_holds_layers;
use hermitcrab_sandbox::spawn::{Ending, Finished, ViewMode};
use support::arranged::{Run, UNSHARE, twice};
use support::{Workspace, commit, text, tree};

/// What does the same in the view and beside it.
const CASES: &str = include_str!("renamed.py");

/// Whether directories of before can be renamed here. Older kernels know no way.
fn can_rename(finished: &Finished) -> bool {
    let why = finished
        .confined
        .missing
        .iter()
        .find(|why| why.starts_with("renames: "));
    if let Some(why) = why {
        println!("SKIPPED: {why}");
    }
    why.is_none()
}

fn python(script: &str) -> String {
    format!("exec python3 -c \"$(cat <<'E'\n{script}\nE\n)\"")
}

fn ended_well(finished: &Finished) {
    assert_eq!(finished.ending, Ending::Exited(0), "{}", text(finished));
}

/// A directory with a bit of everything, of long ago.
fn furnish(workspace: &Workspace, at: &str) {
    for (name, held) in [
        ("d/one", "one\n"),
        ("d/sub/two", "two\n"),
        ("d/sub/deeper/three", "three\n"),
        ("deep/er/four", "four\n"),
        ("full/five", "five\n"),
        ("file", "file\n"),
    ] {
        workspace.file(&format!("{at}/{name}"), held);
    }
    let path = |name: &str| workspace.path().join(at).join(name);
    let mode = |name: &str, mode| {
        std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for name in ["empty", "d/sub/void"] {
        std::fs::create_dir(path(name)).unwrap();
    }
    std::fs::hard_link(path("d/one"), path("d/sub/one-too")).unwrap();
    std::fs::hard_link(path("d/one"), path("d/sub/deeper/one-as-well")).unwrap();
    for (link, to) in [
        ("d/link", "sub/two"),
        ("to-deep", "deep"),
        ("to-nothing", "nothing"),
    ] {
        std::os::unix::fs::symlink(to, path(link)).unwrap();
    }
    mode("d/sub/two", 0o640);
    mode("d/sub/deeper", 0o711);
    let old = rustix::fs::Timespec {
        tv_sec: 981_173_106,
        tv_nsec: 7,
    };
    let old = rustix::fs::Timestamps {
        last_access: old,
        last_modification: old,
    };
    for name in [
        "d/one",
        "d/sub/two",
        "d/sub/deeper/three",
        "d/sub/void",
        "d/sub/deeper",
        "d/sub",
        "d",
    ] {
        rustix::fs::utimensat(
            rustix::fs::CWD,
            path(name),
            &old,
            rustix::fs::AtFlags::empty(),
        )
        .unwrap();
    }
}

fn a_rename_does_in_a_view_what_it_does_elsewhere() {
    let workspace = Workspace::new();
    workspace.file("renamed.py", CASES);
    let cases = workspace.run("python3 renamed.py");
    ended_well(&cases);
    if !can_rename(&cases) {
        return;
    }
    let cases: usize = text(&cases).trim().parse().unwrap();
    for number in 0..cases {
        furnish(&workspace, &number.to_string());
    }
    // The links among the cases' own files are kept by -a.
    let script =
        "mkdir /tmp/beside && cp -a [0-9]* /tmp/beside && exec python3 renamed.py $PWD /tmp/beside";
    let finished = workspace.run(script);
    ended_well(&finished);
    assert_eq!(text(&finished), "");
}

fn what_got_another_name_is_told_as_a_rename_and_happens() {
    let workspace = Workspace::new();
    furnish(&workspace, "a");
    let finished = workspace.run(&python("import os; os.chdir('a'); os.rename('d', 'e')"));
    if !can_rename(&finished) {
        return;
    }
    ended_well(&finished);
    let renames: Vec<_> = finished.changes[0]
        .renames()
        .iter()
        .map(|rename| format!("{} -> {}", rename.from, rename.to))
        .collect();
    assert_eq!(renames, ["a/d -> a/e"]);
    let before = tree(workspace.path());
    let done = commit(&finished, &workspace);
    assert!(done.failure.is_none(), "{:?}", done.failure);
    let moved = |line: &String| {
        let line = line.replace("a/d/", "a/e/");
        line.replace("a/d []", "a/e []")
    };
    let mut expected: Vec<_> = before.iter().map(moved).collect();
    expected.sort();
    let mut after = tree(workspace.path());
    after.sort();
    assert_eq!(after, expected);
}

fn what_cannot_be_moved_whole_stays_as_it_was() {
    let workspace = Workspace::new();
    furnish(&workspace, "a");
    let rules = Withheld {
        places: vec![RelPath::parse_dir(b"a/d/sub/deeper/three").unwrap()],
        names: Vec::new(),
    };
    let script = python(
        "import ctypes, errno, os
os.chdir('a')
libc = ctypes.CDLL(None, use_errno=True)
def seen():
    return [(b, sorted(d), sorted(f), os.stat(b).st_mode, os.stat(b).st_mtime_ns) for b, d, f in os.walk('.')][1:]
before = seen()
for target in ['e', 'deep/er/e', 'empty']:
    try:
        os.rename('d', target)
        raise SystemExit('renamed ' + target)
    except OSError as error:
        assert error.errno == errno.EXDEV, error
    assert [e[:4] for e in seen()] == [e[:4] for e in before], seen()
    assert [e[4] for e in seen() if e[0].startswith('./d/')] == [e[4] for e in before if e[0].startswith('./d/')]
# The one that could be moved is back as well.
for a, b in [(b'd', b'full'), (b'full', b'd')]:
    assert libc.renameat2(-100, a, -100, b, 2) != 0, a
    assert ctypes.get_errno() == errno.EXDEV, os.strerror(ctypes.get_errno())
    assert [e[:4] for e in seen()] == [e[:4] for e in before], seen()",
    );
    let mut command = workspace.command(&script);
    command.views[0].withheld = rules;
    let finished = support::run(&command).unwrap();
    if !can_rename(&finished) || finished.confined.copied.is_some() {
        // In a copy what is withheld is no mount of its own, and goes along.
        return;
    }
    ended_well(&finished);
    let left: Vec<_> = finished.changes[0].changes().iter().collect();
    // The empty one was made again.
    let only_times = left
        .iter()
        .all(|change| ["a", "a/empty", "a/deep/er"].contains(&change.path.to_string().as_str()));
    assert!(only_times, "{left:?}");
}

#[test]
fn what_finds_no_room_is_under_its_old_name() {
    if !memory_holds_layers() {
        println!("SKIPPED: this kernel's file systems in memory hold no layers");
        return;
    }
    let workspace = Workspace::new();
    workspace.file("d/small", "small\n");
    for name in ["d/sub/a", "d/sub/b", "d/sub/c"] {
        workspace.file(name, &"0123456789abcdef".repeat(1 << 15));
    }
    let script = python(
        "import errno, os
try:
    os.rename('d', 'e')
    raise SystemExit('renamed')
except OSError as error:
    assert error.errno == errno.ENOSPC, error
assert sorted(os.listdir('.')) == ['d'], os.listdir('.')
assert sorted(os.listdir('d')) == ['small', 'sub']
assert sorted(os.listdir('d/sub')) == ['a', 'b', 'c']
for name in 'abc':
    assert os.stat('d/sub/' + name).st_size == 1 << 19",
    );
    let mut command = workspace.command(&script);
    command.limits.view_bytes_max = 1 << 20;
    let finished = support::run(&command).unwrap();
    if !can_rename(&finished) {
        return;
    }
    ended_well(&finished);
    assert!(
        finished.changes[0].changes().is_empty(),
        "{:?}",
        finished.changes[0]
    );
}

/// Signals come while a directory is moved, several are moved at the same time, and files
/// beside them.
fn many_rename_at_once_and_are_signalled() {
    let workspace = Workspace::new();
    for number in 0..6 {
        for file in 0..20 {
            workspace.file(&format!("{number}/d/s/{file}"), "held\n");
        }
    }
    let script = python(
        "import os, signal
def busy(number):
    count = [0]
    signal.signal(signal.SIGALRM, lambda *_: count.__setitem__(0, count[0] + 1))
    signal.siginterrupt(signal.SIGALRM, False)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    for turn in range(15):
        # Its own layer has it after the first turn, unless something of before comes in.
        os.rename(f'{number}/d', f'{number}/e{turn}')
        open(f'{number}/file', 'w').close()
        os.rename(f'{number}/file', f'{number}/other')
        os.rename(f'{number}/e{turn}', f'{number}/d')
    assert len(os.listdir(f'{number}/d/s')) == 20
    os._exit(0)
children = []
for number in range(6):
    child = os.fork()
    if child == 0:
        try:
            busy(number)
        except BaseException as error:
            print(number, repr(error), flush=True)
        os._exit(1)
    children.append(child)
assert all(os.waitpid(child, 0)[1] == 0 for child in children)",
    );
    let finished = workspace.run(&script);
    if !can_rename(&finished) {
        return;
    }
    ended_well(&finished);
}

/// Whoever moves a directory lives behind a fence of its own, through which the command
/// sends no signals; before version 6 there is no such fence, and its end is an error.
fn git_is_given_a_second_name_only_where_it_is_known_by_the_same_number() {
    let workspace = Workspace::new();
    for name in ["one", "two", "three"] {
        workspace.file(&format!("d/{name}"), "old\n");
    }
    // Who asks is known by this name, and `ln` says what came of it.
    let script = "mkdir e && cp \"$(command -v ln)\" /tmp/git; \
        for file in one two; do \
          if /tmp/git d/$file e/$file 2> /tmp/why; then [ d/$file -ef e/$file ] && echo linked; \
          else [ ! -e e/$file ] && grep -q 'Invalid cross-device link' /tmp/why && echo refused; fi \
        done; \
        ln d/three e/three && cat e/three; \
        echo new > e/new && /tmp/git e/new d/new && [ e/new -ef d/new ] && cat d/new";
    let finished = workspace.run(script);
    if !can_rename(&finished) {
        return;
    }
    ended_well(&finished);
    let came = match finished.confined.copied {
        Some(_) => "linked\nlinked\n",
        None => "refused\nrefused\n",
    };
    assert_eq!(text(&finished), format!("{came}old\nnew\n"));
    // What was tried left nothing behind, and what was linked is a file like any other.
    let done = commit(&finished, &workspace);
    assert!(done.failure.is_none(), "{:?}", done.failure);
    let path = workspace.path();
    assert_eq!(
        std::fs::read_to_string(path.join("e/three")).unwrap(),
        "old\n"
    );
    assert_eq!(
        path.join("e/one").exists(),
        finished.confined.copied.is_some()
    );
}

fn who_moves_a_directory_is_out_of_reach_or_its_end_is_told() {
    let workspace = Workspace::new();
    for turn in 0..8 {
        for file in 0..60 {
            workspace.file(&format!("{turn}/d/s/{file}"), "held\n");
        }
    }
    let script = python(
        "import errno, os, signal
killer = os.fork()
if killer == 0:
    # Numbers are given one after another.
    while True:
        for number in range(os.getpid() + 1, os.getpid() + 30):
            try:
                os.kill(number, signal.SIGKILL)
            except OSError:
                pass
came = {}
for turn in range(8):
    try:
        os.rename(f'{turn}/d', f'{turn}/e')
        result = 'done'
    except OSError as error:
        assert error.errno in (errno.EIO, errno.EXDEV), error
        result = errno.errorcode[error.errno]
    came[result] = came.get(result, 0) + 1
    held = [file for _, _, files in os.walk(str(turn)) for file in files]
    assert sorted(held, key=int) == [str(n) for n in range(60)], held
os.kill(killer, signal.SIGKILL)
os.rename('0', 'still-answered')
print(sorted(came))",
    );
    let finished = workspace.run(&script);
    if !can_rename(&finished) || finished.confined.copied.is_some() {
        return;
    }
    ended_well(&finished);
    let told = text(&finished);
    if finished.confined.landlock_version >= 6 {
        assert_eq!(told, "['done']\n");
    } else {
        assert!(told.contains("EIO"), "nobody was killed: {told}");
    }
}

support::on_all_layers!(
    a_rename_does_in_a_view_what_it_does_elsewhere,
    what_got_another_name_is_told_as_a_rename_and_happens,
    what_cannot_be_moved_whole_stays_as_it_was,
    git_is_given_a_second_name_only_where_it_is_known_by_the_same_number,
    many_rename_at_once_and_are_signalled,
    who_moves_a_directory_is_out_of_reach_or_its_end_is_told,
);

/// Between two views, out of one, in one that is only read, of the system, and by who
/// cannot be looked into.
#[test]
fn nothing_is_renamed_that_the_command_could_not_rename() {
    let (workspace, other, shown) = (Workspace::new(), Workspace::new(), Workspace::new());
    for place in [&workspace, &other, &shown] {
        place.file("d/f", "f\n");
    }
    let script = python(
        "import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def refused(a, b, *errors):
    try:
        os.rename(a, b)
        raise SystemExit(f'{a} is {b}')
    except OSError as error:
        assert error.errno in errors, (a, b, error)
refused('d', '/other/e', errno.EXDEV)
refused('/other/d', 'e', errno.EXDEV)
refused('d', '/tmp/e', errno.EXDEV)
refused('d', '/shown/e', errno.EXDEV, errno.EROFS)
refused('/shown/d', 'e', errno.EXDEV, errno.EROFS)
refused('/shown/d', '/shown/e', errno.EROFS)
refused('/usr/share', '/usr/other', errno.EROFS, errno.EACCES)
refused('/other', '/elsewhere', errno.EBUSY, errno.EACCES, errno.EROFS, errno.EXDEV)
# Links of /proc to another process are that one's.
refused('/proc/1/cwd/d', 'e', errno.EACCES, errno.EXDEV)
for a, b in [(None, b'e'), (b'd', None), (ctypes.c_void_p(1), b'e'), (ctypes.c_void_p(2**64 - 8), b'e')]:
    assert libc.rename(a, b) != 0 and ctypes.get_errno() == errno.EFAULT, ctypes.get_errno()
# A path that ends with the memory that is there.
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
page = libc.mmap(None, 8192, 3, 0x22, -1, 0)
libc.munmap(ctypes.c_void_p(page + 4096), ctypes.c_size_t(4096))
path = b'./' * 40 + b'd\\0'
ctypes.memmove(page + 4096 - len(path), path, len(path))
assert libc.rename(ctypes.c_void_p(page + 4096 - len(path)), b'e') == 0, ctypes.get_errno()
os.rename('e', 'd')
ctypes.memset(page, ord('x'), 4096)
assert libc.rename(ctypes.c_void_p(page + 4000), b'e') != 0 and ctypes.get_errno() == errno.EFAULT
# Who is closed to all others is closed to whoever would move for it.
assert libc.prctl(4, 0, 0, 0, 0) == 0
refused('/other/d', '/other/e', errno.EXDEV)
open('/other/g', 'w').close()
os.rename('/other/g', '/other/h')",
    );
    let mut command = workspace.command(&script);
    for (place, at, mode) in [
        (&other, "/other", ViewMode::CopyOnWrite),
        (&shown, "/shown", ViewMode::ReadOnly),
    ] {
        command.views.push(support::view(&place.cap, at, mode));
    }
    let finished = support::run(&command).unwrap();
    if !can_rename(&finished) || finished.confined.copied.is_some() {
        return;
    }
    ended_well(&finished);
}

/// A program that has Landlock keep it from making and removing directories is kept from it,
/// and so is what it starts.
#[test]
fn who_closed_itself_in_has_nothing_moved_by_another() {
    let workspace = Workspace::new();
    for name in ["a/f", "b/f", "c/f"] {
        workspace.file(name, "f\n");
    }
    let script = python(
        "import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def came(a, b):
    try:
        os.rename(a, b)
        return 'done'
    except OSError as error:
        return errno.errorcode[error.errno]
print(came('a', 'a2'))
REMOVE_DIR, MAKE_DIR = 1 << 4, 1 << 7
rules = ctypes.c_uint64(REMOVE_DIR | MAKE_DIR)
fence = libc.syscall(444, ctypes.byref(rules), 8, 0)
if fence < 0:
    print('no fence')
    raise SystemExit
libc.prctl(38, 1, 0, 0, 0)
assert libc.syscall(446, fence, 0) == 0
print(came('b', 'b2'), came('b', 'a2/b'), flush=True)
if os.fork() == 0:
    print(came('c', 'c2'), flush=True)
    os._exit(0)
os.wait()
os.rename('a2/f', 'a2/g')",
    );
    let finished = workspace.run(&script);
    if !can_rename(&finished) {
        return;
    }
    ended_well(&finished);
    match text(&finished).as_str() {
        "done\nno fence\n" => println!("SKIPPED: this kernel has no Landlock"),
        told => assert_eq!(told, "done\nEACCES EACCES\nEACCES\n"),
    }
}

/// Where whoever started the agent listens for calls already, no other may.
#[test]
fn where_nobody_can_be_asked_directories_keep_their_names_and_that_is_told() {
    let listening = r#"python3 -c '
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(allow)))
libc.prctl(38, 1, 0, 0, 0)
number = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
listener = libc.syscall(number, 1, 8, program)
if listener < 0:
    sys.exit(77)
os.set_inheritable(listener, True)
os.execv(sys.argv[1], sys.argv[1:])
'"#;
    let name = "renamed::where_nobody_can_be_asked_directories_keep_their_names_and_that_is_told";
    let Some(Run::Inner) = twice(name, &UNSHARE, ":", listening) else {
        return;
    };
    let workspace = Workspace::new();
    workspace.file("d/f", "f\n");
    let script =
        "mkdir own && python3 -c \"import os; os.rename('own', 'new'); os.rename('d', 'e')\" 2>&1";
    let finished = workspace.run(script);
    // In a copy nobody need be asked.
    if finished.confined.copied.is_none() {
        let told = text(&finished);
        assert!(told.contains("Invalid cross-device link"), "{told}");
    }
    assert!(finished.confined.is_complete());
    let told = finished
        .confined
        .missing
        .iter()
        .any(|why| why.starts_with("renames: directories of before keep their names"));
    assert!(told, "{:?}", finished.confined.missing);
}
