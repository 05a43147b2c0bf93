//! The session beside a flat table that knows nothing of trees.
//!
//! The reference keeps, for every grant, a copy of the whole chain it came
//! from, and scans. It shares no code with the session; both see the same
//! random events, and must say the same each time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::collections::BTreeMap;

use hermitcrab_core::{
    authority::Verb,
    grant::{AgentId, GrantId, Uses},
    outcome::DenialCode,
    session::{Asking, Attenuation, Event},
    tool::Tool,
};
use proptest::prelude::*;
use support::{Bench, Came, for_seconds};

const PLACES: [&str; 6] = [".", "a", "a/b", "a/b/c", "a-b", "d"];
const VERBS: [Verb; 3] = [Verb::FsRead, Verb::FsModify, Verb::FsDelete];

#[derive(Clone, Debug)]
enum Op {
    Grant {
        holder: usize,
        verbs: u8,
        place: usize,
        uses: Option<u64>,
        seconds: u64,
    },
    Narrow {
        by: usize,
        from: usize,
        holder: usize,
        verbs: u8,
        place: usize,
        uses: Option<u64>,
        seconds: u64,
    },
    Revoke(usize),
    Spawn {
        parent: usize,
        forward: Vec<usize>,
    },
    Call {
        by: usize,
        wanted: Vec<(usize, usize)>,
    },
    Wait(u64),
    End,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let uses = || prop::option::of(0..4_u64);
    let place = || 0..PLACES.len();
    let op = prop_oneof![
        40 => (0..4_usize, 1..8_u8, place(), uses(), 0..60_u64)
            .prop_map(|(holder, verbs, place, uses, seconds)| Op::Grant { holder, verbs, place, uses, seconds }),
        30 => (0..4_usize, 0..12_usize, 0..4_usize, 1..8_u8, place(), uses(), 0..60_u64)
            .prop_map(|(by, from, holder, verbs, place, uses, seconds)| Op::Narrow { by, from, holder, verbs, place, uses, seconds }),
        15 => (0..12_usize).prop_map(Op::Revoke),
        20 => (0..4_usize, prop::collection::vec(0..12_usize, 0..3)).prop_map(|(parent, forward)| Op::Spawn { parent, forward }),
        120 => (0..4_usize, prop::collection::vec((0..VERBS.len(), place()), 0..3)).prop_map(|(by, wanted)| Op::Call { by, wanted }),
        15 => (0..20_u64).prop_map(Op::Wait),
        1 => Just(Op::End),
    ];
    prop::collection::vec(op, 0..80)
}

/// One link of a grant's chain, shared by number so that uses are shared.
#[derive(Clone, Debug)]
struct Link {
    uses: Option<u64>,
    expires: u64,
    revoked: bool,
}

#[derive(Clone, Debug)]
struct Row {
    holder: usize,
    verbs: u8,
    place: usize,
    spawns: bool,
    /// The numbers of its links, its own last.
    chain: Vec<usize>,
}

impl Row {
    fn of(holder: usize, verbs: u8, place: usize) -> Row {
        Row {
            holder,
            verbs,
            place,
            spawns: false,
            chain: Vec::new(),
        }
    }
}

#[derive(Default)]
struct Flat {
    links: Vec<Link>,
    rows: Vec<Row>,
    agents: usize,
    now: u64,
    ended: bool,
}

fn is_below(place: usize, prefix: usize) -> bool {
    let (place, prefix) = (PLACES[place], PLACES[prefix]);
    prefix == "." || place == prefix || place.starts_with(&format!("{prefix}/"))
}

impl Flat {
    fn new() -> Flat {
        let mut flat = Flat {
            agents: 1,
            ..Flat::default()
        };
        // The first agent's right to start others: the session's own grant, thirty days.
        flat.links.push(Link {
            uses: None,
            expires: 30 * 24 * 3600,
            revoked: false,
        });
        flat.rows.push(Row {
            holder: 0,
            verbs: 0,
            place: 0,
            spawns: true,
            chain: vec![0],
        });
        flat
    }

    fn dead(&self, row: usize) -> Option<DenialCode> {
        let chain = || self.rows[row].chain.iter().map(|link| &self.links[*link]);
        if chain().any(|link| link.revoked) {
            Some(DenialCode::Revoked)
        } else if chain().any(|link| self.now > link.expires) {
            Some(DenialCode::Expired)
        } else if chain().any(|link| link.uses == Some(0)) {
            Some(DenialCode::Exhausted)
        } else {
            None
        }
    }

    fn pick(&self, by: usize, covers: impl Fn(&Row) -> bool) -> Result<usize, DenialCode> {
        let fitting: Vec<usize> = (0..self.rows.len())
            .filter(|row| self.rows[*row].holder == by && covers(&self.rows[*row]))
            .collect();
        let living: Vec<usize> = fitting
            .iter()
            .copied()
            .filter(|row| self.dead(*row).is_none())
            .collect();
        let free = living.iter().find(|row| {
            self.rows[**row]
                .chain
                .iter()
                .all(|link| self.links[*link].uses.is_none())
        });
        match (free.or(living.first()), fitting.last()) {
            (Some(row), _) => Ok(*row),
            (None, Some(newest)) => Err(self.dead(*newest).unwrap()),
            (None, None) => Err(DenialCode::NoCap),
        }
    }

    fn spend(&mut self, row: usize) {
        for link in self.rows[row].chain.clone() {
            self.links[link].uses = self.links[link].uses.map(|left| left - 1);
        }
    }

    /// Adds a row below `above`; `row.chain` is made here.
    fn add(&mut self, above: &[usize], row: Row, uses: Option<u64>, expires: u64) {
        let mut chain = above.to_vec();
        chain.push(self.links.len());
        self.links.push(Link {
            uses,
            expires,
            revoked: false,
        });
        self.rows.push(Row { chain, ..row });
    }

    fn grant(&mut self, row: Row, uses: Option<u64>, seconds: u64) -> Option<DenialCode> {
        if self.ended {
            return Some(DenialCode::SessionEnded);
        }
        if row.holder >= self.agents {
            return Some(DenialCode::UnknownAgent);
        }
        self.add(&[], row, uses, self.now + seconds);
        None
    }

    fn narrow(
        &mut self,
        by: usize,
        from: usize,
        row: Row,
        uses: Option<u64>,
        seconds: u64,
    ) -> Option<DenialCode> {
        if self.ended {
            return Some(DenialCode::SessionEnded);
        }
        let above = self.rows[from].clone();
        if above.holder != by {
            return Some(DenialCode::NoCap);
        }
        if let Some(code) = self.dead(from) {
            return Some(code);
        }
        if above.spawns || row.verbs & !above.verbs != 0 || !is_below(row.place, above.place) {
            return Some(DenialCode::Amplifies);
        }
        if row.holder >= self.agents {
            return Some(DenialCode::UnknownAgent);
        }
        let latest = self.links[*above.chain.last().unwrap()].expires;
        self.add(&above.chain, row, uses, latest.min(self.now + seconds));
        None
    }

    fn call(&mut self, by: usize, wanted: &[(usize, usize)]) -> Came {
        if self.ended {
            return Came::Denied(DenialCode::SessionEnded);
        }
        if by >= self.agents {
            return Came::Denied(DenialCode::UnknownAgent);
        }
        let before = self.links.clone();
        let mut first = None;
        for (verb, place) in wanted {
            match self.pick(by, |row| {
                row.verbs & (1 << verb) != 0 && is_below(*place, row.place)
            }) {
                Ok(row) => self.spend(row),
                Err(code) => first = first.or(Some(code)),
            }
        }
        match first {
            Some(code) => {
                self.links = before;
                Came::Denied(code)
            }
            None if wanted.is_empty() => Came::Nothing,
            None => Came::Permitted(wanted.len()),
        }
    }

    fn spawn(&mut self, parent: usize, forward: &[usize]) -> Option<DenialCode> {
        if self.ended {
            return Some(DenialCode::SessionEnded);
        }
        if parent >= self.agents {
            return Some(DenialCode::UnknownAgent);
        }
        let mut forward = forward.to_vec();
        forward.sort_unstable();
        forward.dedup();
        for row in &forward {
            if self.rows[*row].holder != parent {
                return Some(DenialCode::NoCap);
            }
            if let Some(code) = self.dead(*row) {
                return Some(code);
            }
        }
        match self.pick(parent, |row| row.spawns) {
            Ok(row) => self.spend(row),
            Err(code) => return Some(code),
        }
        for row in forward {
            let from = self.rows[row].clone();
            // The copy starts with the limits of the original as they were granted; the
            // original stands above it in the chain, so what is left there bounds it.
            let own = self.links[*from.chain.last().unwrap()].clone();
            let uses = own.uses.map(|_| u64::MAX);
            let copy = Row {
                holder: self.agents,
                ..from.clone()
            };
            self.add(&from.chain, copy, uses, own.expires);
        }
        self.agents += 1;
        None
    }
}

fn check(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let mut bench = Bench::new(Asking::Refuse);
    let mut flat = Flat::new();
    let mut ids: Vec<GrantId> = bench
        .session
        .held_by(AgentId::FIRST)
        .map(|grant| grant.id())
        .collect();
    // Agents by number; one that does not exist is borrowed from another session.
    let mut agents: BTreeMap<usize, AgentId> = BTreeMap::from([(0, AgentId::FIRST)]);
    let mut elsewhere = Bench::new(Asking::Refuse);
    let strangers: Vec<AgentId> = (0..8)
        .map(|_| elsewhere.spawn(AgentId::FIRST, &[]).unwrap().0)
        .collect();
    let verbs_of = |mask: u8| {
        VERBS
            .iter()
            .enumerate()
            .filter(move |(bit, _)| mask & (1 << bit) != 0)
            .map(|(_, verb)| *verb)
            .collect::<Vec<_>>()
    };
    let count = |uses: Option<u64>| uses.map_or(Uses::Uncounted, Uses::AtMost);

    for op in ops {
        let agent = |number: usize| {
            agents
                .get(&number)
                .copied()
                .unwrap_or(strangers[number.max(1) - 1])
        };
        match op {
            Op::Grant {
                holder,
                verbs,
                place,
                uses,
                seconds,
            } => {
                let authority = bench.on_files(&verbs_of(verbs), PLACES[place]);
                let real =
                    bench.try_grant(agent(holder), authority, count(uses), for_seconds(seconds));
                let expected = flat.grant(Row::of(holder, verbs, place), uses, seconds);
                prop_assert_eq!(real.as_ref().err().map(|denial| denial.code()), expected);
                ids.extend(real.ok());
            }
            Op::Narrow {
                by,
                from,
                holder,
                verbs,
                place,
                uses,
                seconds,
            } => {
                let Some(grant) = ids.get(from).copied() else {
                    continue;
                };
                let authority = bench.on_files(&verbs_of(verbs), PLACES[place]);
                let wanted = Attenuation {
                    by: agent(by),
                    from: grant,
                    holder: agent(holder),
                    authority,
                    uses: count(uses),
                    lifetime: for_seconds(seconds),
                };
                let real = bench.attenuate(wanted);
                let expected = flat.narrow(by, from, Row::of(holder, verbs, place), uses, seconds);
                prop_assert_eq!(real.as_ref().err().map(|denial| denial.code()), expected);
                ids.extend(real.ok());
            }
            Op::Revoke(which) => {
                let Some(grant) = ids.get(which).copied() else {
                    continue;
                };
                let real = bench.step(Event::Revoke(grant));
                let expected = if flat.ended {
                    Came::Denied(DenialCode::SessionEnded)
                } else {
                    Came::Nothing
                };
                prop_assert_eq!(real, expected);
                let link = *flat.rows[which].chain.last().unwrap();
                flat.links[link].revoked = true;
            }
            Op::Spawn { parent, forward } => {
                let known: Vec<usize> =
                    forward.into_iter().filter(|row| *row < ids.len()).collect();
                let grants: Vec<GrantId> = known.iter().map(|row| ids[*row]).collect();
                let real = bench.spawn(agent(parent), &grants);
                let number = flat.agents;
                let expected = flat.spawn(parent, &known);
                prop_assert_eq!(real.as_ref().err().copied(), expected);
                if let Ok((child, held)) = real {
                    agents.insert(number, child);
                    ids.extend(held);
                }
            }
            Op::Call { by, wanted } => {
                let actions = wanted
                    .iter()
                    .map(|(verb, place)| bench.file(VERBS[*verb], PLACES[*place]))
                    .collect();
                let real = bench.call_as(agent(by), Tool::Directory, actions);
                let expected = flat.call(by, &wanted);
                prop_assert_eq!(&real, &expected);
                if !matches!(real, Came::Denied(_)) {
                    bench.finish();
                }
            }
            Op::Wait(seconds) => {
                bench.seconds += seconds;
                flat.now += seconds;
            }
            Op::End => {
                bench.step(Event::End);
                flat.ended = true;
                flat.links.iter_mut().for_each(|link| link.revoked = true);
            }
        }
        prop_assert_eq!(ids.len(), flat.rows.len());
        for (row, id) in ids.iter().enumerate() {
            let real = bench.session.table().usable(*id, bench.now()).err();
            prop_assert_eq!(real, flat.dead(row), "grant {}", row);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_session_and_the_flat_table_always_agree(ops in ops()) {
        check(ops)?;
    }
}
