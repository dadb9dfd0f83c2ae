#!/bin/sh
# Run Meltano, and pass the signals of `docker stop` and Ctrl-C to the tap alone: it then writes its
# state and ends, and the target loads what it has. Without a tap they go to Meltano.
set -eu
umask 077

# shellcheck disable=SC2329  # the trap calls it
stop() {
    stopped=yes
    children=$(cat "/proc/$meltano/task/"*/children)
    for process in $children; do
        if tr '\0' ' ' < "/proc/$process/cmdline" | grep -q '/tap-public-jobs '; then
            kill -TERM "$process" && return
        fi
    done
    kill -TERM "$meltano"
}

meltano "$@" &
meltano=$!
stopped=no
trap stop TERM INT

status=0
wait "$meltano" || status=$?
while [ "$stopped" = yes ]; do # the signal ended `wait`, and not Meltano
    stopped=no status=0
    wait "$meltano" || status=$?
done
exit "$status"
