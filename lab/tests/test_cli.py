# SPDX-License-Identifier: Apache-2.0
"""The command line: how it answers bad input."""

import importlib.util
import os
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tests.made_by_hand import CONTESTANTS, description
from tests.outcome import outcome

RUN = Path(__file__).resolve().parents[1] / "run.py"
needs_rich = unittest.skipUnless(importlib.util.find_spec("rich"), "needs rich, which ./dev lab installs")

class CommandLineTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.symlink(Path(__file__).with_name("fake_worker.py"), Path(folder.name, "tocsin_lab_worker_fake"))
        self.workers = ("--workers", folder.name)

    @needs_rich
    def test_unknown_names_list_the_valid_ones(self) -> None:
        for arguments, expected in (
            (("--scenario", "marathon"), "unknown scenario marathon; valid: sprint, rest"),
            (("--contestant", "tocsin,nobody"), "unknown contestant nobody; valid: floor, tocsin"),
            (("--where", "threads=2", "--where", "size=1"), "unknown parameter size; valid: threads"),
            (("--where", "threads=2,77"), "unknown value of threads 77; valid: 1, 2"),
        ):
            code, _, errors = outcome(*self.workers, *arguments)
            self.assertEqual(code, 2)
            self.assertIn(expected, errors)

    def test_nonsense_is_refused_with_a_usage_line(self) -> None:
        for arguments in (("--fast",), ("--rounds", "0"), ("--rounds", "1.5"), ("--where", "threads"),
                          ("--budget-ms", "nan"), ("--whole", "--full"), ("--seed", "x")):
            code, _, errors = outcome(*self.workers, *arguments)
            self.assertEqual(code, 2, arguments)
            self.assertIn("usage", errors)

    @needs_rich
    def test_a_run_that_no_contestant_can_take_part_in(self) -> None:
        alone = {**description()["scenarios"][0], "cases": [
            {"parameters": {"threads": "1"}, "tier": "quick", "refusals": {one["name"]: "no" for one in CONTESTANTS}}]}
        with mock.patch("tocsin_lab.measure.workers.ask", return_value=description(scenarios=[alone])):
            code, _, errors = outcome(*self.workers)
        self.assertEqual(code, 2)
        self.assertIn("nothing to run", errors)

    def test_without_workers_it_says_how_to_get_them(self) -> None:
        code, _, errors = outcome("--workers", "nowhere")
        self.assertEqual(code, 2)
        self.assertIn("./dev lab", errors)

    def test_smoke_names_the_failures(self) -> None:
        code, out, _ = outcome(*self.workers, "--smoke")
        self.assertEqual(code, 1)
        self.assertIn("slow: 2 and 2 is 4", out)
        self.assertRegex(out, r"\d+ passed, \d+ failed\n$")

    def test_help_and_wrong_arguments_need_no_packages(self) -> None:
        for arguments, code, expected in (
            (("--help",), 0, "--contestant"),
            (("report", "-h"), 0, "RESULT.json"),
            (("--fast",), 2, "unknown option --fast"),
            (("report", "nowhere.json"), 2, "nowhere.json: No such file"),
        ):
            # -S: without installed packages
            done = subprocess.run([sys.executable, "-I", "-S", RUN, *arguments], capture_output=True, text=True)
            self.assertEqual(done.returncode, code, arguments)
            self.assertIn(expected, done.stdout + done.stderr)

    def test_smoke_needs_no_packages(self) -> None:
        command = [sys.executable, "-I", "-S", RUN, "--smoke", *self.workers]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertRegex(done.stdout, r"\d+ passed, \d+ failed\n$")

    def test_out_replaces_nothing_but_files(self) -> None:
        folder = Path(self.workers[1])
        pipe = folder / "pipe"
        os.mkfifo(pipe)
        for path, reason in (
            (pipe, "Is no regular file"),
            (os.devnull, "Is no regular file"),
            (folder, "Is a directory"),
            (folder / "page.html", "expected the name of a JSON file"),
        ):
            code, _, errors = outcome(*self.workers, "--out", path)
            self.assertEqual(code, 2)
            self.assertIn(f"{path}: {reason}", errors)
        self.assertTrue(stat.S_ISFIFO(pipe.stat().st_mode))


if __name__ == "__main__":
    unittest.main()
