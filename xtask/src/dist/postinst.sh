#!/bin/sh
# Where AppArmor has the rule `userns`, this program gets the profile by which it may use it.
set -e

profile=/etc/apparmor.d/usr.bin.hermitcrab
if [ "$1" = configure ] && [ -e "$DPKG_ROOT/etc/apparmor.d/abi/4.0" ]; then
    # What an administrator made of it stays.
    if [ ! -e "$DPKG_ROOT$profile" ]; then
        "$DPKG_ROOT/usr/bin/hermitcrab" doctor --apparmor=/usr/bin/hermitcrab > "$DPKG_ROOT$profile"
    fi
    if [ -z "$DPKG_ROOT" ] && [ -d /sys/kernel/security/apparmor ] &&
        command -v apparmor_parser > /dev/null; then
        apparmor_parser --replace "$profile" || echo "hermitcrab: $profile was not loaded" >&2
    fi
fi
