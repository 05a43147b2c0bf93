//! How grants live, are passed on, and end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::{
    approval::{CallId, Reply, Scope},
    authority::{Name, Object, Verb},
    cap::CapTable,
    grant::{AgentId, GrantId, Limits, Origin, State, UpstreamId, Uses},
    limits::{CHILDREN_PER_AGENT_MAX, DEADLINE_GRACE, DELEGATION_DEPTH_MAX, GRANT_LIFETIME_MAX},
    outcome::{DenialCode, Outcome},
    rules::Isolation,
    session::{Asking, Attenuation, Event, GrantSpec},
    standing::{
        Audience, BootId, Kept, PortableAuthority, PortableCap, PortableObject, Standing,
        StandingId, Surroundings, WallTime,
    },
    time::Instant,
};
use support::{Bench, Came, SESSION, any_program, for_seconds, path};

const GRACE_SECONDS: u64 = DEADLINE_GRACE.get() / 1000;

fn kinds(bench: &Bench) -> Vec<&str> {
    bench
        .ledger
        .iter()
        .map(|record| record.kind.as_str())
        .collect()
}

fn finish(bench: &mut Bench, call: CallId) -> Vec<GrantId> {
    let now = bench.now();
    let outcome = Outcome::Stopped;
    let parts = bench
        .session
        .step(now, Event::Finished { call, outcome })
        .into_parts();
    bench.ledger.extend(parts.records);
    parts.drained
}

#[test]
fn a_drain_is_reported_only_when_the_last_call_is_finished() {
    let mut bench = Bench::new(Asking::Refuse);
    let grant = bench.grant(any_program(), Uses::Uncounted, SESSION);
    let mut calls = Vec::new();
    for _ in 0..3 {
        assert_eq!(bench.run("sleep"), Came::Permitted(1));
        calls.push(bench.call.unwrap());
    }
    assert_eq!(bench.step(Event::RevokeAndDrain(grant)), Came::Nothing);
    assert_eq!(bench.stopped, calls, "each is an order to kill");
    assert!(!bench.session.is_drained(grant));
    assert_eq!(bench.run("more"), Came::Denied(DenialCode::Revoked));
    assert_eq!(finish(&mut bench, calls[1]), []);
    assert_eq!(finish(&mut bench, calls[0]), []);
    assert!(!bench.session.is_drained(grant));
    assert_eq!(finish(&mut bench, calls[2]), [grant]);
    assert!(bench.session.is_drained(grant));
    assert_eq!(*kinds(&bench).last().unwrap(), "drained");
}

#[test]
fn a_drain_waits_for_what_descendants_run_and_for_nothing_else() {
    let mut bench = Bench::new(Asking::Refuse);
    let grant = bench.grant(any_program(), Uses::Uncounted, SESSION);
    let (child, _) = bench.spawn(AgentId::FIRST, &[grant]).unwrap();
    assert_eq!(bench.run_as(child, "sleep"), Came::Permitted(1));
    let below = bench.call.unwrap();
    let reading = bench.on_files(&[Verb::FsRead], ".");
    bench.grant(reading, Uses::Uncounted, SESSION);
    let action = bench.file(Verb::FsRead, "a");
    let tool = hermitcrab_core::tool::Tool::ReadFile;
    assert_eq!(
        bench.call_as(AgentId::FIRST, tool, vec![action]),
        Came::Permitted(1)
    );
    let elsewhere = bench.call.unwrap();
    bench.step(Event::RevokeAndDrain(grant));
    assert_eq!(bench.stopped, [below]);
    assert_eq!(finish(&mut bench, elsewhere), []);
    assert_eq!(finish(&mut bench, below), [grant]);
}

#[test]
fn a_drain_of_what_nothing_runs_on_is_done_at_once_and_of_nothing_is_refused() {
    let mut bench = Bench::new(Asking::Refuse);
    let grant = bench.grant(any_program(), Uses::Uncounted, SESSION);
    let now = bench.now();
    let parts = bench
        .session
        .step(now, Event::RevokeAndDrain(grant))
        .into_parts();
    bench.ledger.extend(parts.records);
    assert_eq!((parts.drained, parts.stopped), (vec![grant], vec![]));
    let mut other = Bench::new(Asking::Refuse);
    for _ in 0..9 {
        other.grant(any_program(), Uses::Uncounted, SESSION);
    }
    let stranger = other.session.held_by(AgentId::FIRST).last().unwrap().id();
    assert_eq!(
        bench.step(Event::RevokeAndDrain(stranger)),
        Came::Denied(DenialCode::UnknownGrant)
    );
}

#[test]
fn a_call_that_began_before_the_deadline_may_go_on_for_the_grace_and_commits_nothing_in_it() {
    let mut bench = Bench::new(Asking::Refuse);
    let writing = bench.on_files(&[Verb::FsCreate], ".");
    bench.grant(any_program(), Uses::Uncounted, for_seconds(60));
    bench.grant(writing, Uses::Uncounted, for_seconds(60));
    assert_eq!(bench.run("sleep"), Came::Permitted(1));
    let call = bench.call.unwrap();
    bench.seconds = 60 + GRACE_SECONDS;
    bench.step(Event::Tick);
    assert_eq!(bench.stopped, []);
    let change = bench.file(Verb::FsCreate, "new");
    assert_eq!(
        bench.effects(vec![change]),
        Came::Denied(DenialCode::Expired)
    );
    bench.seconds += 1;
    bench.step(Event::Tick);
    assert_eq!(bench.stopped, [call]);
    let change = bench.file(Verb::FsCreate, "new");
    assert_eq!(
        bench.effects(vec![change]),
        Came::Denied(DenialCode::Expired)
    );
}

#[test]
fn in_the_grace_a_call_commits_nothing_on_other_grants_and_by_no_answer_either() {
    let mut bench = Bench::new(Asking::Prompt);
    let writing = bench.on_files(&[Verb::FsCreate], "held");
    bench.grant(any_program(), Uses::Uncounted, for_seconds(60));
    bench.grant(writing, Uses::Uncounted, SESSION);
    assert_eq!(bench.run("sleep"), Came::Permitted(1));
    let call = bench.call.unwrap();
    let asked_about = bench.file(Verb::FsCreate, "asked");
    bench.seconds = 60;
    assert_eq!(bench.effects(vec![asked_about]), Came::Asked);
    bench.seconds = 61;
    assert_eq!(
        bench.answer(Reply::Yes(Scope::Session)),
        Came::Denied(DenialCode::Expired)
    );
    bench.call = Some(call);
    let held = bench.file(Verb::FsCreate, "held/new");
    assert_eq!(
        bench
            .session
            .may_stand_early(call, std::slice::from_ref(&held)),
        [false]
    );
    for event in [
        Event::EffectsSoFar {
            call,
            actions: vec![held.clone()],
        },
        Event::Effects {
            call,
            actions: vec![held],
        },
    ] {
        assert_eq!(bench.step(event), Came::Denied(DenialCode::Expired));
    }
    bench.call = Some(call);
    bench.finish();
    assert_eq!(*kinds(&bench).last().unwrap(), "outcome");
}

#[test]
fn a_tick_says_once_which_grants_their_deadline_ended() {
    let mut bench = Bench::new(Asking::Refuse);
    let soon = bench.grant(any_program(), Uses::Uncounted, for_seconds(10));
    let later = bench.grant(any_program(), Uses::Uncounted, for_seconds(20));
    let revoked = bench.grant(any_program(), Uses::Uncounted, for_seconds(10));
    bench.step(Event::Revoke(revoked));
    let tick = |bench: &mut Bench| {
        let now = bench.now();
        let parts = bench.session.step(now, Event::Tick).into_parts();
        bench.ledger.extend(parts.records);
        parts.expired
    };
    bench.seconds = 10;
    assert_eq!(tick(&mut bench), []);
    bench.seconds = 11;
    assert_eq!(tick(&mut bench), [soon]);
    assert_eq!(tick(&mut bench), []);
    assert_eq!(*kinds(&bench).last().unwrap(), "expired");
    bench.seconds = 3600;
    assert_eq!(tick(&mut bench), [later]);
}

#[test]
fn a_session_says_until_when_nothing_will_happen_by_itself() {
    let mut bench = Bench::new(Asking::Prompt);
    let until = |bench: &Bench| bench.session.quiet_until().unwrap().as_millis();
    // The session's own rights.
    assert_eq!(until(&bench), GRANT_LIFETIME_MAX.get());
    bench.grant(any_program(), Uses::Uncounted, for_seconds(60));
    assert_eq!(until(&bench), 60_000);
    bench.run("sleep");
    bench.seconds = 61;
    bench.step(Event::Tick);
    assert_eq!(until(&bench), 60_000 + DEADLINE_GRACE.get());
    bench.seconds = 66;
    bench.step(Event::Tick);
    assert_eq!(until(&bench), GRANT_LIFETIME_MAX.get());
    assert_eq!(bench.read("a"), Came::Asked);
    assert_eq!(until(&bench), 66_000 + 600_000);
}

#[test]
fn when_a_granter_is_gone_its_grants_are_orphans_and_end_at_their_deadline() {
    let mut bench = Bench::new(Asking::Refuse);
    let reading = bench.on_files(&[Verb::FsRead], ".");
    let spec = |upstream: u32| {
        let spec = GrantSpec {
            holder: AgentId::FIRST,
            authority: reading.clone(),
            uses: Uses::Uncounted,
            lifetime: for_seconds(60),
        };
        Event::GrantFrom(UpstreamId(upstream), spec)
    };
    let now = bench.now();
    let [gone, stays] = [1, 2].map(|upstream| {
        let parts = bench.session.step(now, spec(upstream)).into_parts();
        bench.ledger.extend(parts.records);
        parts.granted.unwrap()
    });
    let lost = Event::UpstreamLost(UpstreamId(1));
    let parts = bench.session.step(now, lost).into_parts();
    assert_eq!(parts.orphaned, [gone]);
    assert_eq!(parts.records[0].kind, "orphaned");
    bench.ledger.extend(parts.records);
    let table = bench.session.table();
    assert_eq!(table.state(gone, now), Some(State::Orphaned));
    assert_eq!(table.state(stays, now), Some(State::Live));
    let derived = bench.spawn_with(gone);
    let table = bench.session.table();
    assert_eq!(table.state(derived, now), Some(State::Orphaned));
    bench.seconds = 61;
    let table = bench.session.table();
    assert_eq!(table.state(gone, bench.now()), Some(State::Expired));
    assert_eq!(table.state(derived, bench.now()), Some(State::Expired));
    assert_eq!(bench.read("a"), Came::Denied(DenialCode::Expired));
}

impl Bench {
    /// A child that holds just this, and its grant for it.
    fn spawn_with(&mut self, grant: GrantId) -> GrantId {
        let now = self.now();
        let event = Event::Spawn {
            parent: AgentId::FIRST,
            forward: vec![grant],
        };
        let parts = self.session.step(now, event).into_parts();
        self.ledger.extend(parts.records);
        parts.spawned.unwrap().1[0]
    }
}

#[test]
fn the_user_can_end_an_orphan_early() {
    let mut bench = Bench::new(Asking::Refuse);
    let spec = GrantSpec {
        holder: AgentId::FIRST,
        authority: any_program(),
        uses: Uses::Uncounted,
        lifetime: SESSION,
    };
    let now = bench.now();
    let event = Event::GrantFrom(UpstreamId(1), spec);
    let orphan = bench.session.step(now, event).into_parts().granted.unwrap();
    drop(bench.session.step(now, Event::UpstreamLost(UpstreamId(1))));
    let parts = bench.session.step(now, Event::Revoke(orphan)).into_parts();
    assert_eq!(parts.revoked, [orphan]);
}

#[test]
fn an_orphan_ends_with_the_session() {
    let mut bench = Bench::new(Asking::Refuse);
    let spec = GrantSpec {
        holder: AgentId::FIRST,
        authority: any_program(),
        uses: Uses::Uncounted,
        lifetime: SESSION,
    };
    let now = bench.now();
    let event = Event::GrantFrom(UpstreamId(1), spec);
    let orphan = bench.session.step(now, event).into_parts().granted.unwrap();
    drop(bench.session.step(now, Event::UpstreamLost(UpstreamId(1))));
    let parts = bench.session.step(now, Event::End).into_parts();
    assert!(parts.revoked.contains(&orphan), "{:?}", parts.revoked);
    let state = bench.session.table().state(orphan, now);
    assert_eq!(state, Some(State::Revoked));
}

#[test]
fn a_subdirectory_of_a_revocable_directory_dies_with_it() {
    let bench = Bench::new(Asking::Refuse);
    let dir = bench.dir;
    let mut table = CapTable::new();
    let limits = Limits::starting(Instant::BOOT, Uses::AtMost(2), SESSION);
    let whole = bench.on_files(&[Verb::FsRead, Verb::FsList], ".");
    let root = table.grant(AgentId::FIRST, whole, limits).unwrap();
    let place = |below: &str| Object::tree(dir, path(below));
    let part = table
        .subdir(AgentId::FIRST, root.grant(), &place("src"), Instant::BOOT)
        .unwrap();
    let expected = bench.on_files(&[Verb::FsRead, Verb::FsList], "src");
    let held = table.get(part.grant()).unwrap();
    assert_eq!(*held.authority(), expected);
    assert_eq!(held.parent(), Some(root.grant()));
    // A use of the part is a use of the whole.
    let invoke = |table: &mut CapTable| table.invoke(AgentId::FIRST, part.grant(), Instant::BOOT);
    assert_eq!(invoke(&mut table), Ok(()));
    assert_eq!(table.get(root.grant()).unwrap().used(), 1);
    table.revoke(&root);
    assert_eq!(invoke(&mut table), Err(DenialCode::Revoked));
    let nothing = table
        .subdir(AgentId::FIRST, part.grant(), &place("other"), Instant::BOOT)
        .unwrap_err();
    assert_eq!(nothing.code(), DenialCode::NoCap);
}

#[test]
fn an_invocation_names_its_grant_and_is_charged_before_the_effect() {
    let mut table = CapTable::new();
    let child = table.add_agent().unwrap();
    let limits = Limits::starting(Instant::BOOT, Uses::AtMost(1), SESSION);
    let root = table.grant(AgentId::FIRST, any_program(), limits).unwrap();
    let wrapped = table
        .forward(AgentId::FIRST, root.grant(), child, Instant::BOOT)
        .unwrap();
    let now = Instant::BOOT;
    assert_eq!(
        table.invoke(AgentId::FIRST, wrapped.grant(), now),
        Err(DenialCode::NoCap)
    );
    assert_eq!(table.invoke(child, wrapped.grant(), now), Ok(()));
    assert_eq!(
        table.invoke(child, wrapped.grant(), now),
        Err(DenialCode::Exhausted)
    );
    assert_eq!(table.get(root.grant()).unwrap().used(), 1);
}

#[test]
fn a_grant_is_forwarded_by_name_at_any_time_and_told_apart_in_the_ledger() {
    let mut bench = Bench::new(Asking::Refuse);
    let (child, _) = bench.spawn(AgentId::FIRST, &[]).unwrap();
    let reading = bench.on_files(&[Verb::FsRead], ".");
    let grant = bench.grant(reading, Uses::Uncounted, SESSION);
    let forward = |by, holder| Event::Forward {
        by,
        from: grant,
        holder,
    };
    assert_eq!(
        bench.step(forward(child, child)),
        Came::Denied(DenialCode::NoCap)
    );
    assert_eq!(bench.step(forward(AgentId::FIRST, child)), Came::Nothing);
    assert_eq!(*kinds(&bench).last().unwrap(), "forwarded");
    assert_eq!(bench.read_as(child, "a"), Came::Permitted(1));
    bench.step(Event::Revoke(grant));
    assert_eq!(bench.read_as(child, "a"), Came::Denied(DenialCode::Revoked));
}

#[test]
fn the_end_of_a_parent_ends_its_children_and_what_they_run() {
    let mut bench = Bench::new(Asking::Refuse);
    let grant = bench.grant(any_program(), Uses::Uncounted, SESSION);
    let spawning = bench
        .session
        .held_by(AgentId::FIRST)
        .next()
        .map(|grant| grant.id());
    let (child, held) = bench
        .spawn(AgentId::FIRST, &[grant, spawning.unwrap()])
        .unwrap();
    let (grandchild, _) = bench.spawn(child, &held).unwrap();
    // What it holds by itself, not only what its parents gave.
    let own = bench.on_files(&[Verb::FsRead], ".");
    bench
        .try_grant(grandchild, own, Uses::Uncounted, SESSION)
        .unwrap();
    assert_eq!(bench.run_as(grandchild, "sleep"), Came::Permitted(1));
    let running = bench.call.unwrap();
    assert!(!bench.session.agent_has_ended(child));
    let now = bench.now();
    let parts = bench.session.step(now, Event::EndAgent(child)).into_parts();
    assert_eq!(parts.ended, [child, grandchild]);
    assert_eq!(parts.stopped, [running]);
    bench.ledger.extend(parts.records);
    assert!(!bench.session.agent_has_ended(AgentId::FIRST));
    for agent in [child, grandchild] {
        assert!(bench.session.agent_has_ended(agent));
        let dead = Came::Denied(DenialCode::UnknownAgent);
        assert_eq!(bench.run_as(agent, "more"), dead);
        assert_eq!(bench.spawn(agent, &[]), Err(DenialCode::UnknownAgent));
        let more = bench.try_grant(agent, any_program(), Uses::Uncounted, SESSION);
        assert_eq!(more.unwrap_err().code(), DenialCode::UnknownAgent);
        let part = bench.attenuate(Attenuation {
            by: AgentId::FIRST,
            from: grant,
            holder: agent,
            authority: any_program(),
            uses: Uses::Uncounted,
            lifetime: SESSION,
        });
        assert_eq!(part.unwrap_err().code(), DenialCode::UnknownAgent);
        assert_eq!(bench.step(Event::EndAgent(agent)), dead);
    }
    assert_eq!(bench.run("go on"), Came::Permitted(1));
}

#[test]
fn a_child_that_waits_for_an_answer_waits_in_vain_once_it_ended() {
    let mut bench = Bench::new(Asking::Prompt);
    let asking = bench
        .session
        .held_by(AgentId::FIRST)
        .nth(1)
        .map(|grant| grant.id());
    let (child, _) = bench.spawn(AgentId::FIRST, &[asking.unwrap()]).unwrap();
    assert_eq!(bench.read_as(child, "a"), Came::Asked);
    assert_eq!(
        bench.step(Event::EndAgent(child)),
        Came::Denied(DenialCode::UnknownAgent)
    );
    let yes = hermitcrab_core::approval::Reply::parse("once");
    assert_eq!(bench.answer(yes), Came::Denied(DenialCode::UnknownAnswer));
}

#[test]
fn agents_start_agents_only_so_deep_and_so_many() {
    let mut bench = Bench::new(Asking::Refuse);
    let mut last = AgentId::FIRST;
    for _ in 0..DELEGATION_DEPTH_MAX {
        let spawning = bench.session.held_by(last).next().unwrap().id();
        last = bench.spawn(last, &[spawning]).unwrap().0;
    }
    assert_eq!(bench.spawn(last, &[]), Err(DenialCode::LimitReached));
    let mut wide = Bench::new(Asking::Refuse);
    let mut children = Vec::new();
    for _ in 0..CHILDREN_PER_AGENT_MAX {
        children.push(wide.spawn(AgentId::FIRST, &[]).unwrap().0);
    }
    assert_eq!(
        wide.spawn(AgentId::FIRST, &[]),
        Err(DenialCode::LimitReached)
    );
    assert_eq!(wide.session.children(AgentId::FIRST).count(), 64);
    assert_eq!(wide.session.parent(children[0]), Some(AgentId::FIRST));
    assert_eq!(wide.session.parent(AgentId::FIRST), None);
    wide.step(Event::EndAgent(children[0]));
    assert!(wide.spawn(AgentId::FIRST, &[]).is_ok());
}

fn standing(places: &[&str]) -> (Standing, Surroundings) {
    let caps = places
        .iter()
        .map(|place| PortableCap::new(Verb::FsRead, PortableObject::tree(path(place))).unwrap());
    let audience = Audience::new(Name::parse("ws").unwrap());
    let (boot, now) = (BootId::from_bytes([1; 16]), WallTime::from_millis(5));
    let kept = Standing {
        id: StandingId::new(9),
        audience: audience.clone(),
        site: None,
        authority: PortableAuthority::from_caps(caps).unwrap(),
        uses_left: Uses::Uncounted,
        isolation: Isolation::Isolated,
        made_at: now,
        confirmed_at: now,
        confirm_every: hermitcrab_core::time::Millis::from_minutes(1),
        boot,
        confirmed_in_boot: Some(Instant::BOOT),
        kept: Kept::Confirmed,
    };
    let isolation = Isolation::Isolated;
    let here = Surroundings {
        audience,
        site: None,
        boot,
        now,
        in_boot: Instant::BOOT,
        isolation,
    };
    (kept, here)
}

#[test]
fn a_standing_grant_counts_where_it_is_confirmed_and_no_longer_than_that() {
    let mut bench = Bench::new(Asking::Refuse);
    let (standing, here) = standing(&["home/u/proj/src"]);
    let adopt = |standing: &Standing, here: &Surroundings| Event::Adopt {
        holder: AgentId::FIRST,
        standing: standing.clone(),
        here: here.clone(),
    };
    let mut rebooted = here.clone();
    rebooted.boot = BootId::from_bytes([2; 16]);
    assert_eq!(
        bench.step(adopt(&standing, &rebooted)),
        Came::Denied(DenialCode::ConfirmationDue)
    );
    assert_eq!(bench.read("src/a"), Came::Denied(DenialCode::NoCap));
    assert_eq!(bench.step(adopt(&standing, &here)), Came::Nothing);
    assert!(
        bench
            .ledger
            .last()
            .unwrap()
            .text
            .contains("by standing standing9")
    );
    assert_eq!(bench.read("src/a"), Came::Permitted(1));
    assert_eq!(bench.read("b"), Came::Denied(DenialCode::NoCap));
    bench.seconds = 61;
    assert_eq!(bench.read("src/a"), Came::Denied(DenialCode::Expired));
}

#[test]
fn a_standing_grant_on_a_place_nobody_opened_is_none() {
    let mut bench = Bench::new(Asking::Refuse);
    let (standing, here) = standing(&["home/u/proj/src", "srv"]);
    let event = Event::Adopt {
        holder: AgentId::FIRST,
        standing,
        here,
    };
    assert_eq!(bench.step(event), Came::Denied(DenialCode::NoCap));
    assert_eq!(bench.read("src/a"), Came::Denied(DenialCode::NoCap));
}

#[test]
fn a_grant_says_itself_in_portable_words_if_it_can() {
    let mut bench = Bench::new(Asking::Refuse);
    let reading = bench.on_files(&[Verb::FsRead], "src");
    let grant = bench.grant(reading, Uses::Uncounted, SESSION);
    let words = bench.session.portable(grant).unwrap();
    assert_eq!(words.to_string(), "fs.read /home/u/proj/src");
    let own = bench.session.held_by(AgentId::FIRST).next().unwrap();
    assert_eq!(own.origin(), Origin::Session);
    assert_eq!(bench.session.portable(own.id()), None);
}

#[test]
fn what_is_over_is_no_longer_searched_and_still_says_why() {
    let mut bench = Bench::new(Asking::Refuse);
    for _ in 0..50 {
        let reading = bench.on_files(&[Verb::FsRead], "a");
        bench.grant(reading, Uses::AtMost(1), SESSION);
        assert_eq!(bench.read("a"), Came::Permitted(1));
    }
    assert_eq!(bench.read("a"), Came::Denied(DenialCode::Exhausted));
    let whole = bench.on_files(&[Verb::FsRead], ".");
    let last = bench.grant(whole, Uses::Uncounted, SESSION);
    bench.step(Event::Revoke(last));
    assert_eq!(bench.read("a"), Came::Denied(DenialCode::Revoked));
    assert_eq!(bench.read("b"), Came::Denied(DenialCode::Revoked));
}

#[test]
fn what_runs_is_counted_from_its_permit_to_its_end() {
    let mut bench = Bench::new(Asking::Prompt);
    assert_eq!(bench.session.running(), 0);
    assert_eq!(bench.run("make"), Came::Asked);
    assert_eq!(
        bench.session.running(),
        0,
        "what is asked about does not run"
    );
    assert_eq!(bench.answer(Reply::Yes(Scope::Once)), Came::Permitted(1));
    assert_eq!(bench.session.running(), 1);
    assert!(bench.session.is_running());
    bench.finish();
    assert_eq!(bench.session.running(), 0);
    assert!(!bench.session.is_running());
}
