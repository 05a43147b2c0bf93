//! The reader and printer of V4A patches.

use hermitcrab_core::v4a;

use super::{Verdict, ensure};

/// Read, print, read again.
pub fn check(bytes: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(bytes);
    let Ok(operations) = v4a::parse(&text) else {
        return Ok(());
    };
    for operation in &operations {
        ensure(!operation.path().is_empty(), || {
            "an operation without a path".to_owned()
        })?;
    }
    let Some(printed) = v4a::print(&operations) else {
        return Ok(());
    };
    match v4a::parse(&printed) {
        Ok(again) => ensure(again == operations, || format!("printed as {printed:?}")),
        Err(error) => Err(format!(
            "printed as {printed:?}, which is no patch: {error}"
        )),
    }
}
