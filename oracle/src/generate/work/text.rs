//! Files as people have them: code, prose, settings.

use super::draw::Draw;

const WORDS: &[&str] = &[
    "apple", "basket", "candle", "drawer", "engine", "feather", "garden", "hammer", "island",
    "jacket", "kettle", "ladder", "mirror", "needle", "orange", "pencil",
];

/// A word.
pub fn word(draw: &mut Draw) -> &'static str {
    draw.one(WORDS)
}

/// Some lines of one kind of file, and its ending.
pub fn lines(draw: &mut Draw) -> (Vec<String>, &'static str) {
    let count = 3 + draw.below(14);
    let kind = draw.below(5);
    let indent = draw.one(&["  ", "    ", "\t"]);
    let lines = (0..count)
        .map(|at| {
            let (one, two, number) = (word(draw), word(draw), draw.below(90));
            match (kind, at % 4) {
                (0, 0) => format!("def {one}_{number}({two}):"),
                (0, 3) => String::new(),
                (0, _) => format!("{indent}{one} = {two}({number})"),
                (1, 0) => format!("int {one}_{number}(int {two}) {{"),
                (1, 3) => "}".to_owned(),
                (1, _) => format!("{indent}{one} += \"{two}\" + {number};"),
                (2, 0) => format!("## {one} \u{2013} {two}"),
                (2, 1) => format!("The \u{201c}{one}\u{201d} isn\u{2019}t a {two}\u{2026}"),
                (2, _) => format!("- {one},  {two}; {number}"),
                (3, 0) => format!("[{one}.{two}]"),
                (3, _) => format!("{one} = {number}"),
                (_, 1) => format!("{indent}{indent}{one}\t{two}"),
                (_, _) => format!("{one} {two} {number}  "),
            }
        })
        .collect();
    let ending = draw.one(&["txt", "c", "md", "cfg", "log"]);
    (lines, ending)
}

/// The lines as a file's text.
pub fn joined(draw: &mut Draw, lines: &[String]) -> String {
    let between = if draw.chance(8) { "\r\n" } else { "\n" };
    let last = if draw.chance(12) { "" } else { between };
    format!("{}{last}", lines.join(between))
}

/// Some lines next to each other.
pub fn block(draw: &mut Draw, lines: &[String]) -> Vec<String> {
    let from = draw.below(lines.len());
    let many = 1 + draw.below(4);
    lines.iter().skip(from).take(many).cloned().collect()
}

/// The block as it is to be: a word changed, a line more, a line less.
pub fn changed(draw: &mut Draw, block: &[String]) -> Vec<String> {
    let mut new = block.to_vec();
    let at = draw.below(new.len());
    match draw.below(5) {
        0 if new.len() > 1 => {
            new.remove(at);
        }
        1 => new.insert(at, format!("{} added", word(draw))),
        2 => new.push(String::new()),
        _ => {
            if let Some(line) = new.get_mut(at) {
                *line = format!("{line} {}", word(draw));
            }
        }
    }
    new
}

/// The block as somebody quotes it from memory.
pub fn quoted(draw: &mut Draw, block: &[String]) -> Vec<String> {
    let how = draw.below(11);
    let last = block.len().saturating_sub(1);
    block
        .iter()
        .enumerate()
        .map(|(at, line)| {
            let rest = line.trim_start();
            let indent = line.get(..line.len() - rest.len()).unwrap_or_default();
            match how {
                0 | 1 => line.clone(),
                2 => rest.to_owned(),
                3 => format!("{indent}  {rest}"),
                4 => line.trim_end().to_owned(),
                5 => line.replace(' ', "  "),
                6 => line
                    .replace(['\u{201c}', '\u{201d}'], "\"")
                    .replace('\u{2019}', "'")
                    .replace('\u{2026}', "...")
                    .replace('\u{2013}', "-"),
                7 if at > 0 && at < last => format!("{line}{}", word(draw)),
                8 if at == 0 || at == last => format!(" {} ", line.trim()),
                9 => line.replace('\t', "\\t").replace('"', "\\\""),
                10 => line.replacen('a', "o", 1),
                _ => line.clone(),
            }
        })
        .collect()
}
