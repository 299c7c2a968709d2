# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/python.md."""

import importlib
import os
import pathlib
import sys
import unittest

FOLDER = pathlib.Path(os.environ.get("TOCSIN_PYTHON_SOURCE") or pathlib.Path(__file__).parents[1]) / "examples"


sys.path.insert(0, str(FOLDER))  # also of the processes that a program starts


def run(name):
    return importlib.import_module(name).main()


class Programs(unittest.TestCase):
    def test_a_worker_serves_its_queue_its_shutdown_and_a_socket(self):
        self.assertEqual(sorted(run("worker")), ["command reload", "job 1", "job 2"])

    def test_a_pool_stops_at_once(self):
        self.assertLess(run("thread_pool"), 30)

    def test_a_coroutine_and_a_thread_share_an_event(self):
        self.assertEqual(run("shared_event"), ["coroutine", "thread"] * 3)

    def test_a_killed_worker_holds_nobody_up(self):
        self.assertEqual(run("killed_worker"), ([2], 12))

    def test_a_supervisor_restarts_and_stops(self):
        self.assertEqual(run("supervisor"), ["fails ended with 3"] * 2 + ["stopped serves"])

    def test_a_notifier_reports_the_last_change(self):
        changes, reported = run("notifier")
        self.assertEqual(reported[-1], changes)
        self.assertLessEqual(len(reported), 8)


if __name__ == "__main__":
    unittest.main()
