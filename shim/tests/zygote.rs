//! The parts of the driver that make the zygote cheap to fork, each by itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod common;

use common::python;

/// Runs lines of Python behind a part of the driver.
fn behind(source: &str, lines: &str) -> Option<String> {
    let Some(python) = python() else {
        println!("SKIPPED: no Hermes venv (run cargo bisim doctor once)");
        return None;
    };
    let output = std::process::Command::new(python)
        .args(["-I", "-c"])
        .arg(format!("{source}\n{lines}"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(String::from_utf8(output.stdout).unwrap())
}

fn memory(lines: &str) -> Option<String> {
    behind(include_str!("../src/driver/memory.py"), lines)
}

fn forking(lines: &str) -> Option<String> {
    behind(include_str!("../src/driver/forking.py"), lines)
}

#[test]
fn only_whole_huge_pages_of_private_writable_memory_are_moved() {
    let maps = "\
        200000-a00000 rw-p 00000000 00:00 0\n\
        c00000-dff000 rw-p 00000000 00:00 0\n\
        e01000-1400000 rw-p 00000000 00:00 0 [heap]\n\
        2000000-2400000 rw-p 00000000 08:01 7 /usr/lib/a.so\n\
        2800000-2c00000 r--p 00000000 00:00 0\n\
        3000000-3400000 rw-s 00000000 00:01 9 /dev/shm/a\n\
        4000000-4400000 rw-p 00000000 00:00 0 [stack]\n";
    let Some(found) = memory(&format!(
        "print([hex(place) for place in spans({maps:?}.splitlines())])"
    )) else {
        return;
    };
    assert_eq!(
        found.trim(),
        "['0x200000', '0x400000', '0x600000', '0x800000', '0x1000000', '0x1200000']"
    );
}

#[test]
fn parts_of_one_library_get_the_rights_of_the_part_beside_them() {
    let maps = "\
        1000-2000 r--p 00000000 08:01 7 /usr/lib/a.so\n\
        2000-5000 r-xp 00001000 08:01 7 /usr/lib/a.so\n\
        5000-6000 r--p 00004000 08:01 7 /usr/lib/a.so\n\
        6000-7000 r--p 00004000 08:01 7 /usr/lib/a.so\n\
        7000-8000 rw-p 00005000 08:01 7 /usr/lib/a.so\n\
        8000-9000 r--p 00006000 08:01 8 /usr/lib/b.so\n\
        9000-a000 r-xp 00007000 08:01 7 /usr/lib/a.so\n\
        b000-c000 r--p 00000000 00:00 0\n\
        c000-d000 rw-p 00001000 00:00 0\n\
        d000-e000 r--s 00000000 08:01 9 /usr/lib/c\n\
        e000-f000 rw-p 00001000 08:01 9 /usr/lib/c\n";
    let Some(found) = memory(&format!(
        "print([(hex(place), hex(length), rights) for place, length, rights in joints({maps:?}.splitlines())])"
    )) else {
        return;
    };
    assert_eq!(
        found.trim(),
        "[('0x1000', '0x1000', 5), ('0x5000', '0x1000', 5), ('0x6000', '0x1000', 3)]"
    );
}

#[test]
fn joined_libraries_work_and_take_fewer_entries() {
    let Some(told) = memory(
        "import decimal, json, sqlite3, ssl\n\
         entries = lambda: [line for line in open('/proc/self/maps') if '.so' in line]\n\
         before = len(entries())\n\
         join()\n\
         after = entries()\n\
         import bz2, zoneinfo\n\
         work = [decimal.Decimal(1) / 7, json.loads('[1]'), ssl.create_default_context(), bz2.compress(b'a' * 999)]\n\
         rows = sqlite3.connect(':memory:').execute('select 1 + 1').fetchall()\n\
         print(len(after) * 2 < before + 10, any('rwxp' in line for line in after), len(work), rows)",
    ) else {
        return;
    };
    assert_eq!(told.trim(), "True False 4 [(2,)]");
}

#[test]
fn moving_memory_changes_nothing_that_is_in_it() {
    let Some(told) = memory(
        "kept = [bytes([n % 251]) * 300 for n in range(60000)]\n\
         del kept[::2]\n\
         fill()\n\
         compact()\n\
         print(all(one == bytes([(2 * n + 1) % 251]) * 300 for n, one in enumerate(kept)))",
    ) else {
        return;
    };
    assert_eq!(told.trim(), "True");
}

#[test]
fn what_is_made_after_room_was_made_lies_in_it_whatever_is_mapped_meanwhile() {
    let Some(told) = memory(
        "import mmap\n\
         room = make_room()\n\
         maps = [line.split()[0].split('-') for line in open('/proc/self/maps')]\n\
         held = [(int(a, 16), int(b, 16)) for a, b in maps if int(a, 16) <= id(room[-1]) < int(b, 16)]\n\
         within = lambda one: held[0][0] <= id(one) < held[0][1]\n\
         between, made = [], []\n\
         for number in range(200):\n\
         \x20   between.append(mmap.mmap(-1, 1 << 14))\n\
         \x20   made += [bytes(size + number % 7) for size in range(20, 400)]\n\
         inside = sum(map(within, made))\n\
         print(all(map(within, room[2:])), held[0][1] - held[0][0] >= ROOM, inside > len(made) * 9 // 10)",
    ) else {
        return;
    };
    assert_eq!(told.trim(), "True True True");
}

#[test]
fn threads_take_from_the_heap_that_is_there() {
    let Some(told) = memory(
        "import ctypes, os, threading\n\
         share_heap()\n\
         take = ctypes.CDLL(None).malloc\n\
         take.restype, take.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)\n\
         places, gate = [], threading.Barrier(3)\n\
         def work():\n\
         \x20   gate.wait()\n\
         \x20   places.append(take(100))\n\
         \x20   gate.wait()\n\
         threads = [threading.Thread(target=work) for n in range(3)]\n\
         [thread.start() for thread in threads]\n\
         [thread.join() for thread in threads]\n\
         heap = [line.split()[0].split('-') for line in open('/proc/self/maps') if '[heap]' in line]\n\
         first, last = (int(end, 16) for end in heap[0])\n\
         print(all(first <= place < last for place in places))",
    ) else {
        return;
    };
    assert_eq!(told.trim(), "True");
}

#[test]
fn once_the_free_pieces_are_taken_new_ones_lie_together() {
    let Some(told) = memory(
        "import ctypes\n\
         take = ctypes.CDLL(None).malloc\n\
         take.restype = ctypes.c_void_p\n\
         take.argtypes = (ctypes.c_size_t,)\n\
         kept = [bytes(700) for n in range(20000)]\n\
         del kept[::2]\n\
         before = [take(700) for n in range(100)]\n\
         fill()\n\
         after = [take(700) for n in range(100)]\n\
         print(max(after) - min(after) < 3 * 100 * 700, min(after) > max(before))",
    ) else {
        return;
    };
    assert_eq!(told.trim(), "True True");
}

#[test]
fn a_fork_without_hooks_has_numbers_of_its_own_and_can_start_threads() {
    let Some(told) = forking(
        "import os\n\
         def forked():\n\
         \x20   ours, theirs = os.pipe()\n\
         \x20   check()\n\
         \x20   if fork() == 0:\n\
         \x20       born()\n\
         \x20       done = []\n\
         \x20       thread = threading.Thread(target=done.append, args=(1,))\n\
         \x20       thread.start()\n\
         \x20       thread.join()\n\
         \x20       own = threading.main_thread().native_id == threading.get_native_id() == os.getpid()\n\
         \x20       os.write(theirs, f'{random.random()} {own} {done}'.encode())\n\
         \x20       os._exit(0)\n\
         \x20   os.wait()\n\
         \x20   return os.read(ours, 200).decode().split()\n\
         first, second = forked(), forked()\n\
         print(first[1:], second[1:], len({first[0], second[0], str(random.random())}))",
    ) else {
        return;
    };
    assert_eq!(told.trim(), "['True', '[1]'] ['True', '[1]'] 3");
}

#[test]
fn a_process_with_a_second_thread_is_not_forked() {
    let Some(told) = forking(
        "held = threading.Lock()\n\
         held.acquire()\n\
         threading.Thread(target=held.acquire, daemon=True).start()\n\
         try:\n\
         \x20   check()\n\
         except RuntimeError as error:\n\
         \x20   print(error)",
    ) else {
        return;
    };
    assert_eq!(told.trim(), "2 threads: forking would be unsound");
}
