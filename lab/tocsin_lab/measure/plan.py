# SPDX-License-Identifier: Apache-2.0
"""What to run, in which order, and how long it will take."""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from tocsin_lab.errors import LabError, unknown
from tocsin_lab.measure.workers import Catalogue, Pair
from tocsin_lab.records import Parameters

TIERS = ("quick", "standard", "full")


@dataclass(frozen=True)
class Mode:
    """How thorough a run is: which cases, how many rounds, how long a sample."""

    name: str
    tier: str
    rounds: int
    budget_ms: float
    further_rounds: int = 0  # at most, of those cases whose verdicts are not decided
    counts_syscalls: bool = True


MODES = {
    "answers": Mode("answers", "full", rounds=5, budget_ms=20, counts_syscalls=False),  # the cases of the one table
    "whole": Mode("whole", "standard", rounds=7, budget_ms=50, further_rounds=14),
    "full": Mode("full", "full", rounds=25, budget_ms=150, further_rounds=25),
}


class UnknownName(LabError):
    """The command line asks for something that doesn't exist; the text lists what does."""


@dataclass(frozen=True)
class Selection:
    """What the command line asks for. An empty field means everything."""

    scenarios: tuple[str, ...] = ()
    contestants: tuple[str, ...] = ()
    where: Mapping[str, tuple[str, ...]] | None = None
    everybody: bool = False  # with contestants that only longer runs include

    def wants_case(self, parameters: Parameters) -> bool:
        """A parameter narrows only the scenarios that have it."""
        return all(parameters.get(name, values[0]) in values for name, values in (self.where or {}).items())

    def names_case(self, parameters: Parameters) -> bool:
        """A case that is asked for by value is run in a run of any length."""
        return bool(self.where) and any(name in parameters for name in self.where)


def require_known(what: str, names: Iterable[str], valid: Iterable[str]) -> None:
    known = list(valid)
    strange = [name for name in names if name not in known]
    if strange:
        raise UnknownName(unknown(what, strange, known))


def parameters_of(catalogue: Catalogue) -> dict[str, list[str]]:
    """Every parameter of any case, with its values in the order of the cases."""
    found: dict[str, dict[str, None]] = {}
    for scenario in catalogue.scenarios.values():
        for case in scenario.cases:
            for name, value in case.parameters.items():
                found.setdefault(name, {})[value] = None
    return {name: list(values) for name, values in found.items()}


def select(catalogue: Catalogue, selection: Selection, tier: str) -> list[Pair]:
    """Every pair that is asked for and applicable, in the catalogue's order.

    Floors are always included: the others are measured by them.
    """
    require_known("scenario", selection.scenarios, catalogue.scenarios)
    require_known("contestant", selection.contestants, catalogue.contestants)
    parameters = parameters_of(catalogue)
    require_known("parameter", selection.where or {}, sorted(parameters))
    for name, values in (selection.where or {}).items():
        require_known(f"value of {name}", values, parameters[name])

    tiers = TIERS[: TIERS.index(tier) + 1]
    floors = {name for name, one in catalogue.contestants.items() if one.role == "floor"}
    regular = {name for name, one in catalogue.contestants.items() if selection.everybody or one.tier in tiers}
    wanted = set(selection.contestants or regular) | floors
    pairs = []
    for name, scenario in catalogue.scenarios.items():
        if selection.scenarios and name not in selection.scenarios:
            continue
        for case in scenario.cases:
            in_length = case.tier in tiers or selection.names_case(case.parameters)
            if in_length and selection.wants_case(case.parameters):
                pairs += [Pair(name, case.parameters, one) for one in case.contestants if one in wanted]
    return pairs


def shuffled_round(pairs: list[Pair], seed: int, round_: int) -> Iterator[Pair]:
    """All pairs once. Cases come in random order; a case's contestants come together, in random order, so that what is
    compared is measured within seconds."""
    dice = random.Random(f"{seed}/{round_}")
    cases: dict[tuple[str, Parameters], list[Pair]] = {}
    for pair in pairs:
        cases.setdefault(pair.case, []).append(pair)
    order = list(cases.values())
    dice.shuffle(order)
    for members in order:
        dice.shuffle(members)
        yield from members


def seed_of(pair: Pair, seed: int, round_: int) -> int:
    return random.Random(f"{seed}/{round_}/{pair}").getrandbits(32)


class Estimator:
    """Predicts the time that is left from what each kind of step has taken so far."""

    def __init__(self, first_guess_s: float) -> None:
        self._guess = first_guess_s
        self._took: dict[object, tuple[float, int]] = {}

    def record(self, step: object, seconds: float) -> None:
        total, count = self._took.get(step, (0.0, 0))
        self._took[step] = (total + seconds, count + 1)

    def of(self, step: object) -> float:
        total, count = self._took.get(step, (0.0, 0))
        return total / count if count else self._guess

    def left(self, steps: Iterable[object]) -> float:
        return sum(self.of(step) for step in steps)


def with_overrides(mode: Mode, rounds: int | None, budget_ms: float | None) -> Mode:
    """Whoever asks for a number of rounds gets that many."""
    return replace(
        mode,
        rounds=mode.rounds if rounds is None else rounds,
        further_rounds=mode.further_rounds if rounds is None else 0,
        budget_ms=mode.budget_ms if budget_ms is None else budget_ms,
    )
