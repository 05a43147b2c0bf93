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

use crate::runtime::{GrantWords, led_to, lexical};

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
    /// The rule, written in `file` at `line`.
    ///
    /// # Errors
    /// Why it is none, in words.
    pub fn rule(
        &self,
        (file, line, layer): (&str, u32, Layer),
        workspace: &Path,
        home: &Path,
    ) -> Result<ConfiguredRule, String> {
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
        let pattern = self.pattern(&verbs, workspace, home)?;
        ConfiguredRule::new(&self.id, stance, verbs, pattern, (file, line, layer))
            .map_err(|error| error.to_string())
    }

    fn pattern(&self, verbs: &[Verb], workspace: &Path, home: &Path) -> Result<Pattern, String> {
        match (&self.on, &self.named, &self.host) {
            (None, Some(name), None) => Ok(Pattern::Named(name.clone())),
            (None, None, Some(host)) => Ok(Pattern::Object(PortableObject::Host(peer(host)?))),
            (Some(on), None, None) if on == "*" => {
                if verbs == [Verb::ProcExec] {
                    Ok(Pattern::Object(PortableObject::Program(Program::AnyInView)))
                } else {
                    Ok(Pattern::Anything)
                }
            }
            (Some(on), None, None) => {
                let wrong = || format!("`{on}` is not a place");
                let path = match on.strip_prefix('~') {
                    Some("") => home.to_owned(),
                    Some(rest) => home.join(rest.strip_prefix('/').ok_or_else(wrong)?),
                    None => workspace.join(on),
                };
                // A rule is about the place, whatever leads there.
                let path = led_to(&lexical(&path).ok_or_else(wrong)?);
                let below = path.strip_prefix("/").map_err(|_| wrong())?;
                let bytes = std::os::unix::ffi::OsStrExt::as_bytes(below.as_os_str());
                let place = if bytes.is_empty() {
                    RelPath::root()
                } else {
                    RelPath::parse_dir(bytes).map_err(|_| wrong())?
                };
                Ok(Pattern::Object(PortableObject::tree(place)))
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
