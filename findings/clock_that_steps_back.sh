#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A wait of 0.3 s is given as a duration. The system's wall clock is set back by 3 s after it has begun. In these
# libraries the wait then lasts 3.3 s (and an hour longer if the clock is set back by an hour):
#   1. SDL 2.32.10 (PyPI's pysdl2-dll), conditions and semaphores, but not SDL_Delay.
#   2. APR 1.7.2, conditions. NSPR 4.35: conditions, monitors, and PR_Sleep.
#   3. CPython's multiprocessing: semaphores and events.
#   4. Tcl 8.6.13, `after` with `vwait`, but not a plain `after 300`.
# Why: the library adds the duration to the wall clock, and waits for that point in time by the same clock.
# Guessed before: that durations are measured by a clock that isn't set, as with GLib 2.74.6 and threading.
# Nobody's clock is set here. The program sees a wall clock that is 3 s ahead of the kernel's, which is what a deadline
# that was computed before the step looks like after it.
# Seen with CPython 3.11.7. Needs Debian 12, gcc, tclsh, python3 with venv, and apt-get with a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq -o APT::Sandbox::User=root 'libapr1=1.7.2-*' 'libnspr4=2:4.35-*' 'libglib2.0-0=2.74.6-*' \
    2> apt.log || { cat apt.log; exit 1; }
for package in *.deb; do dpkg -x "$package" debian; done
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check pysdl2-dll==2.32.10
cat > ahead.c <<'CODE'
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec* now) {
    const int result = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec += 3;
    return result;
}

int gettimeofday(struct timeval* now, void* zone) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return 0;
}
CODE
gcc -shared -fPIC -O1 ahead.c -o ahead.so
cat > seen.py <<'PROGRAM'
import ctypes
import glob
import multiprocessing
import os
import threading
import time

import sdl2dll


def load(pattern):
    return ctypes.CDLL(glob.glob(pattern, recursive=True)[0])


def make(library, name, *given):
    function = getattr(library, name)
    function.restype = ctypes.c_void_p
    return ctypes.c_void_p(function(*given))


def trial(name, wait):
    begin = time.monotonic()
    wait()
    took = time.monotonic() - begin
    assert took > 0.25
    print(f"{name}: {'0.3 s' if took < 2.5 else '3.3 s'}", flush=True)


sdl = load(sdl2dll.get_dllpath() + "/libSDL2-2*.so*")
mutex, condition = make(sdl, "SDL_CreateMutex"), make(sdl, "SDL_CreateCond")
sdl.SDL_LockMutex(mutex)
trial("SDL_CondWaitTimeout", lambda: sdl.SDL_CondWaitTimeout(condition, mutex, 300))
semaphore = make(sdl, "SDL_CreateSemaphore", 0)
trial("SDL_SemWaitTimeout", lambda: sdl.SDL_SemWaitTimeout(semaphore, 300))
trial("SDL_Delay", lambda: sdl.SDL_Delay(300))

apr = load("debian/**/libapr-1.so.0")
apr.apr_initialize()
pool, mutex, condition = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
apr.apr_pool_create_ex(ctypes.byref(pool), None, None, None)
apr.apr_thread_mutex_create(ctypes.byref(mutex), 0, pool)
apr.apr_thread_cond_create(ctypes.byref(condition), pool)
apr.apr_thread_mutex_lock(mutex)
trial("apr_thread_cond_timedwait", lambda: apr.apr_thread_cond_timedwait(condition, mutex, ctypes.c_int64(300_000)))

nspr = load("debian/**/libnspr4.so")
ticks = nspr.PR_MillisecondsToInterval(300)
lock = make(nspr, "PR_NewLock")
condition, monitor = make(nspr, "PR_NewCondVar", lock), make(nspr, "PR_NewMonitor")
nspr.PR_Lock(lock)
trial("PR_WaitCondVar", lambda: nspr.PR_WaitCondVar(condition, ticks))
nspr.PR_EnterMonitor(monitor)
trial("PR_Wait", lambda: nspr.PR_Wait(monitor, ticks))
trial("PR_Sleep", lambda: nspr.PR_Sleep(ticks))

glib = load("debian/**/libglib-2.0.so.0")
queue = make(glib, "g_async_queue_new")
trial("g_async_queue_timeout_pop", lambda: glib.g_async_queue_timeout_pop(queue, ctypes.c_uint64(300_000)))

trial("multiprocessing.Semaphore", lambda: multiprocessing.Semaphore(0).acquire(timeout=0.3))
trial("multiprocessing.Event", lambda: multiprocessing.Event().wait(0.3))
trial("threading.Semaphore", lambda: threading.Semaphore(0).acquire(timeout=0.3))
trial("Tcl, after and vwait", lambda: os.system("echo 'after 300 {set x 1}; vwait x' | tclsh"))
trial("Tcl, after", lambda: os.system("echo 'after 300' | tclsh"))
os._exit(0)
PROGRAM
LD_PRELOAD=./ahead.so python/bin/python seen.py | tee seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
SDL_CondWaitTimeout: 3.3 s
SDL_SemWaitTimeout: 3.3 s
SDL_Delay: 0.3 s
apr_thread_cond_timedwait: 3.3 s
PR_WaitCondVar: 3.3 s
PR_Wait: 3.3 s
PR_Sleep: 3.3 s
g_async_queue_timeout_pop: 0.3 s
multiprocessing.Semaphore: 3.3 s
multiprocessing.Event: 3.3 s
threading.Semaphore: 0.3 s
Tcl, after and vwait: 3.3 s
Tcl, after: 0.3 s
TEXT
