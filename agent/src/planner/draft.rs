//! Reading a proposal: JSON in, a tree the core checks out.
//!
//! Everything not understood is an error; nothing is guessed, completed or
//! taken for a command. The form is described in `docs/PLANS.md`.

use hermitcrab_core::plan::{
    ErrorKind, Expr, Hop, Kind, Level, PlanDraft, PlanError, Raw, Step, Type, What,
    builtin::{Builtin, Over},
    check::is_name,
    limits::{BLOCK_DEPTH_MAX, ERRORS_MAX, EXPR_DEPTH_MAX, STEPS_MAX},
};
use serde_json::{Map, Value};

use super::json::{Strict, TWICE};

/// Bytes of a proposal that are looked at.
pub const DRAFT_BYTES_MAX: usize = 1 << 20;
/// The version of the form.
pub const VERSION: u64 = 1;

type Object = Map<String, Value>;

/// Reads a proposal.
///
/// # Errors
/// What is wrong with it, a bounded number of things.
pub fn read(text: &[u8]) -> Result<PlanDraft, Vec<PlanError>> {
    let whole = |kind| vec![PlanError { step: None, kind }];
    if text.len() > DRAFT_BYTES_MAX {
        return Err(whole(ErrorKind::TooLong));
    }
    let Strict(value) = serde_json::from_slice(text).map_err(|error| {
        let message = error.to_string();
        whole(if message.starts_with(TWICE) {
            ErrorKind::TwiceTheSameKey
        } else if message.starts_with("recursion limit") {
            ErrorKind::TooDeep
        } else {
            ErrorKind::NotJson
        })
    })?;
    let Value::Object(plan) = value else {
        return Err(whole(ErrorKind::NotAPlan));
    };
    let mut reader = Reader::default();
    reader.known(&plan, &["version", "summary", "steps"]);
    if plan.get("version").and_then(Value::as_u64) != Some(VERSION) {
        reader.error(ErrorKind::Version);
    }
    let summary = match plan.get("summary") {
        None => String::new(),
        Some(Value::String(summary)) => summary.clone(),
        Some(_) => reader.wrong(ErrorKind::NotAPlan).unwrap_or_default(),
    };
    let steps = match plan.get("steps") {
        Some(Value::Array(steps)) => reader.steps(steps, 0),
        _ => reader.wrong(ErrorKind::NotAPlan).unwrap_or_default(),
    };
    if reader.errors.is_empty() {
        Ok(PlanDraft { summary, steps })
    } else {
        Err(reader.errors)
    }
}

#[derive(Default)]
struct Reader {
    at: Option<String>,
    errors: Vec<PlanError>,
    count: usize,
}

impl Reader {
    fn error(&mut self, kind: ErrorKind) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(PlanError {
                step: self.at.clone(),
                kind,
            });
        }
    }

    fn wrong<T>(&mut self, kind: ErrorKind) -> Option<T> {
        self.error(kind);
        None
    }

    fn known(&mut self, object: &Object, keys: &[&str]) {
        if object.keys().any(|key| !keys.contains(&key.as_str())) {
            self.error(ErrorKind::UnknownKey);
        }
    }

    fn steps(&mut self, steps: &[Value], depth: usize) -> Vec<Step> {
        if depth > BLOCK_DEPTH_MAX {
            self.error(ErrorKind::TooDeep);
            return Vec::new();
        }
        let mut read = Vec::new();
        for step in steps {
            self.count += 1;
            if self.count > STEPS_MAX {
                self.at = None;
                if self.errors.last().map(|error| error.kind) != Some(ErrorKind::TooManySteps) {
                    self.error(ErrorKind::TooManySteps);
                }
                return read;
            }
            let outer = self.at.clone();
            self.at = Some(format!("#{}", self.count));
            if let Some(step) = self.step(step, depth) {
                read.push(step);
            }
            self.at = outer;
        }
        read
    }

    fn step(&mut self, step: &Value, depth: usize) -> Option<Step> {
        let Value::Object(step) = step else {
            return self.wrong(ErrorKind::NotAPlan);
        };
        let Some(id) = step.get("id").and_then(Value::as_str) else {
            return self.wrong(ErrorKind::BadName);
        };
        if !is_name(id) {
            return self.wrong(ErrorKind::BadName);
        }
        self.at = Some(id.to_owned());
        let after = match step.get("after") {
            None => Vec::new(),
            Some(value) => self.texts(value)?,
        };
        let what = self.what(step, depth)?;
        Some(Step {
            id: id.to_owned(),
            after,
            what,
        })
    }

    fn what(&mut self, step: &Object, depth: usize) -> Option<What> {
        const KINDS: [&str; 10] = [
            "call", "let", "for_each", "if", "extract", "ask_user", "confirm", "delegate",
            "answer", "fail",
        ];
        let mut kinds = KINDS.iter().filter(|kind| step.contains_key(**kind));
        let (Some(kind), None) = (kinds.next(), kinds.next()) else {
            return self.wrong(ErrorKind::NotAPlan);
        };
        let value = step.get(*kind)?;
        let allow = |more: &[&'static str]| {
            let mut keys = vec!["id", "after", *kind];
            keys.extend_from_slice(more);
            keys
        };
        match *kind {
            "call" => {
                self.known(step, &allow(&["with"]));
                let tool = self.text(value)?;
                let with = match step.get("with") {
                    None => Vec::new(),
                    Some(Value::Object(with)) => self.fields(with, 0)?,
                    Some(_) => return self.wrong(ErrorKind::NotAPlan),
                };
                Some(What::Call { tool, with })
            }
            "let" => {
                self.known(step, &allow(&[]));
                Some(What::Let(self.expr(value, 0)?))
            }
            "for_each" => {
                self.known(step, &allow(&["as", "at_most", "do", "gives"]));
                let at_most = match step.get("at_most") {
                    None => None,
                    Some(bound) => match bound.as_u64().and_then(|bound| u32::try_from(bound).ok())
                    {
                        Some(bound) => Some(bound),
                        None => return self.wrong(ErrorKind::NotAPlan),
                    },
                };
                let gives = match step.get("gives") {
                    None => None,
                    Some(gives) => Some(self.expr(gives, 0)?),
                };
                Some(What::ForEach {
                    list: self.expr(value, 0)?,
                    name: self.name(step.get("as"))?,
                    at_most,
                    steps: self.block(step.get("do"), depth)?,
                    gives,
                })
            }
            "if" => {
                self.known(step, &allow(&["then", "else"]));
                Some(What::If {
                    test: self.expr(value, 0)?,
                    then: self.block(step.get("then"), depth)?,
                    or_else: match step.get("else") {
                        None => Vec::new(),
                        other => self.block(other, depth)?,
                    },
                })
            }
            "extract" => {
                self.known(step, &allow(&["ask", "schema"]));
                Some(What::Extract {
                    from: self.expr(value, 0)?,
                    ask: self.text(step.get("ask").unwrap_or(&Value::Null))?,
                    schema: self.schema(step.get("schema"))?,
                })
            }
            "ask_user" => {
                self.known(step, &allow(&["schema"]));
                Some(What::AskUser {
                    question: self.text(value)?,
                    schema: match step.get("schema") {
                        None => Kind::Text.at(Level::User),
                        other => self.schema(other)?,
                    },
                })
            }
            "confirm" => {
                self.known(step, &allow(&[]));
                Some(What::Confirm(self.expr(value, 0)?))
            }
            "delegate" => {
                self.known(step, &allow(&["tools"]));
                Some(What::Delegate {
                    from: self.expr(value, 0)?,
                    tools: self.texts(step.get("tools").unwrap_or(&Value::Null))?,
                })
            }
            "answer" => {
                self.known(step, &allow(&[]));
                Some(What::Answer(self.expr(value, 0)?))
            }
            _ => {
                self.known(step, &allow(&[]));
                Some(What::Fail(self.text(value)?))
            }
        }
    }

    fn block(&mut self, steps: Option<&Value>, depth: usize) -> Option<Vec<Step>> {
        match steps {
            Some(Value::Array(steps)) => Some(self.steps(steps, depth + 1)),
            _ => self.wrong(ErrorKind::NotAPlan),
        }
    }

    fn text(&mut self, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text.clone()),
            _ => self.wrong(ErrorKind::NotAPlan),
        }
    }

    fn texts(&mut self, value: &Value) -> Option<Vec<String>> {
        let Value::Array(values) = value else {
            return self.wrong(ErrorKind::NotAPlan);
        };
        values.iter().map(|value| self.text(value)).collect()
    }

    fn name(&mut self, value: Option<&Value>) -> Option<String> {
        match value.and_then(Value::as_str) {
            Some(name) if is_name(name) => Some(name.to_owned()),
            _ => self.wrong(ErrorKind::BadName),
        }
    }

    fn fields(&mut self, fields: &Object, depth: usize) -> Option<Vec<(String, Expr)>> {
        fields
            .iter()
            .map(|(name, value)| Some((name.clone(), self.expr(value, depth)?)))
            .collect()
    }

    fn exprs(&mut self, values: &[Value], depth: usize) -> Option<Vec<Expr>> {
        values.iter().map(|value| self.expr(value, depth)).collect()
    }

    fn expr(&mut self, value: &Value, depth: usize) -> Option<Expr> {
        if depth > EXPR_DEPTH_MAX {
            return self.wrong(ErrorKind::TooDeep);
        }
        let raw = match value {
            Value::Null => Raw::Nothing,
            Value::Bool(truth) => Raw::Truth(*truth),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => Raw::Whole(whole),
                (None, Some(number)) if number.is_finite() => Raw::Number(number),
                _ => return self.wrong(ErrorKind::WrongType),
            },
            Value::String(text) => Raw::Text(text.clone()),
            Value::Array(items) => return Some(Expr::List(self.exprs(items, depth + 1)?)),
            Value::Object(object) => return self.compound(object, depth),
        };
        Some(Expr::Literal(raw))
    }

    /// An object stands for what its first special key says.
    fn compound(&mut self, object: &Object, depth: usize) -> Option<Expr> {
        let depth = depth + 1;
        if let Some(reference) = object.get("$") {
            self.known(object, &["$"]);
            let parsed = reference.as_str().and_then(parse_reference);
            return match parsed {
                Some((name, path)) => Some(Expr::Ref { name, path }),
                None => self.wrong(ErrorKind::BadReference),
            };
        }
        if let Some(fields) = object.get("record") {
            self.known(object, &["record"]);
            return match fields {
                Value::Object(fields) => Some(Expr::Record(self.fields(fields, depth)?)),
                _ => self.wrong(ErrorKind::NotAPlan),
            };
        }
        if let Some(parts) = object.get("text") {
            self.known(object, &["text"]);
            return match parts {
                Value::Array(parts) => Some(Expr::Text(self.exprs(parts, depth)?)),
                _ => self.wrong(ErrorKind::NotAPlan),
            };
        }
        let Some(function) = object.get("fn").and_then(Value::as_str) else {
            return self.wrong(ErrorKind::NotAPlan);
        };
        if let Some(builtin) = Builtin::parse(function) {
            self.known(object, &["fn", "of"]);
            return match object.get("of") {
                Some(Value::Array(of)) => Some(Expr::Apply(builtin, self.exprs(of, depth)?)),
                _ => self.wrong(ErrorKind::WrongCount),
            };
        }
        if let Some(over) = Over::parse(function) {
            self.known(object, &["fn", "of", "as", "by"]);
            let list = self.expr(object.get("of").unwrap_or(&Value::Null), depth)?;
            let name = self.name(object.get("as"))?;
            let body = self.expr(object.get("by").unwrap_or(&Value::Null), depth)?;
            return Some(Expr::Over {
                over,
                list: Box::new(list),
                name,
                body: Box::new(body),
            });
        }
        self.wrong(ErrorKind::UnknownFunction)
    }

    fn schema(&mut self, value: Option<&Value>) -> Option<Type> {
        match value.and_then(|value| schema_type(value, 0)) {
            Some(kind) => Some(kind),
            None => self.wrong(ErrorKind::BadSchema),
        }
    }
}

/// `name`, `name.field`, `name.list[0].field`.
fn parse_reference(text: &str) -> Option<(String, Vec<Hop>)> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, mut rest) = text.split_at_checked(end)?;
    let mut path = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (field, tail) = after.split_at_checked(end)?;
            path.push(Hop::Field(is_name(field).then(|| field.to_owned())?));
            rest = tail;
        } else {
            let (place, tail) = rest.strip_prefix('[')?.split_once(']')?;
            let plain = !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_digit());
            path.push(Hop::At(plain.then(|| place.parse().ok()).flatten()?));
            rest = tail;
        }
    }
    is_name(name).then(|| (name.to_owned(), path))
}

/// A type as a plan writes it: `"text"`, `["text"]` for a list, `{"a": ...}`
/// for a record, `{"one_of": [...]}` for a choice, `{"maybe": ...}`.
pub fn schema_type(value: &Value, depth: usize) -> Option<Type> {
    if depth > 8 {
        return None;
    }
    let kind = match value {
        Value::String(word) => match word.as_str() {
            "text" => Kind::Text,
            "whole" => Kind::Whole,
            "number" => Kind::Number,
            "truth" => Kind::Truth,
            "path" => Kind::Path,
            "time" => Kind::Time,
            _ => return None,
        },
        Value::Array(items) => match items.as_slice() {
            [item] => Kind::list(schema_type(item, depth + 1)?),
            _ => return None,
        },
        Value::Object(object) => match (object.get("one_of"), object.get("maybe"), object.len()) {
            (Some(Value::Array(words)), None, 1) => Kind::Choice(
                words
                    .iter()
                    .map(|word| word.as_str().map(str::to_owned))
                    .collect::<Option<_>>()?,
            ),
            (None, Some(item), 1) => Kind::Optional(Box::new(schema_type(item, depth + 1)?)),
            (None, None, 1..) => Kind::Record(
                object
                    .iter()
                    .map(|(name, field)| Some((name.clone(), schema_type(field, depth + 1)?)))
                    .collect::<Option<_>>()?,
            ),
            _ => return None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => return None,
    };
    Some(kind.at(Level::User))
}
