//! How the programs and tests of this package are linked, and of those that name this file.
//!
//! A program that may be loaded anywhere is told where by its loader, which writes each address
//! the program holds, at every start. One that is built for tests holds a quarter of a million:
//! seven hundred pages written before `main`, longer than many a command takes, and the program
//! is started again for every sandbox in a world and for every test. So what is built without
//! optimisation has one fixed place. What is installed keeps being loaded anywhere.

#![allow(
    clippy::disallowed_methods,
    reason = "cargo tells a build script everything in its environment"
)]

fn main() {
    // Without a line like this the script would run again after each change.
    println!("cargo::rerun-if-changed=Cargo.toml");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|told| told == value);
    // Elsewhere the linker is another one, or a program is of another kind.
    if is("PROFILE", "debug")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
    {
        println!("cargo::rustc-link-arg=-no-pie");
    }
}
