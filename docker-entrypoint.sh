#!/bin/sh
# Run Meltano, and pass the signals of `docker stop` and Ctrl-C to the tap alone: it then writes its
# state and ends, and the target loads what it has. Without a tap they go to Meltano.
set -eu
umask 077

stop() {
    # The tap's command line begins with its own Python, whose folder only the tap has.
    for process in /proc/[0-9]*; do
        if tr '\0' ' ' < "$process/cmdline" 2> /dev/null | grep -q '/tap-public-jobs/.*/tap-public-jobs '; then
            kill -TERM "${process#/proc/}" && return
        fi
    done
    kill -TERM "$meltano"
}

meltano "$@" &
meltano=$!
trap stop TERM INT

# `wait` returns early when a signal comes.
while true; do
    status=0
    wait "$meltano" || status=$?
    kill -0 "$meltano" 2> /dev/null || exit "$status"
done
