# SPDX-License-Identifier: Apache-2.0
"""The report's contestants, builds, disturbances and published figures."""

from dataclasses import dataclass, field

from tocsin_lab.present.context import Context
from tocsin_lab.present.published_figures import RECORDS, Source
from tocsin_lab.present.numerals import quantity
from tocsin_lab.records import Contestant, Parameters, in_words

ROLES = {
    "ours": "tocsin",
    "floor": "floor",
    "peer": "peers",
    "variant": "tocsin otherwise",
    "reference": "references",
    "rejected": "rejected designs",
}


@dataclass(frozen=True)
class Group:
    """Contestants of one role."""

    title: str
    members: list[Contestant]


@dataclass
class Toolchain:
    compiler: str
    standard_library: str
    flags: str
    workers: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Quiet:
    others: str
    stolen: str
    loud: list[int]  # rounds
    rounds: int


@dataclass(frozen=True)
class HistoryRow:
    source: Source
    machine: str
    label: str
    scenario: str
    where: str
    figure: str


def groups(context: Context) -> list[Group]:
    """The contestants of this result, by role."""
    found = [
        Group(title, [one for one in context.contestants.values() if one.role == role and one.name in context.seen])
        for role, title in ROLES.items()
    ]
    return [one for one in found if one.members]


def toolchains(context: Context) -> list[Toolchain]:
    """How the workers were built; those that were built alike are together. Warnings change no code."""
    found: dict[tuple[str, str, str], Toolchain] = {}
    for name, build in context.result.workers.items():
        flags = " ".join(flag for flag in build.flags.split() if not flag.startswith("-W"))
        key = (build.compiler, build.standard_library, flags)
        found.setdefault(key, Toolchain(*key)).workers.append(name)
    return list(found.values())


def quiet(context: Context) -> Quiet:
    quietness = context.result.quietness
    worst = quietness.worst
    return Quiet(f"{worst.others:.1%}", f"{worst.stolen:.1%}", quietness.loud_rounds, len(quietness.rounds))


def history(context: Context) -> list[HistoryRow]:
    """All published figures. Those whose scenario was not measured here come last."""
    measured = {one.name for one in context.result.scenarios}
    return [
        HistoryRow(
            source=one.source,
            machine=one.machine,
            label=one.label,
            scenario=in_words(one.scenario),
            where=Parameters(one.where).title or one.remark,
            figure="" if one.value is None else quantity(one.value, "ns"),
        )
        for one in sorted(RECORDS, key=lambda one: one.scenario not in measured)
    ]
