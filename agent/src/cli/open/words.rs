//! How a command line names what a grant is on.

use std::path::Path;

use crate::{cli::Trouble, exit, runtime::GrantWords};

/// `VERB=PATH`, the path from the current directory; `VERB=PEER` for the network.
pub fn words(text: &str, current: &Path) -> Result<GrantWords, Trouble> {
    let Some((verb, on)) = text.split_once('=') else {
        return Err((
            format!("`{text}` is not VERB=PATH, such as fs.create=./src"),
            exit::USAGE,
        ));
    };
    Ok(GrantWords::new(verb, &object(verb, on, current)))
}

/// What a verb is to act on, as a command line names it.
pub fn object(verb: &str, on: &str, current: &Path) -> String {
    // Only files are named from where one is.
    if verb.starts_with("fs.") {
        place(on, current)
    } else {
        on.to_owned()
    }
}

/// A place as a command line names it, from the current directory.
fn place(on: &str, current: &Path) -> String {
    if on == "*" || on.starts_with('~') {
        on.to_owned()
    } else {
        current.join(on).to_string_lossy().into_owned()
    }
}
