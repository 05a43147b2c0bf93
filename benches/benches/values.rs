//! What the values cost that decisions are made of: paths that are read, authorities that are
//! made and compared, and a batch of calls whose files are told apart.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use hermitcrab_core::authority::{Authority, Cap, DirId, Object, Verb};
use hermitcrab_core::batch::{Footprint, LinkFact, Links, ScopePath, Standing, canonical, plan};
use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::{Isolation, Rules};

fn rel(text: &str) -> RelPath {
    RelPath::try_from(text).unwrap()
}

fn dir() -> DirId {
    let mut rules = Rules::new(1, Isolation::Isolated, Vec::new());
    rules.add_dir(rel("home/u/project")).unwrap()
}

/// Caps on so many directories, none below another.
fn caps(count: usize) -> Vec<Cap> {
    let dir = dir();
    let object = |number: usize| Object::tree(dir, rel(&format!("src/part{number}/of/it")));
    (0..count)
        .map(|number| Cap::new(Verb::FsRead, object(number)).unwrap())
        .collect()
}

fn paths(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("path");
    for text in ["a.rs", "src/deep/below/it/all/a.rs"] {
        group.bench_function(BenchmarkId::new("read", text.len()), |bencher| {
            bencher.iter(|| RelPath::parse(black_box(text.as_bytes())));
        });
    }
    group.finish();
}

fn authorities(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("authority");
    for count in [4, 16, 1000] {
        let caps = caps(count);
        group.bench_function(BenchmarkId::new("made", count), |bencher| {
            bencher.iter_batched(
                || caps.clone(),
                Authority::from_caps,
                criterion::BatchSize::SmallInput,
            );
        });
        let held = Authority::from_caps(caps.clone()).unwrap();
        let below = Object::tree(dir(), rel("src/part3/of/it/and/below.rs"));
        let wanted = Cap::new(Verb::FsRead, below).unwrap();
        group.bench_function(BenchmarkId::new("covers", count), |bencher| {
            bencher.iter(|| held.covers_cap(black_box(&wanted)));
        });
    }
    group.finish();
}

/// No name is a link.
struct Unlinked;

impl Links for Unlinked {
    fn look(&self, _: &ScopePath) -> LinkFact {
        LinkFact::NotALink
    }
}

fn batches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("batch");
    let standing = Standing {
        cwd: "/home/u/project",
        home: Some("/home/u"),
    };
    let raw = "./src/../src/deep/below/a.rs";
    group.bench_function("canonical", |bencher| {
        bencher.iter(|| canonical(black_box(raw), standing, &Unlinked));
    });
    let batch: Vec<Footprint> = (0..24)
        .map(|number| format!("src/part{number}/a.rs"))
        .map(|raw| canonical(&raw, standing, &Unlinked).unwrap())
        .map(Footprint::Path)
        .collect();
    group.bench_function("planned", |bencher| {
        bencher.iter(|| plan(black_box(&batch)));
    });
    group.finish();
}

criterion_group!(benches, paths, authorities, batches);
criterion_main!(benches);
