#!/bin/sh
# Run Meltano, and pass the signals of `docker stop` and Ctrl-C to the tap alone: it then writes its
# state and ends, and the target loads what it has. Without a tap they go to Meltano.
set -eu
umask 077

stop() {
    stopped=yes
    [ -n "$meltano" ] || return 0
    children=$(cat "/proc/$meltano/task/"*/children)
    for process in $children; do
        if tr '\0' ' ' < "/proc/$process/cmdline" | grep -q '/tap-public-jobs '; then
            kill -TERM "$process" && return
        fi
    done
    kill -TERM "$meltano"
}

stopped=no meltano=
trap stop TERM INT
meltano "$@" &
meltano=$!
[ "$stopped" = no ] || stop # the signal came before there was a process

status=0
wait "$meltano" || status=$?
while [ "$stopped" = yes ]; do # the signal ended `wait`, and not Meltano
    stopped=no status=0
    wait "$meltano" || status=$?
done
exit "$status"
