//! Every limit of the core, by name.
//!
//! A number that bounds something lives here, so that related limits can be
//! compared at compile time and a reader finds them all in one place.

use crate::time::Millis;

/// The longest relative path, in bytes (the kernel's limit without its final NUL).
pub const PATH_BYTES_MAX: usize = 4095;
/// The longest single file name, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Capabilities one authority may list after redundant ones are dropped.
pub const CAPS_PER_AUTHORITY_MAX: usize = 1 << 18;
/// Capabilities one standing grant may list: a person has to read them all.
pub const CAPS_PER_STANDING_MAX: usize = 64;
/// Grants one session may ever make; ids are never reused.
pub const GRANTS_MAX: usize = 1 << 20;
/// How many times a grant may be passed on.
pub const DERIVATION_DEPTH_MAX: u32 = 32;
/// How deep agents may start agents.
pub const DELEGATION_DEPTH_MAX: u32 = 8;
/// Agents that one agent may have started and not ended.
pub const CHILDREN_PER_AGENT_MAX: usize = 64;
/// Agents one session may ever have, the first one included.
pub const AGENTS_MAX: usize = 1024;
/// Directories one session may know.
pub const DIRS_MAX: usize = 1024;
/// Other names one directory, and what lies in it, may have.
pub const ALIASES_MAX: usize = 1024;
/// Calls that may be running or waiting for an answer at one time.
pub const CALLS_IN_FLIGHT_MAX: usize = 256;
/// Answers one session may remember.
pub const REMEMBERED_MAX: usize = 1024;
/// Proposals that may be open at one time.
pub const PROPOSALS_MAX: usize = 64;
/// Rules people may configure.
pub const CONFIGURED_RULES_MAX: usize = 1024;
/// Effects one call may ask for in one turn: more than a view in memory holds names, so
/// that whatever a command could do there can be decided.
pub const ACTIONS_PER_TURN_MAX: usize = 1 << 18;
/// Items one ledger record spells out; the rest is counted and named by a digest.
pub const ITEMS_PER_RECORD_MAX: usize = 64;
/// Room made for the text of a record before it is written; most are no longer.
pub const RECORD_BYTES_USUAL: usize = 128;
/// Bytes of text a denial or an edge's note keeps.
pub const TEXT_BYTES_MAX: usize = 4096;
/// How long a grant lives when nobody says otherwise, and at most for the scope `session`.
pub const SESSION_GRANT_LIFETIME: Millis = Millis::from_hours(12);
/// The longest life any grant can have: after this, "always" is asked again.
pub const GRANT_LIFETIME_MAX: Millis = Millis::from_hours(30 * 24);
/// How long a question stays open before silence counts as no.
pub const QUESTION_LIFETIME: Millis = Millis::from_minutes(10);
/// How long a call that began before a deadline may go on after it. Nothing
/// new begins after the deadline itself, not even the commit of that call.
pub const DEADLINE_GRACE: Millis = Millis::from_seconds(5);

const _: () = assert!(NAME_BYTES_MAX <= PATH_BYTES_MAX);
const _: () = assert!(SESSION_GRANT_LIFETIME.get() <= GRANT_LIFETIME_MAX.get());
const _: () = assert!(QUESTION_LIFETIME.get() <= SESSION_GRANT_LIFETIME.get());
const _: () = assert!(DEADLINE_GRACE.get() < QUESTION_LIFETIME.get());
const _: () = assert!(CHILDREN_PER_AGENT_MAX < AGENTS_MAX);
const _: () = assert!(DELEGATION_DEPTH_MAX <= DERIVATION_DEPTH_MAX);
const _: () = assert!(CAPS_PER_STANDING_MAX <= CAPS_PER_AUTHORITY_MAX);
const _: () = assert!(ACTIONS_PER_TURN_MAX <= CAPS_PER_AUTHORITY_MAX);
const _: () = assert!(CALLS_IN_FLIGHT_MAX <= GRANTS_MAX);
