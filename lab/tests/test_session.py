# SPDX-License-Identifier: Apache-2.0
"""A whole session with a worker that misbehaves."""

import os
import signal
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

from tocsin_lab.analyse.summary import summarise
from tocsin_lab.measure import session as sessions
from tocsin_lab.measure.interruption import SIGNALS, Interruption
from tocsin_lab.measure.plan import Mode, Selection, UnknownName, select
from tocsin_lab.measure.session import Session
from tocsin_lab.measure.workers import WorkerError, ask, find_workers, load_catalogue
from tocsin_lab.records import Disturbance, Plan, Sample


class Silent:
    def __init__(self) -> None:
        self.said: list[str] = []
        self.done = ("", 0)  # a phase, and how many of its steps
        self.interrupt_at: tuple[str, int] | None = None

    def phase(self, name: str, steps: int) -> None:
        self.done = (name, 0)

    def step(self, what: str, seconds_left: float) -> None:
        self.done = (self.done[0], self.done[1] + 1)
        if self.done == self.interrupt_at:
            signal.raise_signal(signal.SIGINT)

    def say(self, text: str) -> None:
        self.said.append(text)


class SessionTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.symlink(Path(__file__).with_name("fake_worker.py"), Path(folder.name, "tocsin_lab_worker_fake"))
        self.catalogue = load_catalogue(find_workers(Path(folder.name)))
        quiet = mock.patch.object(sessions.machine, "observe_quietness", return_value=Disturbance(0.0, 0.0))
        quiet.start()
        self.addCleanup(quiet.stop)
        self.observer = Silent()
        self.interruption = Interruption()

    def session(self, rounds: int = 3, **changes) -> Session:
        pairs = select(self.catalogue, Selection(("sprint",)), "quick")
        mode = Mode("test", "quick", rounds, 1)
        return Session(self.catalogue, pairs, mode, 7, self.observer, Path("."), self.interruption, **changes)

    def test_measures_every_round_and_leaves_out_wrong_contestants(self) -> None:
        result = self.session().run()
        measured = [(one.round, one.contestant) for one in result.samples]
        self.assertCountEqual(measured, [(n, name) for n in (1, 2, 3) for name in ("floor", "tocsin")])
        self.assertEqual(result.rounds_finished, 3)
        self.assertFalse(result.interrupted)

    def test_a_worker_that_is_gone_costs_its_samples_and_nothing_else(self) -> None:
        def ask_twice(*given, **named):
            phase, steps = self.observer.done
            if phase == "measuring" and steps > 4:  # the first round, and some of the second
                for worker in set(self.catalogue.worker_of.values()):
                    worker.unlink(missing_ok=True)
            return real(*given, **named)

        real = sessions.run_pair
        with mock.patch.object(sessions, "run_pair", ask_twice):
            result = self.session(count_syscalls=False).run()
        self.assertGreater(len(result.samples), 0)
        self.assertIn("can't be run: No such file", " ".join(one.reason for one in result.failures))
        self.assertIsNotNone(result.finished)

    def test_failures_name_the_contestant_and_the_reason_and_end_after_two(self) -> None:
        result = self.session(rounds=5).run()
        reasons = [(one.contestant, one.mode, one.reason) for one in result.failures]
        self.assertEqual(reasons.count(("slow", "check", "wrong: 2 and 2 is 4")), 1)
        self.assertEqual(reasons.count(("fast", "run", "watchdog: did not finish")), 2)
        (case,) = summarise(result)
        self.assertEqual(set(case.excluded), {"slow", "fast"})

    def test_counts_system_calls_once(self) -> None:
        result = self.session().run()
        self.assertEqual([one.contestant for one in result.counts], ["floor", "tocsin", "fast"])
        self.assertEqual(self.session(count_syscalls=False).run().counts, [])

    def test_continues_to_count_after_a_worker_that_cannot(self) -> None:
        elsewhere = self.catalogue.worker_of["slow"].with_name("tocsin_lab_worker_other")
        os.symlink(Path(__file__).with_name("fake_worker.py"), elsewhere)
        self.catalogue.worker_of["tocsin"] = elsewhere

        def run_pair(worker: Path, *arguments: object, **options: object) -> Sample:
            sample = real_run_pair(worker, *arguments, **options)
            if worker == elsewhere:
                sample.values.pop("syscalls", None)
            return sample

        real_run_pair = sessions.run_pair
        with mock.patch.object(sessions, "run_pair", run_pair):
            counts = self.session().run().counts
        counted = {one.contestant for one in counts if "syscalls" in one.values}
        self.assertIn("fast", counted)
        self.assertNotIn("tocsin", counted)

    def test_an_interruption_keeps_what_was_measured(self) -> None:
        for number in SIGNALS:  # after an interruption they are ignored
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        # A job in the background starts with SIGINT ignored, and then a run is not interrupted.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.observer.interrupt_at = ("measuring", 1)
        with self.interruption:
            result = self.session().run()
        self.assertTrue(result.interrupted)
        reasons = {one.reason for one in result.failures if one.mode == "run"}
        self.assertLessEqual(reasons, {"watchdog: did not finish"})  # of `fast`: being killed is no failure
        self.assertGreater(len(result.samples), 0)
        self.assertEqual(result.rounds_finished, 0)
        self.assertTrue(summarise(result))

    def test_what_is_not_decided_is_measured_further_until_it_is(self) -> None:
        asked = []

        def undecided(result):
            asked.append(len(result.samples))
            return {("sprint", self.session().pairs[0].parameters, "tocsin")} if len(asked) < 3 else set()

        session = self.session(undecided=undecided)
        session.mode = replace(session.mode, further_rounds=5)
        result = session.run()
        self.assertEqual([one.round for one in result.samples if one.contestant == "tocsin"], [1, 2, 3, 4, 5])
        self.assertEqual([one.round for one in result.samples if one.contestant == "floor"], [1, 2, 3])
        self.assertEqual((result.rounds_finished, result.further_rounds), (3, 2))
        self.assertEqual(len(result.quietness.rounds), 5)

    def test_further_rounds_end(self) -> None:
        session = self.session(undecided=lambda result: {(one.scenario, one.parameters, one.contestant)
                                                         for one in result.samples})  # fmt: skip
        session.mode = replace(session.mode, further_rounds=2)
        self.assertEqual(session.run().further_rounds, 2)

    def test_says_what_it_was_run_with(self) -> None:
        result = self.session().run()
        self.assertEqual(result.plan, Plan("test", 3, 1, 7))
        self.assertTrue(result.machine.kernel)
        self.assertEqual([one.name for one in result.scenarios], ["sprint"])


class WorkerTest(unittest.TestCase):
    def test_a_worker_that_says_nothing_is_an_error_with_its_last_words(self) -> None:
        with self.assertRaisesRegex(WorkerError, "no result .exit 1"):
            ask(Path("/bin/false"), [], timeout=10)
        with self.assertRaisesRegex(WorkerError, "no result .exit 0., but: something else$"):
            ask(Path("/bin/echo"), ["something else"], timeout=10)
        with self.assertRaisesRegex(WorkerError, "no answer within"):
            ask(Path("/bin/sleep"), ["10"], timeout=0.1)

    def test_folders_without_workers(self) -> None:
        self.assertEqual(find_workers(Path("/nowhere")), [])

    def test_unknown_names_of_a_real_catalogue(self) -> None:
        with self.assertRaises(UnknownName):
            select(load_catalogue([]), Selection(scenarios=("x",)), "quick")


class DisturbanceTest(unittest.TestCase):
    def test_complains_about_other_programs_only_when_they_matter(self) -> None:
        self.assertIsNone(Disturbance(0.05, 0.0).complaint())
        self.assertIn("other programs use 40%", Disturbance(0.40, 0.0).complaint())
        self.assertIn("hypervisor takes 20%", Disturbance(0.0, 0.20).complaint())


if __name__ == "__main__":
    unittest.main()
