//! What a child gets, and what it loses with its parent.

use crate::support::{Bench, Came, ONCE, SESSION, for_seconds, path};
use hermitcrab_core::{
    authority::{Authority, Cap, Object, Verb},
    grant::{AgentId, Uses},
    outcome::DenialCode,
    session::{Asking, Attenuation, Event},
};

const READ: &[Verb] = &[Verb::FsRead];

#[test]
fn a_child_spawned_with_no_caps_is_denied_whatever_its_parent_holds() {
    let mut bench = Bench::new(Asking::Prompt);
    let authority = bench.on_files(READ, ".");
    bench.grant(authority, Uses::Uncounted, SESSION);
    let (child, held) = bench.spawn(AgentId::FIRST, &[]).unwrap();
    assert_eq!(held, []);
    assert_eq!(
        bench.read_as(child, "a.txt"),
        Came::Denied(DenialCode::NoCap)
    );
    assert_eq!(bench.read("a.txt"), Came::Permitted(1));
}

#[test]
fn a_child_with_its_parents_cap_forwarded_is_allowed() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(READ, ".");
    let grant = bench.grant(authority, Uses::Uncounted, SESSION);
    let (child, held) = bench.spawn(AgentId::FIRST, &[grant]).unwrap();
    assert_eq!(held.len(), 1);
    assert_eq!(bench.read_as(child, "a.txt"), Came::Permitted(1));
}

#[test]
fn a_grant_made_after_the_spawn_does_not_reach_the_child() {
    let mut bench = Bench::new(Asking::Refuse);
    let (child, _) = bench.spawn(AgentId::FIRST, &[]).unwrap();
    let authority = bench.on_files(READ, ".");
    bench.grant(authority, Uses::Uncounted, SESSION);
    assert_eq!(
        bench.read_as(child, "a.txt"),
        Came::Denied(DenialCode::NoCap)
    );
}

#[test]
fn revoking_the_parents_grant_kills_the_childs_and_the_grandchilds() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(READ, ".");
    let grant = bench.grant(authority, Uses::Uncounted, SESSION);
    let spawning = bench.session.held_by(AgentId::FIRST).next().unwrap().id();
    let (child, held) = bench.spawn(AgentId::FIRST, &[grant, spawning]).unwrap();
    let reading = *held
        .iter()
        .find(|id| bench.session.table().descends(**id, grant))
        .unwrap();
    let (grandchild, _) = bench.spawn(child, &[reading]).unwrap();
    assert_eq!(bench.read_as(grandchild, "a.txt"), Came::Permitted(1));
    bench.step(Event::Revoke(grant));
    assert_eq!(
        bench.read_as(child, "a.txt"),
        Came::Denied(DenialCode::Revoked)
    );
    assert_eq!(
        bench.read_as(grandchild, "a.txt"),
        Came::Denied(DenialCode::Revoked)
    );
}

#[test]
fn revoking_the_childs_grant_leaves_the_parents() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(READ, ".");
    let grant = bench.grant(authority, Uses::Uncounted, SESSION);
    let (child, held) = bench.spawn(AgentId::FIRST, &[grant]).unwrap();
    bench.step(Event::Revoke(*held.first().unwrap()));
    assert_eq!(
        bench.read_as(child, "a.txt"),
        Came::Denied(DenialCode::Revoked)
    );
    assert_eq!(bench.read("a.txt"), Came::Permitted(1));
}

#[test]
fn parent_and_child_share_the_uses_of_a_forwarded_grant() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(READ, ".");
    let grant = bench.grant(authority, Uses::AtMost(2), SESSION);
    let (child, _) = bench.spawn(AgentId::FIRST, &[grant]).unwrap();
    assert_eq!(bench.read_as(child, "a.txt"), Came::Permitted(1));
    assert_eq!(bench.read("a.txt"), Came::Permitted(1));
    assert_eq!(
        bench.read_as(child, "a.txt"),
        Came::Denied(DenialCode::Exhausted)
    );
    assert_eq!(bench.read("a.txt"), Came::Denied(DenialCode::Exhausted));
}

#[test]
fn only_a_living_grant_of_ones_own_can_be_passed_on() {
    let mut bench = Bench::new(Asking::Refuse);
    let authority = bench.on_files(READ, ".");
    let grant = bench.grant(authority, Uses::Uncounted, SESSION);
    let spawning = bench.session.held_by(AgentId::FIRST).next().unwrap().id();
    let (child, _) = bench.spawn(AgentId::FIRST, &[spawning]).unwrap();
    assert_eq!(bench.spawn(child, &[grant]), Err(DenialCode::NoCap));
    bench.step(Event::Revoke(grant));
    assert_eq!(
        bench.spawn(AgentId::FIRST, &[grant]),
        Err(DenialCode::Revoked)
    );
}

#[test]
fn an_agent_without_the_cap_to_spawn_cannot_spawn() {
    let mut bench = Bench::new(Asking::Refuse);
    let (child, _) = bench.spawn(AgentId::FIRST, &[]).unwrap();
    assert_eq!(bench.spawn(child, &[]), Err(DenialCode::NoCap));
}

#[test]
fn starting_an_agent_is_a_use_of_the_cap_to_do_so() {
    let mut bench = Bench::new(Asking::Refuse);
    let (child, _) = bench.spawn(AgentId::FIRST, &[]).unwrap();
    let spawning = Authority::of(Cap::new(Verb::AgentSpawn, Object::Session).unwrap());
    bench.try_grant(child, spawning, ONCE, SESSION).unwrap();
    assert!(bench.spawn(child, &[]).is_ok());
    assert_eq!(bench.spawn(child, &[]), Err(DenialCode::Exhausted));
}

#[test]
fn a_grant_can_be_narrowed_but_not_widened() {
    let mut bench = Bench::new(Asking::Refuse);
    let src = bench.on_files(READ, "src");
    let from = bench.grant(src, Uses::Uncounted, for_seconds(60));
    let mut narrowed = |authority: Authority, lifetime| {
        bench.attenuate(Attenuation {
            by: AgentId::FIRST,
            from,
            holder: AgentId::FIRST,
            authority,
            uses: Uses::Uncounted,
            lifetime,
        })
    };
    let object = |below: &str| Object::tree(Bench::new(Asking::Refuse).dir, path(below));
    let cap = |verb, below: &str| Authority::of(Cap::new(verb, object(below)).unwrap());
    let narrower = narrowed(cap(Verb::FsRead, "src/bin"), SESSION).unwrap();
    assert_eq!(
        narrowed(cap(Verb::FsRead, "."), SESSION)
            .unwrap_err()
            .code(),
        DenialCode::Amplifies
    );
    assert_eq!(
        narrowed(cap(Verb::FsModify, "src"), SESSION)
            .unwrap_err()
            .code(),
        DenialCode::Amplifies
    );
    let (table, from) = (bench.session.table(), from);
    assert_eq!(
        table.get(narrower).unwrap().limits().expires_at,
        table.get(from).unwrap().limits().expires_at
    );
}
