#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records with perf who wakes whom in a running program, and writes a trace for https://ui.perfetto.dev to standard
# output. Needs the right to place uprobes, which usually only root has.
#
#     tools/trace/perf_wakes.sh PROGRAM PID [SECONDS] > trace.json
#
# PROGRAM is the file that has the library: the executable or, with a shared library, libtocsin.so.
set -eu
program=$1 pid=$2 seconds=${3:-5}
here=$(dirname "$0")
folder=$(mktemp -d)
added=
clean() {
    for event in $added; do perf probe -q -d "$event" 2>/dev/null || true; done
    perf buildid-cache --remove "$program" 2>/dev/null || true
    rm -rf "$folder"
}
trap clean EXIT
perf buildid-cache --add "$program"
events=
for probe in park release awake timeout; do
    perf probe -q -x "$program" "sdt_tocsin:$probe" 2>"$folder/errors" || { cat "$folder/errors" >&2; exit 1; }
    added="$added sdt_tocsin:$probe*"
    events="$events,sdt_tocsin:$probe*"
done
perf record -q -k CLOCK_MONOTONIC -o "$folder/data" -e "${events#,}" -p "$pid" -- sleep "$seconds" >&2
perf script --ns -i "$folder/data" -F comm,tid,time,event,trace 2>/dev/null | "$here/trace_events.py"
