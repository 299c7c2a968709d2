# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C in a terminal, at ten moments: the result and its report are kept, and the terminal says where."""

import contextlib
import importlib.util
import os
import pty
import re
import signal
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

from tocsin_lab.measure.results import load

NEEDED = ("jinja2", "vl_convert", "rich")
if not all(importlib.util.find_spec(name) for name in NEEDED):
    raise unittest.SkipTest(f"needs {', '.join(NEEDED)}, which ./dev lab installs")

LAB = Path(__file__).resolve().parents[1]
RUN = (sys.executable, LAB / "run.py")
DEV = LAB.parent / "dev"
CTRL_C = b"\x03"
SECOND_ROUND = r"round ([2-9]|\d\d+)/"  # or a later one: the bar doesn't show each


def dev_lab_would_install() -> bool:
    """Whether `./dev lab` would first fetch what lab/requirements.txt pins."""
    stamp = LAB.parent / ".venv" / "lab.installed"
    return not stamp.exists() or stamp.read_text() != (LAB / "requirements.txt").read_text()


class Terminal:
    """A command with a terminal of its own, as its foreground job."""

    def __init__(self, *command: object) -> None:
        self.shown = ""
        self.process, self._terminal = pty.fork()
        if self.process == 0:
            for each in (signal.SIGINT, signal.SIGHUP):  # whoever runs these tests may ignore them, as nohup does
                signal.signal(each, signal.SIG_DFL)
            os.execv(str(command[0]), [*map(str, command)])
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # the terminal is closed
            while data := os.read(self._terminal, 65536):
                self.shown += data.decode(errors="replace")

    def wait_for(self, pattern: str) -> None:
        end = time.monotonic() + 60
        while not re.search(pattern, self.shown):
            if time.monotonic() > end:
                raise AssertionError(f"no `{pattern}` in: {self.shown}")
            time.sleep(0.01)

    def type(self, keys: bytes) -> None:
        os.write(self._terminal, keys)

    def close(self) -> None:
        os.close(self._terminal)

    def code(self) -> int:
        _, status = os.waitpid(self.process, 0)
        self._reader.join()
        return os.waitstatus_to_exitcode(status)


class InterruptTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        os.symlink(Path(__file__).with_name("fake_worker.py"), self.folder / "tocsin_lab_worker_fake")
        self.path = self.folder / "result.json"

    def start(self, *options: object, program: tuple[object, ...] = RUN) -> Terminal:
        return Terminal(*program, "--workers", self.folder, "--scenario", "sprint", "--contestant", "tocsin", "--out",
                        self.path, *options)  # fmt: skip

    def keeps_result_and_report(self, program: tuple[object, ...], seconds: float) -> None:
        run = self.start("--rounds", 1000, "--budget-ms", 30, program=program)
        run.wait_for(SECOND_ROUND)
        time.sleep(seconds)
        run.type(CTRL_C)
        self.assertEqual(run.code(), 130, run.shown)
        result = load(self.path)
        self.assertTrue(result.interrupted)
        self.assertGreaterEqual(len(result.samples), 2)
        self.assertEqual(result.failures, [])
        self.assertIn('id="partial"', self.path.with_suffix(".html").read_text())
        self.assertIn(f"Everything measured: {self.path}", run.shown)
        self.assertIn(f"browser: {self.path.with_suffix('.html')}", run.shown)
        self.assertNotIn("Traceback", run.shown)
        self.path.unlink()
        self.path.with_suffix(".html").unlink()

    def test_keeps_result_and_report_whenever_it_comes(self) -> None:
        for moment in range(10):
            with self.subTest(moment=moment):
                self.keeps_result_and_report(RUN, moment * 0.037)

    @unittest.skipIf(dev_lab_would_install(), "./dev lab would install packages first")
    def test_keeps_them_in_a_run_of_dev_lab(self) -> None:
        self.keeps_result_and_report((DEV, "lab"), 0.1)  # builds nothing, because the workers are named

    def test_keys_that_are_pressed_again_and_again_change_nothing(self) -> None:
        run = self.start("--rounds", 1000, "--budget-ms", 30)
        run.wait_for(SECOND_ROUND)
        while os.waitid(os.P_PID, run.process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            with contextlib.suppress(OSError):  # it has just ended
                run.type(CTRL_C)
            time.sleep(0.05)
        self.assertEqual(run.code(), 130, run.shown)
        self.assertTrue(load(self.path).samples)
        self.assertTrue(self.path.with_suffix(".html").exists())

    def test_a_worker_that_takes_long_is_not_waited_for(self) -> None:
        run = self.start("--rounds", 2, "--budget-ms", 20, "--no-syscalls")
        run.wait_for("measuring")
        run.type(CTRL_C)
        run.code()
        run = self.start("--rounds", 2, "--budget-ms", 50_000, "--no-syscalls")
        run.wait_for("measuring")
        time.sleep(0.3)
        began = time.monotonic()
        run.type(CTRL_C)
        self.assertEqual(run.code(), 130)
        self.assertLess(time.monotonic() - began, 30)
        self.assertIn("Nothing was measured, so there is no report", run.shown)
        self.assertEqual(load(self.path).samples, [])

    def test_a_terminal_that_is_closed_loses_nothing(self) -> None:
        run = self.start("--rounds", 1000, "--budget-ms", 30)
        run.wait_for(SECOND_ROUND)
        run.close()
        run.code()
        self.assertTrue(load(self.path).samples)
        self.assertTrue(self.path.with_suffix(".html").exists())


if __name__ == "__main__":
    unittest.main()
