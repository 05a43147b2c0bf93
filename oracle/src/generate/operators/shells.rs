//! The text goes to another shell: as an argument, or as its input.

use crate::generate::operator::{Apply, Class, Operator};
use crate::generate::script::{Script, Simple, Word, single_quoted};

use Class::{ShellArgument, ShellInput};

const fn whole(
    name: &'static str,
    class: Class,
    needs: &'static [&'static str],
    rewrite: fn(&Script, &str) -> Option<Script>,
) -> Operator {
    Operator::of(name, class, needs, Apply::Whole(rewrite))
}

const fn command(
    name: &'static str,
    class: Class,
    rewrite: fn(&Simple, &str) -> Option<Script>,
) -> Operator {
    Operator::of(name, class, &[], Apply::Command(rewrite))
}

fn argument(script: &Script, words: &[&str]) -> Option<Script> {
    let mut simple = Simple::of(words);
    simple.words.push(Word::plain(&script.print()));
    Some(simple.into())
}

fn with_words(simple: &Simple, front: &[&str]) -> Option<Script> {
    let mut out = simple.clone();
    out.words = front
        .iter()
        .map(|w| Word::plain(w))
        .chain(simple.words.iter().cloned())
        .collect();
    Some(out.into())
}

/// Is it text a shell without bash's extensions reads alike?
fn portable(script: &Script) -> bool {
    let text = script.print();
    ![
        "<<<",
        "<(",
        ">(",
        "$'",
        "[[",
        "((",
        "|&",
        "${!",
        "declare",
        "mapfile",
        "function ",
        "=(",
        "source ",
    ]
    .iter()
    .any(|bashism| text.contains(bashism))
}

fn input(script: &Script, front: &str) -> Option<Script> {
    Some(Script::Raw(format!(
        "{front} <<< {}",
        single_quoted(&script.print())
    )))
}

fn document(script: &Script, front: &str, end: &str) -> Option<Script> {
    Some(
        script
            .clone()
            .framed(format!("{front} <<'{end}'\n"), "\n")
            .framed("", format!("{end}\n")),
    )
}

pub(super) const TABLE: &[Operator] = &[
    whole("bash-c", ShellArgument, &["bash"], |s, _| {
        argument(s, &["bash", "-c"])
    }),
    whole("bash-c-by-path", ShellArgument, &["bash"], |s, _| {
        argument(s, &["/bin/bash", "-c"])
    }),
    whole("bash-joined-options", ShellArgument, &["bash"], |s, _| {
        argument(s, &["bash", "-ec"])
    }),
    whole(
        "bash-other-options-first",
        ShellArgument,
        &["bash"],
        |s, _| argument(s, &["bash", "--norc", "-c"]),
    ),
    whole(
        "bash-option-with-value-first",
        ShellArgument,
        &["bash"],
        |s, _| argument(s, &["bash", "-o", "pipefail", "-c"]),
    ),
    whole("bash-plus-option", ShellArgument, &["bash"], |s, _| {
        argument(s, &["bash", "+x", "-c"])
    }),
    whole("bash-login-c", ShellArgument, &["bash"], |s, _| {
        argument(s, &["bash", "-lc"])
    }),
    whole("bash-posix-c", ShellArgument, &["bash"], |s, _| {
        if !portable(s) {
            return None;
        }
        argument(s, &["bash", "--posix", "-c"])
    }),
    whole("sh-c", ShellArgument, &["sh"], |s, _| {
        if !portable(s) {
            return None;
        }
        argument(s, &["sh", "-c"])
    }),
    whole("dash-c", ShellArgument, &["dash"], |s, _| {
        if !portable(s) {
            return None;
        }
        argument(s, &["dash", "-c"])
    }),
    whole("exec-bash-c", ShellArgument, &["bash"], |s, _| {
        Some(argument(s, &["exec", "bash", "-c"])?.framed("( ", " )"))
    }),
    whole(
        "shell-from-the-environment",
        ShellArgument,
        &["bash"],
        |s, _| {
            Some(Script::Raw(format!(
                "SHELL=/bin/bash; $SHELL -c {}",
                single_quoted(&s.print())
            )))
        },
    ),
    whole("shell-by-its-own-name", ShellArgument, &["bash"], |s, _| {
        Some(Script::Raw(format!(
            "$BASH -c {}",
            single_quoted(&s.print())
        )))
    }),
    whole("shell-by-its-process", ShellArgument, &["bash"], |s, _| {
        Some(Script::Raw(format!(
            "/proc/$$/exe -c {}",
            single_quoted(&s.print())
        )))
    }),
    whole("text-as-a-parameter", ShellArgument, &["bash"], |s, _| {
        Some(Script::command(&[
            "bash",
            "-c",
            "eval \"$1\"",
            "_",
            &s.print(),
        ]))
    }),
    whole(
        "text-in-an-environment-variable",
        ShellArgument,
        &["bash"],
        |s, n| {
            Some(Script::Raw(format!(
                "{n}={} bash -c 'eval \"${n}\"'",
                single_quoted(&s.print())
            )))
        },
    ),
    command("words-as-parameters", ShellArgument, |c, _| {
        with_words(c, &["bash", "-c", "\"$@\"", "_"])
    }),
    command("words-as-parameters-shifted", ShellArgument, |c, _| {
        with_words(c, &["bash", "-c", "shift; \"$@\"", "_", "x"])
    }),
    command("arguments-as-parameters", ShellArgument, |c, _| {
        let (program, rest) = c.words.split_first()?;
        let mut out = c.clone();
        out.words = ["bash", "-c"]
            .iter()
            .map(|w| Word::plain(w))
            .chain([
                Word::plain(&format!("{} \"$@\"", program.value())),
                Word::plain("_"),
            ])
            .chain(rest.iter().cloned())
            .collect();
        program.is_plain().then(|| out.into())
    }),
    whole("startup-file-variable", ShellArgument, &["bash"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "printf '%s\\n' {text} > /tmp/{n}; BASH_ENV=/tmp/{n} bash -c :"
        )))
    }),
    whole("startup-file-option", ShellArgument, &["bash"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "printf '%s\\n' {text} > /tmp/{n}; bash --rcfile /tmp/{n} -i -c : 2>/dev/null"
        )))
    }),
    whole("shell-inside-a-shell", ShellArgument, &["bash"], |s, _| {
        let inner = argument(s, &["bash", "-c"])?.print();
        Some(Script::command(&["bash", "-c", &inner]))
    }),
    whole("piped-into-bash", ShellInput, &["bash"], |s, _| {
        let text = s.print();
        Some(Script::Pipe(vec![
            Script::command(&["printf", "%s\\n", &text]),
            Script::command(&["bash"]),
        ]))
    }),
    whole("echoed-into-bash", ShellInput, &["bash"], |s, _| {
        let text = s.print();
        if text.contains('\\') {
            return None;
        }
        Some(Script::Pipe(vec![
            Script::command(&["echo", &text]),
            Script::command(&["bash"]),
        ]))
    }),
    whole("echoed-into-sh", ShellInput, &["sh"], |s, _| {
        let text = s.print();
        if text.contains('\\') || !portable(s) {
            return None;
        }
        Some(Script::Pipe(vec![
            Script::command(&["echo", &text]),
            Script::command(&["sh"]),
        ]))
    }),
    whole(
        "through-cat-into-bash",
        ShellInput,
        &["bash", "cat"],
        |s, _| {
            let text = s.print();
            Some(Script::Pipe(vec![
                Script::command(&["printf", "%s\\n", &text]),
                Script::command(&["cat"]),
                Script::command(&["bash"]),
            ]))
        },
    ),
    whole(
        "through-tee-into-bash",
        ShellInput,
        &["bash", "tee"],
        |s, n| {
            let text = s.print();
            Some(Script::Pipe(vec![
                Script::command(&["printf", "%s\\n", &text]),
                Script::command(&["tee", &format!("/tmp/{n}")]),
                Script::command(&["bash"]),
            ]))
        },
    ),
    whole("piped-into-bash-s", ShellInput, &["bash"], |s, _| {
        let text = s.print();
        Some(Script::Pipe(vec![
            Script::command(&["printf", "%s\\n", &text]),
            Script::command(&["bash", "-s", "--", "x"]),
        ]))
    }),
    whole(
        "piped-into-a-path-of-input",
        ShellInput,
        &["bash"],
        |s, _| {
            let text = s.print();
            Some(Script::Pipe(vec![
                Script::command(&["printf", "%s\\n", &text]),
                Script::command(&["bash", "/dev/stdin"]),
            ]))
        },
    ),
    whole(
        "piped-into-env-bash",
        ShellInput,
        &["bash", "env"],
        |s, _| {
            let text = s.print();
            Some(Script::Pipe(vec![
                Script::command(&["printf", "%s\\n", &text]),
                Script::command(&["env", "bash"]),
            ]))
        },
    ),
    whole("piped-into-a-loop", ShellInput, &["bash"], |s, n| {
        let text = s.print();
        if text.contains('\n') {
            return None;
        }
        Some(Script::Pipe(vec![
            Script::command(&["printf", "%s\\n", &text]),
            Script::Raw(format!("while IFS= read -r {n}; do eval \"${n}\"; done")),
        ]))
    }),
    whole("here-string-to-bash", ShellInput, &["bash"], |s, _| {
        input(s, "bash")
    }),
    whole("here-string-to-bash-s", ShellInput, &["bash"], |s, _| {
        input(s, "bash -s")
    }),
    whole("here-document-to-bash", ShellInput, &["bash"], |s, n| {
        document(s, "bash", n)
    }),
    whole("here-document-to-sh", ShellInput, &["sh"], |s, n| {
        if !portable(s) {
            return None;
        }
        document(s, "sh", n)
    }),
    whole("here-document-in-front", ShellInput, &["bash"], |s, n| {
        Some(
            s.clone()
                .framed(format!("<<'{n}' bash\n"), "\n")
                .framed("", format!("{n}\n")),
        )
    }),
    whole("here-document-to-a-path", ShellInput, &["bash"], |s, n| {
        document(s, "bash /dev/stdin", n)
    }),
    whole(
        "here-document-through-cat",
        ShellInput,
        &["bash", "cat"],
        |s, n| {
            Some(
                s.clone()
                    .framed(format!("cat <<'{n}' | bash\n"), "\n")
                    .framed("", format!("{n}\n")),
            )
        },
    ),
    whole("output-as-a-script-file", ShellInput, &["bash"], |s, _| {
        Some(Script::Raw(format!(
            "bash <(printf '%s\\n' {})",
            single_quoted(&s.print())
        )))
    }),
    whole("output-as-input", ShellInput, &["bash"], |s, _| {
        Some(Script::Raw(format!(
            "bash < <(printf '%s\\n' {})",
            single_quoted(&s.print())
        )))
    }),
    whole("through-a-fifo", ShellInput, &["bash", "mkfifo"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "mkfifo /tmp/{n}; printf '%s\\n' {text} > /tmp/{n} & bash /tmp/{n}; wait"
        )))
    }),
    whole("through-a-coprocess", ShellInput, &["bash"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "coproc {n} {{ bash; }}; printf '%s\\nexit\\n' {text} >&\"${{{n}[1]}}\"; wait"
        )))
    })
    .silent(),
];
