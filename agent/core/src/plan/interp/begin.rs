//! What a step comes to when its turn comes.

use alloc::{sync::Arc, vec::Vec};

use super::{Frame, Machine, Next, Status, Turn, Waiting, nothing};
use crate::{
    label::Source,
    plan::{
        check::picked,
        draft::{Step, What},
        eval::Trouble,
        level::{Level, Tag},
        limits::{CALLS_MAX, LOOP_TURNS_DEFAULT},
        rule::Failure,
        signature::READER_MODEL,
        value::Datum,
    },
};

impl Machine {
    pub(super) fn begin(&mut self, step: &Step, control: &Tag) -> Option<Next> {
        let missing = step
            .after
            .iter()
            .find(|earlier| self.failed.contains(*earlier));
        if let Some(earlier) = missing {
            let because = earlier.clone();
            self.skip(&step.id, because);
            return None;
        }
        match self.do_step(step, control) {
            Ok(next) => next,
            Err(Trouble::Depends(name)) => {
                let because = name;
                self.skip(&step.id, because);
                None
            }
            Err(Trouble::TooMuch) => {
                self.fail(&step.id, Failure::TooMuch);
                None
            }
            Err(Trouble::NoItem | Trouble::Arithmetic | Trouble::NotATime | Trouble::WrongType) => {
                self.fail(&step.id, Failure::NoValue);
                None
            }
        }
    }

    fn do_step(&mut self, step: &Step, control: &Tag) -> Result<Option<Next>, Trouble> {
        let number = self.plan.number(&step.id).unwrap_or(u8::MAX);
        match &step.what {
            What::Call { tool, with } => {
                self.calls += 1;
                if self.calls > CALLS_MAX {
                    return Err(Trouble::TooMuch);
                }
                let call = self.call(step, tool, with, control)?;
                self.waiting = Some(Waiting::Call {
                    call: call.clone(),
                    making: false,
                    tried: false,
                });
                Ok(Some(Next::Call(call)))
            }
            What::Let(expr) => {
                let value = self.env.eval(expr)?;
                self.worked(&step.id, value, control, Status::Done);
                Ok(None)
            }
            What::ForEach {
                list,
                name,
                at_most,
                gives,
                ..
            } => {
                let value = self.env.eval(list)?;
                let Datum::List(items) = value.datum else {
                    return Err(Trouble::WrongType);
                };
                let bound = usize::try_from(at_most.unwrap_or(LOOP_TURNS_DEFAULT));
                if items.len() > bound.unwrap_or(0) {
                    return Err(Trouble::TooMuch);
                }
                let frame = Frame {
                    steps: self.block(step, true),
                    next: usize::MAX,
                    control: control.join(&value.tag),
                    turn: Some(Turn {
                        step: step.id.clone(),
                        name: name.clone(),
                        items,
                        at: 0,
                        tag: value.tag,
                        gives: gives.clone(),
                        given: Vec::new(),
                    }),
                };
                self.frames.push(frame);
                self.turn();
                Ok(None)
            }
            What::If { test, .. } => {
                let value = self.env.eval(test)?;
                let Datum::Truth(truth) = value.datum else {
                    return Err(Trouble::WrongType);
                };
                let frame = Frame {
                    steps: self.block(step, truth),
                    next: 0,
                    control: control.join(&value.tag),
                    turn: None,
                };
                self.frames.push(frame);
                self.worked(&step.id, nothing(), control, Status::Done);
                Ok(None)
            }
            What::Extract { from, ask, schema } => {
                let from = self.env.eval(from)?;
                let tag = from.whole_tag();
                // A model is a reader like any other.
                if !tag.admits_named(READER_MODEL) {
                    self.fail(&step.id, Failure::Refused);
                    return Ok(None);
                }
                let schema = picked(schema, tag.level());
                self.waiting = Some(Waiting::Value {
                    step: step.id.clone(),
                    schema: schema.clone(),
                    tag: tag
                        .join(&Tag::new(Level::Picked, Source::Model, number))
                        .reduced(),
                    control: control.clone(),
                });
                Ok(Some(Next::Extract {
                    step: step.id.clone(),
                    from,
                    ask: ask.clone(),
                    schema,
                }))
            }
            What::AskUser { question, schema } => {
                self.waiting = Some(Waiting::Value {
                    step: step.id.clone(),
                    schema: schema.clone(),
                    tag: Tag::new(Level::User, Source::User, number),
                    control: control.clone(),
                });
                Ok(Some(Next::AskUser {
                    step: step.id.clone(),
                    question: question.clone(),
                    schema: schema.clone(),
                }))
            }
            What::Confirm(expr) => {
                let value = self.env.eval(expr)?;
                let own = Tag::new(Level::User, Source::User, number);
                self.waiting = Some(Waiting::Yes {
                    step: step.id.clone(),
                    value: value.clone().retagged(&own),
                    control: control.clone(),
                });
                Ok(Some(Next::Confirm {
                    step: step.id.clone(),
                    value,
                }))
            }
            What::Delegate { from, tools } => {
                let text = self.env.eval(from)?;
                self.waiting = Some(Waiting::Nothing {
                    step: step.id.clone(),
                });
                Ok(Some(Next::Delegate {
                    step: step.id.clone(),
                    text,
                    tools: tools.clone(),
                }))
            }
            What::Answer(expr) => {
                let text = self.env.eval(expr)?;
                self.worked(&step.id, nothing(), control, Status::Done);
                Ok(Some(Next::Say {
                    step: step.id.clone(),
                    text,
                }))
            }
            What::Fail(_) => {
                self.failed_by(&step.id, Failure::Said);
                Ok(None)
            }
        }
    }

    /// One of a step's blocks, shared between turns.
    fn block(&mut self, step: &Step, first: bool) -> Arc<[Step]> {
        self.blocks
            .entry((step.id.clone(), first))
            .or_insert_with(|| {
                let steps: &[Step] = match &step.what {
                    What::ForEach { steps, .. } => steps,
                    What::If { then, .. } if first => then,
                    What::If { or_else, .. } => or_else,
                    What::Call { .. }
                    | What::Let(_)
                    | What::Extract { .. }
                    | What::AskUser { .. }
                    | What::Confirm(_)
                    | What::Delegate { .. }
                    | What::Answer(_)
                    | What::Fail(_) => &[],
                };
                steps.into()
            })
            .clone()
    }
}
