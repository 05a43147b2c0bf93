//! A word that comes out of a variable, an array, arithmetic, braces or a pattern.

use crate::generate::operator::{Apply, Binding, Class, Operator, Salt};
use crate::generate::script::{Script, Simple, Word, single_quoted};

use Class::{Arithmetic, Array, Brace, Glob, Parameter, PathForm, Variable};

const fn bound(
    name: &'static str,
    class: Class,
    bind: fn(&str, &str, Salt) -> Option<Binding>,
) -> Operator {
    Operator::of(name, class, &[], Apply::Bound(bind))
}

const fn command(
    name: &'static str,
    class: Class,
    rewrite: fn(&Simple, &str) -> Option<Script>,
) -> Operator {
    Operator::of(name, class, &[], Apply::Command(rewrite))
}

fn binding(before: String, spelling: String) -> Option<Binding> {
    Some(Binding { before, spelling })
}

/// A word of letters that need no quotes anywhere.
fn safe(v: &str) -> Option<&str> {
    let plain = |l: char| l.is_ascii_alphanumeric() || "/._-".contains(l);
    (!v.is_empty() && v.chars().all(plain)).then_some(v)
}

/// A path at which something is: a pattern that matches nothing stands for itself.
fn there(v: &str) -> Option<&str> {
    safe(v).filter(|path| bisim_world::template::is_there(path))
}

/// The first letter of a name and the others; a dot in front is matched by no pattern.
fn first_letter(name: &str) -> Option<(&str, &str)> {
    name.split_at_checked(1).filter(|(first, _)| *first != ".")
}

fn split(v: &str, salt: Salt) -> Option<(&str, &str)> {
    let inner = safe(v)?.len().checked_sub(1).filter(|inner| *inner > 0)?;
    v.split_at_checked(salt.pick(inner).saturating_add(1))
}

pub(super) const TABLE: &[Operator] = &[
    bound("variable", Variable, |v, n, _| {
        binding(format!("{n}={}", safe(v)?), format!("${n}"))
    }),
    bound("variable-in-braces", Variable, |v, n, _| {
        binding(format!("{n}={}", safe(v)?), format!("${{{n}}}"))
    }),
    bound("variable-quoted", Variable, |v, n, _| {
        binding(format!("{n}={}", safe(v)?), format!("\"${n}\""))
    }),
    bound("variables-joined", Variable, |v, n, s| {
        let (a, b) = split(v, s)?;
        binding(format!("{n}a={a} {n}b={b}"), format!("${n}a${n}b"))
    }),
    bound("variable-partly", Variable, |v, n, s| {
        let (a, b) = split(v, s)?;
        binding(format!("{n}={b}"), format!("{a}${n}"))
    }),
    bound("variable-appended", Variable, |v, n, s| {
        let (a, b) = split(v, s)?;
        binding(format!("{n}={a}; {n}+={b}"), format!("${n}"))
    }),
    bound("variable-exported", Variable, |v, n, _| {
        binding(format!("export {n}={}", safe(v)?), format!("${n}"))
    }),
    bound("variable-declared", Variable, |v, n, _| {
        binding(format!("declare {n}={}", safe(v)?), format!("${n}"))
    }),
    bound("variable-lowered-by-attribute", Variable, |v, n, _| {
        let v = safe(v).filter(|v| !v.chars().any(|l| l.is_ascii_uppercase()))?;
        binding(
            format!("declare -l {n}; {n}={}", v.to_uppercase()),
            format!("${n}"),
        )
    }),
    bound("variable-printed-into", Variable, |v, n, _| {
        binding(format!("printf -v {n} %s {}", safe(v)?), format!("${n}"))
    }),
    bound("variable-read", Variable, |v, n, _| {
        binding(format!("read -r {n} <<< {}", safe(v)?), format!("${n}"))
    }),
    bound("variable-from-variable", Variable, |v, n, _| {
        binding(format!("{n}a={}; {n}=${n}a", safe(v)?), format!("${n}"))
    }),
    bound("variable-by-let-name", Variable, |v, n, _| {
        binding(
            format!("declare -n {n}={n}x; {n}x={}", safe(v)?),
            format!("${n}"),
        )
    }),
    bound("default-of-unset", Parameter, |v, n, _| {
        binding(String::new(), format!("${{{n}:-{}}}", safe(v)?))
    }),
    bound("short-default-of-unset", Parameter, |v, n, _| {
        binding(String::new(), format!("${{{n}-{}}}", safe(v)?))
    }),
    bound("assigning-default", Parameter, |v, n, _| {
        binding(String::new(), format!("${{{n}:={}}}", safe(v)?))
    }),
    bound("short-assigning-default", Parameter, |v, n, _| {
        binding(String::new(), format!("${{{n}={}}}", safe(v)?))
    }),
    bound("alternative-of-set", Parameter, |v, _, _| {
        binding(String::new(), format!("${{PATH:+{}}}", safe(v)?))
    }),
    bound("short-alternative-of-set", Parameter, |v, _, _| {
        binding(String::new(), format!("${{HOME+{}}}", safe(v)?))
    }),
    bound("nested-default", Parameter, |v, n, _| {
        binding(String::new(), format!("${{{n}:-${{{n}x:-{}}}}}", safe(v)?))
    }),
    bound("indirect", Parameter, |v, n, _| {
        binding(format!("{n}a={} {n}={n}a", safe(v)?), format!("${{!{n}}}"))
    }),
    bound("prefix-removed", Parameter, |v, n, _| {
        binding(format!("{n}=Q{}", safe(v)?), format!("${{{n}#Q}}"))
    }),
    bound("long-prefix-removed", Parameter, |v, n, _| {
        binding(format!("{n}=QQ:{}", safe(v)?), format!("${{{n}##*:}}"))
    }),
    bound("suffix-removed", Parameter, |v, n, _| {
        binding(format!("{n}={}Q", safe(v)?), format!("${{{n}%Q}}"))
    }),
    bound("long-suffix-removed", Parameter, |v, n, _| {
        binding(format!("{n}={}:QQ", safe(v)?), format!("${{{n}%%:*}}"))
    }),
    bound("letter-replaced-away", Parameter, |v, n, s| {
        let (a, b) = split(v, s)?;
        binding(format!("{n}={a}Q{b}"), format!("${{{n}/Q/}}"))
    }),
    bound("letters-replaced-away", Parameter, |v, n, _| {
        let v: String = safe(v)?.chars().flat_map(|l| [l, 'Q']).collect();
        binding(format!("{n}={v}"), format!("${{{n}//Q/}}"))
    }),
    bound("front-replaced-away", Parameter, |v, n, _| {
        binding(format!("{n}=QW{}", safe(v)?), format!("${{{n}/#QW/}}"))
    }),
    bound("end-replaced-away", Parameter, |v, n, _| {
        binding(format!("{n}={}QW", safe(v)?), format!("${{{n}/%QW/}}"))
    }),
    bound("substring-from", Parameter, |v, n, _| {
        binding(format!("{n}=QW{}", safe(v)?), format!("${{{n}:2}}"))
    }),
    bound("substring-from-to", Parameter, |v, n, _| {
        let length = safe(v)?.len();
        binding(format!("{n}=Q{v}W"), format!("${{{n}:1:{length}}}"))
    }),
    bound("substring-from-the-end", Parameter, |v, n, _| {
        let length = safe(v)?.len();
        binding(format!("{n}=QW{v}"), format!("${{{n}: -{length}}}"))
    }),
    bound("letter-by-letter", Parameter, |v, n, _| {
        let letters = unique(safe(v)?);
        let spelling: String = v
            .chars()
            .filter_map(|l| letters.find(l).map(|place| format!("${{{n}:{place}:1}}")))
            .collect();
        binding(format!("{n}={letters}"), spelling)
    }),
    bound("lowered", Parameter, |v, n, _| {
        let v = safe(v).filter(|v| *v == v.to_lowercase() && *v != v.to_uppercase())?;
        binding(format!("{n}={}", v.to_uppercase()), format!("${{{n},,}}"))
    }),
    bound("first-letter-lowered", Parameter, |v, n, _| {
        let v = safe(v).filter(|v| v.starts_with(|l: char| l.is_ascii_lowercase()))?;
        let (first, rest) = v.split_at_checked(1)?;
        binding(
            format!("{n}={}{rest}", first.to_uppercase()),
            format!("${{{n},}}"),
        )
    }),
    bound("lowered-by-operator", Parameter, |v, n, _| {
        let v = safe(v).filter(|v| *v == v.to_lowercase() && *v != v.to_uppercase())?;
        binding(format!("{n}={}", v.to_uppercase()), format!("${{{n}@L}}"))
    }),
    bound("escapes-by-operator", Parameter, |v, n, _| {
        let hex: String = safe(v)?
            .chars()
            .map(|l| format!("\\x{:02x}", l as u32))
            .collect();
        binding(format!("{n}='{hex}'"), format!("${{{n}@E}}"))
    }),
    bound("array-element", Array, |v, n, _| {
        binding(format!("{n}=(Q {})", safe(v)?), format!("${{{n}[1]}}"))
    }),
    bound("array-last-element", Array, |v, n, _| {
        binding(format!("{n}=(Q {})", safe(v)?), format!("${{{n}[-1]}}"))
    }),
    bound("array-named-element", Array, |v, n, _| {
        binding(
            format!("declare -A {n}=([k]={})", safe(v)?),
            format!("${{{n}[k]}}"),
        )
    }),
    bound("array-joined", Array, |v, n, _| {
        let letters: Vec<String> = safe(v)?.chars().map(String::from).collect();
        binding(
            format!(
                "{n}=({}); printf -v {n}j %s \"${{{n}[@]}}\"",
                letters.join(" ")
            ),
            format!("${n}j"),
        )
    }),
    bound("array-picked-letters", Array, |v, n, _| {
        let letters = unique(safe(v)?);
        let list: Vec<String> = letters.chars().map(String::from).collect();
        let spelling: String = v
            .chars()
            .filter_map(|l| letters.find(l).map(|place| format!("${{{n}[{place}]}}")))
            .collect();
        binding(format!("{n}=({})", list.join(" ")), spelling)
    }),
    bound("array-read-from-lines", Array, |v, n, _| {
        binding(
            format!("mapfile -t {n} <<< {}", safe(v)?),
            format!("${{{n}[0]}}"),
        )
    }),
    bound("array-read-from-words", Array, |v, n, _| {
        binding(
            format!("read -ra {n} <<< 'Q {}'", safe(v)?),
            format!("${{{n}[1]}}"),
        )
    }),
    bound("positional-set", Array, |v, _, _| {
        binding(format!("set -- {}", safe(v)?), "$1".to_owned())
    }),
    command("all-words-in-an-array", Array, |simple, n| {
        let words = bare(simple)?;
        Some(reference(simple, &format!("\"${{{n}[@]}}\"")).after(format!("{n}=({words})")))
    }),
    command("all-words-in-a-slice", Array, |simple, n| {
        let words = bare(simple)?;
        Some(reference(simple, &format!("\"${{{n}[@]:1}}\"")).after(format!("{n}=(Q {words})")))
    }),
    command("all-words-positional", Array, |simple, _| {
        let words = bare(simple)?;
        Some(reference(simple, "\"$@\"").after(format!("set -- {words}")))
    }),
    command("all-words-in-a-variable", Variable, |simple, n| {
        let values = values(simple)?;
        Some(reference(simple, &format!("${n}")).after(format!("{n}={}", single_quoted(&values))))
    }),
    command("words-split-by-ifs", Variable, |simple, n| {
        let values = values(simple)?;
        let joined = values.replace(' ', ",");
        Some(reference(simple, &format!("${n}")).after(format!("IFS=,; {n}={joined}")))
    }),
    bound("position-by-arithmetic", Arithmetic, |v, n, _| {
        let length = safe(v)?.len();
        binding(
            format!("{n}=Q{v}W"),
            format!("${{{n}:$((2-1)):$(({length}*1))}}"),
        )
    }),
    bound("letters-at-computed-places", Arithmetic, |v, n, _| {
        let letters = unique(safe(v)?);
        let spelling: String = v
            .chars()
            .filter_map(|l| {
                letters
                    .find(l)
                    .map(|place| format!("${{{n}:{}-{}:1}}", place.saturating_add(3), 3))
            })
            .collect();
        binding(format!("{n}={letters}"), spelling)
    }),
    bound("element-at-a-computed-place", Arithmetic, |v, n, _| {
        binding(format!("{n}=(Q {})", safe(v)?), format!("${{{n}[7%3]}}"))
    }),
    bound("letters-from-numbers", Arithmetic, |v, _, _| {
        let octal: String = safe(v)?
            .chars()
            .map(|l| format!("\\\\$(printf %o $(({}+1)))", (l as u32).saturating_sub(1)))
            .collect();
        binding(String::new(), format!("$(printf \"{octal}\")"))
    }),
    bound("element-by-condition", Arithmetic, |v, n, _| {
        binding(
            format!("{n}=(Q {})", safe(v)?),
            format!("${{{n}[1>0?1:0]}}"),
        )
    }),
    command("all-words-in-braces", Brace, |simple, _| {
        let words: Vec<&str> = simple.words.iter().map(Word::value).collect();
        if words.len() < 2 || words.iter().any(|w| safe(w).is_none()) {
            return None;
        }
        Some(reference(simple, &format!("{{{}}}", words.join(","))))
    }),
    command("arguments-in-braces", Brace, |simple, _| {
        let (program, rest) = simple.words.split_first()?;
        let rest: Vec<&str> = rest.iter().map(Word::value).collect();
        if rest.len() < 2 || rest.iter().any(|w| safe(w).is_none()) {
            return None;
        }
        Some(reference(
            simple,
            &format!("{} {{{}}}", program.spelling(), rest.join(",")),
        ))
    }),
    bound("letter-from-a-range", Brace, |v, _, s| {
        let letters = safe(v)?;
        let place = s.pick(letters.len());
        let letter = letters
            .chars()
            .nth(place)
            .filter(char::is_ascii_lowercase)?;
        let (a, b) = (
            letters.get(..place)?,
            letters.get(place.saturating_add(1)..)?,
        );
        binding(String::new(), format!("{a}{{{letter}..{letter}}}{b}"))
    }),
    bound("name-as-single-letter-class", Glob, |v, _, _| {
        let (dir, name) = there(v)?
            .rsplit_once('/')
            .filter(|(_, name)| !name.is_empty())?;
        let (first, rest) = first_letter(name)?;
        binding(String::new(), format!("{dir}/[{first}]{rest}"))
    }),
    bound("name-with-class-at-the-end", Glob, |v, _, _| {
        let name = there(v)?
            .rsplit_once('/')
            .map(|(_, name)| name)
            .filter(|n| n.len() > 1)?;
        let last = name.get(name.len().checked_sub(1)?..)?;
        binding(
            String::new(),
            format!("{}[{last}]", v.get(..v.len().checked_sub(1)?)?),
        )
    }),
    bound("name-with-range", Glob, |v, _, _| {
        let (dir, name) = there(v)?
            .rsplit_once('/')
            .filter(|(_, name)| !name.is_empty())?;
        let (first, rest) = name.split_at_checked(1)?;
        first.chars().next().filter(char::is_ascii_lowercase)?;
        binding(String::new(), format!("{dir}/[{first}-{first}]{rest}"))
    }),
    bound("directory-with-class", Glob, |v, _, _| {
        let rest = there(v)?.strip_prefix('/')?;
        let (dir, below) = rest.split_once('/')?;
        let (first, more) = first_letter(dir)?;
        binding(String::new(), format!("/[{first}]{more}/{below}"))
    }),
    bound("every-directory-with-class", Glob, |v, _, _| {
        let rest = there(v)?
            .strip_prefix('/')
            .filter(|rest| !rest.is_empty())?;
        let parts = rest.split('/').map(|part| match first_letter(part) {
            Some((first, more)) => format!("[{first}]{more}"),
            None => part.to_owned(),
        });
        let parts: Vec<String> = parts.collect();
        binding(String::new(), format!("/{}", parts.join("/")))
    }),
    bound("home-by-tilde", PathForm, |v, _, _| {
        binding(
            String::new(),
            format!(
                "~{}",
                v.strip_prefix("/home/u").filter(|r| safe(r).is_some())?
            ),
        )
    }),
    bound("home-by-user", PathForm, |v, _, _| {
        binding(
            String::new(),
            format!(
                "~u{}",
                v.strip_prefix("/home/u").filter(|r| safe(r).is_some())?
            ),
        )
    }),
    bound("home-by-variable", PathForm, |v, _, _| {
        binding(
            String::new(),
            format!(
                "$HOME{}",
                v.strip_prefix("/home/u").filter(|r| safe(r).is_some())?
            ),
        )
    }),
    bound("directory-in-a-variable", PathForm, |v, n, _| {
        let (dir, name) = safe(v)?
            .rsplit_once('/')
            .filter(|(d, m)| !d.is_empty() && !m.is_empty())?;
        binding(format!("{n}={dir}"), format!("${n}/{name}"))
    }),
    command("directory-entered-first", PathForm, |simple, _| {
        let place = simple
            .words
            .iter()
            .skip(1)
            .position(|w| w.value().starts_with('/'))?;
        let place = place.saturating_add(1);
        if simple
            .words
            .iter()
            .filter(|w| w.value().starts_with('/'))
            .count()
            != 1
        {
            return None;
        }
        let (dir, name) = safe(simple.words.get(place)?.value())?.rsplit_once('/')?;
        let dir = if dir.is_empty() { "/" } else { dir };
        let mut moved = simple.clone();
        *moved.words.get_mut(place)? = Word::plain(&format!("./{name}"));
        Some(Script::Simple(moved).after(format!("cd {dir}")))
    }),
];

/// The letters of `v`, each once.
fn unique(v: &str) -> String {
    let mut out = String::new();
    for letter in v.chars() {
        if !out.contains(letter) {
            out.push(letter);
        }
    }
    out
}

/// The words as they are written, if they are more than one.
fn bare(simple: &Simple) -> Option<String> {
    let words: Vec<&str> = simple.words.iter().map(Word::spelling).collect();
    (words.len() > 1 && simple.gap.is_none()).then(|| words.join(" "))
}

/// The words' values, if none needs quotes.
fn values(simple: &Simple) -> Option<String> {
    let words: Option<Vec<&str>> = simple.words.iter().map(|w| safe(w.value())).collect();
    let words = words?;
    (words.len() > 1).then(|| words.join(" "))
}

/// The same command, its words replaced by one reference.
fn reference(simple: &Simple, spelling: &str) -> Script {
    let word = Word::spelled("", spelling.to_owned());
    Simple {
        words: vec![word],
        gap: None,
        ..simple.clone()
    }
    .into()
}
