//! The life of grants beside a reference that knows nothing of trees or indices.
//!
//! The reference is a list of rows and scans it for everything. Random runs
//! grant, forward, use, revoke, drain, wait, start and end agents; after each
//! step the session has to say what the reference says: what was permitted or
//! why not, which calls are to be stopped, which grants drained, which expired.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::{
    approval::CallId,
    grant::{AgentId, GrantId, State, Uses},
    limits::DEADLINE_GRACE,
    outcome::{DenialCode, Outcome},
    session::{Asking, Event, GrantSpec},
};
use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use support::{Bench, any_program, for_seconds};

const GRACE: u64 = DEADLINE_GRACE.get() / 1000;

/// One thing that happens; numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Step {
    Grant {
        holder: usize,
        uses: Option<u64>,
        seconds: u64,
    },
    Forward {
        by: usize,
        from: usize,
        holder: usize,
    },
    Start(usize),
    Finish(usize),
    Revoke(usize),
    Drain(usize),
    Spawn(usize),
    EndAgent(usize),
    Wait(u64),
}

#[derive(Clone, Debug)]
struct Row {
    holder: usize,
    parent: Option<usize>,
    uses: Option<u64>,
    used: u64,
    expires: u64,
    revoked: bool,
    expiry_told: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    Stopped,
    Done,
}

#[derive(Clone, Debug)]
struct Flight {
    row: usize,
    stage: Stage,
}

/// What a step came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Came {
    permitted: bool,
    refused: Option<DenialCode>,
    stopped: Vec<usize>,
    drained: Vec<usize>,
    expired: Vec<usize>,
    ended: Vec<usize>,
}

impl Came {
    fn no(code: DenialCode) -> Came {
        Came {
            refused: Some(code),
            ..Came::default()
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Flat {
    now: u64,
    /// Whether each agent has ended; all but the first are children of the first.
    ended: Vec<bool>,
    rows: Vec<Row>,
    flights: Vec<Flight>,
    /// Grants whose drain is not told yet, with what ran then.
    drains: Vec<(usize, Vec<usize>)>,
    came: Came,
}

impl Flat {
    fn lineage(&self, row: usize) -> Vec<usize> {
        let mut all = vec![row];
        while let Some(parent) = self.rows[*all.last().unwrap()].parent {
            all.push(parent);
        }
        all
    }

    fn dead(&self, row: usize) -> Option<DenialCode> {
        let rows = || self.lineage(row).into_iter().map(|row| &self.rows[row]);
        if rows().any(|row| row.revoked) {
            Some(DenialCode::Revoked)
        } else if rows().any(|row| self.now > row.expires) {
            Some(DenialCode::Expired)
        } else if rows().any(|row| row.uses.is_some_and(|uses| row.used >= uses)) {
            Some(DenialCode::Exhausted)
        } else {
            None
        }
    }

    fn start(&mut self, by: usize) -> Came {
        if self.ended[by] {
            return Came::no(DenialCode::UnknownAgent);
        }
        let held: Vec<usize> = (0..self.rows.len())
            .filter(|row| self.rows[*row].holder == by)
            .collect();
        let live: Vec<usize> = held
            .iter()
            .copied()
            .filter(|row| self.dead(*row).is_none())
            .collect();
        let free = live.iter().find(|row| {
            let lineage = self.lineage(**row);
            lineage.iter().all(|row| self.rows[*row].uses.is_none())
        });
        match (free.or(live.first()).copied(), held.last()) {
            (Some(row), _) => {
                for row in self.lineage(row) {
                    self.rows[row].used += 1;
                }
                let stage = Stage::Running;
                self.flights.push(Flight { row, stage });
                Came {
                    permitted: true,
                    ..Came::default()
                }
            }
            (None, Some(newest)) => Came::no(self.dead(*newest).unwrap()),
            (None, None) => Came::no(DenialCode::NoCap),
        }
    }

    /// Revokes these and all below; what runs there is to be stopped.
    fn end(&mut self, roots: &[usize]) -> Vec<usize> {
        for row in 0..self.rows.len() {
            if self.lineage(row).iter().any(|above| roots.contains(above)) {
                self.rows[row].revoked = true;
            }
        }
        self.stop(|flat, flight| flat.rows[flight.row].revoked)
    }

    fn stop(&mut self, reached: impl Fn(&Flat, &Flight) -> bool) -> Vec<usize> {
        let hit: Vec<usize> = (0..self.flights.len())
            .filter(|number| {
                let flight = &self.flights[*number];
                flight.stage == Stage::Running && reached(self, flight)
            })
            .collect();
        for number in &hit {
            self.flights[*number].stage = Stage::Stopped;
        }
        hit
    }

    fn running_on(&self, grant: usize) -> Vec<usize> {
        (0..self.flights.len())
            .filter(|number| self.flights[*number].stage != Stage::Done)
            .filter(|number| self.lineage(self.flights[*number].row).contains(&grant))
            .collect()
    }

    fn wait(&mut self, seconds: u64) -> Came {
        self.now += seconds;
        let now = self.now;
        let mut expired: Vec<usize> = (0..self.rows.len())
            .filter(|row| now > self.rows[*row].expires && !self.rows[*row].expiry_told)
            .collect();
        for row in &expired {
            self.rows[*row].expiry_told = true;
        }
        expired.retain(|row| !self.rows[*row].revoked);
        expired.sort_by_key(|row| (self.rows[*row].expires, *row));
        let stopped = self.stop(|flat, flight| now > flat.rows[flight.row].expires + GRACE);
        Came {
            expired,
            stopped,
            ..Came::default()
        }
    }

    fn step(&mut self, step: &Step) -> Came {
        match *step {
            Step::Grant {
                holder,
                uses,
                seconds,
            } => {
                let holder = holder % self.ended.len();
                if self.ended[holder] {
                    return Came::no(DenialCode::UnknownAgent);
                }
                self.rows.push(Row {
                    holder,
                    parent: None,
                    uses,
                    used: 0,
                    expires: self.now + seconds,
                    revoked: false,
                    expiry_told: false,
                });
                Came::default()
            }
            Step::Forward { by, from, holder } => {
                let (by, holder) = (by % self.ended.len(), holder % self.ended.len());
                let Some(from) = pick(from, self.rows.len()) else {
                    return Came::default();
                };
                if self.ended[holder] {
                    return Came::no(DenialCode::UnknownAgent);
                }
                if self.rows[from].holder != by {
                    return Came::no(DenialCode::NoCap);
                }
                if let Some(code) = self.dead(from) {
                    return Came::no(code);
                }
                if self.lineage(from).len() > 32 {
                    return Came::no(DenialCode::LimitReached);
                }
                self.rows.push(Row {
                    holder,
                    parent: Some(from),
                    used: 0,
                    ..self.rows[from].clone()
                });
                Came::default()
            }
            Step::Start(by) => self.start(by % self.ended.len()),
            Step::Finish(number) => {
                let Some(number) = pick(number, self.flights.len()) else {
                    return Came::default();
                };
                if self.flights[number].stage == Stage::Done {
                    return Came::no(DenialCode::UnknownCall);
                }
                self.flights[number].stage = Stage::Done;
                let mut drained = Vec::new();
                for (grant, running) in &mut self.drains {
                    running.retain(|other| *other != number);
                    if running.is_empty() {
                        drained.push(*grant);
                    }
                }
                self.drains.retain(|(_, running)| !running.is_empty());
                drained.sort_unstable();
                Came {
                    drained,
                    ..Came::default()
                }
            }
            Step::Revoke(row) => match pick(row, self.rows.len()) {
                Some(row) => Came {
                    stopped: self.end(&[row]),
                    ..Came::default()
                },
                None => Came::default(),
            },
            Step::Drain(row) => {
                let Some(row) = pick(row, self.rows.len()) else {
                    return Came::default();
                };
                let stopped = self.end(&[row]);
                let running = self.running_on(row);
                let drained = if running.is_empty() {
                    vec![row]
                } else {
                    self.drains.retain(|(grant, _)| *grant != row);
                    self.drains.push((row, running));
                    Vec::new()
                };
                Came {
                    stopped,
                    drained,
                    ..Came::default()
                }
            }
            Step::Spawn(row) => {
                if self.ended[0] {
                    return Came::no(DenialCode::UnknownAgent);
                }
                let forward = pick(row, self.rows.len());
                if let Some(row) = forward {
                    if self.rows[row].holder != 0 {
                        return Came::no(DenialCode::NoCap);
                    }
                    if let Some(code) = self.dead(row) {
                        return Came::no(code);
                    }
                    if self.lineage(row).len() > 32 {
                        return Came::no(DenialCode::LimitReached);
                    }
                    self.rows.push(Row {
                        holder: self.ended.len(),
                        parent: Some(row),
                        used: 0,
                        ..self.rows[row].clone()
                    });
                }
                self.ended.push(false);
                Came::default()
            }
            Step::EndAgent(agent) => {
                let agent = agent % self.ended.len();
                if self.ended[agent] {
                    return Came::no(DenialCode::UnknownAgent);
                }
                let gone: Vec<usize> = (0..self.ended.len())
                    .filter(|other| *other == agent || agent == 0)
                    .filter(|other| !self.ended[*other])
                    .collect();
                for agent in &gone {
                    self.ended[*agent] = true;
                }
                let roots: Vec<usize> = (0..self.rows.len())
                    .filter(|row| gone.contains(&self.rows[*row].holder))
                    .collect();
                Came {
                    stopped: self.end(&roots),
                    ended: gone,
                    ..Came::default()
                }
            }
            Step::Wait(seconds) => self.wait(seconds),
        }
    }
}

fn pick(number: usize, count: usize) -> Option<usize> {
    number.checked_rem(count)
}

struct Lifecycle;

impl ReferenceStateMachine for Lifecycle {
    type State = Flat;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Flat> {
        let flat = Flat {
            ended: vec![false],
            ..Flat::default()
        };
        Just(flat).boxed()
    }

    fn transitions(_: &Flat) -> BoxedStrategy<Step> {
        let any = || 0..64_usize;
        let uses = prop::option::of(0..4_u64);
        prop_oneof![
            6 => (any(), uses, 0..40_u64)
                .prop_map(|(holder, uses, seconds)| Step::Grant { holder, uses, seconds }),
            6 => (any(), any(), any())
                .prop_map(|(by, from, holder)| Step::Forward { by, from, holder }),
            12 => any().prop_map(Step::Start),
            6 => any().prop_map(Step::Finish),
            2 => any().prop_map(Step::Revoke),
            2 => any().prop_map(Step::Drain),
            2 => any().prop_map(Step::Spawn),
            1 => any().prop_map(Step::EndAgent),
            3 => (0..15_u64).prop_map(Step::Wait),
        ]
        .boxed()
    }

    fn apply(mut state: Flat, step: &Step) -> Flat {
        state.came = state.step(step);
        state
    }
}

/// The session, and what the reference's numbers are called there.
struct Real {
    bench: Bench,
    agents: Vec<AgentId>,
    grants: Vec<GrantId>,
    calls: Vec<CallId>,
}

impl Real {
    fn event(&self, step: &Step) -> Option<Event> {
        let agent = |number: usize| self.agents[number % self.agents.len()];
        let grant = |number: usize| pick(number, self.grants.len()).map(|row| self.grants[row]);
        Some(match *step {
            Step::Grant {
                holder,
                uses,
                seconds,
            } => Event::Grant(GrantSpec {
                holder: agent(holder),
                authority: any_program(),
                uses: uses.map_or(Uses::Uncounted, Uses::AtMost),
                lifetime: for_seconds(seconds),
            }),
            Step::Forward { by, from, holder } => Event::Forward {
                by: agent(by),
                from: grant(from)?,
                holder: agent(holder),
            },
            Step::Start(by) => {
                let object = hermitcrab_core::authority::Object::Program(
                    hermitcrab_core::authority::Program::AnyInView,
                );
                let verb = hermitcrab_core::authority::Verb::ProcExec;
                let digest = hermitcrab_core::digest::Digest::NONE;
                let action = hermitcrab_core::action::Action::new(verb, object, digest);
                Event::Call(hermitcrab_core::session::Call {
                    by: agent(by),
                    tool: hermitcrab_core::tool::Tool::Terminal,
                    actions: vec![action.unwrap()],
                })
            }
            Step::Finish(number) => Event::Finished {
                call: self.calls[pick(number, self.calls.len())?],
                outcome: Outcome::Stopped,
            },
            Step::Revoke(row) => Event::Revoke(grant(row)?),
            Step::Drain(row) => Event::RevokeAndDrain(grant(row)?),
            Step::Spawn(row) => Event::Spawn {
                parent: AgentId::FIRST,
                forward: grant(row).into_iter().collect(),
            },
            Step::EndAgent(number) => Event::EndAgent(agent(number)),
            Step::Wait(_) => Event::Tick,
        })
    }

    fn step(&mut self, step: &Step) -> Came {
        if let Step::Wait(seconds) = step {
            self.bench.seconds += seconds;
        }
        let Some(event) = self.event(step) else {
            return Came::default();
        };
        let now = self.bench.now();
        let parts = self.bench.session.step(now, event).into_parts();
        let permitted = !parts.permits.is_empty();
        for permit in parts.permits {
            self.calls.push(permit.spend().call());
        }
        self.grants.extend(parts.granted);
        if let Some((child, grants)) = parts.spawned {
            self.agents.push(child);
            self.grants.extend(grants);
        }
        let place = |all: &[GrantId], one: &GrantId| all.iter().position(|id| id == one);
        let grants = &self.grants;
        let rows = |ids: &[GrantId]| ids.iter().filter_map(|id| place(grants, id)).collect();
        let calls = parts.stopped.iter();
        Came {
            permitted,
            refused: parts.denials.first().map(|(_, denial)| denial.code()),
            stopped: calls
                .map(|call| self.calls.iter().position(|id| id == call).unwrap())
                .collect(),
            drained: rows(&parts.drained),
            // The session's own rights are not in the reference.
            expired: rows(&parts.expired),
            ended: parts
                .ended
                .iter()
                .map(|agent| self.agents.iter().position(|id| id == agent).unwrap())
                .collect(),
        }
    }
}

impl StateMachineTest for Lifecycle {
    type SystemUnderTest = Real;
    type Reference = Lifecycle;

    fn init_test(_: &Flat) -> Real {
        Real {
            bench: Bench::new(Asking::Refuse),
            agents: vec![AgentId::FIRST],
            grants: Vec::new(),
            calls: Vec::new(),
        }
    }

    fn apply(mut real: Real, flat: &Flat, step: Step) -> Real {
        assert_eq!(real.step(&step), flat.came, "{step:?}");
        real
    }

    fn check_invariants(real: &Real, flat: &Flat) {
        let table = real.bench.session.table();
        let now = real.bench.now();
        assert_eq!(real.grants.len(), flat.rows.len());
        for (row, id) in real.grants.iter().enumerate() {
            assert_eq!(table.usable(*id, now).err(), flat.dead(row), "{id}");
            assert_eq!(table.get(*id).unwrap().used(), flat.rows[row].used, "{id}");
            let drained = flat.rows[row].revoked && flat.running_on(row).is_empty();
            assert_eq!(real.bench.session.is_drained(*id), drained, "{id}");
            assert_ne!(table.state(*id, now), Some(State::Orphaned));
        }
    }
}

prop_state_machine! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_life_of_grants_is_what_a_flat_list_says(sequential 1..60 => Lifecycle);
}
