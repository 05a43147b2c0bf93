//! Programs that run the rest of their arguments, `xargs` and `find` among them.

use crate::generate::operator::{Apply, Class, Operator};
use crate::generate::script::{Script, Simple, Word, single_quoted};

use Class::{Find, Wrapper, Xargs};

const fn command(
    name: &'static str,
    class: Class,
    needs: &'static [&'static str],
    rewrite: fn(&Simple, &str) -> Option<Script>,
) -> Operator {
    Operator::of(name, class, needs, Apply::Command(rewrite))
}

const fn whole(
    name: &'static str,
    class: Class,
    needs: &'static [&'static str],
    rewrite: fn(&Script, &str) -> Option<Script>,
) -> Operator {
    Operator::of(name, class, needs, Apply::Whole(rewrite))
}

/// What loads every program that needs libraries, where this processor's systems have it.
const LOADER: &str = if cfg!(target_arch = "aarch64") {
    "/lib/ld-linux-aarch64.so.1"
} else {
    "/lib64/ld-linux-x86-64.so.2"
};

/// The shell's own commands cannot be run by another program.
const BUILTINS: &[&str] = &[
    "eval", "exec", "cd", "export", "set", "shift", "source", ".", "builtin", "command", "trap",
    "read", "printf", "echo", "kill", "declare", "unset", "alias",
];

fn is_program(simple: &Simple) -> bool {
    simple
        .words
        .first()
        .is_some_and(|word| !word.value().is_empty() && !BUILTINS.contains(&word.value()))
}

pub(super) fn wrap(simple: &Simple, front: &[&str]) -> Option<Script> {
    if !is_program(simple) {
        return None;
    }
    let mut out = simple.clone();
    out.words = front
        .iter()
        .map(|w| Word::plain(w))
        .chain(simple.words.iter().cloned())
        .collect();
    Some(out.into())
}

/// A shell's command behind a wrapper that takes programs only.
pub(super) fn wrap_text(script: &Script, front: &[&str]) -> Option<Script> {
    let mut simple = Simple::of(front);
    simple.words.push(Word::plain(&script.print()));
    Some(simple.into())
}

/// Program and arguments, if every word is known and not empty.
pub(super) fn parts(simple: &Simple) -> Option<(&Word, &[Word])> {
    let (program, rest) = simple.words.split_first()?;
    let known = simple.words.iter().all(|word| !word.value().is_empty());
    (known && is_program(simple) && simple.after.is_empty() && simple.before.is_empty())
        .then_some((program, rest))
}

/// `find`, or what runs the rest of its words so, with a program to run once, up to the word
/// that ends it.
pub(super) fn found_once(front: &[&str], run: &Simple, end: &str) -> Script {
    let mut words: Vec<Word> = front.iter().map(|word| Word::plain(word)).collect();
    words.extend(run.words.iter().cloned());
    words.push(Word::spelled(";", end.to_owned()));
    let find = Simple {
        words,
        ..Simple::default()
    };
    find.into()
}

fn listed(words: &[Word]) -> Option<String> {
    let plain = |v: &str| {
        v.chars()
            .all(|l| l.is_ascii_alphanumeric() || "/._-".contains(l))
    };
    let values: Option<Vec<&str>> = words
        .iter()
        .map(|w| plain(w.value()).then_some(w.value()))
        .collect();
    values
        .filter(|values| !values.is_empty())
        .map(|values| values.join(" "))
}

/// `find` that finds one directory and runs what follows.
const ONCE: [&str; 5] = ["find", "/tmp", "-maxdepth", "0", "-exec"];

pub(super) const TABLE: &[Operator] = &[
    command("env", Wrapper, &["env"], |c, _| wrap(c, &["env"])),
    command("env-by-path", Wrapper, &["env"], |c, _| {
        wrap(c, &["/usr/bin/env"])
    }),
    command("env-with-variable", Wrapper, &["env"], |c, _| {
        wrap(c, &["env", "A=1"])
    }),
    command("env-without-variable", Wrapper, &["env"], |c, _| {
        wrap(c, &["env", "-u", "ZZ"])
    }),
    command("env-end-of-options", Wrapper, &["env"], |c, _| {
        wrap(c, &["env", "--"])
    }),
    command("env-split-string", Wrapper, &["env"], |c, _| {
        let (program, rest) = parts(c)?;
        let line = listed(std::slice::from_ref(program)).zip(listed(rest))?;
        Some(Script::command(&[
            "env",
            "-S",
            &format!("{} {}", line.0, line.1),
        ]))
    }),
    command("nice", Wrapper, &["nice"], |c, _| wrap(c, &["nice"])),
    command("nice-with-value", Wrapper, &["nice"], |c, _| {
        wrap(c, &["nice", "-n", "5"])
    }),
    command("nice-with-joined-value", Wrapper, &["nice"], |c, _| {
        wrap(c, &["nice", "-5"])
    }),
    command("ionice", Wrapper, &["ionice"], |c, _| {
        wrap(c, &["ionice", "-c3"])
    }),
    command("nohup", Wrapper, &["nohup"], |c, _| wrap(c, &["nohup"])),
    command("timeout", Wrapper, &["timeout"], |c, _| {
        wrap(c, &["timeout", "5"])
    }),
    command("timeout-with-option", Wrapper, &["timeout"], |c, _| {
        wrap(c, &["timeout", "-k", "1", "5"])
    }),
    command("timeout-in-foreground", Wrapper, &["timeout"], |c, _| {
        wrap(c, &["timeout", "--foreground", "5s"])
    }),
    command("setsid-waiting", Wrapper, &["setsid"], |c, _| {
        wrap(c, &["setsid", "-w"])
    }),
    command("stdbuf", Wrapper, &["stdbuf"], |c, _| {
        wrap(c, &["stdbuf", "-oL"])
    }),
    command("flock", Wrapper, &["flock"], |c, _| {
        wrap(c, &["flock", "/tmp"])
    }),
    command("prlimit", Wrapper, &["prlimit"], |c, _| {
        wrap(c, &["prlimit", "--core=0"])
    }),
    command("setarch", Wrapper, &["setarch"], |c, _| {
        wrap(c, &["setarch", std::env::consts::ARCH])
    }),
    command("taskset", Wrapper, &["taskset"], |c, _| {
        wrap(c, &["taskset", "-c", "0"])
    }),
    command("chrt", Wrapper, &["chrt"], |c, _| {
        wrap(c, &["chrt", "-o", "0"])
    }),
    command("command", Wrapper, &[], |c, _| wrap(c, &["command"])),
    command("command-with-option", Wrapper, &[], |c, _| {
        // It looks where the system's programs are.
        if bisim_world::template::is_stand_in(c.words.first()?.value()) {
            return None;
        }
        wrap(c, &["command", "-p"])
    }),
    command("command-end-of-options", Wrapper, &[], |c, _| {
        wrap(c, &["command", "--"])
    }),
    command("exec-in-a-subshell", Wrapper, &[], |c, _| {
        Some(wrap(c, &["exec"])?.framed("(", ")"))
    }),
    command("exec-under-another-name", Wrapper, &[], |c, _| {
        Some(wrap(c, &["exec", "-a", "ls"])?.framed("(", ")"))
    }),
    command(
        "wrappers-in-a-row",
        Wrapper,
        &["env", "nice", "timeout"],
        |c, _| wrap(c, &["env", "nice", "timeout", "5"]),
    ),
    command("dynamic-loader", Wrapper, &[], |c, _| {
        let (program, _) = parts(c)?;
        let name = program.value();
        let is_installed = !bisim_world::template::is_stand_in(name);
        if name.contains('/') || !program.is_plain() || !is_installed {
            return None;
        }
        let mut out = c.clone();
        *out.words.first_mut()? = Word::plain(&format!("/usr/bin/{name}"));
        out.words.insert(0, Word::plain(LOADER));
        Some(out.into())
    }),
    whole("script-on-a-terminal", Wrapper, &["script"], |s, _| {
        Some(Script::command(&[
            "script",
            "-qec",
            &s.print(),
            "/dev/null",
        ]))
    }),
    whole("timeout-bash", Wrapper, &["timeout", "bash"], |s, _| {
        wrap_text(s, &["timeout", "5", "bash", "-c"])
    }),
    whole("nice-bash", Wrapper, &["nice", "bash"], |s, _| {
        wrap_text(s, &["nice", "bash", "-c"])
    }),
    whole("env-bash", Wrapper, &["env", "bash"], |s, _| {
        wrap_text(s, &["env", "bash", "-c"])
    }),
    whole("nohup-bash", Wrapper, &["nohup", "bash"], |s, _| {
        wrap_text(s, &["nohup", "bash", "-c"])
    }),
    whole("setsid-bash", Wrapper, &["setsid", "bash"], |s, _| {
        wrap_text(s, &["setsid", "-w", "bash", "-c"])
    }),
    whole("flock-c", Wrapper, &["flock", "sh"], |s, _| {
        let bash = format!("bash -c {}", single_quoted(&s.print()));
        Some(Script::command(&["flock", "/tmp", "-c", &bash]))
    }),
    whole(
        "start-stop-daemon",
        Wrapper,
        &["start-stop-daemon", "bash"],
        |s, _| {
            wrap_text(
                s,
                &[
                    "start-stop-daemon",
                    "--start",
                    "--pidfile",
                    "/tmp/none",
                    "--exec",
                    "/bin/bash",
                    "--",
                    "-c",
                ],
            )
        },
    ),
    command("xargs-arguments", Xargs, &["xargs"], |c, _| {
        let (program, rest) = parts(c)?;
        let rest = listed(rest)?;
        Some(Script::Pipe(vec![
            Script::Raw(format!("echo {rest}")),
            Script::command(&["xargs", program.value()]),
        ]))
    })
    .outside_pipes(),
    command("xargs-last-argument", Xargs, &["xargs"], |c, _| {
        let (_, rest) = parts(c)?;
        let (last, front) = rest.split_last()?;
        let last = listed(std::slice::from_ref(last))?;
        let mut words = vec![Word::plain("xargs")];
        words.extend(c.words.first().cloned());
        words.extend(front.iter().cloned());
        let xargs = Simple {
            words,
            ..Simple::default()
        };
        Some(Script::Pipe(vec![
            Script::Raw(format!("echo {last}")),
            xargs.into(),
        ]))
    })
    .outside_pipes(),
    command("xargs-replacing", Xargs, &["xargs"], |c, _| {
        let (_, rest) = parts(c)?;
        let (last, front) = rest.split_last()?;
        let last = listed(std::slice::from_ref(last))?;
        let mut words = vec![Word::plain("xargs"), Word::plain("-I%")];
        words.extend(c.words.first().cloned());
        words.extend(front.iter().cloned());
        words.push(Word::plain("%"));
        let xargs = Simple {
            words,
            ..Simple::default()
        };
        Some(Script::Pipe(vec![
            Script::Raw(format!("echo {last}")),
            xargs.into(),
        ]))
    })
    .outside_pipes(),
    command("xargs-zero-terminated", Xargs, &["xargs"], |c, _| {
        let (program, rest) = parts(c)?;
        let rest = listed(rest)?;
        Some(Script::Pipe(vec![
            Script::Raw(format!("printf '%s\\0' {rest}")),
            Script::command(&["xargs", "-0", program.value()]),
        ]))
    })
    .outside_pipes(),
    command("xargs-from-a-file", Xargs, &["xargs"], |c, n| {
        let (program, rest) = parts(c)?;
        let rest = listed(rest)?;
        Some(Script::Raw(format!(
            "echo {rest} > /tmp/{n}; xargs -a /tmp/{n} {}",
            program.value()
        )))
    })
    .outside_pipes(),
    command("xargs-from-a-here-string", Xargs, &["xargs"], |c, _| {
        let (program, rest) = parts(c)?;
        let rest = listed(rest)?;
        Some(Script::Raw(format!(
            "xargs {} <<< '{rest}'",
            program.value()
        )))
    })
    .outside_pipes(),
    command(
        "xargs-program-from-input",
        Xargs,
        &["xargs", "env"],
        |c, _| {
            let (program, rest) = parts(c)?;
            let rest = listed(rest)?;
            let program = listed(std::slice::from_ref(program))?;
            Some(Script::Raw(format!(
                "echo {program} | xargs -I% env % {rest}"
            )))
        },
    )
    .outside_pipes(),
    command("xargs-one-at-a-time", Xargs, &["xargs"], |c, _| {
        let (_, rest) = parts(c)?;
        let (last, front) = rest.split_last()?;
        let last = listed(std::slice::from_ref(last))?;
        let mut words = vec![Word::plain("xargs"), Word::plain("-n1"), Word::plain("-P2")];
        words.extend(c.words.first().cloned());
        words.extend(front.iter().cloned());
        let xargs = Simple {
            words,
            ..Simple::default()
        };
        Some(Script::Pipe(vec![
            Script::Raw(format!("echo {last}")),
            xargs.into(),
        ]))
    })
    .outside_pipes(),
    command("xargs-env", Xargs, &["xargs", "env"], |c, _| {
        let (program, rest) = parts(c)?;
        let rest = listed(rest)?;
        Some(Script::Raw(format!(
            "echo {rest} | xargs env {}",
            program.value()
        )))
    })
    .outside_pipes(),
    whole("xargs-bash", Xargs, &["xargs", "bash"], |s, _| {
        Some(Script::Pipe(vec![
            Script::command(&["printf", "%s\\0", &s.print()]),
            Script::command(&["xargs", "-0", "bash", "-c"]),
        ]))
    }),
    whole("xargs-lines-to-bash", Xargs, &["xargs", "bash"], |s, _| {
        let text = s.print();
        if text.contains('\n') || text.contains('%') {
            return None;
        }
        Some(Script::Pipe(vec![
            Script::command(&["printf", "%s\\n", &text]),
            Script::command(&["xargs", "-d", "\\n", "-I%", "bash", "-c", "%"]),
        ]))
    }),
    whole("xargs-without-input", Xargs, &["xargs", "bash"], |s, _| {
        let mut simple = Simple::of(&["xargs", "bash", "-c"]);
        simple.words.push(Word::plain(&s.print()));
        simple.after.push("</dev/null".to_owned());
        Some(simple.into())
    }),
    command("find-exec", Find, &["find"], |c, _| {
        parts(c)?;
        Some(found_once(&ONCE, c, "\\;"))
    }),
    command("find-exec-many", Find, &["find"], |c, _| {
        let (_, rest) = parts(c)?;
        let (last, front) = rest.split_last()?;
        if !bisim_world::template::is_there(last.value()) {
            return None;
        }
        let mut words = vec![
            Word::plain("find"),
            last.clone(),
            Word::plain("-maxdepth"),
            Word::plain("0"),
            Word::plain("-exec"),
        ];
        words.extend(c.words.first().cloned());
        words.extend(front.iter().cloned());
        words.push(Word::spelled("{}", "{}".to_owned()));
        words.push(Word::plain("+"));
        Some(
            Simple {
                words,
                ..Simple::default()
            }
            .into(),
        )
    }),
    command("find-execdir", Find, &["find"], |c, _| {
        parts(c)?;
        let front = ["find", "/tmp", "-maxdepth", "0", "-execdir"];
        Some(found_once(&front, c, "';'"))
    }),
    command("find-ok", Find, &["find", "yes"], |c, _| {
        parts(c)?;
        let front = ["find", "/tmp", "-maxdepth", "0", "-ok"];
        Some(Script::Pipe(vec![
            Script::Raw("echo y".to_owned()),
            found_once(&front, c, "\\;"),
        ]))
    })
    .outside_pipes(),
    command("find-exec-env", Find, &["find", "env"], |c, _| {
        parts(c)?;
        let front = ["find", "/tmp", "-maxdepth", "0", "-exec", "env"];
        Some(found_once(&front, c, "\\;"))
    }),
    whole("find-exec-bash", Find, &["find", "bash"], |s, _| {
        let bash = Simple::of(&["bash", "-c", &s.print()]);
        Some(found_once(&ONCE, &bash, "\\;"))
    }),
    whole("find-printing-a-script", Find, &["find", "bash"], |s, _| {
        let text = s.print();
        if text.contains(['%', '\\', '\n']) {
            return None;
        }
        Some(Script::Pipe(vec![
            Script::command(&[
                "find",
                "/tmp",
                "-maxdepth",
                "0",
                "-printf",
                &format!("{text}\\n"),
            ]),
            Script::command(&["bash"]),
        ]))
    }),
];
