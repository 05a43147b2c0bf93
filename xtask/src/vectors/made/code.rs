//! `code`: scripts that work with a project and call tools meanwhile.

use serde_json::json;

use super::draw::Draw;
use super::{service, world};
use crate::vectors::draft::{Agent, Draft};
use crate::vectors::emit::Suite;

const SEED: &str = "code-1";

/// The suite.
pub fn suite() -> anyhow::Result<Suite> {
    let mut draw = Draw::seeded(SEED);
    let mut cases = Vec::new();
    for (count, family) in [
        (26, plain as fn(&mut Draw) -> anyhow::Result<Draft>),
        (34, tools),
        (14, ends),
        (10, output),
        (14, odd),
    ] {
        for _ in 0..count {
            cases.push(family(&mut draw)?);
        }
    }
    let mut defaults = super::defaults(SEED);
    defaults["context"] = json!("headless");
    Ok(Suite {
        name: "code",
        description: "Python scripts: work on the files of a project, calls of tools whose results they use, how they end, what they print, arguments of the wrong type.",
        flags: vec![
            service("plain", "a script that calls no tool"),
            service("stubs", "a script that calls tools and uses their results"),
            service("ending", "statuses, errors and signals of scripts"),
            service("output", "long, coloured and secret output of scripts"),
            service(
                "odd-argument",
                "an argument of another type than declared, missing or unknown",
            ),
        ],
        defaults,
        rows: cases.len(),
        cases: super::numbered("code", cases),
        left_out: Vec::new(),
    })
}

fn files() -> [(String, String); 3] {
    [
        ("t.txt".to_owned(), "red\ngreen\nblue\ngreen\n".to_owned()),
        ("data.json".to_owned(), "{\"k\": [1, 2, 3]}\n".to_owned()),
        (
            "sub/a.py".to_owned(),
            "x = 1\n\n\ndef f():\n    return x\n".to_owned(),
        ),
    ]
}

fn script(flag: &str, code: &str) -> Draft {
    Draft::made()
        .flag(flag)
        .field("world", world(&files()))
        .call("execute_code", &json!({"code": code}))
}

fn plain(draw: &mut Draw) -> anyhow::Result<Draft> {
    let n = 2 + draw.below(30)?;
    let code = match draw.below(20)? {
        0 => format!("print(sum(range({n})))"),
        1 => "print(open('t.txt').read(), end='')".to_owned(),
        2 => "import json\nd = json.load(open('data.json'))\nprint(json.dumps(d, indent=1))".to_owned(),
        3 => format!("open('new.txt', 'w').write('x\\n' * {n})\nprint('ok')"),
        4 => "import os\nprint(sorted(os.listdir('.')))\nprint(os.getcwd())".to_owned(),
        5 => "import os\nos.makedirs('d/e')\nos.rename('t.txt', 'd/e/t.txt')\nprint(os.path.exists('t.txt'))".to_owned(),
        6 => "from collections import Counter\nprint(Counter(open('t.txt').read().split()).most_common(1))".to_owned(),
        7 => "print('\u{e9}\u{1f600} \u{4f60}\u{597d}')".to_owned(),
        8 => "import subprocess\nprint(subprocess.run(['sort', 't.txt'], capture_output=True, text=True).stdout)".to_owned(),
        9 => "import os, sys\nos.remove('t.txt')\nsys.stderr.write('noise\\n')\nprint('gone')".to_owned(),
        10 => "pass".to_owned(),
        11 => "print(end='')".to_owned(),
        12 => format!("import re, math\nprint(re.findall('[0-9]+', 'a1b22'), math.factorial({n}))"),
        13 => "import csv, io\nw = csv.writer(io.StringIO())\nprint(w.writerow(['a', 'b c']))".to_owned(),
        14 => "import pathlib\np = pathlib.Path('t.txt')\np.write_text(p.read_text().upper())\nprint(p.read_text())".to_owned(),
        15 => "import sys\nprint(sys.stdin.read() == '', len(sys.argv), __name__)".to_owned(),
        16 => "import os\nprint(os.environ.get('HOME'), os.environ.get('PYTHONUTF8'), os.environ.get('LANG'))".to_owned(),
        17 => "import shutil\nshutil.copytree('sub', 'copy')\nshutil.rmtree('sub')\nprint('moved')".to_owned(),
        18 => "import os\nos.symlink('t.txt', 'link')\nos.chmod('t.txt', 0o640)\nprint(open('link').readline())".to_owned(),
        _ => format!("xs = [i * i for i in range({n})]\nprint(*xs, sep=',')"),
    };
    Ok(script("plain", &code))
}

fn tools(draw: &mut Draw) -> anyhow::Result<Draft> {
    let n = 1 + draw.below(4)?;
    let code = match draw.below(22)? {
        0 => "from hermes_tools import read_file\nr = read_file('t.txt')\nprint(r['content'], r['total_lines'])".to_owned(),
        1 => format!("from hermes_tools import read_file\nprint(read_file('t.txt', offset={n}, limit=1))"),
        2 => "from hermes_tools import write_file\nprint(write_file('out/o.txt', 'a\\nb\\n'))".to_owned(),
        3 => "from hermes_tools import search_files\nprint(search_files('green', path='/home/u/proj'))".to_owned(),
        4 => "from hermes_tools import search_files\nprint(search_files('*.py', target='files'))".to_owned(),
        5 => "from hermes_tools import patch\nprint(patch('t.txt', 'red', 'RED'))".to_owned(),
        6 => "from hermes_tools import patch\nprint(patch('t.txt', 'green', 'x', replace_all=True))".to_owned(),
        7 => "from hermes_tools import patch\nprint(patch('t.txt', 'absent', 'x'))".to_owned(),
        8 => "from hermes_tools import terminal\nr = terminal('sort t.txt')\nprint(r['output'], r['exit_code'])".to_owned(),
        9 => "from hermes_tools import terminal\nprint(terminal('exit 3'))\nprint(terminal('echo x; pwd', workdir='/home/u/proj/sub'))".to_owned(),
        10 => "from hermes_tools import terminal, read_file\nterminal('echo made > made.txt')\nprint(read_file('made.txt')['content'])".to_owned(),
        11 => format!("from hermes_tools import write_file, read_file\nfor i in range({n}):\n    write_file(f'f{{i}}.txt', str(i))\nprint([read_file(f'f{{i}}.txt')['content'] for i in range({n})])"),
        12 => "from hermes_tools import read_file\nprint(read_file('nosuch.txt'))".to_owned(),
        13 => "import hermes_tools as h\nprint(h.json_parse('{\"a\": \"x\\ty\"}'), h.shell_quote(\"it's\"))".to_owned(),
        14 => "from hermes_tools import retry\nn = []\ndef f():\n    n.append(1)\n    if len(n) < 2:\n        raise ValueError\n    return len(n)\nprint(retry(f, delay=0))".to_owned(),
        15 => "from hermes_tools import patch\nt = '*** Begin Patch\\n*** Add File: n.txt\\n+new\\n*** End Patch'\nprint(patch(mode='patch', patch=t))".to_owned(),
        16 => "from hermes_tools import terminal\nterminal('cd sub && export A=5')\nprint(terminal('pwd; echo $A')['output'])".to_owned(),
        17 => "from hermes_tools import read_file\nfor i in range(52):\n    r = read_file('t.txt', offset=i + 1, limit=1)\nprint(r)".to_owned(),
        18 => "from hermes_tools import read_file\nprint(read_file(path='data.json', limit='1'))".to_owned(),
        19 => "import threading\nfrom hermes_tools import read_file\nout = []\nts = [threading.Thread(target=lambda i=i: out.append(read_file('t.txt', offset=i)['total_lines'])) for i in range(1, 4)]\n[t.start() for t in ts]\n[t.join() for t in ts]\nprint(out)".to_owned(),
        20 => "from hermes_tools import search_files\nr = search_files('green', path='/home/u/proj', output_mode='count')\nprint(r)\nprint(search_files('e', path='/home/u/proj', file_glob='*.txt', limit=2))".to_owned(),
        _ => "from hermes_tools import write_file\nprint(write_file('bad.json', '{'))\nprint(write_file('s.py', 'def f(:\\n'))".to_owned(),
    };
    let mut draft = script("stubs", &code);
    if draw.chance(25)? {
        draft = draft.call("read_file", &json!({"path": "t.txt"}));
    }
    Ok(draft)
}

fn ends(draw: &mut Draw) -> anyhow::Result<Draft> {
    let n = draw.below(200)?;
    let code = match draw.below(10)? {
        0 => format!("import sys\nprint('before')\nsys.exit({n})"),
        1 => "import sys\nsys.exit('a message')".to_owned(),
        2 => "raise SystemExit".to_owned(),
        3 => "print('x')\n1 / 0".to_owned(),
        4 => "def f(:\n  pass".to_owned(),
        5 => "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)".to_owned(),
        6 => "import os\nos._exit(7)".to_owned(),
        7 => "from hermes_tools import nosuch".to_owned(),
        8 => "import nosuchmodule".to_owned(),
        _ => "import sys\nsys.stderr.write('only this\\n')\nsys.exit(2)".to_owned(),
    };
    Ok(script("ending", &code))
}

fn output(draw: &mut Draw) -> anyhow::Result<Draft> {
    let code = match draw.below(7)? {
        0 => "print('x' * 60000)".to_owned(),
        1 => "for i in range(9000):\n    print('line', i)".to_owned(),
        2 => "print('\\033[1mbold\\033[0m')".to_owned(),
        3 => "print('OPENAI_API_KEY=sk-abcdefghijklmnopqrstuvwxyz0123456789')".to_owned(),
        4 => "import sys\nsys.stderr.write('e' * 20000)\nsys.exit(1)".to_owned(),
        5 => "print('\u{e9}' * 26000)".to_owned(),
        _ => "import sys\nsys.stdout.buffer.write(b'\\xff\\xfe broken\\n')".to_owned(),
    };
    Ok(script("output", &code))
}

fn odd(draw: &mut Draw) -> anyhow::Result<Draft> {
    let args = match draw.below(5)? {
        0 => json!({}),
        1 => {
            json!({"code": draw.one(&[json!(""), json!(" \n"), json!(null), json!(0), json!(false)])?})
        }
        2 => {
            json!({"code": draw.one(&[json!(5), json!(["print(1)"]), json!({"a": 1}), json!(true)])?})
        }
        3 => json!({"code": "print(1)", "unknown": draw.one(&[json!(1), json!(null)])?}),
        _ => json!({"code": "print(1)  # \u{e9}", "timeout": 5}),
    };
    Ok(Draft::made()
        .flag("odd-argument")
        .call("execute_code", &args)
        .expect(Agent::Either, "an argument nobody can use is told, not run"))
}
