# SPDX-License-Identifier: Apache-2.0
"""Facts that tests wait for, and threads whose exceptions count."""

import ctypes
import os
import signal
import threading
import time

from tocsin import _core

# How many seconds a fact may take before it counts as a hang: as in the C++ tests (tests/support/patience.hpp).
PATIENCE = float(os.environ.get("TOCSIN_TEST_PATIENCE", 60))

# In the child of a fork with threads, the runtime of ThreadSanitizer runs no signal handler: it puts each signal off
# until its next interceptor, and these are off there. It also ends a process that starts a thread there. Python does
# so without our module, too.
FORKS_WITH_THREADS = not hasattr(ctypes.CDLL(None), "__tsan_init")


def wait_for(fact):
    """Waits until fact() is true: something that no event announces."""
    until = time.monotonic() + PATIENCE
    while not fact():
        if time.monotonic() > until:
            raise AssertionError(f"the fact has not come true within {PATIENCE:g} seconds")
        time.sleep(0.0005)


def wait_until_parked(source, number):
    """Waits until so many waits are queued for an object."""
    wait_for(lambda: _core.waiting_on(source) == number)


def signal_once_parked(source, number=signal.SIGUSR1):
    """A thread that sends this process a signal as soon as a wait is queued for the object."""
    return Threads(1, lambda: (wait_until_parked(source, 1), os.kill(os.getpid(), number)))


class Threads:
    """Threads that run a function; their exceptions are raised by join()."""

    def __init__(self, number, function):
        self._errors = []

        def run():
            try:
                function()
            except BaseException as error:
                self._errors.append(error)

        self._all = [threading.Thread(target=run, daemon=True) for _ in range(number)]

    def __enter__(self):
        for thread in self._all:
            thread.start()
        return self

    def __exit__(self, *exception):
        return None

    def join(self):
        for thread in self._all:
            thread.join(PATIENCE)
            if thread.is_alive():
                raise AssertionError(f"a thread is still there after {PATIENCE:g} seconds")
        if self._errors:
            raise self._errors[0]
