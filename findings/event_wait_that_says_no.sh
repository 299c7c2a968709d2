#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A thread waits for a multiprocessing.Event without a time-out. Another calls set() and clear() at once. The wait ends,
# and wait() returns False, which otherwise means that the time is over. `while not event.wait(): pass` waits again.
# Why: the waiter is woken, and then asks the event whether it is set.
# Guessed before: that wait() without a time-out returns True only, as its documentation says, and as the events of
# threading, asyncio, gevent 26.9.0, curio 1.6 and aiologic 0.17.1 do in the same situation.
# A waiter that runs between the two calls gets True; of nine rounds, at most a few do.
# Seen with CPython 3.9.18, 3.11.7 and 3.13.0, and with billiard 4.2.4 (PyPI), which Celery uses.
# Needs python3 with venv, and a network. It runs the interpreter `python3`, or the one that is given.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${1:-python3}" -m venv "$folder/python"
cd "$folder"
python/bin/pip install --quiet --disable-pip-version-check billiard==4.2.4
python/bin/python - > seen.txt <<'PROGRAM'
import multiprocessing
import threading
import time

import billiard

for module in (multiprocessing, billiard, threading):
    results = []
    for _ in range(9):
        event = module.Event()
        waiter = threading.Thread(target=lambda: results.append(event.wait()))
        waiter.start()
        time.sleep(0.2)
        event.set()
        event.clear()
        waiter.join(10)
        event.set()
        waiter.join()
    print(f"{module.__name__}: {'all' if all(results) else 'few' if sum(results) < 5 else 'most'} True")
PROGRAM
cat seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
multiprocessing: few True
billiard: few True
threading: all True
TEXT
