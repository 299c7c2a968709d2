# SPDX-License-Identifier: Apache-2.0
"""The verbs of `./dev`. The first line of each function is its line of help."""

import os
import re
import shutil
import subprocess
import sys

from dev import needs, stages
from dev.python_package import make_for_lab
from dev.run import build, build_in_sight, configure, fresh_if_moved, quietly, read_log
from dev.tree import BUILD, LAB, ROOT, TOOLS, Parser, Refusal, cpp_files, refuse, require_writable, say, unknown


def lab(arguments):
    """measures how fast threads wake here, alongside the alternatives, in three minutes; --help lists its arguments"""
    # The lab's own parser answers help and wrong arguments at once, before anything is fetched or built.
    sys.path.insert(0, str(LAB))
    from tocsin_lab.arguments import ANSWERS_WORKERS, DEFAULT_WORKERS, NEED_WORKERS, PYTHON_WORKERS, parse
    options = parse(arguments)
    require_writable()
    python = needs.python_with(LAB / "requirements.txt")
    if options.command in NEED_WORKERS and options.workers == ANSWERS_WORKERS and not build_answers():
        return 1
    if options.command in NEED_WORKERS and options.workers == DEFAULT_WORKERS and not build_workers(options.all):
        return 1
    if options.command in NEED_WORKERS and options.workers == PYTHON_WORKERS and not make_for_lab(PYTHON_WORKERS):
        return 1
    if options.command == "defects" and not options.result and not build_workers(options.all, "lab/defects/all"):
        return 1
    return become([python, LAB / "run.py", *arguments])


def build_workers(with_all_contestants, target="lab/all"):
    needs.provide_for_build()
    definitions = []
    if with_all_contestants:
        needs.provide(needs.FOR_ALL_CONTESTANTS, optional=True)
        definitions = ["-DTOCSIN_LAB_ALL=ON"]
    if not configure("release", *definitions):
        return False
    for left_out in re.findall("^-- (Lab: .*)$", read_log("release-configure"), re.MULTILINE):
        say(f"  {left_out}")
    return build("release", target)


def build_answers():
    """The one worker that plain `./dev lab` needs, in a folder of its own, without what only the tests need."""
    needs.provide_for_build()
    folder = BUILD / "answers"
    command = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
               "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG", "-DTOCSIN_BUILD_LAB=ON", "-DTOCSIN_LAB_ONLY_ANSWERS=ON",
               "-DTOCSIN_BUILD_TESTS=OFF", "-DTOCSIN_BUILD_EXAMPLES=OFF", "-DTOCSIN_BUILD_C=OFF", "-DTOCSIN_WIN32=OFF",
               *fresh_if_moved(folder)]
    return quietly("configure", command, "answers-configure") and build_in_sight(folder, "tocsin_lab_worker_answers")


def become(command):
    """Replaces this program by another, so that Ctrl-C reaches it and it alone."""
    sys.stdout.flush()
    os.execv(command[0], [str(part) for part in command])


def test(arguments):
    """everything a change must pass; `test NAME...` runs some stages, `test --list` lists them"""
    options = Parser(prog="./dev test", description="Runs stages of tests, and counts how they came out. Logs are in "
                     "build/logs/.")
    options.add_argument("names", nargs="*", metavar="STAGE", help="none: the usual ones, all that a change must pass; `ci`: also what only CI "
                         "runs")
    options.add_argument("--list", action="store_true", help="what stages there are")
    options.add_argument("-R", dest="only", metavar="REGEX", help="only cases whose names match, as of ctest")
    options.add_argument("--compiler", dest="compilers", action="append", default=[], metavar="NAME",
                         help="only this compiler, g++-14 or clang++-18, of those of a stage that takes every one it "
                         "finds: `distributions`, whose step `matrix` alone runs unless -R names others; may be repeated")
    options.add_argument("--minutes", type=float, default=float("inf"), metavar="N",
                         help="begin no stage after this time, and name those left out; default: no limit")
    given = options.parse_args(arguments)
    if not given.minutes > 0:
        return refuse("test: --minutes takes a number above 0")
    if given.list:
        for name, stage in stages.STAGES.items():
            say(f"{name:<14} {stage.about}{ {'usual': '', 'ci': ' (CI)', 'named': ' (only when named)'}[stage.when]}")
        say(f"{'usual':<14} those without a remark: what `./dev test` alone runs")
        say(f"{'ci':<14} those, and those marked (CI): what .ci/run runs")
        return 0
    names = [each for name in given.names or ["usual"] for each in stages.group(name)]
    for name in names:
        if name not in stages.STAGES:
            return refuse(f"test: {unknown('stage', name, ['usual', 'ci', *stages.STAGES])}")
        if given.only and not stages.STAGES[name].has_cases:
            return refuse(f"test: the stage `{name}` has no cases to choose from by -R")
        if given.compilers and not stages.STAGES[name].has_compilers:
            return refuse(f"test: the stage `{name}` has no compilers to choose from by --compiler")
    for compiler in given.compilers:
        if not re.fullmatch(r"(g|clang)\+\+-\d+", compiler):
            return refuse(f"test: --compiler takes a name like g++-14 or clang++-18, not `{compiler}`")
    require_writable()
    needs.provide_for_build()
    total = stages.run(names, given.only, given.minutes, given.compilers)
    return 1 if total.failed or not total.passed else 0


def check(arguments):
    """format, static analysis, who includes whom, text: the stage `check` alone"""
    return test(["check"]) if not arguments else refuse("check takes no arguments")


def fmt(arguments):
    """formats all C++ files"""
    if arguments:
        return refuse("fmt takes no arguments")
    return subprocess.run([needs.tool("clang-format"), "-i", *cpp_files()], check=False).returncode


def prove(arguments):
    """model tests, all of them: no interleaving loses, doubles or tears a wake-up"""
    from prove import parse
    parse(arguments)  # answers help and wrong arguments
    require_writable()
    needs.provide_for_build()
    return become([sys.executable, TOOLS / "prove.py", *arguments])


def soak(arguments):
    """all primitives mixed, for `soak [minutes] [seed] [scene]`; prints tokens in and out"""
    if len(arguments) > 3 or not all(re.fullmatch(r"\d+(\.\d+)?", text) for text in arguments[:1]) \
            or not all(text.isdecimal() for text in arguments[1:2]):
        return refuse("usage: ./dev soak [minutes] [seed] [scene]")
    require_writable()
    needs.provide_for_build()
    if not (configure("release") and build("release", "tocsin_soak")):
        return 1
    return become([next((BUILD / "release").rglob("tocsin_soak")), *arguments])


def docs(arguments):
    """makes a site of all documents, with the reference, in build/docs/site; to read offline"""
    if arguments:
        return refuse("docs takes no arguments")
    require_writable()
    python = needs.python_with(TOOLS / "docs" / "requirements.txt")
    return become([python, TOOLS / "docs" / "site.py"])


def release(arguments):
    """makes everything that a release publishes, in build/releases; no tag; --help lists its arguments"""
    from dev import release as releases
    given = releases.parse(arguments)  # answers help and wrong arguments
    require_writable()
    needs.provide_for_build()
    return releases.make(given)


def clean(arguments):
    """removes what was built; the local Python environment stays"""
    if arguments:
        return refuse("clean takes no arguments")
    shutil.rmtree(BUILD, ignore_errors=True)
    return 0


VERBS = {verb.__name__: verb for verb in (lab, test, check, fmt, docs, prove, soak, release, clean)}


HAVE_HELP = (lab, test, prove, release)  # their own


def main(arguments):
    """The exit code. A reader that has seen enough, as `head` has, is no error."""
    try:
        try:
            return answer(arguments)
        finally:  # also where a parser has printed its help and ends the program
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it ends
        return 0


def answer(arguments):
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        for name, verb in VERBS.items():
            say(f"./dev {name:<7} {verb.__doc__}")
        return 0
    verb = VERBS.get(arguments[0])
    if verb is None:
        return refuse(unknown("verb", arguments[0], list(VERBS)))
    if verb not in HAVE_HELP and set(arguments[1:]) & {"-h", "--help"}:
        say(f"./dev {arguments[0]}: {verb.__doc__}")
        return 0
    try:
        return verb(arguments[1:])
    except Refusal as refusal:
        return refuse(refusal)
    except KeyboardInterrupt:
        return 130
