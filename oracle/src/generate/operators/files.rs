//! A file that is written, then run; another name for the program.

use crate::generate::operator::{Apply, Class, Operator};
use crate::generate::script::{Script, Simple, Word, single_quoted};

use Class::{ScriptFile, Shadow};

const fn whole(
    name: &'static str,
    needs: &'static [&'static str],
    rewrite: fn(&Script, &str) -> Option<Script>,
) -> Operator {
    Operator::of(name, ScriptFile, needs, Apply::Whole(rewrite))
}

const fn command(
    name: &'static str,
    needs: &'static [&'static str],
    rewrite: fn(&Simple, &str) -> Option<Script>,
) -> Operator {
    Operator::of(name, Shadow, needs, Apply::Command(rewrite))
}

/// The text written to `/tmp/NAME` by printf, then `run`.
fn written(script: &Script, name: &str, run: &str) -> Option<Script> {
    let text = single_quoted(&script.print());
    Some(Script::Raw(format!(
        "printf '%s\\n' {text} > /tmp/{name}; {run}"
    )))
}

/// The program of `simple` under another name, after `before` made that name.
fn renamed(simple: &Simple, before: String, name: String) -> Option<Script> {
    let mut out = simple.clone();
    let first = out.words.first_mut()?;
    let value = first.value().to_owned();
    *first = Word::spelled(&value, name);
    Some(Script::Simple(out).after(before))
}

/// The program's own name, if it is written plainly and is not the shell's.
fn program(simple: &Simple) -> Option<&str> {
    let first = simple.words.first().filter(|word| word.is_plain())?;
    let value = first.value();
    let builtin = [
        "eval", "exec", "cd", "export", "echo", "printf", "set", "command", "builtin", "kill",
        "read", "trap", "source", ".",
    ];
    (value.chars().all(|l| l.is_ascii_alphanumeric()) && !builtin.contains(&value)).then_some(value)
}

/// The same of a program that is where programs are, under its own name.
pub(super) fn installed(simple: &Simple) -> Option<&str> {
    program(simple).filter(|name| !bisim_world::template::is_stand_in(name))
}

pub(super) const TABLE: &[Operator] = &[
    whole("script-by-bash", &["bash"], |s, n| {
        written(s, n, &format!("bash /tmp/{n}"))
    }),
    whole("script-by-source", &[], |s, n| {
        written(s, n, &format!("source /tmp/{n}"))
    }),
    whole("script-by-dot", &[], |s, n| {
        written(s, n, &format!(". /tmp/{n}"))
    }),
    whole("script-as-input", &["bash"], |s, n| {
        written(s, n, &format!("bash < /tmp/{n}"))
    }),
    whole("script-through-cat", &["bash", "cat"], |s, n| {
        written(s, n, &format!("cat /tmp/{n} | bash"))
    }),
    whole("script-evaluated", &[], |s, n| {
        written(s, n, &format!("eval \"$(</tmp/{n})\""))
    }),
    whole("script-as-an-argument", &["bash", "cat"], |s, n| {
        written(s, n, &format!("bash -c \"$(cat /tmp/{n})\""))
    }),
    whole("script-made-executable", &["chmod"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "printf '%s\\n' '#!/bin/bash' {text} > /tmp/{n}; chmod +x /tmp/{n}; /tmp/{n}"
        )))
    }),
    whole("script-made-executable-by-number", &["chmod"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "printf '%s\\n' '#!/usr/bin/env bash' {text} > /tmp/{n}; chmod 700 /tmp/{n}; /tmp/{n}"
        )))
    }),
    whole("script-installed", &["install"], |s, n| {
        written(
            s,
            n,
            &format!("install -m 755 /tmp/{n} /tmp/{n}x; bash /tmp/{n}x"),
        )
    }),
    whole("script-on-the-path", &["chmod"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "mkdir -p /tmp/{n}d; printf '%s\\n' '#!/bin/bash' {text} > /tmp/{n}d/{n}x; chmod +x /tmp/{n}d/{n}x; PATH=/tmp/{n}d:$PATH; {n}x"
        )))
    }),
    whole("script-instead-of-a-program", &["chmod"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "mkdir -p /tmp/{n}d; printf '%s\\n' '#!/bin/bash' {text} > /tmp/{n}d/uptime; chmod +x /tmp/{n}d/uptime; PATH=/tmp/{n}d:$PATH uptime"
        )))
    }),
    whole("script-from-a-here-document", &["cat", "bash"], |s, n| {
        Some(
            s.clone()
                .framed(format!("cat > /tmp/{n} <<'{n}E'\n"), "\n")
                .framed("", format!("{n}E\nbash /tmp/{n}\n")),
        )
    }),
    whole("script-from-tee", &["tee", "bash"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "printf '%s\\n' {text} | tee /tmp/{n} >/dev/null; bash /tmp/{n}"
        )))
    }),
    whole("script-from-dd", &["dd", "bash"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "printf '%s\\n' {text} | dd of=/tmp/{n} status=none; bash /tmp/{n}"
        )))
    }),
    whole("script-written-by-awk", &["awk", "bash"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "printf '%s\\n' {text} | awk '{{print > \"/tmp/{n}\"}}'; bash /tmp/{n}"
        )))
    }),
    whole("script-in-pieces", &["bash"], |s, n| {
        let text = s.print();
        let (a, b) = text.split_at_checked(text.len().checked_div(2)?)?;
        let (a, b) = (single_quoted(a), single_quoted(b));
        Some(Script::Raw(format!(
            "printf %s {a} > /tmp/{n}; printf '%s\\n' {b} >> /tmp/{n}; bash /tmp/{n}"
        )))
    }),
    whole("script-moved", &["mv", "bash"], |s, n| {
        written(
            s,
            n,
            &format!("mv /tmp/{n} /tmp/{n}.txt; bash /tmp/{n}.txt"),
        )
    }),
    whole("script-linked", &["ln", "bash"], |s, n| {
        written(s, n, &format!("ln -s /tmp/{n} /tmp/{n}l; bash /tmp/{n}l"))
    }),
    whole("script-in-the-shell-directory", &["bash"], |s, n| {
        written(s, n, &format!("cd /tmp; bash ./{n}"))
    }),
    whole(
        "script-behind-a-shebang-of-env",
        &["chmod", "env"],
        |s, n| {
            let text = single_quoted(&s.print());
            Some(Script::Raw(format!(
                "printf '%s\\n' '#!/usr/bin/env -S bash -e' {text} > /tmp/{n}; chmod +x /tmp/{n}; /tmp/{n}"
            )))
        },
    ),
    whole("script-as-a-home-profile", &["bash"], |s, n| {
        let text = single_quoted(&s.print());
        Some(Script::Raw(format!(
            "mkdir -p /tmp/{n}h; printf '%s\\n' {text} > /tmp/{n}h/.bash_profile; HOME=/tmp/{n}h bash -lc :"
        )))
    }),
    command("program-by-path", &[], |c, _| {
        let name = format!("/bin/{}", installed(c)?);
        renamed(c, ":".to_owned(), name)
    }),
    command("program-by-other-path", &[], |c, _| {
        let name = format!("/usr/bin/{}", installed(c)?);
        renamed(c, ":".to_owned(), name)
    }),
    command("program-by-detour", &[], |c, _| {
        let name = format!("/usr/bin/../bin/{}", installed(c)?);
        renamed(c, ":".to_owned(), name)
    }),
    command("program-by-process-root", &[], |c, _| {
        let name = format!("/proc/self/root/usr/bin/{}", installed(c)?);
        renamed(c, ":".to_owned(), name)
    }),
    command("program-from-its-directory", &[], |c, _| {
        let absolute = c
            .words
            .iter()
            .skip(1)
            .all(|w| !w.value().contains('/') || w.value().starts_with('/'));
        let name = format!("./{}", installed(c)?);
        if !absolute {
            return None;
        }
        renamed(c, "cd /usr/bin".to_owned(), name)
    }),
    command("program-copied", &["cp"], |c, n| {
        let before = format!("cp \"$(type -P {})\" /tmp/{n}", installed(c)?);
        renamed(c, before, format!("/tmp/{n}"))
    }),
    command("program-linked", &["ln"], |c, n| {
        let before = format!("ln -s \"$(type -P {})\" /tmp/{n}", installed(c)?);
        renamed(c, before, format!("/tmp/{n}"))
    }),
    command("program-hashed", &[], |c, n| {
        let before = format!("hash -p \"$(type -P {})\" {n}", program(c)?);
        renamed(c, before, n.to_owned())
    }),
    command("program-linked-on-the-path", &["ln"], |c, n| {
        let before = format!(
            "mkdir /tmp/{n}; ln -s \"$(type -P {})\" /tmp/{n}/{n}x; PATH=/tmp/{n}:$PATH",
            installed(c)?
        );
        renamed(c, before, format!("{n}x"))
    }),
    command("program-called-by-a-function", &[], |c, n| {
        let before = format!("{n}() {{ {} \"$@\"; }}", program(c)?);
        renamed(c, before, n.to_owned())
    }),
    command("program-called-by-a-function-with-command", &[], |c, n| {
        let before = format!("{n}() {{ command {} \"$@\"; }}", program(c)?);
        renamed(c, before, n.to_owned())
    }),
    command("program-from-a-path-variable", &[], |c, n| {
        let before = format!("{n}=/usr/bin");
        let name = format!("${n}/{}", installed(c)?);
        renamed(c, before, name)
    }),
    command("program-under-a-new-path", &[], |c, _| {
        let name = installed(c)?.to_owned();
        renamed(c, "PATH=/bin:/usr/bin".to_owned(), name)
    }),
    command("program-through-the-last-argument", &[], |c, _| {
        let before = format!(": {}", program(c)?);
        renamed(c, before, "$_".to_owned())
    }),
    command("program-as-copied-descriptor", &[], |c, _| {
        let before = format!("exec 8<\"$(type -P {})\"", installed(c)?);
        renamed(c, before, "/proc/self/fd/8".to_owned())
    }),
];
