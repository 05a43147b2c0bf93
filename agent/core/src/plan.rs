//! The plan: what will be done, fixed before any data is seen.
//!
//! A model that has read the user's words and nothing else proposes a
//! [`PlanDraft`]; [`check()`] makes it a locked [`Plan`] or says precisely what
//! is wrong with it; a [`Machine`] carries it out, one call at a time. Why: if
//! the steps are fixed before data arrives, data can fill slots and nothing
//! else. References are parsed once and are places in a tree from then on; no
//! text is ever searched for them, so a value may hold quotes, newlines, the
//! name of a step or a whole plan and stays a value.
//!
//! Nothing here may turn data into a step, evaluate text, loop without a bound
//! or do input and output. Every function is total: what cannot be computed is
//! a [`eval::Trouble`], never a panic.

pub mod builtin;
pub mod check;
pub mod draft;
pub mod error;
pub mod eval;
pub mod interp;
pub mod kind;
pub mod level;
pub mod limits;
pub mod locked;
pub mod rule;
pub mod signature;
pub mod value;

pub use self::{
    check::check,
    draft::{Expr, Hop, PlanDraft, Step, What},
    error::{ErrorKind, PlanError},
    interp::Machine,
    kind::{Kind, Type},
    level::{Level, Origins, Tag},
    locked::{Notice, Plan, Seer, Unseen, Want},
    rule::{Failure, Verdict},
    signature::{FlowRules, Need, Param, Reach, Role, Signature, StatedRisk, Toolbox},
    value::{Datum, Raw, Value},
};
