#!/usr/bin/env bash
# Run Meltano, and stop it well: SIGTERM and SIGINT go to the tap alone, which then writes its state
# and ends. The target loads what it has, and Meltano ends on its own.
set -euo pipefail
umask 077 # while it runs, Meltano keeps the key in a file

# A secret may be in a file, as Docker and Kubernetes mount it: TAP_PUBLIC_JOBS_API_KEY_FILE=/run/…
for name in TAP_PUBLIC_JOBS_{API_KEY,CHANGES_URL} TARGET_POSTGRES_{SQLALCHEMY_URL,PASSWORD} \
    MELTANO_DATABASE_URI; do
    file=${name}_FILE
    [ -z "${!file-}" ] || export "$name=$(cat "${!file}")"
    unset "$file"
done

mkdir -p "$(readlink -m .meltano/run)" # in the image it is a link into /tmp

stop() {
    signalled=yes
    [ -n "$meltano" ] && [ "$stopping" = no ] || return 0
    stopping=yes
    for process in $(cat "/proc/$meltano/task/"*/children); do
        if tr '\0' ' ' < "/proc/$process/cmdline" | grep -q '/tap-public-jobs '; then
            kill -TERM "$process"
            return 0
        fi
    done
    kill -TERM "$meltano"
}

signalled=no stopping=no meltano=
trap stop TERM INT
set -m # a process group of its own: a signal to the group of this script does not reach Meltano
meltano "$@" &
meltano=$!
[ "$signalled" = no ] || stop # the signal came before there was a process

while true; do
    signalled=no status=0
    wait "$meltano" || status=$?
    [ "$signalled" = yes ] || exit "$status" # else the signal ended `wait`, and not Meltano
done
