# SPDX-License-Identifier: Apache-2.0
"""The worker for the runtimes of other languages, without any of them."""

import contextlib
import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

from tocsin_lab.analyse.statistics import bucket_bounds, quantile
from tocsin_lab.measure.workers import Catalogue
from tocsin_lab.parsing import parse
from tocsin_lab.records import Description, Distribution

ROOT = Path(__file__).resolve().parents[2]
RUNTIMES = ROOT / "lab" / "worker" / "runtimes"
sys.path[:0] = [str(RUNTIMES), str(ROOT / "tools")]
import worker  # noqa: E402
from dev import needs  # noqa: E402


class DistributionTest(unittest.TestCase):
    def test_values_fall_into_the_buckets_that_readers_expect(self) -> None:
        for value in (0, 1, 255, 256, 257, 511, 512, 1_000_003, 1 << 40):
            low, high = bucket_bounds(worker.bucket(value), worker.SUB_BITS)
            self.assertTrue(low <= value < high, value)

    def test_a_distribution_can_be_read(self) -> None:
        read = Distribution.from_json(worker.distribution([3_000, 1_000, 2_000]))
        self.assertEqual((read.total, read.least, read.most), (3, 1_000, 3_000))
        self.assertAlmostEqual(quantile(read, 0.5) or 0, 2_000, delta=8)


class DescriptionTest(unittest.TestCase):
    def test_everybody_takes_part_in_what_they_have(self) -> None:
        catalogue = Catalogue()
        catalogue.add(Path("worker"), parse(Description, worker.describe({"java": [], "go": []})))
        taking_part = {tuple(case.parameters.values()): case.contestants for case in catalogue.scenarios["pairs"].cases}
        self.assertEqual(taking_part, {("auto_set_wait",): ["go_runtime"], ("manual_set_reset",): []})

    def test_every_language_has_a_case(self) -> None:
        needs = {need for *_, need in worker.CASES}
        for name, (_, _, has) in worker.LANGUAGES.items():
            self.assertTrue(has and has <= needs, name)

    def test_two_cores_are_needed_where_two_are_measured(self) -> None:
        for cores, refuses in (({3}, True), ({3, 5}, False)):
            with mock.patch.object(os, "sched_getaffinity", return_value=cores):
                described = worker.describe({"python": [], "wine": []})
            cases = [case for one in described["scenarios"] for case in one["cases"]]
            refused = {name for case in cases for name, why in case["refusals"].items() if why == "needs two cores"}
            self.assertEqual(refused, {"python_runtime", "wine_runtime"} if refuses else set())

    def test_a_refused_case_is_not_run(self) -> None:
        words = ["--run", "between_processes", "python_runtime", "work=ping_pong_2_cores"]
        with mock.patch.object(os, "sched_getaffinity", return_value={3}), contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(worker.main({"python": ["no such program"]}, words), 2)


class ProgramTest(unittest.TestCase):
    """A program that measures, and how it may end."""

    def measure(self, after_done: str, before_ready: str = "", watchdog_s: float = 60) -> dict[str, object]:
        program = f"import os, time\n{before_ready}\nfor word in ('ready', 'done'): print(word, flush=True); input()\n"
        return worker.measure([sys.executable, "-c", program + after_done], watchdog_s)

    def fails(self, code: int, after_done: str, before_ready: str = "", watchdog_s: float = 60) -> str:
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as end:
            self.measure(after_done, before_ready, watchdog_s)
        self.assertEqual(end.exception.code, code)
        return said.getvalue()

    def test_notes_and_failures_arrive(self) -> None:
        sample = self.measure("print('operations 4'); print('note not pinned here'); print('wrong two at once')")
        self.assertEqual((sample["notes"], sample["failures"]), (["not pinned here"], ["two at once"]))

    def test_a_program_that_breaks_gives_no_sample(self) -> None:
        self.assertIn("did not end well", self.fails(1, "os._exit(7)"))
        said = self.fails(1, "", "print('ready', flush=True); os._exit(1)")
        self.assertRegex(said, "ended at `ready`|did not reach `done`")
        self.assertIn("no event", self.fails(1, "", "os.write(2, b'no event'); os._exit(1)"))

    def test_the_watchdog_says_that_it_was_the_watchdog(self) -> None:
        self.assertIn("within 0.2 s", self.fails(3, "", "time.sleep(60)", 0.2))
        self.assertIn("within 2 s", self.fails(3, "time.sleep(60)", "", 2))

    def test_a_server_that_stays_does_not_hold_the_worker_up(self) -> None:
        stays = "if os.fork() == 0: os.close(0); os.close(1); time.sleep(20); os._exit(0)\n"
        program = f"import os, time\n{stays}for word in ('ready', 'done'): print(word, flush=True); input()"
        measures = "import sys; sys.path.insert(0, sys.argv[1]); import worker; worker.measure(sys.argv[2:], 60)"
        command = [sys.executable, "-c", measures, str(RUNTIMES), sys.executable, "-c", program]
        subprocess.run(command, check=True, capture_output=True, timeout=15)

    @unittest.skipUnless(sys.platform == "linux", "processes are measured on Linux only")
    def test_python_between_processes_takes_each_token(self) -> None:
        for work in ("set_take", "look", "ping_pong_1_core", "ping_pong_2_cores"):
            command = [sys.executable, str(RUNTIMES / "events.py"), "between_processes", "20", f"work={work}"]
            sample = worker.measure(command, 60)
            self.assertEqual(sample["failures"], [], work)
            self.assertGreater(sample["operations"], 0, work)

    @unittest.skipUnless(sys.platform == "linux", "processes are measured on Linux only")
    def test_a_partner_ends_with_its_parent(self) -> None:
        command = [sys.executable, RUNTIMES / "events.py", "between_processes", "60000", "work=ping_pong_1_core"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin and process.stdout
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.send_signal(signal.SIGKILL)
            # The partner has the other end, too.
            self.assertTrue(select.select([process.stdout], [], [], 20)[0], "the partner lives on")
            self.assertEqual(process.stdout.read(), b"")


class InstallationTest(unittest.TestCase):
    """What runtimes.cmake says, beside what others say."""

    text = (ROOT / "lab" / "runtimes.cmake").read_text()

    def test_wine_has_the_environment_of_its_preset(self) -> None:
        presets = json.loads((ROOT / "CMakePresets.json").read_text())["testPresets"]
        wanted = next(preset for preset in presets if preset["name"] == "wine")["environment"]
        given = "".join(re.findall(r"set\((?:windows|wine_environment) ([^)]*)\)", self.text))
        given = given.replace("${windows}", "${PROJECT_SOURCE_DIR}/build/wine")
        found = dict(word.split("=", 1) for word in re.findall(r'"(\w+=[^"]*)"', given))
        wanted = {name: value.replace("sourceDir", "PROJECT_SOURCE_DIR") for name, value in wanted.items()}
        self.assertEqual(found, wanted)
        self.assertIn('set(windows "${PROJECT_SOURCE_DIR}/build/wine")', self.text)

    def test_all_installs_what_a_runtime_needs(self) -> None:
        named = re.findall(r'^lab_runtime\(\w+ (?:"([^"]+)"|(\S+))', self.text, re.MULTILINE)
        packages = {package for quoted, plain in named for package in (quoted or plain).split(" and ")}
        self.assertGreaterEqual(packages, {"golang-go", "wine"})
        by_hand = {"cargo"}  # the README says that Rust's is needed
        self.assertLessEqual(packages - by_hand, {need.package for need in needs.FOR_ALL_CONTESTANTS})


if __name__ == "__main__":
    unittest.main()
