# SPDX-License-Identifier: Apache-2.0
"""The page, without a browser: what it says, and that it is written whole or not at all."""

import importlib.util
import io
import json
import lzma
import re
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from tests.made_by_hand import CONTESTANTS, contestant, result, rounds_of, stored
from tests.outcome import outcome
from tests.test_scaling import measured
from tocsin_lab import files, scenarios
from tocsin_lab.measure.results import save
from tocsin_lab.records import Result
from tocsin_lab.scenarios import Knowledge, Reason, Target

NEEDED = ("jinja2", "vl_convert", "rich")
if all(importlib.util.find_spec(name) for name in NEEDED):
    from rich.console import Console

    from tocsin_lab.commands import measure
    from tocsin_lab.analyse import summary
    from tocsin_lab.present import report, sections, tables
    from tocsin_lab.present.context import Context
else:
    raise unittest.SkipTest(f"needs {', '.join(NEEDED)}, which ./dev lab installs")

SAMPLES = [
    *rounds_of("floor", 10, 11, 10, 11, 10, 11),
    *rounds_of("tocsin", 30, 31, 30, 31, 30, 31),
    *rounds_of("fast", 20, 21, 20, 21, 20, 21),
]


def some_result(**changes: Any) -> Result:
    return result(SAMPLES, **changes)


class ChartLibraryTest(unittest.TestCase):
    def test_is_made_once_for_each_version_and_without_a_place_to_keep_it_each_time(self) -> None:
        maker = mock.Mock(__version__="1")
        maker.javascript_bundle.side_effect = ["first", "second", "third", "fourth"]
        made = report.chart_library.__wrapped__  # without what this process remembers
        with (tempfile.TemporaryDirectory() as name,
              mock.patch.multiple(report, vl_convert=maker, KEPT=Path(name, "new"))):  # fmt: skip
            self.assertEqual([made(), made()], ["first", "first"])
            maker.__version__ = "2"
            self.assertEqual(made(), "second")
            Path(name, "file").touch()
            with mock.patch.object(report, "KEPT", Path(name, "file")):
                self.assertEqual([made(), made()], ["third", "fourth"])


class ReportTest(unittest.TestCase):
    def page(self, made: Result) -> str:
        with mock.patch.object(report, "chart_library", return_value="/* charts */"):
            return report.make_report(made)

    def test_says_which_contestant_wins_and_where_tocsin_loses(self) -> None:
        page = self.page(some_result())
        self.assertIn('<p class="winner">fast <span class="figure">20.5 ns</span></p>', page)
        self.assertIn("tocsin takes 1.49 × as much", page)
        self.assertIn('<strong class="loss">takes more in 1</strong>', page)
        self.assertIn("Not known yet.", page)
        self.assertNotIn('id="partial"', page)

    def test_says_of_nobody_that_it_takes_once_as_much(self) -> None:
        made = self.page(result([*rounds_of("tocsin", *[1000] * 6), *rounds_of("slow", *[1004] * 6)]))
        self.assertIn("slow", made)
        self.assertNotIn("slow takes 1.00", made)

    def finding(self, *samples: list[dict[str, Any]]) -> str:
        page = self.page(result([one for some in samples for one in some]))
        text = re.search(r'<p class="finding" id="finding">(.*?)</p>', page, re.DOTALL)
        assert text, "a page that was made from answers begins with what it found"
        return re.sub(r"<[^>]*>|\s+", lambda match: "" if match[0].startswith("<") else " ", text[1])

    def test_begins_with_what_it_found(self) -> None:
        ours, slow = rounds_of("tocsin", *[10, 11] * 3), rounds_of("slow", *[40, 44] * 3)
        self.assertEqual(
            self.finding(ours, slow),
            "In 1 comparison with the best of the others, tocsin takes less in 1 (most in How fast?, where the next "
            "one, slow, takes 4.00 × as much), is not slower in 0 and takes more in 0.",
        )
        self.assertIn("takes more in 1 (most in How fast?, where it takes 5.25 × as much as fast)",
                      self.finding(ours, rounds_of("fast", *[2] * 6)))  # fmt: skip
        self.assertIn("is not slower in 1 and", self.finding(ours, rounds_of("fast", *[9, 11] * 3)))

    def test_the_terminal_counts_the_same_comparisons(self) -> None:
        found = tables.finding(summary.tally(summary.summarise(some_result())))
        self.assertEqual(found, "In 1 comparison with the best of the others, tocsin takes less in 0, is not slower in "
                                "0 and takes more in 1.")  # fmt: skip

    def test_a_column_that_was_not_measured_is_absent(self) -> None:
        self.assertNotIn("system calls</th>", self.page(some_result()))

    def test_no_card_heads_with_a_contestant_that_is_level_with_tocsin(self) -> None:
        page = self.page(result(rounds_of("tocsin", *[10, 11] * 3) + rounds_of("fast", *[9, 11] * 3)))
        self.assertIn('<p class="winner">Level among two</p>', page)
        self.assertIn("tocsin 10.5 ns; fast has the least median, 10.0 ns", page)

    def test_screen_readers_get_every_contestant(self) -> None:
        names = [f"peer{number}" for number in range(12)]
        contestants = [contestant("tocsin", "ours"), *(contestant(name, "peer") for name in names)]
        samples = [one for speed, name in enumerate(names, 1) for one in rounds_of(name, *[speed] * 6)]
        page = self.page(result(samples + rounds_of("tocsin", *[99] * 6), contestants=contestants))
        texts = re.findall(r'role="img" aria-label="([^"]*)"', page)
        self.assertGreater(len(texts), 1)
        for text in texts:
            for name in (*names, "tocsin"):
                self.assertRegex(text, rf"\b{name}\b")

    def test_losses_with_the_same_reason_are_together(self) -> None:
        page = self.page(some_result())
        self.assertEqual(page.count('<p class="reason">Not known yet.</p>'), 1)

    def test_a_missed_target_of_a_variant_has_the_reason_of_the_variant(self) -> None:
        contestants = [*CONTESTANTS, contestant("narrow", "variant")]
        made = result([*SAMPLES, *rounds_of("narrow", *[30] * 6)], contestants=contestants)
        targets = (Target("time", "fast", 1.0, contestant="narrow"),)
        reasons = (
            Reason("tocsin is wide.", ("time",)),
            Reason("It is narrow.", ("time",), contestant="narrow"),
        )
        with mock.patch.object(scenarios, "KNOWN", {"sprint": Knowledge(targets=targets, reasons=reasons)}):
            (row,) = sections.targets(Context(made))
            (loss,) = sections.losses(Context(made))
        self.assertEqual((row.reason, loss.reason), ("It is narrow.", "tocsin is wide."))

    def test_names_the_system_that_it_was_measured_on(self) -> None:
        machine = stored([])["machine"]
        for system, kernel, workers, expected in (
            ("Linux-6.18.4-x86_64-with-glibc2.36", "6.18.4", ("w",), "Linux 6.18.4"),
            ("Windows-10-10.0.19045-SP0", "10", ("w.exe",), "Windows 10"),
            ("macOS-14.1-arm64-arm-64bit", "23.1.0", ("w",), "macOS 14.1"),
            ("Linux-6.18.4-x86_64-with-glibc2.36", "6.18.4", ("w.exe",), "Wine on Linux 6.18.4"),
        ):
            workers = {name: {"compiler": "c", "flags": "f", "standard_library": "s"} for name in workers}
            made = some_result(machine={**machine, "system": system, "kernel": kernel}, workers=workers)
            self.assertIn(f"\n    {expected}, on <time", self.page(made))

    def test_a_partial_run_says_so(self) -> None:
        page = self.page(some_result(interrupted=True, rounds_finished=2))
        self.assertIn("interrupted after 2 of\n    6 rounds", page)

    def test_says_that_the_machine_was_not_quiet_and_what_failed(self) -> None:
        quietness = {"before": {"others": 0, "stolen": 0}, "rounds": [{"others": 0.5, "stolen": 0.0}]}
        failure = {"scenario": "sprint", "parameters": {"threads": "1"}, "contestant": "slow", "while": "run",
                   "round": 1, "reason": "hangs"}  # fmt: skip
        page = self.page(some_result(quietness=quietness, failures=[failure]))
        self.assertIn("Not quiet.", page)
        self.assertIn("slow failed: hangs", page)

    def test_names_from_a_result_stay_text(self) -> None:
        evil = "</script><script>alert(1)</script>"
        contestants = [{**one, "label": evil} if one["name"] == "fast" else one for one in CONTESTANTS]
        self.assertNotIn(evil, self.page(some_result(contestants=contestants)))

    def test_a_result_with_its_costs_predicts_more_cores(self) -> None:
        self.assertNotIn("More cores than here", self.page(some_result()))
        page = self.page(measured())
        self.assertIn("More cores than here", page)
        self.assertIn("tree of 16: last", page)
        heading = ">256 cores</th>"
        self.assertGreater(page.count(heading), 1)
        self.assertEqual(self.page(measured(cores=1)).count(heading), 0)

    def test_nothing_measured_makes_no_page(self) -> None:
        with self.assertRaises(report.ReportError):
            self.page(result([]))

    def test_the_data_of_the_charts_is_json(self) -> None:
        page = self.page(some_result())
        text = page.split('<script type="application/json" id="data">')[1].split("</script>")[0]
        data = json.loads(text)
        self.assertEqual([one["name"] for one in data["contestants"]], ["floor", "tocsin", "fast"])
        self.assertEqual(page.count("data-chart="), len(data["charts"]))


class VerbTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.slow, self.fast = self.folder / "slow.json", self.folder / "fast.json"
        save(some_result(), self.slow)
        save(result(rounds_of("floor", *[10, 11] * 3) + rounds_of("tocsin", *[12, 13] * 3)), self.fast)

    def test_report_writes_beside_the_result_and_again(self) -> None:
        for _ in range(2):
            self.assertEqual(outcome("report", self.slow)[0], 0)
        page = (self.folder / "slow.html").read_text()
        self.assertIn("vegaEmbed", page)
        self.assertLess(len(page), 3_000_000)

    def test_the_page_of_a_compressed_result_has_its_plain_name(self) -> None:
        compressed = self.folder / "small.json.xz"
        compressed.write_bytes(lzma.compress(self.slow.read_bytes()))
        self.assertEqual(outcome("report", compressed)[0], 0)
        self.assertTrue((self.folder / "small.html").exists())

    def test_scaling_puts_predicted_beside_measured_and_adds_more_cores(self) -> None:
        path = self.folder / "two.json"
        save(measured(), path)
        code, out, errors = outcome("scaling", path, "--cores", "2,96", "--waiters", "10,1000")
        self.assertEqual((code, errors), (0, ""))
        for expected in ("wake_idle", "measured by predicted", "broadcast to 1,000 waiters", "96 cores",
                         "each time one of 10 events"):  # fmt: skip
            self.assertIn(expected, out)

    def test_scaling_from_one_core_predicts_one(self) -> None:
        path = self.folder / "one.json"
        save(measured(cores=1), path)
        code, out, _ = outcome("scaling", path, "--waiters", "10")
        self.assertEqual(code, 0)
        self.assertIn("only one is predicted", out)
        self.assertNotIn("256 cores", out)

    def test_scaling_says_what_a_result_lacks_and_refuses_nonsense(self) -> None:
        code, _, errors = outcome("scaling", self.slow)
        self.assertEqual(code, 2)
        self.assertIn("./dev lab --scenario floors,ping_pong,lot,broadcast", errors)
        for arguments in (("--cores", "0"), ("--waiters", "ten"), ("--cores", "9999"), ("--cores", "")):
            self.assertEqual(outcome("scaling", self.slow, *arguments)[0], 2)

    def test_compare_says_which_results_it_compares(self) -> None:
        _, out, _ = outcome("compare", self.fast, self.slow)
        self.assertIn(f"{self.fast}: commit 0123456789, 2026-01-02T03:04, Abacus, 6 rounds", out)

    def test_report_where_nothing_can_be_written(self) -> None:
        code, _, errors = outcome("report", self.slow, "--out", "/proc/no/such/page.html")
        self.assertEqual(code, 3)
        self.assertIn("can't be written", errors)

    def test_a_full_disk_leaves_no_half_page(self) -> None:
        with mock.patch.object(files.os, "replace", side_effect=OSError(28, "No space left on device")):
            code, _, errors = outcome("report", self.slow)
        self.assertEqual(code, 3)
        self.assertIn("No space left", errors)
        self.assertEqual(sorted(one.name for one in self.folder.iterdir()), ["fast.json", "slow.json"])

    def test_compare_says_by_its_exit_code_whether_tocsin_became_slower(self) -> None:
        code, out, _ = outcome("compare", self.fast, self.slow)
        self.assertEqual(code, 1)
        self.assertIn("sprint, threads 1: time", out)
        self.assertEqual(outcome("compare", self.slow, self.fast)[0], 0)
        self.assertEqual(outcome("compare", self.slow, self.slow)[0], 0)

    def test_unknown_names_are_answered_with_the_valid_ones(self) -> None:
        for arguments, expected in (
            (("raport",), "unknown verb raport (did you mean report?); valid: report, compare, scaling, quote, defects"),
            (("--sed=5",), "unknown option --sed (did you mean --seed?); valid: --help, --whole, --full"),
            (("report", self.slow, "--uot", "x"), "unknown option --uot (did you mean --out?); valid: --help, --out"),
            (("--smoke", "extra"), "unexpected: extra"),
            (("compare", self.slow, self.fast, "--scenario", "marathon"), "valid: sprint, rest"),
            (("compare", self.slow, self.fast, "--contestant", "nobody"), "valid: floor, tocsin, fast"),
            (("report", self.folder / "none.json"), "No such file"),
        ):
            code, _, errors = outcome(*arguments)
            self.assertEqual(code, 2, arguments)
            self.assertIn(expected, errors)

    def test_a_file_of_another_version_is_compared_with_a_warning_or_refused(self) -> None:
        newer = self.folder / "newer.json"
        save(some_result(format=2), newer)
        code, out, _ = outcome("compare", self.slow, newer)
        self.assertEqual(code, 0)
        self.assertIn("different formats: 1 and 2", out)
        newer.write_text(json.dumps(stored([{"else": 1}], format=2)))
        self.assertEqual(outcome("compare", self.slow, newer)[0], 2)
        self.assertEqual(outcome("report", newer)[0], 2)


class PartialRunTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name, "result.json")

    def outcome(self, made: Result) -> tuple[int, str]:
        session = mock.Mock()
        session.run.return_value = made
        out = io.StringIO()
        return measure.measure(Console(file=out, width=140), session, self.path), out.getvalue()

    def test_an_interrupted_run_writes_its_report_and_says_it_is_partial(self) -> None:
        code, out = self.outcome(some_result(interrupted=True, rounds_finished=1))
        self.assertEqual(code, 130)
        self.assertIn('id="partial"', self.path.with_suffix(".html").read_text())
        self.assertIn("result.html", out)

    def test_a_run_that_was_interrupted_at_once_has_a_result_and_no_page(self) -> None:
        code, out = self.outcome(result([], interrupted=True, rounds_finished=0))
        self.assertEqual(code, 130)
        self.assertTrue(self.path.exists())
        self.assertFalse(self.path.with_suffix(".html").exists())
        self.assertNotIn("Report", out)


if __name__ == "__main__":
    unittest.main()
