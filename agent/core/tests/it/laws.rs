//! Laws of authority and grants, on random ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::{
    approval::Reply,
    authority::{
        Authority, Cap, DirId, Extent, Host, HostPattern, Name, Object, Port, Program, Verb,
    },
    cap::CapTable,
    grant::{AgentId, GrantId, Lifetime, Limits, Revoker, Uses},
    label::{Label, Readers, Source},
    outcome::DenialCode,
    path::RelPath,
    rules::{Isolation, Rules},
    session::{Asking, Event},
    time::{Instant, Millis},
};
use proptest::prelude::*;
use support::{Bench, Came, path};

fn dir_ids() -> [DirId; 2] {
    let mut rules = Rules::new(1, Isolation::Isolated, Vec::new());
    [
        rules.add_dir(path("a")).unwrap(),
        rules.add_dir(path("b")).unwrap(),
    ]
}

/// Short paths over few names, one of which sorts between a name and its children.
fn paths() -> impl Strategy<Value = RelPath> {
    prop::collection::vec(prop::sample::select(vec!["a", "a-b", "b"]), 0..4).prop_map(|names| {
        if names.is_empty() {
            RelPath::root()
        } else {
            path(&names.join("/"))
        }
    })
}

fn names() -> impl Strategy<Value = Name> {
    prop::sample::select(vec!["com", "x.com", "y.x.com", "xx.com", "org"])
        .prop_map(|text| Name::parse(text).unwrap())
}

fn places() -> impl Strategy<Value = Object> {
    let extent = prop::sample::select(vec![Extent::Alone, Extent::Tree]);
    (0..2_usize, paths(), extent).prop_map(|(which, below, extent)| Object::Dir {
        dir: dir_ids()[which],
        below,
        extent,
    })
}

fn objects() -> impl Strategy<Value = Object> {
    let host = prop_oneof![
        names().prop_map(HostPattern::Exact),
        names().prop_map(HostPattern::Subdomains)
    ];
    let port = prop_oneof![Just(Port::Any), Just(Port::Only(80)), Just(Port::Only(443))];
    prop_oneof![
        4 => places(),
        1 => Just(Object::Program(Program::AnyInView)),
        1 => names().prop_map(|name| Object::Program(Program::InView(name))),
        1 => names().prop_map(|name| Object::Program(Program::OnHost(name))),
        3 => (host, port).prop_map(|(name, port)| Object::Host(Host { name, port })),
        1 => names().prop_map(Object::Secret),
        1 => names().prop_map(Object::Model),
        1 => Just(Object::Session),
    ]
}

fn caps() -> impl Strategy<Value = Cap> {
    (objects(), 0..3_usize).prop_map(|(object, which)| {
        let fitting: Vec<Verb> = Verb::ALL
            .into_iter()
            .filter(|verb| verb.object_kind() == object.kind())
            .collect();
        Cap::new(fitting[which % fitting.len()], object).unwrap()
    })
}

fn authorities() -> impl Strategy<Value = Authority> {
    prop::collection::vec(caps(), 0..8).prop_map(|caps| Authority::from_caps(caps).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn covering_is_a_partial_order_on_caps(a in caps(), b in caps(), c in caps()) {
        prop_assert!(a.covers(&a));
        prop_assert!(!(a.covers(&b) && b.covers(&a)) || a == b);
        prop_assert!(!(a.covers(&b) && b.covers(&c)) || a.covers(&c));
    }

    /// By the names alone: what is held of a name is that name, what is held of a tree is
    /// all whose names begin with those of its root.
    #[test]
    fn a_name_covers_itself_and_a_tree_whatever_lies_below_it(held in places(), asked in places()) {
        let Object::Dir { dir, below, extent } = &held else { unreachable!() };
        let Object::Dir { dir: in_dir, below: at, extent: much } = &asked else { unreachable!() };
        let begins = at.components().zip(below.components()).filter(|(a, b)| a == b).count() == below.components().count();
        let expected = dir == in_dir && match extent {
            Extent::Tree => begins,
            Extent::Alone => *much == Extent::Alone && at == below,
        };
        prop_assert_eq!(held.covers(&asked), expected);
    }

    /// However it is looked up: among many, and in the table of grants.
    #[test]
    fn a_place_is_found_among_many_as_it_is_by_comparing_each(given in prop::collection::vec(places(), 0..48), asked in places()) {
        let cap = |object: &Object| Cap::new(Verb::FsRead, object.clone()).unwrap();
        let expected = given.iter().any(|held| held.covers(&asked));
        let authority = Authority::from_caps(given.iter().map(cap)).unwrap();
        prop_assert_eq!(authority.covers_cap(&cap(&asked)), expected);
        let redundant = |one: &Cap| authority.caps().iter().any(|other| other != one && other.covers(one));
        prop_assert!(!authority.caps().iter().any(redundant));
        let mut table = CapTable::new();
        for held in &given {
            table.grant(AgentId::FIRST, Authority::of(cap(held)), limits(Instant::BOOT, None, 9)).unwrap();
        }
        prop_assert_eq!(table.choose(AgentId::FIRST, &cap(&asked), Instant::BOOT).is_ok(), expected);
    }

    #[test]
    fn the_meet_of_caps_is_their_greatest_lower_bound(a in caps(), b in caps(), c in caps()) {
        prop_assert_eq!(a.meet(&b), b.meet(&a));
        match a.meet(&b) {
            Some(meet) => {
                prop_assert!(a.covers(&meet) && b.covers(&meet));
                prop_assert_eq!(a.covers(&c) && b.covers(&c), meet.covers(&c));
            }
            None => prop_assert!(!(a.covers(&c) && b.covers(&c))),
        }
    }

    #[test]
    fn an_authority_covers_exactly_what_its_caps_cover(given in prop::collection::vec(caps(), 0..8), asked in caps()) {
        let authority = Authority::from_caps(given.clone()).unwrap();
        prop_assert_eq!(authority.covers_cap(&asked), given.iter().any(|cap| cap.covers(&asked)));
    }

    #[test]
    fn equal_authorities_are_equal_values(a in authorities(), b in authorities()) {
        prop_assert_eq!(a.covers(&b) && b.covers(&a), a == b);
        let mut reversed: Vec<Cap> = a.caps().to_vec();
        reversed.reverse();
        reversed.extend(a.caps().iter().cloned());
        prop_assert_eq!(Authority::from_caps(reversed).unwrap(), a);
    }

    #[test]
    fn attenuation_never_amplifies(held in authorities(), wanted in authorities(), asked in caps()) {
        match held.attenuate(wanted.clone()) {
            Ok(narrower) => {
                prop_assert_eq!(&narrower, &wanted);
                prop_assert!(!narrower.covers_cap(&asked) || held.covers_cap(&asked));
            }
            Err(denial) => {
                prop_assert_eq!(denial.code(), DenialCode::Amplifies);
                prop_assert!(!held.covers(&wanted));
            }
        }
    }

    #[test]
    fn the_meet_of_authorities_is_their_greatest_lower_bound(a in authorities(), b in authorities(), c in authorities()) {
        let meet = a.meet(&b).unwrap();
        prop_assert!(a.covers(&meet) && b.covers(&meet));
        prop_assert_eq!(a.covers(&c) && b.covers(&c), meet.covers(&c));
        prop_assert_eq!(&meet, &b.meet(&a).unwrap());
        prop_assert_eq!(&a.meet(&a).unwrap(), &a);
        prop_assert!(a.attenuate(meet).is_ok());
    }

    #[test]
    fn a_path_that_parses_stays_inside_and_means_what_it_says(bytes in prop::collection::vec(prop::sample::select(b"a./\0\xff".to_vec()), 0..12)) {
        if let Ok(parsed) = RelPath::parse(&bytes) {
            prop_assert!(parsed.components().all(|name| !name.is_empty() && name != b"." && name != b".." && !name.contains(&0)));
            prop_assert!(!parsed.as_bytes().starts_with(b"/"));
            prop_assert_eq!(RelPath::parse(parsed.as_bytes()).unwrap(), parsed.clone());
            let kept: Vec<&[u8]> = bytes.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
            prop_assert_eq!(parsed.components().collect::<Vec<_>>(), kept);
            prop_assert!(RelPath::parse_dir(&bytes).is_ok());
        } else {
            let bad = bytes.is_empty()
                || bytes.contains(&0)
                || bytes.starts_with(b"/")
                || bytes.split(|byte| *byte == b'/').any(|name| name == b"..")
                || bytes.ends_with(b"/")
                || bytes.ends_with(b"/.");
            prop_assert!(bad, "{bytes:?} was refused without a reason");
        }
    }

    #[test]
    fn joining_and_stripping_undo_one_another(base in paths(), below in paths()) {
        let joined = base.join(&below).unwrap();
        prop_assert!(joined.starts_with(&base));
        prop_assert_eq!(joined.strip_prefix(&base), Some(below.clone()));
        prop_assert_eq!(joined.components().count(), base.components().count() + below.components().count());
        if let Some(parent) = joined.parent() {
            prop_assert_eq!(parent.child(joined.file_name().unwrap()).unwrap(), joined);
        }
    }

    #[test]
    fn labels_only_gain_sources_and_lose_readers(left in 0..5_usize, right in 0..5_usize, a in prop::option::of(prop::collection::btree_set(names(), 0..3)), b in prop::option::of(prop::collection::btree_set(names(), 0..3)) ) {
        let sources = [Source::User, Source::Model, Source::File, Source::Command, Source::Network];
        let label = |which: usize, readers: Option<_>| Label::new(sources[which], readers.map_or(Readers::Anyone, Readers::Only));
        let (left, right) = (label(left, a), label(right, b));
        let join = left.join(&right);
        prop_assert!(left.sources().chain(right.sources()).all(|source| join.sources().any(|known| known == source)));
        prop_assert_eq!(join, right.join(&left));
    }

    #[test]
    fn any_words_but_the_offered_ones_are_no_yes(text in "\\PC*") {
        let offered = ["once", "session", "always"].contains(&text.as_str());
        prop_assert_eq!(Reply::parse(&text).verdict().is_ok(), offered);
    }
}

// Grants in a tree

#[derive(Clone, Debug)]
enum Op {
    Grant {
        uses: Option<u64>,
        seconds: u64,
    },
    Derive {
        from: usize,
        uses: Option<u64>,
        seconds: u64,
    },
    Revoke(usize),
    Wait(u64),
    Use(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let uses = prop::option::of(0..4_u64);
    let op = prop_oneof![
        (uses.clone(), 0..50_u64).prop_map(|(uses, seconds)| Op::Grant { uses, seconds }),
        (0..16_usize, uses, 0..50_u64).prop_map(|(from, uses, seconds)| Op::Derive {
            from,
            uses,
            seconds
        }),
        (0..16_usize).prop_map(Op::Revoke),
        (0..10_u64).prop_map(Op::Wait),
        (0..16_usize).prop_map(Op::Use),
        (0..16_usize).prop_map(Op::Use),
    ];
    prop::collection::vec(op, 0..60)
}

fn limits(now: Instant, uses: Option<u64>, seconds: u64) -> Limits {
    Limits::starting(
        now,
        uses.map_or(Uses::Uncounted, Uses::AtMost),
        Lifetime::For(Millis::from_seconds(seconds)),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Drives a table at random and checks after each step: a grant once dead
    /// by revocation or time stays dead, and so does all that came from it; no
    /// grant is used more often than it or any of its ancestors allows.
    #[test]
    fn revocation_and_expiry_are_final_and_transitive_and_uses_are_bounded(ops in ops()) {
        let [dir, _] = dir_ids();
        let cap = Cap::new(Verb::FsRead, Object::tree(dir, RelPath::root())).unwrap();
        let action = hermitcrab_core::action::Action::new(cap.verb(), cap.object().clone(), hermitcrab_core::digest::Digest::NONE).unwrap();
        let mut rules = Rules::new(1, Isolation::Isolated, Vec::new());
        rules.add_dir(path("a")).unwrap();
        let mut table = CapTable::new();
        // One agent per grant, so that using an agent uses that grant.
        let mut made: Vec<(GrantId, AgentId, Revoker)> = Vec::new();
        let mut dead: Vec<GrantId> = Vec::new();
        let mut now = Instant::BOOT;
        for op in ops {
            match op {
                Op::Grant { uses, seconds } => {
                    let agent = table.add_agent().unwrap();
                    let revoker = table.grant(agent, Authority::of(cap.clone()), limits(now, uses, seconds)).unwrap();
                    made.push((revoker.grant(), agent, revoker));
                }
                Op::Derive { from, uses, seconds } => if let Some((parent, by, _)) = made.get(from) {
                    let agent = table.add_agent().unwrap();
                    let usable = table.usable(*parent, now);
                    let derived = table.attenuate(*by, *parent, agent, Authority::of(cap.clone()), limits(now, uses, seconds), now);
                    prop_assert_eq!(derived.is_ok(), usable.is_ok());
                    if let Ok(revoker) = derived {
                        let (child, parent) = (table.get(revoker.grant()).unwrap(), table.get(*parent).unwrap());
                        prop_assert!(child.limits().expires_at <= parent.limits().expires_at);
                        made.push((revoker.grant(), agent, revoker));
                    }
                },
                Op::Revoke(which) => if let Some((id, _, revoker)) = made.get(which) {
                    let ended = table.revoke(revoker);
                    prop_assert!(ended.iter().all(|one| table.descends(*one, *id)));
                    dead.extend(made.iter().map(|(one, ..)| *one).filter(|one| table.descends(*one, *id)));
                    prop_assert!(table.revoke(revoker).is_empty());
                },
                Op::Wait(seconds) => now = now.after(Millis::from_seconds(seconds)),
                Op::Use(which) => if let Some((id, agent, _)) = made.get(which) {
                    let usable = table.usable(*id, now);
                    let actions = [action.clone()];
                    let call = {
                        let mut bench = Bench::new(Asking::Refuse);
                        bench.read("a");
                        bench.call.unwrap()
                    };
                    let request = hermitcrab_core::monitor::Request::new(call, *agent, hermitcrab_core::tool::Tool::ReadFile, &actions);
                    let decision = hermitcrab_core::monitor::authorize(&mut table, &rules, &request, now);
                    let code = match decision {
                        hermitcrab_core::monitor::Decision::Permit(permits) => {
                            prop_assert_eq!(permits.len(), 1);
                            Ok(())
                        }
                        hermitcrab_core::monitor::Decision::Ask(gap) => Err(gap.because),
                        hermitcrab_core::monitor::Decision::Deny(denial) => Err(denial.code()),
                    };
                    prop_assert_eq!(code, usable);
                },
            }
            dead.extend(made.iter().map(|(id, ..)| *id).filter(|id| matches!(table.usable(*id, now), Err(DenialCode::Expired | DenialCode::Revoked))));
            dead.sort_unstable();
            dead.dedup();
            for id in &dead {
                prop_assert!(table.usable(*id, now).is_err(), "a dead grant came back");
            }
            for (id, ..) in &made {
                let grant = table.get(*id).unwrap();
                if let Uses::AtMost(limit) = grant.limits().uses {
                    prop_assert!(grant.used() <= limit);
                }
                let through_children: u64 = made.iter().filter_map(|(one, ..)| table.get(*one)).filter(|one| one.parent() == Some(*id)).map(|one| one.used()).sum();
                prop_assert!(grant.used() >= through_children, "a use of a child is a use of its parent");
            }
        }
    }

    #[test]
    fn a_grant_is_valid_up_to_its_deadline_and_never_after(lifetime in 0..100_u64, steps in prop::collection::vec(0..40_u64, 1..10)) {
        let mut bench = Bench::new(Asking::Refuse);
        let reading = bench.on_files(&[Verb::FsRead], ".");
        bench.grant(reading, Uses::Uncounted, Lifetime::For(Millis::from_seconds(lifetime)));
        for step in steps {
            bench.seconds += step;
            let expected = if bench.seconds <= lifetime { Came::Permitted(1) } else { Came::Denied(DenialCode::Expired) };
            prop_assert_eq!(bench.read("a"), expected);
        }
    }

    #[test]
    fn anything_unknown_is_denied(agents in 0..3_usize, ticks in 0..3_usize, below in paths()) {
        // Ids from a larger session mean nothing in a smaller one.
        let mut big = Bench::new(Asking::Prompt);
        for _ in 0..=agents {
            big.spawn(AgentId::FIRST, &[]).unwrap();
        }
        let (stranger, _) = big.spawn(AgentId::FIRST, &[]).unwrap();
        let reading = big.on_files(&[Verb::FsRead], ".");
        let foreign_grant = big.grant(reading, Uses::Uncounted, Lifetime::Session);
        prop_assert_eq!(big.write("x"), Came::Asked);
        prop_assert_eq!(big.write("y"), Came::Asked);
        let mut small = Bench::new(Asking::Prompt);
        for _ in 0..ticks {
            small.step(Event::Tick);
        }
        let text = String::from_utf8(below.as_bytes().to_vec()).unwrap();
        prop_assert_eq!(small.read_as(stranger, &text), Came::Denied(DenialCode::UnknownAgent));
        prop_assert_eq!(small.step(Event::Revoke(foreign_grant)), Came::Denied(DenialCode::UnknownGrant));
        prop_assert_eq!(small.spawn(AgentId::FIRST, &[foreign_grant]), Err(DenialCode::UnknownGrant));
        small.question = big.question.clone();
        prop_assert_eq!(small.answer(Reply::parse("once")), Came::Denied(DenialCode::UnknownAnswer));
        small.call = big.call;
        prop_assert_eq!(small.effects(Vec::new()), Came::Denied(DenialCode::UnknownCall));
    }
}
