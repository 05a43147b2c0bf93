//! For whom values will be, as far as the plan itself says, and before whose
//! eyes they would come who are not among them.
//!
//! The machine compares each value with each reader when a call is made. Here
//! the same is worked out before anything runs, so that a person knows of it
//! when the plan is approved. It is the worst case: a value counts as made of
//! everything its expression names, and whom data will name is nobody yet.

use alloc::{
    borrow::ToOwned,
    collections::{BTreeMap, BTreeSet},
    string::String,
    vec::Vec,
};

use super::{Checker, Surroundings, literal_text, names_in};
use crate::{
    authority::Name,
    plan::{
        draft::{Expr, Step, What},
        level::Level,
        locked::{Notice, Seer, Unseen},
        signature::{READER_MODEL, Reach, Signature},
    },
};

/// For whom a value is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sight(Option<BTreeSet<Name>>);

impl Sight {
    /// For everybody.
    pub(super) const ANYONE: Sight = Sight(None);

    /// For those a tool's results are for.
    pub(super) fn of(signature: &Signature) -> Sight {
        Sight(signature.readers.clone())
    }

    /// What is made of both is for those both are for.
    pub(super) fn meet(self, other: &Sight) -> Sight {
        match (self.0, &other.0) {
            (None, readers) => Sight(readers.clone()),
            (Some(readers), None) => Sight(Some(readers)),
            (Some(left), Some(right)) => Sight(Some(left.intersection(right).cloned().collect())),
        }
    }

    /// What is to be said of it if one of these would see it: the first for
    /// whom it is certainly not, else the first of whom that is not known.
    pub(super) fn unseen_by(&self, seers: &[Seer]) -> Option<Unseen> {
        let only_for = self.0.as_ref()?;
        let is_out = |seer: &&Seer| match seer {
            Seer::Reader(name) => !only_for.iter().any(|known| known.as_str() == name),
            Seer::NamedBy(_) => false,
        };
        let seer = seers.iter().find(is_out).or_else(|| {
            let mut unknown = seers.iter();
            unknown.find(|seer| matches!(seer, Seer::NamedBy(_)))
        })?;
        Some(Unseen {
            seer: seer.clone(),
            only_for: only_for.clone(),
        })
    }
}

/// For whom each name's value is. Names are used once in a plan, so there is
/// nothing to forget at a block's end.
#[derive(Debug, Default)]
pub(super) struct Sights(BTreeMap<String, Sight>);

impl Sights {
    /// From here on `name` is for these.
    pub(super) fn bind(&mut self, name: &str, sight: Sight) {
        self.0.insert(name.to_owned(), sight);
    }

    /// For whom an expression's value is.
    pub(super) fn of(&self, expr: &Expr) -> Sight {
        names_in(expr)
            .iter()
            .filter_map(|name| self.0.get(name))
            .fold(Sight::ANYONE, Sight::meet)
    }
}

impl Checker<'_> {
    /// For whom what a step yields is.
    pub(super) fn sight_of(&self, step: &Step, around: &Surroundings) -> Sight {
        let own = match &step.what {
            What::Call { tool, with } => self.given(tool, with),
            What::Let(expr) | What::Extract { from: expr, .. } => self.sights.of(expr),
            What::ForEach { list, gives, .. } => match gives {
                Some(gives) => self.sights.of(list).meet(&self.sights.of(gives)),
                None => self.sights.of(list),
            },
            // What its user was asked or shown is theirs, and the rest is nothing.
            What::AskUser { .. }
            | What::Confirm(_)
            | What::If { .. }
            | What::Delegate { .. }
            | What::Answer(_)
            | What::Fail(_) => Sight::ANYONE,
        };
        if self.rules.control {
            own.meet(&around.sight)
        } else {
            own
        }
    }

    /// For whom a tool's result is: what was asked for can tell as much.
    fn given(&self, tool: &str, with: &[(String, Expr)]) -> Sight {
        let Some(signature) = self.toolbox.get(tool) else {
            return Sight::ANYONE;
        };
        let asks = |name: &str| {
            let param = signature.param(name);
            self.rules.selection && param.is_some_and(|param| param.role.asks())
        };
        with.iter()
            .filter(|(name, _)| asks(name))
            .map(|(_, expr)| self.sights.of(expr))
            .fold(Sight::of(signature), |all, sight| all.meet(&sight))
    }

    /// Notes that these would see an argument, or what decides that a call
    /// happens, for whom it is not.
    pub(super) fn shown(&mut self, sight: &Sight, seers: &[Seer], what: Notice) {
        if let Some(unseen) = sight.unseen_by(seers) {
            self.notices.push(Notice {
                unseen: Some(unseen),
                ..what
            });
        }
    }

    /// Notes that a model would read what is not for it.
    pub(super) fn model_reads(&mut self, step: &Step, from: &Expr, level: Level) {
        let what = Notice {
            step: step.id.clone(),
            argument: None,
            level,
            from: names_in(from),
            unseen: None,
        };
        let model = Seer::Reader(READER_MODEL.to_owned());
        self.shown(&self.sights.of(from), &[model], what);
    }
}

/// Who gets to see what a call is given, as far as the plan says.
pub(super) fn seers(signature: &Signature, with: &[(String, Expr)]) -> Vec<Seer> {
    let mut seers = Vec::new();
    for reach in &signature.reaches {
        match reach {
            Reach::Reader(name) => seers.push(Seer::Reader(name.clone())),
            Reach::NamedBy(param) => {
                if let Some((_, expr)) = with.iter().find(|(name, _)| name == param) {
                    named(expr, param, &mut seers);
                }
            }
        }
    }
    seers
}

/// Those an argument names: by the plan's own words, or by what data will say.
fn named(expr: &Expr, param: &str, seers: &mut Vec<Seer>) {
    let by_data = Seer::NamedBy(param.to_owned());
    match expr {
        Expr::List(parts) => {
            for part in parts {
                named(part, param, seers);
            }
        }
        Expr::Record(fields) => {
            for (_, field) in fields {
                named(field, param, seers);
            }
        }
        Expr::Literal(_) => {
            if let Some(text) = literal_text(expr) {
                seers.push(Seer::Reader(text.to_owned()));
            }
        }
        Expr::Ref { .. } | Expr::Text(_) | Expr::Apply(..) | Expr::Over { .. } => {
            if !seers.contains(&by_data) {
                seers.push(by_data);
            }
        }
    }
}
