# SPDX-License-Identifier: Apache-2.0
"""Runs the standard library's own tests with threading's types replaced before anything else is imported.

    python standard_library.py [MODULE ...]

What is waived is named here, with its reason."""

import sys

import tocsin

tocsin.patch_threading()

import faulthandler  # noqa: E402
import importlib  # noqa: E402
import inspect  # noqa: E402
import signal  # noqa: E402
import subprocess  # noqa: E402
import unittest  # noqa: E402
from concurrent.futures import process  # noqa: E402

MODULES = ["test_threading", "test_thread", "test_threadsignals", "test_queue", "test_threading_local",
           "test_threadedtempfile", "test_socketserver", "test_sched", "test_concurrent_futures",
           "test_asyncio.test_locks"]

_TYPES = "threading's Lock and Event are types of tocsin, with its name as their module; Lock is a class"
WAIVED = {
    "MiscTestCase.test__all__": _TYPES,
    "test_disallow_instantiation": _TYPES,
    "test_lock_no_subclass": "tocsin.Lock may have subclasses",
    "test_threads_reaped": "it asks that one of ten threads has ended, and waits for none: with threads that start 0.2 s "
                           "late it fails with threading's types, too",
    "CRLockTests.test_signature": "tocsin.RLock refuses arguments, which CPython 3.13 takes with a warning",
}
# Tests of what an interpreter imports at its start. They fail without tocsin, too, where a .pth file imports threading.
if subprocess.run([sys.executable, "-I", "-c", "import sys; sys.exit('threading' in sys.modules)"],
                  check=False).returncode != 0:
    WAIVED["test_import_from_another_thread"] = "something imports threading at the start of this interpreter"

# With threading's types, too: seen on 3.12.1 and 3.13.0. In 3.13.15 the thread no longer takes the lock.
if sys.version_info >= (3, 12) and all(
        "shutdown_lock" in inspect.getsource(each)
        for each in (process._SafeQueue.__init__, process._ExecutorManagerThread.join_executor_internals)):
    WAIVED["test_shutdown_deadlock_pickle"] = ("a ProcessPoolExecutor of this version joins a thread with the lock that "
                                               "the thread needs after a failed pickle, and then stops for ever")


def waived(name):
    return next((reason for part, reason in WAIVED.items() if part in name), None)


def cases_of(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from cases_of(each)
        else:
            yield each


def main(modules):
    faulthandler.dump_traceback_later(1500, exit=True)
    # A shell has it ignored in programs that it starts in the background, and their children inherit that. A test of
    # test_threading, which interrupts a child to end it, would then wait for hours.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    loader, chosen, failed = unittest.TestLoader(), unittest.TestSuite(), False
    for name in modules:
        try:
            module = importlib.import_module(f"test.{name}")
        except ImportError as error:
            print(f"NOT RUN: test.{name}: {error}")
            continue
        found = loader.loadTestsFromModule(module)
        for case in cases_of(found):
            reason = waived(case.id())
            if reason:
                print(f"waived: {case.id()}: {reason}")
            else:
                chosen.addTest(case)
    result = unittest.TextTestRunner(verbosity=1).run(chosen)
    print(f"{result.testsRun - len(result.failures) - len(result.errors) - len(result.skipped)} passed, "
          f"{len(result.failures) + len(result.errors)} failed, {len(result.skipped)} skipped")
    faulthandler.cancel_dump_traceback_later()
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or MODULES))
