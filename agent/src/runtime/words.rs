//! Grants in words, as configuration, command lines and cases write them.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use hermitcrab_core::{
    authority::{Authority, Cap, Extent, Host, HostPattern, Name, Object, Port, Program, Verb},
    grant::{AgentId, GrantId, Lifetime, Uses},
    outcome::{Denial, DenialCode},
    path::RelPath,
    session::{Event, GrantSpec},
    time::Millis,
    tool::Tool,
};

use hermitcrab_sandbox::journal::{Stuck, StuckNames};
use hermitcrab_sandbox::net::{Peer, Target, is_loopback};

use super::{
    Runtime, RuntimeConfig, RuntimeError,
    machine::Machine,
    mounts::{Mounts, lexical},
    place::tilde_expanded,
};
use crate::audit::LedgerError;

/// What the workspace is called where the program itself grants it: no path is, and the name
/// of a workspace need not be text.
const THE_WORKSPACE: &str = "\0";

/// A grant as written: a verb, what it is on, how often, how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantWords {
    /// `fs.read`, `proc.exec`, ...; `fs.*` for all five on files.
    pub verb: String,
    /// An absolute path (or one from `~`); `*` for any program on the copy; a
    /// peer such as `example.org:443`; `localhost` to listen on.
    pub on: String,
    /// How often; `None` is not limited by count.
    pub uses: Option<u64>,
    /// How long; `None` is as long as a session's grants last.
    pub lifetime: Option<Millis>,
}

/// Words that grant nothing.
#[derive(Debug)]
pub enum WordsError {
    /// There is no such verb, or not one that can be granted this way.
    Verb(String),
    /// The verb does not act on such a thing.
    Object(String, String),
    /// The directory cannot be used.
    Runtime(RuntimeError),
    /// The session refuses.
    Denied(Denial),
}

impl fmt::Display for WordsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verb(verb) => {
                write!(
                    f,
                    "`{verb}` cannot be granted; there are fs.list, fs.read, fs.create, fs.modify, fs.delete, fs.* for all five, proc.exec, net.connect, net.listen, session.read"
                )?;
                match meant(verb) {
                    Some(meant) => write!(f, "; did you mean {meant}?"),
                    None => Ok(()),
                }
            }
            Self::Object(verb, on) if on.is_empty() => {
                write!(
                    f,
                    "`{verb}` cannot be granted on nothing; `.` is the workspace"
                )
            }
            Self::Object(verb, on) if verb == Verb::NetConnect.as_str() => write!(
                f,
                "`{verb}` cannot be granted on `{on}`; a peer is a name and a port, such as example.com:443, or an address, such as 127.0.0.1:8080 for this machine itself"
            ),
            Self::Object(verb, on) => write!(f, "`{verb}` cannot be granted on `{on}`"),
            Self::Runtime(error) => error.fmt(f),
            Self::Denied(denial) => write!(f, "{denial}"),
        }
    }
}

/// What other systems call these verbs.
fn meant(verb: &str) -> Option<&'static str> {
    let last = verb.rsplit('.').next().unwrap_or(verb);
    Some(match last.to_ascii_lowercase().as_str() {
        "write" | "edit" | "change" | "update" => {
            "`fs.modify`, for files that are there, or `fs.create`, for new ones"
        }
        "read" | "open" | "cat" => "`fs.read`",
        "list" | "ls" | "stat" => "`fs.list`",
        "create" | "make" | "add" | "new" | "mkdir" => "`fs.create`",
        "modify" => "`fs.modify`",
        "delete" | "remove" | "rm" | "unlink" => "`fs.delete`",
        "exec" | "execute" | "run" | "shell" => "`proc.exec`",
        "net" | "network" | "connect" | "http" | "https" => "`net.connect`",
        "listen" | "serve" | "bind" => "`net.listen`",
        "fs" | "file" | "files" => "`fs.*`",
        _ => return None,
    })
}

impl std::error::Error for WordsError {}

impl From<RuntimeError> for WordsError {
    fn from(error: RuntimeError) -> Self {
        Self::Runtime(error)
    }
}

impl From<LedgerError> for WordsError {
    fn from(error: LedgerError) -> Self {
        Self::Runtime(error.into())
    }
}

impl Runtime {
    /// What every agent of a session may do in its workspace from the start:
    /// see and read it, and run programs on a copy of it.
    ///
    /// # Errors
    /// As for [`Runtime::grant`].
    pub fn grant_basics(&mut self, holder: AgentId) -> Result<Vec<GrantId>, WordsError> {
        [
            ("fs.read", THE_WORKSPACE),
            ("fs.list", THE_WORKSPACE),
            ("proc.exec", "*"),
        ]
        .into_iter()
        .map(|(verb, on)| self.grant(holder, &GrantWords::new(verb, on)))
        .collect()
    }
}

impl Runtime {
    /// What the user does themselves, by this tool and no other, needs this until it is over;
    /// whoever does it revokes it then, and nobody is told of that as the end of something they
    /// were given.
    ///
    /// # Errors
    /// As for [`Runtime::grant`].
    pub fn lend(
        &mut self,
        holder: AgentId,
        tool: Tool,
        words: &GrantWords,
    ) -> Result<GrantId, WordsError> {
        self.grant_by(|spec| Event::Lend(tool, spec), holder, words)
    }

    pub(super) fn grant_by(
        &mut self,
        event: impl FnOnce(GrantSpec) -> Event,
        holder: AgentId,
        words: &GrantWords,
    ) -> Result<GrantId, WordsError> {
        let spec = words.spec(holder, &mut self.mounts, &self.machine, &self.config)?;
        let parts = self.machine.step(event(spec))?;
        match (parts.granted, parts.denials.into_iter().next()) {
            (Some(grant), _) => Ok(grant),
            (None, Some((_, denial))) => Err(WordsError::Denied(denial)),
            (None, None) => Err(WordsError::Denied(Denial::new(
                DenialCode::UnknownGrant,
                "nothing was granted",
            ))),
        }
    }
}

impl GrantWords {
    /// Not limited by count, for the session.
    #[must_use]
    pub fn new(verb: &str, on: &str) -> Self {
        Self {
            verb: verb.to_owned(),
            on: on.to_owned(),
            uses: None,
            lifetime: None,
        }
    }

    pub(super) fn spec(
        &self,
        holder: AgentId,
        mounts: &mut Mounts,
        machine: &Machine,
        config: &RuntimeConfig,
    ) -> Result<GrantSpec, WordsError> {
        let wrong = || WordsError::Object(self.verb.clone(), self.on.clone());
        let verbs: Vec<Verb> = match self.verb.as_str() {
            "fs.*" => Verb::FILES.to_vec(),
            text => vec![Verb::parse(text).ok_or_else(|| WordsError::Verb(text.to_owned()))?],
        };
        let mut caps = Vec::new();
        for verb in verbs {
            let objects = match verb {
                Verb::FsList | Verb::FsRead | Verb::FsCreate | Verb::FsModify | Verb::FsDelete => {
                    self.places(mounts, machine, config)?
                }
                Verb::ProcExec if self.on == "*" => vec![Object::Program(Program::AnyInView)],
                Verb::SessionRead | Verb::UserAsk | Verb::AgentSpawn => vec![Object::Session],
                Verb::ModelSend => vec![Object::Model(Name::parse(&self.on).map_err(|_| wrong())?)],
                Verb::ProcExec => return Err(wrong()),
                Verb::NetConnect => vec![Object::Host(reached(&self.on).ok_or_else(wrong)?)],
                Verb::NetListen => vec![Object::Host(
                    peer(&self.on)
                        .filter(|host| host.port == Port::Any && is_loopback(&host.name))
                        .ok_or_else(wrong)?,
                )],
                Verb::FsMount | Verb::SecretUse | Verb::ConfigChange | Verb::Extension => {
                    return Err(WordsError::Verb(self.verb.clone()));
                }
            };
            for object in objects {
                caps.push(Cap::new(verb, object).map_err(|_| wrong())?);
            }
        }
        Ok(GrantSpec {
            holder,
            authority: Authority::from_caps(caps)
                .map_err(|error| WordsError::Denied(error.into()))?,
            uses: self.uses.map_or(Uses::Uncounted, Uses::AtMost),
            lifetime: self.lifetime.map_or(Lifetime::Session, Lifetime::For),
        })
    }

    /// The place that words on files name.
    pub(super) fn path(&self, config: &RuntimeConfig) -> Option<PathBuf> {
        let path = match self.on.as_str() {
            THE_WORKSPACE => config.workspace.clone(),
            on => in_the_workspace(tilde_expanded(on, &config.home), &config.workspace),
        };
        lexical(&path)
    }

    /// The place granted with all that lies below it, and every directory already open there: a place
    /// is named from the deepest directory above it. A directory that was opened through a link may
    /// lie in another that is open; changes are told by the names there, so that place is meant as
    /// well. Links below what was opened lead nowhere: others may have made them since.
    fn places(
        &self,
        mounts: &mut Mounts,
        machine: &Machine,
        config: &RuntimeConfig,
    ) -> Result<Vec<Object>, WordsError> {
        let wrong = || WordsError::Object(self.verb.clone(), self.on.clone());
        if self.on.is_empty() {
            return Err(wrong());
        }
        let path = self.path(config).ok_or_else(wrong)?;
        match mounts.locate(&path) {
            None => drop(mounts.open(machine, nearest_directory(&path))?),
            Some(_) => mounts.open_mounted(machine, &path)?,
        }
        let (dir, below) = mounts.locate(&path).ok_or_else(wrong)?;
        let mut objects = vec![Object::tree(dir, below)];
        let behind = mounts.behind_links(&path);
        if let Some(behind) = &behind
            && let Some((dir, below)) = mounts.locate(behind)
        {
            objects.push(Object::tree(dir, below));
        }
        for at in behind.iter().chain([&path]) {
            let opened = mounts.below(at).map(|mount| mount.cap.id());
            objects.extend(opened.map(|dir| Object::tree(dir, RelPath::root())));
        }
        Ok(objects)
    }
}

/// The same of a peer that is connected to: under the name the proxy knows it by, as one it
/// knows by none would be granted in vain. Nobody is asked where `localhost` is.
pub(crate) fn reached(text: &str) -> Option<Host> {
    let host = peer(text)?;
    let HostPattern::Exact(name) = &host.name else {
        return Some(host);
    };
    let name = known_as(name.as_str()).filter(|name| name.as_str() != "localhost")?;
    Some(Host {
        name: HostPattern::Exact(name),
        port: host.port,
    })
}

/// The one name under which whoever is called so is granted, ruled about and connected to.
pub(super) fn known_as(name: &str) -> Option<Name> {
    match Target::parse(name, 1)?.host {
        Peer::Named(name) => Some(name),
        // One of version 4 within one of version 6 is the former.
        Peer::Address(address) => Name::parse(&address.to_canonical().to_string()).ok(),
    }
}

/// Whom a rule is about: `name:port`, `*.name:port` for every name below it, an address with a
/// port; without a port, or with `*` for it, all of them. Whatever would be about nobody is `None`.
pub(crate) fn ruled(text: &str) -> Option<Host> {
    if let Some(below) = text.strip_prefix("*.") {
        let host = peer(below)?;
        let HostPattern::Exact(name) = &host.name else {
            return None;
        };
        // An address has no names below it.
        let Peer::Named(name) = Target::parse(name.as_str(), 1)?.host else {
            return None;
        };
        return Some(Host {
            name: HostPattern::Subdomains(name),
            port: host.port,
        });
    }
    let is_address = |text: &str| text.parse::<std::net::Ipv6Addr>().is_ok();
    let in_brackets = match text.rsplit_once(':') {
        // `::1:80` may be an address without a port or one with it.
        Some((address, _)) if is_address(text) && is_address(address) => return None,
        _ if is_address(text) => format!("[{text}]"),
        Some((address, port)) if is_address(address) => format!("[{address}]:{port}"),
        _ => text.to_owned(),
    };
    let host = peer(&in_brackets)?;
    let HostPattern::Exact(name) = &host.name else {
        return None;
    };
    Some(Host {
        name: HostPattern::Exact(known_as(name.as_str())?),
        port: host.port,
    })
}

/// `host:port`, or `host` (or `host:*`) for all its ports; an address of
/// version 6 stands in brackets.
fn peer(text: &str) -> Option<Host> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            let _valid: std::net::Ipv6Addr = address.parse().ok()?;
            (address, port.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        None | Some("*") => Port::Any,
        Some(port) => Port::Only(port.parse().ok().filter(|port| *port != 0)?),
    };
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    if !text.starts_with('[') && !name.chars().all(plain) {
        return None;
    }
    Some(Host {
        name: HostPattern::Exact(Name::parse_caseless(name).ok()?),
        port,
    })
}

/// Words are UTF-8, and a workspace need not be: its name as far as letters can say it is
/// its own, unless something has that very name.
fn in_the_workspace(path: PathBuf, workspace: &Path) -> PathBuf {
    if workspace.to_str().is_some() {
        return path;
    }
    let in_letters = PathBuf::from(workspace.to_string_lossy().into_owned());
    match path.strip_prefix(&in_letters) {
        Ok(_) if in_letters.symlink_metadata().is_ok() => path,
        Ok(rest) if rest.as_os_str().is_empty() => workspace.to_owned(),
        Ok(rest) => workspace.join(rest),
        Err(_) => path,
    }
}

/// The path itself if it is a directory, or the nearest directory above it.
pub(super) fn nearest_directory(path: &Path) -> &Path {
    path.ancestors()
        .find(|ancestor| ancestor.is_dir())
        .unwrap_or(Path::new("/"))
}

/// Names in a sentence.
pub(super) fn listed(stuck: &[Stuck]) -> String {
    StuckNames(stuck).to_string()
}

/// How many of the names alone are told that one grant is for.
const NAMES_TOLD_MAX: usize = 12;

/// What a grant is for, in words: a yes can be for thousands of names, of which the first
/// are told and the rest is counted.
pub(super) fn held_in_words(caps: &[(Verb, String)], between: &str) -> Vec<String> {
    let is_name = |on: &str| on.starts_with(Extent::Alone.held_as());
    let (mut told, mut names) = (Vec::new(), 0_usize);
    for (verb, on) in Verb::listed(caps) {
        names += usize::from(is_name(on));
        if !is_name(on) || names <= NAMES_TOLD_MAX {
            told.push(format!("{verb}{between}{on}"));
        }
    }
    match names.saturating_sub(NAMES_TOLD_MAX) {
        0 => {}
        1 => told.push("and one name more".to_owned()),
        more => told.push(format!("and {more} names more")),
    }
    told
}

/// So many bytes, as a person is told.
pub fn in_bytes<N: fmt::Display + PartialEq + From<u8>>(count: N) -> String {
    let noun = if count == N::from(1) { "byte" } else { "bytes" };
    format!("{count} {noun}")
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::authority::Verb;

    use super::{WordsError, held_in_words, peer};

    #[test]
    fn who_names_a_verb_as_other_systems_do_is_told_the_one_that_is_meant() {
        let said = |verb: &str| WordsError::Verb(verb.to_owned()).to_string();
        for (verb, meant) in [
            ("fs.write", "did you mean `fs.modify`, for files"),
            ("WRITE", "did you mean `fs.modify`, for files"),
            ("rm", "did you mean `fs.delete`?"),
            ("net", "did you mean `net.connect`?"),
            ("shell.exec", "did you mean `proc.exec`?"),
        ] {
            assert!(said(verb).contains(meant), "{}", said(verb));
        }
        assert!(!said("user.ask").contains("did you mean"));
    }

    #[test]
    fn of_many_names_the_first_are_told_and_of_places_all() {
        let names = |count: usize| -> Vec<(Verb, String)> {
            let names = (0..count).map(|at| (Verb::FsCreate, format!("only /w/{at:02}")));
            let trees = (0..20).map(|at| (Verb::FsModify, format!("/v/{at}")));
            names.chain(trees).collect()
        };
        for (count, told, last) in [
            (0, 20, "fs.modify on /v/19"),
            (12, 32, "fs.modify on /v/19"),
            (13, 33, "and one name more"),
            (2000, 33, "and 1988 names more"),
        ] {
            let words = held_in_words(&names(count), " on ");
            assert_eq!(words.len(), told, "{count}");
            assert_eq!(words.last().map(String::as_str), Some(last), "{count}");
        }
        let words = held_in_words(&names(2000), " ");
        assert_eq!(
            words.get(11).map(String::as_str),
            Some("fs.create only /w/11")
        );
        assert_eq!(words.get(12).map(String::as_str), Some("fs.modify /v/0"));
    }

    #[test]
    fn one_byte_is_told_as_one() {
        let told = [0, 1, 2].map(|count: u64| super::in_bytes(count));
        assert_eq!(told, ["0 bytes", "1 byte", "2 bytes"]);
    }

    #[test]
    fn a_peer_is_a_plain_name_or_address_with_a_port() {
        for (text, shown) in [
            ("example.org:443", "example.org:443"),
            ("EXAMPLE.org", "example.org:*"),
            ("127.0.0.1:*", "127.0.0.1:*"),
            ("[::1]:80", "::1:80"),
        ] {
            assert_eq!(
                peer(text).map(|host| host.to_string()).as_deref(),
                Some(shown)
            );
        }
        for text in [
            "",
            "/work/example.org:443",
            "example.org:",
            "example.org:0",
            "example.org:99999",
            "*.example.org:443",
            "::1:80",
            "[::1",
            "[x]:1",
            "a b:1",
        ] {
            assert_eq!(peer(text), None, "{text}");
        }
    }
}
