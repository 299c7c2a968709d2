# SPDX-License-Identifier: Apache-2.0
"""Which contestant answers which question, and why tocsin loses."""

import unittest

from tests.made_by_hand import read_contestants, result, rounds_of
from tocsin_lab.analyse.summary import summarise
from tocsin_lab.present import published_figures as published
from tocsin_lab.analyse.answers import answer, answer_all
from tocsin_lab.records import Parameters
from tocsin_lab.scenarios import KNOWN, Loss, Question, questions, reason_for

ROLES = read_contestants()
HERE = Question("Fastest sprint", "time")


class AnswerTest(unittest.TestCase):
    def answer(self, *samples: list[dict]):
        return answer("sprint", HERE, summarise(result([one for some in samples for one in some])), ROLES)

    def test_the_least_median_of_ours_and_peers_leads(self) -> None:
        found = self.answer(
            rounds_of("floor", *[1] * 6), rounds_of("tocsin", *[20] * 6), rounds_of("fast", *[10] * 6),
            rounds_of("wrong_way", *[2] * 6),
        )
        self.assertEqual(found.ranking, ("fast", "tocsin"))
        self.assertEqual(found.level, ("fast",))

    def test_contestants_that_cannot_be_told_from_the_first_are_with_it(self) -> None:
        found = self.answer(
            rounds_of("tocsin", 10, 11, 12, 13, 14, 15), rounds_of("fast", 11, 12, 13, 14, 15, 16),
            rounds_of("slow", *[90] * 6),
        )
        self.assertEqual(found.level, ("tocsin", "fast"))

    def test_questions_that_nothing_answers_are_not_asked(self) -> None:
        cases = summarise(result(rounds_of("floor", 1, 2)))
        self.assertIsNone(answer("sprint", HERE, cases, ROLES))
        self.assertIsNone(answer("marathon", HERE, cases, ROLES))
        self.assertIsNone(answer("sprint", Question("", "time", where={"threads": "99"}), cases, ROLES))

    def test_a_scenario_that_is_not_known_asks_its_own_question(self) -> None:
        found = answer_all(summarise(result(rounds_of("fast", 1, 2))), ROLES)
        self.assertEqual([one.question for one in found], ["How fast?"])

    def test_each_question_is_asked_once(self) -> None:
        texts = [one.text for _, one in questions()]
        self.assertEqual(len(texts), len(set(texts)))


class ReasonTest(unittest.TestCase):
    def reason(
        self, scenario: str, metric: str, against: str, cores: int = 2, contestant: str = "tocsin", **parameters: str
    ) -> str | None:
        return reason_for(Loss(scenario, metric, Parameters(parameters), against, cores, contestant))

    def test_what_was_not_looked_into_has_none(self) -> None:
        self.assertIsNone(self.reason("sprint", "time", "fast"))

    def test_a_reason_belongs_to_its_cases_and_its_peers(self) -> None:
        known = self.reason("pairs", "time", "std_atomic", operation="manual_set_reset")
        self.assertIn("plain store", known)
        for against, operation in (("std_atomic", "wait_on_set"), ("eventfd", "manual_set_reset")):
            self.assertIsNone(self.reason("pairs", "time", against, operation=operation))

    def test_a_reason_belongs_to_its_contestant(self) -> None:
        found = {name: self.reason("broadcast", "last", "pthread_cond", contestant=name, threads="1000")
                 for name in ("tocsin", "tocsin_condition")}  # fmt: skip
        self.assertIsNone(found["tocsin"])
        self.assertIn("needs the mutex", found["tocsin_condition"])

    def test_a_reason_about_too_few_cores_needs_too_few(self) -> None:
        self.assertIn("more threads than cores", self.reason("hurdles", "cpu", "std_atomic", threads="16"))
        self.assertIsNone(self.reason("hurdles", "cpu", "std_atomic", cores=96, threads="16"))


class HistoryTest(unittest.TestCase):
    def figure(self, label: str, machine: str, **where: str) -> float:
        (found,) = [one for one in published.RECORDS
                    if (one.label, one.machine, one.where) == (label, machine, where)]  # fmt: skip
        return found.value

    def test_totals_are_figures_by_operation(self) -> None:
        polls = [one for one in published.RECORDS if one.scenario == "polling" and one.machine == published.I7_870]
        self.assertAlmostEqual(polls[0].value, 1.77)
        hurdles = [one for one in published.RECORDS if one.scenario == "hurdles" and one.machine == published.ATHLON]
        self.assertAlmostEqual(hurdles[0].value, 618.75)
        self.assertEqual(self.figure("AutoResetEvent", published.C_SHARP, operation="auto_set_wait"), 1035)

    def test_a_record_without_its_case_stands_in_no_chart(self) -> None:
        (record,) = [one for one in published.RECORDS if one.machine == published.NEHALEM and "broadcast" in one.label]
        self.assertFalse(record.belongs_to("broadcast", Parameters(threads="5000")))

    def test_a_record_belongs_to_its_case_alone(self) -> None:
        record = next(one for one in published.RECORDS if one.scenario == "broadcast")
        self.assertTrue(record.belongs_to("broadcast", Parameters(threads="5000")))
        self.assertFalse(record.belongs_to("broadcast", Parameters(threads="100")))


if __name__ == "__main__":
    unittest.main()
