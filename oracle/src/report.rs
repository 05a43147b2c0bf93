//! What a run says afterwards, in every form somebody reads.

pub mod explain;
pub mod history;
pub mod html;
pub mod json;
pub mod junit;
pub mod merge;
pub mod place;
pub mod publish;
pub mod row;
pub mod sarif;
pub mod table;

#[cfg(test)]
mod in_step;
