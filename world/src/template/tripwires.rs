//! Stand-ins for programs that cannot work in a world, first on its `PATH`.
//!
//! Each appends its own name and arguments to `/.trip/log` and reports success,
//! so that a command line that would have reached a cluster, a package registry
//! or the init system is seen instead of merely failing.
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::error::{AtStage, WorldError};

/// What of a program works in a world goes to the program itself, where the machine has it:
/// Hermes would be told that it succeeded, and nothing would have been done. That is all of
/// Ruby, and of npm what needs no registry; `npm init TEMPLATE` does.
const STAND_IN: &str = r#"#!/bin/sh
name=${0##*/}
own=
case "$name $1" in
"ruby "*) own=yes ;;
"npm init" | "npm pkg" | "npm --version" | "npm -v")
    own=yes
    if [ "$1" = init ]; then
        for word in "$@"; do
            case $word in init | -*) ;; *) own= ;; esac
        done
    fi
    ;;
esac
if [ "$own" ]; then
    for directory in /usr/local/bin /usr/bin /bin; do
        [ -x "$directory/$name" ] && exec "$directory/$name" "$@"
    done
fi
printf '%s\n' "$name $*" >> /.trip/log
"#;

/// Of these all goes to the program itself ([`STAND_IN`]).
pub(super) const HANDED_ON: &[&str] = &["ruby"];

/// The programs that are stood in for.
pub(super) const PROGRAMS: &[&str] = &[
    "alembic",
    "ansible",
    "apt",
    "apt-get",
    "at",
    "aws",
    "az",
    "batch",
    "busctl",
    "cargo",
    "chpasswd",
    "consul",
    "createdb",
    "crictl",
    "cryptsetup",
    "csh",
    "ctr",
    "dnf",
    "docker",
    "docker-compose",
    "doctl",
    "dropdb",
    "dropuser",
    "etcdctl",
    "fdisk",
    "firewall-cmd",
    "fish",
    "flyctl",
    "gcloud",
    "gdb",
    "gh",
    "glab",
    "gsutil",
    "halt",
    "hdparm",
    "helm",
    "heroku",
    "hermes",
    "host",
    "hostname",
    "init",
    "insmod",
    "ip",
    "ip6tables",
    "iptables",
    "journalctl",
    "kexec",
    "kubectl",
    "launchctl",
    "loginctl",
    "losetup",
    "ltrace",
    "lvremove",
    "mailx",
    "mdadm",
    "modprobe",
    "mongo",
    "mongosh",
    "mount",
    "mutt",
    "mysql",
    "mysqladmin",
    "netcat",
    "nft",
    "nomad",
    "npm",
    "npx",
    "nslookup",
    "parted",
    "pip",
    "pkexec",
    "pm2",
    "podman",
    "poweroff",
    "psql",
    "pulumi",
    "pvremove",
    "rclone",
    "reboot",
    "redis-cli",
    "rmmod",
    "ruby",
    "sendmail",
    "service",
    "sgdisk",
    "shutdown",
    "snap",
    "strace",
    "su",
    "sudo",
    "doas",
    "supervisorctl",
    "svn",
    "sysctl",
    "systemctl",
    "telinit",
    "telnet",
    "terraform",
    "tftp",
    "tmux",
    "screen",
    "ufw",
    "umount",
    "useradd",
    "userdel",
    "usermod",
    "vault",
    "vercel",
    "vgremove",
    "virsh",
    "wipefs",
    "yarn",
    "yum",
    "zpool",
    "zfs",
    "ftp",
    "sftp",
    "swapoff",
];

/// Writes the stand-ins and the empty log.
pub(super) fn build(root: &Path) -> Result<(), WorldError> {
    let stage = "make tripwires";
    let programs = root.join(".trip/bin");
    fs::create_dir_all(&programs).at(stage)?;
    let stand_in = root.join(".trip/stand-in");
    fs::write(&stand_in, STAND_IN).at(stage)?;
    fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755)).at(stage)?;
    for program in PROGRAMS {
        symlink("../stand-in", programs.join(program)).at(stage)?;
    }
    let log = root.join(".trip/log");
    fs::write(&log, "").at(stage)?;
    fs::set_permissions(&log, fs::Permissions::from_mode(0o666)).at(stage)
}
