//! AppArmor and user namespaces: why there are none, and the profile that allows them.
//!
//! Why: since 23.10 Ubuntu gives a user namespace any rights only to programs that have a
//! profile (`kernel.apparmor_restrict_unprivileged_userns`), and a sandbox without root begins
//! with one. Giving the restriction up for the whole machine would do, and is more than is
//! needed: a profile that lets this one program have them is what Ubuntu ships for browsers.
//!
//! Source: apparmor.d(5), of AppArmor 4, which has the rule `userns`.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::cli::quoted::quoted;
use crate::screen::visible;

/// Where the kernel says whether the restriction holds. Only Ubuntu's has it.
const RESTRICTED: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
/// Where a process reads its own label: beside other modules, and where there is one only.
const LABELS: [&str; 2] = [
    "/proc/self/attr/apparmor/current",
    "/proc/self/attr/current",
];
/// Where profiles are kept.
const PROFILES: &str = "/etc/apparmor.d";

/// What AppArmor keeps this program from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// It has no profile, and those without get no rights in a user namespace.
    WithoutProfile,
    /// It runs under this profile, which is enforced.
    By(String),
}

/// Whether AppArmor may be why no sandbox can be made; for a machine on which none can.
pub(super) fn held() -> Option<Held> {
    let label = LABELS.iter().find_map(|place| fs::read(place).ok());
    held_as(fs::read(RESTRICTED).ok().as_deref(), label.as_deref())
}

fn held_as(restricted: Option<&[u8]>, label: Option<&[u8]>) -> Option<Held> {
    let label = String::from_utf8_lossy(label.unwrap_or_default());
    // The label ends in a line break or in the nul that C's texts end in.
    let label = label.trim_end_matches(['\n', '\0']);
    if let Some(name) = label.strip_suffix(" (enforce)") {
        return Some(Held::By(name.to_owned()));
    }
    let on = restricted.is_some_and(|said| said.trim_ascii() == b"1");
    on.then_some(Held::WithoutProfile)
}

/// What a person can do about it; `program` is this one.
pub(super) fn advice(held: &Held, program: &Path) -> String {
    match held {
        Held::By(name) => format!(
            "AppArmor's profile `{}` confines this program; it has to allow `userns`, and what a sandbox mounts",
            visible(name)
        ),
        Held::WithoutProfile => {
            let kept = quoted(&place(program).to_string_lossy());
            let program = quoted(&program.to_string_lossy());
            format!(
                "AppArmor gives user namespaces only to programs that have a profile here \
                 (kernel.apparmor_restrict_unprivileged_userns); this one gets it by\n  \
                 {program} doctor --apparmor | sudo tee {kept}\n  \
                 sudo apparmor_parser -r {kept}"
            )
        }
    }
}

/// The profile's file.
fn place(program: &Path) -> PathBuf {
    Path::new(PROFILES).join(name_for(program))
}

/// The profile's name, and that of its file: after the program, as is usual there.
fn name_for(program: &Path) -> String {
    program
        .to_string_lossy()
        .trim_start_matches('/')
        .chars()
        .map(|letter| match letter {
            '/' => '.',
            plain if plain.is_ascii_alphanumeric() || "-_.+".contains(plain) => plain,
            // What a shell or AppArmor's own tools would take for something else.
            _ => '_',
        })
        .collect()
}

/// A profile that lets the program use user namespaces, and forbids it nothing.
///
/// # Errors
/// The program's name has letters no profile can name; the message says what to do.
pub(super) fn profile(program: &Path) -> Result<String, String> {
    let name = program.as_os_str().as_bytes();
    let Some(named) = std::str::from_utf8(name)
        .ok()
        .filter(|name| name.starts_with('/') && !name.chars().any(char::is_control))
    else {
        return Err(format!(
            "no profile of AppArmor can name `{}`: it has letters that are none of a text; put the program \
             into another directory, `/usr/local/bin` say",
            visible(&program.to_string_lossy())
        ));
    };
    // Within quotation marks these letters still begin patterns and variables.
    let mut path = String::new();
    for letter in named.chars() {
        if r#"\"*?[]{}^@,"#.contains(letter) {
            path.push('\\');
        }
        path.push(letter);
    }
    // A path that is the name as well is taken letter for letter, backslashes too.
    let name = name_for(program);
    Ok(format!(
        "# Lets this program make user namespaces, which its sandbox begins with, and forbids it\n\
         # nothing. Whoever can write to the file below can use them as well.\n\
         abi <abi/4.0>,\n\n\
         profile {name} \"{path}\" flags=(unconfined) {{\n  userns,\n}}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_apparmor_where_the_restriction_or_a_profile_holds_and_nowhere_else() {
        let by = |name: &str| Some(Held::By(name.to_owned()));
        let cases = [
            ("", "", None),
            ("0\n", "unconfined\n", None),
            ("1\n", "unconfined\n", Some(Held::WithoutProfile)),
            ("1\n", "", Some(Held::WithoutProfile)),
            ("1\n", "docker-default (enforce)\n", by("docker-default")),
            ("", "a b (enforce)\0", by("a b")),
            ("", "/usr/bin/x (complain)\n", None),
        ];
        for (restricted, label, held) in cases {
            // What is empty stands for a file that is not there.
            let file = |text: &'static str| (!text.is_empty()).then_some(text.as_bytes());
            assert_eq!(
                held_as(file(restricted), file(label)),
                held,
                "{restricted:?} {label:?}"
            );
        }
    }

    #[test]
    fn what_is_to_be_typed_names_this_program_and_one_file() {
        let said = advice(
            &Held::WithoutProfile,
            Path::new("/home/a n/.cargo/bin/hermitcrab"),
        );
        let file = "/etc/apparmor.d/home.a_n..cargo.bin.hermitcrab";
        assert!(
            said.contains(&format!(
                "'/home/a n/.cargo/bin/hermitcrab' doctor --apparmor | sudo tee {file}\n"
            )),
            "{said}"
        );
        assert!(
            said.ends_with(&format!("apparmor_parser -r {file}")),
            "{said}"
        );
        let confined = advice(
            &Held::By("x\u{1b}".to_owned()),
            Path::new("/usr/bin/hermitcrab"),
        );
        assert!(!confined.contains('\u{1b}'), "{confined}");
    }

    #[test]
    fn a_profile_names_the_program_letter_for_letter_or_is_none() {
        let plain = profile(Path::new("/usr/bin/hermitcrab")).unwrap();
        assert!(plain.contains(
            "profile usr.bin.hermitcrab \"/usr/bin/hermitcrab\" flags=(unconfined) {\n  userns,\n}"
        ));
        let odd = profile(Path::new("/a b/\"*[x]{y}@{z}\\")).unwrap();
        assert!(
            odd.contains(r#"profile a_b.___x__y___z__ "/a b/\"\*\[x\]\{y\}\@\{z\}\\" flags"#),
            "{odd}"
        );
        assert!(profile(Path::new("/a\nb")).is_err());
        assert!(profile(Path::new("relative")).is_err());
    }
}
