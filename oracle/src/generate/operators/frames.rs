//! Text around a command in the same shell: control structures, side effects
//! of expansions, definitions, evaluation.

use crate::generate::operator::{Apply, Class, Operator};
use crate::generate::script::{Script, Simple, single_quoted};

use Class::{Control, Definition, Eval, SideEffect};

const fn whole(
    name: &'static str,
    class: Class,
    rewrite: fn(&Script, &str) -> Option<Script>,
) -> Operator {
    Operator::of(name, class, &[], Apply::Whole(rewrite))
}

const fn command(
    name: &'static str,
    class: Class,
    rewrite: fn(&Simple, &str) -> Option<Script>,
) -> Operator {
    Operator::of(name, class, &[], Apply::Command(rewrite))
}

fn around(script: &Script, head: &str, tail: &str) -> Option<Script> {
    Some(script.clone().framed(head, tail))
}

/// As one command, so that an operator beside it takes all of it.
fn joined(script: &Script, head: &str, tail: &str) -> Option<Script> {
    Some(match script {
        Script::Simple(_) => script.clone().framed(head, tail),
        Script::Raw(_) | Script::Seq(_) | Script::Pipe(_) | Script::Framed { .. } => {
            script.clone().framed("{ ", "; }").framed(head, tail)
        }
    })
}

/// Inside a substitution; backticks would need a second level of quoting. Bash 5.2 does not know
/// the group behind `time` where that comes first in a substitution, but on a line of its own.
fn within(script: &Script, head: &str, tail: &str) -> Option<Script> {
    let text = script.print();
    let is_timed = text.starts_with("time {") || text.starts_with("time (");
    let head = if is_timed {
        format!("{head}\n")
    } else {
        head.to_owned()
    };
    Some(script.clone().framed(head, "\n").framed("", tail))
}

pub(super) const TABLE: &[Operator] = &[
    whole("after-true", Control, |s, _| joined(s, "true && ", "")),
    whole("after-false", Control, |s, _| joined(s, "false || ", "")),
    whole("after-another", Control, |s, _| around(s, "echo ok; ", "")),
    whole("after-a-line", Control, |s, _| around(s, "echo ok\n", "")),
    whole("before-another", Control, |s, _| around(s, "", "; echo ok")),
    whole("in-the-background", Control, |s, _| {
        joined(s, "", " & wait")
    }),
    whole("subshell", Control, |s, _| around(s, "(", ")")),
    whole("subshell-twice", Control, |s, _| around(s, "( (", ") )")),
    whole("group", Control, |s, _| around(s, "{ ", "; }")),
    whole("negated", Control, |s, _| joined(s, "! ", "")),
    whole("timed", Control, |s, _| joined(s, "time ", "")),
    whole("into-a-pipe", Control, |s, _| joined(s, "", " | cat")),
    whole("behind-a-pipe", Control, |s, _| joined(s, "echo | ", "")),
    whole("into-a-pipe-with-errors", Control, |s, _| {
        joined(s, "", " |& cat")
    }),
    whole("if-then", Control, |s, _| {
        around(s, "if true; then ", "; fi")
    }),
    whole("if-else", Control, |s, _| {
        around(s, "if false; then :; else ", "; fi")
    }),
    whole("if-condition", Control, |s, _| {
        around(s, "if ", "; then :; fi")
    }),
    whole("while-once", Control, |s, _| {
        around(s, "while :; do ", "; break; done")
    }),
    whole("while-condition", Control, |s, _| {
        around(s, "while ", "; false; do :; done")
    }),
    whole("until-once", Control, |s, _| {
        around(s, "until false; do ", "; break; done")
    }),
    whole("for-once", Control, |s, n| {
        around(s, &format!("for {n} in 1; do "), "; done")
    }),
    whole("for-counting", Control, |s, n| {
        around(s, &format!("for (({n}=0;{n}<1;{n}++)); do "), "; done")
    }),
    whole("case-any", Control, |s, _| {
        around(s, "case x in *) ", ";; esac")
    }),
    whole("case-falling-through", Control, |s, _| {
        around(s, "case x in x) :;& y) ", ";; esac")
    }),
    whole("select-once", Control, |s, n| {
        around(s, &format!("select {n} in 1; do "), "; break; done <<< 1")
    }),
    whole("coprocess", Control, |s, _| {
        joined(s, "coproc { ", "; }; wait")
    })
    .silent(),
    command("word-from-a-loop", Control, |c, n| {
        let (first, rest) = c.words.split_first()?;
        let mut looped = c.clone();
        looped.words = std::iter::once(crate::generate::script::Word::spelled(
            first.value(),
            format!("${n}"),
        ))
        .chain(rest.iter().cloned())
        .collect();
        Some(
            Script::Simple(looped)
                .framed(format!("for {n} in {}; do ", first.spelling()), "; done"),
        )
    }),
    whole("in-an-echo", SideEffect, |s, _| {
        within(s, "echo \"$(", ")\"")
    }),
    whole("in-a-null-command", SideEffect, |s, _| {
        within(s, ": $(", ")")
    })
    .silent(),
    whole("in-an-assignment", SideEffect, |s, n| {
        within(s, &format!("{n}=$("), ")")
    })
    .silent(),
    whole("in-a-process-substitution", SideEffect, |s, _| {
        within(s, "cat <(", ")")
    }),
    whole("in-an-output-substitution", SideEffect, |s, _| {
        within(s, "echo | tee >(", ") | cat; wait")
    }),
    whole("in-a-default", SideEffect, |s, n| {
        within(s, &format!(": ${{{n}:-$("), ")}")
    })
    .silent(),
    whole("in-an-assigning-default", SideEffect, |s, n| {
        within(s, &format!(": \"${{{n}:=$("), ")}\"")
    })
    .silent(),
    whole("in-a-test", SideEffect, |s, _| {
        within(s, "[[ -z $(", ") ]]")
    })
    .silent(),
    whole("in-arithmetic", SideEffect, |s, _| {
        within(s, "echo $((0$(", " echo 1)))")
    })
    .silent(),
    whole("in-a-subscript", SideEffect, |s, n| {
        within(s, &format!("{n}[$("), " echo 0)]=1")
    })
    .silent(),
    whole("in-a-here-document", SideEffect, |s, n| {
        within(s, &format!("cat <<{n}\n$("), &format!(")\n{n}\n"))
    }),
    whole("in-a-here-string", SideEffect, |s, _| {
        within(s, "cat <<< \"$(", ")\"")
    }),
    whole("in-a-redirection-target", SideEffect, |s, n| {
        within(s, "echo > \"$(", &format!("echo /tmp/{n})\""))
    })
    .silent(),
    whole("in-a-case-word", SideEffect, |s, _| {
        within(s, "case $(", ") in *) :;; esac")
    })
    .silent(),
    whole("in-a-for-list", SideEffect, |s, n| {
        within(s, &format!("for {n} in $("), "); do :; done")
    })
    .silent(),
    whole("in-a-return-status", SideEffect, |s, n| {
        within(
            s,
            &format!("{n}() {{ return $("),
            &format!(" echo 0); }}; {n}"),
        )
    })
    .silent(),
    whole("in-a-trace-prompt", SideEffect, |s, n| {
        let text = single_quoted(&format!("$({})", s.print_as_one()));
        Some(Script::Raw(format!(
            "( PS4={text}; set -x; {n}=1 ) 2>/dev/null"
        )))
    })
    .silent(),
    whole("function", Definition, |s, n| {
        around(s, &format!("{n}() {{ "), &format!("; }}; {n}"))
    }),
    whole("function-by-keyword", Definition, |s, n| {
        around(s, &format!("function {n} {{ "), &format!("; }}; {n}"))
    }),
    whole("function-as-subshell", Definition, |s, n| {
        around(s, &format!("{n}() ( "), &format!("\n); {n}"))
    }),
    whole("function-named-like-a-program", Definition, |s, _| {
        around(s, "ls() { ", "; }; ls")
    }),
    whole("function-in-a-function", Definition, |s, n| {
        around(
            s,
            &format!("{n}a() {{ {n}b() {{ "),
            &format!("; }}; {n}b; }}; {n}a"),
        )
    }),
    whole("function-exported", Definition, |s, n| {
        around(
            s,
            &format!("{n}() {{ "),
            &format!("; }}; export -f {n}; bash -c {n}"),
        )
    }),
    whole("trap-at-exit", Definition, |s, _| {
        Some(Script::Raw(format!(
            "( trap {} EXIT )",
            single_quoted(&s.print())
        )))
    }),
    whole("trap-on-a-signal", Definition, |s, _| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "( trap {text} USR1; kill -USR1 $BASHPID; : )"
        )))
    }),
    whole("trap-on-an-error", Definition, |s, _| {
        Some(Script::Raw(format!(
            "( trap {} ERR; false )",
            single_quoted(&s.print())
        )))
    }),
    whole("trap-before-a-command", Definition, |s, _| {
        let text = single_quoted(&format!("trap - DEBUG; {}", s.print()));
        Some(Script::Raw(format!("( trap {text} DEBUG; : )")))
    }),
    whole("command-not-found", Definition, |s, n| {
        around(s, "command_not_found_handle() { ", &format!("; }}; {n}x"))
    }),
    whole("callback-of-mapfile", Definition, |s, n| {
        around(
            s,
            &format!("{n}() {{ "),
            &format!("; }}; mapfile -C {n} -c 1 {n}a <<< x"),
        )
    }),
    command("program-as-an-alias", Definition, |c, n| {
        let (first, rest) = c.words.split_first()?;
        let mut called = c.clone();
        called.words = std::iter::once(crate::generate::script::Word::spelled(
            first.value(),
            n.to_owned(),
        ))
        .chain(rest.iter().cloned())
        .collect();
        let head = format!(
            "shopt -s expand_aliases\nalias {n}={}\n",
            single_quoted(first.spelling())
        );
        Some(Script::Simple(called).framed(head, "\n"))
    })
    .outside_pipes(),
    whole("all-as-an-alias", Definition, |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "shopt -s expand_aliases\nalias {n}={text}\n{n}\n"
        )))
    }),
    whole("eval-quoted", Eval, |s, _| {
        Some(Script::command(&["eval", &s.print()]))
    }),
    whole("eval-twice", Eval, |s, _| {
        Some(Script::command(&[
            "eval",
            "eval",
            &single_quoted(&s.print()),
        ]))
    }),
    command("eval-words", Eval, |c, _| {
        let mut c = c.clone();
        if c.words.is_empty() || !c.words.iter().all(crate::generate::script::Word::is_plain) {
            return None;
        }
        c.words
            .insert(0, crate::generate::script::Word::plain("eval"));
        Some(c.into())
    }),
    whole("eval-a-variable", Eval, |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!("{n}={text}; eval \"${n}\"")))
    }),
    whole("eval-an-output", Eval, |s, _| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!("eval \"$(printf %s {text})\"")))
    }),
    whole("eval-behind-builtin", Eval, |s, _| {
        Some(Script::command(&["builtin", "eval", &s.print()]))
    }),
    whole("eval-behind-command", Eval, |s, _| {
        Some(Script::command(&["command", "eval", &s.print()]))
    }),
    whole("eval-in-two-parts", Eval, |s, n| {
        let text = s.print();
        let half = text.len().checked_div(2)?;
        let (a, b) = text.split_at_checked(half)?;
        let (a, b) = (single_quoted(a), single_quoted(b));
        Some(Script::Raw(format!("{n}={a} {n}b={b}; eval \"${n}${n}b\"")))
    }),
    whole("source-an-output", Eval, |s, _| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!("source <(printf '%s\\n' {text})")))
    }),
    whole("dot-an-output", Eval, |s, _| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(". <(printf '%s\\n' {text})")))
    }),
    whole("dot-the-input", Eval, |s, _| {
        Some(Script::Raw(format!(
            ". /dev/stdin <<< {}",
            single_quoted(&s.print())
        )))
    }),
    whole("source-a-descriptor", Eval, |s, _| {
        Some(Script::Raw(format!(
            "source /proc/self/fd/0 <<< {}",
            single_quoted(&s.print())
        )))
    }),
];
