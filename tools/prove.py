#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks by all available means that no interleaving loses, doubles or tears a wake-up.

    ./dev prove                      everything; a few hours on two cores
    ./dev prove --only mutants       one stage
    ./dev prove --shard 2/5          the second of five parts, for the second of five machines
    ./dev prove --bounded            the part for which CI has time

Stages:
    models    the sources of the library over the explorer, every case to the end of its search
    mutants   one defect planted at a time: a model must find each; writes build/mutants.md
    promela   the protocols again, written independently, checked exhaustively by Spin
    fuzz      random calls of several threads against a reference, under libFuzzer, ASan, UBSan

A shard has its part of the models and of the mutants. Promela and fuzz are not split: the first shard has them. Only a
run of all mutants writes build/mutants.md, which names the model that finds each.

Prints a table and, last, how many checks passed and failed. Logs are in build/logs/.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from dev.run import fresh_if_moved
from dev.tree import Parser
from shards import Shard, shard

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
LOGS = BUILD / "logs"
JOBS = int(os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or os.cpu_count() or 1)
ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8"}

MUTANTS = ROOT / "tools" / "mutants.py"
SPIN = ROOT / "tools" / "spin_check.py"

# A bounded run plants the mutants whose names contain this: some of events, address waits, locks and wait_set.
SAMPLE = "without looking"

FUZZ_FLAGS = ("-g -O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined "
              "-fno-sanitize-recover=all")
FUZZ_ENVIRONMENT = {"ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_init_order=1",
                    "UBSAN_OPTIONS": "print_stacktrace=1"}


@dataclass
class Outcome:
    passed: int = 0
    failed: int = 0
    note: str = ""


def say(text):
    print(text, flush=True)


def run(name, command, environment=None):
    """Runs a command with its output in build/logs/prove-NAME.log. Returns (succeeded, output)."""
    LOGS.mkdir(parents=True, exist_ok=True)
    path = LOGS / f"prove-{name}.log"
    with path.open("w") as log:
        log.write(f"$ {' '.join(str(part) for part in command)}\n")
        log.flush()
        try:
            code = subprocess.run(command, cwd=ROOT, env={**ENVIRONMENT, **(environment or {})},
                                  stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=subprocess.STDOUT, check=False).returncode
        except OSError as error:
            log.write(f"\n{error}\n")
            code = -1
    output = path.read_text(errors="replace")
    if code != 0:
        say("\n".join(output.strip().splitlines()[-60:]))
        say(f"(exit code {code}; all of it in {path.relative_to(ROOT)})")
    return code == 0, output


def counted(succeeded, output):
    """The counts in a script's last line `N passed, N failed`; without such a line, one check."""
    found = re.findall(r"^(\d+) passed, (\d+) failed", output, re.MULTILINE)
    if not found:
        return Outcome(int(succeeded), int(not succeeded))
    passed, failed = map(int, found[-1])
    return Outcome(passed, failed if succeeded else max(1, failed))


def install(*packages):
    """Installs Debian packages where that is possible. Returns whether it has."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    say(f"  installing Debian packages: {' '.join(packages)}")
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
    return run("apt-update", ["apt-get", "update", "-q"], environment)[0] and \
        run("apt-install", command, environment)[0]


def build(given, *targets):
    """Builds these targets of the release preset, or of the folder given by --build."""
    if given.build is None:
        given.build = BUILD / "release"
        if not run("configure", ["cmake", "--preset", "release", *fresh_if_moved(given.build)])[0]:
            return False
    chosen = [part for target in targets for part in ("--target", target)]
    return run("build", ["cmake", "--build", given.build, *chosen, "--", f"-j{JOBS}"])[0]


def models_command(folder, part):
    # -I counts only the tests that -L selects.
    return ["ctest", "--test-dir", folder, "-L", "model", "-I", f"{part.number},,{part.total}", f"-j{JOBS}",
            "--no-tests=error", "--output-on-failure"]


def prove_models(given):
    if not build(given, "tocsin_models"):
        return Outcome(failed=1, note="does not build")
    # cmake/prove.cmake reads this, too.
    succeeded, output = run("models", models_command(given.build, given.shard), {"TOCSIN_PROVE": "1"})
    found = re.search(r"(\d+) tests failed out of (\d+)", output)
    if found is None:
        return Outcome(failed=1, note="ctest did not run")
    failed, total = map(int, found.groups())
    return Outcome(total - failed, failed if succeeded else max(1, failed))


def prove_mutants(given):
    if not build(given, "tocsin_explorer"):
        return Outcome(failed=1, note="does not build")
    command = [sys.executable, MUTANTS, "--build", given.build, "--shard", str(given.shard), "--jobs", str(JOBS)]
    command += ["--only", SAMPLE] if given.bounded else ["--table", ROOT / "build" / "mutants.md"]
    return counted(*run("mutants", command))


def prove_promela(given):
    if not SPIN.exists():
        return Outcome(note="skipped: there is no tools/spin_check.py")
    if not shutil.which("spin") and not install("spin"):
        return Outcome(note="skipped: Spin is not installed (in Debian: spin)")
    # A large case may need all the memory there is; the others run side by side.
    options = ["--bounded", "--jobs", str(JOBS)] if given.bounded else []
    return counted(*run("promela", [sys.executable, SPIN, *options]))


def prove_fuzz(given):
    if not shutil.which("clang++-19") and not install("clang-19", "libclang-rt-19-dev"):
        return Outcome(note="skipped: clang is not installed (in Debian: clang-19 libclang-rt-19-dev)")
    folder = BUILD / "fuzz"
    corpus = folder / "corpus"
    configure = ["cmake", "-S", ROOT, "-B", folder, *fresh_if_moved(folder), "-G", "Ninja", "-D", "CMAKE_BUILD_TYPE=None",
                 "-D", "CMAKE_CXX_COMPILER=clang++-19", "-D", f"CMAKE_CXX_FLAGS={FUZZ_FLAGS}",
                 "-D", "TOCSIN_CHECKED=ON", "-D", "TOCSIN_FUZZ=ON", "-D", "TOCSIN_BUILD_TESTS=ON"]
    make = ["cmake", "--build", folder, "--target", "tocsin_fuzz", "--", f"-j{JOBS}"]
    if not (run("fuzz-configure", configure)[0] and run("fuzz-build", make)[0]):
        return Outcome(failed=1, note="does not build")
    corpus.mkdir(exist_ok=True)
    command = [next(folder.rglob("tocsin_fuzz")), corpus, f"-artifact_prefix={folder}/",
               f"-max_total_time={int(given.minutes_fuzz * 60)}", "-max_len=400", "-timeout=120",
               "-print_final_stats=1"]
    succeeded, output = run("fuzz", command, FUZZ_ENVIRONMENT)
    programs = re.search(r"stat::number_of_executed_units:\s*(\d+)", output)
    note = f"{int(programs[1]):,} programs" if programs else "see its log"
    return Outcome(int(succeeded), int(not succeeded), note)


STAGES = {"models": prove_models, "mutants": prove_mutants, "promela": prove_promela,
          "fuzz": prove_fuzz}
# CI runs the models, and the fuzzer with random programs, among its other tests.
BOUNDED = ("mutants", "promela")
SPLIT = ("models", "mutants")


def minutes(text):
    value = float(text)
    if not 0 < value < 100_000:
        raise argparse.ArgumentTypeError("a number of minutes above 0")
    return value


def parse(arguments):
    """The options of a run. For `--help` or a wrong option, prints a message and ends the program."""
    options = Parser(prog="./dev prove", description=__doc__,
                     formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--bounded", action="store_true",
                         help="a sample of the mutants and Spin's quick checks, a few minutes")
    options.add_argument("--only", choices=STAGES, metavar="STAGE",
                         help=f"one of {', '.join(STAGES)}")
    options.add_argument("--shard", type=shard, default=Shard(), metavar="I/N", help="only part I of N")
    options.add_argument("--minutes-fuzz", type=minutes, default=10, metavar="N",
                         help="how long the fuzzer runs; %(default)s")
    options.add_argument("--build", type=Path, metavar="FOLDER",
                         help="a release build to use instead of the preset's")
    given = options.parse_args(arguments)
    if given.build is not None:
        given.build = given.build.resolve()
        if not (given.build / "CMakeCache.txt").exists():
            options.error(f"{given.build} is no build folder")
    if not stages_of(given):
        options.error(f"{given.only} is not split: the first shard has all of it")
    return given


def stages_of(given):
    """The stages of a run, in order."""
    wanted = [given.only] if given.only else BOUNDED if given.bounded else STAGES
    return [name for name in wanted if name in SPLIT or given.shard.is_first]


def main(arguments):
    given = parse(arguments)
    rows = []
    for name in stages_of(given):
        say(f"{name} ...")
        began = time.monotonic()
        rows.append((name, STAGES[name](given), time.monotonic() - began))
    say(f"\n{'stage':<10} {'seconds':>8} {'passed':>7} {'failed':>7}")
    for name, outcome, seconds in rows:
        say(f"{name:<10} {seconds:8.0f} {outcome.passed:7} {outcome.failed:7}  {outcome.note}".rstrip())
    passed = sum(outcome.passed for _, outcome, _ in rows)
    failed = sum(outcome.failed for _, outcome, _ in rows)
    say(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
