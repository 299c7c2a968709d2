# SPDX-License-Identifier: Apache-2.0
"""Condition and Barrier: those of threading, with waits of ours in them.

A thread that waits for a condition waits for an event of its own, so notify(n) releases exactly n. A notify() keeps the
interpreter's lock while it wakes, because the woken thread has to wait for the condition's lock anyway. In threading, a
notify() may choose a thread whose time has just passed, and is then lost; here that thread reports the notification.
"""

import threading
from threading import BrokenBarrierError

from tocsin._core import AutoResetEvent, Lock, RLock

__all__ = ["Barrier", "BrokenBarrierError", "Condition"]


class Condition(threading.Condition):
    """A condition over a lock: an RLock of its own, or any object with acquire() and release()."""

    def __init__(self, lock=None):
        super().__init__(RLock() if lock is None else lock)

    def wait(self, timeout=None):
        """Free the lock, wait until notified, at most `timeout` seconds, and take the lock back.

        Return whether the thread was notified."""
        if not self._is_owned():
            raise RuntimeError("cannot wait on un-acquired lock")
        notified = AutoResetEvent()
        self._waiters.append(notified)
        saved = self._release_save()
        try:
            told = notified.wait(timeout)
        except BaseException:
            self._acquire_restore(saved)
            # The notification of a wait that Ctrl-C ends goes to another waiter.
            if not self._forget(notified):
                self.notify()
            raise
        self._acquire_restore(saved)
        return told or not self._forget(notified)

    def _forget(self, waiter):
        """Takes a waiter off the list; False if a notify() has done so, which then counts. The lock is held."""
        try:
            self._waiters.remove(waiter)
        except ValueError:
            return False
        return True

    def notify(self, n=1):
        """Release `n` threads that wait, oldest first, or all if there are fewer. The lock must be held."""
        if not self._is_owned():
            raise RuntimeError("cannot notify on un-acquired lock")
        waiters = self._waiters
        while waiters and n > 0:
            waiters.popleft()._set_under_lock()
            n -= 1

    def __repr__(self):
        return f"<Condition({self._lock}, {len(self._waiters)})>"


class _Inside:
    """What Event._cond is, for code that reaches into threading.Event: as inside its lock."""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None

    def acquire(self, blocking=True, timeout=-1):
        return False

    def release(self):
        return None


_inside = _Inside()


class Barrier(threading.Barrier):
    """A barrier as threading.Barrier, whose threads wait for a condition of ours."""

    def __init__(self, parties, action=None, timeout=None):
        super().__init__(parties, action, timeout)
        self._cond = Condition(Lock())


Condition.__module__ = Barrier.__module__ = "tocsin"
