//! What programs in a world find in their environment.

/// The environment of every world; nothing else is passed on from the host.
pub const ENVIRONMENT: [(&str, &str); 11] = [
    ("HOME", "/home/u"),
    ("HERMES_HOME", "/home/u/.hermes"),
    ("USER", "u"),
    ("LOGNAME", "u"),
    ("SHELL", "/bin/bash"),
    (
        "PATH",
        "/.trip/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ),
    ("LANG", "C.UTF-8"),
    ("LC_ALL", "C.UTF-8"),
    ("TZ", "UTC"),
    ("TERM", "dumb"),
    ("PYTHONHASHSEED", "0"),
];
