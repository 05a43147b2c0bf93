//! What of /etc a command is shown: what the C library and programs are set up with, and
//! nothing that is somebody's secret.
//!
//! What for: programs are not started without it. What is shown is chosen by the names
//! packages use, and whoever looks after the machine keeps other things below these names as
//! well: the passwords of a pool of PHP's, Maven's for a server, the private key of a
//! certificate a group may read. Those are not there for a command. It must never show a
//! file because it is merely readable.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use super::places::{NEW, OLD, WITHHELD_DIR, WITHHELD_FILE, places_below_etc};
use super::tools::{bind_read_only, seal, tmpfs};
use crate::spawn::spec::Places;
use crate::step::{AtStep, Step, StepError};

/// What of /etc is shown, each read-only, if it is there: what the C library and the
/// machine's programs are set up with, and are not started without (OpenJDK, Maven, TeX).
/// Nothing of it tells of this machine's people, services or keys. With `*` at the end all
/// that begin so.
const ETC_ENTRIES: &[&str] = &[
    "ImageMagick-*",
    "OpenCL",
    "R",
    "SuSE-release",
    "alpine-release",
    "alternatives",
    "ant",
    "arch-release",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "centos-release",
    "chromium",
    "chromium.d",
    "crypto-policies",
    "debian_version",
    "dictionaries-common",
    "dotnet",
    "dpkg",
    "emacs",
    "erlang",
    "ethertypes",
    "fedora-release",
    "firefox*",
    "fonts",
    "ghostscript",
    "gitattributes",
    "gitconfig",
    "glvnd",
    "gradle",
    "groff",
    "host.conf",
    "inputrc",
    "java",
    "java-*",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "libreoffice",
    "locale.alias",
    "localtime",
    "login.defs",
    "lsb-release",
    "magic",
    "magic.mime",
    "mailcap",
    "man_db.conf",
    "manpath.config",
    "maven",
    "mime.types",
    "mono",
    "networks",
    "nsswitch.conf",
    "octave.conf",
    "openmpi",
    "os-release",
    "papersize",
    "paperspecs",
    "perl",
    "php",
    "pki",
    "profile",
    "protocols",
    "python3*",
    "redhat-release",
    "rpc",
    "services",
    "sgml",
    "shells",
    "ssl",
    "system-release",
    "terminfo",
    "texmf",
    "timezone",
    "vim",
    "vulkan",
    "xml",
];

/// What is not shown of that, by the way from /etc or, without one, by the name alone, wherever
/// it lies: where packages and people keep keys and passwords. A `*` stands for any letters.
const WITHHELD: &[&str] = &[
    "*-key.pem",
    "*.jks",
    "*.key",
    "*.keystore",
    "*.p12",
    "*.pfx",
    "*credential*",
    "*passwd*",
    "*password*",
    "*secret*",
    "chromium/policies",
    "firefox*/policies",
    "gradle.properties",
    "key.pem",
    "maven/settings*.xml",
    "php/*/apache2",
    "php/*/fpm",
    "private",
    "privkey*.pem",
    "R/Renviron.site",
];

/// Longer files of /etc are bound instead of copied.
const COPY_BYTES_MAX: u64 = 1 << 20;
/// And so are directories with more in them.
const COPY_NAMES_MAX: usize = 64;
/// Names that are looked at, below a directory that is bound, for what is withheld.
const LOOKED_AT_MAX: usize = 1 << 16;

/// Shows it. `user` and `group` are the command's own ids.
pub(super) fn show(user: u32, group: u32, places: &Places) -> Result<(), StepError> {
    let etc = Path::new(NEW).join("etc");
    fs::create_dir(&etc).at(Step::SystemDirs, "etc")?;
    tmpfs(&etc, "size=16m,nr_inodes=8k,mode=755", Step::SystemDirs)?;
    for name in &entries_of_etc() {
        let source = Path::new(OLD).join("etc").join(name);
        let target = etc.join(name);
        let Ok(meta) = fs::symlink_metadata(&source) else {
            continue;
        };
        let shown = Below {
            source: &source,
            target: &target,
            way: name,
        };
        shown.show(&meta)?;
    }
    accounts(&etc, "passwd", 2, user)?;
    accounts(&etc, "group", 2, group)?;
    fs::write(etc.join("hosts"), "127.0.0.1\tlocalhost\n::1\tlocalhost\n")
        .at(Step::SystemDirs, "hosts")?;
    places_below_etc(places);
    seal(&etc, Step::SystemDirs)
}

/// Those there are on this machine, in order.
fn entries_of_etc() -> Vec<String> {
    let Ok(there) = fs::read_dir(Path::new(OLD).join("etc")) else {
        return Vec::new();
    };
    let names = there.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_entry_of_etc(name)).collect();
    names.sort_unstable();
    names
}

fn is_entry_of_etc(name: &str) -> bool {
    ETC_ENTRIES
        .iter()
        .any(|entry| match entry.strip_suffix('*') {
            Some(begins) => name.starts_with(begins),
            None => name == *entry,
        })
}

/// Something below /etc that is to be shown.
struct Below<'a> {
    source: &'a Path,
    target: &'a Path,
    /// The way there from /etc.
    way: &'a str,
}

impl Below<'_> {
    /// Copies it, or binds it where it is large. What the command could not read is left out,
    /// and so is what is withheld.
    fn show(&self, meta: &fs::Metadata) -> Result<(), StepError> {
        if is_withheld(self.way) {
            return Ok(());
        }
        if meta.is_symlink() {
            let link = fs::read_link(self.source).at(Step::SystemDirs, self.way)?;
            return symlink(link, self.target).at(Step::SystemDirs, self.way);
        }
        if meta.is_dir() {
            return self.show_dir();
        }
        if meta.is_file() {
            return self.show_file(meta);
        }
        Ok(())
    }

    fn show_dir(&self) -> Result<(), StepError> {
        fs::create_dir(self.target).at(Step::SystemDirs, self.way)?;
        if !is_small(self.source, self.way, &mut { COPY_NAMES_MAX }) {
            bind_read_only(self.source, self.target, Step::SystemDirs)?;
            return self.cover_below(&mut { LOOKED_AT_MAX });
        }
        for name in names_in(self.source) {
            let way = format!("{}/{}", self.way, name.to_string_lossy());
            let (source, target) = (self.source.join(&name), self.target.join(&name));
            let Ok(meta) = fs::symlink_metadata(&source) else {
                continue;
            };
            let below = Below {
                source: &source,
                target: &target,
                way: &way,
            };
            below.show(&meta)?;
        }
        Ok(())
    }

    /// Copies a small file: each mount less makes every sandbox cheaper.
    fn show_file(&self, meta: &fs::Metadata) -> Result<(), StepError> {
        if meta.len() <= COPY_BYTES_MAX {
            let Ok(bytes) = fs::read(self.source) else {
                return Ok(());
            };
            if holds_a_secret(&bytes) {
                return Ok(());
            }
            let mode = fs::Permissions::from_mode(meta.mode() & 0o555);
            if fs::write(self.target, bytes).is_ok()
                && fs::set_permissions(self.target, mode).is_ok()
            {
                return Ok(());
            }
        }
        // A long one, or there is no more room.
        fs::write(self.target, b"").at(Step::SystemDirs, self.way)?;
        bind_read_only(self.source, self.target, Step::SystemDirs)
    }

    /// Covers what is withheld of a directory that was bound as it is.
    fn cover_below(&self, looks: &mut usize) -> Result<(), StepError> {
        let Ok(there) = fs::read_dir(self.target) else {
            return Ok(());
        };
        for entry in there {
            let entry = entry.at(Step::SystemDirs, self.way)?;
            *looks = looks.checked_sub(1).ok_or_else(|| {
                let why = std::io::Error::other("there is too much to look for keys in it");
                StepError::new(Step::SystemDirs, self.way, why)
            })?;
            let way = format!("{}/{}", self.way, entry.file_name().to_string_lossy());
            let target = entry.path();
            let is_dir = match entry.file_type() {
                Ok(kind) if kind.is_dir() => true,
                // A link shows nothing by itself.
                Ok(kind) if kind.is_symlink() => continue,
                _ => false,
            };
            if is_withheld(&way) {
                let cover = if is_dir { WITHHELD_DIR } else { WITHHELD_FILE };
                bind_read_only(Path::new(cover), &target, Step::SystemDirs)?;
            } else if is_dir {
                let below = Below {
                    source: self.source,
                    target: &target,
                    way: &way,
                };
                below.cover_below(looks)?;
            }
        }
        Ok(())
    }
}

/// Those in a directory; none if nobody here may list it.
fn names_in(dir: &Path) -> Vec<OsString> {
    fs::read_dir(dir).map_or_else(
        |_| Vec::new(),
        |there| {
            there
                .filter_map(|entry| Some(entry.ok()?.file_name()))
                .collect()
        },
    )
}

/// Whether so little lies in a directory that it is copied. A large directory in it counts as
/// one name, for it becomes one mount.
fn is_small(dir: &Path, way: &str, room: &mut usize) -> bool {
    let names = names_in(dir);
    let Some(left) = room.checked_sub(names.len()) else {
        return false;
    };
    *room = left;
    names.iter().all(|name| {
        let (dir, way) = (dir.join(name), format!("{way}/{}", name.to_string_lossy()));
        let is_dir = fs::symlink_metadata(&dir).is_ok_and(|meta| meta.is_dir());
        !is_dir
            || is_withheld(&way)
            || names_in(&dir).len() > COPY_NAMES_MAX
            || is_small(&dir, &way, room)
    })
}

/// Whether something of this way from /etc is withheld. Letter case is no difference.
fn is_withheld(way: &str) -> bool {
    let way = way.to_ascii_lowercase();
    let name = way.rsplit('/').next().unwrap_or(&way);
    WITHHELD.iter().any(|pattern| {
        let pattern = pattern.to_ascii_lowercase();
        if !pattern.contains('/') {
            return matches(&pattern, name);
        }
        let (mut parts, mut names) = (pattern.split('/'), way.split('/'));
        loop {
            match (parts.next(), names.next()) {
                (None, None) => return true,
                (Some(part), Some(name)) if matches(part, name) => {}
                _ => return false,
            }
        }
    })
}

/// Whether a name is of a pattern, in which `*` stands for any letters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((begins, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut left) = name.strip_prefix(begins) else {
        return false;
    };
    loop {
        if matches(rest, left) {
            return true;
        }
        let mut letters = left.chars();
        if letters.next().is_none() {
            return false;
        }
        left = letters.as_str();
    }
}

/// Whether a file holds a private key, or an address with a password in it, as people set up
/// proxies and indexes of packages with, or what git says to a server that asks who is there.
fn holds_a_secret(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    text.contains("PRIVATE KEY-----")
        || text
            .lines()
            .any(|line| has_a_password(line) || line.to_ascii_lowercase().contains("extraheader"))
}

/// Whether a line has `scheme://name:password@` in it.
fn has_a_password(line: &str) -> bool {
    line.split("://").skip(1).any(|rest| {
        let host = rest.split(['/', '?', '#', ' ', '\t', '"', '\'']).next();
        let who = host.and_then(|host| host.rsplit_once('@'));
        who.and_then(|(who, _)| who.split_once(':'))
            .is_some_and(|(_, password)| !password.is_empty())
    })
}

/// Copies only the lines of root, nobody and the command's own id: the other
/// accounts of the machine are nobody's business.
fn accounts(etc: &Path, name: &str, field: usize, own: u32) -> Result<(), StepError> {
    let source = Path::new(OLD).join("etc").join(name);
    // Without names a command has only its number: less service, nothing more to see.
    let text = fs::read(&source).unwrap_or_default();
    let wanted = [0, 65_534, own];
    let mut kept = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        let id = line
            .split(|byte| *byte == b':')
            .nth(field)
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .and_then(|text| text.parse::<u32>().ok());
        if id.is_some_and(|id| wanted.contains(&id)) {
            kept.extend_from_slice(line);
            kept.push(b'\n');
        }
    }
    fs::write(etc.join(name), kept).at(Step::SystemDirs, name)
}

#[cfg(test)]
mod tests {
    use super::{holds_a_secret, is_withheld};

    #[test]
    fn keys_and_passwords_are_told_by_where_they_are_kept() {
        for (way, expected) in [
            ("ssl/private", true),
            ("ssl/certs", false),
            ("ssl/server.key", true),
            ("ssl/certs/ca-certificates.crt", false),
            ("pki/tls/private", true),
            ("pki/tls/certs", false),
            ("pki/entitlement/1234-key.pem", true),
            ("pki/consumer/key.pem", true),
            ("maven/settings.xml", true),
            ("maven/settings-security.xml", true),
            ("maven/logging/simplelogger.properties", false),
            ("java-17-openjdk/management/jmxremote.password", true),
            ("java-17-openjdk/security/java.security", false),
            ("java-17-openjdk/security/Mine.JKS", true),
            ("php/8.2/fpm", true),
            ("php/8.2/cli", false),
            ("php/8.2/mods-available", false),
            ("chromium/policies", true),
            ("chromium/master_preferences", false),
            ("firefox-esr/policies", true),
            ("R/Renviron", false),
            ("R/Renviron.site", true),
            ("login.defs", false),
            ("perl/Net/libnet.cfg", false),
        ] {
            assert_eq!(is_withheld(way), expected, "{way}");
        }
    }

    #[test]
    fn a_secret_is_told_by_what_a_file_holds() {
        for (text, expected) in [
            ("proxy = http://ada:pw@proxy.example:3128", true),
            ("[url \"https://oauth:tok@git.example/\"]", true),
            ("[http]\n\textraHeader = Authorization: Basic eDp5\n", true),
            ("-----BEGIN RSA PRIVATE KEY-----\n", true),
            ("proxy = http://proxy.example:3128/?a=b:c@d", false),
            ("see http://www.w3.org/1999/ and mail a:b@c", false),
            ("ssh://git@host.example:22/x", false),
            ("-----BEGIN CERTIFICATE-----\n", false),
        ] {
            assert_eq!(holds_a_secret(text.as_bytes()), expected, "{text}");
        }
    }
}
