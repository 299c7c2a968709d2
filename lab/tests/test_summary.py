# SPDX-License-Identifier: Apache-2.0
"""From samples to wins, losses and targets, on results made by hand."""

import unittest
from unittest import mock

from tests.made_by_hand import read_samples, result, rounds_of, sample
from tocsin_lab import scenarios
from tocsin_lab.analyse.figures import figure_of
from tocsin_lab.analyse.summary import summarise, undecided
from tocsin_lab.analyse.verdict import Outcome, Verdict
from tocsin_lab.records import Parameters
from tocsin_lab.scenarios import ABSOLUTE, BEST_PEER, FLOOR, Knowledge, Target

COLUMN = ("time", "value")


class SummaryTest(unittest.TestCase):
    def setUp(self) -> None:
        self.samples = (
            rounds_of("floor", 10, 20, 10, 20, 10, 20)
            + rounds_of("tocsin", 11, 22, 11, 22, 11, 22)
            + rounds_of("fast", 50, 100, 50, 100, 50, 100)
            + rounds_of("slow", 90, 180, 90, 180, 90, 180)
        )

    def test_ratios_are_paired_by_round(self) -> None:
        (case,) = summarise(result(self.samples))
        ours = case.figures["tocsin"][COLUMN]
        self.assertAlmostEqual(ours.to_floor.median, 1.1)
        self.assertAlmostEqual(ours.to_floor.low, 1.1)
        self.assertAlmostEqual(ours.to_best_peer.median, 0.22)
        self.assertIsNone(case.figures["floor"][COLUMN].to_floor)

    def test_a_peer_is_compared_with_the_best_of_the_others(self) -> None:
        (case,) = summarise(result(self.samples))
        self.assertAlmostEqual(case.figures["fast"][COLUMN].to_best_peer.median, 50 / 90)

    def test_tocsin_is_judged_against_the_best_peer(self) -> None:
        (case,) = summarise(result(self.samples))
        (judgement,) = case.judgements
        self.assertEqual((judgement.verdict, judgement.against), (Verdict.WIN, "fast"))

    def test_a_loss_is_a_loss(self) -> None:
        samples = rounds_of("tocsin", 30, 31, 30, 31, 30, 31) + rounds_of("fast", 20, 21, 20, 21, 20, 21)
        (case,) = summarise(result(samples))
        self.assertEqual(case.judgements[0].verdict, Verdict.LOSS)
        self.assertGreater(case.judgements[0].ratio.low, 1)

    def test_what_is_undecided_is_tocsin_the_floor_and_whoever_it_does_not_beat(self) -> None:
        self.assertEqual(undecided(result(self.samples)), frozenset())
        wide = rounds_of("tocsin", 10, 20, 40, 10, 20, 40)
        samples = self.samples[:6] + wide + rounds_of("fast", *[20] * 6) + rounds_of("slow", *[900] * 6)
        found = undecided(result(samples + rounds_of("wrong_way", *[1] * 6)))
        self.assertEqual(found, {("sprint", Parameters(threads="1"), name) for name in ("floor", "tocsin", "fast")})

    def test_references_and_variants_are_no_peers(self) -> None:
        samples = self.samples + rounds_of("wrong_way", 1, 1, 1, 1, 1, 1)
        (case,) = summarise(result(samples))
        self.assertEqual(case.judgements[0].against, "fast")

    def test_rows_are_sorted_floor_first(self) -> None:
        (case,) = summarise(result(list(reversed(self.samples))))
        self.assertEqual(list(case.figures), ["floor", "tocsin", "fast", "slow"])

    def test_system_calls_come_from_the_counting_run_only(self) -> None:
        counted = sample("tocsin", 0, time=1e9, syscalls=2)
        (case,) = summarise(result(self.samples, counts=[counted]))
        self.assertEqual(case.figures["tocsin"][("syscalls", "value")].value.median, 2)
        self.assertLess(case.figures["tocsin"][COLUMN].value.median, 1e9)

    def test_failures_and_notes_are_shown(self) -> None:
        self.samples[0]["notes"] = ["not permitted to pin"]
        failure = {"scenario": "sprint", "parameters": {"threads": "1"}, "contestant": "slow", "reason": "hangs"}
        (case,) = summarise(result(self.samples, failures=[failure]))
        self.assertEqual(case.excluded, {"slow": "hangs"})
        self.assertEqual(case.notes, {"not permitted to pin": ["floor"]})

    def test_a_run_that_was_interrupted_at_once_has_nothing_to_say(self) -> None:
        self.assertEqual(summarise(result([])), [])


class TargetTest(unittest.TestCase):
    def outcome(self, target: Target, times: list[float]) -> Outcome:
        samples = rounds_of("tocsin", *times) + rounds_of("floor", *[10] * len(times))
        samples += rounds_of("fast", *[20] * len(times))
        with mock.patch.object(scenarios, "KNOWN", {"sprint": Knowledge(targets=(target,))}):
            (case,) = summarise(result(samples))
        return case.targets[0].outcome

    def test_reached_missed_and_within_the_error(self) -> None:
        target = Target("time", FLOOR, 1.1)
        self.assertEqual(self.outcome(target, [11, 11, 11]), Outcome.REACHED)
        self.assertEqual(self.outcome(target, [12, 13, 12]), Outcome.MISSED)
        self.assertEqual(self.outcome(target, [10, 12, 13]), Outcome.WITHIN_ERROR)
        self.assertEqual(self.outcome(target, [12]), Outcome.WITHIN_ERROR)  # its error is unknown

    def test_against_peer_contestant_and_nothing(self) -> None:
        self.assertEqual(self.outcome(Target("time", BEST_PEER, 1.0), [19, 19]), Outcome.REACHED)
        self.assertEqual(self.outcome(Target("time", "fast", 0.5), [19, 19]), Outcome.MISSED)
        self.assertEqual(self.outcome(Target("time", ABSOLUTE, 20), [19, 19]), Outcome.REACHED)

    def test_only_where_it_applies(self) -> None:
        narrow = Target("m", FLOOR, 1, where={"t": ("1", "2")})
        self.assertTrue(narrow.applies_to(Parameters(t="2")))
        self.assertFalse(narrow.applies_to(Parameters(t="3")))
        self.assertFalse(narrow.applies_to(Parameters()))
        self.assertTrue(Target("m", FLOOR, 1).applies_to(Parameters(t="3")))


class FigureTest(unittest.TestCase):
    def test_distributions_are_picoseconds_and_figures_nanoseconds(self) -> None:
        stored = sample("tocsin", 1)
        stored["distributions"]["time"] = {"sub_bits": 8, "least": 200, "most": 200, "counts": [[200, 5]]}
        (made,) = read_samples(stored)
        self.assertAlmostEqual(figure_of(made, "time", "median"), 0.2)
        self.assertIsNone(figure_of(made, "other", "median"))
        self.assertIsNone(figure_of(made, "other", "value"))


if __name__ == "__main__":
    unittest.main()
