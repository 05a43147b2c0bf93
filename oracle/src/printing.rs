//! The agent's macros for words on streams that may be closed, here, too: a
//! reader that goes away must not end a run and lose what it has found.

pub use hermitcrab::printing::{err, out};

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
