"""What the Rust tests run in a real interpreter: EXTENSION CASE FOLDER VECTORS."""

import importlib.machinery
import importlib.util
import json
import os
import sys
import threading
import time
from pathlib import Path

loader = importlib.machinery.ExtensionFileLoader("hermitcrab_caps", sys.argv[1])
spec = importlib.util.spec_from_loader("hermitcrab_caps", loader)
caps = importlib.util.module_from_spec(spec)
loader.exec_module(caps)

HERE = Path(sys.argv[3])


def denied(code, use):
    """`use` is refused with this code."""
    try:
        got = use()
    except caps.Denied as refusal:
        assert refusal.code == code, f"{refusal.code} instead of {code}: {refusal}"
        assert isinstance(refusal, PermissionError) and refusal.errno == 13
        return
    raise AssertionError(f"not refused ({code}): {got!r}")


def raises(kind, use):
    try:
        got = use()
    except kind as error:
        assert not isinstance(error, caps.Denied), error
        return
    raise AssertionError(f"{kind.__name__} expected: {got!r}")


def workspace():
    """A directory with a note and, beside it, a secret."""
    root = HERE / "ws"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "note.txt").write_text("note")
    (HERE / "outside").mkdir()
    (HERE / "outside" / "note.txt").write_text("secret")
    return root


def swapped(root, target):
    """Puts a link in place of `docs`, at once."""
    os.symlink(target, root / "next")
    os.rename(root / "next", root / "docs")


def fixture():
    """The tree the recorded cases are about, below HERE."""
    fx = HERE / "fx"
    for folder in ["root/a/b", "root/skills/x", "root/empty", "outside/d", "rootless"]:
        (fx / folder).mkdir(parents=True)
    for file in [
        "root/a/f.txt", "root/a/b/g.txt", "root/skills/x/SKILL.md",
        "outside/secret.txt", "outside/d/k", "rootless/z",
    ]:
        (fx / file).write_text("kept outside" if file.startswith("outside") else "x")
    for link, target in {
        "root/in": "a", "root/in_abs": f"{fx}/root/a", "root/out": "../outside",
        "root/out_abs": f"{fx}/outside", "root/out_file": "../outside/secret.txt",
        "root/dangling": "../outside/missing", "root/dangling_in": "a/missing",
        "root/loop": "loop", "root/chain": "in", "root/chain_out": "out",
        "root/a/up": "..", "root/a/upup": "../..",
        "root/proc": f"/proc/self/root{fx}/outside", "root/self": ".", "rootlink": "root",
    }.items():
        os.symlink(target, fx / link)


def below_here(path):
    """A recorded path, seen from this test's own folder."""
    for top in ["//fx//", "/fx/", "/tmp/t/"]:
        if path.startswith(top):
            return f"{HERE}{path}"
    return f"{HERE}/fx" if path == "/fx" else path


def recorded_cases():
    fixture()
    cases = json.loads(Path(sys.argv[4]).read_text())["cases"]
    checked = opened = refused = 0
    for case in cases:
        probe = case["script"][0].get("probe", {})
        if probe.get("name") != "validate_within_dir":
            continue
        for file in case.get("world", {}).get("files", []):
            place = Path(below_here(file["path"]))
            place.parent.mkdir(parents=True, exist_ok=True)
            if file.get("dir"):
                place.mkdir(exist_ok=True)
            elif "symlink" in file:
                if not place.is_symlink():
                    place.symlink_to(below_here(file["symlink"]))
            else:
                place.write_text(file["text"])
        given = probe["input"]
        root = Path(below_here(given["root"]))
        path = Path(below_here(given["path"])) if "path" in given else root / below_here(given["rel"])
        if "loop" in str(given) and sys.version_info >= (3, 13):
            continue  # pathlib no longer objects to a loop, and the record is from before
        wanted = case["recorded"]["0.19.0"]["answer"]["decision"]
        answer = caps.validate_within_dir(path, root)
        got = "permit" if answer is None else "deny"
        assert got == wanted, f"{case['id']}: {got} instead of {wanted}: {answer}"
        assert answer is None or isinstance(answer, str)
        checked += 1
        # What is opened is never more than that, and what is a file opens.
        try:
            with caps.open_within_dir(path, root) as file:
                content = file.read()
            assert wanted == "permit", f"{case['id']} was opened"
            assert content == path.resolve().read_bytes()
            opened += 1
        except (OSError, RuntimeError) as error:
            secret = getattr(error, "code", None) == "sensitive-path"
            readable = wanted == "permit" and os.path.isfile(path.resolve())
            assert secret or not readable, f"{case['id']}: {error}"
            refused += 1
    assert checked >= 138 and opened >= 10 and refused >= 40, (checked, opened, refused)
    print(f"{checked} recorded answers held; of these {opened} opened, {refused} did not")


def swap_after_check():
    root = workspace()
    target = root / "docs" / "note.txt"
    cap = caps.DirCap(root)
    docs = cap.subdir("docs")
    assert caps.validate_within_dir(target, root) is None
    assert caps.open_within_dir(target, root).read() == b"note"
    assert cap.read("docs/note.txt") == b"note"
    # Now the directory becomes a link that leads out.
    os.rename(root / "docs", root / "old")
    swapped(root, HERE / "outside")
    # Who relies on the check made before reads the secret.
    assert target.read_text() == "secret"
    denied("outside-root", lambda: caps.open_within_dir(target, root))
    denied("outside-root", lambda: cap.read("docs/note.txt"))
    denied("outside-root", lambda: cap.open("docs/note.txt"))
    denied("outside-root", lambda: cap.stat("docs/note.txt"))
    denied("symlink-refused", lambda: cap.write("docs/note.txt", b"mine"))
    denied("symlink-refused", lambda: cap.remove("docs/note.txt"))
    assert (HERE / "outside" / "note.txt").read_text() == "secret"
    # A directory that is held is that directory, wherever it was moved.
    assert docs.read("note.txt") == b"note"
    print("the use held")


def held_path():
    """The lines of Hermes' own callers, with the path made another way."""
    root = workspace()
    target = caps.PathWithin(root, "docs/note.txt")
    assert caps.validate_within_dir(target, root) is None
    assert target.exists() and target.is_file() and not target.is_dir()
    assert (target.name, target.suffix, str(target)) == ("note.txt", ".txt", str(root / "docs/note.txt"))
    assert target.read_text() == "note" and target.read_bytes() == b"note"
    with target.open(encoding="utf-8") as file:
        assert file.read() == "note"
    made = caps.PathWithin(root) / "docs" / "made.txt"
    assert not made.exists()
    raises(FileNotFoundError, made.read_text)
    assert made.write_text("\u00e9") == 1 and made.write_bytes(b"two") == 3
    assert (root / "docs" / "made.txt").read_bytes() == b"two"
    # What would act by the name alone does not.
    raises(TypeError, lambda: open(target))
    raises(TypeError, lambda: os.stat(target))
    raises(ValueError, lambda: target.open("w"))
    # The answer is that of a plain path, and the use after a swap is not.
    for name in ["../outside/note.txt", "docs/../../outside/note.txt"]:
        outside = caps.PathWithin(root, name)
        assert caps.validate_within_dir(outside, root) == caps.validate_within_dir(root / name, root)
        assert caps.validate_within_dir(outside, root).startswith("Path escapes")
        denied("outside-root", outside.read_text)
    assert caps.validate_within_dir(target, root) is None
    os.rename(root / "docs", root / "old")
    swapped(root, HERE / "outside")
    assert (root / "docs" / "note.txt").read_text() == "secret"
    for use in [target.read_text, target.read_bytes, target.open, target.exists, lambda: target.write_text("x")]:
        denied("outside-root", use)
    assert (HERE / "outside" / "note.txt").read_text() == "secret"
    print("the path held")


def swap_race():
    root = workspace()
    target = root / "docs" / "note.txt"
    cap = caps.DirCap(root)
    os.rename(root / "docs", root / "old")
    os.symlink("old", root / "docs")
    end = threading.Event()

    def attack():
        places = ["old", "../outside"]
        while not end.is_set():
            swapped(root, places[0])
            places.reverse()

    attacker = threading.Thread(target=attack)
    attacker.start()
    seen = {}
    try:
        held = caps.PathWithin(root, "docs/note.txt")
        for use in [
            lambda: caps.open_within_dir(target, root).read(),
            lambda: cap.read("docs/note.txt"),
            lambda: held.read_bytes(),
        ]:
            for _ in range(400):
                try:
                    got = use()
                except OSError as error:
                    got = getattr(error, "code", type(error).__name__)
                assert got != b"secret", "the race was lost"
                seen[got] = seen.get(got, 0) + 1
    finally:
        end.set()
        attacker.join()
    print(f"held in 1200 tries: {seen}")


def operations():
    root = workspace()
    cap = caps.DirCap(root)
    cap.create("a.txt", b"one")
    cap.create(Path("mode"), b"", mode=0o600)
    raises(FileExistsError, lambda: cap.create("a.txt", b"two"))
    cap.write(b"a.txt", b"two")
    cap.append("a.txt", b" three")
    assert (root / "a.txt").read_bytes() == cap.read("a.txt") == b"two three"
    raises(FileNotFoundError, lambda: cap.write("none.txt", b""))
    raises(FileNotFoundError, lambda: cap.append("none.txt", b""))
    cap.mkdir("dir")
    cap.rename("a.txt", "dir/b.txt")
    raises(FileExistsError, lambda: cap.rename("dir/b.txt", "docs/note.txt"))
    raises(FileExistsError, lambda: cap.mkdir("dir"))
    raises(FileNotFoundError, lambda: cap.rename("none.txt", "other.txt"))
    raises(FileNotFoundError, lambda: cap.remove("none.txt"))
    assert not (root / "none.txt").exists() and (root / "docs/note.txt").read_bytes() == b"note"
    names = [(entry.name, entry.kind) for entry in cap.list()]
    assert names == [("dir", "dir"), ("docs", "dir"), ("mode", "file")], names
    stat = cap.stat("mode")
    assert (stat.kind, stat.size, stat.mode, stat.links) == ("file", 0, 0o600, 1)
    assert stat.modified_ns == os.stat(root / "mode").st_mtime_ns
    below = cap.subdir("dir")
    assert [entry.name for entry in below.list()] == ["b.txt"]
    below.remove("b.txt")
    assert below.list(".") == []
    with cap.open("docs/note.txt") as file:
        assert file.read() == b"note"
    raises(FileNotFoundError, lambda: cap.read("none.txt"))
    raises(FileNotFoundError, lambda: caps.DirCap(root / "none"))
    raises(OSError, lambda: cap.read("docs/note.txt", max_bytes=3))
    denied("path-escapes", lambda: cap.read("../outside/note.txt"))
    denied("path-escapes", lambda: below.read("../docs/note.txt"))
    denied("path-absolute", lambda: cap.read(str(root / "docs" / "note.txt")))
    denied("path-empty", lambda: cap.read(""))
    denied("path-nul", lambda: cap.read(b"a\0b"))
    denied("not-regular-file", lambda: cap.read("docs"))
    os.mkfifo(root / "pipe")
    denied("not-regular-file", lambda: cap.read("pipe"))
    (root / ".env").write_text("KEY=1")
    denied("sensitive-path", lambda: cap.read(".env"))
    odd = os.fsdecode(b"odd-\xff")
    cap.create(odd, b"odd")
    assert odd in [entry.name for entry in cap.list()] and cap.read(odd) == b"odd"
    print("every operation held")


def rights():
    root = workspace()
    reader = caps.DirCap(root, rights=["fs.read"])
    assert reader.read("docs/note.txt") == b"note"
    assert reader.stat("docs/note.txt").size == 4
    denied("no-cap", lambda: reader.list())
    denied("no-cap", lambda: reader.write("docs/note.txt", b""))
    denied("no-cap", lambda: reader.create("new", b""))
    denied("no-cap", lambda: reader.remove("docs/note.txt"))
    denied("amplifies", lambda: reader.grant(rights=["fs.modify"]))
    cap = caps.DirCap(root)
    docs = cap.grant(rights=["fs.read", "fs.list"], below="docs")
    (root / "top.txt").write_text("top")
    assert docs.read("docs/note.txt") == b"note"
    denied("no-cap", lambda: docs.read("top.txt"))
    denied("amplifies", lambda: docs.grant(rights=["fs.read"], below="."))
    assert docs.subdir("docs").read("note.txt") == b"note"
    assert cap.read("top.txt") == b"top"
    raises(ValueError, lambda: caps.DirCap(root, rights=["proc.exec"]))
    raises(ValueError, lambda: cap.grant(uses=0))
    raises(ValueError, lambda: cap.grant(seconds=float("nan")))
    raises(ValueError, lambda: cap.grant(seconds=-1))
    print("rights held")


def endings():
    root = workspace()
    cap = caps.DirCap(root)
    # Once.
    once = caps.Grant(cap, uses=1)
    assert isinstance(once, caps.DirCap) and once.state == "live"
    assert once.read("docs/note.txt") == b"note"
    denied("exhausted", lambda: once.read("docs/note.txt"))
    assert once.state == "exhausted"
    # A use that is refused is not counted; a rename is two.
    twice = cap.grant(uses=2)
    denied("path-escapes", lambda: twice.read("../outside/note.txt"))
    cap.create("x", b"")
    twice.rename("x", "y")
    denied("exhausted", lambda: twice.read("y"))
    # Until a deadline.
    brief, long = cap.grant(seconds=0.001), cap.grant(seconds=3600)
    parent = cap.grant(uses=1)
    child = parent.grant(seconds=0.001)
    time.sleep(0.05)
    denied("expired", lambda: brief.read("docs/note.txt"))
    assert long.read("docs/note.txt") == b"note"
    # Revoked comes before expired, and expired before exhausted.
    assert parent.read("docs/note.txt") == b"note"
    denied("expired", lambda: child.read("docs/note.txt"))
    assert caps.revoke(parent) == 2
    denied("revoked", lambda: child.read("docs/note.txt"))
    denied("revoked", lambda: parent.read("docs/note.txt"))
    # What a grant gave out ends with it, and its maker's own does not.
    given = long.grant()
    folder = long.subdir("docs")
    assert folder.read("note.txt") == b"note" and caps.revoke(long) == 2
    for ended in [long, given]:
        denied("revoked", lambda: ended.read("docs/note.txt"))
    denied("revoked", lambda: folder.read("note.txt"))
    denied("revoked", lambda: long.grant())
    assert caps.revoke(long) == 0 and long.state == "revoked"
    assert cap.read("docs/note.txt") == b"note"
    raises(TypeError, lambda: caps.revoke(cap))
    print("every ending held")


def many_grants():
    cap = caps.DirCap(workspace())
    for _ in range(1500):
        assert cap.grant(rights=["fs.read"], uses=1).read("docs/note.txt") == b"note"
    # One who held something else before holds nothing of it.
    reader = cap.grant(rights=["fs.read"])
    denied("no-cap", lambda: reader.list())
    held = [reader]
    try:
        while len(held) < 2000:
            held.append(cap.grant(uses=1))
    except caps.Denied as refusal:
        assert refusal.code == "limit-reached", refusal
    assert 1000 < len(held) < 1100, len(held)
    assert all(grant.state == "live" for grant in held)
    assert held[-1].read("docs/note.txt") == b"note" and held[-2].state == "live"
    held.clear()
    assert cap.grant().read("docs/note.txt") == b"note"
    print("held by grants that come and go")


def forked():
    cap = caps.DirCap(workspace())
    once = cap.grant(uses=1)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            denied("no-cap", lambda: once.read("docs/note.txt"))
            denied("no-cap", lambda: cap.read("docs/note.txt"))
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert once.read("docs/note.txt") == b"note"
    print("held in the other process")


globals()[sys.argv[2]]()
