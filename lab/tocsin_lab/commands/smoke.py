# SPDX-License-Identifier: Apache-2.0
"""`./dev lab --smoke`: runs every scenario with every contestant, at tiny sizes. The check must pass, and a sample must
have every figure that the scenario promises. Needs nothing but Python."""

import argparse
from collections.abc import Iterator

from tocsin_lab.analyse.figures import figure_of
from tocsin_lab.arguments import DEFAULT_WORKERS, scenario_names
from tocsin_lab.errors import BAD_REQUEST, complain
from tocsin_lab.measure.workers import Catalogue, Pair, WorkerError, open_catalogue, run_pair

BUDGET_MS = 1.0
# Figures that some contestants or cases can't give.
OPTIONAL = {"syscalls", "latency", "late", "last", "awake", "wakeups"}


def run(options: argparse.Namespace) -> int:
    catalogue = open_catalogue(options.workers)
    if options.workers == DEFAULT_WORKERS and sorted(catalogue.scenarios) != scenario_names():
        # Whoever asks for a scenario by name is answered from the sources.
        complain(f"the workers have {sorted(catalogue.scenarios)}, but arguments.py reads {scenario_names()}")
        return BAD_REQUEST
    return smoke(catalogue)


def pairs_of(catalogue: Catalogue) -> Iterator[Pair]:
    """Each pair in the first case that it can run in; tocsin in every case of the quick run."""
    for name, scenario in catalogue.scenarios.items():
        seen: set[str] = set()
        for case in scenario.cases:
            for contestant in case.contestants:
                ours = catalogue.contestants[contestant].role == "ours" and case.tier == "quick"
                if ours or contestant not in seen:
                    yield Pair(name, case.parameters, contestant)
                seen.add(contestant)


def failures_of(catalogue: Catalogue, pair: Pair) -> list[str]:
    worker = catalogue.worker_of[pair.contestant]
    try:
        check = run_pair(worker, pair, "check", seed=1, budget_ms=BUDGET_MS)
        sample = run_pair(worker, pair, "run", seed=1, budget_ms=BUDGET_MS)
    except WorkerError as error:
        return [str(error)]
    missing = [
        f"no figure for {column.label}"
        for column in catalogue.scenarios[pair.scenario].columns
        if column.metric not in OPTIONAL and figure_of(sample, column.metric, column.statistic) is None
    ]
    return [*check.failures, *sample.failures, *missing]


def smoke(catalogue: Catalogue) -> int:
    """The exit code. Prints what failed, and at the end how many pairs passed."""
    passed = failed = 0
    for pair in pairs_of(catalogue):
        failures = failures_of(catalogue, pair)
        for failure in failures:
            print(f"{pair}: {failure}")
        passed += not failures
        failed += bool(failures)
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1
