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


# What imports for the usual worlds take of the interpreter's own heap.
ROOM = 24 << 20
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
    for number in range(len(made)):
        made[number] = bytes(size)
    return made[:: ARENA // LARGEST // 2]


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
    for start in found:
        madvise(start, HUGE, MADV_COLLAPSE)


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
