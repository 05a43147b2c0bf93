//! What is done: commands of ordinary work, by family, and what a directory holds where each
//! makes sense.
//!
//! `¤` and `§` stand for names, and only where a shell reads a word. What a command does is
//! written nowhere here: it was seen (`vectors/benign-work.jsonl`).

mod builds;
mod data;
mod files;
mod text;
mod versions;

/// One program, or what people use several programs for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// In which directory, and what is done.
    pub shapes: &'static [(&'static str, &'static str)],
}

/// All families, in a fixed order.
pub fn families() -> impl Iterator<Item = &'static Family> {
    [
        versions::FAMILIES,
        builds::FAMILIES,
        files::FAMILIES,
        text::FAMILIES,
        data::FAMILIES,
    ]
    .into_iter()
    .flatten()
}

/// Makes what there is to begin with, in an empty directory; `None` for a kind that is not
/// known.
#[must_use]
pub fn prepared(kind: &str) -> Option<String> {
    let text = match kind {
        "empty" => "true".to_owned(),
        "project" => PROJECT.to_owned(),
        "repo" => format!("{HISTORY}{UNDER_WAY}"),
        "clean" => HISTORY.to_owned(),
        "merge" => format!("{HISTORY}{CONFLICT}"),
        "c" => C.to_owned(),
        "node" => NODE.to_owned(),
        "python" => PYTHON.to_owned(),
        "db" => DATABASE.to_owned(),
        _ => return None,
    };
    Some(text)
}

/// All kinds of directories.
pub const KINDS: [&str; 9] = [
    "empty", "project", "repo", "clean", "merge", "c", "node", "python", "db",
];

const PROJECT: &str = r#"mkdir -p src data docs out logs spare
printf 'one\ntwo three\nfour\n' > src/¤.txt; printf 'one\ntwo two\nfive\n' > src/plain.txt
printf 'a,1\nb,2\n#c,3\nd,4\n' > data/¤.csv; printf 'pear\nfig\nplum\nfig\n' > data/words.txt
printf '{"a": 1, "list": ["x", "y"]}\n' > data/¤.json; printf '{"c": 3}\n' > data/items.json
printf '# Guide\n\nSome words about NAME that are long enough to be folded.\n' > docs/guide.md
printf '.TL\nTitle\n.PP\nText.\n' > docs/page.ms; printf 'old\n' > docs/plain.txt
printf 'ok start\nerror x\nok end\n' > logs/¤.log; printf 'notes\n' > notes.txt; printf 'old\n' > out/old.txt
printf '#!/bin/bash\nmkdir -p out\necho run > out/run.txt\n' > run.sh; chmod 755 run.sh
tar cf all.tar src; tar czf pack.tar.gz docs; zip -q pack.zip src/plain.txt docs/guide.md
printf -- '--- src/plain.txt\n+++ src/plain.txt\n@@ -1,3 +1,3 @@\n-one\n+uno\n two two\n five\n' > fix.patch
printf -- '--- src/plain.txt\n+++ src/plain.txt\n@@ -1,3 +1,3 @@\n-none\n+uno\n no\n such\n' > wrong.patch"#;

const HISTORY: &str = r#"git init -q -b main
mkdir -p src data; printf 'one\n' > src/¤.txt; printf 'a,1\n' > data/¤.csv; printf '*.log\n' > .gitignore
git add -A; git commit -qm first; printf 'two\n' >> src/¤.txt; git commit -qam second
git tag v1; git checkout -q -b other; printf 'other\n' > other.txt; git add -A; git commit -qm aside
git checkout -q main; printf 'three\n' >> src/¤.txt; git commit -qam third
"#;

const UNDER_WAY: &str =
    r#"printf 'four\n' >> src/¤.txt; printf 'new\n' > src/§.txt; printf 'log\n' > x.log"#;

const CONFLICT: &str = r#"git checkout -q -b theirs HEAD~1; printf 'else\n' > src/¤.txt; git commit -qam theirs
git checkout -q main; git merge theirs >/dev/null 2>&1; true"#;

const C: &str = r#"mkdir -p src include build
printf 'int twice(int n);\n' > include/util.h
printf '#include "util.h"\nint twice(int n) { return 2 * n; }\n' > src/util.c
sed -i 's/#include "util.h"/#include "..\/include\/util.h"/' src/util.c
printf '#include <stdio.h>\n#include "util.h"\nint main(void) { printf("%%d\\n", twice(21)); return 0; }\n' > src/main.c
printf '#include <iostream>\nint main() { std::cout << 1; }\n' > src/hello.cc
cat > Makefile <<'E'
CFLAGS = -O1
all: app
app: build/main.o build/util.o
	cc -o $@ $^
build/%.o: src/%.c
	@mkdir -p build
	cc $(CFLAGS) -Iinclude -c -o $@ $<
test: app
	test "$$(./app)" = 42 > test.log
install: app
	install -d $(DESTDIR)/usr/bin
	install app $(DESTDIR)/usr/bin/app
dist:
	tar czf dist.tar.gz src include Makefile
depend:
	cc -Iinclude -MM src/*.c > .depend
clean:
	rm -rf build app
E"#;

const NODE: &str = r#"mkdir -p test dist part
printf '{"name": "x", "version": "1.0.0", "scripts": {"build": "node build.js", "test": "node --test"}}\n' > package.json
printf 'module.exports = () => 1;\n' > index.js; printf '{"name": "part", "version": "1.0.0"}\n' > part/package.json
printf 'const fs = require("fs");\nfs.mkdirSync("dist", {recursive: true});\nfs.writeFileSync("dist/bundle.js", fs.readFileSync("index.js"));\n' > build.js
printf 'const test = require("node:test");\ntest("one", () => {});\n' > test/one.test.js"#;

const PYTHON: &str = r#"mkdir -p pkg tests
: > pkg/__init__.py; : > tests/__init__.py
printf 'def twice(n):\n    """\n    >>> twice(1)\n    2\n    """\n    return 2 * n\n\n\ndef main():\n    print(twice(21))\n' > pkg/core.py
printf 'from pkg.core import main\n\nmain()\n' > main.py
printf 'import unittest\nfrom pkg.core import twice\n\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(twice(2), 4)\n' > tests/test_core.py"#;

const DATABASE: &str = r#"printf "create table t (a integer primary key, b text);\ninsert into t values (1, 'a'), (2, 'b'), (3, 'c');\n" > schema.sql
sqlite3 app.db < schema.sql; printf 'x,y\n1,2\n' > rows.csv"#;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_shape_is_there_once_and_of_a_kind_that_is_prepared() {
        let mut seen = BTreeSet::new();
        for family in families() {
            for shape in family.shapes {
                assert!(seen.insert(shape), "{shape:?} twice");
                assert!(prepared(shape.0).is_some(), "{shape:?}");
            }
        }
        for kind in KINDS {
            assert!(prepared(kind).is_some(), "{kind}");
            assert!(seen.iter().any(|(known, _)| *known == kind), "{kind}");
        }
        assert_eq!(prepared("nothing"), None);
    }
}
