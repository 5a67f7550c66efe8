#!/bin/sh
# The data goes when the package is purged, not before. (rpm has no such step: there it stays.)
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ]; then
	rm -rf /var/lib/private/signalbox /var/lib/signalbox
fi
