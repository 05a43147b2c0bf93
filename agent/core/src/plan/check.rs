//! From a draft to a locked plan, or to a bounded list of precise errors.
//!
//! What is checked: names, references (only to what has run by then), types
//! against the tools' signatures, bounds on everything. What is worked out on
//! the way and kept: the capabilities wanted, how many calls there can be, and
//! how far what decides each change can be trusted at worst.

use alloc::{
    borrow::ToOwned,
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    sync::Arc,
    vec::Vec,
};

use super::{
    draft::{Expr, PlanDraft, Step, What},
    error::{ErrorKind, PlanError},
    kind::{Kind, Type},
    level::Level,
    limits::{
        ARGUMENTS_MAX, BLOCK_DEPTH_MAX, CALLS_MAX, ERRORS_MAX, LITERAL_BYTES_MAX,
        LOOP_TURNS_DEFAULT, LOOP_TURNS_MAX, NAME_BYTES_MAX, STEPS_MAX,
    },
    locked::{Notice, Plan, Want},
    signature::{FlowRules, Role, Signature, Toolbox},
    value::Raw,
};

mod sight;
mod typing;

use self::sight::{Sight, Sights, seers};

/// Checks a draft against the tools it may call.
///
/// # Errors
/// What is wrong, at most [`ERRORS_MAX`] of it.
pub fn check(
    draft: PlanDraft,
    toolbox: Arc<Toolbox>,
    rules: FlowRules,
) -> Result<Plan, Vec<PlanError>> {
    let mut checker = Checker {
        toolbox: &toolbox,
        rules,
        errors: Vec::new(),
        scope: Vec::new(),
        numbers: BTreeMap::new(),
        names: BTreeSet::new(),
        sights: Sights::default(),
        at: None,
        parts: 0,
        calls: 0,
        wants: Vec::new(),
        fed: Vec::new(),
        notices: Vec::new(),
    };
    if draft.steps.is_empty() {
        checker.error(ErrorKind::Empty);
    }
    if draft.summary.len() > LITERAL_BYTES_MAX {
        checker.error(ErrorKind::TooLong);
    }
    // Sizes first: nothing else looks at a draft that is too large.
    let mut steps = 0;
    if let Err(kind) = sized(&draft.steps, 0, &mut steps) {
        checker.error(kind);
        return Err(checker.errors);
    }
    checker.name_all(&draft.steps);
    if checker.errors.is_empty() {
        let at = Surroundings {
            turns: 1,
            control: Level::User,
            sight: Sight::ANYONE,
            from: Vec::new(),
        };
        checker.block(&draft.steps, &at);
    }
    if checker.calls > CALLS_MAX {
        checker.at = None;
        checker.error(ErrorKind::TooManyCalls);
    }
    if !checker.errors.is_empty() {
        return Err(checker.errors);
    }
    Ok(Plan {
        numbers: checker.numbers,
        calls_at_most: checker.calls,
        wants: checker.wants,
        fed: checker.fed,
        notices: checker.notices,
        summary: draft.summary,
        steps: draft.steps.into(),
        rules,
        toolbox,
    })
}

/// Counts steps and depth, and stops at the first bound passed.
fn sized(steps: &[Step], depth: usize, count: &mut usize) -> Result<(), ErrorKind> {
    if depth > BLOCK_DEPTH_MAX {
        return Err(ErrorKind::TooDeep);
    }
    for step in steps {
        *count += 1;
        if *count > STEPS_MAX {
            return Err(ErrorKind::TooManySteps);
        }
        for block in step.what.blocks() {
            sized(block, depth + 1, count)?;
        }
    }
    Ok(())
}

/// What a block of steps lies in.
struct Surroundings {
    /// How often it may happen.
    turns: u64,
    /// How far what decides whether it happens can be trusted at worst.
    control: Level,
    /// For whom that is.
    sight: Sight,
    /// The steps that decides comes from.
    from: Vec<String>,
}

struct Checker<'c> {
    toolbox: &'c Toolbox,
    rules: FlowRules,
    errors: Vec<PlanError>,
    /// What can be referred to here, innermost last.
    scope: Vec<(String, Type)>,
    numbers: BTreeMap<String, u8>,
    /// Every name there is, for telling too early from never.
    names: BTreeSet<String>,
    /// For whom what they stand for is.
    sights: Sights,
    /// The step being looked at.
    at: Option<String>,
    /// Parts of expressions seen.
    parts: usize,
    calls: u64,
    wants: Vec<Want>,
    fed: Vec<Notice>,
    notices: Vec<Notice>,
}

/// Letters, digits and underscores, not starting with a digit.
#[must_use]
pub fn is_name(text: &str) -> bool {
    text.len() <= NAME_BYTES_MAX
        && text
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

impl Checker<'_> {
    fn error(&mut self, kind: ErrorKind) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(PlanError {
                step: self.at.clone(),
                kind,
            });
        }
    }

    /// Numbers the steps, and finds names that are none or are taken.
    fn name_all(&mut self, steps: &[Step]) {
        for step in steps {
            let number = u8::try_from(self.numbers.len()).unwrap_or(u8::MAX);
            // A bad name is not repeated: it may be anything.
            self.at = Some(format!("#{}", self.numbers.len() + 1));
            if is_name(&step.id) {
                self.at = Some(step.id.clone());
                if self.names.insert(step.id.clone()) {
                    self.numbers.insert(step.id.clone(), number);
                } else {
                    self.error(ErrorKind::NameTaken);
                }
            } else {
                self.error(ErrorKind::BadName);
            }
            if let What::ForEach { name, .. } = &step.what {
                if !is_name(name) {
                    self.error(ErrorKind::BadName);
                } else if !self.names.insert(name.clone()) {
                    self.error(ErrorKind::NameTaken);
                }
            }
            for block in step.what.blocks() {
                self.name_all(block);
            }
        }
        self.at = None;
    }

    fn block(&mut self, steps: &[Step], around: &Surroundings) {
        let before = self.scope.len();
        self.block_open(steps, around);
        self.scope.truncate(before);
    }

    fn unknown(&mut self, name: &str) {
        self.error(if self.names.contains(name) {
            ErrorKind::ForwardReference
        } else {
            ErrorKind::UnknownReference
        });
    }

    fn known(&self, name: &str) -> Option<&Type> {
        self.scope
            .iter()
            .rev()
            .find(|(known, _)| known == name)
            .map(|(_, kind)| kind)
    }

    /// The type of what a step yields; `None` if that cannot be said.
    fn step(&mut self, step: &Step, around: &Surroundings) -> Option<Type> {
        match &step.what {
            What::Call { tool, with } => {
                self.calls = self.calls.saturating_add(around.turns);
                let toolbox = self.toolbox;
                let Some(signature) = toolbox.get(tool) else {
                    self.error(ErrorKind::UnknownTool);
                    return None;
                };
                let asked_by = self.call(step, signature, with, around);
                let result = signature.result.clone();
                Some(if self.rules.selection {
                    result.lowered(asked_by)
                } else {
                    result
                })
            }
            What::Let(expr) => self.type_of(expr),
            What::ForEach {
                list,
                name,
                at_most,
                steps,
                gives,
            } => {
                let turns = at_most.unwrap_or(LOOP_TURNS_DEFAULT);
                if turns > LOOP_TURNS_MAX {
                    self.error(ErrorKind::TooManyCalls);
                }
                let kind = self.type_of(list)?;
                let Kind::List(item) = &kind.kind else {
                    if kind.kind != Kind::Never {
                        self.error(ErrorKind::NotAList);
                    }
                    return None;
                };
                let around = Surroundings {
                    turns: around.turns.saturating_mul(u64::from(turns)),
                    control: around.control.min(kind.level),
                    sight: self.sights.of(list).meet(&around.sight),
                    from: names_in(list),
                };
                let before = self.scope.len();
                self.scope.push((name.clone(), item.at_most(kind.level)));
                self.sights.bind(name, self.sights.of(list));
                let item = self.looped(steps, gives.as_ref(), &around);
                self.scope.truncate(before);
                Some(Kind::list(item?).at(kind.level))
            }
            What::If {
                test,
                then,
                or_else,
            } => {
                let kind = self.type_of(test)?;
                if !matches!(kind.kind, Kind::Truth | Kind::Never) {
                    self.error(ErrorKind::NotATruth);
                    return None;
                }
                let around = Surroundings {
                    turns: around.turns,
                    control: around.control.min(kind.level),
                    sight: self.sights.of(test).meet(&around.sight),
                    from: names_in(test),
                };
                let at = self.at.clone();
                self.block(then, &around);
                self.block(or_else, &around);
                self.at = at;
                Some(Kind::Nothing.at(kind.level))
            }
            What::Extract {
                from: from_expr,
                ask,
                schema,
            } => {
                self.calls = self.calls.saturating_add(around.turns);
                let from = self.type_of(from_expr);
                if ask.len() > LITERAL_BYTES_MAX {
                    self.error(ErrorKind::TooLong);
                }
                self.schema(schema);
                let level = from?.worst();
                self.model_reads(step, from_expr, level);
                Some(picked(schema, level))
            }
            What::AskUser { question, schema } => {
                if question.len() > LITERAL_BYTES_MAX {
                    self.error(ErrorKind::TooLong);
                }
                self.schema(schema);
                Some(schema.clone())
            }
            // What a person was shown and agreed to is theirs.
            What::Confirm(expr) => Some(self.type_of(expr)?.raised(Level::User)),
            What::Delegate { from, tools } => {
                let kind = self.type_of(from)?;
                if !kind.is_text() {
                    self.error(ErrorKind::WrongType);
                }
                if tools.len() > ARGUMENTS_MAX {
                    self.error(ErrorKind::TooLong);
                }
                for tool in tools {
                    if self.toolbox.get(tool).is_none() {
                        self.error(ErrorKind::UnknownTool);
                    }
                }
                Some(Kind::Nothing.at(Level::User))
            }
            What::Answer(expr) => {
                self.type_of(expr)?;
                Some(Kind::Nothing.at(Level::User))
            }
            What::Fail(text) => {
                if text.len() > LITERAL_BYTES_MAX {
                    self.error(ErrorKind::TooLong);
                }
                Some(Kind::Nothing.at(Level::User))
            }
        }
    }

    /// A loop's body; what it gives is seen from inside it.
    fn looped(
        &mut self,
        steps: &[Step],
        gives: Option<&Expr>,
        around: &Surroundings,
    ) -> Option<Type> {
        let at = self.at.clone();
        let Some(gives) = gives else {
            self.block(steps, around);
            self.at = at;
            return Some(Kind::Nothing.at(Level::User));
        };
        // The same as a block with one more step that computes what it gives.
        let last = Step {
            id: at.clone().unwrap_or_default(),
            after: Vec::new(),
            what: What::Let(gives.clone()),
        };
        let before = self.scope.len();
        self.block_open(steps, around);
        self.at = at;
        let kind = self.step(&last, around);
        self.scope.truncate(before);
        kind
    }

    /// A block whose names stay known.
    fn block_open(&mut self, steps: &[Step], around: &Surroundings) {
        for step in steps {
            self.at = Some(step.id.clone());
            for earlier in &step.after {
                if self.known(earlier).is_none() {
                    self.unknown(earlier);
                }
            }
            // What refers to a step that is wrong is not wrong because of that.
            let kind = self
                .step(step, around)
                .unwrap_or(Kind::Never.at(Level::Untrusted));
            let kind = if self.rules.control {
                kind.lowered(around.control)
            } else {
                kind
            };
            self.scope.push((step.id.clone(), kind));
            let sight = self.sight_of(step, around);
            self.sights.bind(&step.id, sight);
        }
    }

    /// Looks at a call; the worst level of what decides what comes back.
    fn call(
        &mut self,
        step: &Step,
        signature: &Signature,
        with: &[(String, Expr)],
        around: &Surroundings,
    ) -> Level {
        let mut asked_by = Level::User;
        if with.len() > ARGUMENTS_MAX {
            self.error(ErrorKind::TooLong);
            return asked_by;
        }
        let seers = seers(signature, with);
        for (place, (name, expr)) in with.iter().enumerate() {
            let twice = with.iter().take(place).any(|(known, _)| known == name);
            let Some(param) = signature.param(name).filter(|_| !twice) else {
                self.error(if twice {
                    ErrorKind::TwiceTheSameKey
                } else {
                    ErrorKind::UnknownArgument
                });
                continue;
            };
            let Some(kind) = self.type_of(expr) else {
                continue;
            };
            if !kind.fits(&param.kind) {
                self.error(ErrorKind::WrongType);
                continue;
            }
            if param.role == Role::Program && !is_literal(expr) {
                self.error(ErrorKind::NotLiteral);
            }
            let level = kind.worst();
            if param.role.asks() {
                asked_by = asked_by.min(level);
            }
            let what = Notice {
                step: step.id.clone(),
                argument: Some(name.clone()),
                level,
                from: names_in(expr),
                unseen: None,
            };
            if signature.changes && level < Level::User {
                self.fed.push(what.clone());
            }
            if signature.changes && level < param.role.floor(self.rules) {
                self.notices.push(what.clone());
            }
            self.shown(&self.sights.of(expr), &seers, what);
        }
        for param in &signature.params {
            if param.required && !with.iter().any(|(name, _)| *name == param.name) {
                self.error(ErrorKind::MissingArgument);
            }
        }
        let what = Notice {
            step: step.id.clone(),
            argument: None,
            level: around.control,
            from: around.from.clone(),
            unseen: None,
        };
        if signature.changes && self.rules.control && around.control < Level::Service {
            self.notices.push(what.clone());
        }
        self.shown(&around.sight, &seers, what);
        for need in &signature.wants {
            let on = need.param.as_ref().and_then(|param| {
                let (_, expr) = with.iter().find(|(name, _)| name == param)?;
                literal_text(expr).map(ToOwned::to_owned)
            });
            self.wants.push(Want {
                step: step.id.clone(),
                verb: need.verb,
                on,
            });
        }
        asked_by
    }
}

fn names_in(expr: &Expr) -> Vec<String> {
    let mut names = Vec::new();
    expr.names(&mut |name| {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    });
    names
}

fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(_) => true,
        Expr::List(parts) => parts.iter().all(is_literal),
        Expr::Ref { .. }
        | Expr::Record(_)
        | Expr::Text(_)
        | Expr::Apply(..)
        | Expr::Over { .. } => false,
    }
}

fn literal_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(Raw::Text(text)) => Some(text),
        _ => None,
    }
}

/// The type of what a model picks: no text of it is trusted at all. A number, a
/// truth or one of the plan's own words is a choice somebody else may have made
/// and carries none of their text, whatever it was picked out of.
#[must_use]
pub fn picked(schema: &Type, from: Level) -> Type {
    let best = if schema.is_text() && !matches!(schema.kind, Kind::Choice(_)) {
        Level::Untrusted
    } else {
        Level::Picked
    };
    let kind = match &schema.kind {
        Kind::List(item) => Kind::list(picked(item, from)),
        Kind::Optional(item) => Kind::Optional(alloc::boxed::Box::new(picked(item, from))),
        Kind::Record(fields) => Kind::Record(
            fields
                .iter()
                .map(|(name, field)| (name.clone(), picked(field, from)))
                .collect(),
        ),
        plain => plain.clone(),
    };
    kind.at(best.min(from.max(Level::Picked)))
}
