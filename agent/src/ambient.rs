//! What this package takes from its surroundings without being handed it.
//!
//! The environment, the current directory, the clock, the terminal and
//! randomness enter here and nowhere else; everything further in gets values.
#![expect(
    clippy::disallowed_methods,
    reason = "this file is where ambient authority enters"
)]

mod signals;
mod suspension;

use std::{ffi::OsString, fs::File, io, path::PathBuf};

use hermitcrab_core::{
    standing::{BootId, WallTime},
    time::Instant,
};
use hermitcrab_sandbox::{
    DirCap, Sandbox, SpawnerProgram,
    profile::{self, IsolationProfile},
    spawn::Builder,
};

use crate::{
    given_file::{self, Pipes},
    ports::Clock,
    probe_place::{self, ProbePlace},
    screen::Screen,
    text::{gitconfig, rows::COLUMNS_MIN},
};

pub use self::{
    signals::{Interruptible, Postponed, on_full_file, on_interrupt, on_termination_as_first},
    suspension::{is_nobodys_job, on_going_on, on_suspend},
};

/// Variables that commands inherit, if they are set.
const INHERITED: [&str; 6] = ["LANG", "LC_ALL", "TERM", "TZ", "USER", "LOGNAME"];
/// Taken where the kernel does not say: what is made is its owner's alone.
const UMASK_IN_DOUBT: u32 = 0o077;
/// Where temporary directories are made, if `TMPDIR` is none. In a container with a read-only
/// root the last is often the only one.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// A longer file of settings of git is not read.
const GIT_BYTES_MAX: u64 = 1 << 20;
/// Where commands look for programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Where things lie for the person who started the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The home directory.
    pub home: PathBuf,
    /// Where the ledger is kept.
    pub state_dir: PathBuf,
    /// The configuration file, which need not exist.
    pub config_file: PathBuf,
    /// The administrator's, which need not exist either.
    pub admin_config_file: PathBuf,
    /// The current directory.
    pub current: PathBuf,
}

/// Asks the surroundings for the places.
///
/// # Errors
/// There is no home or no current directory.
pub fn places() -> io::Result<Places> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let home = absolute("HOME").ok_or_else(|| {
        io::Error::other(
            "HOME is not set to an absolute path, and configuration, grants and ledger are kept below it; \
             `export HOME=DIR` with your home directory",
        )
    })?;
    let state = absolute("XDG_STATE_HOME").unwrap_or_else(|| home.join(".local/state"));
    let config = absolute("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
    Ok(Places {
        state_dir: state.join("hermitcrab"),
        config_file: config.join("hermitcrab/config.toml"),
        admin_config_file: PathBuf::from("/etc/hermitcrab/config.toml"),
        current: std::env::current_dir().map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("there is no current directory: {error}; `cd` to one that is there"),
            )
        })?,
        home,
    })
}

/// Variables that name a directory and are not used, because what they say is no absolute
/// path: it would be another directory for each place the program is started in.
#[must_use]
pub fn unused_dirs() -> Vec<(&'static str, OsString)> {
    ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"]
        .into_iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)))
        .filter(|(_, said)| !said.is_empty() && !PathBuf::from(said).is_absolute())
        .collect()
}

/// Where this person looks for programs, in order, the machine's own places left out.
#[must_use]
pub fn own_program_dirs() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_own =
        |dir: &PathBuf| dir.is_absolute() && !PATH.split(':').any(|usual| dir.as_os_str() == usual);
    std::env::split_paths(&path).filter(is_own).collect()
}

/// A program that this one starts by itself, unconfined: one of the machine's, or in a
/// directory where this person looks for programs. Not where one happens to be, which is
/// what is worked on: what lies there under its name may be anybody's.
#[must_use]
pub fn program(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let real = |dir: &std::path::Path| dir.canonicalize().ok();
    let here = std::env::current_dir().ok().and_then(|dir| real(&dir))?;
    let elsewhere = |dir: &PathBuf| real(dir).is_some_and(|dir| !dir.starts_with(&here));
    let own = own_program_dirs().into_iter().filter(elsewhere);
    let all = PATH.split(':').map(PathBuf::from).chain(own);
    all.map(|dir| dir.join(name)).find(|path| {
        std::fs::metadata(path)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    })
}

/// The terminal a process of this person's reads from, if it is one.
#[must_use]
pub fn terminal_of(process: i32) -> Option<String> {
    let input = std::fs::read_link(format!("/proc/{process}/fd/0")).ok()?;
    let name = input.strip_prefix("/dev").ok()?.to_str()?;
    (name.starts_with("pts/") || name.starts_with("tty")).then(|| name.to_owned())
}

/// The directory this person names by that variable, for the programs that go by it.
#[must_use]
pub fn own_dir(variable: &str) -> Option<PathBuf> {
    let dir = PathBuf::from(std::env::var_os(variable)?);
    dir.is_absolute().then_some(dir)
}

/// The environment of commands: little, and nothing that names a secret. These directories
/// of programs come before the machine's.
#[must_use]
pub fn command_env(home: &std::path::Path, programs: &[String]) -> Vec<(String, String)> {
    let path = programs.iter().map(String::as_str).chain([PATH]);
    let mut env = vec![
        ("PATH".to_owned(), path.collect::<Vec<_>>().join(":")),
        ("HOME".to_owned(), home.to_string_lossy().into_owned()),
        ("SHELL".to_owned(), "/bin/bash".to_owned()),
    ];
    for name in INHERITED {
        if let Ok(value) = std::env::var(name) {
            env.push((name.to_owned(), value));
        }
    }
    env
}

/// Who commits, as this person has told git, for commands that do not see the home it is
/// kept in; see [`gitconfig`].
#[must_use]
pub fn git_settings(home: &std::path::Path) -> String {
    let files = match std::env::var_os("GIT_CONFIG_GLOBAL") {
        Some(only) => vec![PathBuf::from(only)],
        None => {
            let config = std::env::var_os("XDG_CONFIG_HOME")
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
                .unwrap_or_else(|| home.join(".config"));
            vec![config.join("git/config"), home.join(".gitconfig")]
        }
    };
    git_settings_in(&files)
}

/// The same of these files, the last of which has the last word.
#[must_use]
pub fn git_settings_in(files: &[PathBuf]) -> String {
    let read = |path: &PathBuf| given_file::text(path, GIT_BYTES_MAX, Pipes::Refused).ok();
    let texts: Vec<String> = files.iter().filter_map(read).collect();
    gitconfig::of_a_person(texts.iter().map(String::as_str))
}

/// Permission bits that this process makes files and directories without, by the
/// kernel's own word: asking by umask(2) would change it for every thread.
#[must_use]
pub fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    umask_in(&status).unwrap_or(UMASK_IN_DOUBT)
}

/// As told by proc_pid_status(5).
fn umask_in(status: &str) -> Option<u32> {
    let told = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(told.trim(), 8).ok()
}

/// The home directory of a user of this machine, as its list of users has it.
#[must_use]
pub fn home_of(name: &str) -> Option<PathBuf> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    home_in(&users, name)
}

fn home_in(users: &str, name: &str) -> Option<PathBuf> {
    let mut lines = users.lines().map(|line| line.split(':'));
    let mut user = lines.find_map(|mut fields| (fields.next() == Some(name)).then_some(fields))?;
    let home = PathBuf::from(user.nth(4)?);
    home.is_absolute().then_some(home)
}

/// The value of a variable that a person named, such as where a key is.
#[must_use]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The user's editor, as words: what `VISUAL` or `EDITOR` says, or `vi`.
#[must_use]
pub fn editor() -> Vec<String> {
    let words = |name: &str| {
        let text = std::env::var(name).ok()?;
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        (!words.is_empty()).then_some(words)
    };
    words("VISUAL")
        .or_else(|| words("EDITOR"))
        .unwrap_or_else(|| vec!["vi".to_owned()])
}

/// What the standard output is, and what the person wants to see on it.
#[must_use]
pub fn screen() -> Screen {
    use std::io::IsTerminal as _;
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_terminal = io::stdout().is_terminal() && has_a_screen();
    let columns = variable("COLUMNS").and_then(|said| said.parse().ok());
    Screen {
        columns: columns.filter(|columns| *columns >= COLUMNS_MIN),
        has_colour: is_terminal && !is_set("NO_COLOR"),
        is_lively: is_terminal && io::stderr().is_terminal(),
    }
}

/// Whether a terminal here is one that understands more than letters.
#[must_use]
pub fn has_a_screen() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term != "dumb" && !term.is_empty())
}

/// The words of the command line, with what the program was called by.
#[must_use]
pub fn words() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// Whether the first word of the command line is this one.
#[must_use]
pub fn is_called_with(word: &str) -> bool {
    std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == word)
}

/// A number no other session is likely to have.
///
/// # Errors
/// The system has no randomness.
pub fn session_number() -> io::Result<u64> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(u64::from_le_bytes(bytes))
}

/// The wall clock, which may be set to anything.
#[must_use]
pub fn wall_time() -> WallTime {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    WallTime::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A moment as the user's own clock shows it, without a zone.
#[must_use]
pub fn local_time(wall: WallTime) -> String {
    let millis = i64::try_from(wall.as_millis()).unwrap_or(i64::MAX);
    let stamp = jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
    let zone = jiff::tz::TimeZone::system();
    stamp
        .to_zoned(zone)
        .strftime("%Y-%m-%dT%H:%M:%S")
        .to_string()
}

/// A moment as people say it, by the user's own clock: `March 05, 2026 at 02:07 PM`.
#[must_use]
pub fn spoken_time(wall: WallTime) -> String {
    let millis = i64::try_from(wall.as_millis()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis)
        .unwrap_or_default()
        .to_zoned(jiff::tz::TimeZone::system())
        .strftime("%B %d, %Y at %I:%M %p")
        .to_string()
}

/// This moment, in the user's own time zone.
#[must_use]
pub fn now_here() -> jiff::Zoned {
    let millis = i64::try_from(wall_time().as_millis()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis)
        .unwrap_or_default()
        .to_zoned(jiff::tz::TimeZone::system())
}

/// The file of this program, by its real name.
///
/// # Errors
/// The kernel does not say.
pub fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// The boot the machine is in, as the kernel names it.
///
/// # Errors
/// The kernel does not say.
pub fn boot() -> io::Result<BootId> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    data_encoding::HEXLOWER_PERMISSIVE
        .decode(digits.as_bytes())
        .ok()
        .and_then(|bytes| bytes.try_into().ok())
        .map(BootId::from_bytes)
        .ok_or_else(|| io::Error::other("the kernel's boot id is not one"))
}

/// Milliseconds since the machine started, suspend included.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

impl Clock for BootClock {
    fn now(&self) -> Instant {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let millis = u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000;
        Instant::from_millis(seconds.saturating_mul(1000).saturating_add(millis))
    }
}

/// What a machine has; what is not known bounds nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Memory, in MiB.
    pub memory_mb: Option<u64>,
    /// Processors this program may use.
    pub processors: Option<u64>,
    /// Processes and threads at once.
    pub processes: Option<u64>,
}

/// What the machine has of what a command may be given of.
#[must_use]
pub fn machine() -> Machine {
    let told = |path: &str| std::fs::read_to_string(path).ok();
    let memory_kb = |text: String| -> Option<u64> {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    let processors = std::thread::available_parallelism();
    Machine {
        memory_mb: told("/proc/meminfo")
            .and_then(memory_kb)
            .map(|kb| kb / 1024),
        processors: processors
            .ok()
            .and_then(|many| u64::try_from(many.get()).ok()),
        processes: told("/proc/sys/kernel/pid_max").and_then(|text| text.trim().parse().ok()),
    }
}

/// The terminal, whatever the standard streams are; `None` if there is none.
#[must_use]
pub fn terminal() -> Option<File> {
    File::options().read(true).write(true).open("/dev/tty").ok()
}

/// An empty directory where temporary ones are made; a `TMPDIR` that is gone, or is not to be
/// written, is no reason to try nothing out.
fn probe_place() -> io::Result<ProbePlace> {
    let others = TEMPORARY.map(PathBuf::from);
    let wanted = std::env::temp_dir();
    let mut places = vec![wanted.clone()];
    places.extend(others.into_iter().filter(|place| *place != wanted));
    let mut why_not = None;
    for place in &places {
        match ProbePlace::make(place, session_number) {
            Ok(made) => return Ok(made),
            Err(error) => why_not = why_not.or(Some(error)),
        }
    }
    let error = why_not.unwrap_or_else(|| io::ErrorKind::NotFound.into());
    let names: Vec<String> = places
        .iter()
        .map(|place| format!("`{}`", place.display()))
        .collect();
    let why = format!(
        "no directory can be made in {} to try the sandbox out in: {error}; `export TMPDIR=DIR` with one you may write in",
        names.join(", ")
    );
    Err(io::Error::new(error.kind(), why))
}

/// Tries out, in an empty directory, what the sandbox can do on this machine.
///
/// # Errors
/// The directory cannot be made.
pub fn probe(program: &SpawnerProgram) -> io::Result<IsolationProfile> {
    probe_as(Sandbox::builder().spawner(program.clone()))
}

/// The same, of a sandbox that is built like this.
///
/// # Errors
/// As for [`probe`].
pub fn probe_as(builder: Builder) -> io::Result<IsolationProfile> {
    let place = probe_place()?;
    let cap = probe_place::a_handle()
        .map_err(io::Error::other)
        .and_then(|id| DirCap::open_ambient_dir(place.path(), id))
        .map_err(|error| {
            let place = place.path().display();
            let why = format!("`{place}`, made to try it out in, cannot be used: {error}");
            io::Error::new(error.kind(), why)
        })?;
    Ok(profile::probe_as(builder, &cap))
}

/// A moment, in seconds since 1970, as `2026-01-31 12:00` in UTC.
#[must_use]
pub fn date(seconds: u64) -> String {
    let days = i64::try_from(seconds / 86_400).unwrap_or(0);
    // Civil date from days, counted in eras of 400 years from March of year 0.
    let shifted = days.saturating_add(719_468);
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let minutes = seconds % 86_400 / 60;
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}",
        minutes / 60,
        minutes % 60
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{date, home_in, umask_in};

    #[test]
    fn bits_to_do_without_are_read_in_octal_digits() {
        assert_eq!(umask_in("Name:\tx\nUmask:\t0027\n"), Some(0o027));
        for status in ["", "Umask:\t", "Umask:\t9", "XUmask:\t0022"] {
            assert_eq!(umask_in(status), None, "{status}");
        }
        // This one has some, whichever they are.
        let own = std::fs::read_to_string("/proc/self/status").unwrap();
        assert_eq!(umask_in(&own), Some(super::umask()));
    }

    #[test]
    fn only_a_user_with_a_place_has_a_home() {
        let users = "root:x:0:0:root:/root:/bin/sh\nodd:x:1:1::rel:\nshort:x\nu:x:2:2::/home/u:\n";
        for (name, home) in [
            ("root", Some("/root")),
            ("u", Some("/home/u")),
            ("odd", None),
            ("short", None),
            ("roo", None),
            ("", None),
        ] {
            assert_eq!(home_in(users, name), home.map(PathBuf::from), "{name}");
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let check = |seconds, expected: &str| assert_eq!(date(seconds), expected);
        check(0, "1970-01-01 00:00");
        check(951_782_400, "2000-02-29 00:00");
        check(1_709_251_199, "2024-02-29 23:59");
        check(1_767_225_600, "2026-01-01 00:00");
    }
}
