//! Carrying out a locked plan: what is to be called next, and what came of it.
//!
//! The machine owns the plan and the values; it never calls anything itself.
//! [`Machine::go_on`] says what is to be done, [`Machine::supply`] takes what
//! came of it. Which step follows is read from the plan, never from data: data
//! chooses between branches that are there and how often a loop turns, within
//! its bound, and can neither add, remove, reorder nor redirect a step.

use alloc::{
    borrow::ToOwned,
    collections::{BTreeMap, BTreeSet},
    string::String,
    sync::Arc,
    vec::Vec,
};

use super::{
    draft::{Expr, Step},
    eval::Env,
    kind::Type,
    level::{Level, Tag},
    locked::Plan,
    rule::{Failure, Verdict, rule},
    value::{Datum, Raw, Value},
};

mod begin;
mod call;
mod report;

pub use self::{
    call::{Concern, ToolCall},
    report::{Status, StepReport},
};

/// What is to be done next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Call a tool.
    Call(ToolCall),
    /// The directory of a call is missing, and is to be made: first, or with the call, which
    /// comes again.
    MakeDirectory(ToolCall),
    /// Have a model without tools pick data out of a value.
    Extract {
        /// The step.
        step: String,
        /// The value.
        from: Value,
        /// What to look for.
        ask: String,
        /// The form of the answer.
        schema: Type,
    },
    /// Ask the user for a value.
    AskUser {
        /// The step.
        step: String,
        /// The question.
        question: String,
        /// The form of the answer.
        schema: Type,
    },
    /// Show the user a value; with their yes it is their own. Whatever comes
    /// back, the value shown is the one that counts.
    Confirm {
        /// The step.
        step: String,
        /// The value.
        value: Value,
    },
    /// Show a text; if the user approves, plan it with these tools and run that.
    Delegate {
        /// The step.
        step: String,
        /// The text.
        text: Value,
        /// The tools.
        tools: Vec<String>,
    },
    /// Say something to the user. Nothing is to be supplied.
    Say {
        /// The step.
        step: String,
        /// What.
        text: Value,
    },
    /// It is over.
    Done,
}

/// What came of what was to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// It worked, with this result.
    Result(Raw),
    /// It was so already; the result is the same.
    Already(Raw),
    /// It did not work.
    Failed(Failure),
}

/// A block of steps being carried out.
#[derive(Clone, Debug)]
struct Frame {
    steps: Arc<[Step]>,
    next: usize,
    /// What decided that it happens.
    control: Tag,
    turn: Option<Turn>,
}

/// A loop's place in its list.
#[derive(Clone, Debug)]
struct Turn {
    step: String,
    name: String,
    items: Vec<Value>,
    at: usize,
    /// What a loop hands to each item.
    tag: Tag,
    gives: Option<Expr>,
    given: Vec<Value>,
}

/// What was said by [`Machine::go_on`] and waits for its reply.
#[derive(Clone, Debug)]
enum Waiting {
    Call {
        call: ToolCall,
        /// A directory is being made for it.
        making: bool,
        tried: bool,
    },
    Value {
        step: String,
        schema: Type,
        tag: Tag,
        control: Tag,
    },
    Nothing {
        step: String,
    },
    Yes {
        step: String,
        value: Value,
        control: Tag,
    },
}

/// A plan being carried out.
#[derive(Clone, Debug)]
pub struct Machine {
    plan: Plan,
    env: Env,
    frames: Vec<Frame>,
    waiting: Option<Waiting>,
    /// Whether what waits was said.
    said: bool,
    /// The steps that did not come to anything here, by name.
    failed: BTreeSet<String>,
    /// The blocks entered so far, shared between turns.
    blocks: BTreeMap<(String, bool), Arc<[Step]>>,
    reports: Vec<StepReport>,
    calls: u64,
    over: bool,
}

impl Machine {
    /// At the plan's beginning.
    #[must_use]
    pub fn new(plan: Plan) -> Machine {
        let root = Frame {
            steps: plan.steps.clone(),
            next: 0,
            control: Tag::USER,
            turn: None,
        };
        Machine {
            env: Env::new(plan.rules),
            frames: alloc::vec![root],
            waiting: None,
            said: false,
            failed: BTreeSet::new(),
            blocks: BTreeMap::new(),
            reports: Vec::new(),
            calls: 0,
            over: false,
            plan,
        }
    }

    /// The plan.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What became of each step so far, in the order in which they ended.
    #[must_use]
    pub fn reports(&self) -> &[StepReport] {
        &self.reports
    }

    /// What a step yielded.
    #[must_use]
    pub fn value(&self, step: &str) -> Option<&Value> {
        self.env.get(step)
    }

    /// Says what is to be done next. What was said before and has no reply
    /// counts as failed.
    pub fn go_on(&mut self) -> Next {
        if self.said {
            self.supply(Reply::Failed(Failure::Broken));
        }
        while !self.over {
            // A call that failed is said again after its directory was made.
            if let Some(Waiting::Call { call, making, .. }) = &self.waiting {
                self.said = true;
                return if *making {
                    Next::MakeDirectory(call.clone())
                } else {
                    Next::Call(call.clone())
                };
            }
            let Some(frame) = self.frames.last_mut() else {
                self.over = true;
                break;
            };
            // Held beside the frame: a step holds all that lies below it.
            let steps = Arc::clone(&frame.steps);
            let Some(step) = steps.get(frame.next) else {
                self.end_of_block();
                continue;
            };
            frame.next += 1;
            let control = frame.control.clone();
            if let Some(next) = self.begin(step, &control) {
                self.said = self.waiting.is_some();
                return next;
            }
        }
        Next::Done
    }

    /// Takes what came of what was to be done. The rule for a failure decides
    /// what is said next; nothing in a result can.
    pub fn supply(&mut self, reply: Reply) {
        self.said = false;
        match self.waiting.take() {
            None => {}
            Some(Waiting::Call {
                call,
                making,
                tried,
            }) => match reply {
                // The directory is there: once more.
                Reply::Result(_) | Reply::Already(_) if making => {
                    self.waiting = Some(Waiting::Call {
                        call,
                        making: false,
                        tried: true,
                    });
                }
                Reply::Result(raw) => self.called(&call, raw, Status::Done),
                Reply::Already(raw) => self.called(&call, raw, Status::Already),
                Reply::Failed(failure) => match rule(failure, tried || making) {
                    Verdict::MakeDirectoryAndRetry => {
                        self.waiting = Some(Waiting::Call {
                            call,
                            making: true,
                            tried: true,
                        });
                    }
                    Verdict::Report | Verdict::End => self.failed_by(&call.step, failure),
                },
            },
            Some(Waiting::Value {
                step,
                schema,
                tag,
                control,
            }) => match reply {
                Reply::Result(raw) | Reply::Already(raw) => match raw.typed(&schema, &tag) {
                    Some(value) => self.worked(&step, value, &control, Status::Done),
                    None => self.fail(&step, Failure::BadResult),
                },
                Reply::Failed(failure) => self.failed_by(&step, failure),
            },
            Some(Waiting::Yes {
                step,
                value,
                control,
            }) => match reply {
                Reply::Result(_) | Reply::Already(_) => {
                    self.worked(&step, value, &control, Status::Done);
                }
                Reply::Failed(failure) => self.failed_by(&step, failure),
            },
            Some(Waiting::Nothing { step }) => match reply {
                Reply::Result(_) | Reply::Already(_) => {
                    self.worked(&step, nothing(), &Tag::USER, Status::Done);
                }
                Reply::Failed(failure) => self.failed_by(&step, failure),
            },
        }
    }

    /// Ends it here; what waits counts as cancelled.
    pub fn cancel(&mut self) {
        let step = match self.waiting.take() {
            Some(Waiting::Call { call, .. }) => Some(call.step),
            Some(
                Waiting::Value { step, .. } | Waiting::Nothing { step } | Waiting::Yes { step, .. },
            ) => Some(step),
            None => None,
        };
        if let Some(step) = step {
            self.fail(&step, Failure::Cancelled);
        }
        self.over = true;
    }

    /// Leaves the step out that was said to be done next.
    pub fn leave_out(&mut self) {
        self.supply(Reply::Failed(Failure::Refused));
    }

    fn failed_by(&mut self, step: &str, failure: Failure) {
        self.fail(step, failure);
        if rule(failure, true) == Verdict::End {
            self.over = true;
        }
    }

    fn end_of_block(&mut self) {
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        let Some(turn) = &mut frame.turn else {
            self.frames.pop();
            return;
        };
        // What a turn gives is seen from inside it.
        let given = match &turn.gives {
            None => Some(nothing()),
            Some(gives) => match self.env.eval(gives) {
                Ok(value) if self.plan.rules.control => Some(value.tainted(&frame.control)),
                Ok(value) => Some(value),
                Err(_) => None,
            },
        };
        turn.given.extend(given);
        self.turn();
    }

    /// Begins a loop's next turn, or ends the loop.
    fn turn(&mut self) {
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        let Some(turn) = &mut frame.turn else { return };
        // Nothing of one turn is left in the next.
        forget(&frame.steps, &mut self.env, &mut self.failed);
        match turn.items.get(turn.at).cloned() {
            Some(item) => {
                let item = item.tainted(&turn.tag);
                self.env.bind(&turn.name, item);
                turn.at += 1;
                frame.next = 0;
            }
            None => {
                self.env.forget(&turn.name);
                let (step, tag) = (turn.step.clone(), turn.tag.clone());
                let given = core::mem::take(&mut turn.given);
                let control = frame.control.clone();
                self.frames.pop();
                let value = Value::new(Datum::List(given), tag);
                self.worked(&step, value, &control, Status::Done);
            }
        }
    }

    /// The turns of the loops around, counted from nought.
    fn place(&self) -> Vec<usize> {
        self.frames
            .iter()
            .filter_map(|frame| frame.turn.as_ref())
            .map(|turn| turn.at.saturating_sub(1))
            .collect()
    }

    fn called(&mut self, call: &ToolCall, raw: Raw, status: Status) {
        let number = self.plan.number(&call.step).unwrap_or(u8::MAX);
        let Some(signature) = self.plan.toolbox.get(&call.tool) else {
            self.fail(&call.step, Failure::BadResult);
            return;
        };
        let mut tag = Tag::new(Level::User, signature.source, number);
        if let Some(readers) = &signature.readers {
            tag = tag.only_for(readers.clone());
        }
        if self.plan.rules.selection {
            tag = tag.join(&call.asked_by);
        }
        match raw.typed(&signature.result, &tag) {
            Some(value) => {
                let control = call.control.clone();
                self.worked(&call.step, value, &control, status);
            }
            None => self.fail(&call.step, Failure::BadResult),
        }
    }

    fn worked(&mut self, step: &str, value: Value, control: &Tag, status: Status) {
        let value = if self.plan.rules.control {
            value.tainted(control)
        } else {
            value
        };
        self.env.bind(step, value);
        self.failed.remove(step);
        self.report(step, status);
    }

    fn fail(&mut self, step: &str, failure: Failure) {
        self.failed.insert(step.to_owned());
        self.env.forget(step);
        self.report(step, Status::Failed(failure));
    }

    fn skip(&mut self, step: &str, because: String) {
        self.failed.insert(step.to_owned());
        self.env.forget(step);
        self.report(step, Status::Skipped(because));
    }

    fn report(&mut self, step: &str, status: Status) {
        let at = self.place();
        self.reports.push(StepReport {
            step: step.to_owned(),
            at,
            status,
        });
    }
}

fn nothing() -> Value {
    Value::new(Datum::Nothing, Tag::USER)
}

fn forget(steps: &[Step], env: &mut Env, failed: &mut BTreeSet<String>) {
    for step in steps {
        env.forget(&step.id);
        failed.remove(&step.id);
        for block in step.what.blocks() {
            forget(block, env, failed);
        }
    }
}
