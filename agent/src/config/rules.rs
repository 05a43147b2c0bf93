//! Rules in the configuration file, with the line each one stands on.

use std::path::Path;

use hermitcrab_core::{
    approval::Stance,
    authority::{Host, HostPattern, Name, Port, Program, Verb},
    path::RelPath,
    rules::{ConfiguredRule, Layer, Pattern},
    standing::PortableObject,
};
use serde::Deserialize;

use crate::runtime::{GrantWords, lexical, way_to};

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
        let (pattern, links) = self.pattern(&verbs, workspace, home)?;
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
        verbs: &[Verb],
        workspace: &Path,
        home: &Path,
    ) -> Result<(Pattern, Vec<Pattern>), String> {
        let itself = |pattern| Ok((pattern, Vec::new()));
        match (&self.on, &self.named, &self.host) {
            (None, Some(name), None) => itself(Pattern::Named(name.clone())),
            (None, None, Some(host)) => itself(Pattern::Object(PortableObject::Host(peer(host)?))),
            (Some(on), None, None) if on == "*" => itself(if verbs == [Verb::ProcExec] {
                Pattern::Object(PortableObject::Program(Program::AnyInView))
            } else {
                Pattern::Anything
            }),
            (Some(on), None, None) if on.is_empty() => {
                Err("`on` is empty; `.` is the workspace, and `*` is everything".to_owned())
            }
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

fn peer(text: &str) -> Result<Host, String> {
    let wrong = || format!("`{text}` is not a peer, such as example.com:443 or *.example.com:*");
    let (name, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let parse = |name: &str| Name::parse_caseless(name).map_err(|_| wrong());
    Ok(Host {
        name: match name.strip_prefix("*.") {
            Some(name) => HostPattern::Subdomains(parse(name)?),
            None => HostPattern::Exact(parse(name)?),
        },
        port: match port {
            "*" => Port::Any,
            port => Port::Only(port.parse().map_err(|_| wrong())?),
        },
    })
}
