//! Scripting languages and developers' tools that run a command.

use crate::generate::operator::{Apply, Class, Operator};
use crate::generate::script::{Script, single_quoted};

use Class::{Interpreter, Tool};

const fn whole(
    name: &'static str,
    class: Class,
    needs: &'static [&'static str],
    rewrite: fn(&Script, &str) -> Option<Script>,
) -> Operator {
    Operator::of(name, class, needs, Apply::Whole(rewrite))
}

/// The text as a shell command that any `sh` hands to bash.
pub(super) fn for_sh(script: &Script) -> String {
    format!("bash -c {}", single_quoted(&script.print()))
}

/// As a string of a language with backslash escapes in double quotes.
pub(super) fn literal(text: &str) -> Option<String> {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                out.push('\\');
                out.push(letter);
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            letter if letter.is_control() => return None,
            letter => out.push(letter),
        }
    }
    out.push('"');
    Some(out)
}

/// For languages that also look for variables inside double quotes.
fn perl_literal(text: &str) -> Option<String> {
    let bare = !text.chars().any(|l| l.is_control());
    bare.then(|| format!("q\u{1}{text}\u{1}").replace('\u{1}', "~"))
        .filter(|_| !text.contains('~'))
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn python(script: &Script, code: fn(&str) -> String) -> Option<Script> {
    let text = literal(&for_sh(script))?;
    Some(Script::command(&["python3", "-c", &code(&text)]))
}

fn perl(script: &Script, code: fn(&str) -> String) -> Option<Script> {
    let text = perl_literal(&for_sh(script))?;
    Some(Script::command(&["perl", "-e", &code(&text)]))
}

fn awk(script: &Script, code: fn(&str) -> String) -> Option<Script> {
    let text = literal(&for_sh(script))?;
    Some(Script::command(&["awk", &code(&text)]))
}

/// Tools that read a rule of one line.
pub(super) fn one_line(script: &Script) -> Option<String> {
    let text = for_sh(script);
    (!text.contains('\n')).then_some(text)
}

pub(super) const TABLE: &[Operator] = &[
    whole("python-os-system", Interpreter, &["python3"], |s, _| {
        python(s, |t| format!("import os; os.system({t})"))
    }),
    whole(
        "python-subprocess-shell",
        Interpreter,
        &["python3"],
        |s, _| {
            python(s, |t| {
                format!("import subprocess; subprocess.run({t}, shell=True)")
            })
        },
    ),
    whole(
        "python-subprocess-list",
        Interpreter,
        &["python3"],
        |s, _| {
            let text = literal(&s.print())?;
            let code = format!("import subprocess as p; p.call([\"bash\", \"-c\", {text}])");
            Some(Script::command(&["python3", "-c", &code]))
        },
    ),
    whole("python-popen", Interpreter, &["python3"], |s, _| {
        python(s, |t| format!("import os; print(os.popen({t}).read())"))
    }),
    whole("python-exec-program", Interpreter, &["python3"], |s, _| {
        let text = literal(&s.print())?;
        let code = format!("import os; os.execvp(\"bash\", [\"bash\", \"-c\", {text}])");
        Some(Script::command(&["python3", "-c", &code]))
    }),
    whole(
        "python-named-by-parts",
        Interpreter,
        &["python3"],
        |s, _| {
            python(s, |t| {
                format!("getattr(__import__(\"o\"+\"s\"), \"sys\"+\"tem\")({t})")
            })
        },
    ),
    whole("python-from-hex", Interpreter, &["python3"], |s, _| {
        let text = hex(&for_sh(s));
        let code = format!("import os; os.system(bytes.fromhex(\"{text}\").decode())");
        Some(Script::command(&["python3", "-c", &code]))
    }),
    whole("python-evaluated", Interpreter, &["python3"], |s, _| {
        let text = hex(&format!("import os; os.system({})", literal(&for_sh(s))?));
        Some(Script::command(&[
            "python3",
            "-c",
            &format!("exec(bytes.fromhex(\"{text}\"))"),
        ]))
    }),
    whole(
        "python-with-joined-options",
        Interpreter,
        &["python3"],
        |s, _| {
            let text = literal(&for_sh(s))?;
            Some(Script::command(&[
                "python3",
                "-Ic",
                &format!("import os; os.system({text})"),
            ]))
        },
    ),
    whole("python-here-document", Interpreter, &["python3"], |s, n| {
        let text = literal(&for_sh(s))?;
        Some(Script::Raw(format!(
            "python3 <<'{n}'\nimport os\nos.system({text})\n{n}\n"
        )))
    }),
    whole(
        "python-dash-here-document",
        Interpreter,
        &["python3"],
        |s, n| {
            let text = literal(&for_sh(s))?;
            Some(Script::Raw(format!(
                "python3 - <<'{n}'\nimport os\nos.system({text})\n{n}\n"
            )))
        },
    ),
    whole("python-piped", Interpreter, &["python3"], |s, _| {
        let code = format!("import os; os.system({})", literal(&for_sh(s))?);
        Some(Script::Pipe(vec![
            Script::command(&["printf", "%s\\n", &code]),
            Script::command(&["python3"]),
        ]))
    }),
    whole("python-here-string", Interpreter, &["python3"], |s, _| {
        let code = format!("import os; os.system({})", literal(&for_sh(s))?);
        Some(Script::Raw(format!("python3 <<< {}", single_quoted(&code))))
    }),
    whole(
        "python-by-minor-version-path",
        Interpreter,
        &["python3"],
        |s, _| {
            let text = literal(&for_sh(s))?;
            let code = single_quoted(&format!("import os; os.system({text})"));
            Some(Script::Raw(format!(
                "$(readlink -f \"$(command -v python3)\") -c {code}"
            )))
        },
    ),
    whole(
        "python-through-env",
        Interpreter,
        &["python3", "env"],
        |s, _| {
            let text = literal(&for_sh(s))?;
            Some(Script::command(&[
                "env",
                "python3",
                "-c",
                &format!("import os; os.system({text})"),
            ]))
        },
    ),
    whole("python-script-file", Interpreter, &["python3"], |s, n| {
        let code = single_quoted(&format!("import os; os.system({})", literal(&for_sh(s))?));
        Some(Script::Raw(format!(
            "printf '%s\\n' {code} > /tmp/{n}.py; python3 /tmp/{n}.py"
        )))
    }),
    whole(
        "python-module-on-a-path",
        Interpreter,
        &["python3"],
        |s, n| {
            let code = single_quoted(&format!("import os; os.system({})", literal(&for_sh(s))?));
            Some(Script::Raw(format!(
                "printf '%s\\n' {code} > /tmp/{n}.py; PYTHONPATH=/tmp python3 -m {n}"
            )))
        },
    ),
    whole("python-timer-module", Interpreter, &["python3"], |s, _| {
        let text = literal(&for_sh(s))?;
        Some(Script::command(&[
            "python3",
            "-m",
            "timeit",
            "-n1",
            "-r1",
            &format!("import os; os.system({text})"),
        ]))
    }),
    whole("perl-system", Interpreter, &["perl"], |s, _| {
        perl(s, |t| format!("system({t})"))
    }),
    whole("perl-backticks", Interpreter, &["perl"], |s, _| {
        perl(s, |t| format!("$x = {t}; `$x`"))
    })
    .silent(),
    whole("perl-exec", Interpreter, &["perl"], |s, _| {
        perl(s, |t| format!("exec {t}"))
    }),
    whole("perl-capital-e", Interpreter, &["perl"], |s, _| {
        let text = perl_literal(&for_sh(s))?;
        Some(Script::command(&["perl", "-E", &format!("system {text}")]))
    }),
    whole("perl-joined-options", Interpreter, &["perl"], |s, _| {
        let text = perl_literal(&for_sh(s))?;
        Some(Script::command(&["perl", "-we", &format!("system {text}")]))
    }),
    whole("perl-pipe-open", Interpreter, &["perl"], |s, _| {
        perl(s, |t| format!("open my $f, \"-|\", {t}; print <$f>"))
    }),
    whole("perl-from-hex", Interpreter, &["perl"], |s, _| {
        let text = hex(&for_sh(s));
        Some(Script::command(&[
            "perl",
            "-e",
            &format!("system pack \"H*\", \"{text}\""),
        ]))
    }),
    whole("perl-piped", Interpreter, &["perl"], |s, _| {
        let code = format!("system {};", perl_literal(&for_sh(s))?);
        Some(Script::Pipe(vec![
            Script::command(&["printf", "%s\\n", &code]),
            Script::command(&["perl"]),
        ]))
    }),
    whole("perl-module-option", Interpreter, &["perl"], |s, _| {
        let text = perl_literal(&for_sh(s))?;
        Some(Script::command(&[
            "perl",
            "-MPOSIX",
            "-e",
            &format!("system {text}"),
        ]))
    }),
    whole("perl-begin-block", Interpreter, &["perl"], |s, _| {
        let text = perl_literal(&for_sh(s))?;
        Some(Script::command(&[
            "perl",
            "-ce",
            &format!("BEGIN {{ system {text} }}"),
        ]))
    }),
    whole("awk-system", Interpreter, &["awk"], |s, _| {
        awk(s, |t| format!("BEGIN{{system({t})}}"))
    }),
    whole("awk-read-from-a-command", Interpreter, &["awk"], |s, _| {
        awk(s, |t| format!("BEGIN{{{t} | getline}}"))
    })
    .silent(),
    whole("awk-print-to-a-command", Interpreter, &["awk"], |s, _| {
        awk(s, |t| format!("BEGIN{{print \"\" | {t}}}"))
    }),
    whole("awk-script-file", Interpreter, &["awk"], |s, n| {
        let code = single_quoted(&format!("BEGIN{{system({})}}", literal(&for_sh(s))?));
        Some(Script::Raw(format!(
            "printf '%s\\n' {code} > /tmp/{n}; awk -f /tmp/{n}"
        )))
    }),
    whole("awk-from-input", Interpreter, &["awk"], |s, _| {
        let text = one_line(s)?;
        Some(Script::Pipe(vec![
            Script::command(&["printf", "%s\\n", &text]),
            Script::command(&["awk", "{system($0)}"]),
        ]))
    }),
    whole("sed-execute-flag", Interpreter, &["sed"], |s, _| {
        let text = one_line(s)?;
        if text.contains(['|', '\\', '&']) {
            return None;
        }
        Some(Script::Pipe(vec![
            Script::command(&["echo", "x"]),
            Script::command(&["sed", &format!("s|x|{text}|e")]),
        ]))
    }),
    whole("sed-execute-command", Interpreter, &["sed"], |s, _| {
        let text = one_line(s)?;
        if text.contains('\\') {
            return None;
        }
        Some(Script::command(&[
            "sed",
            "-n",
            &format!("1e {text}"),
            "/etc/hostname",
        ]))
    }),
    whole("sed-execute-input", Interpreter, &["sed"], |s, _| {
        let text = one_line(s)?;
        Some(Script::Pipe(vec![
            Script::command(&["printf", "%s\\n", &text]),
            Script::command(&["sed", "e"]),
        ]))
    }),
    whole("m4-syscmd", Interpreter, &["m4"], |s, _| {
        let text = one_line(s)?;
        if text.contains(['[', ']']) {
            return None;
        }
        let code = single_quoted(&format!("changequote([,])syscmd([{text}])"));
        Some(Script::Raw(format!("m4 <<< {code}")))
    }),
    whole("ruby-system", Interpreter, &["ruby"], |s, _| {
        Some(Script::command(&[
            "ruby",
            "-e",
            &format!("system [\"{}\"].pack(\"H*\")", hex(&for_sh(s))),
        ]))
    }),
    whole("node-exec", Interpreter, &["node"], |s, _| {
        let text = literal(&for_sh(s))?;
        let code = format!("require(\"child_process\").execSync({text})");
        Some(Script::command(&["node", "-e", &code]))
    })
    .silent(),
    whole("node-print-option", Interpreter, &["node"], |s, _| {
        let text = literal(&for_sh(s))?;
        let code = format!("require(\"child_process\").execSync({text})+\"\"");
        Some(Script::command(&["node", "-p", &code]))
    }),
    whole("node-spawn-list", Interpreter, &["node"], |s, _| {
        let text = literal(&s.print())?;
        let code = format!("require(\"child_process\").spawnSync(\"bash\",[\"-c\",{text}])");
        Some(Script::command(&["node", "--eval", &code]))
    })
    .silent(),
    whole("node-piped", Interpreter, &["node"], |s, _| {
        let text = literal(&for_sh(s))?;
        let code = format!("require(\"child_process\").execSync({text})");
        Some(Script::Pipe(vec![
            Script::command(&["printf", "%s\\n", &code]),
            Script::command(&["node"]),
        ]))
    })
    .silent(),
    whole("lua-execute", Interpreter, &["lua"], |s, _| {
        let text = literal(&for_sh(s))?;
        Some(Script::command(&[
            "lua",
            "-e",
            &format!("os.execute({text})"),
        ]))
    }),
    whole("git-alias", Tool, &["git"], |s, _| {
        let alias = format!("alias.zz=!{}", for_sh(s));
        Some(Script::command(&["git", "-c", &alias, "zz"]))
    }),
    whole("git-editor", Tool, &["git"], |s, n| {
        let text = format!("core.editor={} #", for_sh(s));
        if text.contains('\n') {
            return None;
        }
        Some(Script::command(&[
            "git",
            "-c",
            &text,
            "config",
            "-f",
            &format!("/tmp/{n}"),
            "--edit",
        ]))
    }),
    whole(
        "git-configuration-by-environment",
        Tool,
        &["git"],
        |s, _| {
            let text = single_quoted(&format!("!{}", for_sh(s)));
            Some(Script::Raw(format!(
                "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.zz GIT_CONFIG_VALUE_0={text} git zz"
            )))
        },
    ),
    whole("git-hook", Tool, &["git"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "git init -q /tmp/{n}; printf '%s\\n' '#!/bin/bash' {text} > /tmp/{n}/.git/hooks/pre-commit; chmod +x /tmp/{n}/.git/hooks/pre-commit; git -C /tmp/{n} -c user.name=u -c user.email=u@e commit -q --allow-empty -m x"
        )))
    }),
    whole("git-hooks-path", Tool, &["git"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "mkdir /tmp/{n}; printf '%s\\n' '#!/bin/bash' {text} > /tmp/{n}/pre-commit; chmod +x /tmp/{n}/pre-commit; git init -q /tmp/{n}r; git -C /tmp/{n}r -c user.name=u -c user.email=u@e -c core.hooksPath=/tmp/{n} commit -q --allow-empty -m x"
        )))
    }),
    whole("git-external-diff", Tool, &["git"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "printf '%s\\n' '#!/bin/bash' {text} > /tmp/{n}; chmod +x /tmp/{n}; echo a > /tmp/{n}a; echo b > /tmp/{n}b; GIT_EXTERNAL_DIFF=/tmp/{n} git diff --ext-diff --no-index /tmp/{n}a /tmp/{n}b; :"
        )))
    }),
    whole("make-from-input", Tool, &["make"], |s, _| {
        let text = one_line(s)?.replace('$', "$$");
        if text.contains('#') {
            return None;
        }
        Some(Script::Pipe(vec![
            Script::command(&["printf", "%s\\n", &format!("x:;@{text}")]),
            Script::command(&["make", "-sf", "-"]),
        ]))
    }),
    whole("make-evaluated", Tool, &["make"], |s, _| {
        let text = one_line(s)?.replace('$', "$$");
        if text.contains('#') {
            return None;
        }
        Some(Script::command(&[
            "make",
            "-s",
            &format!("--eval=x:;@{text}"),
            "x",
        ]))
    }),
    whole("make-shell-function", Tool, &["make"], |s, _| {
        let text = one_line(s)?.replace('$', "$$");
        if text.contains(['#', '(', ')', ',']) {
            return None;
        }
        Some(Script::command(&[
            "make",
            "-s",
            &format!("--eval=$(shell {text})"),
            "--eval=x:;@:",
            "x",
        ]))
    })
    .silent(),
    whole("tar-checkpoint", Tool, &["tar"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "printf '%s\\n' {text} > /tmp/{n}; tar cf /dev/null /tmp/{n} --checkpoint=1 --checkpoint-action=exec='bash /tmp/{n}' 2>/dev/null"
        )))
    }),
    whole("tar-to-command", Tool, &["tar"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "printf '%s\\n' {text} > /tmp/{n}; tar cf /tmp/{n}.tar -C /tmp {n}; tar xf /tmp/{n}.tar --to-command='bash'"
        )))
    }),
    whole("tar-compress-program", Tool, &["tar"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "printf '%s\\n' '#!/bin/bash' {text} > /tmp/{n}; chmod +x /tmp/{n}; tar -I /tmp/{n} -cf /tmp/{n}.x /etc/hostname 2>/dev/null"
        )))
    })
    .silent(),
    whole("sort-compress-program", Tool, &["sort", "seq"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "printf '%s\\n' '#!/bin/bash' {text} cat > /tmp/{n}; chmod +x /tmp/{n}; seq 400 | sort -S 1b --compress-program=/tmp/{n} > /dev/null 2>&1; :"
        )))
    })
    .silent(),
    whole("split-filter", Tool, &["split"], |s, _| {
        let text = for_sh(s);
        Some(Script::Pipe(vec![
            Script::command(&["echo", "x"]),
            Script::command(&["split", &format!("--filter={text}")]),
        ]))
    }),
    whole("rsync-remote-shell", Tool, &["rsync"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "printf '%s\\n' {text} > /tmp/{n}; rsync -e 'bash /tmp/{n}' x:y /tmp/{n}d 2>/dev/null"
        )))
    })
    .silent(),
    whole("zip-test-command", Tool, &["zip"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "printf '%s\\n' {text} > /tmp/{n}; zip -q /tmp/{n}.zip /etc/hostname -T -TT 'bash /tmp/{n}; true' >/dev/null"
        )))
    })
    .silent(),
    whole("sqlite-shell", Tool, &["sqlite3"], |s, _| {
        let text = one_line(s)?;
        // It takes the words apart by its own rules and puts them between double quotes.
        if text.contains(['$', '`', '"', '\\']) {
            return None;
        }
        Some(Script::command(&[
            "sqlite3",
            ":memory:",
            &format!(".shell {text}"),
        ]))
    }),
    whole("vim-command", Tool, &["vim"], |s, _| {
        let text = one_line(s)?;
        Some(Script::command(&[
            "vim",
            "-es",
            "-c",
            &format!("!{text}"),
            "-c",
            "qa!",
        ]))
    }),
    whole("ed-command", Tool, &["ed"], |s, _| {
        let text = one_line(s)?;
        Some(Script::Raw(format!(
            "printf '%s\\n' {} q | ed -s",
            single_quoted(&format!("!{text}"))
        )))
    }),
    whole(
        "openssl-config-free-pipe",
        Tool,
        &["openssl", "bash"],
        |s, _| {
            let text = super::encodings::base64(s.print().as_bytes());
            Some(Script::Pipe(vec![
                Script::command(&["echo", &text]),
                Script::command(&["openssl", "base64", "-d", "-A"]),
                Script::command(&["bash"]),
            ]))
        },
    ),
    whole("ssh-proxy-command", Tool, &["ssh"], |s, _| {
        let text = one_line(s)?;
        if text.contains(['%', '"']) {
            return None;
        }
        Some(Script::Raw(format!(
            "ssh -o ProxyCommand={} zz 2>/dev/null; :",
            single_quoted(&text)
        )))
    })
    .silent(),
    whole("run-parts", Tool, &["run-parts"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "mkdir /tmp/{n}; printf '%s\\n' '#!/bin/bash' {text} > /tmp/{n}/a; chmod +x /tmp/{n}/a; run-parts /tmp/{n}"
        )))
    }),
    whole("gcc-wrapper", Tool, &["gcc"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "printf '%s\\n' '#!/bin/bash' {text} > /tmp/{n}; chmod +x /tmp/{n}; echo | gcc -wrapper /tmp/{n} -E - 2>/dev/null; :"
        )))
    }),
];
