//! The system call filter: a table of what is refused, and the program made of it.
//!
//! The table denies what an unprivileged command has no use for and what
//! reaches around the namespaces. It is a second line: nearly every call in it
//! already needs a capability the command does not have. For the rest (vsock,
//! netlink, terminals, keyrings, io_uring) it is the only one.
//!
//! It must never be installed in part: it is one program, and either all of it
//! holds or the sandbox is not built.

mod emit;
mod table;
pub(crate) mod watch;

#[cfg(test)]
mod machine;
#[cfg(test)]
mod source;
#[cfg(test)]
mod tests;

use std::io;

use seccompiler::sock_filter;

use self::table::{Action, Own, When};
pub(crate) use self::table::{Ids, Sockets};

/// One refused call, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedCall {
    /// Its name.
    pub name: &'static str,
    /// Its number on this architecture.
    pub number: i64,
    /// For which arguments, in words; empty for all.
    pub when: String,
    /// `kill`, `refuse` or `absent`.
    pub action: &'static str,
    /// Why.
    pub reason: &'static str,
}

/// Everything the filter refuses to a command without network, in the order of
/// the table.
pub fn refused_calls() -> impl Iterator<Item = RefusedCall> {
    table::rows(Sockets::Local).map(|entry| RefusedCall {
        name: entry.name.trim_start_matches("SYS_"),
        number: entry.call,
        when: words(entry.when),
        action: match entry.action {
            Action::Kill => "kill",
            Action::Refuse => "refuse",
            Action::Absent => "absent",
        },
        reason: entry.reason,
    })
}

/// Puts the filter of a command without network on the calling thread, for
/// good: to measure what that costs, or to live under it.
///
/// # Errors
/// The kernel takes no filter.
pub fn filter_this_thread() -> io::Result<()> {
    filter_for_later()()
}

/// The same in two steps: what puts the filter on whichever thread calls it.
pub fn filter_for_later() -> impl Fn() -> io::Result<()> {
    let filter = Filter::build(&FilterSpec {
        sockets: Sockets::Local,
        ids: Ids {
            user: rustix::process::getuid().as_raw(),
            group: rustix::process::getgid().as_raw(),
        },
    });
    move || filter.install()
}

fn words(when: When) -> String {
    match when {
        When::Always => String::new(),
        When::AnyBit(argument, bits) => format!("argument {argument} has a bit of {bits:#x}"),
        When::Equals(argument, value) => format!("argument {argument} is {value:#x}"),
        When::MaskedEquals(argument, mask, value) => {
            format!("argument {argument} and {mask:#o} is {value:#o}")
        }
        When::NoneOf(argument, values) => {
            let values: Vec<_> = values.iter().map(|value| format!("{value:#x}")).collect();
            format!("argument {argument} is not {}", values.join(" or "))
        }
        When::NotOwn(argument, Own::User) => format!("argument {argument} is not the own user"),
        When::NotOwn(argument, Own::Group) => format!("argument {argument} is not the own group"),
    }
}

/// What a filter depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilterSpec {
    /// Which sockets the command may make.
    pub sockets: Sockets,
    /// Whom it runs as.
    pub ids: Ids,
}

/// The compiled filter.
pub(crate) struct Filter {
    program: Vec<sock_filter>,
}

impl Filter {
    /// Compiles the table; cheap, and the same for the same specification.
    pub(crate) fn build(spec: &FilterSpec) -> Self {
        Self {
            program: emit::program(table::rows(spec.sockets), spec.ids),
        }
    }

    /// Installs the filter on the calling process, for good.
    pub(crate) fn install(&self) -> io::Result<()> {
        seccompiler::apply_filter(&self.program).map_err(io::Error::other)
    }
}
