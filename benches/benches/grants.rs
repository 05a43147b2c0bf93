//! What grants cost: a use through forwarders, a lookup and the end of a subtree
//! beside a million others, and their memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use hermitcrab_core::authority::{Authority, DirId, Verb};
use hermitcrab_core::cap::CapTable;
use hermitcrab_core::grant::{AgentId, GrantId, Lifetime, Limits, Revoker, Uses};
use hermitcrab_core::path::RelPath;
use hermitcrab_core::time::Instant;
use support::{on_dir, rel, session};

/// Grants beside which things are timed; few where only the benchmark itself is tried.
const MILLION: usize = if cfg!(debug_assertions) {
    10_000
} else {
    1_000_000
};

fn limits(uses: Uses) -> Limits {
    Limits::starting(Instant::BOOT, uses, Lifetime::Session)
}

fn whole(dir: DirId) -> Authority {
    Authority::of(on_dir(Verb::FsRead, dir, RelPath::root()))
}

/// A grant passed on this often; the last holder's.
fn chain(table: &mut CapTable, dir: DirId, depth: usize) -> GrantId {
    let first = AgentId::FIRST;
    let root = table.grant(first, whole(dir), limits(Uses::AtMost(u64::MAX)));
    let mut last = root.unwrap().grant();
    for _ in 0..depth {
        let next = table.forward(first, last, first, Instant::BOOT);
        last = next.unwrap().grant();
    }
    last
}

fn invocations(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("invoke");
    let (_, dir) = session();
    for depth in [0_usize, 1, 3, 10] {
        let mut table = CapTable::new();
        let last = chain(&mut table, dir, depth);
        group.bench_function(BenchmarkId::new("through-forwarders", depth), |bencher| {
            bencher.iter(|| {
                table
                    .invoke(AgentId::FIRST, black_box(last), Instant::BOOT)
                    .unwrap()
            });
        });
    }
    let shared = std::sync::Mutex::new(CapTable::new());
    let last = chain(&mut shared.lock().unwrap(), dir, 3);
    group.bench_function("through-3-forwarders-and-a-lock", |bencher| {
        bencher.iter(|| {
            let mut table = shared.lock().unwrap();
            table
                .invoke(AgentId::FIRST, black_box(last), Instant::BOOT)
                .unwrap();
        });
    });
    group.finish();
}

/// A table of many grants, each on a place of its own.
fn many(dir: DirId, count: usize) -> CapTable {
    let mut table = CapTable::new();
    for number in 0..count {
        let cap = on_dir(Verb::FsRead, dir, rel(&format!("other/{number}")));
        let authority = Authority::of(cap);
        table
            .grant(AgentId::FIRST, authority, limits(Uses::Uncounted))
            .unwrap();
    }
    table
}

/// A grant and this many made from it; the right to end them.
fn family(table: &mut CapTable, dir: DirId, size: usize) -> Revoker {
    let first = AgentId::FIRST;
    let root = table
        .grant(first, whole(dir), limits(Uses::Uncounted))
        .unwrap();
    for _ in 1..size {
        table
            .forward(first, root.grant(), first, Instant::BOOT)
            .unwrap();
    }
    root
}

fn beside_a_million(criterion: &mut Criterion) {
    let (_, dir) = session();
    let before = resident();
    let mut table = many(dir, MILLION);
    let after = resident();
    println!(
        "{MILLION} live grants on one place each: {} bytes of memory for each",
        (after.saturating_sub(before)) / MILLION
    );
    let mut group = criterion.benchmark_group("beside-a-million-grants");
    group.sample_size(10);
    let asked = rel(&format!("other/{}/deep/file", MILLION / 2));
    let asked = on_dir(Verb::FsRead, dir, asked);
    group.bench_function("lookup", |bencher| {
        bencher.iter(|| {
            table
                .choose(AgentId::FIRST, black_box(&asked), Instant::BOOT)
                .unwrap()
        });
    });
    let missing = on_dir(Verb::FsRead, dir, rel("nothing/here/at/all"));
    group.bench_function("lookup-of-nothing", |bencher| {
        bencher.iter(|| {
            table
                .choose(AgentId::FIRST, black_box(&missing), Instant::BOOT)
                .is_err()
        });
    });
    group.finish();
    // Ending is for good and ids are never reused, so each is timed once, by hand.
    for (size, families) in [(1_usize, 200_usize), (10, 200), (100, 100), (1000, 15)] {
        let roots: Vec<Revoker> = (0..families)
            .map(|_| family(&mut table, dir, size))
            .collect();
        let mut times: Vec<f64> = roots
            .iter()
            .map(|root| {
                let started = std::time::Instant::now();
                let ended = black_box(table.revoke(root));
                let took = started.elapsed().as_secs_f64() * 1e9;
                assert_eq!(ended.len(), size);
                took
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        println!(
            "revoking {size} grants beside {}: {median:.0} ns, {:.0} ns for each",
            table.len(),
            median / f64::from(u32::try_from(size).unwrap())
        );
    }
}

/// Bytes of memory this process holds.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

criterion_group!(benches, invocations, beside_a_million);
criterion_main!(benches);
