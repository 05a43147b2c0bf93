//! Words for a person, on streams that may be closed.
//!
//! The standard library's macros panic where nobody reads any more, as in
//! `hermitcrab config | head`. That reader has seen what they wanted, and what
//! is being done must come to its end, so in this package and in the oracle
//! macros of the same names go here instead. What else keeps words from being
//! shown, such as a full disk, is said on the standard error.

use std::{
    fmt,
    io::{self, ErrorKind, Write as _},
    os::fd::{AsFd as _, BorrowedFd},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use rustix::fs::FileType;

use crate::{cancel::Cancel, exit};

/// Whether something could not be printed, and not because nobody reads it any more.
static IS_LOST: AtomicBool = AtomicBool::new(false);

/// To the standard output.
pub fn out(words: fmt::Arguments<'_>) {
    note(&io::stdout().lock().write_fmt(words));
}

/// Says that something could not be written to the standard output, if that is no matter of
/// who reads it.
pub fn note(written: &io::Result<()>) {
    // Of many lines that cannot be written the first says so.
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
        && !IS_LOST.swap(true, Ordering::Relaxed)
    {
        err(format_args!(
            "hermitcrab: cannot write the output: {error}\n"
        ));
    }
}

/// What a run ends with that would end with this: what was printed is part of what it did,
/// and whoever reads a file that lacks some of it is told by the code.
#[must_use]
pub fn code(code: u8) -> u8 {
    note(&io::stdout().lock().flush());
    match code {
        exit::OK if IS_LOST.load(Ordering::Relaxed) => exit::ENVIRONMENT,
        code => code,
    }
}

/// To the standard error.
pub fn err(words: fmt::Arguments<'_>) {
    // There is nowhere left to tell that this failed.
    let _ = io::stderr().lock().write_fmt(words);
}

/// How long a slow reader is waited for.
const READ_WITHIN: Duration = Duration::from_secs(2);
/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Waits a while until whoever reads a pipe has what was printed: it may lead to a
/// terminal, and is to be there before what is said there next.
pub fn until_read(cancel: &Cancel) {
    let mut left = READ_WITHIN;
    let is_full = |fd: BorrowedFd<'_>| {
        rustix::fs::fstat(fd).is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::Fifo
                && rustix::io::ioctl_fionread(fd).is_ok_and(|bytes| bytes > 0)
        })
    };
    while (is_full(io::stdout().as_fd()) || is_full(io::stderr().as_fd())) && !cancel.is_thrown() {
        let Some(less) = left.checked_sub(LOOK_EVERY) else {
            return;
        };
        left = less;
        std::thread::sleep(LOOK_EVERY);
    }
}

/// As the standard one, without its panic.
macro_rules! println {
    () => { $crate::printing::out(format_args!("\n")) };
    ($($words:tt)*) => {
        $crate::printing::out(format_args!("{}\n", format_args!($($words)*)))
    };
}

/// As the standard one, without its panic.
macro_rules! eprintln {
    () => { $crate::printing::err(format_args!("\n")) };
    ($($words:tt)*) => {
        $crate::printing::err(format_args!("{}\n", format_args!($($words)*)))
    };
}

/// As the standard one, without its panic.
macro_rules! print {
    ($($words:tt)*) => { $crate::printing::out(format_args!($($words)*)) };
}

/// As the standard one, without its panic.
macro_rules! eprint {
    ($($words:tt)*) => { $crate::printing::err(format_args!($($words)*)) };
}
