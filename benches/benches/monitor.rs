//! What a decision costs: one turn of the session machine, ledger record and
//! digest included, beside few and beside many grants.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use hermitcrab_core::action::Action;
use hermitcrab_core::authority::Verb;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::grant::AgentId;
use hermitcrab_core::session::{Call, Event};
use hermitcrab_core::time::Instant;
use hermitcrab_core::tool::Tool;
use support::{grant, on_dir, rel, session, turn};

fn decisions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decision");
    for others in [0_usize, 100, 1000] {
        let (mut session, dir) = session();
        for number in 0..others {
            let below = rel(&format!("other/{number}"));
            grant(&mut session, vec![on_dir(Verb::FsRead, dir, below)]);
        }
        let read = Action::on_path(Verb::FsRead, dir, rel("src/deep/a.rs"), Digest::NONE).unwrap();
        group.bench_function(BenchmarkId::new("permit", others), |bencher| {
            bencher.iter(|| {
                turn(&mut session, Tool::ReadFile, read.clone(), |permit| {
                    permit.spend()
                })
            });
        });
    }
    let (mut session, dir) = session();
    let mount = Action::on_path(Verb::FsMount, dir, rel("a"), Digest::NONE).unwrap();
    group.bench_function("refusal", |bencher| {
        bencher.iter(|| {
            let call = Call {
                by: AgentId::FIRST,
                tool: Tool::ReadFile,
                actions: vec![mount.clone()],
            };
            let parts = session.step(Instant::BOOT, Event::Call(call)).into_parts();
            assert!(parts.permits.is_empty());
            parts.denials
        });
    });
    group.finish();
}

criterion_group!(benches, decisions);
criterion_main!(benches);
