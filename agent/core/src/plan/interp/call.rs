//! A call with its arguments, and what about them steers it.

use alloc::{borrow::ToOwned, string::String, vec::Vec};

use super::Machine;
use crate::plan::{
    draft::{Expr, Step},
    eval::Trouble,
    level::{Level, Tag},
    signature::{Reach, Role, Signature},
    value::{Datum, Value},
};

/// One call of a tool, all slots filled.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The step.
    pub step: String,
    /// The turns of the loops around it, outermost first, from nought.
    pub at: Vec<usize>,
    /// The tool.
    pub tool: String,
    /// The arguments, in the order in which the tool names them.
    pub args: Vec<(String, Value)>,
    /// What of it data decides that may not decide alone.
    pub concerns: Vec<Concern>,
    /// What travels with what steers it: the concerns' tags joined.
    pub steered_by: Tag,
    /// What decided that it happens.
    pub(super) control: Tag,
    /// What travels with what was asked for: no answer is cleaner.
    pub(super) asked_by: Tag,
}

/// Data that decides something about a call that changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concern {
    /// The argument; `None` for whether it happens at all.
    pub argument: Option<String>,
    /// How far the data can be trusted.
    pub level: Level,
    /// The steps it came through.
    pub from: Vec<String>,
    /// Who would see it and may not; `None` where who sees it is no matter.
    pub reader: Option<String>,
}

impl ToolCall {
    /// An argument by its name.
    #[must_use]
    pub fn arg(&self, name: &str) -> Option<&Value> {
        self.args
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }
}

impl Machine {
    pub(super) fn call(
        &mut self,
        step: &Step,
        tool: &str,
        with: &[(String, Expr)],
        control: &Tag,
    ) -> Result<ToolCall, Trouble> {
        let toolbox = self.plan.toolbox.clone();
        let signature = toolbox.get(tool).ok_or(Trouble::WrongType)?;
        let rules = self.plan.rules;
        let mut args = Vec::with_capacity(with.len());
        let mut concerns = Vec::new();
        let mut steered_by = Tag::USER;
        let mut asked_by = Tag::USER;
        for param in &signature.params {
            let Some((_, expr)) = with.iter().find(|(name, _)| *name == param.name) else {
                continue;
            };
            let value = self.env.eval(expr)?;
            let tag = value.whole_tag();
            // A name that is there may begin like an option, and programs take it for one.
            let is_an_option = param.role == Role::Word && holds_an_option(&value);
            // The check promised the type; here it is made sure of.
            let value = value
                .into_raw()
                .typed(&param.kind, &tag)
                .ok_or(Trouble::WrongType)?
                .tainted(&tag);
            if signature.changes && (tag.level() < param.role.floor(rules) || is_an_option) {
                concerns.push(Concern {
                    argument: Some(param.name.clone()),
                    level: tag.level(),
                    from: self.steps_of(&tag),
                    reader: None,
                });
                steered_by = steered_by.join(&tag);
            }
            if param.role.asks() {
                asked_by = asked_by.join(&tag);
            }
            args.push((param.name.clone(), value));
        }
        if signature.changes && rules.control && control.level() < Level::Service {
            concerns.push(Concern {
                argument: None,
                level: control.level(),
                from: self.steps_of(control),
                reader: None,
            });
            steered_by = steered_by.join(control);
        }
        for concern in self.unseen(signature, &args, control) {
            let tag = match &concern.argument {
                Some(name) => args.iter().find(|(known, _)| known == name),
                None => None,
            };
            steered_by = match tag {
                Some((_, value)) => steered_by.join(&value.whole_tag()),
                None => steered_by.join(control),
            };
            concerns.push(concern);
        }
        Ok(ToolCall {
            step: step.id.clone(),
            at: self.place(),
            tool: tool.to_owned(),
            args,
            concerns,
            steered_by,
            control: control.clone(),
            asked_by,
        })
    }

    /// What would come before somebody's eyes for whom it is not: each
    /// argument, and what decided that the call happens, with one such reader.
    fn unseen(
        &self,
        signature: &Signature,
        args: &[(String, Value)],
        control: &Tag,
    ) -> Vec<Concern> {
        let mut readers: Vec<String> = Vec::new();
        for reach in &signature.reaches {
            match reach {
                Reach::Reader(name) => readers.push(name.clone()),
                Reach::NamedBy(param) => {
                    let named = args.iter().find(|(name, _)| name == param);
                    if let Some((_, value)) = named {
                        names(value, &mut readers);
                    }
                }
            }
        }
        let whole: Vec<(Option<String>, Tag)> = args
            .iter()
            .map(|(name, value)| (Some(name.clone()), value.whole_tag()))
            .chain([(None, control.clone())])
            .collect();
        whole
            .into_iter()
            .filter_map(|(argument, tag)| {
                let reader = readers.iter().find(|reader| !tag.admits_named(reader))?;
                Some(Concern {
                    argument,
                    level: tag.level(),
                    from: self.steps_of(&tag),
                    reader: Some(reader.clone()),
                })
            })
            .collect()
    }

    fn steps_of(&self, tag: &Tag) -> Vec<String> {
        tag.origins()
            .steps()
            .filter_map(|number| self.plan.named(number))
            .map(ToOwned::to_owned)
            .collect()
    }
}

/// Whether a word that the plan does not write itself begins like an option.
fn holds_an_option(value: &Value) -> bool {
    // By itself: what the plan writes beside names that are there is still its own.
    let is_option = |word: &Value| {
        word.tag.level() < Level::User && word.as_text().is_some_and(|text| text.starts_with('-'))
    };
    match &value.datum {
        Datum::List(words) => words.iter().any(is_option),
        Datum::Text(_) => is_option(value),
        Datum::Nothing
        | Datum::Truth(_)
        | Datum::Whole(_)
        | Datum::Number(_)
        | Datum::Record(_) => false,
    }
}

/// Every text in a value, as the name of a reader.
fn names(value: &Value, found: &mut Vec<String>) {
    match &value.datum {
        Datum::Text(text) => found.push(text.clone()),
        Datum::List(items) => {
            for item in items {
                names(item, found);
            }
        }
        Datum::Record(fields) => {
            for (_, field) in fields {
                names(field, found);
            }
        }
        Datum::Nothing | Datum::Truth(_) | Datum::Whole(_) | Datum::Number(_) => {}
    }
}
