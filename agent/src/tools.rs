//! The tools a model is offered, in the names and shapes it knows.
//!
//! Each tool reads its arguments, says which effects it needs, and puts the
//! outcome into words. None of them has authority: files and commands are
//! reached through what the runtime hands in.

pub mod ansi;
pub mod args;
pub mod clarify;
pub mod cronjob;
pub mod delegate;
pub mod difflib;
mod documents;
pub mod evidence;
pub mod execute_code;
pub mod exit_note;
pub mod fence;
pub mod foreground;
pub mod fuzzy;
pub mod lint;
pub mod mcp;
pub mod memory;
pub mod mistyped;
pub mod output;
pub mod patch;
pub mod process;
pub mod project;
pub mod pytext;
pub mod read_file;
pub mod redact;
pub mod search;
pub mod search_files;
pub mod skills;
pub mod terminal;
pub mod title;
pub mod todo;
pub mod unprepared;
pub mod write_file;
