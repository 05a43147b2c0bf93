//! Builds in the background while others look: what stands early takes nothing from them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::support::Bench;

/// Runs it in the background and looks at a file until it ends, which is well.
fn beside_looks(bench: &mut Bench, build: &str, at: &str) {
    let started = bench.call("terminal", json!({"command": build, "background": true}));
    let started: Value = serde_json::from_str(&started.text).unwrap();
    let of = |action: &str| json!({"action": action, "session_id": started["session_id"]});
    let mut looks = 0;
    loop {
        let poll = bench.call("process", of("poll"));
        let poll: Value = serde_json::from_str(&poll.text).unwrap();
        if poll["status"] != "running" {
            break;
        }
        bench.call("read_file", json!({"path": at}));
        looks += 1;
    }
    println!("{looks} looks");
    let log = bench.call("process", of("log")).text;
    assert!(log.contains("whole"), "{log}");
}

#[test]
fn what_is_built_beside_looks_is_built_whole() {
    let mut bench = Bench::with_files();
    let build = "python3 - <<'P'
import os, shutil
os.makedirs('node_modules')
for i in range(400):
    t = f'.tmp-{i}'
    os.makedirs(t + '/lib')
    for j in range(4):
        with open(f'{t}/lib/f{j}.js', 'w') as f: f.write('x' * (j * 100))
    with open(f'{t}/package.json.tmp', 'w') as f: f.write('{}')
    os.rename(f'{t}/package.json.tmp', f'{t}/package.json')
    os.rename(t, f'node_modules/p{i}')
    if i % 7 == 3:
        os.rename(f'node_modules/p{i-1}', f'node_modules/.old'); shutil.rmtree('node_modules/.old')
        os.makedirs(f'node_modules/p{i-1}'); open(f'node_modules/p{i-1}/package.json','w').write('{\"v\":2}')
    if i % 5 == 2:
        open('lock.json.tmp','w').write(str(i)); os.replace('lock.json.tmp','lock.json')
print('whole')
P";
    beside_looks(&mut bench, build, "lock.json");
    let count = std::fs::read_dir(bench.workspace.join("node_modules"))
        .unwrap()
        .count();
    assert_eq!(count, 400);
    for i in 0..400 {
        let place = bench
            .workspace
            .join(format!("node_modules/p{i}/package.json"));
        assert!(place.is_file(), "{i}");
    }
}

#[test]
fn what_is_built_anew_beside_looks_is_as_it_was_written_last() {
    let mut bench = Bench::with_files();
    for place in 0..120 {
        bench.put(&format!("src/d{}/f{place}.txt", place % 6), "old\n");
    }
    let build = "python3 - <<'P'
import os
def at(i): return f'src/d{i % 6}/f{i}.txt'
for turn in range(6):
    for i in range(120):
        if (i + turn) % 3 == 0:
            open(at(i) + '.tmp', 'w').write(f'{turn}\\n'); os.replace(at(i) + '.tmp', at(i))
        elif (i + turn) % 3 == 1:
            os.unlink(at(i)); open(at(i), 'w').write(f'{turn}\\n')
        else:
            os.rename(at(i), at(i) + '.orig'); os.rename(at(i) + '.orig', at(i))
            open(at(i), 'a').write(f'{turn}\\n')
        seen = open(at(i)).read()
        assert seen.endswith(f'{turn}\\n'), (turn, i, seen)
print('whole')
P";
    beside_looks(&mut bench, build, "src/d0/f0.txt");
    for place in 0..120 {
        let text = bench.text(&format!("src/d{}/f{place}.txt", place % 6));
        let last = text.as_deref().and_then(|text| text.lines().last());
        assert_eq!(last, Some("5"), "{place}: {text:?}");
    }
}
