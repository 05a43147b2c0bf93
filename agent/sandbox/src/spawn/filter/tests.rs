//! Our program against seccompiler's, and its size.

use std::collections::{BTreeMap, BTreeSet};

use nix::libc;

use super::emit::{self, ARCHITECTURE};
use super::machine::{Call, run};
use super::source;
use super::table::{self, Entry, Ids, Sockets, When};

/// A user whose id has few bits in common with others.
const IDS: Ids = Ids {
    user: 1000,
    group: 100,
};

/// The order of strictness of the results used here.
fn strictness(result: u32) -> u32 {
    match result {
        libc::SECCOMP_RET_KILL_PROCESS => 2,
        libc::SECCOMP_RET_ALLOW => 0,
        _ => 1,
    }
}

/// Values around everything a row compares an argument with.
fn edges(rows: &[&Entry]) -> BTreeMap<u32, (u8, BTreeSet<u64>)> {
    let mut edges: BTreeMap<u32, (u8, BTreeSet<u64>)> = BTreeMap::new();
    for row in rows {
        let (argument, values) = match row.when {
            When::Always => continue,
            When::AnyBit(argument, bits) => (argument, vec![bits]),
            When::Equals(argument, value) => (argument, vec![value]),
            When::MaskedEquals(argument, mask, value) => (argument, vec![mask, value]),
            When::NoneOf(argument, values) => (argument, values.to_vec()),
            When::NotOwn(argument, own) => (argument, IDS.of(own).to_vec()),
        };
        let number = u32::try_from(row.call).unwrap();
        let known = &mut edges.entry(number).or_insert((0, BTreeSet::new()));
        known.0 |= 1 << argument;
        for value in values.into_iter().map(u64::from) {
            for shift in 0..32 {
                known
                    .1
                    .extend([1 << shift, value ^ (1 << shift), value | (1 << shift)]);
            }
            for near in [value, value.wrapping_sub(1), value + 1] {
                known
                    .1
                    .extend([near, near | 1 << 32, near | 0xffff_ffff << 32]);
            }
        }
        known
            .1
            .extend([0, 1, 2, 16, 17, 38, 40, 0xffff_ffff, u64::MAX]);
    }
    edges
}

#[test]
fn our_program_and_seccompilers_agree_on_every_number_and_edge_value() {
    let mut compared = 0_u64;
    for sockets in [Sockets::Local, Sockets::Internet] {
        let rows: Vec<&Entry> = table::rows(sockets).collect();
        let ours = emit::program(rows.iter().copied(), IDS);
        let theirs = source::programs(&rows, IDS);
        let mut check = |call: Call| {
            let wanted = theirs
                .iter()
                .map(|program| run(program, &call).0)
                .max_by_key(|result| strictness(*result))
                .unwrap();
            let (found, _) = run(&ours, &call);
            assert_eq!(found, wanted, "{call:?}");
            compared += 1;
        };
        let edges = edges(&rows);
        let numbers = (0..2048).chain((0x4000_0000..0x4000_0400).chain([
            u32::MAX,
            u32::MAX - 1,
            i32::MAX as u32,
        ]));
        for number in numbers {
            let call = |arguments| Call {
                architecture: ARCHITECTURE,
                number,
                arguments,
            };
            check(call([0; 6]));
            check(call([u64::MAX; 6]));
            let Some((arguments, values)) = edges.get(&number) else {
                continue;
            };
            let places: Vec<usize> = (0..6)
                .filter(|place| arguments & (1 << place) != 0)
                .collect();
            for value in values {
                for place in &places {
                    // The others at a value that is refused and at one that is not.
                    for rest in [0, 1, 2, 1000, 100, u64::MAX] {
                        let mut arguments = [rest; 6];
                        arguments[*place] = *value;
                        check(call(arguments));
                    }
                }
            }
        }
        for architecture in [0, 0x4000_0003, 0x4000_003e, ARCHITECTURE ^ 1, u32::MAX] {
            for number in [0, 1, 59, 400] {
                check(Call {
                    architecture,
                    number,
                    arguments: [0; 6],
                });
            }
        }
    }
    assert!(compared > 20_000, "{compared}");
}

#[test]
fn our_program_is_short_and_decides_in_few_steps() {
    for sockets in [Sockets::Local, Sockets::Internet] {
        let program = emit::program(table::rows(sockets), IDS);
        let theirs: usize = source::programs(&table::rows(sockets).collect::<Vec<_>>(), IDS)
            .iter()
            .map(Vec::len)
            .sum();
        assert!(program.len() < 320, "{}", program.len());
        assert!(theirs > 5 * program.len(), "{theirs}");
        let steps = (0..512)
            .map(|number| {
                let call = Call {
                    architecture: ARCHITECTURE,
                    number,
                    arguments: [0; 6],
                };
                run(&program, &call).1
            })
            .max();
        assert!(steps.unwrap() < 24, "{steps:?}");
    }
}

#[test]
fn foreign_entries_are_stopped() {
    let program = emit::program(table::rows(Sockets::Local), IDS);
    let result = |architecture, number| {
        let call = Call {
            architecture,
            number,
            arguments: [0; 6],
        };
        run(&program, &call).0
    };
    let absent = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    let allowed = u32::try_from(libc::SYS_getpid).unwrap();
    // 32-bit entry carries another mark; x32 carries ours and a bit in the number.
    assert_eq!(result(0x4000_0003, 20), libc::SECCOMP_RET_KILL_PROCESS);
    assert_eq!(result(ARCHITECTURE, 0x4000_0000 | allowed), absent);
    assert_eq!(result(ARCHITECTURE, 470), absent);
    assert_eq!(result(ARCHITECTURE, allowed), libc::SECCOMP_RET_ALLOW);
}
