//! A plan as it is proposed: untrusted, unchecked, already a tree.
//!
//! Whoever reads a proposal (JSON at the edge) makes these and nothing else.
//! A text in here is a text: there is no form in which it is searched for
//! references or commands.

use alloc::{string::String, vec::Vec};

use super::{
    builtin::{Builtin, Over},
    kind::Type,
    value::Raw,
};

/// A proposed plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanDraft {
    /// What it is for, in the planner's words.
    pub summary: String,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// One proposed step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its name; what it yields is referred to by it.
    pub id: String,
    /// Steps that must have worked although nothing of theirs is used.
    pub after: Vec<String>,
    /// What it does.
    pub what: What,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Calls a tool.
    Call {
        /// Which.
        tool: String,
        /// With what.
        with: Vec<(String, Expr)>,
    },
    /// Computes a value.
    Let(Expr),
    /// Does steps for each item of a list, and yields a list.
    ForEach {
        /// The list.
        list: Expr,
        /// The item's name inside.
        name: String,
        /// More items than this are refused before the first turn.
        at_most: Option<u32>,
        /// What is done.
        steps: Vec<Step>,
        /// What each turn adds to the list.
        gives: Option<Expr>,
    },
    /// Does one or the other.
    If {
        /// Decides.
        test: Expr,
        /// If it is true.
        then: Vec<Step>,
        /// If it is not.
        or_else: Vec<Step>,
    },
    /// Has a model without tools pick data out of a value.
    Extract {
        /// The value.
        from: Expr,
        /// What to look for.
        ask: String,
        /// The form of the answer.
        schema: Type,
    },
    /// Asks the user for a value.
    AskUser {
        /// The question.
        question: String,
        /// The form of the answer.
        schema: Type,
    },
    /// Shows the user a value; with their yes it is their own.
    Confirm(Expr),
    /// Shows a text and, if the user approves, has it planned with these tools.
    Delegate {
        /// The text.
        from: Expr,
        /// The tools the new plan may use.
        tools: Vec<String>,
    },
    /// Says something to the user.
    Answer(Expr),
    /// Ends the plan.
    Fail(String),
}

/// How a value is come by.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// As written.
    Literal(Raw),
    /// What a step or a loop's item holds, or a part of it.
    Ref {
        /// The step or item.
        name: String,
        /// The way to the part.
        path: Vec<Hop>,
    },
    /// A list.
    List(Vec<Expr>),
    /// A record.
    Record(Vec<(String, Expr)>),
    /// Parts put together to one text.
    Text(Vec<Expr>),
    /// A function applied to values.
    Apply(Builtin, Vec<Expr>),
    /// A function that looks at each item of a list.
    Over {
        /// Which.
        over: Over,
        /// The list.
        list: alloc::boxed::Box<Expr>,
        /// The item's name inside.
        name: String,
        /// What is looked at.
        body: alloc::boxed::Box<Expr>,
    },
}

/// One step on the way to a part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hop {
    /// A record's field.
    Field(String),
    /// A list's item, counted from nought.
    At(u32),
}

impl Expr {
    /// A text as written.
    #[must_use]
    pub fn text(text: &str) -> Expr {
        Expr::Literal(Raw::Text(String::from(text)))
    }

    /// Calls `visit` with every name referred to.
    pub fn names<'e>(&'e self, visit: &mut dyn FnMut(&'e str)) {
        match self {
            Expr::Literal(_) => {}
            Expr::Ref { name, .. } => visit(name),
            Expr::List(parts) | Expr::Text(parts) | Expr::Apply(_, parts) => {
                for part in parts {
                    part.names(visit);
                }
            }
            Expr::Record(fields) => {
                for (_, field) in fields {
                    field.names(visit);
                }
            }
            Expr::Over {
                list, body, name, ..
            } => {
                list.names(visit);
                body.names(&mut |used| {
                    if used != name {
                        visit(used);
                    }
                });
            }
        }
    }
}

impl What {
    /// The blocks of steps inside.
    pub fn blocks(&self) -> impl Iterator<Item = &[Step]> {
        let (first, second): (&[Step], &[Step]) = match self {
            What::ForEach { steps, .. } => (steps, &[]),
            What::If { then, or_else, .. } => (then, or_else),
            What::Call { .. }
            | What::Let(_)
            | What::Extract { .. }
            | What::AskUser { .. }
            | What::Confirm(_)
            | What::Delegate { .. }
            | What::Answer(_)
            | What::Fail(_) => (&[], &[]),
        };
        [first, second].into_iter()
    }
}
