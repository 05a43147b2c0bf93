//! The kinds of processors a machine can have.
//!
//! Why: what a filter of system calls forbids goes by numbers, and these differ. On a kind that
//! is not this machine's the test programs are cross-compiled, and what they need to run comes
//! from Debian's packages for it ([`super::foreign`]).

use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::cmd;
use crate::test::build::Target;

/// A kind of processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "lower")]
pub enum Processor {
    /// 64-bit Intel and AMD.
    #[value(name = "x86_64")]
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        })
    }
}

impl Processor {
    /// This machine's kind.
    pub const OWN: Self = if cfg!(target_arch = "aarch64") {
        Self::Aarch64
    } else {
        Self::X86_64
    };

    /// Whether this machine can run no program of that kind.
    pub fn is_foreign(self) -> bool {
        self != Self::OWN
    }

    /// Debian's word for it.
    pub const fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// The program that emulates it, and the package of Debian that has it.
    pub const fn emulator(self) -> (&'static str, &'static str) {
        match self {
            Self::X86_64 => ("qemu-system-x86_64", "qemu-system-x86"),
            Self::Aarch64 => ("qemu-system-aarch64", "qemu-system-arm"),
        }
    }

    /// What the emulator is told to build. All that a later processor adds makes kernels for ARM
    /// fault under QEMU 7.2, so that one is of a model.
    pub const fn hardware(self) -> &'static [&'static str] {
        match self {
            Self::X86_64 => &["-cpu", "max"],
            Self::Aarch64 => &["-machine", "virt,gic-version=3", "-cpu", "cortex-a72"],
        }
    }

    /// Where its kernel says what there is to say.
    pub const fn console(self) -> &'static str {
        match self {
            Self::X86_64 => "ttyS0",
            Self::Aarch64 => "ttyAMA0",
        }
    }

    /// What tests are compiled for; `None` where that is what is always built.
    pub fn target(self) -> Option<Target> {
        let (triple, linker) = match self {
            Self::X86_64 => ("x86_64-unknown-linux-gnu", "x86_64-linux-gnu-gcc"),
            Self::Aarch64 => ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu-gcc"),
        };
        self.is_foreign().then_some(Target { triple, linker })
    }

    /// Whether this machine can compile for it; says what to install.
    pub fn ensure_compiles(self) -> Result<()> {
        let Some(target) = self.target() else {
            return Ok(());
        };
        let debian = self.debian();
        ensure!(
            cmd::is_installed(target.linker),
            "missing: {}; install with `apt-get install gcc-{}-linux-gnu libc6-dev-{debian}-cross`",
            target.linker,
            self.to_string().replace('_', "-"),
        );
        ensure_library(target.triple)
    }
}

/// Whether Rust's own library is there for a target; says how it is installed.
pub fn ensure_library(triple: &str) -> Result<()> {
    let library = sysroot()?.join("lib/rustlib").join(triple).join("lib");
    ensure!(
        library.exists(),
        "Rust's library for {triple} is missing; install it with `rustup target add {triple}` here"
    );
    Ok(())
}

/// Where the compiler of this checkout has its libraries.
fn sysroot() -> Result<PathBuf> {
    let mut asked = Command::new("rustc");
    asked.args(["--print", "sysroot"]).current_dir(cmd::root());
    let said = cmd::output(&mut asked)?;
    let said = String::from_utf8(said).context("the compiler's directory is no text")?;
    Ok(PathBuf::from(said.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_always_built_is_for_this_machine_and_nothing_else_is() {
        assert!(Processor::OWN.target().is_none());
        let other = match Processor::OWN {
            Processor::X86_64 => Processor::Aarch64,
            Processor::Aarch64 => Processor::X86_64,
        };
        let target = other.target().unwrap();
        assert!(target.triple.starts_with(&other.to_string()));
        assert!(other.is_foreign());
    }

    #[test]
    fn a_processor_is_named_as_the_compiler_names_it() {
        for one in [Processor::X86_64, Processor::Aarch64] {
            let read = <Processor as clap::ValueEnum>::from_str(&one.to_string(), false);
            assert_eq!(read, Ok(one));
        }
    }
}
