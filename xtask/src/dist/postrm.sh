#!/bin/sh
# Whoever purges a package wants nothing of it to stay.
set -e

if [ "$1" = purge ]; then
    rm -f -- "$DPKG_ROOT/etc/apparmor.d/usr.bin.hermitcrab"
fi
