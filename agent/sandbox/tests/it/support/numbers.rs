//! The numbers of system calls in scripts that make them by number.
//!
//! Why: Perl and Python know no names of system calls, and each architecture numbers them
//! in its own way. A script names them as libc does, `SYS_mount`, and is given the numbers
//! of this one.

use nix::libc;

macro_rules! named {
    ($($call:ident)*) => { &[$((stringify!($call), libc::$call)),*] };
}

const EVERYWHERE: &[(&str, libc::c_long)] = named! {
    SYS_acct SYS_add_key SYS_bpf SYS_chroot SYS_clock_settime SYS_clone SYS_clone3
    SYS_delete_module SYS_exit_group SYS_fanotify_init SYS_fcntl SYS_finit_module SYS_fsopen
    SYS_ftruncate SYS_getpid SYS_init_module SYS_inotify_init1 SYS_io_setup
    SYS_io_uring_setup SYS_kcmp SYS_kexec_load SYS_keyctl SYS_memfd_secret SYS_mknodat
    SYS_mmap SYS_mount SYS_mount_setattr SYS_move_pages SYS_mq_open SYS_name_to_handle_at
    SYS_open_by_handle_at SYS_open_tree SYS_perf_event_open SYS_personality
    SYS_pidfd_getfd SYS_pidfd_open SYS_pivot_root SYS_process_vm_readv SYS_ptrace SYS_reboot
    SYS_rt_sigprocmask SYS_rt_sigqueueinfo SYS_sethostname SYS_setns SYS_setsid SYS_setuid SYS_setxattr
    SYS_swapon SYS_syslog SYS_umount2 SYS_uname SYS_unshare SYS_userfaultfd
};

#[cfg(target_arch = "x86_64")]
const HERE_ALONE: &[(&str, libc::c_long)] = named! {
    SYS_iopl SYS_mknod SYS_modify_ldt
};
/// No call has this number; a script makes them only where `IS_X86`.
#[cfg(not(target_arch = "x86_64"))]
const HERE_ALONE: &[(&str, libc::c_long)] =
    &[("SYS_iopl", -1), ("SYS_mknod", -1), ("SYS_modify_ldt", -1)];

/// The script with the numbers of this architecture, and 1 or 0 for `IS_X86`.
pub fn numbered(script: &str) -> String {
    let mut calls: Vec<_> = EVERYWHERE.iter().chain(HERE_ALONE).collect();
    // One name begins like another.
    calls.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    let is_x86 = u8::from(cfg!(target_arch = "x86_64")).to_string();
    let named = script.replace("IS_X86", &is_x86);
    let numbered = calls.into_iter().fold(named, |script, (name, number)| {
        script.replace(name, &number.to_string())
    });
    let left = numbered.find("SYS_").and_then(|at| numbered.get(at..));
    assert_eq!(left.map(|left| format!("{left:.30}")), None);
    numbered
}
