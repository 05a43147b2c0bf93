//! What counts, key by key, and where that is written.

use serde_json::{Value, json};

use super::{held, of_the_users, wrong};
use crate::{
    ambient::{self, Places},
    cli::{Trouble, as_json::print_json},
    config::{self, edit::Edit, keys},
    exit,
    text::rows,
};

/// One key as it counts.
struct Row {
    key: &'static keys::Key,
    value: String,
    from: From,
    /// Why the machine does not hold to it.
    not_held: Option<&'static str>,
}

/// Where a value is written.
#[derive(Clone, Copy)]
enum From {
    Usual,
    User,
    Administrator,
    Both,
}

impl From {
    const fn in_words(self) -> &'static str {
        match self {
            From::Usual => "usual",
            From::User => "set by you",
            From::Administrator => "set by the administrator",
            From::Both => "set by you; the administrator's counts where it is stricter",
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            From::Usual => "usual",
            From::User => "user",
            From::Administrator => "administrator",
            From::Both => "both",
        }
    }
}

impl Row {
    fn origin_in_words(&self) -> String {
        match &self.not_held {
            Some(why) => format!("{}; {why}", self.from.in_words()),
            None => self.from.in_words().to_owned(),
        }
    }

    fn as_json(&self) -> Value {
        json!({
            "key": self.key.name,
            "value": self.value,
            "from": self.from.as_str(),
            "usual": self.key.usual,
            "about": self.key.about,
            "not_held": self.not_held,
        })
    }
}

/// Shows every key, or one, or those of a table.
pub(super) fn show(places: &Places, only: Option<&str>, is_json: bool) -> Result<(), Trouble> {
    let is_shown = |key: &&keys::Key| only.is_none_or(|only| key.is(only));
    if let Some(name) = only
        && !keys::KEYS.iter().any(|key| is_shown(&key))
    {
        return Err((keys::unknown(name), exit::USAGE));
    }
    let file = &places.config_file;
    let user = Edit::open(file).map_err(of_the_users)?;
    config::read_administrators(&places.admin_config_file).map_err(wrong)?;
    let admin = match places.admin_config_file.exists() {
        true => Some(Edit::open(&places.admin_config_file).map_err(wrong)?),
        false => None,
    };
    let of_groups = keys::KEYS.iter().filter(is_shown).any(held::concerns);
    let lacking = match of_groups {
        true => held::lacking(&held::rows()),
        false => held::Lacking::default(),
    };
    let rows: Vec<Row> = keys::KEYS
        .iter()
        .filter(is_shown)
        .map(|key| {
            let mine = user.get(key.name);
            let theirs = admin.as_ref().and_then(|admin| admin.get(key.name));
            let (value, from) = match (mine, theirs) {
                (Some(mine), None) => (mine, From::User),
                (None, Some(theirs)) => (theirs, From::Administrator),
                (Some(mine), Some(_)) => (mine, From::Both),
                (None, None) => (key.usual.to_owned(), From::Usual),
            };
            Row {
                key,
                value,
                from,
                not_held: lacking.not_held(key),
            }
        })
        .collect();
    if is_json {
        for row in &rows {
            print_json(&row.as_json());
        }
        return Ok(());
    }
    let place = if file.exists() {
        ""
    } else {
        ", which does not exist yet"
    };
    println!("# {}{place}", file.display());
    let columns = ambient::screen().columns_of(&std::io::stdout());
    for line in lines(&rows, columns) {
        println!("{}", rows::told(&line, columns));
    }
    Ok(())
}

/// A line for each key, or, where a terminal is too narrow for that, two.
fn lines(rows: &[Row], columns: Option<usize>) -> Vec<String> {
    let wide: Vec<String> = rows
        .iter()
        .map(|row| {
            let (name, about, from) = (row.key.name, row.key.about, row.origin_in_words());
            format!("{name:<42} {:<28} # {about} ({from})", row.value)
        })
        .collect();
    let fits = |line: &String| columns.is_none_or(|columns| line.chars().count() <= columns);
    if wide.iter().all(fits) {
        return wide;
    }
    rows.iter()
        .map(|row| {
            let (name, about, from) = (row.key.name, row.key.about, row.origin_in_words());
            format!("{name}  {}  ({from})\n    {about}", row.value)
        })
        .collect()
}
