//! One word, written otherwise: quotes, backslashes, `$'...'`, look-alikes.

use crate::generate::operator::{Apply, Class, Operator, Salt};
use crate::generate::script::single_quoted;

const fn word(
    name: &'static str,
    class: Class,
    respell: fn(&str, Salt) -> Option<String>,
) -> Operator {
    Operator::of(name, class, &[], Apply::Word(respell))
}

use Class::{AnsiC, Confusable, EmptyExpansion, Escape, PathForm, Quoting};

pub(super) const TABLE: &[Operator] = &[
    word("single-quote-all", Quoting, |v, _| Some(single_quoted(v))),
    word("double-quote-all", Quoting, |v, _| {
        safe(v).map(|v| format!("\"{v}\""))
    }),
    word("single-quote-first", Quoting, |v, _| {
        cut(v, 1).map(|(a, b)| format!("'{a}'{b}"))
    }),
    word("single-quote-rest", Quoting, |v, _| {
        cut(v, 1).map(|(a, b)| format!("{a}'{b}'"))
    }),
    word("double-quote-first", Quoting, |v, _| {
        cut(v, 1).map(|(a, b)| format!("\"{a}\"{b}"))
    }),
    word("double-quote-rest", Quoting, |v, _| {
        cut(v, 1).map(|(a, b)| format!("{a}\"{b}\""))
    }),
    word("single-quote-one", Quoting, |v, s| {
        at(v, s).map(|(a, l, b)| format!("{a}'{l}'{b}"))
    }),
    word("double-quote-one", Quoting, |v, s| {
        at(v, s).map(|(a, l, b)| format!("{a}\"{l}\"{b}"))
    }),
    word("single-quote-each", Quoting, |v, _| {
        each(v, |l| format!("'{l}'"))
    }),
    word("double-quote-each", Quoting, |v, _| {
        each(v, |l| format!("\"{l}\""))
    }),
    word("quotes-in-turn", Quoting, |v, _| {
        let mut double = false;
        each_mut(v, |l| {
            double = !double;
            if double {
                format!("\"{l}\"")
            } else {
                format!("'{l}'")
            }
        })
    }),
    word("empty-single-inside", Quoting, |v, s| {
        between(v, s).map(|(a, b)| format!("{a}''{b}"))
    }),
    word("empty-double-inside", Quoting, |v, s| {
        between(v, s).map(|(a, b)| format!("{a}\"\"{b}"))
    }),
    word("empty-single-before", Quoting, |v, _| {
        safe(v).map(|v| format!("''{v}"))
    }),
    word("empty-double-before", Quoting, |v, _| {
        safe(v).map(|v| format!("\"\"{v}"))
    }),
    word("empty-single-behind", Quoting, |v, _| {
        safe(v).map(|v| format!("{v}''"))
    }),
    word("empty-double-behind", Quoting, |v, _| {
        safe(v).map(|v| format!("{v}\"\""))
    }),
    word("empty-quotes-everywhere", Quoting, |v, _| {
        each(v, |l| format!("{l}''\"\""))
    }),
    word("many-empty-quotes", Quoting, |v, s| {
        between(v, s).map(|(a, b)| format!("{a}''\"\"''\"\"''{b}"))
    }),
    word("locale-quote", Quoting, |v, _| {
        safe(v).map(|v| format!("$\"{v}\""))
    }),
    word("locale-quote-one", Quoting, |v, s| {
        at(v, s).map(|(a, l, b)| format!("{a}$\"{l}\"{b}"))
    }),
    word("backslash-first", Escape, |v, _| {
        safe(v).map(|v| format!("\\{v}"))
    }),
    word("backslash-one", Escape, |v, s| {
        at(v, s).map(|(a, l, b)| format!("{a}\\{l}{b}"))
    }),
    word("backslash-each", Escape, |v, _| {
        each(v, |l| format!("\\{l}"))
    }),
    word("backslash-last", Escape, |v, _| {
        cut(v, v.chars().count().saturating_sub(1)).map(|(a, b)| format!("{a}\\{b}"))
    }),
    word("line-continued-inside", Escape, |v, s| {
        between(v, s).map(|(a, b)| format!("{a}\\\n{b}"))
    }),
    word("line-continued-each", Escape, |v, _| {
        each(v, |l| format!("{l}\\\n"))
    }),
    word("line-continued-in-double", Escape, |v, s| {
        between(v, s).map(|(a, b)| format!("\"{a}\\\n{b}\""))
    }),
    word("ansi-plain", AnsiC, |v, _| {
        safe(v).map(|v| format!("$'{v}'"))
    }),
    word("ansi-hex-all", AnsiC, |v, _| {
        ansi(v, |l| format!("\\x{:02x}", l as u32))
    }),
    word("ansi-octal-all", AnsiC, |v, _| {
        ansi(v, |l| format!("\\{:03o}", l as u32))
    }),
    word("ansi-short-unicode-all", AnsiC, |v, _| {
        ansi(v, |l| format!("\\u{:04x}", l as u32))
    }),
    word("ansi-long-unicode-all", AnsiC, |v, _| {
        ansi(v, |l| format!("\\U{:08x}", l as u32))
    }),
    word("ansi-upper-hex-all", AnsiC, |v, _| {
        ansi(v, |l| format!("\\x{:02X}", l as u32))
    }),
    word("ansi-hex-one", AnsiC, |v, s| {
        at(v, s).map(|(a, l, b)| format!("{a}$'\\x{:02x}'{b}", l as u32))
    }),
    word("ansi-octal-one", AnsiC, |v, s| {
        at(v, s).map(|(a, l, b)| format!("{a}$'\\{:03o}'{b}", l as u32))
    }),
    word("ansi-unicode-one", AnsiC, |v, s| {
        at(v, s).map(|(a, l, b)| format!("{a}$'\\u{:04x}'{b}", l as u32))
    }),
    word("ansi-each-apart", AnsiC, |v, _| {
        each(v, |l| format!("$'\\x{:02x}'", l as u32))
    }),
    word("ansi-in-turn", AnsiC, |v, _| {
        let mut hex = false;
        let body = each_mut(v, |l| {
            hex = !hex;
            if hex {
                format!("\\x{:02x}", l as u32)
            } else {
                format!("\\{:03o}", l as u32)
            }
        })?;
        Some(format!("$'{body}'"))
    }),
    word("ansi-empty-inside", AnsiC, |v, s| {
        between(v, s).map(|(a, b)| format!("{a}$''{b}"))
    }),
    word("positional-all-inside", EmptyExpansion, |v, s| {
        gap(v, s, "$@")
    }),
    word("positional-star-inside", EmptyExpansion, |v, s| {
        gap(v, s, "$*")
    }),
    word("unset-name-inside", EmptyExpansion, |v, s| {
        gap(v, s, "${zz}")
    }),
    word("unset-default-inside", EmptyExpansion, |v, s| {
        gap(v, s, "${zz:-}")
    }),
    word("unset-short-default-inside", EmptyExpansion, |v, s| {
        gap(v, s, "${zz-}")
    }),
    word("alternative-inside", EmptyExpansion, |v, s| {
        gap(v, s, "${zz:+x}")
    }),
    word("unset-suffix-inside", EmptyExpansion, |v, s| {
        gap(v, s, "${zz%x}")
    }),
    word("unset-position-inside", EmptyExpansion, |v, s| {
        gap(v, s, "${9}")
    }),
    word("unset-element-inside", EmptyExpansion, |v, s| {
        gap(v, s, "${zz[0]}")
    }),
    word("empty-substitution-inside", EmptyExpansion, |v, s| {
        gap(v, s, "$(:)")
    }),
    word("true-substitution-inside", EmptyExpansion, |v, s| {
        gap(v, s, "$(true)")
    }),
    word("empty-backticks-inside", EmptyExpansion, |v, s| {
        gap(v, s, "`:`")
    }),
    word("quoted-unset-inside", EmptyExpansion, |v, s| {
        gap(v, s, "\"${zz}\"")
    }),
    word("positional-all-before", EmptyExpansion, |v, _| {
        safe(v).map(|v| format!("$@{v}"))
    }),
    word("positional-all-behind", EmptyExpansion, |v, _| {
        safe(v).map(|v| format!("{v}$@"))
    }),
    word("unset-name-behind", EmptyExpansion, |v, _| {
        safe(v).map(|v| format!("{v}${{zz}}"))
    }),
    word("substring-of-nothing-inside", EmptyExpansion, |v, s| {
        gap(v, s, "${zz:0:1}")
    }),
    word("double-slash", PathForm, |v, _| {
        path(v).map(|v| v.replace('/', "//"))
    }),
    word("triple-slash-front", PathForm, |v, _| {
        path(v).map(|v| format!("//{v}"))
    }),
    word("dot-component", PathForm, |v, _| {
        path(v).map(|v| v.replace('/', "/./"))
    }),
    word("dot-front", PathForm, |v, _| {
        path(v).map(|v| format!("/.{v}"))
    }),
    word("detour-by-parent", PathForm, |v, _| {
        path(v).map(|v| format!("/usr/..{v}"))
    }),
    word("detour-by-tmp", PathForm, |v, _| {
        path(v).map(|v| format!("/tmp/..{v}"))
    }),
    word("detour-twice", PathForm, |v, _| {
        path(v).map(|v| format!("/usr/bin/../..{v}"))
    }),
    word("root-parent", PathForm, |v, _| {
        path(v).map(|v| format!("/..{v}"))
    }),
    word("process-root", PathForm, |v, _| {
        path(v).map(|v| format!("/proc/self/root{v}"))
    }),
    word("process-root-by-number", PathForm, |v, _| {
        path(v).map(|v| format!("/proc/$$/root{v}"))
    }),
    word("process-task-root", PathForm, |v, _| {
        path(v).map(|v| format!("/proc/thread-self/root{v}"))
    }),
    word("cyrillic-letters", Confusable, |v, _| swapped(v, CYRILLIC)),
    word("fullwidth-letters", Confusable, |v, _| {
        safe(v)?;
        v.chars()
            .map(|l| {
                if l.is_ascii_lowercase() {
                    char::from_u32(l as u32 + 0xFEE0)
                } else {
                    Some(l)
                }
            })
            .collect::<Option<String>>()
            .filter(|out| out != v)
    }),
    word("zero-width-inside", Confusable, |v, s| {
        between(v, s).map(|(a, b)| format!("{a}\u{200b}{b}"))
    }),
    word("joiner-inside", Confusable, |v, s| {
        between(v, s).map(|(a, b)| format!("{a}\u{200d}{b}"))
    }),
    word("soft-hyphen-inside", Confusable, |v, s| {
        between(v, s).map(|(a, b)| format!("{a}\u{ad}{b}"))
    }),
    word("combining-mark", Confusable, |v, s| {
        between(v, s).map(|(a, b)| format!("{a}\u{307}{b}"))
    }),
    word("right-to-left-mark", Confusable, |v, _| {
        safe(v).map(|v| format!("\u{202e}{v}"))
    }),
];

/// Latin letters and what looks like them.
const CYRILLIC: &[(char, char)] = &[
    ('a', 'а'),
    ('c', 'с'),
    ('d', 'ԁ'),
    ('e', 'е'),
    ('h', 'һ'),
    ('i', 'і'),
    ('m', 'м'),
    ('o', 'о'),
    ('p', 'р'),
    ('r', 'г'),
    ('s', 'ѕ'),
    ('t', 'т'),
    ('u', 'ц'),
    ('x', 'х'),
    ('y', 'у'),
];

fn swapped(v: &str, table: &[(char, char)]) -> Option<String> {
    safe(v)?;
    let out: String = v
        .chars()
        .map(|l| {
            table
                .iter()
                .find(|(from, _)| *from == l)
                .map_or(l, |(_, to)| *to)
        })
        .collect();
    (out != v).then_some(out)
}

/// Only letters that mean themselves in every kind of quote.
fn safe(v: &str) -> Option<&str> {
    let plain = |l: char| l.is_ascii_alphanumeric() || "/._-+:@%,=".contains(l);
    (!v.is_empty() && v.chars().all(plain)).then_some(v)
}

fn path(v: &str) -> Option<&str> {
    safe(v).filter(|v| v.starts_with('/') && v.len() > 1)
}

fn cut(v: &str, at: usize) -> Option<(&str, &str)> {
    safe(v)?;
    let (a, b) = v.split_at_checked(at)?;
    (!a.is_empty() && !b.is_empty()).then_some((a, b))
}

/// Before, one letter, behind.
fn at(v: &str, salt: Salt) -> Option<(&str, char, &str)> {
    safe(v)?;
    let (a, rest) = v.split_at_checked(salt.pick(v.len()))?;
    let mut letters = rest.chars();
    let letter = letters.next()?;
    Some((a, letter, letters.as_str()))
}

/// Between two letters, neither of which makes an option's dash stand alone.
fn between(v: &str, salt: Salt) -> Option<(&str, &str)> {
    let inner = v.len().checked_sub(1).filter(|inner| *inner > 0)?;
    cut(v, salt.pick(inner).saturating_add(1))
}

fn gap(v: &str, salt: Salt, nothing: &str) -> Option<String> {
    between(v, salt).map(|(a, b)| format!("{a}{nothing}{b}"))
}

fn each(v: &str, spell: impl Fn(char) -> String) -> Option<String> {
    safe(v)?;
    Some(v.chars().map(spell).collect())
}

fn each_mut(v: &str, spell: impl FnMut(char) -> String) -> Option<String> {
    safe(v)?;
    Some(v.chars().map(spell).collect())
}

fn ansi(v: &str, spell: impl Fn(char) -> String) -> Option<String> {
    let body = each(v, spell)?;
    Some(format!("$'{body}'"))
}
