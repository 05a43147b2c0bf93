//! What a skill says it needs before it can be used: variables with keys, and files.
//!
//! Commands here are given none of them by the agent, so what is not optional is told as
//! missing. Nobody is asked for a key, and none is looked for.

use serde_json::{Map, Value, json};

use super::front::Front;
use crate::text::{args, pytext};

/// What is needed.
#[derive(Debug, Default)]
pub struct Needs {
    /// The variables, as they are told.
    pub variables: Vec<Value>,
    /// The names of those that are not optional.
    pub missing: Vec<String>,
    /// The files.
    pub files: Vec<String>,
    /// Where help is to be had, by the first variable that says so.
    pub help: Option<String>,
}

impl Needs {
    /// What the heading asks for, in each of the ways it may.
    #[must_use]
    pub fn of(front: &Front) -> Self {
        let mut needs = Self::default();
        let setup = front.get("setup").and_then(Value::as_object);
        let setup_help = setup.and_then(|setup| words(setup.get("help")));
        for item in list(front.get("required_environment_variables")) {
            match item {
                Value::String(name) => needs.add(&json!({"name": name}), setup_help.as_deref()),
                item if item.is_object() => needs.add(item, setup_help.as_deref()),
                _ => {}
            }
        }
        for item in list(setup.and_then(|setup| setup.get("collect_secrets"))) {
            let Some(item) = item.as_object() else {
                continue;
            };
            let help = first(item, &["provider_url", "url"]).map(args::text_of);
            needs.add(
                &json!({"name": item.get("env_var"), "prompt": item.get("prompt"), "help": help}),
                setup_help.as_deref(),
            );
        }
        let before = front.get("prerequisites").and_then(Value::as_object);
        let names = match before.and_then(|before| before.get("env_vars")) {
            Some(Value::Array(names)) => names.iter().map(args::text_of).collect(),
            Some(Value::String(name)) => vec![name.clone()],
            _ => Vec::new(),
        };
        for name in names {
            needs.add(&json!({"name": name}), setup_help.as_deref());
        }
        if let Some(Value::Array(files)) = front.get("required_credential_files") {
            let named = files.iter().filter_map(|file| match file {
                Value::String(path) => Some(path.clone()),
                Value::Object(file) => first(file, &["path", "name"]).map(args::text_of),
                _ => None,
            });
            let named = named.map(|path| pytext::strip(&path).to_owned());
            needs.files.extend(named.filter(|path| !path.is_empty()));
        }
        needs
    }

    /// One variable, unless it is named already or by what can be no name.
    fn add(&mut self, item: &Value, setup_help: Option<&str>) {
        let Some(item) = item.as_object() else {
            return;
        };
        let name = first(item, &["name", "env_var"]).map_or_else(String::new, args::text_of);
        let name = pytext::strip(&name);
        let is_name = !name.starts_with(|letter: char| letter.is_ascii_digit())
            && !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let is_known = self.variables.iter().any(|known| known["name"] == name);
        if !is_name || is_known {
            return;
        }
        let mut told = Map::new();
        told.insert("name".into(), name.into());
        let prompt = first(item, &["prompt"])
            .map_or_else(|| format!("Enter value for {name}"), args::text_of);
        told.insert("prompt".into(), pytext::strip(&prompt).into());
        let own = first(item, &["help", "provider_url", "url"]);
        let help = match own {
            Some(own) => words(Some(own)),
            None => setup_help.map(str::to_owned),
        };
        if let Some(help) = help {
            self.help.get_or_insert_with(|| help.clone());
            told.insert("help".into(), help.into());
        }
        if let Some(what) = words(item.get("required_for")) {
            told.insert("required_for".into(), what.into());
        }
        if args::truthy(item.get("optional")) {
            told.insert("optional".into(), true.into());
        } else {
            self.missing.push(name.to_owned());
        }
        self.variables.push(Value::Object(told));
    }

    /// What is told of what is missing; `None` if nothing is.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let names = self.missing.iter().map(|name| format!("env ${name}"));
        let files = self.files.iter().map(|path| format!("file {path}"));
        let missing: Vec<String> = names.chain(files).collect();
        if missing.is_empty() {
            return None;
        }
        let note = format!(
            "Setup needed before using this skill: missing {}.",
            missing.join(", ")
        );
        Some(match &self.help {
            Some(help) => format!("{note} {help}"),
            None => note,
        })
    }
}

/// The values of a list, or the one that stands for it.
fn list(value: Option<&Value>) -> &[Value] {
    match value {
        Some(Value::Array(list)) => list,
        Some(one @ Value::Object(_)) => std::slice::from_ref(one),
        _ => &[],
    }
}

/// The first of these that says something.
fn first<'v>(item: &'v Map<String, Value>, keys: &[&str]) -> Option<&'v Value> {
    let mut said = keys.iter().filter_map(|key| item.get(*key));
    said.find(|value| args::truthy(Some(value)))
}

/// A text that says something, without the blanks around it.
fn words(value: Option<&Value>) -> Option<String> {
    let text = pytext::strip(value?.as_str()?);
    (!text.is_empty()).then(|| text.to_owned())
}
