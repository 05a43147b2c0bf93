//! Made-up documents: the kinds of text a project holds.

use super::draw::Draw;

const WORDS: &[&str] = &[
    "alpha", "beta", "count", "delta", "entry", "field", "group", "handle", "index", "job", "key",
    "limit", "merge", "node", "order", "parse", "queue", "rate", "score", "token", "update",
    "value", "width", "yield_", "zone",
];

/// A word of the kind names are made of.
pub fn word(draw: &mut Draw) -> anyhow::Result<String> {
    Ok(draw.one(WORDS)?.to_owned())
}

/// What a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A module of a language with significant blanks.
    Script,
    /// Code in braces.
    Code,
    /// `key = value` under headings.
    Settings,
    /// Sentences, with typographic letters.
    Prose,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Script, Self::Code, Self::Settings, Self::Prose];

    /// An ending of a file of this kind that nothing checks.
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Script => "txt",
            Self::Code => "c",
            Self::Settings => "cfg",
            Self::Prose => "md",
        }
    }
}

/// The lines of a document, without line ends.
pub fn lines(draw: &mut Draw, kind: Kind) -> anyhow::Result<Vec<String>> {
    let blocks = 1 + draw.below(3)?;
    let mut lines = Vec::new();
    for _ in 0..blocks {
        match kind {
            Kind::Script => script(draw, &mut lines)?,
            Kind::Code => code(draw, &mut lines)?,
            Kind::Settings => settings(draw, &mut lines)?,
            Kind::Prose => prose(draw, &mut lines)?,
        }
    }
    Ok(lines)
}

fn script(draw: &mut Draw, lines: &mut Vec<String>) -> anyhow::Result<()> {
    let (name, arg) = (word(draw)?, word(draw)?);
    let indent = draw.one(&["    ", "  ", "\t"])?;
    lines.push(format!("def {name}_{}({arg}):", draw.below(90)?));
    for _ in 0..1 + draw.below(3)? {
        let target = word(draw)?;
        lines.push(match draw.below(5)? {
            0 => format!("{indent}{target} = {arg} + {}", draw.below(100)?),
            1 => format!("{indent}print('{target}:', {arg})"),
            2 => format!("{indent}{target} = \"{}\"  # {}", word(draw)?, word(draw)?),
            3 => format!("{indent}if {arg}:\n{indent}{indent}return {target}"),
            _ => format!("{indent}{target}.append({arg}[{}])", draw.below(9)?),
        });
    }
    lines.push(format!("{indent}return {arg}"));
    if draw.chance(60)? {
        lines.push(String::new());
    }
    let flat: Vec<String> = lines
        .drain(..)
        .flat_map(|line| line.split('\n').map(str::to_owned).collect::<Vec<_>>())
        .collect();
    *lines = flat;
    Ok(())
}

fn code(draw: &mut Draw, lines: &mut Vec<String>) -> anyhow::Result<()> {
    let indent = draw.one(&["    ", "\t", "  "])?;
    lines.push(format!(
        "static int {}_{}(int {})",
        word(draw)?,
        draw.below(50)?,
        word(draw)?
    ));
    lines.push("{".to_owned());
    for _ in 0..1 + draw.below(4)? {
        lines.push(match draw.below(4)? {
            0 => format!("{indent}{} = {};", word(draw)?, draw.below(1000)?),
            1 => format!(
                "{indent}if ({} > {}) {{ {}(); }}",
                word(draw)?,
                draw.below(9)?,
                word(draw)?
            ),
            2 => format!(
                "{indent}log(\"{} \\\"{}\\\"\\n\");",
                word(draw)?,
                word(draw)?
            ),
            _ => format!("{indent}/* {}  {} */", word(draw)?, word(draw)?),
        });
    }
    lines.push(format!("{indent}return {};", draw.below(3)?));
    lines.push("}".to_owned());
    Ok(())
}

fn settings(draw: &mut Draw, lines: &mut Vec<String>) -> anyhow::Result<()> {
    lines.push(format!("[{}.{}]", word(draw)?, word(draw)?));
    for _ in 0..1 + draw.below(4)? {
        let pad = draw.one(&["", " ", "   "])?;
        lines.push(format!("{}{pad}={pad}{}", word(draw)?, draw.below(500)?));
    }
    if draw.chance(50)? {
        lines.push(format!("; {}", word(draw)?));
    }
    Ok(())
}

fn prose(draw: &mut Draw, lines: &mut Vec<String>) -> anyhow::Result<()> {
    lines.push(format!("# {} and {}", word(draw)?, word(draw)?));
    lines.push(String::new());
    for _ in 0..1 + draw.below(4)? {
        let mark = draw.one(&["\u{2014}", "--", "\u{2013}", "-", "\u{2026}"])?;
        let (open, close) = draw.one(&[
            ("\u{201c}", "\u{201d}"),
            ("\"", "\""),
            ("\u{2018}", "\u{2019}"),
        ])?;
        lines.push(match draw.below(4)? {
            0 => format!(
                "The {} {mark} as the {} {mark} is {}.",
                word(draw)?,
                word(draw)?,
                word(draw)?
            ),
            1 => format!("Call it {open}{}{close} for short.", word(draw)?),
            2 => format!(
                "- {}: caf\u{e9}, na\u{ef}ve, \u{4f60}\u{597d}, {}",
                word(draw)?,
                word(draw)?
            ),
            _ => format!("It\u{2019}s the {}'s {}.", word(draw)?, word(draw)?),
        });
    }
    Ok(())
}

/// How the lines of a document are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The line end.
    pub end: &'static str,
    /// Whether the last line has one.
    pub closed: bool,
    /// Whether a byte order mark stands before the first line.
    pub mark: bool,
}

/// Mostly plain; sometimes of another system.
pub fn form(draw: &mut Draw) -> anyhow::Result<Form> {
    Ok(Form {
        end: if draw.chance(12)? { "\r\n" } else { "\n" },
        closed: !draw.chance(15)?,
        mark: draw.chance(4)?,
    })
}

/// The document as a file's text.
pub fn text(lines: &[String], form: Form) -> String {
    let mut text = String::from(if form.mark { "\u{feff}" } else { "" });
    text.push_str(&lines.join(form.end));
    if form.closed {
        text.push_str(form.end);
    }
    text
}

/// Some consecutive lines.
pub fn block(draw: &mut Draw, lines: &[String]) -> anyhow::Result<Vec<String>> {
    let start = draw.below(lines.len())?;
    let length = 1 + draw.below(4)?;
    Ok(lines.iter().skip(start).take(length).cloned().collect())
}

/// What is to stand in the place of a block.
pub fn changed(draw: &mut Draw, block: &[String]) -> anyhow::Result<Vec<String>> {
    let mut new = block.to_vec();
    let at = draw.below(new.len())?;
    match draw.below(6)? {
        0 if new.len() > 1 => {
            new.remove(at);
        }
        1 => {
            let indent: String = new
                .get(at)
                .map(|line| {
                    line.chars()
                        .take_while(|letter| letter.is_whitespace())
                        .collect()
                })
                .unwrap_or_default();
            new.insert(at + 1, format!("{indent}{} added", word(draw)?));
        }
        2 => {
            if let Some(line) = new.get_mut(at) {
                line.push_str(" more");
            }
        }
        _ => {
            let word = word(draw)?;
            if let Some(line) = new.get_mut(at) {
                *line = match line.find('=') {
                    Some(place) => format!("{}= {word}", line.get(..place).unwrap_or_default()),
                    None => line.replacen(['a', 'e'], &word, 1),
                };
            }
        }
    }
    Ok(new)
}
