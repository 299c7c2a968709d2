# SPDX-License-Identifier: Apache-2.0
"""Two results side by side, made by hand: what is a regression and what isn't."""

import copy
import unittest
from typing import Any

from tests.made_by_hand import result, rounds_of, sample, stored
from tocsin_lab.analyse.compare import Change, compare
from tocsin_lab.parsing import parse
from tocsin_lab.records import Result

CALM = (10.0, 10.1, 10.2, 10.3, 10.4, 10.5)


def times(factor: float) -> list[float]:
    return [value * factor for value in CALM]


def measured(ours: float = 1, floor: float = 1, peer: float = 1, **changes: Any) -> Result:
    samples = [*rounds_of("floor", *times(floor)), *rounds_of("tocsin", *times(ours)), *rounds_of("fast", *times(peer))]
    return result(samples, **changes)


def only(before: Result, after: Result, **changes: Any):
    (found,) = compare(before, after, changes.get("contestants"), changes.get("scenarios")).differences
    return found


class ChangeTest(unittest.TestCase):
    def test_the_same_is_no_difference(self) -> None:
        self.assertIs(only(measured(), measured()).change, Change.NONE)

    def test_slower_and_faster(self) -> None:
        slower = only(measured(), measured(ours=2))
        self.assertIs(slower.change, Change.SLOWER)
        self.assertAlmostEqual(slower.times, 2)
        self.assertEqual(slower.reference, "floor")
        self.assertIs(only(measured(ours=2), measured()).change, Change.FASTER)

    def test_overlapping_intervals_are_no_difference(self) -> None:
        self.assertIs(only(measured(), measured(ours=1.03)).change, Change.NONE)

    def test_a_difference_smaller_than_a_rebuild_makes_is_none(self) -> None:
        still = result(rounds_of("tocsin", *[100.0] * 6))
        barely = result(rounds_of("tocsin", *[102.0] * 6))
        self.assertIs(only(still, barely).change, Change.NONE)

    def test_a_machine_that_is_slower_throughout_is_no_regression(self) -> None:
        self.assertIs(only(measured(), measured(ours=2, floor=2, peer=2)).change, Change.MACHINE)

    def test_without_a_floor_the_best_peer_is_the_reference(self) -> None:
        def without_floor(factor: float) -> Result:
            return result(rounds_of("tocsin", *times(factor)) + rounds_of("fast", *times(factor)))

        found = only(without_floor(1), without_floor(2))
        self.assertEqual((found.reference, found.change), ("fast", Change.MACHINE))

    def test_without_any_reference_the_figure_decides(self) -> None:
        found = only(result(rounds_of("tocsin", *times(1))), result(rounds_of("tocsin", *times(2))))
        self.assertEqual((found.reference, found.change), (None, Change.SLOWER))

    def test_others_are_controls_unless_they_are_asked_for(self) -> None:
        found = compare(measured(), measured(peer=2), None, None)
        self.assertEqual([one.change for one in found.controls], [Change.NONE, Change.SLOWER])
        self.assertIs(only(measured(), measured(peer=2), contestants={"fast"}).change, Change.SLOWER)

    def test_single_counts_are_shown_and_not_judged(self) -> None:
        before = measured(counts=[sample("tocsin", 0, syscalls=0.001)])
        after = measured(counts=[sample("tocsin", 0, syscalls=1.0)])
        found = compare(before, after, None, None)
        self.assertEqual([one.column.metric for one in found.counted], ["syscalls"])
        self.assertEqual(found.of(Change.SLOWER), [])
        self.assertEqual(compare(before, before, None, None).counted, [])


class WarningTest(unittest.TestCase):
    def warnings(self, **changes: Any) -> str:
        before = stored(rounds_of("tocsin", *CALM))
        after = copy.deepcopy(before)
        for part, values in changes.items():
            if isinstance(values, dict):
                after[part].update(values)
            else:
                after[part] = values
        return "\n".join(compare(parse(Result, before), parse(Result, after), None, None).warnings)

    def test_alike_needs_none(self) -> None:
        self.assertEqual(self.warnings(), "")

    def test_another_machine_compiler_or_format(self) -> None:
        self.assertIn("processor was Abacus, is Slide rule", self.warnings(machine={"processor": "Slide rule"}))
        self.assertIn("kernel was 1.0, is 2.0", self.warnings(machine={"kernel": "2.0"}))
        build = {"compiler": "d", "flags": "f", "standard_library": "s"}
        self.assertIn("compiler was c, is d", self.warnings(workers={"tocsin_lab_worker": build}))
        self.assertIn("different formats: 1 and 2", self.warnings(format=2))

    def test_another_length_an_interruption_and_changes(self) -> None:
        self.assertIn("rounds was 6, is 9", self.warnings(plan={"rounds": 9}))
        self.assertIn("second result is partial", self.warnings(interrupted=True))
        self.assertIn("not committed", self.warnings(project={"changed": True}))

    def test_a_scenario_that_is_measured_in_another_way(self) -> None:
        scenarios = copy.deepcopy(stored([])["scenarios"])
        scenarios[0]["method"] = "walk"
        self.assertIn("sprint is measured in another way", self.warnings(scenarios=scenarios))

    def test_cases_that_only_one_result_has_are_named(self) -> None:
        found = compare(measured(), result([]), None, None)
        self.assertEqual(found.missing, ["sprint, threads 1: only in the first result"])


if __name__ == "__main__":
    unittest.main()
