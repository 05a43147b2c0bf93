//! Hermes' `state.db`, read row by row from the private copy.
//!
//! The file may be anybody's: nothing in it is executed, a row is bounded, and
//! what can be read before a damaged page is kept. It must never be opened where
//! it lies.

use std::collections::VecDeque;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::history::{self, Call, Counts, Session, Sink};
use super::note::Note;
use super::source::DATABASE;

/// The schemas of the releases 0.13 to 0.19.
pub const SCHEMAS: std::ops::RangeInclusive<i64> = 11..=22;
/// Longest value of a row that is held, in bytes.
const VALUE_BYTES_MAX: i32 = 64 << 20;
/// Longest result that is kept of a call, in characters.
const RESULT_CHARS_MAX: i64 = 200_000;
/// Calls that may wait for their results at one time.
const WAITING_MAX: usize = 1_024;

/// A database that can be read.
pub struct Database {
    connection: Connection,
    /// Its schema.
    pub schema: i64,
}

impl Database {
    /// Opens the copy.
    ///
    /// # Errors
    /// What is the matter with it, as the report says it.
    pub fn open(path: &Path) -> Result<Self, Note> {
        let broken = |error: rusqlite::Error| {
            Note::partial(
                DATABASE,
                format!("it is damaged, so the sessions in it are missing here: {error}"),
            )
        };
        // The copy may be written: what was not yet merged into it is, here.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(broken)?;
        prepare(&connection).map_err(broken)?;
        let schema = connection
            .query_row("SELECT max(version) FROM schema_version", [], |row| {
                row.get::<_, Option<i64>>(0)
            })
            .map_err(broken)?
            .unwrap_or_default();
        if !SCHEMAS.contains(&schema) {
            let known = format!("{} to {}", SCHEMAS.start(), SCHEMAS.end());
            let why = if schema > *SCHEMAS.end() {
                "a newer Hermes made it, and what its columns mean is not known"
            } else {
                "a Hermes older than 0.13 made it; start a newer one once, which brings it up to date"
            };
            return Err(Note::partial(
                DATABASE,
                format!(
                    "its schema is {schema}, known are {known}, so its sessions are missing here: {why}"
                ),
            ));
        }
        Ok(Self { connection, schema })
    }

    /// Gives every call of every session, the newest session first, to `sink`,
    /// until that wants no more. What was given stays given, whatever happens.
    ///
    /// # Errors
    /// Where reading stopped and why.
    pub fn stream(&self, sink: &mut dyn Sink, counts: &mut Counts) -> Result<(), Note> {
        self.all(sink, counts).map_err(|error| {
            Note::partial(
                DATABASE,
                format!(
                    "reading stopped after {} calls, those are kept: {error}",
                    counts.calls
                ),
            )
        })
    }

    fn all(&self, sink: &mut dyn Sink, counts: &mut Counts) -> rusqlite::Result<()> {
        let cwd = self.column("sessions", "cwd")?;
        let mut sessions = self.connection.prepare(&format!(
            "SELECT id, source, {cwd}, started_at FROM sessions ORDER BY started_at DESC, id"
        ))?;
        let mut messages = self.connection.prepare(&format!(
            "SELECT role, tool_calls, tool_call_id, substr(content, 1, {RESULT_CHARS_MAX}), \
             length(content) > {RESULT_CHARS_MAX} FROM messages \
             WHERE session_id = ?1 AND (tool_calls IS NOT NULL OR role = 'tool') ORDER BY timestamp, id"
        ))?;
        let mut rows = sessions.query([])?;
        while let Some(row) = rows.next()? {
            let session = Session {
                id: text(row, 0)?.unwrap_or_default(),
                source: text(row, 1)?.unwrap_or_default(),
                cwd: text(row, 2)?.filter(|cwd| cwd.starts_with('/')),
                started: moment(row.get_ref(3)?),
            };
            if !one(&mut messages, &session, sink, counts)? {
                break;
            }
        }
        Ok(())
    }

    /// The column, or nothing in its place in releases that lack it.
    fn column(&self, table: &str, name: &'static str) -> rusqlite::Result<&'static str> {
        let found: i64 = self.connection.query_row(
            "SELECT count(*) FROM pragma_table_info(?1) WHERE name = ?2",
            [table, name],
            |row| row.get(0),
        )?;
        Ok(if found > 0 { name } else { "NULL" })
    }
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.execute_batch(
        "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA cache_size = -8192; PRAGMA temp_store = FILE;",
    )
}

/// A text, or bytes in its place; what is no UTF-8 is shown as such.
fn text(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Null => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
    })
}

/// A moment in seconds; 0 where something else stands in its place, which any column may hold:
/// one odd row must not cost all that come after it.
fn moment(value: ValueRef<'_>) -> f64 {
    match value {
        ValueRef::Integer(number) => number as f64,
        ValueRef::Real(number) => number,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .filter(|number: &f64| number.is_finite())
            .unwrap_or_default(),
        ValueRef::Null => 0.0,
    }
}

/// One session; whether more is wanted.
fn one(
    messages: &mut rusqlite::Statement<'_>,
    session: &Session,
    sink: &mut dyn Sink,
    counts: &mut Counts,
) -> rusqlite::Result<bool> {
    let mut waiting: VecDeque<(Call, bool)> = VecDeque::new();
    let mut begun = false;
    let mut rows = messages.query([&session.id])?;
    while let Some(row) = rows.next()? {
        if let Some(calls) = text(row, 1)? {
            let Ok(Value::Array(elements)) = serde_json::from_str(&calls) else {
                let why = "its calls are no list of JSON";
                counts.cannot_read(DATABASE, &place(session), why);
                continue;
            };
            for element in &elements {
                match history::parse(element) {
                    Ok(call) => waiting.push_back((call, false)),
                    Err(why) => counts.cannot_read(DATABASE, &place(session), why),
                }
            }
        } else if let Some(id) = text(row, 2)?
            && let Some((call, done)) = waiting
                .iter_mut()
                .find(|(call, done)| !done && call.id == id)
        {
            call.result = text(row, 3)?;
            call.cut = matches!(row.get_ref(4)?, ValueRef::Integer(1));
            *done = true;
        }
        // In order: a call leaves when all before it have left.
        while waiting.front().is_some_and(|(_, done)| *done) || waiting.len() > WAITING_MAX {
            if !leave(&mut waiting, session, &mut begun, sink, counts) {
                return Ok(false);
            }
        }
    }
    while !waiting.is_empty() {
        if !leave(&mut waiting, session, &mut begun, sink, counts) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Where something is, for whoever looks for it.
fn place(session: &Session) -> String {
    format!("session {}", session.id)
}

fn leave(
    waiting: &mut VecDeque<(Call, bool)>,
    session: &Session,
    begun: &mut bool,
    sink: &mut dyn Sink,
    counts: &mut Counts,
) -> bool {
    let Some((call, _)) = waiting.pop_front() else {
        return true;
    };
    if !*begun {
        *begun = true;
        counts.sessions += 1;
        sink.session(session);
    }
    counts.calls += 1;
    sink.call(call)
}
