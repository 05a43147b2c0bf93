//! From a command line to a session: where things lie, what is configured,
//! what is kept, what is proved.

mod furnish;
mod ground;
mod homes;
mod kept;
mod programs;
mod rehearse;
mod session;
mod words;

pub(in crate::cli) use ground::held;
pub use ground::{Configured, GO_THERE, Ground, configured, ground, seen_from};
pub use rehearse::{Extent, imagine, rehearse, to_try};
pub use session::{Past, open, open_bare, ready_or_ended};
pub use words::{object, tell_what_is_asked, words};
