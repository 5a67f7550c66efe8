#!/bin/sh
# $1 is "remove" of dpkg and 0 of rpm when the package goes, and something else when another version comes.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now signalbox.service
	fi
	;;
esac
