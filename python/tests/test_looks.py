# SPDX-License-Identifier: Apache-2.0
"""When a wait looks before it sleeps: looks_test.cpp has the cases, with a clock and a schedule of its own."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("TOCSIN_PYTHON_SOURCE") or pathlib.Path(__file__).parents[1])
COMPILER = shutil.which(os.environ.get("CXX", "c++"))


@unittest.skipUnless(COMPILER, "NOT RUN: no compiler for C++")
class Looks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.program = os.path.join(folder.name, "looks_test")
        subprocess.run([COMPILER, "-std=c++20", f"-I{SOURCE / 'src'}", f"-I{SOURCE.parent / 'include'}",
                        SOURCE / "tests" / "looks_test.cpp", "-o", cls.program], check=True)

    def case(self, name):
        done = subprocess.run([self.program, name], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_an_answer_that_is_there_at_once_is_no_reason_to_look(self):
        self.case("shared_processor")

    def test_waits_that_are_over_at_once_let_nobody_finish(self):
        self.case("never_waits")

    def test_looks_that_pay_go_on(self):
        self.case("dialogue")

    def test_an_answer_after_the_look_does_not_pay(self):
        self.case("late_answers")

    def test_tries_become_rarer(self):
        self.case("tries")

    def test_a_look_at_many_events_ends(self):
        self.case("many_events")


if __name__ == "__main__":
    unittest.main()
