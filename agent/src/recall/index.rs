//! Full-text search in what was said, by SQLite's FTS5 in memory.
//!
//! The index is made for one search and holds what the searcher may see and nothing else:
//! what is not in it cannot be found, not by a word's rank either. Its tables have the shape
//! of Hermes' (`hermes_state.FTS_SQL`), because a text's rank depends on every text there is.

use rusqlite::{Connection, Statement, params_from_iter, types::Value as Bound};

use super::{
    earlier::{Earlier, Said},
    query::Search,
};

/// Rows that are looked at for conversations that match.
const ROWS_MAX: usize = 300;

/// In which order what matches comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// What fits best first.
    Rank,
    /// What was said last first.
    Newest,
    /// What was said first first.
    Oldest,
}

/// A message that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Which conversation, by the place it was given.
    pub conversation: usize,
    /// Which message, by its place in it.
    pub message: usize,
    /// The words around what matches.
    pub excerpt: String,
}

/// What was said, ready to be searched.
pub struct Index(Connection);

impl Index {
    /// Of these conversations, each by a place, for this search.
    ///
    /// # Errors
    /// The memory does not suffice.
    pub fn of(
        all: impl Iterator<Item = (usize, Earlier)>,
        search: &Search,
    ) -> rusqlite::Result<Self> {
        let mut connection = Connection::open_in_memory()?;
        connection.execute_batch(
            "CREATE TABLE said (
                id INTEGER PRIMARY KEY, conversation INTEGER, place INTEGER, role TEXT,
                content TEXT, tool_name TEXT, tool_calls TEXT, at REAL
            );
            CREATE VIEW texts AS SELECT id,
                content || ' ' || coalesce(tool_name, '') || ' ' || coalesce(tool_calls, '') AS content
                FROM said;",
        )?;
        let tokenizer = match search {
            Search::Words(_) => Some("unicode61"),
            Search::Trigrams { .. } => Some("trigram"),
            Search::Parts(_) => None,
        };
        if let Some(tokenizer) = tokenizer {
            // The texts are there once, and not a second time in the index.
            connection.execute_batch(&format!(
                "CREATE VIRTUAL TABLE words USING fts5(
                    content, content='texts', content_rowid='id', tokenize='{tokenizer}'
                );"
            ))?;
        }
        let filling = connection.transaction()?;
        {
            let mut said = filling.prepare(
                "INSERT INTO said (conversation, place, role, content, tool_name, tool_calls, at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?;
            let mut words = match tokenizer {
                Some(_) => Some(filling.prepare(
                    "INSERT INTO words (rowid, content) VALUES
                     (?1, ?2 || ' ' || coalesce(?3, '') || ' ' || coalesce(?4, ''))",
                )?),
                None => None,
            };
            for (conversation, earlier) in all {
                for (place, one) in earlier.said.iter().enumerate() {
                    add(&mut said, words.as_mut(), (conversation, place), one)?;
                }
            }
        }
        filling.commit()?;
        Ok(Self(connection))
    }

    /// What matches, of these roles. A query that is none in FTS5's language matches nothing.
    ///
    /// # Errors
    /// The memory does not suffice.
    pub fn search(
        &self,
        search: &Search,
        roles: &[String],
        order: Order,
    ) -> rusqlite::Result<Vec<Hit>> {
        match search {
            Search::Words(query) => Ok(self.matching(query, roles, order)?.unwrap_or_default()),
            Search::Trigrams { query, parts } => match self.matching(query, roles, order)? {
                Some(hits) => Ok(hits),
                None => self.holding(parts, roles),
            },
            Search::Parts(parts) => self.holding(parts, roles),
        }
    }

    /// By FTS5; `None` if the query is none.
    fn matching(
        &self,
        query: &str,
        roles: &[String],
        order: Order,
    ) -> rusqlite::Result<Option<Vec<Hit>>> {
        let order = match order {
            Order::Rank => "rank",
            Order::Newest => "at DESC, rank",
            Order::Oldest => "at ASC, rank",
        };
        let sql = format!(
            "SELECT conversation, place, snippet(words, 0, '>>>', '<<<', '...', 40)
             FROM words JOIN said ON said.id = words.rowid
             WHERE words MATCH ? AND role IN ({}) ORDER BY {order} LIMIT {ROWS_MAX}",
            marks(roles.len())
        );
        let mut statement = self.0.prepare(&sql)?;
        let bound = std::iter::once(query.to_owned())
            .chain(roles.iter().cloned())
            .map(Bound::Text);
        match hits(&mut statement, bound) {
            Ok(hits) => Ok(Some(hits)),
            Err(rusqlite::Error::SqliteFailure(error, _))
                if error.code != rusqlite::ErrorCode::OutOfMemory =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// By parts of texts, the newest first.
    fn holding(&self, parts: &[String], roles: &[String]) -> rusqlite::Result<Vec<Hit>> {
        let one = "(content LIKE ? ESCAPE '\\' OR tool_name LIKE ? ESCAPE '\\' OR tool_calls LIKE ? ESCAPE '\\')";
        let sql = format!(
            "SELECT conversation, place, substr(content, max(1, instr(content, ?) - 40), 120)
             FROM said WHERE ({}) AND role IN ({}) ORDER BY at DESC LIMIT {ROWS_MAX}",
            vec![one; parts.len()].join(" OR "),
            marks(roles.len())
        );
        let mut statement = self.0.prepare(&sql)?;
        let like = |part: &String| {
            let escaped = part
                .replace('\\', "\\\\")
                .replace('%', "\\%")
                .replace('_', "\\_");
            format!("%{escaped}%")
        };
        let bound = parts
            .first()
            .cloned()
            .into_iter()
            .chain(parts.iter().flat_map(|part| vec![like(part); 3]))
            .chain(roles.iter().cloned())
            .map(Bound::Text);
        hits(&mut statement, bound)
    }
}

fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

fn add(
    said: &mut Statement<'_>,
    words: Option<&mut Statement<'_>>,
    (conversation, place): (usize, usize),
    one: &Said,
) -> rusqlite::Result<()> {
    let calls = one.calls_as_text();
    let id = said.insert(rusqlite::params![
        i64::try_from(conversation).unwrap_or(i64::MAX),
        i64::try_from(place).unwrap_or(i64::MAX),
        one.role.as_str(),
        one.text,
        one.tool,
        calls,
        one.seconds(),
    ])?;
    if let Some(words) = words {
        words.execute(rusqlite::params![id, one.text, one.tool, calls])?;
    }
    Ok(())
}

fn hits(
    statement: &mut Statement<'_>,
    bound: impl Iterator<Item = Bound>,
) -> rusqlite::Result<Vec<Hit>> {
    let rows = statement.query_map(params_from_iter(bound), |row| {
        let place = |at: usize| -> rusqlite::Result<usize> {
            Ok(usize::try_from(row.get::<_, i64>(at)?).unwrap_or(usize::MAX))
        };
        // A text that is cut in the midst of a letter is told without the rest of it.
        let excerpt = row.get_ref(2)?.as_bytes_or_null()?.unwrap_or_default();
        Ok(Hit {
            conversation: place(0)?,
            message: place(1)?,
            excerpt: String::from_utf8_lossy(excerpt).into_owned(),
        })
    })?;
    rows.collect()
}
