//! A word that is the output of a command.

use crate::generate::operator::{Apply, Binding, Class, Operator, Salt};

use Class::CommandSubstitution;

const fn output(
    name: &'static str,
    needs: &'static [&'static str],
    bind: fn(&str, &str, Salt) -> Option<Binding>,
) -> Operator {
    Operator::of(name, CommandSubstitution, needs, Apply::Bound(bind))
}

fn inline(spelling: String) -> Option<Binding> {
    Some(Binding {
        before: String::new(),
        spelling,
    })
}

fn safe(v: &str) -> Option<&str> {
    let plain = |l: char| l.is_ascii_alphanumeric() || "/._-".contains(l);
    (!v.is_empty() && !v.starts_with('-') && v.chars().all(plain)).then_some(v)
}

fn split(v: &str, salt: Salt) -> Option<(&str, &str)> {
    let inner = safe(v)?.len().checked_sub(1).filter(|inner| *inner > 0)?;
    v.split_at_checked(salt.pick(inner).saturating_add(1))
}

fn reversed(v: &str) -> Option<String> {
    safe(v).map(|v| v.chars().rev().collect())
}

fn rotated(v: &str) -> Option<String> {
    safe(v).map(|v| {
        v.chars()
            .map(|l| {
                let turn = |base: u8| {
                    let place = (l as u8).wrapping_sub(base).wrapping_add(13) % 26;
                    char::from(base.wrapping_add(place))
                };
                match l {
                    'a'..='z' => turn(b'a'),
                    'A'..='Z' => turn(b'A'),
                    _ => l,
                }
            })
            .collect()
    })
}

fn hex(v: &str) -> Option<String> {
    safe(v).map(|v| v.bytes().map(|b| format!("{b:02x}")).collect())
}

fn program(v: &str) -> Option<&str> {
    let is_name = |v: &&str| v.chars().all(|l| l.is_ascii_alphanumeric());
    // A mode or a count is a word as well, and the name of nothing.
    safe(v).filter(|v| is_name(v) && v.chars().any(|l| l.is_ascii_alphabetic()))
}

pub(super) const TABLE: &[Operator] = &[
    output("echoed", &[], |v, _, _| {
        inline(format!("$(echo {})", safe(v)?))
    }),
    output("echoed-in-backticks", &[], |v, _, _| {
        inline(format!("`echo {}`", safe(v)?))
    }),
    output("echoed-and-quoted", &[], |v, _, _| {
        inline(format!("\"$(echo {})\"", safe(v)?))
    }),
    output("echoed-without-newline", &[], |v, _, _| {
        inline(format!("$(echo -n {})", safe(v)?))
    }),
    output("echoed-front", &[], |v, _, s| {
        let (a, b) = split(v, s)?;
        inline(format!("$(echo {a}){b}"))
    }),
    output("echoed-end", &[], |v, _, s| {
        let (a, b) = split(v, s)?;
        safe(b)?;
        inline(format!("{a}$(echo {b})"))
    }),
    output("echoed-in-two", &[], |v, _, s| {
        let (a, b) = split(v, s)?;
        safe(b)?;
        inline(format!("$(echo {a})$(echo {b})"))
    }),
    output("echoed-twice", &[], |v, _, _| {
        inline(format!("$(echo $(echo {}))", safe(v)?))
    }),
    output("echoed-with-escapes", &[], |v, _, _| {
        let hex: String = safe(v)?.bytes().map(|b| format!("\\x{b:02x}")).collect();
        inline(format!("$(echo -e '{hex}')"))
    }),
    output("printed", &[], |v, _, _| {
        inline(format!("$(printf {})", safe(v)?))
    }),
    output("printed-as-string", &[], |v, _, _| {
        inline(format!("$(printf %s {})", safe(v)?))
    }),
    output("printed-from-octal", &[], |v, _, _| {
        let octal: String = safe(v)?.bytes().map(|b| format!("\\{b:03o}")).collect();
        inline(format!("$(printf '{octal}')"))
    }),
    output("printed-from-hex", &[], |v, _, _| {
        let hex: String = safe(v)?.bytes().map(|b| format!("\\x{b:02x}")).collect();
        inline(format!("$(printf '{hex}')"))
    }),
    output("printed-with-b", &[], |v, _, _| {
        let octal: String = safe(v)?.bytes().map(|b| format!("\\0{b:03o}")).collect();
        inline(format!("$(printf %b '{octal}')"))
    }),
    output("printed-letter-by-letter", &[], |v, _, _| {
        let letters: Vec<String> = safe(v)?.chars().map(String::from).collect();
        inline(format!("$(printf %s {})", letters.join(" ")))
    }),
    output("here-string-through-cat", &["cat"], |v, _, _| {
        inline(format!("$(cat <<< {})", safe(v)?))
    }),
    output("reversed-by-rev", &["rev"], |v, _, _| {
        inline(format!("$(echo {} | rev)", reversed(v)?))
    }),
    output("translated-by-rot13", &["tr"], |v, _, _| {
        inline(format!("$(echo {} | tr a-zA-Z n-za-mN-ZA-M)", rotated(v)?))
    }),
    output("letters-deleted-by-tr", &["tr"], |v, _, _| {
        let noisy: String = safe(v)?.chars().flat_map(|l| [l, 'Q']).collect();
        inline(format!("$(echo {noisy} | tr -d Q)"))
    }),
    output("lowered-by-tr", &["tr"], |v, _, _| {
        let v = safe(v).filter(|v| *v == v.to_lowercase() && *v != v.to_uppercase())?;
        inline(format!("$(echo {} | tr A-Z a-z)", v.to_uppercase()))
    }),
    output("edited-by-sed", &["sed"], |v, _, s| {
        let (a, b) = split(v, s)?;
        inline(format!("$(echo {a}Q{b} | sed s/Q//)"))
    }),
    output("translated-by-sed", &["sed"], |v, _, _| {
        let noisy: String = safe(v)?.chars().flat_map(|l| ['Q', l]).collect();
        inline(format!("$(sed s/Q//g <<< {noisy})"))
    }),
    output("field-by-cut", &["cut"], |v, _, _| {
        inline(format!("$(echo Q:{} | cut -d: -f2)", safe(v)?))
    }),
    output("letters-by-cut", &["cut"], |v, _, _| {
        inline(format!("$(echo QW{} | cut -c3-)", safe(v)?))
    }),
    output("field-by-awk", &["awk"], |v, _, _| {
        inline(format!("$(echo Q {} | awk '{{print $2}}')", safe(v)?))
    }),
    output("printed-by-awk", &["awk"], |v, _, _| {
        inline(format!("$(awk 'BEGIN{{printf \"%s\", \"{}\"}}')", safe(v)?))
    }),
    output("decoded-from-base64", &["base64"], |v, _, _| {
        inline(format!(
            "$(echo {} | base64 -d)",
            super::encodings::base64(safe(v)?.as_bytes())
        ))
    }),
    output("decoded-from-base64-here-string", &["base64"], |v, _, _| {
        inline(format!(
            "$(base64 -d <<< {})",
            super::encodings::base64(safe(v)?.as_bytes())
        ))
    }),
    output("decoded-by-xxd", &["xxd"], |v, _, _| {
        inline(format!("$(echo {} | xxd -r -p)", hex(v)?))
    }),
    output("decoded-by-python", &["python3"], |v, _, _| {
        inline(format!(
            "$(python3 -c \"print(bytes.fromhex('{}').decode())\")",
            hex(v)?
        ))
    }),
    output("decoded-by-perl", &["perl"], |v, _, _| {
        inline(format!("$(perl -e 'print pack(\"H*\",\"{}\")')", hex(v)?))
    }),
    output("last-component", &["basename"], |v, _, _| {
        inline(format!("$(basename /zz/{})", program(v)?))
    }),
    output("first-line", &["head"], |v, _, _| {
        inline(format!("$(printf '%s\\n' {} zz | head -n1)", safe(v)?))
    }),
    output("last-line", &["tail"], |v, _, _| {
        inline(format!("$(printf '%s\\n' zz {} | tail -n1)", safe(v)?))
    }),
    output("found-by-grep", &["grep"], |v, _, _| {
        inline(format!("$(printf '%s\\n' zz {} | grep -v zz)", safe(v)?))
    }),
    output("sorted-first", &["sort"], |v, _, _| {
        let v = safe(v).filter(|v| v.as_bytes() < b"zzz".as_slice())?;
        inline(format!(
            "$(printf '%s\\n' zzz {v} | LC_ALL=C sort | head -n1)"
        ))
    }),
    output("found-by-command-v", &[], |v, _, _| {
        inline(format!("$(command -v {})", program(v)?))
    }),
    output("found-by-type", &[], |v, _, _| {
        inline(format!("$(type -P {})", program(v)?))
    }),
    output("found-by-which", &["which"], |v, _, _| {
        inline(format!("$(which {})", program(v)?))
    }),
    output("listed-by-ls", &["ls"], |v, _, _| {
        let installed = program(v).filter(|name| !bisim_world::template::is_stand_in(name));
        inline(format!("$(ls /usr/bin/{})", installed?))
    }),
    output("found-by-compgen", &[], |v, _, _| {
        let v = program(v)?;
        inline(format!("$(compgen -c {v} | grep -x {v} | head -n1)"))
    }),
    output("written-by-a-function", &[], |v, n, _| {
        Some(Binding {
            before: format!("{n}() {{ echo {}; }}", safe(v)?),
            spelling: format!("$({n})"),
        })
    }),
    output("from-a-process-substitution", &["cat"], |v, _, _| {
        inline(format!("$(cat <(echo {}))", safe(v)?))
    }),
    output("from-the-environment", &["env"], |v, n, _| {
        inline(format!("$({n}={} printenv {n})", safe(v)?))
    }),
    output("from-a-file", &["cat"], |v, n, _| {
        Some(Binding {
            before: format!("echo {} > /tmp/{n}", safe(v)?),
            spelling: format!("$(cat /tmp/{n})"),
        })
    }),
    output("from-a-file-by-redirection", &[], |v, n, _| {
        Some(Binding {
            before: format!("echo {} > /tmp/{n}", safe(v)?),
            spelling: format!("$(</tmp/{n})"),
        })
    }),
];
