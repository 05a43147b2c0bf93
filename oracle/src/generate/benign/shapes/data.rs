//! Databases, JSON and tables; scripts in small languages; projects that are begun.

use super::Family;

pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "sqlite",
        shapes: &[
            ("db", "sqlite3 app.db 'select count(*) from t'"),
            ("db", "sqlite3 app.db \"insert into t values (4, 'd')\""),
            ("db", "sqlite3 app.db 'delete from t where a = 1; vacuum'"),
            (
                "db",
                "sqlite3 app.db 'create table u (x); create index i on u (x)'",
            ),
            (
                "db",
                "sqlite3 app.db 'pragma journal_mode = wal; insert into t values (9, 9)'",
            ),
            ("db", "sqlite3 ¤.db 'create table t (a)'"),
            ("db", "sqlite3 ¤.sqlite3 < schema.sql"),
            ("db", "sqlite3 app.db .dump > ¤.sql"),
            ("db", "sqlite3 app.db .dump | sqlite3 ¤.db"),
            (
                "db",
                "sqlite3 -csv -header app.db 'select * from t' > ¤.csv",
            ),
            ("db", "sqlite3 app.db '.backup copy.db'"),
            (
                "db",
                "sqlite3 app.db \"attach 'side.db' as s; create table s.t as select * from t\"",
            ),
            (
                "db",
                "sqlite3 app.db 'begin; insert into t values (5, 5); rollback'",
            ),
            ("db", "sqlite3 app.db '.import --csv rows.csv rows'"),
            (
                "db",
                "python3 -c 'import sqlite3; c = sqlite3.connect(\"app.db\"); c.execute(\"insert into t values (7, 7)\"); c.commit()'",
            ),
            (
                "db",
                "python3 -c 'import dbm.dumb; d = dbm.dumb.open(\"kv\", \"c\"); d[\"a\"] = \"b\"; d.close()'",
            ),
            ("db", "rm -f app.db && sqlite3 app.db < schema.sql"),
            (
                "db",
                "mkdir -p migrations && cp schema.sql migrations/001_¤.sql",
            ),
            (
                "db",
                "cp app.db app.db.bak && sqlite3 app.db 'drop table t'",
            ),
        ],
    },
    Family {
        name: "json and tables",
        shapes: &[
            ("project", "jq . data/¤.json"),
            (
                "project",
                "jq '.a += 1' data/¤.json > out/j && mv out/j data/¤.json",
            ),
            ("project", "jq -r '.list[]' data/¤.json > out/¤.txt"),
            (
                "project",
                "jq -c '.list[]' data/¤.json | split -l 1 - out/row-",
            ),
            (
                "project",
                "jq -s add data/¤.json data/items.json > out/all.json",
            ),
            ("project", "python3 -m json.tool data/¤.json out/¤.json"),
            (
                "project",
                "python3 -c 'import csv, json, sys; json.dump(list(csv.reader(open(sys.argv[1]))), open(sys.argv[2], \"w\"))' data/¤.csv out/¤.json",
            ),
            (
                "project",
                "python3 -c 'import json; d = json.load(open(\"data/items.json\")); d[\"b\"] = 2; json.dump(d, open(\"data/items.json\", \"w\"))'",
            ),
            (
                "project",
                "perl -F, -lane 'print $F[1]' data/¤.csv > out/¤.second",
            ),
            (
                "project",
                "ruby -rjson -e 'puts JSON.parse(File.read(ARGV[0]))[\"a\"]' data/¤.json",
            ),
            (
                "project",
                "node -e \"const fs = require('fs'); const d = JSON.parse(fs.readFileSync(process.argv[1])); d.x = 1; fs.writeFileSync(process.argv[1], JSON.stringify(d))\" data/¤.json",
            ),
        ],
    },
    Family {
        name: "scripts",
        shapes: &[
            ("project", "./run.sh"),
            ("project", "bash run.sh > out/¤.log 2>&1"),
            ("project", "bash -n run.sh"),
            ("project", "bash -x run.sh 2> out/trace.txt"),
            (
                "project",
                "printf '#!/bin/sh\\necho hi\\n' > ¤.sh && chmod +x ¤.sh && ./¤.sh",
            ),
            (
                "project",
                "perl -e 'open F, \">\", $ARGV[0]; print F \"x\"' out/¤.pl.txt",
            ),
            (
                "project",
                "perl -e 'mkdir \"p\"; rename \"notes.txt\", \"p/notes.txt\"'",
            ),
            ("project", "ruby -e 'File.write(ARGV[0], 1)' out/¤.rb.txt"),
            (
                "project",
                "ruby -rfileutils -e 'FileUtils.mkdir_p(\"r/s\"); FileUtils.cp(\"notes.txt\", \"r/s\")'",
            ),
            (
                "project",
                "lua5.4 -e 'local f = io.open(arg[1], \"w\"); f:write(\"x\"); f:close()' /dev/null out/¤.lua.txt; true",
            ),
            ("project", "awk 'BEGIN { print 1 > \"out/awk.txt\" }'"),
            ("project", "echo '2 ^ 10' | bc > out/¤.num"),
            (
                "project",
                "bash -c 'for n in 1 2 3; do echo $n > out/$n.n; done'",
            ),
            ("project", "trap 'rm -f lock' EXIT; : > lock; sleep 0"),
            ("project", "exec 3> out/¤.fd; echo x >&3; exec 3>&-"),
            (
                "project",
                "coproc cat; echo x >&\"${COPROC[1]}\"; kill $COPROC_PID 2>/dev/null; true",
            ),
            ("project", "sh -c 'echo $0 > out/zero' ¤"),
            (
                "project",
                "while read -r w; do echo \"$w\" > out/\"$w\".w; done < data/words.txt",
            ),
            (
                "project",
                "env LC_ALL=C sort data/words.txt -o data/words.txt",
            ),
            ("project", "timeout 20 nice -n 5 bash run.sh"),
            ("project", "busybox sed -i 's/one/1/' src/¤.txt"),
            ("project", "busybox tar cf ¤.tar src"),
        ],
    },
    Family {
        name: "projects begun",
        shapes: &[
            ("empty", "printf 'node_modules\\ndist\\n' > .gitignore"),
            (
                "empty",
                "printf '{\"root\": true}\\n' > .eslintrc && printf '{}\\n' > .prettierrc",
            ),
            (
                "empty",
                "mkdir -p .github/workflows && printf 'on: push\\n' > .github/workflows/¤.yml",
            ),
            ("empty", "printf 'root = true\\n' > .editorconfig"),
            (
                "empty",
                "printf 'FROM debian\\n' > Dockerfile && printf '.git\\n' > .dockerignore",
            ),
            (
                "empty",
                "mkdir -p .vscode && printf '{}\\n' > .vscode/settings.json",
            ),
            (
                "empty",
                "mkdir -p .devcontainer && printf '{}\\n' > .devcontainer/devcontainer.json",
            ),
            (
                "empty",
                "mkdir -p .circleci && printf 'version: 2\\n' > .circleci/config.yml",
            ),
            ("empty", "printf 'image: debian\\n' > .gitlab-ci.yml"),
            ("empty", "printf 'PORT=1\\n' > .env.example"),
            (
                "empty",
                "printf '3.11\\n' > .python-version && printf '20\\n' > .nvmrc && printf 'ruby 3\\n' > .tool-versions",
            ),
            (
                "empty",
                "printf '[tool.x]\\n' > pyproject.toml && mkdir -p src/¤ && : > src/¤/__init__.py",
            ),
            ("empty", "printf 'all:\\n\\ttrue\\n' > Makefile && make"),
            (
                "empty",
                "mkdir -p src tests docs && touch README.md LICENSE src/¤.py tests/test_¤.py",
            ),
            (
                "empty",
                "mkdir -p src && printf '[package]\\nname = \"x\"\\n' > Cargo.toml && printf 'fn main() {}\\n' > src/main.rs",
            ),
            (
                "empty",
                "mkdir -p cmd/¤ && printf 'module x\\n' > go.mod && printf 'package main\\n' > cmd/¤/main.go",
            ),
            (
                "empty",
                "mkdir -p terraform/¤ && printf '# x\\n' > terraform/¤/main.tf",
            ),
            ("empty", "printf 'repos: []\\n' > .pre-commit-config.yaml"),
            (
                "empty",
                "mkdir -p config && printf 'a: 1\\n' > config/¤.yml && cp config/¤.yml config/§.yml",
            ),
            (
                "empty",
                "mkdir -p hooks && printf 'export const useX = 1\\n' > hooks/use¤.ts",
            ),
            (
                "empty",
                "mkdir -p src/components/¤ && touch src/components/¤/{index.tsx,style.css,¤.test.tsx}",
            ),
            (
                "empty",
                "mkdir -p branches remotes refs objects && touch branches/¤ remotes/¤ refs/¤ objects/¤",
            ),
            (
                "empty",
                "mkdir -p .storybook .changeset .cargo && touch .storybook/main.ts .changeset/¤.md .cargo/config.toml",
            ),
            (
                "empty",
                "printf 'x\\n' > .browserslistrc && printf '{}\\n' > .babelrc && printf '*.snap\\n' > .prettierignore",
            ),
            (
                "empty",
                "mkdir -p i18n/de && printf '{}\\n' > i18n/de/¤.json",
            ),
            (
                "empty",
                "cat > docker-compose.yml <<'E'\nservices:\n  db:\n    image: postgres\nE",
            ),
        ],
    },
];
