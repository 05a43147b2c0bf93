//! Building and testing: make, C, C++, Node, Python.

use super::Family;

pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "make",
        shapes: &[
            ("c", "make"),
            ("c", "make -j4"),
            ("c", "make -s && ./app"),
            ("c", "make clean"),
            ("c", "make && make clean"),
            ("c", "make -n"),
            ("c", "make test"),
            ("c", "make install DESTDIR=stage"),
            ("c", "make -C . all CFLAGS=-g"),
            ("c", "make build/util.o"),
            ("c", "touch src/main.c && make"),
            ("c", "make dist"),
            ("c", "make 2>&1 | tee build.log"),
            ("c", "make depend"),
        ],
    },
    Family {
        name: "C and C++",
        shapes: &[
            ("c", "gcc -c src/util.c -o ¤.o"),
            ("c", "gcc -O2 -Wall -Iinclude -o ¤ src/main.c src/util.c"),
            ("c", "gcc -g -Iinclude src/main.c src/util.c && ./a.out"),
            ("c", "gcc -E -Iinclude src/main.c > ¤.i"),
            ("c", "gcc -S -Iinclude src/util.c -o ¤.s"),
            ("c", "gcc -MMD -Iinclude -c src/main.c -o build/¤.o"),
            ("c", "gcc -shared -fPIC -o lib¤.so src/util.c"),
            (
                "c",
                "gcc -c src/util.c -o util.o && ar rcs lib¤.a util.o && rm util.o",
            ),
            ("c", "gcc -Iinclude -o ¤ src/*.c && strip ¤"),
            ("c", "gcc -Iinclude --coverage -o app src/*.c && ./app"),
            ("c", "g++ -o ¤ src/hello.cc && ./¤"),
            ("c", "gcc -fsyntax-only -Iinclude src/main.c"),
            (
                "c",
                "gcc -Iinclude -o ¤ src/*.c && nm ¤ > symbols.txt && objdump -d ¤ > ¤.asm",
            ),
            (
                "c",
                "gcc -Iinclude -c src/*.c && ld -r -o ¤.o main.o util.o",
            ),
            (
                "c",
                "for f in src/*.c; do gcc -Iinclude -c \"$f\" -o \"build/$(basename \"$f\" .c).o\"; done",
            ),
            (
                "c",
                "gcc -Iinclude -DVERSION=2 -o build/¤ src/*.c && build/¤ > out.txt",
            ),
            (
                "c",
                "printf 'int x;\\n' > src/¤.c && gcc -c src/¤.c -o build/¤.o",
            ),
            ("c", "cc -xc -o ¤ - <<'E'\nint main(void) { return 0; }\nE"),
        ],
    },
    Family {
        name: "Node",
        shapes: &[
            ("node", "node index.js"),
            ("node", "node --check index.js"),
            ("node", "node --test"),
            ("node", "node build.js"),
            ("node", "node build.js && node dist/bundle.js"),
            ("node", "npm run build --silent"),
            ("node", "npm test --silent"),
            ("node", "npm pkg set description=¤"),
            ("node", "npm version minor --no-git-tag-version"),
            (
                "node",
                "npm install ./part --offline --no-audit --no-fund --silent",
            ),
            (
                "node",
                "npm install ./part --offline --no-audit --no-fund --silent && npm uninstall part --offline --no-audit --no-fund --silent",
            ),
            ("node", "npm ls"),
            ("node", "rm -rf node_modules package-lock.json"),
            ("empty", "mkdir app && cd app && npm init -y"),
            (
                "node",
                "node -e \"require('fs').writeFileSync(process.argv[1], 'x')\" dist/¤.txt",
            ),
            (
                "node",
                "node -e \"require('fs').mkdirSync('a/b', {recursive: true})\"",
            ),
            (
                "node",
                "node -e \"const fs = require('fs'); fs.renameSync('index.js', 'main.mjs')\"",
            ),
        ],
    },
    Family {
        name: "Python",
        shapes: &[
            ("python", "python3 -m unittest -q"),
            ("python", "python3 -m unittest discover -s tests -q"),
            ("python", "python3 main.py"),
            ("python", "python3 -B main.py"),
            ("python", "python3 -m compileall -q pkg"),
            ("python", "python3 -m py_compile pkg/core.py"),
            ("python", "python3 -m pkg.core"),
            ("python", "python3 -m doctest pkg/core.py"),
            ("python", "python3 -m venv --without-pip .venv"),
            ("python", "python3 -m venv --without-pip ¤ && rm -rf ¤"),
            ("python", "python3 -m zipapp pkg -m core:main -o ¤.pyz"),
            ("python", "python3 -m zipfile -c ¤.zip pkg"),
            ("python", "python3 -m tarfile -c ¤.tar pkg"),
            ("python", "python3 -m cProfile -o ¤.prof main.py"),
            ("python", "python3 -m ast main.py > ¤.ast"),
            ("python", "python3 -m tokenize main.py"),
            ("python", "python3 -m pydoc -w pkg.core"),
            ("python", "python3 -m ensurepip --version"),
            (
                "python",
                "find . -name __pycache__ -prune -exec rm -rf {} +",
            ),
            (
                "python",
                "python3 -c 'import sys; open(sys.argv[1], \"w\").write(\"x\")' ¤.txt",
            ),
            (
                "python",
                "python3 -c 'import os, sys; os.makedirs(sys.argv[1])' build/¤/deep",
            ),
            (
                "python",
                "python3 -c 'import shutil; shutil.copytree(\"pkg\", \"copy\")'",
            ),
            (
                "python",
                "python3 -c 'import shutil; shutil.rmtree(\"pkg\")'",
            ),
            (
                "python",
                "python3 -c 'import pathlib, sys; pathlib.Path(sys.argv[1]).symlink_to(\"main.py\")' ¤",
            ),
            (
                "python",
                "python3 - <<'E'\nfrom pathlib import Path\nfor n in range(3):\n    Path(f'part{n}.txt').write_text(str(n))\nE",
            ),
        ],
    },
];
