//! A key out of the keyring of the desktop.
//!
//! The keyring is asked through `secret-tool`, the program libsecret has for
//! that: it speaks to GNOME's and KDE's alike, and asks the person to unlock
//! theirs. The key goes from its output into one header and nowhere else; in
//! particular never into a message.

use std::{
    io::Read as _,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use super::ModelError;
use crate::ambient;

/// How long a person may take to unlock it.
const UNLOCK_WITHIN: Duration = Duration::from_secs(120);
/// How often it is looked whether they have.
const TICK: Duration = Duration::from_millis(20);
/// The longest key.
const KEY_BYTES_MAX: u64 = 16 << 10;

/// The key of this name.
///
/// # Errors
/// There is no keyring, or no such key in it.
pub fn key(name: &str) -> Result<String, ModelError> {
    let wrong = |why: &str| {
        ModelError::Address(format!(
            "the key `{}` of the keyring {why}",
            name.escape_debug()
        ))
    };
    let tool = ambient::program("secret-tool").ok_or_else(|| {
        wrong("cannot be had: there is no `secret-tool`; the package is libsecret-tools")
    })?;
    let mut child = Command::new(tool)
        .args(["lookup", "service", "hermitcrab", "key", name])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| {
            wrong(&format!(
                "cannot be had: `secret-tool` cannot be started: {error}"
            ))
        })?;
    let began = Instant::now();
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status.success(),
            Ok(None) if began.elapsed() < UNLOCK_WITHIN => std::thread::sleep(TICK),
            Ok(None) | Err(_) => {
                // One that has ended meanwhile cannot be killed any more, and how it
                // ended says nothing.
                let _ = child.kill();
                let _ = child.wait();
                return Err(wrong("was not given in time"));
            }
        }
    };
    let mut text = String::new();
    if let Some(out) = child.stdout.take() {
        out.take(KEY_BYTES_MAX)
            .read_to_string(&mut text)
            .map_err(|_| wrong("is no text"))?;
    }
    match text.trim() {
        key if ended && !key.is_empty() => Ok(key.to_owned()),
        _ => Err(wrong(
            "is not there; `secret-tool store --label NAME service hermitcrab key NAME` puts one there",
        )),
    }
}
