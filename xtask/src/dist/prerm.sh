#!/bin/sh
# The profile goes with the program, unless it is no longer the one that was installed.
set -e

profile=/etc/apparmor.d/usr.bin.hermitcrab
if [ "$1" = remove ] && [ -e "$DPKG_ROOT$profile" ]; then
    if "$DPKG_ROOT/usr/bin/hermitcrab" doctor --apparmor=/usr/bin/hermitcrab |
        cmp --silent - "$DPKG_ROOT$profile"; then
        if [ -z "$DPKG_ROOT" ] && [ -d /sys/kernel/security/apparmor ] &&
            command -v apparmor_parser > /dev/null; then
            apparmor_parser --remove "$profile" || echo "hermitcrab: $profile is still loaded" >&2
        fi
        rm -- "$DPKG_ROOT$profile"
    fi
fi
