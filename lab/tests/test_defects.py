# SPDX-License-Identifier: Apache-2.0
"""`./dev lab defects`, with programs that crash, hang, see and don't see what they are told to."""

import dataclasses
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest.mock import patch

from tests.made_by_hand import stored
from tests.outcome import outcome
from tocsin_lab.defects import BY_ID, DEFECTS, Findings, Row, Side, Trial
from tocsin_lab.measure.interruption import Interruption
from tocsin_lab.measure.reproductions import SOURCES, load_findings, try_side
from tocsin_lab.measure.reproductions import program as built
from tocsin_lab.parsing import as_json, parse

NEEDED = ("jinja2", "rich")
if not all(importlib.util.find_spec(name) for name in NEEDED):
    raise unittest.SkipTest(f"needs {', '.join(NEEDED)}, which ./dev lab installs")

from tocsin_lab.present.defects import make_page, row_in_words  # noqa: E402 (needs the packages)

RUN = Path(__file__).resolve().parents[1] / "run.py"
SEEN = """print('{"seen": 3, "tries": 1000, "seconds": 2.0, "version": "peer 1", "note": ""}')"""
EVEN = """print('{"seen": 0, "tries": 1000, "seconds": 2.0, "version": "tocsin", "note": ""}')"""
CRASH = "import os; os.abort()"
RUBBISH = """print('{"seen": "three"}')"""
HANG = "import time; time.sleep(60)"


def program(peer: str, ours: str) -> str:
    # Not sys.executable, whose path may have a blank: the kernel takes a path in this line to end there.
    return f"#!/usr/bin/env python3\nimport sys\nexec({peer!r} if sys.argv[1] == 'peer' else {ours!r})\n"


def findings(*rows: Row, **changes: object) -> Findings:
    made = stored([])
    return parse(Findings, {"started": made["started"], "finished": made["finished"], "interrupted": False,
                            "budget_s": 2, "project": made["project"], "machine": made["machine"], "format": 1,
                            "rows": as_json(list(rows)), **changes})  # fmt: skip


def trial(seen: int, **changes: object) -> Side:
    return Side(trial=dataclasses.replace(Trial(seen, 28_961, 6.0, "peer 1"), **changes))


class DefectsTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.result = self.folder / "found.json"

    def add(self, identity: str, peer: str, ours: str) -> None:
        path = built(BY_ID[identity].program, self.folder)
        path.write_text(program(peer, ours))
        path.chmod(0o755)

    def command(self, *only: str) -> list[object]:
        return ["defects", "--only", ",".join(only), "--budget", "0.1", "--programs", self.folder,
                "--out", self.result]  # fmt: skip

    def test_the_list_is_whole(self) -> None:
        self.assertEqual(len(BY_ID), len(DEFECTS))
        for one in DEFECTS:
            for name in filter(None, (one.program, one.ours)):
                self.assertTrue((SOURCES / name).is_file(), name)
            self.assertTrue(all((one.cause, one.counterpart, one.sources, one.before)), one.id)
            self.assertTrue(one.load or not one.program and not one.ours, one.id)
            self.assertTrue(one.tries.endswith("s"), one.id)

    def test_a_row_in_words(self) -> None:
        text = row_in_words(Row("rsevents-time-out", trial(3), trial(0)))
        self.assertIn("seen 3 times in 28,961 races, 6.0 s", text)
        self.assertIn("not seen in 6.0 s, in 28,961 races", text)
        text = row_in_words(Row("winpr-auto-reset", trial(1, tries=1), Side(absent="tocsin has none.")))
        self.assertIn("seen 1 time in 1 event, 6.0 s", text)
        self.assertIn("tocsin has none.", text)
        text = row_in_words(Row("std-semaphore", trial(0, tries=0), trial(0)))
        self.assertIn("not tried, no phases in 6.0 s", text)

    def test_what_a_peer_does_never_fails_the_run(self) -> None:
        for peer, expected in ((SEEN, "seen 3 times in 1,000"), (CRASH, "signal 6"), (RUBBISH, "gave no result")):
            self.add("winpr-auto-reset", peer, EVEN)
            code, out, errors = outcome(*self.command("winpr-auto-reset"))
            self.assertEqual((code, errors), (0, ""))
            self.assertIn(expected, out)
            self.assertIn("not seen in 2.0 s, in 1,000 events", out)

    def test_a_missing_peer_is_a_row_with_words(self) -> None:
        code, out, _ = outcome(*self.command("winpr-auto-reset"))
        self.assertEqual(code, 0)
        self.assertIn("not here: needs libwinpr2-dev", out)

    def test_a_defect_that_is_told_runs_tocsin_alone(self) -> None:
        path = built(BY_ID["threading-handler"].ours, self.folder)
        path.write_text(program(CRASH, EVEN))
        path.chmod(0o755)
        code, out, _ = outcome(*self.command("threading-handler", "multiprocessing"))
        self.assertEqual(code, 0)
        self.assertIn("not run here; we saw it at 9 of 15 signals, with 3.11.7", out)
        self.assertIn("not seen in 2.0 s, in 1,000 signals", out)
        self.assertIn("tests kill a waiter after each of its instructions", out)

    def test_only_what_ends_by_itself_has_a_program(self) -> None:
        told = {one.id for one in DEFECTS if one.told}
        self.assertEqual(told, {"multiprocessing", "glibc-condition", "threading-handler", "windows-atomic-wait"})
        named = {name for one in DEFECTS for name in (one.program, one.ours) if name}
        self.assertEqual({path.name for path in SOURCES.glob("*.cpp")}, named)

    def test_tocsin_fails_the_run(self) -> None:
        for ours in (SEEN, CRASH, RUBBISH):
            self.add("winpr-auto-reset", EVEN, ours)
            code, _, errors = outcome(*self.command("winpr-auto-reset"))
            self.assertEqual(code, 1)
            self.assertIn("tocsin fails in: winpr-auto-reset", errors)
            self.assertTrue(load_findings(self.result).rows[0].ours_fails)

    def test_a_program_that_hangs_is_ended(self) -> None:
        path = self.folder / "hang"
        path.write_text(program(HANG, HANG))
        path.chmod(0o755)
        began = time.monotonic()
        # A budget below 0 shortens the limit, which is otherwise half a minute longer than the budget.
        side = try_side(path, "peer", -29.5, Interruption(), "")
        self.assertLess(time.monotonic() - began, 20)
        self.assertIn("no answer within", side.failure or "")

    def test_an_interruption_keeps_what_was_seen(self) -> None:
        self.add("std-semaphore", SEEN, EVEN)
        self.add("winpr-auto-reset", HANG, EVEN)
        command = [sys.executable, RUN, *map(str, self.command("std-semaphore", "winpr-auto-reset"))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            while "tocsin counting_semaphore" not in process.stdout.readline():
                self.assertIsNone(process.poll())
            os.kill(process.pid, signal.SIGTERM)
            _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn("interrupted", errors)
        found = load_findings(self.result)
        self.assertTrue(found.interrupted)
        self.assertEqual([row.defect for row in found.rows], ["std-semaphore"])
        self.assertIn("Partial", self.result.with_suffix(".html").read_text())

    def test_the_page_has_every_row_and_table(self) -> None:
        evil = "<img src=x>"
        page = make_page(findings(
            Row("rsevents-time-out", trial(3, note=evil), trial(0)),
            Row("winpr-auto-reset", Side(failure=f"no result {evil}"), Side(absent="not run")),
            Row("multiprocessing", Side(absent="told"), Side(absent="tocsin has no event")),
            Row("of-another-version", trial(3), trial(0)),
        ))  # fmt: skip
        for expected in ("Seen 3 times", "in 28,961 races, 6.0 s", "Not seen in 6.0 s", "peer 1", "Abacus",
                         "No counterpart", "No result", "Told in words", "1 more is told in words",
                         "tocsin has no event", "neosmart/pevents#9",
                         "Looked for and not found", "glibc 25847",
                         'href="https://github.com/python/cpython/issues/75158"'):  # fmt: skip
            self.assertIn(expected, page)
        self.assertNotIn(evil, page)
        self.assertNotRegex(page, r"(src|href)=\"http[^\"]*\.(js|css)")

    def test_the_page_says_when_tocsin_fails(self) -> None:
        self.assertIn("failed in 1", make_page(findings(Row("std-semaphore", trial(0), trial(1)))))
        self.assertIn("showed <strong", make_page(findings(Row("std-semaphore", trial(0), trial(0)))))

    def test_a_page_is_made_again(self) -> None:
        self.result.write_text(json.dumps(as_json(findings(Row("std-semaphore", trial(1), trial(0))))))
        code, out, _ = outcome("defects", "--from", self.result)
        self.assertEqual(code, 0)
        self.assertIn(str(self.result.with_suffix(".html")), out)
        self.result.write_text(json.dumps(stored([])))
        code, _, errors = outcome("defects", "--from", self.result)
        self.assertEqual(code, 2)
        self.assertIn("is no result of ./dev lab defects", errors)

    def test_wrong_arguments_are_answered_at_once(self) -> None:
        for arguments, expected in (
            (("--only", "nope"), f"unknown defect nope; valid: {', '.join(BY_ID)}"),
            (("--only", ","), "valid: std-semaphore"),
            (("--budget", "0"), "expected a number above 0"),
            (("--from", "nowhere.json"), "nowhere.json: No such file"),
        ):
            command = [sys.executable, "-I", "-S", RUN, "defects", *arguments]
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn(expected, done.stderr)


if __name__ == "__main__":
    unittest.main()
