#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make -j4` runs another make, and that one is killed (as by the kernel when memory is short) while its four jobs run.
# The first make ignores the failure and goes on, with one job at a time instead of four. At its end it says that one
# token is there and that four should be.
# Why: the permits for jobs are bytes in a pipe. The second make had taken three, and the kernel doesn't put back what a
# dead process has read.
# Guessed before: that the permits come back, as the jobs that had them have ended.
# Seen on Debian 12. Needs GNU Make 4.3 and awk.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > Makefile <<'TEXT'
later := $(addprefix later-,1 2 3 4 5 6 7 8)
all: $(later)
$(later): other
	@echo + >> jobs; sleep 1; echo - >> jobs
other:
	-@$(MAKE) -f other.mk $(HOW)
TEXT
cat > other.mk <<'TEXT'
unharmed killed: a b c d
a b c:
	@sleep 4
d:
	@sleep 2; if [ "$(MAKECMDGOALS)" = killed ]; then kill -KILL $$PPID; fi
TEXT
for how in unharmed killed; do
    rm -f jobs
    env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS LC_ALL=C make -j4 HOW=$how > log.txt 2>&1
    most=$(awk '{ n += $1 == "+" ? 1 : -1; if (n > most) most = n } END { print most }' jobs)
    echo "the other make is $how: at most $most at once afterwards"
    sed -n 's/^make: //p' log.txt
done | tee seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
the other make is unharmed: at most 4 at once afterwards
the other make is killed: at most 1 at once afterwards
[Makefile:6: other] Killed (ignored)
INTERNAL: Exiting with 1 jobserver tokens available; should be 4!
TEXT
