//! The model of a prompt, or why there is none that can be used.

use crate::{
    cancel::Cancel,
    cli::{choice, open, say},
    model::Backend,
};

/// What came of a request where there is a model that cannot be used; why was told before.
pub const NOT_USABLE: &str = "nothing was asked: the model that is configured cannot be used";

/// The model; one that cannot be used is said and does not stop anything.
pub fn model(ground: &open::Ground, choice: &choice::Choice, cancel: &Cancel) -> Option<Backend> {
    match choice::backend(ground, choice, cancel) {
        Ok(backend) => backend,
        Err((message, _)) => {
            say(&message);
            None
        }
    }
}
