//! Rules in the configuration file, with the line each one stands on.

use std::path::Path;

use hermitcrab_core::{
    approval::Stance,
    authority::{ObjectKind, Program, Verb},
    path::RelPath,
    rules::{ConfiguredRule, Layer, Pattern},
    standing::PortableObject,
};
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::runtime::{GrantWords, lexical, reached, ruled, way_to};

/// What puts another thing in the place of a link, or none.
const CHANGES: [Verb; 3] = [Verb::FsCreate, Verb::FsModify, Verb::FsDelete];

/// One rule, as a person writes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleWords {
    /// Its name, for explanations.
    pub id: String,
    /// `deny`, `ask` or `allow`. Deny beats ask beats allow, however wide or
    /// narrow each of them is.
    pub decision: String,
    /// `fs.read`, `fs.*`, `proc.exec`, ...
    pub verbs: Vec<String>,
    /// A path, one from `~`, `.` for the workspace, or `*` for everything.
    #[serde(default)]
    pub on: Option<String>,
    /// Files and directories of this name anywhere; `*` stands for any letters.
    #[serde(default)]
    pub named: Option<String>,
    /// A network peer, as `name:port`.
    #[serde(default)]
    pub host: Option<String>,
}

impl RuleWords {
    /// The rule, written in `file` at `line`. Where links lead to the place it is about, it is
    /// about changing them as well: it would be about another place afterwards.
    ///
    /// # Errors
    /// Why it is none, in words.
    pub fn rules(
        &self,
        at: (&str, u32, Layer),
        workspace: &Path,
        home: &Path,
    ) -> Result<Vec<ConfiguredRule>, String> {
        let stance = Stance::parse(&self.decision)
            .ok_or_else(|| format!("`{}` is not deny, ask or allow", self.decision))?;
        let mut verbs = Vec::new();
        for verb in &self.verbs {
            match verb.as_str() {
                "fs.*" => verbs.extend(Verb::FILES),
                text => verbs.push(
                    Verb::parse(text)
                        .filter(|verb| *verb != Verb::Extension)
                        .ok_or_else(|| format!("there is no verb `{text}`"))?,
                ),
            }
        }
        let (pattern, links) = self.pattern((&verbs, stance), workspace, home)?;
        let rule = |verbs, pattern| {
            ConfiguredRule::new(&self.id, stance, verbs, pattern, at)
                .map_err(|error| error.to_string())
        };
        let mut rules = vec![rule(verbs, pattern)?];
        for link in links.into_iter().filter(|_| stance != Stance::Allow) {
            rules.push(rule(CHANGES.to_vec(), link)?);
        }
        Ok(rules)
    }

    /// What it is about, and the links on the way there.
    fn pattern(
        &self,
        (verbs, stance): (&[Verb], Stance),
        workspace: &Path,
        home: &Path,
    ) -> Result<(Pattern, Vec<Pattern>), String> {
        let itself = |pattern| Ok((pattern, Vec::new()));
        match (&self.on, &self.named, &self.host) {
            (None, Some(pattern), None) => itself(name(pattern)?),
            (None, None, Some(host)) => itself(peers(host, verbs, stance)?),
            (Some(on), None, None) if on == "*" => itself(if verbs == [Verb::ProcExec] {
                Pattern::Object(PortableObject::Program(Program::AnyInView))
            } else {
                Pattern::Anything
            }),
            (Some(on), None, None) if on.is_empty() => {
                Err("`on` is empty; `.` is the workspace, and `*` is everything".to_owned())
            }
            (Some(on), None, None) if on.contains('*') => Err(format!(
                "`on` is `{on}`: a place is named in full; `named` takes `*` for letters of a name"
            )),
            (Some(on), None, None) => {
                let wrong = || format!("`{on}` is not a place");
                let tree = |path: &Path| {
                    let below = path.strip_prefix("/").map_err(|_| wrong())?;
                    let bytes = std::os::unix::ffi::OsStrExt::as_bytes(below.as_os_str());
                    let place = match bytes.is_empty() {
                        true => RelPath::root(),
                        false => RelPath::parse_dir(bytes).map_err(|_| wrong())?,
                    };
                    Ok::<_, String>(Pattern::Object(PortableObject::tree(place)))
                };
                let path = match on.strip_prefix('~') {
                    Some("") => home.to_owned(),
                    Some(rest) => home.join(rest.strip_prefix('/').ok_or_else(wrong)?),
                    None => workspace.join(on),
                };
                // A rule is about the place, whatever leads there.
                let (links, led_to) = way_to(&lexical(&path).ok_or_else(wrong)?);
                let links = links.iter().map(|link| tree(link));
                Ok((tree(&led_to)?, links.collect::<Result<_, _>>()?))
            }
            (None, None, None) => Err("it names none of `on`, `named` and `host`".to_owned()),
            (Some(_), _, _) | (None, Some(_), Some(_)) => {
                Err("it names more than one of `on`, `named` and `host`".to_owned())
            }
        }
    }

    /// The grants an `allow` stands for.
    pub fn grants(&self, workspace: &Path) -> impl Iterator<Item = GrantWords> {
        let on = match self.on.as_deref() {
            Some(".") => workspace.to_string_lossy().into_owned(),
            Some(on) if on == "*" || on.starts_with('~') => on.to_owned(),
            Some(on) => workspace.join(on).to_string_lossy().into_owned(),
            None => self.host.clone().unwrap_or_default(),
        };
        let allows = Stance::parse(&self.decision) == Some(Stance::Allow);
        self.verbs
            .iter()
            .filter(move |_| allows)
            .map(move |verb| GrantWords::new(verb, &on))
    }
}

/// What a grant is on, as a person can write it: the letter NUL is in no name, and means
/// something else in words that the program itself makes.
pub(super) fn in_letters<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let on = String::deserialize(from)?;
    match on.contains('\0') {
        true => Err(D::Error::custom(
            "`on` holds the letter NUL, which no name has",
        )),
        false => Ok(on),
    }
}

/// Whom a rule is about. Nobody is told of one that is about nobody, so it is no rule.
fn peers(text: &str, verbs: &[Verb], stance: Stance) -> Result<Pattern, String> {
    if let Some(verb) = verbs
        .iter()
        .find(|verb| verb.object_kind() != ObjectKind::Host)
    {
        return Err(format!(
            "`host` is for net.connect and net.listen, and not for {verb}"
        ));
    }
    let is_all = matches!(text, "*" | "*:*");
    let is_granted = || match verbs.contains(&Verb::NetConnect) {
        true => reached(text).is_some(),
        false => !is_all && !text.starts_with("*."),
    };
    if stance == Stance::Allow && !is_granted() {
        return Err(format!(
            "`allow` grants, and a grant is for one peer, such as example.com:443 or [2001:db8::1]:443; `{text}` may be denied or asked about"
        ));
    }
    if is_all {
        return Ok(Pattern::Anything);
    }
    let host = ruled(text).ok_or_else(|| {
        format!(
            "`{text}` is not a peer, such as example.com:443, *.example.com:*, 192.0.2.1:443, [2001:db8::1]:443 or *:*"
        )
    })?;
    Ok(Pattern::Object(PortableObject::Host(host)))
}

/// What a rule by name is about. A name is one part of a path, and `*` alone stands for letters.
fn name(pattern: &str) -> Result<Pattern, String> {
    let wrong = |why: &str| Err(format!("`named` is `{pattern}`: {why}"));
    if pattern.contains('/') {
        return wrong("a name holds no `/`; a place is named by `on`");
    }
    if matches!(pattern, "" | "." | "..") || pattern.contains('\0') {
        return wrong("nothing has that name");
    }
    if pattern.contains('?') || pattern.contains('{') && pattern.contains(',') {
        return wrong("`*` alone stands for other letters; write a rule for each name");
    }
    Ok(Pattern::Named(pattern.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(decision: &str, verbs: &[&str], key: &str, value: &str) -> Result<Pattern, String> {
        let words = RuleWords {
            id: "r".to_owned(),
            decision: decision.to_owned(),
            verbs: verbs.iter().map(ToString::to_string).collect(),
            on: (key == "on").then(|| value.to_owned()),
            named: (key == "named").then(|| value.to_owned()),
            host: (key == "host").then(|| value.to_owned()),
        };
        let at = ("rules.toml", 1, Layer::User);
        let mut rules = words.rules(at, Path::new("/w"), Path::new("/h"))?;
        Ok(rules.remove(0).pattern().clone())
    }

    #[test]
    fn each_spelling_of_a_peer_is_about_that_peer_or_no_rule() {
        let host = |text: &str| match rule("deny", &["net.connect"], "host", text) {
            Ok(Pattern::Object(PortableObject::Host(host))) => host.to_string(),
            Ok(Pattern::Anything) => "all".to_owned(),
            Ok(other) => panic!("{other:?}"),
            Err(why) => {
                assert!(why.contains(text), "{why}");
                String::new()
            }
        };
        for (text, about) in [
            ("example.com:443", "example.com:443"),
            ("EXAMPLE.com.:443", "example.com:443"),
            ("example.com", "example.com:*"),
            ("*.example.com:443", "*.example.com:443"),
            ("192.0.2.1:*", "192.0.2.1:*"),
            ("[::1]:8080", "::1:8080"),
            ("[0:0:0:0:0:0:0:1]:*", "::1:*"),
            ("::1:*", "::1:*"),
            ("0:0:0:0:0:0:0:1:*", "::1:*"),
            ("[::ffff:192.0.2.1]:80", "192.0.2.1:80"),
            ("localhost:*", "localhost:*"),
            ("*:*", "all"),
            ("*", "all"),
        ] {
            assert_eq!(host(text), about, "{text}");
        }
        for nobody in [
            "*:8080",
            ".example.com:443",
            "https://example.com:443",
            "ex*mple.com:443",
            "2600::5:80",
            "*.192.0.2.1:*",
            "example.com:0",
            "127.1:*",
            "exämple.com:*",
            "",
        ] {
            assert_eq!(host(nobody), "", "{nobody}");
        }
        for allowed in ["*:*", "*.example.com:443", "::1:*", "localhost:3000"] {
            assert!(rule("allow", &["net.connect"], "host", allowed).is_err());
        }
        assert!(rule("allow", &["net.connect"], "host", "example.com:443").is_ok());
        assert!(rule("deny", &["net.connect", "fs.read"], "host", "*").is_err());
    }

    #[test]
    fn a_pattern_that_nothing_matches_is_no_rule() {
        let named = |pattern: &str| rule("deny", &["fs.*"], "named", pattern);
        for pattern in ["*.pem", ".env", "[id].tsx", "a b", "{x}", "*"] {
            assert!(named(pattern).is_ok(), "{pattern}");
        }
        for pattern in [
            "keys/*",
            "**/id",
            "./keys",
            "keys/",
            "/etc/passwd",
            "i?",
            "{a,b}",
            "",
            ".",
            "..",
        ] {
            let why = named(pattern).expect_err(pattern);
            assert!(why.contains(&format!("`{pattern}`")), "{why}");
        }
        for place in ["keys/*", "*.pem", "~/*"] {
            let why = rule("deny", &["fs.*"], "on", place).expect_err(place);
            assert!(why.contains("`named` takes `*`"), "{why}");
        }
        assert!(rule("deny", &["fs.*"], "on", "*").is_ok());
    }

    #[test]
    fn a_grant_is_on_no_name_that_cannot_be() {
        #[derive(Debug, Deserialize)]
        struct On {
            #[serde(deserialize_with = "in_letters")]
            on: String,
        }
        let on: On = toml::from_str("on = \"./a\"").expect("a place");
        assert_eq!(on.on, "./a");
        let why = toml::from_str::<On>("on = \"\\u0000\"").expect_err("NUL");
        assert!(why.to_string().contains("NUL"), "{why}");
    }
}
