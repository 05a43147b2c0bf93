//! The store's contents as rows of bytes, and back. Converted by hand, both
//! ways: what the core decides with is never read from a file by accident.

use data_encoding::HEXLOWER;
use hermitcrab_core::{
    authority::{Extension, ExtensionName, Extent, Host, HostPattern, Name, Port, Program, Verb},
    digest::Digest,
    grant::Uses,
    path::RelPath,
    rules::Isolation,
    standing::{
        Audience, BootId, Kept, PortableAuthority, PortableCap, PortableObject, Site, Standing,
        StandingId, WallTime,
    },
    time::{Instant, Millis},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::contents::{Contents, KeptAnswer, KeptGrant, Said, SturdyRef};

/// Rows by name.
pub type Rows = Vec<(String, Vec<u8>)>;

const STATE: &str = "state";
const STANDING: &str = "standing/";
const STURDY: &str = "sturdy/";
const REMEMBERED: &str = "remembered/";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateWire {
    generation: u64,
    next: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StandingWire {
    id: u64,
    audience: String,
    /// Rows of versions that did not know of it have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    site: Option<String>,
    workspace: String,
    caps: Vec<CapWire>,
    uses_left: Option<u64>,
    isolation: IsolationWire,
    made_at: u64,
    confirmed_at: u64,
    confirm_every: u64,
    boot: String,
    /// Rows of versions that did not know of it have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    confirmed_in_boot: Option<u64>,
    revoked: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SturdyWire {
    id: u64,
    tag: String,
    to: u64,
    audience: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    site: Option<String>,
    made_at: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerWire {
    id: u64,
    cap: CapWire,
    digest: String,
    isolation: IsolationWire,
    audience: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    site: Option<String>,
    yes: bool,
    boot: String,
    at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    in_boot: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CapWire {
    verb: String,
    on: ObjectWire,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum ObjectWire {
    /// All below a place: the bytes of the path, in hex, as a path need not be text. Rows
    /// of versions that knew nothing else say this, and it is what they meant.
    Place(String),
    /// A name alone, likewise.
    Name(String),
    AnyProgramInView,
    ProgramInView(String),
    ProgramOnHost(String),
    Host {
        name: String,
        subdomains: bool,
        port: Option<u16>,
    },
    Secret(String),
    Model(String),
    Session,
    Extension {
        name: String,
        on: Option<String>,
    },
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum IsolationWire {
    Isolated,
    Unisolated,
    Unknown,
}

/// The contents as rows.
#[must_use]
pub fn rows(contents: &Contents) -> Rows {
    let mut rows = vec![(
        STATE.to_owned(),
        bytes(&StateWire {
            generation: contents.generation,
            next: contents.next,
        }),
    )];
    // Numbers are padded so that the order of names is that of numbers.
    let name = |kind: &str, id: u64| format!("{kind}{id:020}");
    for kept in &contents.standing {
        let wire = standing_wire(kept);
        rows.push((name(STANDING, wire.id), bytes(&wire)));
    }
    for sturdy in &contents.sturdy {
        let wire = SturdyWire {
            id: sturdy.id,
            tag: HEXLOWER.encode(&sturdy.tag),
            to: sturdy.to.get(),
            audience: sturdy.audience.as_str().to_owned(),
            site: sturdy.site.map(site_wire),
            made_at: sturdy.made_at.as_millis(),
        };
        rows.push((name(STURDY, sturdy.id), bytes(&wire)));
    }
    for answer in &contents.remembered {
        let wire = AnswerWire {
            id: answer.id,
            cap: cap_wire(&answer.cap),
            digest: HEXLOWER.encode(answer.digest.as_bytes()),
            isolation: isolation_wire(answer.isolation),
            audience: answer.audience.as_str().to_owned(),
            site: answer.site.map(site_wire),
            yes: answer.said == Said::Yes,
            boot: HEXLOWER.encode(answer.boot.as_bytes()),
            at: answer.at.as_millis(),
            in_boot: answer.in_boot.map(Instant::as_millis),
        };
        rows.push((name(REMEMBERED, answer.id), bytes(&wire)));
    }
    rows.sort();
    rows
}

/// The contents of rows; the name of the first row that means nothing.
///
/// # Errors
/// That name.
pub fn contents(rows: &[(String, Vec<u8>)]) -> Result<Contents, String> {
    let mut contents = Contents::default();
    let mut has_state = false;
    for (name, bytes) in rows {
        let read = if name == STATE {
            has_state = true;
            parsed::<StateWire>(bytes).map(|wire| {
                contents.generation = wire.generation;
                contents.next = wire.next;
            })
        } else if name.starts_with(STANDING) {
            parsed(bytes)
                .and_then(kept_grant)
                .map(|kept| contents.standing.push(kept))
        } else if name.starts_with(STURDY) {
            parsed(bytes)
                .and_then(sturdy)
                .map(|sturdy| contents.sturdy.push(sturdy))
        } else if name.starts_with(REMEMBERED) {
            parsed(bytes)
                .and_then(answer)
                .map(|answer| contents.remembered.push(answer))
        } else {
            None
        };
        read.ok_or_else(|| name.clone())?;
    }
    // A store without its state is no empty store.
    if has_state || rows.is_empty() {
        Ok(contents)
    } else {
        Err(STATE.to_owned())
    }
}

/// Everything in rows, unmistakably: each name and content with its length.
#[must_use]
pub fn sealed_bytes(rows: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut all = Vec::new();
    for field in rows
        .iter()
        .flat_map(|(name, bytes)| [name.as_bytes(), bytes])
    {
        all.extend_from_slice(&(field.len() as u64).to_le_bytes());
        all.extend_from_slice(field);
    }
    all
}

fn bytes(wire: &impl Serialize) -> Vec<u8> {
    // Texts and numbers always have a JSON form.
    serde_json::to_vec(wire).unwrap_or_default()
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

fn standing_wire(kept: &KeptGrant) -> StandingWire {
    let standing = &kept.standing;
    StandingWire {
        id: standing.id.get(),
        audience: standing.audience.as_str().to_owned(),
        site: standing.site.map(site_wire),
        workspace: kept.workspace.clone(),
        caps: standing.authority.caps().iter().map(cap_wire).collect(),
        uses_left: match standing.uses_left {
            Uses::AtMost(uses) => Some(uses),
            Uses::Uncounted => None,
        },
        isolation: isolation_wire(standing.isolation),
        made_at: standing.made_at.as_millis(),
        confirmed_at: standing.confirmed_at.as_millis(),
        confirm_every: standing.confirm_every.get(),
        boot: HEXLOWER.encode(standing.boot.as_bytes()),
        confirmed_in_boot: standing.confirmed_in_boot.map(Instant::as_millis),
        revoked: standing.kept == Kept::Revoked,
    }
}

fn kept_grant(wire: StandingWire) -> Option<KeptGrant> {
    let caps: Option<Vec<PortableCap>> = wire.caps.into_iter().map(cap).collect();
    Some(KeptGrant {
        workspace: wire.workspace,
        standing: Standing {
            id: StandingId::new(wire.id),
            audience: audience(&wire.audience)?,
            site: site(wire.site)?,
            authority: PortableAuthority::from_caps(caps?).ok()?,
            uses_left: wire.uses_left.map_or(Uses::Uncounted, Uses::AtMost),
            isolation: isolation(wire.isolation),
            made_at: WallTime::from_millis(wire.made_at),
            confirmed_at: WallTime::from_millis(wire.confirmed_at),
            confirm_every: Millis::new(wire.confirm_every),
            boot: BootId::from_bytes(array(&wire.boot)?),
            confirmed_in_boot: wire.confirmed_in_boot.map(Instant::from_millis),
            kept: if wire.revoked {
                Kept::Revoked
            } else {
                Kept::Confirmed
            },
        },
    })
}

fn sturdy(wire: SturdyWire) -> Option<SturdyRef> {
    Some(SturdyRef {
        id: wire.id,
        tag: array(&wire.tag)?,
        to: StandingId::new(wire.to),
        audience: audience(&wire.audience)?,
        site: site(wire.site)?,
        made_at: WallTime::from_millis(wire.made_at),
    })
}

fn answer(wire: AnswerWire) -> Option<KeptAnswer> {
    Some(KeptAnswer {
        id: wire.id,
        cap: cap(wire.cap)?,
        digest: Digest::from_bytes(array(&wire.digest)?),
        isolation: isolation(wire.isolation),
        audience: audience(&wire.audience)?,
        site: site(wire.site)?,
        said: if wire.yes { Said::Yes } else { Said::No },
        boot: BootId::from_bytes(array(&wire.boot)?),
        at: WallTime::from_millis(wire.at),
        in_boot: wire.in_boot.map(Instant::from_millis),
    })
}

fn audience(text: &str) -> Option<Audience> {
    Name::parse(text).ok().map(Audience::new)
}

fn site_wire(site: Site) -> String {
    HEXLOWER.encode(site.digest().as_bytes())
}

/// What is no site is nothing, and none is none.
fn site(hex: Option<String>) -> Option<Option<Site>> {
    let Some(hex) = hex else {
        return Some(None);
    };
    let digest = Digest::from_bytes(array(&hex)?);
    Some(Some(Site::from_digest(digest)))
}

fn array<const N: usize>(hex: &str) -> Option<[u8; N]> {
    HEXLOWER.decode(hex.as_bytes()).ok()?.try_into().ok()
}

const fn isolation_wire(isolation: Isolation) -> IsolationWire {
    match isolation {
        Isolation::Isolated => IsolationWire::Isolated,
        Isolation::Unisolated => IsolationWire::Unisolated,
        Isolation::Unknown => IsolationWire::Unknown,
    }
}

const fn isolation(wire: IsolationWire) -> Isolation {
    match wire {
        IsolationWire::Isolated => Isolation::Isolated,
        IsolationWire::Unisolated => Isolation::Unisolated,
        IsolationWire::Unknown => Isolation::Unknown,
    }
}

fn cap_wire(cap: &PortableCap) -> CapWire {
    let text = |name: &Name| name.as_str().to_owned();
    let on = match cap.object() {
        PortableObject::Place { at, extent } => {
            let hex = HEXLOWER.encode(at.as_bytes());
            match extent {
                Extent::Tree => ObjectWire::Place(hex),
                Extent::Alone => ObjectWire::Name(hex),
            }
        }
        PortableObject::Program(Program::AnyInView) => ObjectWire::AnyProgramInView,
        PortableObject::Program(Program::InView(name)) => ObjectWire::ProgramInView(text(name)),
        PortableObject::Program(Program::OnHost(name)) => ObjectWire::ProgramOnHost(text(name)),
        PortableObject::Host(Host { name, port }) => {
            let (name, subdomains) = match name {
                HostPattern::Exact(name) => (text(name), false),
                HostPattern::Subdomains(name) => (text(name), true),
            };
            ObjectWire::Host {
                name,
                subdomains,
                port: match port {
                    Port::Any => None,
                    Port::Only(port) => Some(*port),
                },
            }
        }
        PortableObject::Secret(name) => ObjectWire::Secret(text(name)),
        PortableObject::Model(name) => ObjectWire::Model(text(name)),
        PortableObject::Session => ObjectWire::Session,
        PortableObject::Extension(extension) => ObjectWire::Extension {
            name: extension.name.as_str().to_owned(),
            on: extension.on.as_ref().map(text),
        },
    };
    CapWire {
        verb: cap.verb().as_str().to_owned(),
        on,
    }
}

fn place(hex: &str) -> Option<RelPath> {
    let bytes = HEXLOWER.decode(hex.as_bytes()).ok()?;
    if bytes.is_empty() {
        Some(RelPath::root())
    } else {
        RelPath::parse(&bytes).ok()
    }
}

fn cap(wire: CapWire) -> Option<PortableCap> {
    let name = |text: String| Name::parse(&text).ok();
    let object = match wire.on {
        ObjectWire::Place(hex) => PortableObject::tree(place(&hex)?),
        ObjectWire::Name(hex) => PortableObject::alone(place(&hex)?),
        ObjectWire::AnyProgramInView => PortableObject::Program(Program::AnyInView),
        ObjectWire::ProgramInView(text) => PortableObject::Program(Program::InView(name(text)?)),
        ObjectWire::ProgramOnHost(text) => PortableObject::Program(Program::OnHost(name(text)?)),
        ObjectWire::Host {
            name: text,
            subdomains,
            port,
        } => PortableObject::Host(Host {
            name: if subdomains {
                HostPattern::Subdomains(name(text)?)
            } else {
                HostPattern::Exact(name(text)?)
            },
            port: port.map_or(Port::Any, Port::Only),
        }),
        ObjectWire::Secret(text) => PortableObject::Secret(name(text)?),
        ObjectWire::Model(text) => PortableObject::Model(name(text)?),
        ObjectWire::Session => PortableObject::Session,
        ObjectWire::Extension { name: text, on } => PortableObject::Extension(Extension {
            name: ExtensionName::parse(&text).ok()?,
            on: match on {
                Some(on) => Some(name(on)?),
                None => None,
            },
        }),
    };
    PortableCap::new(Verb::parse(&wire.verb)?, object)
}
