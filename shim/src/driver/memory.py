"""Lays the zygote's memory out so that forking it costs less.

A fork copies one entry for each page, and the end of a process takes each one back.
With what was imported on huge pages both are one entry for two megabytes. A page that a
world writes to is copied; pieces that lie about free between others would have it write
to a page for each, so they are taken, and what a world allocates lies together. It changes
where bytes lie and nothing else, and a kernel or C library that cannot do it leaves all as
it was.
"""

HUGE = 2 << 20
# From the kernel's headers; the call is the only one that needs no setting of the machine.
MADV_COLLAPSE = 25
TRIES = 3


# What imports for the usual worlds take of the interpreter's own heap.
ROOM = 26 << 20
# The largest object of that heap, so that few are made.
LARGEST = 512
# The interpreter asks for this much at once and gives it back when nothing is left in it.
ARENA = 1 << 20


def make_room():
    """Have the interpreter ask for its heap at once, before anything is imported.

    It would ask bit by bit, and each library that is imported in between lies between two
    bits: half of them then fill no huge page. One object in each bit keeps it.
    """
    size = LARGEST - bytes().__sizeof__()
    # A list that grew meanwhile would itself lie in between.
    made = [None] * (ROOM // LARGEST)
    align()
    for number in range(len(made)):
        made[number] = bytes(size)
    return made[:: ARENA // LARGEST // 2]


def align():
    """Have what is mapped next end where a huge page does.

    The kernel maps one below the other. What is mapped here to fill the gap can neither be
    read nor written, so that it holds no memory; where it does not end up below the other,
    huge pages fit as they happen to.
    """
    import ctypes

    library = ctypes.CDLL(None)
    try:
        take, give = library.mmap, library.munmap
    except AttributeError:
        return
    take.restype = ctypes.c_void_p
    take.argtypes = (ctypes.c_void_p, ctypes.c_size_t) + (ctypes.c_int,) * 3 + (ctypes.c_long,)
    give.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    page, private_and_anonymous = 4096, 0x22
    probe = take(None, page, 0, private_and_anonymous, -1, 0)
    give(probe, page)
    gap = (probe + page) % HUGE
    if gap:
        take(None, gap, 0, private_and_anonymous, -1, 0)


def spans(maps):
    """The parts of private, anonymous, writable memory that fill whole huge pages."""
    for line in maps:
        place, rights, _offset, _device, _inode, *name = line.split()
        if rights != "rw-p" or name not in ([], ["[heap]"]):
            continue
        first, last = (int(end, 16) for end in place.split("-"))
        first = -(-first // HUGE) * HUGE
        for start in range(first, last - HUGE + 1, HUGE):
            yield start


def compact():
    """Move what is there onto huge pages, as far as the kernel does it."""
    import ctypes

    try:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            found = list(spans(maps))
        madvise = ctypes.CDLL(None).madvise
    except (OSError, AttributeError):
        return
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    # A page that the kernel has in hand just then keeps those around it from being moved.
    for _ in range(TRIES):
        found = [start for start in found if madvise(start, HUGE, MADV_COLLAPSE) != 0]


# From the kernel's headers.
READ, WRITE, EXECUTE = 1, 2, 4


def joints(maps):
    """Parts of libraries that could be one with the part beside them, and the rights of that.

    A library is mapped in five parts: what is only read before its code and after it, and
    what the loader has written and is only read since, before what is written to.
    """
    held = None
    for line in maps:
        place, rights, offset, device, inode, *_name = line.split()
        first, last = (int(end, 16) for end in place.split("-"))
        part = (first, last, rights, int(offset, 16), (device, inode))
        if held is not None:
            goes_on = held[1] == first and held[3] + held[1] - held[0] == part[3]
            goes_on = goes_on and held[4] == part[4] and inode != "0"
            both = (held[2], rights) if goes_on else None
            if both == ("r--p", "rw-p"):
                yield held[0], held[1] - held[0], READ | WRITE
            elif both == ("r--p", "r-xp"):
                yield held[0], held[1] - held[0], READ | EXECUTE
            elif both == ("r-xp", "r--p"):
                yield first, last - first, READ | EXECUTE
        held = part


def join():
    """Have the kernel keep two entries for each library where it keeps five: a fork copies
    them all, and an end takes each one back."""
    import ctypes

    try:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            found = list(joints(maps))
        protect = ctypes.CDLL(None).mprotect
    except (OSError, AttributeError):
        return
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for start, length, rights in found:
        # A machine that does not allow it keeps what it has.
        protect(start, length, rights)


# From the C library's header.
M_ARENA_MAX = -8


def share_heap():
    """Have all threads take from one heap.

    The C library makes one for each of the first threads, with a mapping of its own. A
    process that has worked for a while has them; a world would make them all anew.
    """
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(M_ARENA_MAX, 1)


# Larger pieces are mapped by themselves.
PIECES = [size << 10 for size in (64, 32, 16, 8, 4, 2)] + list(range(1032, 0, -16))
# More free pieces of one size than any import leaves.
PIECES_MAX = 100_000


def fill():
    """Take the free pieces of the C library's heap, so that the next ones come from its end."""
    import ctypes

    class Info(ctypes.Structure):
        _fields_ = [
            (name, ctypes.c_size_t)
            for name in (
                "arena",
                "ordblks",
                "smblks",
                "hblks",
                "hblkhd",
                "usmblks",
                "fsmblks",
                "uordblks",
                "fordblks",
                "keepcost",
            )
        ]

    library = ctypes.CDLL(None)
    try:
        info, trim, end = library.mallinfo2, library.malloc_trim, library.sbrk
        take, give = library.malloc, library.free
    except AttributeError:
        return
    info.restype, end.restype, take.restype = Info, ctypes.c_void_p, ctypes.c_void_p
    end.argtypes = (ctypes.c_ssize_t,)
    trim.argtypes = take.argtypes = (ctypes.c_size_t,)
    give.argtypes = (ctypes.c_void_p,)
    # Pages that hold nothing go back, so that they are copied nowhere.
    trim(0)
    # Where the last piece begins, which is all that is left and grows.
    last = end(0) - info().keepcost
    for size in PIECES:
        for _ in range(PIECES_MAX):
            place = take(size)
            if place is None or place >= last:
                give(place)
                break
