#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A test freezes Python's clock with freezegun 1.5.5. Waits with a time-out then fall into two kinds:
#   1. threading, queue, multiprocessing, concurrent.futures, select, gevent 26.9.0: they end on time.
#   2. asyncio.wait_for(), subprocess.Popen.wait(), trio 0.35.0, filelock 4.3.1, portalocker 4.4.2, fasteners 0.20:
#      their time never passes. They end only when what they wait for comes, here after 3 s.
# Why: freezegun replaces time.monotonic() and its kin in every module but some; threading, queue and multiprocessing
# are among those. A wait that compares this clock with a deadline sees no time pass.
# time-machine 3.6.0 freezes time.time() only, and all of them end on time.
# Guessed before: that a wait ends on time, as the kernel's clock isn't frozen.
# Seen with CPython 3.11.7. Needs python3 with venv, and a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check freezegun==1.5.5 time-machine==3.6.0 filelock==4.3.1 \
    portalocker==4.4.2 fasteners==0.20 trio==0.35.0 gevent==26.9.0
cat > seen.py <<'PROGRAM'
import asyncio
import concurrent.futures
import multiprocessing
import queue
import selectors
import subprocess
import sys
import threading

import fasteners
import filelock
import freezegun
import gevent.event
import portalocker
import time_machine
import trio

HOLDER = """
import sys, time, {0}
lock = {0}.{1}(sys.argv[1])
lock.acquire()
print("holds it", flush=True)
time.sleep(3)
"""


def trial(name, wait, end=lambda: None):
    """wait() has a time-out of 0.2 s. Says whether it ends before 1.5 s are over. What it waits for comes after 3 s."""
    late = threading.Event()

    def help():
        subprocess.run(["sleep", "1.5"])
        late.set()
        subprocess.run(["sleep", "1.5"])
        end()

    helper = threading.Thread(target=help)
    helper.start()
    try:
        wait()
    except Exception:
        pass
    print(f"{name}: {'on time' if not late.is_set() else 'its time never passes'}")
    helper.join()


def file_lock(module, name, wait):
    path = module.__name__
    holder = subprocess.Popen([sys.executable, "-c", HOLDER.format(path, name), path], stdout=subprocess.PIPE)
    holder.stdout.readline()
    trial(path, lambda: wait(path))
    holder.communicate()


async def wait_of_asyncio():
    child = await asyncio.create_subprocess_exec("sleep", "3")
    await asyncio.wait_for(child.wait(), 0.2)


async def wait_of_trio():
    with trio.move_on_after(0.2):
        await trio.run_process(["sleep", "3"])


def trials():
    condition, items, permits = threading.Condition(), queue.Queue(), multiprocessing.Semaphore(0)
    future, event = concurrent.futures.Future(), gevent.event.Event()
    changes = []

    def wait_for_change():
        with condition:
            condition.wait_for(lambda: changes, 0.2)

    def change():
        with condition:
            changes.append(1)
            condition.notify()

    trial("Condition.wait_for", wait_for_change, change)
    trial("Queue.get", lambda: items.get(timeout=0.2), lambda: items.put(1))
    trial("multiprocessing.Semaphore", lambda: permits.acquire(timeout=0.2), permits.release)
    trial("Future.result", lambda: future.result(0.2), lambda: future.set_result(1))
    trial("selectors", lambda: selectors.DefaultSelector().select(0.2))
    trial("gevent", lambda: event.wait(0.2), event.set)
    trial("Popen.wait", lambda: subprocess.Popen(["sleep", "3"]).wait(0.2))
    trial("asyncio.wait_for", lambda: asyncio.run(wait_of_asyncio()))
    trial("trio", lambda: trio.run(wait_of_trio))
    file_lock(filelock, "FileLock", lambda path: filelock.FileLock(path).acquire(timeout=0.2))
    file_lock(portalocker, "Lock", lambda path: portalocker.Lock(path, timeout=0.2).acquire())
    file_lock(fasteners, "InterProcessLock", lambda path: fasteners.InterProcessLock(path).acquire(timeout=0.2))


print("freezegun")
with freezegun.freeze_time("2030-01-01"):
    trials()
print("time-machine")
with time_machine.travel("2030-01-01", tick=False):
    trials()
PROGRAM
python/bin/python seen.py 2> errors.log | tee seen.txt || { cat errors.log; exit 1; }
diff - seen.txt <<'TEXT' || { cat errors.log; echo "changed"; exit 1; }
freezegun
Condition.wait_for: on time
Queue.get: on time
multiprocessing.Semaphore: on time
Future.result: on time
selectors: on time
gevent: on time
Popen.wait: its time never passes
asyncio.wait_for: its time never passes
trio: its time never passes
filelock: its time never passes
portalocker: its time never passes
fasteners: its time never passes
time-machine
Condition.wait_for: on time
Queue.get: on time
multiprocessing.Semaphore: on time
Future.result: on time
selectors: on time
gevent: on time
Popen.wait: on time
asyncio.wait_for: on time
trio: on time
filelock: on time
portalocker: on time
fasteners: on time
TEXT
