//! The tools a model is offered, in the names and shapes it knows.
//!
//! Each tool reads its arguments, says which effects it needs, and puts the
//! outcome into words. None of them has authority: files and commands are
//! reached through what the runtime hands in.

pub mod clarify;
pub mod cronjob;
pub mod delegate;
mod documents;
pub mod execute_code;
pub mod exit_note;
pub mod foreground;
pub mod lint;
pub mod memory;
pub mod mistyped;
pub mod patch;
pub mod process;
pub mod read_file;
pub mod search;
pub mod search_files;
pub mod skills;
pub mod terminal;
pub mod title;
pub mod todo;
pub mod unprepared;
pub mod write_file;
