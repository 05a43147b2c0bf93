//! Turns the table into one short program.
//!
//! What for: the kernel runs a filter once for every call number when it is
//! installed, so a chain of comparisons costs more than starting a program.
//! This is a binary search over ranges of numbers, with the argument checks in
//! its leaves. The slow, well-known compiler is the judge of this one: a test
//! compares their verdicts.
//!
//! The program is written from its end to its start, because jumps only go
//! forward: what is jumped to has a place before what jumps.
//!
//! It must never let pass what the table does not let pass: the mark of the
//! architecture is checked first, and a number outside the reviewed ranges is
//! absent.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::sock_filter;

use super::table::{Action, Entry, Ids, REVIEWED, When};

/// The kernel's mark of the architecture, from linux/audit.h.
#[cfg(target_arch = "x86_64")]
pub(super) const ARCHITECTURE: u32 = 0xc000_003e;
/// The kernel's mark of the architecture, from linux/audit.h.
#[cfg(target_arch = "aarch64")]
pub(super) const ARCHITECTURE: u32 = 0xc000_00b7;

// Classic BPF, see linux/bpf_common.h: class, size or operation, source.
pub(super) const LOAD: u16 = 0x20;
pub(super) const JUMP: u16 = 0x05;
pub(super) const JUMP_EQUAL: u16 = 0x15;
pub(super) const JUMP_AT_LEAST: u16 = 0x35;
pub(super) const JUMP_ANY_BIT: u16 = 0x45;
pub(super) const AND: u16 = 0x54;
pub(super) const RETURN: u16 = 0x06;

// Places in struct seccomp_data.
pub(super) const AT_NUMBER: u32 = 0;
pub(super) const AT_ARCHITECTURE: u32 = 4;
pub(super) const AT_ARGUMENTS: u32 = 16;

/// What the program does with one range of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Leaf {
    Return(u32),
    /// The rows of one call, in order.
    Check(Vec<(When, Action)>),
}

/// The whole program for these rows and a command with these ids.
pub(super) fn program<'a>(rows: impl Iterator<Item = &'a Entry>, ids: Ids) -> Vec<sock_filter> {
    let mut backwards = Backwards::new(ids);
    let segments = segments(rows);
    let search = backwards.search(&segments);
    backwards.jump_to(search);
    backwards.push(LOAD, 0, 0, AT_NUMBER);
    let start = backwards.here();
    let kill = backwards.result(libc::SECCOMP_RET_KILL_PROCESS);
    backwards.branch(JUMP_EQUAL, ARCHITECTURE, start, kill);
    backwards.push(LOAD, 0, 0, AT_ARCHITECTURE);
    backwards.finish()
}

pub(super) fn value(action: Action) -> u32 {
    let errno = |errno: i32| libc::SECCOMP_RET_ERRNO | errno.cast_unsigned();
    match action {
        Action::Kill => libc::SECCOMP_RET_KILL_PROCESS,
        Action::Refuse => errno(libc::EPERM),
        Action::Absent => errno(libc::ENOSYS),
    }
}

/// The first number of each range, with what happens there; covers all numbers.
fn segments<'a>(rows: impl Iterator<Item = &'a Entry>) -> Vec<(u32, Leaf)> {
    let mut by_call: BTreeMap<u32, Vec<(When, Action)>> = BTreeMap::new();
    for row in rows {
        // A number that does not fit is no number: every other one is absent.
        if let Ok(number) = u32::try_from(row.call) {
            by_call
                .entry(number)
                .or_default()
                .push((row.when, row.action));
        }
    }
    let absent = || Leaf::Return(value(Action::Absent));
    let mut segments: Vec<(u32, Leaf)> = Vec::new();
    let mut add = |first: u32, leaf: Leaf| {
        if segments.last().is_none_or(|(_, last)| *last != leaf) {
            segments.push((first, leaf));
        }
    };
    let mut next = 0;
    for (first, last) in REVIEWED {
        if *first > next {
            add(next, absent());
        }
        for number in *first..=*last {
            add(number, leaf(by_call.remove(&number)));
        }
        next = last.saturating_add(1);
    }
    add(next, absent());
    segments
}

fn leaf(rows: Option<Vec<(When, Action)>>) -> Leaf {
    match rows {
        None => Leaf::Return(libc::SECCOMP_RET_ALLOW),
        Some(rows) => match rows.iter().find(|(when, _)| *when == When::Always) {
            Some((_, action)) => Leaf::Return(value(*action)),
            None => Leaf::Check(rows),
        },
    }
}

/// A program written from its end; a place is counted from the end too.
struct Backwards {
    reversed: Vec<sock_filter>,
    results: BTreeMap<u32, usize>,
    ids: Ids,
}

impl Backwards {
    const fn new(ids: Ids) -> Self {
        Self {
            reversed: Vec::new(),
            results: BTreeMap::new(),
            ids,
        }
    }

    /// The place of the instruction written last.
    fn here(&self) -> usize {
        self.reversed.len()
    }

    fn push(&mut self, code: u16, jt: u8, jf: u8, k: u32) {
        self.reversed.push(sock_filter { code, jt, jf, k });
    }

    /// How far the next instruction must jump to get to `place`.
    fn distance(&self, place: usize) -> usize {
        self.here().saturating_sub(place)
    }

    /// A place that returns `result`, near enough for a branch.
    fn result(&mut self, result: u32) -> usize {
        if let Some(place) = self.results.get(&result)
            // Room for what may be written in between.
            && self.distance(*place) < 200
        {
            return *place;
        }
        self.push(RETURN, 0, 0, result);
        let place = self.here();
        self.results.insert(result, place);
        place
    }

    /// Goes to `place` from anywhere, with no instruction if that is what follows.
    fn jump_to(&mut self, place: usize) {
        let distance = self.distance(place);
        if distance > 0 {
            self.push(JUMP, 0, 0, u32::try_from(distance).unwrap_or(u32::MAX));
        }
    }

    /// A place that is near and leads to `place`.
    fn near(&mut self, place: usize) -> usize {
        if self.distance(place) < 250 {
            return place;
        }
        self.jump_to(place);
        self.here()
    }

    /// Writes a branch and returns its place.
    fn branch(&mut self, code: u16, k: u32, yes: usize, no: usize) -> usize {
        let yes = self.near(yes);
        let no = self.near(no);
        // Both are near: `near` writes at most one instruction in between.
        let jump = |place| u8::try_from(self.distance(place)).unwrap_or(u8::MAX);
        let (jt, jf) = (jump(yes), jump(no));
        self.push(code, jt, jf, k);
        self.here()
    }

    /// A binary search over `segments`, and everything in its leaves.
    fn search(&mut self, segments: &[(u32, Leaf)]) -> usize {
        match segments {
            [] => self.result(value(Action::Absent)),
            [(_, Leaf::Return(result))] => self.result(*result),
            [(_, Leaf::Check(rows))] => self.check(rows),
            _ => {
                let (low, high) = segments.split_at(segments.len() / 2);
                let middle = high.first().map_or(u32::MAX, |(first, _)| *first);
                let high = self.search(high);
                let low = self.search(low);
                self.branch(JUMP_AT_LEAST, middle, high, low)
            }
        }
    }

    /// The rows of one call: the first that applies decides.
    fn check(&mut self, rows: &[(When, Action)]) -> usize {
        let mut next = self.result(libc::SECCOMP_RET_ALLOW);
        for (when, action) in rows.iter().rev() {
            let hit = self.result(value(*action));
            let argument = match *when {
                When::Always => {
                    next = hit;
                    continue;
                }
                When::AnyBit(argument, bits) => {
                    self.branch(JUMP_ANY_BIT, bits, hit, next);
                    argument
                }
                When::Equals(argument, value) => {
                    self.branch(JUMP_EQUAL, value, hit, next);
                    argument
                }
                When::MaskedEquals(argument, mask, value) => {
                    self.branch(JUMP_EQUAL, value, hit, next);
                    self.push(AND, 0, 0, mask);
                    argument
                }
                When::NoneOf(argument, values) => {
                    self.none_of(values, next, hit);
                    argument
                }
                When::NotOwn(argument, own) => {
                    self.none_of(&self.ids.of(own), next, hit);
                    argument
                }
            };
            self.push(
                LOAD,
                0,
                0,
                AT_ARGUMENTS.saturating_add(u32::from(argument).saturating_mul(8)),
            );
            next = self.here();
        }
        next
    }

    /// Goes to `next` for each of these values, and else to `hit`.
    fn none_of(&mut self, values: &[u32], next: usize, hit: usize) {
        let mut otherwise = hit;
        for value in values {
            otherwise = self.branch(JUMP_EQUAL, *value, next, otherwise);
        }
    }

    fn finish(self) -> Vec<sock_filter> {
        self.reversed.into_iter().rev().collect()
    }
}
