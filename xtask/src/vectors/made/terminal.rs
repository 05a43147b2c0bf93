//! `terminal`: commands as a model gives them in the middle of its work.

use serde_json::{Value, json};

use super::draw::Draw;
use super::{service, world};
use crate::vectors::draft::{Agent, Draft};
use crate::vectors::emit::Suite;

const SEED: &str = "terminal-1";

/// The suite.
pub fn suite() -> anyhow::Result<Suite> {
    let mut draw = Draw::seeded(SEED);
    let mut cases = Vec::new();
    for (count, family) in [
        (190, text as fn(&mut Draw) -> anyhow::Result<Draft>),
        (180, state),
        (170, language),
        (150, files),
        (70, endings),
        (50, output),
        (60, advice),
        (50, odd),
    ] {
        for _ in 0..count {
            cases.push(family(&mut draw)?);
        }
    }
    let mut defaults = super::defaults(SEED);
    // Nobody is asked: what a detector thinks of a spelling is another suite's.
    defaults["context"] = json!("headless");
    Ok(Suite {
        name: "terminal",
        description: "Commands as a model gives them: filters over files, a session's directory and variables, the language of the shell, work on files, statuses and signals, odd output, work that belongs into the background, arguments of the wrong type.",
        flags: vec![
            service("filter", "filters over the files of a workspace"),
            service("state", "what a session's next command finds"),
            service("language", "constructs of the shell's language"),
            service("files", "files made, changed, moved and removed"),
            service("ending", "statuses, signals and deadlines"),
            service("output", "long, coloured, broken and secret output"),
            service(
                "advice",
                "commands that would never come back, and quoted ones that would",
            ),
            service(
                "odd-argument",
                "an argument of another type than declared, missing or unknown",
            ),
        ],
        defaults,
        rows: cases.len(),
        cases: super::numbered("terminal", cases),
        left_out: Vec::new(),
    })
}

fn run(draft: Draft, command: &str) -> Draft {
    draft.call("terminal", &json!({"command": command}))
}

fn word(draw: &mut Draw) -> anyhow::Result<&'static str> {
    draw.one(&[
        "alpha", "beta", "gamma", "delta", "omega", "red", "green", "blue", "north", "south",
        "one", "two", "three", "Zeta", "Echo",
    ])
}

/// A table of words and numbers.
fn table(draw: &mut Draw) -> anyhow::Result<String> {
    let mut text = String::new();
    for _ in 0..2 + draw.below(9)? {
        let (name, kind) = (word(draw)?, word(draw)?);
        text.push_str(&format!("{name}:{kind}:{}\n", draw.below(120)?));
    }
    Ok(text)
}

fn text(draw: &mut Draw) -> anyhow::Result<Draft> {
    let files = [
        ("t.txt".to_owned(), table(draw)?),
        ("u.txt".to_owned(), table(draw)?),
    ];
    let mut draft = Draft::made().flag("filter").field("world", world(&files));
    for _ in 0..1 + draw.below(3)? {
        let stage = |draw: &mut Draw| -> anyhow::Result<String> {
            let (a, b) = (word(draw)?, word(draw)?);
            let n = 1 + draw.below(6)?;
            Ok(match draw.below(26)? {
                0 => "sort".to_owned(),
                1 => "sort -t: -k3,3n".to_owned(),
                2 => "sort -u -r".to_owned(),
                3 => format!("cut -d: -f{}", 1 + n % 3),
                4 => format!("cut -c{n}-"),
                5 => "tr a-z A-Z".to_owned(),
                6 => "tr -d aeiou".to_owned(),
                7 => format!("sed 's/{a}/{b}/g'"),
                8 => format!("sed -n '{n}p'"),
                9 => format!("sed '/{a}/d'"),
                10 => "awk -F: '{print $2, $1}'".to_owned(),
                11 => "awk -F: '{s += $3} END {print NR, s}'".to_owned(),
                12 => format!("awk -F: '$3 > {}'", n * 10),
                13 => format!("head -n {n}"),
                14 => format!("tail -n {n}"),
                15 => format!("grep -v {a}"),
                16 => format!("grep -n -e {a} -e {b} -e :"),
                17 => "nl".to_owned(),
                18 => "wc -l -w".to_owned(),
                19 => "rev".to_owned(),
                20 => "tac".to_owned(),
                21 => format!("fold -w {}", n + 2),
                22 => "uniq -c".to_owned(),
                23 => format!("paste -sd{} -", draw.one(&[",", "+", "/"])?),
                24 => "cat -A".to_owned(),
                _ => "od -c".to_owned(),
            })
        };
        let source = draw.one(&["cat t.txt", "cat t.txt u.txt", "sort t.txt", "cat < u.txt"])?;
        let mut command = source.to_owned();
        for _ in 0..1 + draw.below(3)? {
            command.push_str(" | ");
            command.push_str(&stage(draw)?);
        }
        draft = run(draft, &command);
    }
    Ok(draft)
}

fn state(draw: &mut Draw) -> anyhow::Result<Draft> {
    let mut draft = Draft::made().flag("state");
    let (a, b) = (word(draw)?, word(draw)?);
    let place = draw.one(&["src", "src/..", ".", "a dir", "deep/er"])?;
    let setup = match draw.below(20)? {
        0 => format!("mkdir -p '{place}' && cd '{place}' && pwd"),
        1 => format!("export A={a} B='{b} {a}'"),
        2 => format!("A={a}"),
        3 => format!("f() {{ echo {a}; }}; f"),
        4 => format!("alias say='echo {a}'"),
        5 => "cd /nonexistent; pwd".to_owned(),
        6 => "cd .. && pwd".to_owned(),
        7 => format!("export A={a}; unset A; export C={b}"),
        8 => format!("declare -x A={a}; declare -a L=(1 2); L[5]={b}"),
        9 => "set -e; set -u; echo set".to_owned(),
        10 => "umask 027; umask".to_owned(),
        11 => format!("export A=$'{a}\\n{b}'"),
        12 => format!("export A=\"it's \\\"{a}\\\"\""),
        13 => format!("mkdir -p d && pushd d >/dev/null; export A={a}; popd"),
        14 => format!("(cd src; export A={a})"),
        15 => format!("export A={a}; exit {}", draw.below(4)?),
        16 => "shopt -s nullglob; echo *.none".to_owned(),
        17 => format!("A={a} sh -c 'echo $A'"),
        18 => "cd src; cd -".to_owned(),
        _ => format!("export A='{a}  {b}' && cd src"),
    };
    draft = run(draft, &setup);
    for _ in 0..1 + draw.below(3)? {
        let look = match draw.below(12)? {
            0 => "pwd",
            1 => "echo \"[$A]\"",
            2 => "echo \"[$A][$B][$C]\"",
            3 => "type f 2>/dev/null || echo no f",
            4 => "echo $?",
            5 => "pwd; cd ..; pwd",
            6 => "echo ${L[5]} ${#L[@]}",
            7 => "false; echo $undefined after",
            8 => "say hi 2>&1 | head -1",
            9 => "printenv A || echo none",
            10 => "echo *.none; umask",
            _ => "echo $PWD \"$OLDPWD\"",
        };
        draft = run(draft, look);
    }
    if draw.chance(25)? {
        let workdir = draw.one(&["/home/u/proj/src", "src", "/tmp", "~", "", "/home/u"])?;
        draft = draft
            .call("terminal", &json!({"command": "pwd", "workdir": workdir}))
            .call("terminal", &json!({"command": "pwd; echo \"[$A]\""}));
    }
    Ok(draft)
}

fn language(draw: &mut Draw) -> anyhow::Result<Draft> {
    let mut draft = Draft::made().flag("language");
    for _ in 0..1 + draw.below(2)? {
        let (a, b, n) = (word(draw)?, word(draw)?, 1 + draw.below(5)?);
        let command = match draw.below(34)? {
            0 => format!("for i in $(seq {n}); do echo {a}$i; done"),
            1 => format!("for i in {{1..{n}}}; do\n  printf '%s-' $i\ndone\necho"),
            2 => format!("i=0; while [ $i -lt {n} ]; do i=$((i+1)); done; echo $i"),
            3 => format!("case {a} in a*) echo A;; [b-m]*) echo B;; *) echo other;; esac"),
            4 => format!("x={a}; echo ${{x^^}} ${{#x}} ${{x:1:2}} ${{x/a/_}} ${{x%a*}}"),
            5 => format!("l=({a} {b} {n}); echo ${{l[@]}} ${{#l[@]}} ${{!l[@]}} ${{l[-1]}}"),
            6 => format!("declare -A m=([{a}]={n} [k]={b}); echo ${{m[{a}]}} ${{m[k]}}"),
            7 => format!("cat <<E\n{a} $((2**{n}))\n\\$x `echo {b}`\nE"),
            8 => format!("cat <<'E'\n{a} $((2**{n})) $x\nE"),
            9 => format!("cat <<-E\n\t{a}\n\t{b}\n\tE"),
            10 => format!("cat <<< \"{a} {b}\" | wc -c"),
            11 => format!("diff <(echo {a}) <(echo {b})"),
            12 => format!("( echo {a}; exit {n} ); echo $?"),
            13 => format!("{{ echo {a}; echo {b} >&2; }} 2>&1 | sort"),
            14 => format!("echo {a} >&2; echo {b}"),
            15 => format!("trap 'echo bye {a}' EXIT; echo {b}"),
            16 => format!(
                "f() {{ local x=$1; shift; echo $x $# \"$*\"; return {n}; }}; f {a} {b} c; echo $?"
            ),
            17 => format!("[[ {a} =~ ^([a-z])(.*)$ ]] && echo ${{BASH_REMATCH[2]}} || echo no"),
            18 => format!("[[ {a} < {b} ]] && echo less || echo not"),
            19 => format!("printf '%05d|%-8s|%x|%s\\n' {n} {a} 255 {b}"),
            20 => format!("echo $(( {n} * (3 + {n}) % 7 )) $(( 16#ff )) $(( {n} > 2 ? 1 : 0 ))"),
            21 => format!("set -- {a} {b} c; echo $# $1 ${{@:2}}; shift; echo $1"),
            22 => format!("IFS=:; x=\"{a}:{b}:c\"; for p in $x; do echo $p; done"),
            23 => format!("read -r p q <<< '{a} {b} c'; echo \"$q|$p\""),
            24 => format!("mapfile -t l < <(printf '{a}\\n{b}\\n'); echo ${{#l[@]}} ${{l[1]}}"),
            25 => format!("echo {{{a},{b}}}{{1..{n}}}"),
            26 => format!("x=; echo ${{x:-{a}}} ${{x:+{b}}} ${{y-unset}}"),
            27 => format!("true && echo {a} || echo {b}; false && echo {a} || echo {b}"),
            28 => format!("until false; do echo {a}; break; done; select x in; do :; done"),
            29 => format!("eval 'echo {a}'; x='echo {b}'; $x"),
            30 => format!("echo '{a} \"$x\" {b}' \"it's\" a\\ b $'t\\tx'"),
            31 => "if true; then echo open".to_owned(),
            32 => format!("echo '{a}"),
            _ => format!("echo {a}; ) ; echo {b}"),
        };
        draft = run(draft, &command);
    }
    Ok(draft)
}

fn files(draw: &mut Draw) -> anyhow::Result<Draft> {
    let given = [
        ("t.txt".to_owned(), table(draw)?),
        ("d/in.txt".to_owned(), table(draw)?),
    ];
    let mut draft = Draft::made().flag("files").field("world", world(&given));
    for _ in 0..1 + draw.below(3)? {
        let (a, b) = (word(draw)?, word(draw)?);
        let command = match draw.below(24)? {
            0 => format!("mkdir -p new/{a}/{b} && find new | sort"),
            1 => format!("echo {a} > {b}.txt; cat {b}.txt"),
            2 => format!("printf '{a}\\n{b}' >> t.txt; tail -n 2 t.txt"),
            3 => "cp t.txt copy.txt && cmp t.txt copy.txt && echo same".to_owned(),
            4 => format!("mv t.txt {a}.txt; ls"),
            5 => "rm -f t.txt; ls".to_owned(),
            6 => "rm -r d; test -e d".to_owned(),
            7 => format!("sed -i 's/{a}/{b}/' t.txt; cat t.txt"),
            8 => "ln -s t.txt link; readlink link; wc -l < link".to_owned(),
            9 => "chmod 640 t.txt; stat -c %a t.txt".to_owned(),
            10 => "chmod +x t.txt; test -x t.txt && echo yes".to_owned(),
            11 => format!("echo {a} | tee {a}.log {b}.log; cat {b}.log"),
            12 => "cp -r d e; diff -r d e && echo same".to_owned(),
            13 => format!("touch {a} {b}; ls | head -4"),
            14 => "find . -name '*.txt' | sort".to_owned(),
            15 => "find . -type f -name '*.txt' -exec wc -l {} + | sort".to_owned(),
            16 => "grep -rc : --include='*.txt' . | sort".to_owned(),
            17 => format!("for f in *.txt; do mv \"$f\" \"{a}-$f\"; done; ls"),
            18 => format!("python3 -c \"open('{a}.py','w').write('x = 1\\\\n')\"; cat {a}.py"),
            19 => format!("> {a}.empty; stat -c %s {a}.empty"),
            20 => "set -o noclobber; echo x > t.txt; cat t.txt | wc -l".to_owned(),
            21 => format!("mkdir {a}; mkdir {a}; rmdir {a}"),
            22 => "tar cf x.tar --mtime=@0 --owner=0 --group=0 d && tar tf x.tar && rm x.tar"
                .to_owned(),
            _ => format!("truncate -s 100 {a}.bin; wc -c {a}.bin"),
        };
        draft = run(draft, &command);
    }
    Ok(draft)
}

fn endings(draw: &mut Draw) -> anyhow::Result<Draft> {
    let draft = Draft::made().flag("ending");
    let n = draw.below(256)?;
    let command = match draw.below(18)? {
        0 => format!("exit {n}"),
        1 => format!("sh -c 'exit {n}'; echo $?"),
        2 => format!("false; true; (exit {n})"),
        3 => draw
            .one(&[
                "kill -9 $$",
                "kill -SEGV $$",
                "kill -USR1 $$",
                "kill -ABRT $$",
            ])?
            .to_owned(),
        4 => "{ sh -c 'kill -9 $$'; } 2> /dev/null; echo $?".to_owned(),
        5 => "grep -q nothing-like-it README".to_owned(),
        6 => "ls | grep nothing-like-it".to_owned(),
        7 => "diff README file1 > /dev/null".to_owned(),
        8 => "test 1 -gt 2".to_owned(),
        9 => "[ -d README ]".to_owned(),
        10 => "cd src && grep x missing".to_owned(),
        11 => "no-such-program --at-all".to_owned(),
        12 => "./README".to_owned(),
        13 => "set -o pipefail; false | true".to_owned(),
        14 => "true | false | true; echo ${PIPESTATUS[*]}".to_owned(),
        15 => "git diff --no-index README file1 > /dev/null".to_owned(),
        16 => "LC_ALL=C /usr/bin/diff README src".to_owned(),
        _ => {
            // Long enough that it has begun, also on a machine that is made to wait.
            let timeout = draw.one(&[json!(3), json!("3"), json!(3.0)])?;
            let command = draw.one(&[
                "sleep 20",
                "echo before; sleep 20",
                "cat /dev/zero > /dev/null",
            ])?;
            return Ok(draft.call("terminal", &json!({"command": command, "timeout": timeout})));
        }
    };
    Ok(run(draft, &command))
}

fn output(draw: &mut Draw) -> anyhow::Result<Draft> {
    let draft = Draft::made().flag("output");
    let n = draw.one(&[49_990, 49_999, 50_000, 50_001, 50_100, 120_000])?;
    let (a, b) = (word(draw)?, word(draw)?);
    let command = match draw.below(16)? {
        0 => format!("head -c {n} /dev/zero | tr '\\0' x"),
        1 => format!("seq {}", n / 5),
        2 => format!("yes '{a} {b}' | head -n {}", n / 8),
        3 => format!("printf '\\033[1;3{}m{a}\\033[0m {b}\\n'", draw.below(8)?),
        4 => format!("printf '\\033]0;{a}\\007{b}\\n'"),
        5 => format!("printf '\\033[2K\\r{a}\\033[5A{b}\\033(B\\n'"),
        6 => format!("printf '{a}\\r{b}\\r\\n\\t{a}\\n'"),
        7 => format!("printf '{a}\\377\\376{b}\\n'"),
        8 => "printf 'caf\\303\\251 \\360\\237\\230\\200 \\342\\202\\254\\n'".to_owned(),
        9 => format!("printf '\\n\\n  {a}  \\n\\n\\n'"),
        10 => format!("echo key sk-proj-{}", "a1B2c3D4".repeat(5)),
        11 => format!("echo ghp_{} and {a}", "x9Y8z7W6".repeat(5)),
        12 => "echo postgres://user:secret@host/db".to_owned(),
        13 => format!("export MY_TOKEN={a}{b}12345; env | grep TOKEN"),
        14 => format!("echo 'Authorization: Bearer {a}{b}{a}{b}'"),
        _ => format!("printf '{a}\\0{b}\\n' | cat -v"),
    };
    Ok(run(draft, &command))
}

fn advice(draw: &mut Draw) -> anyhow::Result<Draft> {
    let command = draw.one(&[
        "nohup make",
        "nohup python3 x.py > out.log 2>&1",
        "echo a; nohup b",
        "setsid true",
        "echo $(setsid true)",
        "sleep 1 & disown",
        "sleep 9 &",
        "sleep 1 & echo on",
        "make & # build",
        "(sleep 1 &)",
        "npm run dev",
        "npm start",
        "pnpm run watch",
        "yarn serve",
        "bun dev",
        "docker compose up",
        "next dev",
        "vite",
        "nodemon app.js",
        "uvicorn app:app",
        "gunicorn app",
        "python -m http.server",
        "python3 -m http.server 9000",
        "cd x && npm run serve",
        "echo 'nohup make'",
        "echo \"a & b\"",
        "echo `echo x`",
        "echo a && echo b",
        "echo x 2>&1",
        "echo x &> /dev/null",
        "echo 'a&b=c'",
        "echo nohupping",
        "echo 'npm run dev'",
        "echo invite",
        "uvicorn --help | head -0; true",
        "echo uvicorn --version",
        "NPM START -h",
        "echo vite-plugin",
        "python3 -c 'import os; print(os.name)'",
        "git log --format=%s | head -2 | cat",
    ])?;
    let expect = "advice is a result like any other";
    Ok(run(Draft::made().flag("advice"), command).expect(Agent::Either, expect))
}

fn odd(draw: &mut Draw) -> anyhow::Result<Draft> {
    let value = |draw: &mut Draw| -> anyhow::Result<Value> {
        draw.one(&[
            json!(null),
            json!(true),
            json!(5),
            json!(1.5),
            json!(["ls"]),
            json!({"a": 1}),
            json!(""),
        ])
    };
    let args = match draw.below(12)? {
        0 => json!({"command": value(draw)?}),
        1 => json!({}),
        2 => {
            json!({"command": "echo x", "timeout": draw.one(&[json!(0), json!(601), json!("600"), json!(" 5 "), json!("5_0"), json!(null), json!(true), json!(1.9), json!("1e2"), json!("601")])?})
        }
        3 => json!({"command": "echo x", "unknown": value(draw)?}),
        4 => {
            json!({"command": "echo x", "background": draw.one(&[json!("false"), json!(false), json!(0), json!(null), json!("")])?})
        }
        5 => json!({"command": "echo x", "pty": value(draw)?}),
        6 => {
            json!({"command": "echo x", "watch_patterns": value(draw)?, "notify_on_complete": value(draw)?})
        }
        7 => {
            json!({"command": "pwd", "workdir": draw.one(&["/tmp;ls", "$HOME", "a|b", "x\ny", "/home/u/proj ", "~root", "/home/u/proj/.", "a&b", "src/../src", "`id`"])?})
        }
        8 => json!({"command": draw.one(&["", " ", "\n", "# nothing", "\t:\n"])?}),
        9 => json!({"command": "echo \u{0} x"}),
        10 => {
            json!({"command": format!("echo {}", "long ".repeat(draw.one(&[10, 500])?)), "timeout": "30"})
        }
        _ => json!({"command": "echo \u{e9}\u{1f600} \u{200b}|"}),
    };
    Ok(Draft::made()
        .flag("odd-argument")
        .call("terminal", &args)
        .expect(Agent::Either, "an argument nobody can use is told, not run"))
}
