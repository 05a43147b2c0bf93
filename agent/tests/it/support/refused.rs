//! The program where the kernel refuses some system calls, as filters of engines of containers do
//! and older kernels.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

use super::home::{Home, Ran};

pub const EPERM: u32 = 1;
pub const ENOSYS: u32 = 38;

/// prlimit(2), getrlimit(2), setrlimit(2).
#[cfg(target_arch = "x86_64")]
pub const LIMITS: &[i64] = &[302, 97, 160];
#[cfg(not(target_arch = "x86_64"))]
pub const LIMITS: &[i64] = &[261, 163, 164];
/// unshare(2).
#[cfg(target_arch = "x86_64")]
pub const UNSHARE: &[i64] = &[272];
#[cfg(not(target_arch = "x86_64"))]
pub const UNSHARE: &[i64] = &[97];
/// clone3(2).
pub const CLONE3: &[i64] = &[435];
/// close_range(2).
pub const CLOSE_RANGE: &[i64] = &[436];
/// mount_setattr(2), which came with Linux 5.12.
pub const MOUNT_SETATTR: &[i64] = &[442];

/// The program where the kernel refuses these calls with this number.
pub fn without(calls: &[i64], errno: u32, home: &Home, arguments: &[&str]) -> Ran {
    let mut command = home.command(&home.project(), arguments);
    refused(calls, errno, &mut command)
}

/// A program where the kernel refuses these calls with this number.
pub fn refused(calls: &[i64], errno: u32, command: &mut Command) -> Ran {
    let rules: BTreeMap<i64, _> = calls.iter().map(|call| (*call, Vec::new())).collect();
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let filter: BpfProgram = filter.unwrap().try_into().unwrap();
    command.stdin(Stdio::piped());
    // A filter holds for its thread and for what that starts.
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            apply_filter(&filter).unwrap();
            ran(command)
        });
        thread.join().unwrap()
    })
}

/// What came of it.
pub fn ran(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
