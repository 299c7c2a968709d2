# SPDX-License-Identifier: Apache-2.0
"""The data of the charts, where the right curve is known."""

import unittest

from tests.made_by_hand import contestant, description, read_columns, result, rounds_of, sample
from tests.test_histogram import distribution
from tocsin_lab.analyse.summary import CaseSummary, summarise
from tocsin_lab.parsing import as_json
from tocsin_lab.present import charts

TIME, SYSCALLS = read_columns()


def threads(count: str, name: str, time: float) -> dict:
    return {**sample(name, 1, time=time), "parameters": {"threads": count}}


class CurveTest(unittest.TestCase):
    def test_goes_up_and_ends_where_values_end(self) -> None:
        curve = charts.curve_of(distribution([value * 1000 for value in range(1, 101)]))
        self.assertEqual(curve, sorted(curve))
        self.assertEqual(len(curve), sum(share <= 0.99 for share in charts.SHARES))
        self.assertAlmostEqual(curve[charts.SHARES.index(0.5)], 50.5, delta=0.5)

    def test_shares_go_up(self) -> None:
        self.assertEqual(list(charts.SHARES), sorted(set(charts.SHARES)))

    def test_rounds_are_merged(self) -> None:
        samples = [sample("tocsin", 1, time=1.0), sample("tocsin", 2, time=1.0)]
        for one, value in zip(samples, (100, 200)):
            one["distributions"]["time"] = {"sub_bits": 8, "least": value, "most": value, "counts": [[value, 5]]}
        (case,) = summarise(result(samples))
        curve = charts.percentiles(case, TIME).curves["tocsin"]
        first, last = curve[0], curve[-1]
        self.assertAlmostEqual(first, 0.1, places=3)
        self.assertAlmostEqual(last, 0.2, places=3)


class RankingTest(unittest.TestCase):
    def test_least_first_with_intervals(self) -> None:
        (case,) = summarise(result(rounds_of("slow", 7, 8, 9) + rounds_of("fast", 1, 2, 3)))
        rows = as_json(charts.ranking(case, TIME))["rows"]
        said = "2.00 ns (1.00 ns to 3.00 ns)"
        self.assertEqual(rows[0], {"who": "fast", "value": 2, "low": 1, "high": 3, "text": "2.00 ns", "said": said})
        self.assertEqual(rows[1]["who"], "slow")

    def test_without_figures_there_is_no_chart(self) -> None:
        (case,) = summarise(result(rounds_of("slow", 7)))
        self.assertIsNone(charts.ranking(case, SYSCALLS))


class GrowthTest(unittest.TestCase):
    def cases(self, *counts: str) -> list[CaseSummary]:
        cases = [{"parameters": {"threads": one}, "tier": "quick", "refusals": {}} for one in counts]
        scenario = {**description()["scenarios"][0], "cases": cases}
        samples = [threads(one, "tocsin", 10.0) for one in counts]
        return summarise(result(samples, scenarios=[scenario]))

    def test_three_numbers_make_a_curve(self) -> None:
        (chart,) = charts.growth_charts(self.cases("1", "2", "16"))
        self.assertEqual([row.at for row in chart.rows], [1, 2, 16])
        self.assertEqual(chart.parameter, "threads")

    def test_two_numbers_or_words_do_not(self) -> None:
        self.assertEqual(charts.growth_charts(self.cases("1", "2")), [])
        self.assertEqual(charts.growth_charts(self.cases("few", "some", "many")), [])

    def test_a_scenario_with_one_contestant_compares_its_cases(self) -> None:
        cases = self.cases("1", "2")
        self.assertEqual(charts.single(cases), "tocsin")
        chart = charts.comparison_of_cases(cases, "tocsin")
        self.assertEqual([row.label for row in chart.rows], ["threads 1", "threads 2"])


class HistoricTest(unittest.TestCase):
    def test_published_figures_are_in_the_chart_of_their_case(self) -> None:
        column = {"metric": "poll", "statistic": "median", "label": "a poll", "unit": "ns", "judged": True}
        case = {"parameters": {"threads": "16"}, "tier": "quick", "refusals": {}}
        scenario = {**description()["scenarios"][0], "name": "polling", "columns": [column], "cases": [case]}
        made = {**threads("16", "tocsin", 1.0), "scenario": "polling"}
        made["distributions"]["poll"] = {"sub_bits": 8, "least": 100, "most": 100, "counts": [[100, 5]]}
        (found,) = summarise(result([made], scenarios=[scenario], contestants=[contestant("tocsin", "ours")]))
        published = charts.ranking(found, found.scenario.columns[0]).history
        self.assertEqual({one.machine for one in published}, {"Core i7 870, 4 cores, Windows 7"})
        self.assertEqual([(one.value, one.text) for one in published], [(5.5, "5.50 ns"), (5290.0, "5.29 µs")])


if __name__ == "__main__":
    unittest.main()
