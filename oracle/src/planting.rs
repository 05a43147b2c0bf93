//! Faults by name: whether one can be planted, before anything is begun with it.

use hermitcrab::config::keys::nearest;
use hermitcrab_core::fault::Fault;

use crate::exit;

/// The fault of this name.
///
/// # Errors
/// There is none; which may be meant, and what lists them.
pub fn named(name: &str) -> Result<Fault, String> {
    Fault::parse(name).ok_or_else(|| {
        let meant = match nearest(name, Fault::ALL.iter().map(|fault| fault.name())) {
            Some(meant) => format!("did you mean `{meant}`? "),
            None => String::new(),
        };
        format!("no fault `{name}`; {meant}`bisim selftest --list` shows all")
    })
}

/// Whether this fault, if any, can be planted by this build for this command: an agent that
/// could not be started must not look like one that did nothing.
///
/// # Errors
/// The exit code, and why not.
pub fn possible(command: &str, name: Option<&str>) -> Result<(), (u8, String)> {
    let Some(name) = name else { return Ok(()) };
    named(name).map_err(|message| (exit::USAGE, message))?;
    if cfg!(feature = "planted-faults") {
        return Ok(());
    }
    Err((
        exit::ENVIRONMENT,
        format!(
            "this build has no faults to plant; `cargo run -p bisim --features planted-faults -- \
             {command} --fault {name} ...` has"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_that_cannot_be_planted_is_told_with_what_may_be_meant() {
        assert_eq!(possible("fuzz", None), Ok(()));
        let (code, said) = possible("fuzz", Some("forget-expri")).unwrap_err();
        assert_eq!(code, exit::USAGE);
        assert!(said.contains("did you mean `forget-expiry`?"), "{said}");
        let planted = possible("fuzz", Some("forget-expiry"));
        if cfg!(feature = "planted-faults") {
            assert_eq!(planted, Ok(()));
        } else {
            let (code, said) = planted.unwrap_err();
            assert_eq!(code, exit::ENVIRONMENT);
            assert!(said.contains("--features planted-faults -- fuzz"), "{said}");
        }
    }
}
