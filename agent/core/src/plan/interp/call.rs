//! A call with its arguments, and what about them steers it.

use alloc::{borrow::ToOwned, string::String, vec::Vec};

use super::Machine;
use crate::plan::{
    draft::{Expr, Step},
    eval::Trouble,
    level::{Level, Tag},
    value::Value,
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
            // The check promised the type; here it is made sure of.
            let value = value
                .raw()
                .typed(&param.kind.at_most(Level::User), &tag)
                .ok_or(Trouble::WrongType)?
                .tainted(&tag);
            if signature.changes && tag.level() < param.role.floor(rules) {
                concerns.push(Concern {
                    argument: Some(param.name.clone()),
                    level: tag.level(),
                    from: self.steps_of(&tag),
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
            });
            steered_by = steered_by.join(control);
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

    fn steps_of(&self, tag: &Tag) -> Vec<String> {
        tag.origins()
            .steps()
            .filter_map(|number| self.plan.named(number))
            .map(ToOwned::to_owned)
            .collect()
    }
}
