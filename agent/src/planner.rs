//! From a request to a plan that may be run.
//!
//! What a plan is made of is the core's; here a proposal is read from JSON,
//! a model is asked for one, and a person is shown one. This module must never
//! run anything, and what it sends back to a model about a proposal is the
//! names of steps and kinds of errors, never text.

pub mod ask;
pub mod draft;
pub mod form;
pub mod json;
pub mod outside;
pub mod schema;
pub mod show;
pub mod vocabulary;
pub mod write;
