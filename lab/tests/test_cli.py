"""The command line: how it answers bad input."""

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tests.made_by_hand import CONTESTANTS, description
from tests.outcome import outcome

class CommandLineTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.symlink(Path(__file__).with_name("fake_worker.py"), Path(folder.name, "tocsin_lab_worker_fake"))
        self.workers = ("--workers", folder.name)

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
                          ("--budget-ms", "nan"), ("--quick", "--full"), ("--seed", "x")):
            code, _, errors = outcome(*self.workers, *arguments)
            self.assertEqual(code, 2, arguments)
            self.assertIn("usage", errors)

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


if __name__ == "__main__":
    unittest.main()
