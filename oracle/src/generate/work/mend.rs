//! A small project with a fault: its tests are run, read, mended and run again.

use bisim_world::protocol::Step;
use serde_json::json;

use super::{
    draw::Draw,
    errands::{Files, call},
    text::word,
};

/// A project in one language.
struct Project {
    /// Its files.
    files: Vec<(&'static str, String)>,
    /// The file with the fault, what is wrong there and what is right.
    fault: (&'static str, String, String),
    /// How its tests are run.
    tests: &'static [&'static str],
    /// What else is run there.
    others: &'static [&'static str],
}

/// The steps: most often in the order in which people do it.
pub fn mend(draw: &mut Draw, files: &mut Files) -> Vec<Step> {
    let project = match draw.below(4) {
        0 => python(draw),
        1 => node(draw),
        2 => shell(draw),
        _ => make(draw),
    };
    for (path, text) in &project.files {
        files.push(((*path).to_owned(), text.clone()));
    }
    let (path, wrong, right) = &project.fault;
    let mut steps = vec![run(draw, project.tests)];
    for _ in 0..draw.below(3) {
        steps.push(look(draw, &project));
    }
    // Something that is no cure, now and then.
    if draw.chance(40) {
        let other = format!("{wrong} {}", draw.one(&["+ 1", "- 0", "# ?", ";;", ")"]));
        steps.push(replace(path, wrong, &other));
        steps.push(run(draw, project.tests));
        steps.push(replace(path, &other, wrong));
    }
    steps.push(match draw.below(5) {
        0 => call(
            "patch",
            json!({"mode": "patch", "patch": format!(
                "*** Begin Patch\n*** Update File: {path}\n@@\n-{wrong}\n+{right}\n*** End Patch"
            )}),
        ),
        1 => call(
            "patch",
            json!({"mode": "replace", "path": path, "old_string": wrong.trim(), "new_string": right.trim()}),
        ),
        _ => replace(path, wrong, right),
    });
    steps.push(run(draw, project.tests));
    for _ in 0..draw.below(4) {
        steps.push(if draw.chance(60) {
            run(draw, project.others)
        } else {
            look(draw, &project)
        });
    }
    steps
}

fn run(draw: &mut Draw, commands: &[&str]) -> Step {
    let command = draw.one(commands);
    let command = match draw.below(7) {
        0 => format!("{command} 2>&1 | tail -5"),
        1 => format!("{command} > out.log 2>&1; echo $?; head -20 out.log"),
        2 => format!("{command} && echo good || echo bad"),
        3 => format!("cd /home/u/proj && timeout 20 {command}"),
        _ => command.to_owned(),
    };
    call("terminal", json!({ "command": command }))
}

fn replace(path: &str, old: &str, new: &str) -> Step {
    call(
        "patch",
        json!({"mode": "replace", "path": path, "old_string": old, "new_string": new}),
    )
}

fn look(draw: &mut Draw, project: &Project) -> Step {
    let paths: Vec<&str> = project.files.iter().map(|(path, _)| *path).collect();
    let path = draw.one(&paths);
    match draw.below(5) {
        0 => call(
            "search_files",
            json!({"pattern": draw.one(&["return", "def ", "=>", "echo", "total"]), "path": "/home/u/proj"}),
        ),
        1 => call(
            "terminal",
            json!({"command": format!("cat -n {path} | head -12")}),
        ),
        2 => call("read_file", json!({"path": path, "offset": 2, "limit": 5})),
        _ => call("read_file", json!({ "path": path })),
    }
}

fn python(draw: &mut Draw) -> Project {
    let (one, two, number) = (word(draw), word(draw), 2 + draw.below(9));
    let code = format!(
        "\"\"\"Counts each {one}.\"\"\"\n\n\ndef total(values):\n    result = 0\n    for value in values:\n        \
         result = value\n    return result\n\n\ndef {one}(value, {two}={number}):\n    if value < 0:\n        raise \
         ValueError(f\"no {one}: {{value}}\")\n    return value * {two}\n"
    );
    let tests = format!(
        "import unittest\n\nfrom pack.counts import {one}, total\n\n\nclass Counts(unittest.TestCase):\n    def \
         test_total(self):\n        self.assertEqual(total([1, 2, {number}]), {})\n\n    def test_each(self):\n        \
         self.assertEqual({one}(2), {})\n\n    def test_none(self):\n        with self.assertRaises(ValueError):\n            \
         {one}(-1)\n",
        number + 3,
        2 * number
    );
    Project {
        files: vec![
            ("pack/__init__.py", String::new()),
            ("pack/counts.py", code),
            ("tests/__init__.py", String::new()),
            ("tests/test_counts.py", tests),
            (
                "pyproject.toml",
                format!("[project]\nname = \"{two}\"\nversion = \"0.{number}.0\"\n"),
            ),
        ],
        fault: (
            "pack/counts.py",
            "        result = value".to_owned(),
            "        result += value".to_owned(),
        ),
        // How long they took is no fact of the work.
        tests: &[
            "python3 -B -m unittest 2>&1 | sed 's/ in [0-9.]*s//'",
            "python3 -B -m unittest -v tests.test_counts 2>&1 | sed 's/ in [0-9.]*s//'",
            "python3 -B -m unittest discover -s tests -t . 2>&1 | grep -v '^Ran'",
        ],
        others: &[
            "grep -rn 'def ' pack tests | sort",
            "wc -l pack/*.py tests/*.py",
            "python3 -B -m pack.counts; echo $?",
            "PYTHONPATH=. python3 -B tests/test_counts.py",
            "python3 -B -m nothing.here",
            "git diff --stat; git status -s",
            "sed -n '4,8p' pack/counts.py",
            "python3 -B -m tokenize pack/counts.py | head -6",
        ],
    }
}

fn node(draw: &mut Draw) -> Project {
    let (one, number) = (word(draw), 2 + draw.below(9));
    let code = format!(
        "'use strict';\n\nfunction total(values) {{\n  return values.reduce((sum, value) => sum - value, 0);\n}}\n\nconst \
         {one} = (value) => value * {number};\n\nmodule.exports = {{ total, {one} }};\n"
    );
    let tests = format!(
        "'use strict';\n\nconst assert = require('assert');\nconst {{ total, {one} }} = \
         require('../lib/counts');\n\nassert.strictEqual({one}(2), {});\nassert.strictEqual(total([1, 2, {number}]), \
         {});\nconsole.log('2 passed');\n",
        2 * number,
        number + 3
    );
    Project {
        files: vec![
            ("lib/counts.js", code),
            ("test/counts.js", tests),
            (
                "package.json",
                "{\n  \"name\": \"counts\",\n  \"version\": \"1.0.0\",\n  \"scripts\": {\n    \"test\": \"node \
                 test/counts.js\"\n  }\n}\n"
                    .to_owned(),
            ),
        ],
        fault: (
            "lib/counts.js",
            "  return values.reduce((sum, value) => sum - value, 0);".to_owned(),
            "  return values.reduce((sum, value) => sum + value, 0);".to_owned(),
        ),
        tests: &[
            "node test/counts.js",
            "node test/counts.js 2>&1 | grep -v node:",
            "NODE_ENV=test node --trace-uncaught test/counts.js 2>/dev/null; echo $?",
        ],
        others: &[
            "node --check lib/counts.js && echo fine",
            "grep -n version package.json",
            "jq -r '.scripts.test' package.json",
            "jq '.version = \"1.0.1\"' package.json > p.json && mv p.json package.json && cat package.json",
            "echo 'console.log(require(\"./lib/counts\"))' | node",
            "node lib/nothing.js 2>&1 | grep Error:",
            "ls lib test | sort",
        ],
    }
}

fn shell(draw: &mut Draw) -> Project {
    let (one, two) = (word(draw), word(draw));
    Project {
        files: vec![
            (
                "bin/count.sh",
                format!(
                    "#!/bin/sh\n# Counts each {one}.\nset -eu\nfile=${{1:?which file}}\ngrep -c '{two}' \"$file\"\n"
                ),
            ),
            (
                "test.sh",
                format!(
                    "#!/bin/bash\nset -u\nfailed=0\nexpect() {{\n  got=$(bin/count.sh data/{one}.txt)\n  if [[ $got == \"$1\" ]]; then \
                     echo \"ok $1\"; else echo \"not ok: $got, not $1\"; failed=1; fi\n}}\nexpect 2\nexit $failed\n"
                ),
            ),
            ("data/list.txt", format!("{two}\n{one} {two}\n")),
        ],
        fault: (
            "test.sh",
            format!("  got=$(bin/count.sh data/{one}.txt)"),
            "  got=$(bin/count.sh data/list.txt)".to_owned(),
        ),
        tests: &[
            "bash test.sh",
            "chmod +x test.sh bin/count.sh; ./test.sh",
            "./test.sh",
            "sh test.sh",
        ],
        others: &[
            "chmod 755 bin/count.sh && bin/count.sh data/list.txt",
            "bin/count.sh",
            "sh -n test.sh && echo fine",
            "stat -c '%a %n' bin/count.sh test.sh",
            "PATH=$PWD/bin:$PATH; count.sh data/list.txt",
            "cat <<'END' >> data/list.txt\nmore $HOME\nEND\ntail -2 data/list.txt",
            "ls -l bin | awk '{print $1, $NF}'",
            "head -1 bin/count.sh | cut -c3-",
        ],
    }
}

fn make(draw: &mut Draw) -> Project {
    let (one, two) = (word(draw), word(draw));
    Project {
        files: vec![
            (
                "Makefile",
                format!(
                    "CC ?= cc\nCFLAGS = -O0 -Wall\n\nall: build/{one}\n\nbuild/{one}: src/main.c src/count.h\n\tmkdir -p \
                     build\n\t$(CC) $(CFLAGS) -o $@ src/main.c\n\ntest: all\n\t@test \"`build/{one} 2 3`\" = 5 && echo \
                     passed\n\nclean:\n\trm -rf build\n\n.PHONY: all test clean\n"
                ),
            ),
            (
                "src/count.h",
                "static int count(int a, int b)\n{\n\treturn a - b;\n}\n".to_owned(),
            ),
            (
                "src/main.c",
                format!(
                    "#include <stdio.h>\n#include <stdlib.h>\n#include \"count.h\"\n\nint main(int argc, char **argv)\n{{\n\tif \
                     (argc != 3) {{\n\t\tfprintf(stderr, \"{two}: two numbers\\n\");\n\t\treturn 2;\n\t}}\n\tprintf(\"%d\\n\", \
                     count(atoi(argv[1]), atoi(argv[2])));\n\treturn 0;\n}}\n"
                ),
            ),
        ],
        fault: (
            "src/count.h",
            "\treturn a - b;".to_owned(),
            "\treturn a + b;".to_owned(),
        ),
        tests: &[
            "make test",
            "make -s test",
            "make clean test",
            "make -j2 test",
        ],
        others: &[
            "make -n",
            "make -q; echo $?",
            "make nothing",
            "touch src/count.h && make",
            "build/*",
            "make clean && ls",
            "gcc -fsyntax-only -Wall -Wextra src/main.c && echo fine",
            "make CFLAGS='-Werror -DX' 2>&1 | tail -2",
        ],
    }
}
