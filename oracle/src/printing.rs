//! The agent's macros for words on streams that may be closed, here, too: a
//! reader that goes away must not end a run and lose what it has found. Where the
//! words are lost for another reason, no exit code may say that all is well.

use std::fmt;
use std::io::{ErrorKind, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use hermitcrab::screen::visible;

/// Whether words could not be written, other than to a reader that went away.
static IS_LOST: AtomicBool = AtomicBool::new(false);

/// To the standard output.
pub fn out(words: fmt::Arguments<'_>) {
    // Of many lines that cannot be written the first says so.
    if let Err(error) = std::io::stdout().lock().write_fmt(words)
        && error.kind() != ErrorKind::BrokenPipe
        && !IS_LOST.swap(true, Ordering::Relaxed)
    {
        err(format_args!("error: cannot write the output: {error}\n"));
    }
}

/// To the standard error. What is quoted there may be anybody's, a report of another machine or a
/// file of vectors, and draws nothing on the terminal.
pub fn err(words: fmt::Arguments<'_>) {
    hermitcrab::printing::err(format_args!("{}", visible(&words.to_string())));
}

/// What a program that came to this code ends with: output that was lost is no pass.
#[must_use]
pub fn code(code: u8) -> u8 {
    match std::io::stdout().lock().flush() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            IS_LOST.store(true, Ordering::Relaxed);
        }
        _ => {}
    }
    match code {
        crate::exit::CONFORM if IS_LOST.load(Ordering::Relaxed) => crate::exit::INTERNAL,
        code => code,
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
