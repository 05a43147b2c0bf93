//! Which calls of one model turn may run side by side.
//!
//! A model may ask for several calls at once. Reads and writes of files that
//! have nothing to do with each other can run together; everything else keeps
//! the model's order. The plan only ever cuts the batch into consecutive
//! pieces: no call moves past another, so what a reader of the transcript sees
//! is what one-by-one execution would have shown.
//!
//! Planning grants nothing. Every call of a parallel piece still needs its own
//! permit, and a wrong guess about independence may cost order, never
//! authority. For that reason every doubt (arguments that cannot be read, a
//! link that cannot be followed, a tool nobody declared) makes a call a
//! barrier that runs alone.
mod footprint;
mod plan;
mod scope;

pub use footprint::{Argument, Arguments, Footprint, footprint};
pub use plan::{Lane, Segment, plan};
pub use scope::{
    LINK_HOPS_MAX, LinkFact, Links, RAW_BYTES_MAX, ScopeError, ScopePath, Standing, canonical,
    overlap, parts, physical,
};
