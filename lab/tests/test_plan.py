# SPDX-License-Identifier: Apache-2.0
"""What is run, and in which order."""

import re
import unittest
from pathlib import Path

from tests.made_by_hand import description, read_description
from tocsin_lab.measure.plan import Estimator, Selection, UnknownName, seed_of, select, shuffled_round
from tocsin_lab.measure.workers import Catalogue, Pair
from tocsin_lab.present.quotes import QUOTED
from tocsin_lab.records import Parameters


def catalogue() -> Catalogue:
    made = Catalogue()
    made.add(Path("worker"), read_description())
    return made


class SelectTest(unittest.TestCase):
    def test_everything_applicable_in_the_cases_of_the_tier(self) -> None:
        pairs = select(catalogue(), Selection(), "quick")
        sprint = [pair.contestant for pair in pairs if pair.scenario == "sprint"]
        self.assertEqual(sprint, ["floor", "tocsin", "fast", "slow"])
        self.assertEqual({pair.parameters for pair in pairs}, {Parameters(threads="1"), Parameters()})

    def test_a_higher_tier_includes_the_lower(self) -> None:
        pairs = select(catalogue(), Selection(scenarios=("sprint",)), "full")
        self.assertEqual({pair.parameters for pair in pairs}, {Parameters(threads="1"), Parameters(threads="2")})

    def test_floors_come_with_every_contestant(self) -> None:
        pairs = select(catalogue(), Selection(("sprint",), ("slow",)), "quick")
        self.assertEqual([pair.contestant for pair in pairs], ["floor", "slow"])

    def test_contestants_of_longer_runs_come_when_everybody_does_or_when_named(self) -> None:
        contestants = [
            {**one, "tier": "full"} if one["name"] == "slow" else one for one in description()["contestants"]
        ]
        made = Catalogue()
        made.add(Path("worker"), read_description(contestants=contestants))

        def present(selection: Selection, tier: str) -> bool:
            return "slow" in {pair.contestant for pair in select(made, selection, tier)}

        self.assertFalse(present(Selection(), "quick"))
        self.assertTrue(present(Selection(), "full"))
        self.assertTrue(present(Selection(everybody=True), "quick"))
        self.assertTrue(present(Selection(contestants=("slow",)), "quick"))

    def test_cases_asked_for_by_value_come_whatever_their_tier(self) -> None:
        pairs = select(catalogue(), Selection(("sprint",), where={"threads": ("2",)}), "quick")
        self.assertEqual({pair.parameters for pair in pairs}, {Parameters(threads="2")})

    def test_unknown_names_are_answered_with_the_valid_ones(self) -> None:
        for selection, expected in (
            (Selection(scenarios=("sprnt",)), "unknown scenario sprnt (did you mean sprint?); valid: sprint, rest"),
            (Selection(contestants=("nobody",)), "valid: floor, tocsin, fast, slow, wrong_way"),
            (Selection(where={"thread": ("1",)}), "unknown parameter thread (did you mean threads?); valid: threads"),
        ):
            with self.assertRaises(UnknownName) as caught:
                select(catalogue(), selection, "quick")
            self.assertIn(expected, str(caught.exception))


class AnswersTest(unittest.TestCase):
    """A first run builds a worker of its own, from a part of what the main worker is built from."""

    LAB = Path(__file__).resolve().parents[1]

    def test_its_scenarios_are_those_of_the_table(self) -> None:
        listed = (self.LAB / "CMakeLists.txt").read_text().split("set(asked")[1].split("list(")[0]
        files = re.findall(r'"([|\w]+)"', listed)
        texts = [(self.LAB / "worker" / "scenarios" / f"{name}.cpp").read_text() for name in "".join(files).split("|")]
        built = {name for text in texts for name in re.findall(r'\.name = "(\w+)"', text)}
        self.assertLessEqual({one.scenario for one in QUOTED}, built)

    def test_its_contestants_are_some_of_the_main_worker(self) -> None:
        named = {name: set(re.findall(r"\w+", (self.LAB / "worker" / "lineups" / f"{name}.hpp").read_text()
                                      .split("contestants<")[1])) for name in ("answers", "main")}  # fmt: skip
        self.assertLess(named["answers"], named["main"])


class RoundTest(unittest.TestCase):
    def setUp(self) -> None:
        self.pairs = [Pair("sprint", Parameters(threads=str(n)), name) for n in range(20) for name in "abcdef"]

    def test_runs_each_pair_once(self) -> None:
        self.assertCountEqual(shuffled_round(self.pairs, 1, 1), self.pairs)

    def test_keeps_the_contestants_of_a_case_together(self) -> None:
        cases = [pair.case for pair in shuffled_round(self.pairs, 1, 1)]
        changes = sum(one != other for one, other in zip(cases, cases[1:]))
        self.assertEqual(changes, 19)

    def test_the_seed_decides_the_order_and_rounds_differ(self) -> None:
        first = list(shuffled_round(self.pairs, 1, 1))
        self.assertEqual(first, list(shuffled_round(self.pairs, 1, 1)))
        self.assertNotEqual(first, list(shuffled_round(self.pairs, 1, 2)))
        self.assertNotEqual(first, list(shuffled_round(self.pairs, 2, 1)))

    def test_each_sample_has_a_seed_of_its_own(self) -> None:
        seeds = {seed_of(pair, 1, round_) for pair in self.pairs for round_ in (1, 2)}
        self.assertEqual(len(seeds), 240)


class EstimatorTest(unittest.TestCase):
    def test_guesses_first_and_knows_better_later(self) -> None:
        estimator = Estimator(2.0)
        self.assertEqual(estimator.left(["a", "b"]), 4.0)
        estimator.record("a", 10.0)
        estimator.record("a", 20.0)
        self.assertEqual(estimator.left(["a", "b"]), 17.0)


if __name__ == "__main__":
    unittest.main()
