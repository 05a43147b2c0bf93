//! What a server asks a person in the midst of a call (`elicitation/create`, by a form).
//!
//! A form is a few named fields of simple kinds. Each is put as a question of its own, in the
//! server's words and said to be its words; what is typed is read by the kind of the field, and
//! goes to the server and nowhere else. Pure.

use serde_json::{Map, Number, Value};

/// Fields of one form.
const FIELDS_MAX: usize = 16;
/// Letters of what a server says before its fields, and of what it says of one.
const MESSAGE_LETTERS_MAX: usize = 2000;
const FIELD_LETTERS_MAX: usize = 400;
/// Words one field lets its user choose from.
const CHOICES_MAX: usize = 64;
/// Bytes of one answer.
const ANSWER_BYTES_MAX: usize = 16 << 10;
/// What leaves out a field that need not be filled in.
pub const LEAVES_OUT: &str = "-";

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// What it is about, in the server's words.
    pub message: String,
    /// What is to be filled in, in the server's order.
    pub fields: Vec<Field>,
}

/// One thing to fill in.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    name: String,
    says: String,
    kind: Kind,
    is_required: bool,
    default: Option<Value>,
}

/// What a field takes.
#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Text {
        least: u64,
        most: u64,
    },
    Number {
        is_whole: bool,
        least: Option<f64>,
        most: Option<f64>,
    },
    Truth,
    One(Vec<Choice>),
    Some {
        of: Vec<Choice>,
        least: u64,
        most: u64,
    },
}

/// One of the words to choose from, and what it is sent as.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Choice {
    says: String,
    is: String,
}

impl Form {
    /// Reads a form: the properties in their order, and which of them are required.
    ///
    /// # Errors
    /// Why nobody can be asked that.
    pub fn read<'v>(
        message: &str,
        properties: impl IntoIterator<Item = (&'v str, &'v Value)>,
        required: &[String],
    ) -> Result<Self, String> {
        if message.chars().count() > MESSAGE_LETTERS_MAX {
            return Err(format!("it says more than {MESSAGE_LETTERS_MAX} letters"));
        }
        let mut fields = Vec::new();
        for (name, schema) in properties {
            if fields.len() >= FIELDS_MAX {
                return Err(format!("it has more than {FIELDS_MAX} fields"));
            }
            let is_required = required.iter().any(|known| known == name);
            fields.push(Field::read(name, schema, is_required)?);
        }
        Ok(Self {
            message: message.to_owned(),
            fields,
        })
    }

    /// What is put first: who asks, what, and what would be filled in.
    #[must_use]
    pub fn opening(&self, server: &str) -> String {
        let mut said = format!("the server `{server}` asks: {}", in_a_line(&self.message));
        if !self.fields.is_empty() {
            let names = self.fields.iter().map(|field| in_a_line(&field.name));
            let names: Vec<String> = names.collect();
            said.push_str(&format!(
                " (to be filled in, and sent to that server: {})",
                names.join(", ")
            ));
        }
        said
    }
}

impl Field {
    fn read(name: &str, schema: &Value, is_required: bool) -> Result<Self, String> {
        let text = |key: &str| schema[key].as_str().unwrap_or_default().trim();
        let mut says = match (text("title"), text("description")) {
            ("", "") => String::new(),
            ("", one) | (one, "") => one.to_owned(),
            (title, more) => format!("{title}, {more}"),
        };
        if says.chars().count() > FIELD_LETTERS_MAX || name.chars().count() > FIELD_LETTERS_MAX {
            return Err(format!(
                "a field says more than {FIELD_LETTERS_MAX} letters"
            ));
        }
        if says.eq_ignore_ascii_case(name) {
            says.clear();
        }
        Ok(Self {
            kind: kind(name, schema)?,
            default: schema
                .get("default")
                .filter(|value| !value.is_null())
                .cloned(),
            name: name.to_owned(),
            says,
            is_required,
        })
    }

    /// What it is called in the answer.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The question, in a line.
    #[must_use]
    pub fn question(&self, server: &str) -> String {
        let says = match self.says.is_empty() {
            true => String::new(),
            false => format!(": {}", in_a_line(&self.says)),
        };
        let takes = match &self.kind {
            Kind::Text { .. } => "a text",
            Kind::Number { is_whole: true, .. } => "a whole number",
            Kind::Number { .. } => "a number",
            Kind::Truth => "yes or no",
            Kind::One(_) => "one of these",
            Kind::Some { .. } => "any of these, with commas between them",
        };
        let out = match (&self.default, self.is_required) {
            (Some(default), _) => format!("; `{LEAVES_OUT}` is {}", shown(default)),
            (None, false) => format!("; `{LEAVES_OUT}` leaves it out"),
            (None, true) => String::new(),
        };
        format!(
            "the server `{server}` asks for `{}`{says} ({takes}{out})",
            in_a_line(&self.name)
        )
    }

    /// What there is to choose from, if that is so.
    #[must_use]
    pub fn choices(&self) -> Option<Vec<String>> {
        match &self.kind {
            Kind::Text { .. } | Kind::Number { .. } => None,
            Kind::Truth => Some(vec!["yes".to_owned(), "no".to_owned()]),
            Kind::One(choices) | Kind::Some { of: choices, .. } => {
                Some(choices.iter().map(|choice| choice.says.clone()).collect())
            }
        }
    }

    /// What was typed, as it is sent; `None` where it is left out.
    ///
    /// # Errors
    /// What is wrong with it, in words that follow `it is`.
    pub fn answered(&self, typed: &str) -> Result<Option<Value>, String> {
        let typed = typed.trim();
        if typed.len() > ANSWER_BYTES_MAX {
            return Err(format!("longer than {ANSWER_BYTES_MAX} bytes"));
        }
        if typed == LEAVES_OUT && (self.default.is_some() || !self.is_required) {
            return Ok(self.default.clone());
        }
        let value = match &self.kind {
            Kind::Text { least, most } => {
                let letters = u64::try_from(typed.chars().count()).unwrap_or(u64::MAX);
                if letters < *least {
                    return Err(format!("shorter than {least} letters"));
                }
                if letters > *most {
                    return Err(format!("longer than {most} letters"));
                }
                Value::from(typed)
            }
            Kind::Number {
                is_whole,
                least,
                most,
            } => number(typed, *is_whole, (*least, *most))?,
            Kind::Truth => match typed.to_ascii_lowercase().as_str() {
                "yes" | "y" | "true" => true.into(),
                "no" | "n" | "false" => false.into(),
                _ => return Err("neither `yes` nor `no`".to_owned()),
            },
            Kind::One(choices) => picked(choices, typed)?.into(),
            Kind::Some { of, least, most } => {
                let words = typed.split(',').map(str::trim);
                let mut all: Vec<&str> = Vec::new();
                for word in words.filter(|word| !word.is_empty()) {
                    let one = picked(of, word)?;
                    if !all.contains(&one) {
                        all.push(one);
                    }
                }
                let count = u64::try_from(all.len()).unwrap_or(u64::MAX);
                if count < *least || count > *most {
                    return Err(format!("not between {least} and {most} of them"));
                }
                all.into()
            }
        };
        Ok(Some(value))
    }
}

/// A text of several lines in one, which shows where they were.
fn in_a_line(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines.join(" / ")
}

/// A value in a line.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{}`", in_a_line(text)),
        Value::Bool(true) => "`yes`".to_owned(),
        Value::Bool(false) => "`no`".to_owned(),
        other => format!("`{other}`"),
    }
}

fn kind(name: &str, schema: &Value) -> Result<Kind, String> {
    let bound = |key: &str| schema[key].as_u64();
    if let Some(choices) = choices(schema)? {
        return Ok(Kind::One(choices));
    }
    Ok(match schema["type"].as_str() {
        Some("string") => Kind::Text {
            least: bound("minLength").unwrap_or(0),
            most: bound("maxLength").unwrap_or(u64::MAX),
        },
        Some(kind @ ("number" | "integer")) => Kind::Number {
            is_whole: kind == "integer",
            least: schema["minimum"].as_f64(),
            most: schema["maximum"].as_f64(),
        },
        Some("boolean") => Kind::Truth,
        Some("array") => Kind::Some {
            of: choices(&schema["items"])?
                .ok_or_else(|| format!("the field `{name}` is of no simple kind"))?,
            least: bound("minItems").unwrap_or(0),
            most: bound("maxItems").unwrap_or(u64::MAX),
        },
        _ => return Err(format!("the field `{name}` is of no simple kind")),
    })
}

/// The words a field lists, in each of the ways the protocol has for that.
fn choices(schema: &Value) -> Result<Option<Vec<Choice>>, String> {
    let titled = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    let listed: Vec<Choice> = if let Some(titled) = titled {
        let one = |one: &Value| {
            let is = one["const"].as_str()?.to_owned();
            let says = one["title"].as_str().unwrap_or(&is).to_owned();
            Some(Choice { says, is })
        };
        titled.iter().filter_map(one).collect()
    } else if let Some(plain) = schema["enum"].as_array() {
        let names = schema["enumNames"].as_array();
        let one = |(at, is): (usize, &Value)| {
            let is = is.as_str()?.to_owned();
            let name = names.and_then(|names| names.get(at)?.as_str());
            let says = name.unwrap_or(&is).to_owned();
            Some(Choice { says, is })
        };
        plain.iter().enumerate().filter_map(one).collect()
    } else {
        return Ok(None);
    };
    let is_long = |choice: &Choice| choice.says.chars().count() > FIELD_LETTERS_MAX;
    if listed.is_empty() || listed.len() > CHOICES_MAX || listed.iter().any(is_long) {
        return Err("a field lists no words, or too many, or too long ones".to_owned());
    }
    Ok(Some(listed))
}

/// What a word of the list is sent as; a number picks one, too.
fn picked<'c>(choices: &'c [Choice], typed: &str) -> Result<&'c str, String> {
    let named = choices
        .iter()
        .find(|choice| choice.says == typed || choice.is == typed);
    let numbered = || {
        let number = typed.parse::<usize>().ok()?;
        choices.get(number.checked_sub(1)?)
    };
    named
        .or_else(numbered)
        .map(|choice| &*choice.is)
        .ok_or_else(|| "none of those that are listed".to_owned())
}

fn number(
    typed: &str,
    is_whole: bool,
    (least, most): (Option<f64>, Option<f64>),
) -> Result<Value, String> {
    let whole = typed.parse::<i64>().ok();
    let value = match (whole, is_whole) {
        (Some(whole), _) => Some(Number::from(whole)),
        (None, true) => None,
        (None, false) => typed.parse::<f64>().ok().and_then(Number::from_f64),
    };
    let kind = if is_whole {
        "a whole number"
    } else {
        "a number"
    };
    let value = value.ok_or_else(|| format!("not {kind}"))?;
    let is = value.as_f64().unwrap_or(f64::NAN);
    if least.is_some_and(|least| is < least) {
        return Err(format!("less than {}", least.unwrap_or_default()));
    }
    if most.is_some_and(|most| is > most) {
        return Err(format!("more than {}", most.unwrap_or_default()));
    }
    Ok(value.into())
}

/// What is sent where everything is filled in.
#[must_use]
pub fn content(filled: impl IntoIterator<Item = (String, Value)>) -> Value {
    Value::Object(filled.into_iter().collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Field, Form};

    fn field(schema: &Value, is_required: bool) -> Field {
        Field::read("f", schema, is_required).unwrap()
    }

    #[track_caller]
    fn check(schema: &Value, typed: &str, expected: Result<Value, &str>) {
        let came = field(schema, true).answered(typed);
        let expected = expected.map(Some).map_err(str::to_owned);
        assert_eq!(came, expected, "{schema} {typed}");
    }

    #[test]
    fn what_is_typed_is_read_by_the_kind_of_its_field() {
        let text = json!({"type": "string", "minLength": 2, "maxLength": 3});
        check(&text, " ab ", Ok("ab".into()));
        check(&text, "a", Err("shorter than 2 letters"));
        check(&text, "äöüß", Err("longer than 3 letters"));
        // It is no way out of what must be filled in.
        check(&json!({"type": "string"}), "-", Ok("-".into()));
        let long = "x".repeat(16 << 10);
        let any_text = json!({"type": "string"});
        check(&any_text, &long, Ok(long.as_str().into()));
        let too_long = format!("{long}x");
        check(&any_text, &too_long, Err("longer than 16384 bytes"));
        let whole = json!({"type": "integer", "minimum": 1, "maximum": 9});
        check(&whole, "7", Ok(7.into()));
        check(&whole, "7.5", Err("not a whole number"));
        check(&whole, "0", Err("less than 1"));
        check(&whole, "10", Err("more than 9"));
        let any = json!({"type": "number"});
        check(&any, "7.5", Ok(7.5.into()));
        check(&any, "7", Ok(7.into()));
        for none in ["", "x", "NaN", "inf"] {
            check(&any, none, Err("not a number"));
        }
        let truth = json!({"type": "boolean"});
        check(&truth, "Yes", Ok(true.into()));
        check(&truth, "no", Ok(false.into()));
        check(&truth, "perhaps", Err("neither `yes` nor `no`"));
    }

    #[test]
    fn a_choice_is_sent_as_what_it_stands_for() {
        let none = "none of those that are listed";
        for one in [
            json!({"type": "string", "enum": ["r", "g"], "enumNames": ["red", "green"]}),
            json!({"type": "string", "oneOf": [{"const": "r", "title": "red"}, {"const": "g", "title": "green"}]}),
        ] {
            assert_eq!(field(&one, true).choices().unwrap(), ["red", "green"]);
            for typed in ["green", "g", "2"] {
                check(&one, typed, Ok("g".into()));
            }
            check(&one, "3", Err(none));
            check(&one, "0", Err(none));
        }
        let some = json!({"type": "array", "maxItems": 2, "items": {"enum": ["a", "b", "c"]}});
        check(&some, "c, 1,c", Ok(json!(["c", "a"])));
        check(&some, "a,b,c", Err("not between 0 and 2 of them"));
        check(&some, "a,x", Err(none));
    }

    #[test]
    fn what_need_not_be_filled_in_is_left_out_or_what_it_is_by_itself() {
        let plain = field(&json!({"type": "string"}), false);
        assert_eq!(plain.answered("-"), Ok(None));
        let given = field(&json!({"type": "integer", "default": 4}), true);
        assert_eq!(given.answered("-"), Ok(Some(4.into())));
        assert_eq!(
            given.question("s"),
            "the server `s` asks for `f` (a whole number; `-` is `4`)"
        );
    }

    #[test]
    fn who_asks_is_said_and_what_is_too_much_or_of_no_simple_kind_is_not_asked() {
        let (one, two) = (
            json!({"type": "string", "title": "For whom"}),
            json!({"type": "boolean"}),
        );
        let form = Form::read("Book\n it?\n", [("who", &one), ("now", &two)], &[]).unwrap();
        assert_eq!(
            form.opening("trips"),
            "the server `trips` asks: Book / it? (to be filled in, and sent to that server: who, now)"
        );
        assert_eq!(
            form.fields[0].question("trips"),
            "the server `trips` asks for `who`: For whom (a text; `-` leaves it out)"
        );
        assert!(Form::read(&"x".repeat(2001), [], &[]).is_err());
        let odd = [
            json!({"type": "object"}),
            json!({}),
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "string", "enum": []}),
            json!({"type": "string", "description": "x".repeat(401)}),
        ];
        for odd in &odd {
            assert!(Form::read("m", [("f", odd)], &[]).is_err(), "{odd}");
        }
        let many: Vec<String> = (0..17).map(|number| number.to_string()).collect();
        let many = many.iter().map(|name| (name.as_str(), &one));
        assert!(Form::read("m", many, &[]).is_err());
    }
}
