//! The type of an expression.

use alloc::{string::String, vec::Vec};

use super::{Checker, is_name};
use crate::plan::{
    draft::{Expr, Hop},
    error::ErrorKind,
    kind::{Kind, Type},
    level::Level,
    limits::{ARGUMENTS_MAX, EXPR_DEPTH_MAX, EXPR_PARTS_MAX, FIELDS_MAX, LITERAL_BYTES_MAX},
    value::Raw,
};

/// Longer texts are no choices, whatever stands in them.
const CHOICE_BYTES_MAX: usize = 128;

impl Checker<'_> {
    /// The type; `None` if something is wrong, which is told by then.
    pub(super) fn type_of(&mut self, expr: &Expr) -> Option<Type> {
        self.type_at(expr, 0)
    }

    fn wrong(&mut self, kind: ErrorKind) -> Option<Type> {
        self.error(kind);
        None
    }

    fn type_at(&mut self, expr: &Expr, depth: usize) -> Option<Type> {
        self.parts += 1;
        if depth > EXPR_DEPTH_MAX || self.parts > EXPR_PARTS_MAX {
            return self.wrong(if depth > EXPR_DEPTH_MAX {
                ErrorKind::TooDeep
            } else {
                ErrorKind::TooLong
            });
        }
        match expr {
            Expr::Literal(raw) => self.literal(raw),
            Expr::Ref { name, path } => {
                if path.len() > EXPR_DEPTH_MAX && self.known(name).is_some() {
                    return self.wrong(ErrorKind::TooDeep);
                }
                match self.known(name).map(|kind| along(kind, path)) {
                    None => {
                        self.unknown(name);
                        None
                    }
                    Some(None) => self.wrong(ErrorKind::UnknownField),
                    Some(kind) => kind,
                }
            }
            Expr::List(items) => {
                let mut all = Kind::Never.at(Level::User);
                for item in items {
                    let kind = self.type_at(item, depth + 1)?;
                    match all.join(&kind) {
                        Some(joined) => all = joined,
                        None => return self.wrong(ErrorKind::WrongType),
                    }
                }
                Some(Kind::list(all).at(Level::User))
            }
            Expr::Record(fields) => {
                if fields.len() > FIELDS_MAX {
                    return self.wrong(ErrorKind::TooLong);
                }
                let mut kinds: Vec<(String, Type)> = Vec::with_capacity(fields.len());
                for (name, field) in fields {
                    if !is_name(name) || kinds.iter().any(|(known, _)| known == name) {
                        return self.wrong(ErrorKind::BadName);
                    }
                    kinds.push((name.clone(), self.type_at(field, depth + 1)?));
                }
                Some(Kind::Record(kinds).at(Level::User))
            }
            Expr::Text(parts) => {
                let mut level = Level::User;
                for part in parts {
                    let kind = self.type_at(part, depth + 1)?;
                    let plain = kind.is_text() || kind.is_number() || kind.kind == Kind::Truth;
                    if !plain {
                        return self.wrong(ErrorKind::WrongType);
                    }
                    level = level.min(kind.worst());
                }
                Some(Kind::Text.at(level))
            }
            Expr::Apply(builtin, arguments) => {
                let (few, many) = builtin.count();
                if arguments.len() < few || arguments.len() > many.min(ARGUMENTS_MAX) {
                    return self.wrong(ErrorKind::WrongCount);
                }
                let mut kinds = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    kinds.push(self.type_at(argument, depth + 1)?);
                }
                match builtin.yields(&kinds) {
                    Some(kind) => Some(kind),
                    None => self.wrong(ErrorKind::WrongType),
                }
            }
            Expr::Over {
                over,
                list,
                name,
                body,
            } => {
                let list = self.type_at(list, depth + 1)?;
                let Kind::List(item) = &list.kind else {
                    return self.wrong(ErrorKind::NotAList);
                };
                if !is_name(name) {
                    return self.wrong(ErrorKind::BadName);
                }
                // An item's name may be used again beside, never inside.
                if self.names.contains(name) || self.known(name).is_some() {
                    return self.wrong(ErrorKind::NameTaken);
                }
                let item = item.at_most(list.level);
                self.scope.push((name.clone(), item.clone()));
                let body = self.type_at(body, depth + 1);
                self.scope.pop();
                let body = body?;
                if over.tests() && !matches!(body.kind, Kind::Truth | Kind::Never) {
                    return self.wrong(ErrorKind::NotATruth);
                }
                match over.yields(&list, &item, &body, self.rules.selection) {
                    Some(kind) => Some(kind),
                    None => self.wrong(ErrorKind::WrongType),
                }
            }
        }
    }

    fn literal(&mut self, raw: &Raw) -> Option<Type> {
        let kind = match raw {
            Raw::Nothing => Kind::Nothing,
            Raw::Truth(_) => Kind::Truth,
            Raw::Whole(_) => Kind::Whole,
            Raw::Number(number) if number.is_finite() => Kind::Number,
            Raw::Number(_) => return self.wrong(ErrorKind::WrongType),
            Raw::Text(text) if text.len() > LITERAL_BYTES_MAX => {
                return self.wrong(ErrorKind::TooLong);
            }
            Raw::Text(text) if text.len() <= CHOICE_BYTES_MAX => {
                Kind::Choice(alloc::vec![text.clone()])
            }
            Raw::Text(_) => Kind::Text,
            // A list or a record is written as an expression of its parts.
            Raw::List(_) | Raw::Record(_) => return self.wrong(ErrorKind::WrongType),
        };
        Some(kind.at(Level::User))
    }

    /// A form of an answer must be one that can be asked for.
    pub(super) fn schema(&mut self, schema: &Type) {
        if !is_schema(schema, 0) {
            self.error(ErrorKind::BadSchema);
        }
    }
}

/// The type of a part; `None` if there is no such part.
fn along(kind: &Type, path: &[Hop]) -> Option<Type> {
    let mut part = kind;
    // A part is trusted no further than what it is a part of.
    let mut level = Level::User;
    for hop in path {
        level = level.min(part.level);
        part = match (hop, &part.kind) {
            (_, Kind::Never) => break,
            (Hop::Field(name), Kind::Record(fields)) => {
                let (_, field) = fields.iter().find(|(known, _)| known == name)?;
                field
            }
            (Hop::At(_), Kind::List(item)) => item,
            _ => return None,
        };
    }
    Some(part.at_most(level))
}

fn is_schema(schema: &Type, depth: usize) -> bool {
    depth <= 4
        && match &schema.kind {
            Kind::Never | Kind::Nothing => false,
            Kind::Truth | Kind::Whole | Kind::Number | Kind::Text | Kind::Path | Kind::Time => true,
            Kind::Choice(words) => {
                !words.is_empty()
                    && words.len() <= FIELDS_MAX
                    && words.iter().all(|word| word.len() <= CHOICE_BYTES_MAX)
            }
            Kind::List(item) | Kind::Optional(item) => is_schema(item, depth + 1),
            Kind::Record(fields) => {
                !fields.is_empty()
                    && fields.len() <= FIELDS_MAX
                    && fields.iter().enumerate().all(|(place, (name, field))| {
                        is_name(name)
                            && is_schema(field, depth + 1)
                            && !fields.iter().take(place).any(|(known, _)| known == name)
                    })
            }
        }
}
