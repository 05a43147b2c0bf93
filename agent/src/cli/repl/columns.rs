//! The columns of the help and of what is said at the start, in a terminal of any width.

use crate::text::rows::folded;

/// How wide the column of forms is.
const COLUMN: usize = 18;
/// In a terminal narrower than this there is no second column.
const COLUMNS_OF_TWO: usize = 60;
/// How far what a command does is moved in below its form there.
const BELOW: usize = 6;

/// A form in its column, and what the command does; what a long one does stands below it.
#[must_use]
pub fn help(form: &str, about: &str, columns: Option<usize>) -> (String, String) {
    let is_narrow = columns.is_some_and(|columns| columns < COLUMNS_OF_TWO);
    let indent = if is_narrow { BELOW } else { COLUMN + 3 };
    let column = if is_narrow || form.len() > COLUMN {
        format!("{}\n{:indent$}", parted(form, columns), "")
    } else {
        format!("{form:<COLUMN$} ")
    };
    (column, folded(about, columns, indent))
}

/// A form in rows that end where one of its words does.
fn parted(form: &str, columns: Option<usize>) -> String {
    // It begins behind two columns, and the last one stays free.
    let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(BELOW + 1));
    let (mut rows, mut at) = (String::new(), 0);
    for word in form.split_inclusive(['|', ' ']) {
        if at > 0 && at + word.trim_end().len() > room {
            rows.truncate(rows.trim_end().len());
            rows.push_str(&format!("\n{:BELOW$}", ""));
            at = 0;
        }
        rows.push_str(word);
        at += word.len();
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::{super::words::COMMANDS, help};

    #[test]
    fn what_a_command_does_begins_in_one_column_of_its_own_or_below() {
        for (form, about) in COMMANDS {
            for (columns, indent) in [(Some(100), 21), (None, 21), (Some(40), 6)] {
                let (column, _) = help(form, about, columns);
                let column = format!("  {column}");
                let last = column.lines().last().unwrap_or_default();
                assert_eq!(last.len(), indent, "{column}");
            }
        }
    }

    #[test]
    fn no_row_of_the_help_is_wider_than_the_terminal() {
        for (form, about) in COMMANDS {
            for columns in [40, 60, 80] {
                let (column, about) = help(form, about, Some(columns));
                let rows = format!("  {column}{about}");
                assert!(rows.lines().all(|row| row.len() < columns), "{rows}");
                assert_eq!(
                    column.split_whitespace().collect::<String>(),
                    form.split_whitespace().collect::<String>(),
                );
            }
        }
    }
}
