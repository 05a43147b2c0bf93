//! System calls of x86-64: where one stands, and those from before paths were given with a
//! directory, which later processors never had.
use nix::libc as c;
use nix::libc::user_regs_struct;

/// The call that opens a path without a directory.
pub(super) const OPEN: Option<i64> = Some(c::SYS_open);

/// A call's number and its arguments.
pub(super) const fn call(registers: &user_regs_struct) -> (i64, [u64; 5]) {
    (
        // The result's place is overwritten at the entry.
        registers.orig_rax.cast_signed(),
        [
            registers.rdi,
            registers.rsi,
            registers.rdx,
            registers.r10,
            registers.r8,
        ],
    )
}

/// Calls of its own that change files.
pub(super) const ALWAYS: [i64; 13] = [
    c::SYS_creat,
    c::SYS_mkdir,
    c::SYS_mknod,
    c::SYS_rmdir,
    c::SYS_unlink,
    c::SYS_rename,
    c::SYS_link,
    c::SYS_symlink,
    c::SYS_chmod,
    c::SYS_chown,
    c::SYS_lchown,
    c::SYS_utimes,
    c::SYS_futimesat,
];

/// Which arguments of a call of its own are paths.
pub(super) const fn places(number: i64) -> &'static [usize] {
    match number {
        c::SYS_open
        | c::SYS_creat
        | c::SYS_stat
        | c::SYS_lstat
        | c::SYS_access
        | c::SYS_mkdir
        | c::SYS_rmdir
        | c::SYS_unlink
        | c::SYS_readlink
        | c::SYS_chmod
        | c::SYS_chown
        | c::SYS_lchown
        | c::SYS_mknod
        | c::SYS_utime
        | c::SYS_utimes => &[0],
        c::SYS_futimesat | c::SYS_symlink => &[1],
        c::SYS_rename | c::SYS_link => &[0, 1],
        _ => &[],
    }
}
