//! What a run says afterwards, in every form somebody reads.

pub mod explain;
pub mod json;
pub mod junit;
pub mod row;
pub mod sarif;
pub mod table;
