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
    sync::atomic::{AtomicBool, Ordering},
};

/// To the standard output.
pub fn out(words: fmt::Arguments<'_>) {
    // Of many lines that cannot be written the first says so.
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    let written = io::stdout().lock().write_fmt(words);
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
        && !IS_TOLD.swap(true, Ordering::Relaxed)
    {
        err(format_args!("cannot write the output: {error}\n"));
    }
}

/// To the standard error.
pub fn err(words: fmt::Arguments<'_>) {
    // There is nowhere left to tell that this failed.
    let _ = io::stderr().lock().write_fmt(words);
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
