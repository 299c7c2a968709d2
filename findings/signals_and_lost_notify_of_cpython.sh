#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What CPython does that a wait library has to know. It runs the interpreter `python3`, or the one that is given.
#   1. PySignal_SetWakeupFd() is in the documentation of the C interface, and not exported before 3.13.
#   2. signal.set_wakeup_fd() accepts an eventfd, but CPython writes one byte, which an eventfd refuses: the signal does
#      not make it readable.
#   3. threading.Condition.notify() may choose a thread whose time has passed. That thread returns False, and a thread
#      that still waits is not woken: the notification is lost.
# Guessed before: that (1) can be called, that (2) works as with a pipe, that (3) goes to a thread that still waits.
# Seen with CPython 3.11.7 and 3.12.1; with 3.13.0 (2) and (3); with 3.9.18, which has no eventfd, (1) and (3).
set -euo pipefail
python=${1:-python3}
"$python" - <<'PROGRAM'
import ctypes
import os
import select
import signal
import sys
import threading
import time

print("CPython", sys.version.split()[0])
wrong = []

exported = hasattr(ctypes.pythonapi, "PySignal_SetWakeupFd")
print("PySignal_SetWakeupFd is", "exported" if exported else "not exported")
if exported != (sys.version_info >= (3, 13)):
    wrong.append("1")

if hasattr(os, "eventfd"):
    number = os.eventfd(0, os.EFD_NONBLOCK)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.set_wakeup_fd(number)
    sys.unraisablehook = lambda seen: print("ignored by CPython:", seen.exc_value)
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(0.05)
    readable = bool(select.select([number], [], [], 0)[0])
    signal.set_wakeup_fd(-1)
    print("the eventfd is", "readable" if readable else "not readable")
    if readable:
        wrong.append("2")

condition, results = threading.Condition(), {}


def wait(name, timeout):
    with condition:
        results[name] = condition.wait(timeout)


threads = [threading.Thread(target=wait, args=each) for each in (("short", 0.05), ("long", 1))]
for thread in threads:
    thread.start()
    while len(condition._waiters) < threads.index(thread) + 1:
        time.sleep(0.001)
with condition:
    time.sleep(0.3)  # the short time passes, and its thread waits for the lock
    condition.notify()
for thread in threads:
    thread.join()
print("after one notify(), wait() returned", results)
if any(results.values()):
    wrong.append("3")

if wrong:
    sys.exit(f"changed: {', '.join(wrong)}")
PROGRAM
