//! What a plan may call of a server outside: read from a file its user writes.
//!
//! The file says where the server is, and for each tool what it takes, what
//! each argument decides, what comes back, and how far each part of that can be
//! trusted. It is the user's word: nothing a server says about itself is looked
//! at. What the file leaves out counts as the worst: a tool changes things, an
//! argument decides where, a result is text anybody may have written.

use hermitcrab_core::{
    authority::{Name, Verb},
    label::Source,
    plan::{
        Kind, Level, Need, Param, Reach, Role, Signature, StatedRisk, Type,
        check::is_name,
        signature::{READER_COMMANDS, READER_FILES, READER_MODEL},
    },
};
use serde::Deserialize;
use serde_json::Value;

use crate::runtime::ExternalServer;

/// Bytes of such a file.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// Tools of one server.
const TOOLS_MAX: usize = 256;
/// Bytes of a tool's name.
const NAME_BYTES_MAX: usize = 64;
/// How deep a form may be.
const DEPTH_MAX: usize = 8;

/// A server and what a plan may call there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    /// Where it is.
    pub server: ExternalServer,
    /// Its tools, as `server.tool`.
    pub tools: Vec<Signature>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileWords {
    version: u64,
    server: ServerWords,
    tools: Vec<ToolWords>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerWords {
    name: String,
    #[serde(default)]
    host: Option<String>,
    #[serde(default)]
    port: Option<u16>,
    #[serde(default)]
    url: Option<String>,
    /// Whether `list_resources` and `read_resource` are what the protocol has for
    /// resources, and no tools of the server's that are called so.
    #[serde(default)]
    resources: bool,
    /// The same of `list_prompts` and `get_prompt`.
    #[serde(default)]
    prompts: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolWords {
    name: String,
    #[serde(default = "yes")]
    changes: bool,
    #[serde(default)]
    takes: Vec<ParamWords>,
    #[serde(default)]
    gives: Option<Value>,
    /// Who may see what it gives; everybody if it does not say.
    #[serde(default, rename = "for")]
    readers: Option<Vec<String>>,
    /// The arguments that name who gets to see the others.
    #[serde(default)]
    reaches: Vec<String>,
    #[serde(default)]
    risk: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ParamWords {
    name: String,
    form: Value,
    #[serde(default)]
    decides: Option<String>,
    #[serde(default)]
    optional: bool,
}

const fn yes() -> bool {
    true
}

/// Reads such a file.
///
/// # Errors
/// What is wrong with it, in a line.
pub fn read(text: &[u8]) -> Result<Outside, String> {
    let words: FileWords = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if words.version != 1 {
        return Err(format!("version {} is not known here", words.version));
    }
    let server = words.server.name.clone();
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    if server.is_empty() || !server.chars().all(plain) {
        return Err(format!(
            "the server's name `{}` is not made of small letters and digits",
            server.escape_debug()
        ));
    }
    if [READER_MODEL, READER_FILES, READER_COMMANDS].contains(&server.as_str()) {
        return Err(format!(
            "the server's name `{server}` is the word for another reader"
        ));
    }
    if words.tools.len() > TOOLS_MAX {
        return Err(format!("there are more than {TOOLS_MAX} tools"));
    }
    let mut tools: Vec<Signature> = Vec::new();
    for tool in words.tools {
        let name = tool.name.clone();
        let signature = signature(&server, tool)
            .map_err(|why| format!("tool `{}`: {why}", name.escape_debug()))?;
        if tools.iter().any(|known| known.name == signature.name) {
            return Err(format!("tool `{name}` is there twice"));
        }
        tools.push(signature);
    }
    let place = words.server;
    let server = match (&place.url, &place.host, place.port) {
        (Some(url), None, None) => {
            ExternalServer::at_url(&server, url).map_err(|denial| denial.to_string())?
        }
        (None, Some(host), Some(port)) => ExternalServer::at(&server, host, port),
        _ => return Err("a server has a `url`, or a `host` and a `port`".to_owned()),
    };
    let server = ExternalServer {
        resources: place.resources,
        prompts: place.prompts,
        ..server
    };
    Ok(Outside { server, tools })
}

fn signature(server: &str, tool: ToolWords) -> Result<Signature, String> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if tool.name.is_empty() || tool.name.len() > NAME_BYTES_MAX || !tool.name.chars().all(plain) {
        return Err("it is no name".to_owned());
    }
    let mut params: Vec<Param> = Vec::new();
    for param in tool.takes {
        let name = param.name;
        if !is_name(&name) || params.iter().any(|known| known.name == name) {
            return Err(format!("argument `{}` is no name", name.escape_debug()));
        }
        let kind = form(&param.form, Level::User, 0)
            .ok_or_else(|| format!("the form of `{name}` is none"))?;
        let role = match param.decides.as_deref() {
            Some("nothing") => Role::Free,
            Some("content") => Role::Content,
            Some("target") => Role::Target,
            Some("outgoing") => Role::Outgoing,
            None if tool.changes => Role::Target,
            None => Role::Free,
            Some(other) => {
                return Err(format!(
                    "`{name}` decides nothing, content, target or outgoing, not `{}`",
                    other.escape_debug()
                ));
            }
        };
        params.push(Param {
            name,
            kind,
            required: !param.optional,
            role,
        });
    }
    let result = match &tool.gives {
        None => Kind::Nothing.at(Level::User),
        Some(gives) => {
            form(gives, Level::Untrusted, 0).ok_or("the form of what it gives is none")?
        }
    };
    let risk = match tool.risk.as_deref() {
        None => None,
        Some("low") if tool.changes => {
            return Err("it changes things, so its risk is medium at least".to_owned());
        }
        Some("low") => Some(StatedRisk::Low),
        Some("medium") => Some(StatedRisk::Medium),
        Some("high") => Some(StatedRisk::High),
        Some(other) => {
            return Err(format!(
                "its risk is low, medium or high, not `{}`",
                other.escape_debug()
            ));
        }
    };
    let named = |reader: &String| {
        Name::parse(reader)
            .map_err(|error| format!("`{}` is nobody who reads: {error}", reader.escape_debug()))
    };
    let readers = tool
        .readers
        .map(|readers| readers.iter().map(named).collect::<Result<_, _>>())
        .transpose()?;
    // Whatever it is given, its server sees.
    let mut reaches = vec![Reach::Reader(server.to_owned())];
    for argument in tool.reaches {
        if !params.iter().any(|param| param.name == argument) {
            return Err(format!(
                "it reaches those in `{}`, which it does not take",
                argument.escape_debug()
            ));
        }
        reaches.push(Reach::NamedBy(argument));
    }
    Ok(Signature {
        name: format!("{server}.{}", tool.name),
        params,
        result,
        source: Source::Network,
        changes: tool.changes,
        wants: vec![Need {
            verb: Verb::NetConnect,
            param: None,
        }],
        readers,
        reaches,
        risk,
    })
}

/// A form with levels: as in a plan, and `"made text"`, `{"made": FORM}` for
/// what the server itself makes. That a list has items and a record fields is
/// the server's own making.
fn form(value: &Value, usual: Level, depth: usize) -> Option<Type> {
    if depth > DEPTH_MAX {
        return None;
    }
    let below = |value: &Value| form(value, usual, depth + 1);
    let container = usual.max(Level::Service);
    Some(match value {
        Value::String(words) => {
            let (level, word) = match words.split_once(' ') {
                Some((level, word)) => (self::level(level)?, word),
                None => (usual, words.as_str()),
            };
            let kind = match word {
                "text" => Kind::Text,
                "whole" => Kind::Whole,
                "number" => Kind::Number,
                "truth" => Kind::Truth,
                "path" => Kind::Path,
                "time" => Kind::Time,
                _ => return None,
            };
            kind.at(level)
        }
        Value::Array(items) => match items.as_slice() {
            [item] => Kind::list(below(item)?).at(container),
            _ => return None,
        },
        Value::Object(fields) => {
            let only = (fields.len() == 1).then(|| fields.iter().next()).flatten();
            match only {
                Some((word, Value::Array(words))) if word == "one_of" => Kind::Choice(
                    words
                        .iter()
                        .map(|word| word.as_str().map(str::to_owned))
                        .collect::<Option<_>>()?,
                )
                .at(usual),
                Some((word, item)) if word == "maybe" => {
                    Kind::Optional(Box::new(below(item)?)).at(container)
                }
                Some((word, inner)) if self::level(word).is_some() => {
                    form(inner, self::level(word)?, depth + 1)?
                }
                _ => Kind::Record(
                    fields
                        .iter()
                        .map(|(name, field)| {
                            is_name(name)
                                .then(|| below(field))
                                .flatten()
                                .map(|kind| (name.clone(), kind))
                        })
                        .collect::<Option<_>>()?,
                )
                .at(container),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => return None,
    })
}

fn level(word: &str) -> Option<Level> {
    match word {
        "own" => Some(Level::User),
        "made" => Some(Level::Service),
        "picked" => Some(Level::Picked),
        "untrusted" => Some(Level::Untrusted),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::{
        label::Source,
        plan::{Kind, Level, Reach, Role, StatedRisk, Type},
    };

    use super::read;

    fn file(tool: &str) -> String {
        format!(
            r#"{{"version": 1, "server": {{"name": "bank", "host": "127.0.0.1", "port": 1}}, "tools": [{tool}]}}"#
        )
    }

    #[test]
    fn what_a_file_leaves_out_counts_as_the_worst() {
        let text = file(
            r#"{"name": "pay", "takes": [{"name": "to", "form": "text"}], "gives": {"note": "text", "id": "made whole"}}"#,
        );
        let outside = read(text.as_bytes()).expect("a tool");
        let tool = &outside.tools[0];
        assert_eq!(tool.name, "bank.pay");
        assert!(tool.changes);
        assert_eq!(tool.params[0].role, Role::Target);
        let Kind::Record(fields) = &tool.result.kind else {
            panic!("{tool:?}");
        };
        let level = |name: &str| {
            let field = fields.iter().find(|(known, _)| known == name);
            field.expect("a field").1.level
        };
        assert_eq!(level("note"), Level::Untrusted);
        assert_eq!(level("id"), Level::Service);
        assert_eq!(tool.source, Source::Network);
        // What it is given its server sees, and everybody may see what it gives.
        assert_eq!(tool.reaches, [Reach::Reader("bank".into())]);
        assert_eq!((tool.readers.as_ref(), tool.risk), (None, None));
    }

    #[test]
    fn an_argument_decides_what_the_file_says_and_the_worst_where_it_says_nothing() {
        for (changes, decides, role) in [
            (true, "", Role::Target),
            (false, "", Role::Free),
            (true, r#", "decides": "nothing""#, Role::Free),
            (true, r#", "decides": "content""#, Role::Content),
            (false, r#", "decides": "target""#, Role::Target),
            (false, r#", "decides": "outgoing""#, Role::Outgoing),
        ] {
            let text = file(&format!(
                r#"{{"name": "a", "changes": {changes}, "takes": [{{"name": "x", "form": "text"{decides}}}]}}"#
            ));
            let tools = read(text.as_bytes()).expect("a tool").tools;
            assert_eq!(tools[0].params[0].role, role, "{changes} {decides}");
        }
    }

    #[test]
    fn what_holds_parts_is_the_servers_making_and_a_part_what_the_file_says() {
        let gives = |form: &str| {
            let text = file(&format!(r#"{{"name": "a", "gives": {form}}}"#));
            read(text.as_bytes()).map(|outside| outside.tools[0].result.clone())
        };
        let text = |level| Kind::Text.at(level);
        for (form, expected) in [
            (r#""text""#, text(Level::Untrusted)),
            (r#""own text""#, text(Level::User)),
            (r#""picked text""#, text(Level::Picked)),
            (
                r#"["text"]"#,
                Kind::list(text(Level::Untrusted)).at(Level::Service),
            ),
            (
                r#"{"own": ["text"]}"#,
                Kind::list(text(Level::User)).at(Level::User),
            ),
            (
                r#"{"made": {"maybe": "untrusted text"}}"#,
                Kind::Optional(Box::new(text(Level::Untrusted))).at(Level::Service),
            ),
        ] {
            assert_eq!(gives(form), Ok(expected), "{form}");
        }
        let deep = |lists: usize| format!("{}\"text\"{}", "[".repeat(lists), "]".repeat(lists));
        let depth = |found: &Type| {
            let (mut found, mut depth) = (found, 0);
            while let Kind::List(item) = &found.kind {
                (found, depth) = (item, depth + 1);
            }
            depth
        };
        assert_eq!(gives(&deep(8)).as_ref().map(depth), Ok(8));
        assert!(gives(&deep(9)).is_err());
        assert!(gives(r#"{"made": ["text", "text"]}"#).is_err());
    }

    #[test]
    fn a_file_is_bounded_and_says_one_place_in_one_version() {
        let one = |number: usize| format!(r#"{{"name": "a{number}"}}"#);
        let many = |count: usize| file(&(0..count).map(one).collect::<Vec<_>>().join(","));
        let long = |bytes: usize| file(&format!(r#"{{"name": "{}"}}"#, "a".repeat(bytes)));
        let url = r#""url": "https://bank.example/mcp""#;
        let host = r#""host": "127.0.0.1", "port": 1"#;
        let placed = |place: &str| many(1).replace(host, place);
        for (text, is_read) in [
            (many(256), true),
            (many(257), false),
            (long(64), true),
            (long(65), false),
            (many(1).replace(r#""version": 1"#, r#""version": 2"#), false),
            (placed(url), true),
            (placed(&format!("{url}, {host}")), false),
            (placed(r#""host": "127.0.0.1""#), false),
            (placed(r#""port": 1"#), false),
        ] {
            let found = read(text.as_bytes());
            assert_eq!(found.is_ok(), is_read, "{text:.200} {:?}", found.err());
        }
    }

    #[test]
    fn risk_and_readers_are_what_the_file_says() {
        let text = file(
            r#"{"name": "look", "changes": false, "risk": "low", "for": ["ann"], "gives": "text"},
               {"name": "send", "takes": [{"name": "to", "form": "text"}], "reaches": ["to"]}"#,
        );
        let tools = read(text.as_bytes()).expect("two tools").tools;
        assert_eq!(tools[0].risk, Some(StatedRisk::Low));
        let readers = tools[0].readers.as_ref().expect("readers");
        assert!(readers.iter().map(|name| name.as_str()).eq(["ann"]));
        assert_eq!(tools[1].risk, None);
        assert_eq!(tools[1].readers, None);
        let reaches = [Reach::Reader("bank".into()), Reach::NamedBy("to".into())];
        assert_eq!(tools[1].reaches, reaches);
    }

    #[test]
    fn no_server_is_called_what_another_reader_is_called() {
        for (name, is_taken) in [
            ("model", true),
            ("files", true),
            ("commands", true),
            ("file", false),
        ] {
            let text = file(r#"{"name": "look"}"#).replace("bank", name);
            let found = read(text.as_bytes());
            assert_eq!(found.is_err(), is_taken, "{name}: {found:?}");
        }
    }

    #[test]
    fn what_is_no_tool_is_refused_with_its_name() {
        for (tool, why) in [
            (r#"{"name": "a b"}"#, "no name"),
            (r#"{"name": "a", "trust": "me"}"#, "trust"),
            (r#"{"name": "a", "gives": "sure text"}"#, "gives"),
            (
                r#"{"name": "a", "takes": [{"name": "x", "form": "text", "decides": "all"}]}"#,
                "decides",
            ),
            (r#"{"name": "a"}, {"name": "a"}"#, "twice"),
            (r#"{"name": "a", "risk": "low"}"#, "medium at least"),
            (r#"{"name": "a", "risk": "none"}"#, "low, medium or high"),
            (r#"{"name": "a", "for": ["two words"]}"#, "nobody"),
            (r#"{"name": "a", "reaches": ["to"]}"#, "does not take"),
            (
                r#"{"name": "a", "takes": [{"name": "x", "form": "text"}, {"name": "x", "form": "path"}]}"#,
                "argument `x`",
            ),
        ] {
            let found = read(file(tool).as_bytes()).expect_err(tool);
            assert!(found.contains(why), "{tool}: {found}");
        }
    }
}
