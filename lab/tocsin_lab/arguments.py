# SPDX-License-Identifier: Apache-2.0
"""The command line. Only the standard library: help and wrong arguments are answered before anything is installed or
built."""

import argparse
import re
from pathlib import Path

from tocsin_lab.analyse.scaling import CORES, MOST_CORES, MOST_WAITERS, NEEDED, WAITERS
from tocsin_lab.defects import BY_ID
from tocsin_lab.errors import unknown
from tocsin_lab.files import why_not_replaceable

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_WORKERS = ROOT / "build" / "release" / "lab"
SCENARIOS = ROOT / "lab" / "worker" / "scenarios"
RESULTS = ROOT / "build" / "lab"
FIGURES = ROOT / "lab" / "figures"  # what the README quotes
ANSWERS = "answers"  # what a run without arguments measures
ANSWERS_WORKERS = ROOT / "build" / "answers" / "lab" / "answers"
PYTHON_WORKERS = ROOT / "build" / "python" / "lab"
NEED_WORKERS = ("measure", "smoke", "list")  # the commands for which the workers must have been built
DEFECT_BUDGET_S = 30.0
VERBS = ("report", "compare", "scaling", "quote", "defects")


def parse(arguments: list[str]) -> argparse.Namespace:
    """`command` says what to do; it is the name of a module in commands/. Ends the program with help or with what is
    wrong."""
    if arguments and not arguments[0].startswith("-"):
        verbs = verb_parser()
        if arguments[0] not in VERBS:
            verbs.error(unknown("verb", arguments[:1], VERBS))
        return verbs.parse_args(arguments)
    parser = run_parser()
    options = parser.parse_args(arguments)
    if options.python:
        options.workers = PYTHON_WORKERS
    if options.workers is None:  # other workers may know other scenarios; the run itself asks them
        known = scenario_names()
        if strange := [name for name in options.scenario if name not in known]:
            parser.error(unknown("scenario", strange, known))
    options.command = "smoke" if options.smoke else "list" if options.list else "measure"
    narrowed = options.scenario or options.contestant or options.where or options.all or options.python
    if options.mode is None:
        options.mode = "whole" if narrowed else ANSWERS
    if options.workers is None:
        plain = options.command == "measure" and options.mode == ANSWERS
        options.workers = ANSWERS_WORKERS if plain else DEFAULT_WORKERS
    return options


class Parser(argparse.ArgumentParser):
    """argparse's, but it says which options there are, and which of them may have been meant. (A verb's options are
    those of a parser of its own, which argparse asks by parse_known_args().) An option is written whole."""

    def __init__(self, **how):  # type: ignore[no-untyped-def]
        super().__init__(allow_abbrev=False, **how)

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def, override]
        options, rest = super().parse_known_args(args, namespace)
        if strange := [text.split("=")[0] for text in rest if text.startswith("-")]:
            self.error(unknown("option", strange, self.options()))
        if rest:
            self.error(f"unexpected: {' '.join(rest)}")
        return options, rest

    def options(self) -> list[str]:
        shown = (action for action in self._actions if action.help != argparse.SUPPRESS)
        return [name for action in shown for name in action.option_strings if name.startswith("--")]


def run_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="./dev lab",
        description="Measures how fast threads wake on this machine: tocsin and its alternatives. Without arguments, "
        "it answers the usual questions in three minutes. What is asked for by name is measured as a whole run does.",
        epilog="For results: ./dev lab report RESULT.json, ./dev lab compare A.json B.json, "
        "./dev lab scaling RESULT.json, ./dev lab quote RESULT.json. What goes wrong elsewhere: ./dev lab defects.",
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--whole", dest="mode", action="store_const", const="whole", help="every scenario; takes half an hour")
    length.add_argument("--full", dest="mode", action="store_const", const="full", help="every case; takes hours")
    parser.add_argument("--all", action="store_true", help="every contestant there is; takes several times as long")
    parser.add_argument("--python", action="store_true", help="the Python package instead, in CPython 3.11 and 3.13")
    parser.add_argument("--smoke", action="store_true", help="only check, within seconds, that everything still runs")
    parser.add_argument("--list", action="store_true", help="what there is to run; who can't take part where, and why")
    parser.add_argument("--scenario", type=names, action="extend", default=[], metavar="NAME[,NAME...]")
    parser.add_argument("--contestant", type=names, action="extend", default=[], metavar="NAME[,NAME...]")
    parser.add_argument(
        "--where", type=condition, action="append", default=[], metavar="PARAMETER=VALUE[,VALUE...]",
        help="only cases with these values, including those that a run of this length would skip",
    )  # fmt: skip
    parser.add_argument("--rounds", type=positive_whole, metavar="N", help="samples of each contestant in each case")
    parser.add_argument("--budget-ms", type=positive, metavar="MS", help="how long one sample measures")
    parser.add_argument("--seed", type=int, metavar="N", help="decides every order (default: random)")
    parser.add_argument("--out", type=result_file, metavar="FILE", help="the result file (default: below build/lab/)")
    parser.add_argument("--no-syscalls", action="store_true", help="don't count system calls")
    parser.add_argument("--workers", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    return parser


def verb_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="./dev lab")
    verbs = parser.add_subparsers(dest="command", metavar="VERB", required=True)

    report = verbs.add_parser("report", description="Makes the page of a result: one HTML file that needs no network.")
    report.add_argument("result", type=existing, metavar="RESULT.json")
    report.add_argument("--out", type=replaceable, metavar="FILE",
                        help="the page (default: beside the result, as .html)")  # fmt: skip

    compare = verbs.add_parser(
        "compare",
        description="What became slower or faster from the first result to the second. Exit code 1: tocsin became "
        "slower somewhere.",
    )
    compare.add_argument("before", type=existing, metavar="A.json")
    compare.add_argument("after", type=existing, metavar="B.json")
    compare.add_argument("--scenario", type=names, action="extend", default=[], metavar="NAME[,NAME...]")
    compare.add_argument(
        "--contestant", type=names, action="extend", default=[], metavar="NAME[,NAME...]",
        help="instead of tocsin and its variants",
    )  # fmt: skip

    scaling = verbs.add_parser(
        "scaling",
        description="Simulates a wake-up of many and a busy bucket with more cores, from the costs that a result "
        "measured. What the result itself measured is shown beside it.",
        epilog=f"A result with all that is needed: ./dev lab --scenario {','.join(NEEDED)}",
    )
    scaling.add_argument("result", type=existing, nargs="?", metavar="RESULT.json",
                         help="default: the newest in build/lab/ that has what is needed")  # fmt: skip
    scaling.add_argument("--cores", type=up_to(MOST_CORES), default=CORES, metavar="N[,N...]")
    scaling.add_argument("--waiters", type=up_to(MOST_WAITERS), default=WAITERS, metavar="N[,N...]")

    quote = verbs.add_parser("quote", description="Prints the table of figures that the README quotes from a result.")
    quote.add_argument("result", type=existing, nargs="?", metavar="RESULT.json",
                       help="default: the figures that the tree keeps")  # fmt: skip
    quote.add_argument("--keep", action="store_true",
                       help="also writes these figures and the README's pictures into lab/figures/")  # fmt: skip

    add_defects(verbs.add_parser(
        "defects",
        description="Shows defects of other libraries on this machine, and tocsin under the same load. What a peer "
        "does never fails the run. Exit code 1: tocsin shows a defect.",
        epilog=f"Defects: {', '.join(BY_ID)}",
    ))  # fmt: skip
    return parser


def scenario_names() -> list[str]:
    """As the workers' sources name them: a worker can be asked only after it is built."""
    texts = (path.read_text() for path in sorted(SCENARIOS.glob("*.cpp")))
    return sorted(name for text in texts for name in re.findall(r'\.name = "(\w+)"', text))


def add_defects(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", type=defect_ids, action="extend", default=[], metavar="ID[,ID...]")
    parser.add_argument(
        "--budget", type=positive, default=DEFECT_BUDGET_S, metavar="SECONDS",
        help="for each library and again for tocsin, in each defect (default: %(default)g; all of it takes less than "
        "ten minutes)",
    )  # fmt: skip
    parser.add_argument("--all", action="store_true", help="installs and builds libraries that are not here")
    parser.add_argument("--out", type=result_file, metavar="FILE", help="the result file (default: below build/lab/)")
    parser.add_argument("--from", dest="result", type=existing, metavar="RESULT.json",
                        help="only makes the page of a result again")  # fmt: skip
    parser.add_argument("--programs", type=Path, default=DEFAULT_WORKERS / "defects", help=argparse.SUPPRESS)


# Types of arguments


def defect_ids(text: str) -> list[str]:
    found = names(text)
    strange = [name for name in found if name not in BY_ID]
    if strange or not found:
        raise argparse.ArgumentTypeError(unknown("defect", strange or [repr(text)], BY_ID))
    return found


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def condition(text: str) -> tuple[str, tuple[str, ...]]:
    name, equals, values = text.partition("=")
    if not equals or not name or not values:
        raise argparse.ArgumentTypeError(f"{text}: expected PARAMETER=VALUE[,VALUE...]")
    return name, tuple(names(values))


def positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: expected a number above 0")
    return number


def positive_whole(text: str) -> int:
    number = positive(text)
    if number != int(number):
        raise argparse.ArgumentTypeError(f"{text}: expected a whole number")
    return int(number)


def up_to(most: int):  # noqa: ANN201 (a type of argument)
    """Whole numbers from 1 to `most`, beyond which the model does not hold."""

    def numbers(text: str) -> tuple[int, ...]:
        found = tuple(positive_whole(one) for one in names(text))
        if not found or max(found) > most:
            raise argparse.ArgumentTypeError(f"{text}: expected numbers from 1 to {most:,}")
        return found

    return numbers


def replaceable(text: str) -> Path:
    if reason := why_not_replaceable(Path(text)):
        raise argparse.ArgumentTypeError(f"{text}: {reason}")
    return Path(text)


def result_file(text: str) -> Path:
    path = replaceable(text)
    if path.suffix in (".html", ".xz"):
        raise argparse.ArgumentTypeError(f"{text}: expected the name of a JSON file; the page is written beside it")
    return path


def existing(text: str) -> Path:
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"{text}: No such file")
    return Path(text)
