# Renames in a view and beside it, in a file system where the kernel does all of it.
# Whatever differs is printed.
import ctypes, errno, os, sys

libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, NOREPLACE, EXCHANGE = -100, 1, 2
RENAMEAT2 = {'x86_64': 316, 'aarch64': 276}[os.uname().machine]
# Beside the view nobody but the kernel is to answer: the word in the upper half of the
# flags by which the sandbox's own calls pass.
UNHEARD = 0x72656E61 << 32
is_heard = True


def renameat2(a, b, flags, dirs=(AT_FDCWD, AT_FDCWD)):
    word = ctypes.c_ulong(flags if is_heard else flags | UNHEARD)
    names = os.fsencode(a), os.fsencode(b)
    if libc.syscall(RENAMEAT2, dirs[0], names[0], dirs[1], names[1], word) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def rename(a, b, src_dir_fd=AT_FDCWD, dst_dir_fd=AT_FDCWD):
    if not is_heard:
        renameat2(a, b, 0, (src_dir_fd, dst_dir_fd))
    elif src_dir_fd == dst_dir_fd == AT_FDCWD:
        os.rename(a, b)
    else:
        os.rename(a, b, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)


def by_descriptors():
    deep = os.open('deep', os.O_RDONLY)
    here = os.open('.', os.O_PATH)
    rename('d', 'e', src_dir_fd=here, dst_dir_fd=deep)
    os.close(deep)
    os.close(here)


def swapped():
    rename('d', 't')
    rename('full', 'd')
    rename('t', 'full')


def there_and_back():
    rename('d', 'e')
    rename('e', 'd')


def name_taken_again():
    rename('d', 'e')
    os.mkdir('d')
    open('d/new', 'w').write('new\n')


def changed_before():
    open('d/sub/made', 'w').write('made\n')
    os.mkdir('d/sub/own')
    open('d/sub/own/f', 'w').write('f\n')
    for name in ('one', 'sub/one-too', 'sub/deeper/one-as-well'):
        os.unlink('d/' + name)
    rename('d/sub/deeper', 'd/sub/other')
    rename('d', 'e')


def while_open():
    os.chdir('d/sub')
    file = open('two', 'a')
    os.chdir('../..')
    rename('d', 'e')
    file.write('more\n')
    file.close()


def closed_parent():
    os.chmod('deep', 0o555)
    try:
        rename('d', 'deep/e')
    finally:
        os.chmod('deep', 0o755)


def closed_itself():
    os.chmod('d/sub', 0o555)
    os.chmod('d', 0o300)
    rename('d', 'e')
    os.chmod('e', 0o700)


def from_closed():
    os.chmod('deep', 0o555)
    try:
        rename('deep/er', 'e')
    finally:
        os.chmod('deep', 0o755)


def exchanged_twice():
    renameat2('d', 'full', EXCHANGE)
    renameat2('d', 'full', EXCHANGE)


def exchanged_when_changed():
    open('d/sub/made', 'w').write('made\n')
    os.unlink('full/five')
    renameat2('full', 'd', EXCHANGE)


def exchanged_with_closed():
    os.chmod('deep', 0o555)
    try:
        renameat2('d', 'deep/er', EXCHANGE)
    finally:
        os.chmod('deep', 0o755)


def through_descriptors():
    deep = os.open('deep', os.O_RDONLY)
    here = os.open('.', os.O_PATH)
    rename(f'/proc/self/fd/{here}/d', f'/dev/fd/{deep}/e')
    os.close(deep)
    os.close(here)


CASES = [
    lambda: rename('d', 'e'),
    lambda: rename('d', 'deep/er/e'),
    lambda: rename('deep/er', 'up'),
    lambda: rename('d/', 'e/'),
    lambda: rename('.//d', 'deep/../e'),
    lambda: rename(os.path.abspath('d'), os.path.abspath('e')),
    lambda: rename(os.path.abspath('d'), 'e'),
    lambda: rename('to-deep/er', 'to-deep/e'),
    lambda: rename('d', 'empty'),
    lambda: rename('d', 'empty/'),
    lambda: rename('d', 'd'),
    lambda: rename('d', 'full'),
    lambda: rename('d', 'file'),
    lambda: rename('d', 'd/sub/e'),
    lambda: rename('deep/er', 'deep'),
    lambda: rename('d', 'none/e'),
    lambda: rename('d', 'file/e'),
    lambda: rename('d', 'to-nothing'),
    lambda: rename('d', 'to-nothing/'),
    lambda: rename('none', 'e'),
    lambda: rename('d/.', 'e'),
    lambda: rename('d', '.'),
    lambda: rename('d', ''),
    lambda: rename('', 'e'),
    lambda: rename('d/sub/..', 'e'),
    lambda: rename('to-deep', 'e'),
    lambda: rename('to-deep/', 'e'),
    lambda: rename('to-deep/', 'e/'),
    lambda: rename('to-deep//', 'empty'),
    lambda: rename('file', 'e'),
    lambda: rename('file', 'd'),
    lambda: rename('file', 'file/'),
    lambda: rename('d', 'x' * 300),
    lambda: rename('d', 'x/' * 3000),
    lambda: renameat2('d', 'e', NOREPLACE),
    lambda: renameat2('d', 'empty', NOREPLACE),
    lambda: renameat2('file', 'e', NOREPLACE),
    lambda: renameat2('file', 'd/sub/two', EXCHANGE),
    lambda: renameat2('d', 'full', EXCHANGE),
    lambda: renameat2('d', 'deep/er', EXCHANGE),
    lambda: renameat2('deep/er/', 'full', EXCHANGE),
    lambda: renameat2('d', 'file', EXCHANGE),
    lambda: renameat2('d', 'file/', EXCHANGE),
    lambda: renameat2('file/', 'd', EXCHANGE),
    lambda: renameat2('d', 'to-deep/', EXCHANGE),
    lambda: renameat2('to-deep/', 'd/', EXCHANGE),
    lambda: renameat2('file', 'deep/er', EXCHANGE),
    lambda: renameat2('to-nothing', 'd', EXCHANGE),
    lambda: renameat2('d', 'd', EXCHANGE),
    lambda: renameat2('d', 'd/sub', EXCHANGE),
    lambda: renameat2('d/sub', 'd', EXCHANGE),
    lambda: renameat2('d', 'none', EXCHANGE),
    lambda: renameat2('none', 'd', EXCHANGE),
    lambda: renameat2('d', 'full', EXCHANGE | NOREPLACE),
    exchanged_twice,
    exchanged_when_changed,
    exchanged_with_closed,
    lambda: rename('/proc/self/cwd/d', '/proc/self/cwd/e'),
    lambda: rename('/proc/thread-self/cwd/deep/../d', 'deep/er/e'),
    lambda: rename('d', '/proc/self/cwd'),
    through_descriptors,
    lambda: renameat2('d', 'e', 64),
    lambda: renameat2('d', 'e', 0, (9999, AT_FDCWD)),
    by_descriptors,
    swapped,
    there_and_back,
    name_taken_again,
    changed_before,
    while_open,
    closed_parent,
    closed_itself,
    from_closed,
]


def seen(root):
    found = []
    for base, dirs, files in os.walk(root):
        dirs.sort()
        for name in sorted(dirs + files):
            path = os.path.join(base, name)
            at = os.lstat(path)
            is_dir = os.path.isdir(path) and not os.path.islink(path)
            link = os.readlink(path) if os.path.islink(path) else None
            held = None
            if os.path.isfile(path) and not link:
                held = open(path, 'rb').read()
            try:
                marks = sorted((n, os.getxattr(path, n)) for n in os.listxattr(path, follow_symlinks=False)) if not link else []
            except OSError:
                marks = []
            # What was not touched has its time of long ago.
            time = at.st_mtime_ns if at.st_mtime < 1e9 else 'now'
            links = 0 if is_dir else at.st_nlink
            found.append((os.path.relpath(path, root), oct(at.st_mode), links, time, link, held, marks))
    return found


def came(case):
    try:
        case()
        return 'done'
    except OSError as error:
        return errno.errorcode[error.errno]


if len(sys.argv) == 1:
    print(len(CASES))
    sys.exit()
view, beside = sys.argv[1:]
for number, case in enumerate(CASES):
    results = []
    for root in (view, beside):
        is_heard = root == view
        os.chdir(f'{root}/{number}')
        result = came(case)
        results.append((result, seen(f'{root}/{number}')))
        os.chdir('/')
    if results[0] != results[1]:
        print(number, results[0][0], results[1][0])
        for one, other in zip(results[0][1], results[1][1]):
            if one != other:
                print('   in the view', one)
                print('   elsewhere  ', other)
        a, b = ({e[0] for e in r[1]} for r in results)
        print('   only in the view', a - b, 'only elsewhere', b - a)
