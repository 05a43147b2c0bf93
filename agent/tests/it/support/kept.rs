//! Things to keep in a store.

use hermitcrab::store::contents::{Contents, KeptAnswer, KeptGrant, Said, SturdyRef};
use hermitcrab_core::{
    authority::{Host, HostPattern, Name, Port, Program, Verb},
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

pub fn place(verb: Verb, path: &[u8]) -> PortableCap {
    PortableCap::new(verb, PortableObject::tree(RelPath::parse(path).unwrap())).unwrap()
}

pub fn name(verb: Verb, path: &[u8]) -> PortableCap {
    PortableCap::new(verb, PortableObject::alone(RelPath::parse(path).unwrap())).unwrap()
}

pub fn audience(text: &str) -> Audience {
    Audience::new(Name::parse(text).unwrap())
}

fn site(number: u8) -> Site {
    Site::from_digest(Digest::from_bytes([number; 32]))
}

pub fn grant(id: u64, kept: Kept) -> KeptGrant {
    let caps = [
        place(Verb::FsRead, b"home/u/proj"),
        place(Verb::FsModify, b"home/u/\xff not text"),
        name(Verb::FsModify, b"home/u/notes"),
        PortableCap::new(Verb::ProcExec, PortableObject::Program(Program::AnyInView)).unwrap(),
        PortableCap::new(
            Verb::NetConnect,
            PortableObject::Host(Host {
                name: HostPattern::Exact(Name::parse("example.com").unwrap()),
                port: Port::Only(443),
            }),
        )
        .unwrap(),
    ];
    KeptGrant {
        standing: Standing {
            id: StandingId::new(id),
            audience: audience("workspace:aa"),
            site: (id > 0).then(|| site(id as u8)),
            authority: PortableAuthority::from_caps(caps).unwrap(),
            uses_left: if id.is_multiple_of(2) {
                Uses::Uncounted
            } else {
                Uses::AtMost(id)
            },
            isolation: Isolation::Isolated,
            made_at: WallTime::from_millis(1_000 + id),
            confirmed_at: WallTime::from_millis(2_000 + id),
            confirm_every: Millis::from_hours(24 * 30),
            boot: BootId::from_bytes([id as u8; 16]),
            confirmed_in_boot: (id > 0).then(|| Instant::from_millis(10 + id)),
            kept,
        },
        workspace: format!("/home/u/proj{id}"),
    }
}

/// A store somebody has used.
pub fn contents(grants: u64) -> Contents {
    let mut contents = Contents::default();
    for _ in 0..grants {
        let id = contents.number();
        let kept = if id % 3 == 2 {
            Kept::Revoked
        } else {
            Kept::Confirmed
        };
        contents.standing.push(grant(id, kept));
    }
    let id = contents.number();
    contents.sturdy.push(SturdyRef {
        id,
        tag: [9; 32],
        to: StandingId::new(0),
        audience: audience("workspace:bb"),
        site: Some(site(8)),
        made_at: WallTime::from_millis(5),
    });
    let id = contents.number();
    contents.remembered.push(KeptAnswer {
        id,
        cap: place(Verb::FsDelete, b"home/u/proj/old"),
        digest: Digest::from_bytes([7; 32]),
        isolation: Isolation::Isolated,
        audience: audience("workspace:aa"),
        site: Some(site(9)),
        said: Said::No,
        boot: BootId::from_bytes([3; 16]),
        at: WallTime::from_millis(77),
        in_boot: Some(Instant::from_millis(78)),
    });
    contents
}
