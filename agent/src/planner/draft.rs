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
/// The keys of a plan.
pub const KEYS: [&str; 3] = ["version", "summary", "steps"];
/// What a step can be, by the key that says so, and the keys that may stand beside it.
pub const KINDS: [(&str, &[&str]); 10] = [
    ("call", &["with"]),
    ("let", &[]),
    ("for_each", &["as", "at_most", "do", "gives"]),
    ("if", &["then", "else"]),
    ("extract", &["ask", "schema"]),
    ("ask_user", &["schema"]),
    ("confirm", &[]),
    ("delegate", &["tools"]),
    ("answer", &[]),
    ("fail", &[]),
];

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
    let Value::Object(mut plan) = value else {
        return Err(whole(ErrorKind::NotAPlan));
    };
    let mut reader = Reader::default();
    reader.known(&plan, &[], &KEYS);
    if plan.get("version").and_then(Value::as_u64) != Some(VERSION) {
        reader.error(ErrorKind::Version);
    }
    // What is read is taken out of the document, and not copied.
    let summary = match plan.remove("summary") {
        None => String::new(),
        Some(Value::String(summary)) => summary,
        Some(_) => reader.wrong(ErrorKind::NotAPlan).unwrap_or_default(),
    };
    let steps = match plan.remove("steps") {
        Some(Value::Array(steps)) => reader.steps(steps, 0),
        _ => reader.wrong(ErrorKind::NotAPlan).unwrap_or_default(),
    };
    if reader.errors.is_empty() {
        Ok(PlanDraft { summary, steps })
    } else {
        Err(reader.errors)
    }
}

/// What a complaint is about.
#[derive(Clone, Default)]
enum At {
    /// The plan.
    #[default]
    Whole,
    /// The step of this number, of which no more is known yet.
    Number(usize),
    /// The step of this name.
    Step(String),
}

impl At {
    fn told(&self) -> Option<String> {
        match self {
            Self::Whole => None,
            Self::Number(number) => Some(format!("#{number}")),
            Self::Step(name) => Some(name.clone()),
        }
    }
}

#[derive(Default)]
struct Reader {
    at: At,
    errors: Vec<PlanError>,
    count: usize,
}

impl Reader {
    fn error(&mut self, kind: ErrorKind) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(PlanError {
                step: self.at.told(),
                kind,
            });
        }
    }

    fn wrong<T>(&mut self, kind: ErrorKind) -> Option<T> {
        self.error(kind);
        None
    }

    /// Every key is one of these, or of those.
    fn known(&mut self, object: &Object, these: &[&str], those: &[&str]) {
        let is_known = |key: &str| these.contains(&key) || those.contains(&key);
        if object.keys().any(|key| !is_known(key)) {
            self.error(ErrorKind::UnknownKey);
        }
    }

    fn steps(&mut self, steps: Vec<Value>, depth: usize) -> Vec<Step> {
        if depth > BLOCK_DEPTH_MAX {
            self.error(ErrorKind::TooDeep);
            return Vec::new();
        }
        let mut read = Vec::new();
        for step in steps {
            self.count += 1;
            if self.count > STEPS_MAX {
                self.at = At::Whole;
                if self.errors.last().map(|error| error.kind) != Some(ErrorKind::TooManySteps) {
                    self.error(ErrorKind::TooManySteps);
                }
                return read;
            }
            let outer = std::mem::replace(&mut self.at, At::Number(self.count));
            if let Some(step) = self.step(step, depth) {
                read.push(step);
            }
            self.at = outer;
        }
        read
    }

    fn step(&mut self, step: Value, depth: usize) -> Option<Step> {
        let Value::Object(mut step) = step else {
            return self.wrong(ErrorKind::NotAPlan);
        };
        let Some(Value::String(id)) = step.get_mut("id") else {
            return self.wrong(ErrorKind::BadName);
        };
        if !is_name(id) {
            return self.wrong(ErrorKind::BadName);
        }
        let id = std::mem::take(id);
        self.at = At::Step(id.clone());
        let after = match step.get_mut("after") {
            None => Vec::new(),
            Some(value) => self.texts(value.take())?,
        };
        let what = self.what(step, depth)?;
        Some(Step { id, after, what })
    }

    fn what(&mut self, mut step: Object, depth: usize) -> Option<What> {
        let kind_of = |key: &String| KINDS.into_iter().find(|(kind, _)| kind == key);
        let mut kinds = step.keys().filter_map(kind_of);
        let (Some((kind, more)), None) = (kinds.next(), kinds.next()) else {
            return self.wrong(ErrorKind::NotAPlan);
        };
        self.known(&step, &["id", "after", kind], more);
        let value = step.get_mut(kind)?.take();
        match kind {
            "call" => {
                let tool = self.text(value)?;
                let with = match step.remove("with") {
                    None => Vec::new(),
                    Some(Value::Object(with)) => self.fields(with, 0)?,
                    Some(_) => return self.wrong(ErrorKind::NotAPlan),
                };
                Some(What::Call { tool, with })
            }
            "let" => Some(What::Let(self.expr(value, 0)?)),
            "for_each" => {
                let at_most = match step.get("at_most") {
                    None => None,
                    Some(bound) => match bound.as_u64().and_then(|bound| u32::try_from(bound).ok())
                    {
                        Some(bound) => Some(bound),
                        None => return self.wrong(ErrorKind::NotAPlan),
                    },
                };
                let gives = match step.remove("gives") {
                    None => None,
                    Some(gives) => Some(self.expr(gives, 0)?),
                };
                Some(What::ForEach {
                    list: self.expr(value, 0)?,
                    name: self.name(step.remove("as"))?,
                    at_most,
                    steps: self.block(step.remove("do"), depth)?,
                    gives,
                })
            }
            "if" => Some(What::If {
                test: self.expr(value, 0)?,
                then: self.block(step.remove("then"), depth)?,
                or_else: match step.remove("else") {
                    None => Vec::new(),
                    other => self.block(other, depth)?,
                },
            }),
            "extract" => Some(What::Extract {
                from: self.expr(value, 0)?,
                ask: self.text(step.remove("ask").unwrap_or_default())?,
                schema: self.schema(step.get("schema"))?,
            }),
            "ask_user" => Some(What::AskUser {
                question: self.text(value)?,
                schema: match step.get("schema") {
                    None => Kind::Text.at(Level::User),
                    other => self.schema(other)?,
                },
            }),
            "confirm" => Some(What::Confirm(self.expr(value, 0)?)),
            "delegate" => Some(What::Delegate {
                from: self.expr(value, 0)?,
                tools: self.texts(step.remove("tools").unwrap_or_default())?,
            }),
            "answer" => Some(What::Answer(self.expr(value, 0)?)),
            _ => Some(What::Fail(self.text(value)?)),
        }
    }

    fn block(&mut self, steps: Option<Value>, depth: usize) -> Option<Vec<Step>> {
        match steps {
            Some(Value::Array(steps)) => Some(self.steps(steps, depth + 1)),
            _ => self.wrong(ErrorKind::NotAPlan),
        }
    }

    fn text(&mut self, value: Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text),
            _ => self.wrong(ErrorKind::NotAPlan),
        }
    }

    fn texts(&mut self, value: Value) -> Option<Vec<String>> {
        let Value::Array(values) = value else {
            return self.wrong(ErrorKind::NotAPlan);
        };
        values.into_iter().map(|value| self.text(value)).collect()
    }

    fn name(&mut self, value: Option<Value>) -> Option<String> {
        match value {
            Some(Value::String(name)) if is_name(&name) => Some(name),
            _ => self.wrong(ErrorKind::BadName),
        }
    }

    fn fields(&mut self, fields: Object, depth: usize) -> Option<Vec<(String, Expr)>> {
        fields
            .into_iter()
            .map(|(name, value)| Some((name, self.expr(value, depth)?)))
            .collect()
    }

    fn exprs(&mut self, values: Vec<Value>, depth: usize) -> Option<Vec<Expr>> {
        values
            .into_iter()
            .map(|value| self.expr(value, depth))
            .collect()
    }

    fn expr(&mut self, value: Value, depth: usize) -> Option<Expr> {
        if depth > EXPR_DEPTH_MAX {
            return self.wrong(ErrorKind::TooDeep);
        }
        let raw = match value {
            Value::Null => Raw::Nothing,
            Value::Bool(truth) => Raw::Truth(truth),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => Raw::Whole(whole),
                (None, Some(number)) if number.is_finite() => Raw::Number(number),
                _ => return self.wrong(ErrorKind::WrongType),
            },
            Value::String(text) => Raw::Text(text),
            Value::Array(items) => return Some(Expr::List(self.exprs(items, depth + 1)?)),
            Value::Object(object) => return self.compound(object, depth),
        };
        Some(Expr::Literal(raw))
    }

    /// An object stands for what its first special key says.
    fn compound(&mut self, mut object: Object, depth: usize) -> Option<Expr> {
        let depth = depth + 1;
        if let Some(reference) = object.get("$") {
            self.known(&object, &[], &["$"]);
            let parsed = reference.as_str().and_then(parse_reference);
            return match parsed {
                Some((name, path)) => Some(Expr::Ref { name, path }),
                None => self.wrong(ErrorKind::BadReference),
            };
        }
        if let Some(fields) = object.get_mut("record").map(Value::take) {
            self.known(&object, &[], &["record"]);
            return match fields {
                Value::Object(fields) => Some(Expr::Record(self.fields(fields, depth)?)),
                _ => self.wrong(ErrorKind::NotAPlan),
            };
        }
        if let Some(parts) = object.get_mut("text").map(Value::take) {
            self.known(&object, &[], &["text"]);
            return match parts {
                Value::Array(parts) => Some(Expr::Text(self.exprs(parts, depth)?)),
                _ => self.wrong(ErrorKind::NotAPlan),
            };
        }
        let Some(function) = object.get("fn").and_then(Value::as_str) else {
            return self.wrong(ErrorKind::NotAPlan);
        };
        let (builtin, over) = (Builtin::parse(function), Over::parse(function));
        if let Some(builtin) = builtin {
            self.known(&object, &[], &["fn", "of"]);
            return match object.remove("of") {
                Some(Value::Array(of)) => Some(Expr::Apply(builtin, self.exprs(of, depth)?)),
                _ => self.wrong(ErrorKind::WrongCount),
            };
        }
        if let Some(over) = over {
            self.known(&object, &[], &["fn", "of", "as", "by"]);
            let list = self.expr(object.remove("of").unwrap_or_default(), depth)?;
            let name = self.name(object.remove("as"))?;
            let body = self.expr(object.remove("by").unwrap_or_default(), depth)?;
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
pub fn parse_reference(text: &str) -> Option<(String, Vec<Hop>)> {
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
