# SPDX-License-Identifier: Apache-2.0
"""The worker for the Python package. The package itself is not there: those that Python brings take part."""

import contextlib
import io
import json
import sys
import unittest
from pathlib import Path
from unittest import mock

from tocsin_lab.measure.workers import Catalogue
from tocsin_lab.parsing import parse
from tocsin_lab.records import Description, Sample
from tocsin_lab.scenarios import KNOWN

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "worker" / "runtimes"))
import package  # noqa: E402

BROUGHT = ("call", "threading", "multiprocessing", "eventfd", "asyncio")
PROGRAMS = {"here": (sys.executable, "")}


class PackageTest(unittest.TestCase):
    def setUp(self) -> None:
        described = json.loads(json.dumps(package.Interpreters(PROGRAMS).describe()))
        self.catalogue = Catalogue()
        self.catalogue.add(Path("worker"), parse(Description, described))

    def sample_of(self, scenario: str, contestant: str, *words: str) -> Sample:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = package.main(PROGRAMS, ["--run", scenario, contestant, *words, "--budget-ms", "1"])
        sample = parse(Sample, json.loads(out.getvalue()))
        self.assertEqual((code, sample.failures), (0, ()), (scenario, contestant, words))
        return sample

    def test_every_target_is_of_a_column_and_of_cases_that_exist(self) -> None:
        for name, scenario in self.catalogue.scenarios.items():
            keys = {column.key for column in scenario.columns}
            for target in KNOWN[name].targets:
                self.assertIn(target.key, keys, name)
                self.assertTrue(any(target.applies_to(case.parameters) for case in scenario.cases), (name, target))

    @unittest.skipUnless(sys.platform == "linux", "counts threads and descriptors in /proc")
    def test_every_scenario_gives_the_figures_that_it_promises(self) -> None:
        for name, scenario in self.catalogue.scenarios.items():
            for case in scenario.cases:
                for contestant in set(BROUGHT) & set(case.contestants):
                    if case.parameters.get("threads") == "1000":
                        continue  # takes a second, and is the case of 100 threads otherwise
                    words = [f"{key}={value}" for key, value in case.parameters.items()]
                    sample = self.sample_of(name, contestant, *words)
                    for column in scenario.columns:
                        self.assertIn(column.metric, {*sample.values, *sample.distributions}, (name, contestant))

    def test_a_peer_that_is_not_installed_is_named(self) -> None:
        with mock.patch.object(package.Interpreters, "missing_in", return_value=["gevent"]):
            cases = package.Interpreters(PROGRAMS).describe()["scenarios"][0]["cases"]
        self.assertEqual({case["refusals"]["gevent"] for case in cases}, {"is not installed"})

    def test_a_case_that_does_not_exist_is_refused(self) -> None:
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            code = package.main(PROGRAMS, ["--run", "python_calls", "eventfd", "python=here", "operation=create"])
        self.assertEqual(code, 2)
        self.assertIn("no such case", errors.getvalue())


if __name__ == "__main__":
    unittest.main()
