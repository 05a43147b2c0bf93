//! A page of a text as it is told: numbered, and no longer than may be told at once.

use serde_json::{Map, Value};

use crate::text::{pytext, redact};

/// Letters of a line that are shown.
pub(super) const LINE_LETTERS_MAX: usize = 2000;
/// Letters of a result at most.
pub(super) const RESULT_LETTERS_MAX: usize = 100_000;

/// A part of a text, with numbers, as far as it may be told at once.
pub(super) struct Paged {
    pub(super) content: String,
    total: i128,
    truncated: bool,
    /// Whether the text has lines after the page.
    goes_on: bool,
    hint: Option<String>,
    next_offset: Option<i128>,
}

impl Paged {
    /// Numbers the lines of a page, of which the first and last place in a text of
    /// `total` lines are said.
    pub(super) fn of(page: &str, total: i128, offset: i128, last: i128) -> Self {
        let numbered: Vec<String> = page
            .split('\n')
            .enumerate()
            .map(|(at, line)| {
                let number = offset.saturating_add(i128::try_from(at).unwrap_or(0));
                if line.chars().count() > LINE_LETTERS_MAX {
                    format!(
                        "{number}|{}... [truncated]",
                        pytext::head(line, LINE_LETTERS_MAX)
                    )
                } else {
                    format!("{number}|{line}")
                }
            })
            .collect();
        let goes_on = total > last;
        let mut paged = Self {
            content: numbered.join("\n"),
            total,
            truncated: goes_on,
            goes_on,
            hint: goes_on.then(|| {
                format!(
                    "Use offset={} to continue reading (showing {offset}-{last} of {total} lines)",
                    last.saturating_add(1)
                )
            }),
            next_offset: None,
        };
        if paged.content.chars().count() > RESULT_LETTERS_MAX {
            paged.cut(offset);
        }
        paged
    }

    /// Leaves out what is more than may be told at once.
    fn cut(&mut self, offset: i128) {
        let (kept, lines) = within_budget(&self.content);
        let next = offset.saturating_add(i128::try_from(lines).unwrap_or(0));
        let mut text = format!(
            "Output truncated at the {}-char read budget after {lines} line(s) (showing lines {offset}-{} of {}). Use \
             offset={next} to continue.",
            pytext::thousands(RESULT_LETTERS_MAX as u64),
            next - 1,
            self.total
        );
        if kept
            .split('\n')
            .next()
            .is_some_and(|line| line.chars().count() >= RESULT_LETTERS_MAX)
        {
            text.push_str(
                " Note: the first line alone exceeded the budget and was clamped mid-line; its remainder is not \
                 retrievable via offset.",
            );
        }
        self.content = kept;
        self.truncated = true;
        self.hint = Some(text);
        self.next_offset = Some(next);
    }

    /// As it is told, with these fields being true and these false.
    pub(super) fn told(self, bytes: u64, yes: &[&str], no: &[&str]) -> Map<String, Value> {
        let mut result = Map::new();
        result.insert(
            "content".into(),
            redact::masked(&self.content, redact::Mask::Sentinel).into(),
        );
        let lines = i64::try_from(self.total).unwrap_or(i64::MAX);
        result.insert("total_lines".into(), lines.into());
        result.insert("file_size".into(), bytes.into());
        result.insert("truncated".into(), self.truncated.into());
        let all = |names: &[&str], value: bool| -> Vec<(String, Value)> {
            let names = names.iter().map(|name| (*name).to_owned());
            names.map(|name| (name, value.into())).collect()
        };
        let hint = self.hint.map(|hint| ("hint".to_owned(), hint.into()));
        result.extend(all(yes, true));
        result.extend(hint.clone().filter(|_| self.goes_on));
        result.extend(all(no, false));
        if let Some(next) = self.next_offset {
            result.insert("truncated_by".into(), "bytes".into());
            let next = i64::try_from(next).unwrap_or(i64::MAX);
            result.insert("next_offset".into(), next.into());
        }
        result.extend(hint);
        result
    }
}

/// As many whole lines as fit, and how many they are; at least a part of one.
fn within_budget(content: &str) -> (String, usize) {
    let mut kept: Vec<&str> = Vec::new();
    let mut used = 0;
    for line in content.split('\n') {
        let length = line.chars().count() + usize::from(!kept.is_empty());
        if used + length > RESULT_LETTERS_MAX {
            break;
        }
        kept.push(line);
        used += length;
    }
    if kept.is_empty() {
        return (pytext::head(content, RESULT_LETTERS_MAX).to_owned(), 1);
    }
    (kept.join("\n"), kept.len())
}
