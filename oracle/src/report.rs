//! What a run says afterwards, in every form somebody reads.

pub mod junit;
pub mod row;
pub mod sarif;
