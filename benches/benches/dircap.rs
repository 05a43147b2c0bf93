//! What a directory capability costs over a plain path, decision included.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use hermitcrab_core::action::Action;
use hermitcrab_core::authority::Verb;
use hermitcrab_core::digest::Digest;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::dircap::Base;
use hermitcrab_sandbox::{DirCap, sha256};
use support::{rel, session, turn};

const BYTES_MAX: usize = 1 << 20;

fn files(criterion: &mut Criterion) {
    let temp = tempfile::tempdir().unwrap();
    let deep = temp.path().join("a/b/c");
    std::fs::create_dir_all(&deep).unwrap();
    let plain = deep.join("file.txt");
    std::fs::write(&plain, "x".repeat(4096)).unwrap();
    let (mut session, dir) = session();
    let cap = DirCap::open_ambient_dir(temp.path(), dir).unwrap();
    let path = rel("a/b/c/file.txt");

    let mut group = criterion.benchmark_group("read 4 KiB");
    group.bench_function("by path, no check", |bencher| {
        bencher.iter(|| std::fs::read(&plain).unwrap());
    });
    let read = Action::on_path(Verb::FsRead, dir, path.clone(), Digest::NONE).unwrap();
    group.bench_function("by capability", |bencher| {
        bencher.iter(|| {
            turn(&mut session, Tool::Directory, read.clone(), |permit| {
                cap.read(permit, &path, BYTES_MAX).unwrap()
            })
        });
    });
    group.finish();

    let mut group = criterion.benchmark_group("write 4 KiB, atomic and durable");
    let content = "y".repeat(4096).into_bytes();
    let digest = sha256(&content);
    let write = Action::on_path(Verb::FsModify, dir, path.clone(), digest).unwrap();
    group.bench_function("by capability", |bencher| {
        bencher.iter(|| {
            turn(&mut session, Tool::Directory, write.clone(), |permit| {
                cap.write(permit, &path, &content, Base::AnyFile, None)
                    .unwrap();
            });
        });
    });
    group.finish();
}

criterion_group!(benches, files);
criterion_main!(benches);
