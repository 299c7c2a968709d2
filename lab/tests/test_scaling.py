# SPDX-License-Identifier: Apache-2.0
"""The simulation where its outcome can be worked out by hand, and the costs that a result gives it."""

import unittest
from dataclasses import replace

from tests.made_by_hand import contestant, stored
from tests.test_histogram import SUB_BITS, index_of
from tocsin_lab.analyse.scaling import Lacking, as_costs, checks, costs_of, is_of_one_core, tables
from tocsin_lab.analyse.simulation import Awakening, Costs, Lot, Way, broadcast, lot
from tocsin_lab.analyse.summary import summarise
from tocsin_lab.parsing import parse
from tocsin_lab.records import Result

# No two are alike, and no sum of some equals another one.
COSTS = Costs(wake=1_000, wake_idle=5_000, start_idle=20_000, switch=2_000, migration=0, line=0, hold=100)


class BroadcastTest(unittest.TestCase):
    def test_one_waiter_on_an_idle_core(self) -> None:
        for way in Way:
            found = broadcast(way, 2, 1, COSTS)
            # Its home is core 0, where the waker runs, so it starts on the other core.
            self.assertEqual(found, Awakening(held=5_100, half=20_100, last=20_100), way)

    def test_one_core_does_everything_one_after_the_other(self) -> None:
        at_once = broadcast(Way.AT_ONCE, 1, 100, COSTS)
        self.assertEqual(at_once.last, 100 + 100 * 1_000 + 100 * 2_000)
        # Whatever the way, the waker continues when all have run: they have slept, it has not.
        for way in (Way.AT_ONCE, Way.CHAIN, Way.RELAY):
            found = broadcast(way, 1, 100, COSTS)
            self.assertEqual(found.held, found.last + 2_000)

    def test_a_chain_wakes_an_idle_core_for_each(self) -> None:
        # From the second link on, a woken thread first of all wakes the next one.
        self.assertEqual(broadcast(Way.CHAIN, 64, 50, COSTS).last, 100 + 50 * 20_000 + 0)

    def test_the_waker_of_a_relay_is_held_for_as_long_however_many_wait(self) -> None:
        for cores, wakes in ((2, 1), (8, 4), (64, 8)):
            held = {broadcast(Way.RELAY, cores, count, COSTS).held for count in (100, 1_000, 5_000)}
            self.assertEqual(len(held), 1)
            self.assertLessEqual(held.pop(), 100 + wakes * 5_000)

    def test_a_relay_gains_nothing_from_more_cores_and_a_tree_does(self) -> None:
        relay = [broadcast(Way.RELAY, cores, 10_000, COSTS).last for cores in (8, 64)]
        tree = [broadcast(Way.TREE, cores, 10_000, COSTS).last for cores in (8, 64)]
        self.assertGreater(relay[1], 0.8 * relay[0])
        self.assertLess(tree[1], 0.3 * tree[0])

    def test_batches_are_woken_by_one_call_each(self) -> None:
        # On one core: a wake of each, a switch to each, and one back to the delegate, which has run before the others.
        found = broadcast(Way.BATCHES, 1, 64, COSTS)
        self.assertEqual(found.last, 100 + 64 * 1_000 + 65 * 2_000)
        # Up to four are released by the waker, as by a relay.
        self.assertEqual(broadcast(Way.BATCHES, 2, 4, COSTS).last, broadcast(Way.RELAY, 2, 4, COSTS).last)

    def test_batches_gain_from_more_cores_and_their_waker_is_held_for_one_wake(self) -> None:
        found = [broadcast(Way.BATCHES, cores, 10_000, COSTS) for cores in (2, 8, 64)]
        self.assertEqual({one.held for one in found}, {100 + 5_000})
        self.assertLess(found[1].last, found[0].last)
        relay = broadcast(Way.RELAY, 64, 10_000, COSTS)
        self.assertLess(found[2].last, 0.3 * relay.last)

    def test_everybody_wakes_once(self) -> None:
        for way in Way:
            for cores in (1, 2, 3, 17, 256):
                for waiters in (1, 4, 5, 16, 17, 1_000):
                    # They may wake in any order, but the last is not awake before the half is.
                    found = broadcast(way, cores, waiters, replace(COSTS, line=50, migration=300))
                    self.assertLessEqual(found.half, found.last)
                    self.assertGreater(found.held, 0)

    def test_what_comes_from_other_cores_makes_it_longer(self) -> None:
        for way in Way:
            near = broadcast(way, 8, 1_000, COSTS).last
            self.assertGreater(broadcast(way, 8, 1_000, replace(COSTS, migration=500)).last, near - 1)
            self.assertGreater(broadcast(way, 8, 1_000, replace(COSTS, line=500)).last, near - 1)


class LotTest(unittest.TestCase):
    def test_alone_it_is_two_turns(self) -> None:
        self.assertEqual(lot(1, 0, COSTS), 200)
        self.assertEqual(lot(1, 1_000, COSTS), 200)

    def test_one_bucket_serves_one_at_a_time(self) -> None:
        for cores in (2, 4, 8):
            self.assertGreater(lot(cores, 0, COSTS), 0.99 * cores * 200)

    def test_a_lock_that_is_awaited_for_too_long_costs_system_calls(self) -> None:
        busy = Lot(64, 0, COSTS, 10_000)
        time = busy.run()
        self.assertEqual(busy.done, 10_000)
        self.assertGreater(time, 64 * 200)

    def test_a_thread_that_frees_a_lock_has_it_again_before_another_sees_it(self) -> None:
        far = replace(COSTS, line=900)  # less than a thread looks for
        busy = Lot(2, 0, far, 1_000)
        busy.run()
        self.assertEqual(busy.done, 1_000)
        self.assertLess(busy.ended, 1_000 * (far.hold + far.line))

    def test_many_events_get_out_of_each_others_way(self) -> None:
        times = [lot(64, waiters, COSTS) for waiters in (0, 100, 10_000)]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertLess(times[-1], 2 * 200)

    def test_is_the_same_each_time(self) -> None:
        self.assertEqual(lot(32, 100, COSTS), lot(32, 100, COSTS))


def column(metric: str, statistic: str = "median") -> dict:
    return {"metric": metric, "statistic": statistic, "label": metric, "unit": "ns", "judged": False}


def scenario(name: str, columns: list[dict], cases: list[dict[str, str]]) -> dict:
    listed = [{"parameters": one, "tier": "quick", "refusals": {}} for one in cases]
    return {"name": name, "question": "", "method": "", "floor": "", "columns": columns, "cases": listed}


def sample(name: str, who: str, given: dict[str, str], **nanoseconds: float) -> dict:
    distributions = {
        metric: {"sub_bits": SUB_BITS, "least": round(time * 1e3), "most": round(time * 1e3),
                 "counts": [[index_of(round(time * 1e3)), 1]]}
        for metric, time in nanoseconds.items()
    }  # fmt: skip
    return {"round": 1, "order": 0, "scenario": name, "contestant": who, "parameters": given, "ok": True, "values": {},
            "distributions": distributions, "notes": [], "failures": []}  # fmt: skip


FLOORS = {"system_call": 100, "futex_wake_sleeper": 5_000, "futex_wake_sleeper_one_core": 1_000,
          "wake_to_running_one_core": 3_000, "wake_to_running_migrated": 3_500,
          "cache_line_round_trip": 160}  # fmt: skip
OF_A_SECOND_CORE = ("futex_wake_sleeper", "wake_to_running_migrated", "cache_line_round_trip")


def measured(cores: int = 2, without: str = "") -> Result:
    floors = {name: time for name, time in FLOORS.items()
              if name != without and (cores > 1 or name not in OF_A_SECOND_CORE)}  # fmt: skip
    apart = {"cores": "2"}
    alone, two = {"event": "own", "threads": "1"}, {"event": "shared", "threads": "2"}
    scenarios = [
        scenario("floors", [column("time")], [{"operation": name} for name in floors]),
        scenario("ping_pong", [column("trip")], [apart]),
        scenario("lot", [column("use", "value"), column("time")], [alone, two]),
        scenario("broadcast", [column("held"), column("last"), column("awake")], [{"threads": "100"}]),
    ]
    samples = [sample("floors", "floor", {"operation": name}, time=time) for name, time in floors.items()]
    samples += [
        {**sample("lot", "tocsin", alone, time=200), "values": {"use": 200}},
        sample("broadcast", "tocsin", {"threads": "100"}, held=6_000, last=300_000, awake=150_000),
        sample("broadcast", "raw_futex", {"threads": "100"}, held=6_000, last=300_000, awake=150_000),
    ]
    if cores > 1:
        samples += [sample("ping_pong", "raw_futex", apart, trip=40_000),
                    {**sample("lot", "tocsin", two), "values": {"use": 500}}]  # fmt: skip
    found = stored(samples, scenarios=scenarios,
                   contestants=[contestant("floor", "floor"), contestant("tocsin", "ours"),
                                contestant("raw_futex", "peer")])  # fmt: skip
    found["machine"]["usable_cores"] = list(range(cores))
    return parse(Result, found)


def costs(of: Result) -> list:
    return costs_of(of, summarise(of))


class CostsTest(unittest.TestCase):
    def test_come_from_the_result(self) -> None:
        found = as_costs(costs(measured()))
        expected = Costs(wake=1_000, wake_idle=5_000, start_idle=20_000, switch=2_000, migration=500, line=80, hold=100)
        for name in Costs.__dataclass_fields__:
            self.assertAlmostEqual(getattr(found, name), getattr(expected, name), delta=0.02 * 20_000, msg=name)

    def test_one_core_has_none_of_a_second(self) -> None:
        found = costs(measured(cores=1))
        self.assertTrue(is_of_one_core(found))
        self.assertEqual(as_costs(found).line, 0)

    def test_what_is_lacking_is_named(self) -> None:
        with self.assertRaisesRegex(Lacking, "no floors operation=wake_to_running_one_core.*--scenario floors"):
            costs(measured(without="wake_to_running_one_core"))

    def test_predictions_come_with_what_was_measured(self) -> None:
        one = measured()
        found = list(checks(one, as_costs(costs(one)), summarise(one)))
        self.assertEqual(
            [(each.what, each.who, each.column) for each in found],
            [("lot, own event, threads 1", "tocsin", "release and park"),
             ("lot, shared event, threads 2", "tocsin", "release and park")]
            + [("broadcast, threads 100", who, which) for who in ("tocsin", "raw_futex")
               for which in ("waker held", "half awake", "last awake")],
        )  # fmt: skip
        self.assertAlmostEqual(found[0].times, 1, places=1)

    def test_every_table_has_a_time_for_each_number_of_cores(self) -> None:
        shown = [(title, list(rows)) for title, rows in tables(COSTS, (2, 4, 8), (10, 100))]
        self.assertEqual(len(shown), 3)
        for _, rows in shown:
            self.assertTrue(all(len(times) == 3 and min(times) > 0 for _, times in rows))


if __name__ == "__main__":
    unittest.main()
