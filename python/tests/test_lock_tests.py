# SPDX-License-Identifier: Apache-2.0
"""CPython's own classes for locks, events, conditions, semaphores and barriers, over tocsin's types.

They are in the interpreter's installation, but not in every distribution's."""

import unittest

import tocsin

try:
    from test import lock_tests
except ImportError:
    lock_tests = None


@unittest.skipUnless(lock_tests, "NOT RUN: this interpreter has no test.lock_tests (Debian: libpython3-testsuite)")
class LockTestsAreThere(unittest.TestCase):
    def test_they_are(self):
        self.assertTrue(lock_tests)


if lock_tests:
    class Locks(lock_tests.LockTests):
        locktype = staticmethod(tocsin.Lock)

    class RLocks(lock_tests.RLockTests):
        locktype = staticmethod(tocsin.RLock)

    class Events(lock_tests.EventTests):
        eventtype = staticmethod(tocsin.Event)

    class Conditions(lock_tests.ConditionTests):
        condtype = staticmethod(tocsin.Condition)

    class Semaphores(lock_tests.SemaphoreTests):
        semtype = staticmethod(tocsin.Semaphore)

    class BoundedSemaphores(lock_tests.BoundedSemaphoreTests):
        semtype = staticmethod(tocsin.BoundedSemaphore)

    class Barriers(lock_tests.BarrierTests):
        barriertype = staticmethod(tocsin.Barrier)


if __name__ == "__main__":
    unittest.main()
