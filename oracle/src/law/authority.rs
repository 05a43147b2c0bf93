//! The order of authorities.

use arbitrary::Unstructured;
use hermitcrab_core::authority::{
    Authority, Cap, DirId, Extension, ExtensionName, Extent, Host, HostPattern, Name, Object,
    ObjectKind, Port, Program, Verb,
};
use hermitcrab_core::path::RelPath;

use super::{Verdict, ensure, text};

const CAPS_MAX: usize = 6;
const NAMES: &[&str] = &["a", "b.a", "c.b.a", "x"];

/// Build three authorities over few names, so that they often meet.
pub fn check(bytes: &[u8]) -> Verdict {
    let mut bytes = Unstructured::new(bytes);
    let dirs = super::opened::two_dirs().ok_or("no directories")?;
    let [Some(a), Some(b), Some(c)] = [(); 3].map(|()| authority(&mut bytes, dirs)) else {
        return Ok(());
    };
    for x in [&a, &b, &c] {
        ensure(x.covers(x), || format!("one does not cover itself: {x:?}"))?;
        let redundant = x
            .caps()
            .iter()
            .any(|cap| x.caps().iter().any(|o| o != cap && o.covers(cap)));
        ensure(!redundant, || format!("one says something twice: {x:?}"))?;
        ensure(x.covers(&Authority::none()), || {
            format!("one does not cover nothing: {x:?}")
        })?;
        ensure(
            Authority::from_caps(x.caps().iter().cloned()).as_ref() == Ok(x),
            || format!("one is not what its caps make: {x:?}"),
        )?;
    }
    let each = b.caps().iter().all(|cap| a.covers_cap(cap));
    ensure(a.covers(&b) == each, || {
        format!("covers is not about every cap: {a:?} {b:?}")
    })?;
    ensure(!(a.covers(&b) && b.covers(&c)) || a.covers(&c), || {
        format!("covers is not transitive: {a:?} {b:?} {c:?}")
    })?;
    ensure((a.covers(&b) && b.covers(&a)) == (a == b), || {
        format!("equal in strength, not in value: {a:?} {b:?}")
    })?;
    ensure(a.attenuate(b.clone()).is_ok() == a.covers(&b), || {
        format!("attenuating is not ruled by covers: {a:?} to {b:?}")
    })?;
    let (Ok(ab), Ok(ba)) = (a.meet(&b), b.meet(&a)) else {
        return Ok(());
    };
    let both = |cap: &Cap| {
        let verb = |of: &Authority| of.caps().iter().any(|other| other.verb() == cap.verb());
        verb(&a) && verb(&b)
    };
    ensure(ab.caps().iter().chain(ba.caps()).all(both), || {
        format!("meet has a verb of one alone: {a:?} {b:?}")
    })?;
    ensure(ab == ba, || {
        format!("meet depends on the order: {a:?} {b:?}")
    })?;
    ensure(a.covers(&ab) && b.covers(&ab), || {
        format!("meet amplifies: {a:?} {b:?}")
    })?;
    ensure(!(a.covers(&c) && b.covers(&c)) || ab.covers(&c), || {
        format!("meet loses something: {c:?} of {a:?} and {b:?}")
    })?;
    for (held, asked) in a
        .caps()
        .iter()
        .flat_map(|held| b.caps().iter().map(move |asked| (held, asked)))
    {
        let is_right = reaches(held, asked).is_none_or(|reaches| held.covers(asked) == reaches);
        ensure(is_right, || {
            format!("a place reaches too far or not far enough: {held:?} {asked:?}")
        })?;
    }
    for cap in c.caps() {
        ensure(
            ab.covers_cap(cap) == (a.covers_cap(cap) && b.covers_cap(cap)),
            || format!("meet is wrong about a cap: {cap:?} of {a:?} and {b:?}"),
        )?;
    }
    Ok(())
}

/// A verb and the place it is about; `None` if that is none.
fn place(cap: &Cap) -> Option<(Verb, DirId, &RelPath, Extent)> {
    match cap.object() {
        Object::Dir { dir, below, extent } => Some((cap.verb(), *dir, below, *extent)),
        _ => None,
    }
}

/// Whether what is held of one place is enough for what is asked of another, told by their
/// names alone; `None` if one is no place.
fn reaches(held: &Cap, asked: &Cap) -> Option<bool> {
    let (verb, dir, held, extent) = place(held)?;
    let (for_verb, in_dir, asked, much) = place(asked)?;
    let (mut held, mut asked) = (held.components(), asked.components());
    let is_below = held.all(|name| asked.next() == Some(name));
    let is_there = match extent {
        Extent::Tree => is_below,
        Extent::Alone => is_below && asked.next().is_none() && much == Extent::Alone,
    };
    Some(verb == for_verb && dir == in_dir && is_there)
}

fn authority(bytes: &mut Unstructured<'_>, dirs: [DirId; 2]) -> Option<Authority> {
    let count = bytes.int_in_range(0..=CAPS_MAX).unwrap_or(0);
    let caps = (0..count).filter_map(|_| cap(bytes, dirs));
    Authority::from_caps(caps.collect::<Vec<_>>()).ok()
}

/// Any cap over few names.
pub(super) fn cap(bytes: &mut Unstructured<'_>, dirs: [DirId; 2]) -> Option<Cap> {
    let verb = *bytes.choose(&Verb::ALL).ok()?;
    // Chosen in any case, so that the bytes after it mean the same for every verb.
    let chosen = *bytes.choose(NAMES).ok()?;
    let name = || Name::parse(chosen).ok();
    let object = match verb.object_kind() {
        ObjectKind::Dir => Object::Dir {
            dir: *bytes.choose(&dirs).ok()?,
            below: rel_path(bytes)?,
            extent: *bytes.choose(&[Extent::Alone, Extent::Tree]).ok()?,
        },
        ObjectKind::Program => Object::Program(match bytes.int_in_range(0..=2_u8).ok()? {
            0 => Program::AnyInView,
            1 => Program::InView(name()?),
            _ => Program::OnHost(name()?),
        }),
        ObjectKind::Host => Object::Host(Host {
            name: if bytes.ratio(1, 2).ok()? {
                HostPattern::Exact(name()?)
            } else {
                HostPattern::Subdomains(name()?)
            },
            port: *bytes
                .choose(&[Port::Any, Port::Only(80), Port::Only(443)])
                .ok()?,
        }),
        ObjectKind::Secret => Object::Secret(name()?),
        ObjectKind::Model => Object::Model(name()?),
        ObjectKind::Session => Object::Session,
        ObjectKind::Extension => Object::Extension(Extension {
            name: ExtensionName::parse("x.acme.deploy").ok()?,
            on: if bytes.ratio(1, 2).ok()? {
                Some(name()?)
            } else {
                None
            },
        }),
    };
    Cap::new(verb, object).ok()
}

/// A path of few names.
pub(super) fn rel_path(bytes: &mut Unstructured<'_>) -> Option<RelPath> {
    let names = text(bytes, &["a/", "b/", "ab/", ".git/"], 3);
    match names.as_str() {
        "" => Some(RelPath::root()),
        names => RelPath::parse_dir(names.as_bytes()).ok(),
    }
}
