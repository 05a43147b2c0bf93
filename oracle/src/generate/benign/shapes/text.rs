//! Text: changed in place, filtered, searched, put together, typeset.

use super::Family;

pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "sed",
        shapes: &[
            ("project", "sed -i 's/one/two/' src/¤.txt"),
            ("project", "sed -i.orig 's/one/two/' src/¤.txt"),
            ("project", "sed -i '1i # head' src/*.txt"),
            ("project", "sed -i '/^#/d' data/¤.csv"),
            ("project", "sed -n '2,3p' src/¤.txt > out/§.txt"),
            ("project", "sed -n 'w out/¤.txt' src/plain.txt"),
            (
                "project",
                "sed -e 's/a/b/;s/c/d/' -i src/¤.txt src/plain.txt",
            ),
            (
                "project",
                "grep -rl one src | xargs -d '\\n' sed -i 's/one/ein/g'",
            ),
            ("project", "sed -E 's/([a-z]+) ([a-z]+)/\\2 \\1/' src/¤.txt"),
            (
                "project",
                "sed '$!N;s/\\n/ /' src/¤.txt | tee out/joined.txt",
            ),
        ],
    },
    Family {
        name: "awk",
        shapes: &[
            ("project", "awk -F, '{print $1}' data/¤.csv"),
            (
                "project",
                "awk -F, '{s += $2} END {print s}' data/¤.csv > out/sum.txt",
            ),
            (
                "project",
                "awk '{print > (\"out/\" NR \".line\")}' data/words.txt",
            ),
            (
                "project",
                "awk -F, -v OFS='\\t' '{$1=$1}1' data/¤.csv > data/¤.tsv",
            ),
            (
                "project",
                "awk 'length > 3' src/¤.txt > out/long.txt && mv out/long.txt src/¤.txt",
            ),
            ("project", "awk '!seen[$0]++' logs/¤.log > logs/§.log"),
            (
                "project",
                "awk -f - data/words.txt <<'E' > out/¤.txt\n{ n[$1]++ }\nEND { for (w in n) print w, n[w] }\nE",
            ),
        ],
    },
    Family {
        name: "text filters",
        shapes: &[
            ("project", "sort -o data/¤.csv data/¤.csv"),
            ("project", "sort -u data/words.txt > out/¤.txt"),
            (
                "project",
                "sort data/words.txt | uniq -c | sort -rn > out/counts.txt",
            ),
            ("project", "tr a-z A-Z < src/¤.txt > out/¤.txt"),
            (
                "project",
                "tr -d '\\r' < src/¤.txt > src/¤.tmp && mv src/¤.tmp src/¤.txt",
            ),
            ("project", "cut -d, -f1 data/¤.csv > out/¤.col"),
            (
                "project",
                "paste -d, data/¤.csv data/words.txt > out/both.csv",
            ),
            ("project", "join -t, data/¤.csv data/¤.csv > out/joined.csv"),
            (
                "project",
                "comm -12 <(sort data/words.txt) <(sort src/¤.txt) > out/common.txt",
            ),
            ("project", "head -n 2 data/¤.csv > out/¤.head"),
            ("project", "tail -n +2 data/¤.csv > out/¤.body"),
            ("project", "wc -l src/*.txt"),
            ("project", "wc -w < src/¤.txt >> counts.txt"),
            ("project", "fold -w 20 -s docs/guide.md > out/¤.md"),
            ("project", "fmt -w 40 docs/guide.md > docs/¤.md"),
            ("project", "nl src/¤.txt > out/¤.nl"),
            (
                "project",
                "expand -t 4 src/¤.txt > out/¤.x && mv out/¤.x src/¤.txt",
            ),
            ("project", "column -t -s, data/¤.csv > out/¤.table"),
            ("project", "pr -2 -l 20 docs/guide.md > out/¤.pr"),
            ("project", "rev src/¤.txt | rev > out/¤.same"),
            ("project", "tac data/¤.csv > data/§.csv"),
            (
                "project",
                "shuf --random-source=data/words.txt data/words.txt > out/¤",
            ),
            ("project", "seq 1 9 > out/¤.seq"),
            ("project", "tsort data/words.txt > out/order.txt"),
            ("project", "iconv -f utf-8 -t utf-16 src/¤.txt > out/¤.u16"),
            ("project", "base64 src/¤.txt > out/¤.b64"),
            ("project", "base64 src/¤.txt | base64 -d > out/¤.txt"),
            ("project", "xxd src/¤.txt > out/¤.hex"),
            ("project", "od -c src/¤.txt | head -3"),
            (
                "project",
                "sha256sum src/*.txt > SHA256SUMS && sha256sum -c --quiet SHA256SUMS",
            ),
            ("project", "md5sum data/¤.csv > data/¤.csv.md5"),
            ("project", "cksum src/¤.txt; openssl dgst -sha256 src/¤.txt"),
            ("project", "m4 -DNAME=x docs/guide.md > out/¤.m4"),
            (
                "project",
                "printf '%s\\n' a b c | xargs -n1 -I{} touch out/{}",
            ),
            (
                "project",
                "numfmt --to=iec < /dev/null; date -u +%Y > out/¤.year",
            ),
            ("project", "groff -Tascii docs/page.ms > out/¤.txt"),
        ],
    },
    Family {
        name: "searching",
        shapes: &[
            ("project", "grep -rn one src"),
            ("project", "grep -c two src/¤.txt"),
            ("project", "grep -rl --include='*.csv' a . > out/¤.list"),
            ("project", "grep -v '^#' data/¤.csv > data/§.csv"),
            ("project", "find . -type f -newer run.sh"),
            ("project", "find . -size -4k -name '*.txt' > files.txt"),
            ("project", "ls -laR"),
            ("project", "ls src | wc -l"),
            ("project", "du -sh . && df -h . >/dev/null"),
            ("project", "file src/* 2>/dev/null; true"),
            (
                "project",
                "cat logs/¤.log | grep -i error | cut -d' ' -f1 | sort | uniq -c",
            ),
            (
                "project",
                "egrep -o '[a-z]+' docs/guide.md | sort | uniq > words.txt",
            ),
        ],
    },
    Family {
        name: "patches",
        shapes: &[
            ("project", "diff -u src/¤.txt src/plain.txt > out/¤.diff"),
            ("project", "diff -ru src docs > all.diff"),
            (
                "project",
                "diff -u src/¤.txt src/plain.txt | patch -s src/¤.txt",
            ),
            ("project", "patch -s -p0 < fix.patch"),
            ("project", "patch -s -b -p0 < fix.patch"),
            (
                "project",
                "patch -s -p0 < fix.patch && patch -s -R -p0 < fix.patch",
            ),
            ("project", "patch -s -p0 --dry-run < fix.patch"),
            ("project", "patch -s -p0 -o out/§.txt < fix.patch"),
            ("project", "patch -s -f -p0 < wrong.patch"),
            ("project", "cmp src/¤.txt src/plain.txt"),
            (
                "project",
                "diff3 -m src/¤.txt src/plain.txt src/¤.txt > out/merged",
            ),
            ("project", "sdiff -o out/side src/plain.txt src/plain.txt"),
        ],
    },
    Family {
        name: "editors",
        shapes: &[
            (
                "project",
                "printf 'g/one/s//1/g\\nw\\nq\\n' | ed -s src/¤.txt",
            ),
            ("project", "ed -s src/¤.txt <<'E'\n$a\nlast\n.\nwq\nE"),
            (
                "project",
                "vim -u NONE -i NONE -n -es -c '%s/one/1/' -c wq src/plain.txt",
            ),
            (
                "project",
                "vim -u NONE -i NONE -n -es -c 'normal Ox' -c 'w! out/v.txt' -c q! src/plain.txt",
            ),
            ("project", "perl -pi -e 's/one/1/' src/¤.txt"),
            ("project", "perl -i.bak -ne 'print unless /two/' src/¤.txt"),
            (
                "project",
                "perl -0777 -pe 's/\\n+/\\n/g' src/¤.txt > out/¤.txt",
            ),
            ("project", "ruby -i -pe '$_.upcase!' src/¤.txt"),
            ("project", "echo '- more' >> docs/guide.md"),
            ("project", "cat >> notes.txt <<'E'\nmore\nE"),
            ("project", "cat > src/§.txt <<'E'\nfirst\n  second $HOME\nE"),
            ("project", "printf '# x\\n' > ¤.md"),
            ("project", ": > src/¤.txt"),
            (
                "project",
                "{ echo '# head'; cat src/¤.txt; } > out/t && mv out/t src/¤.txt",
            ),
        ],
    },
];
