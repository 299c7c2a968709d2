# SPDX-License-Identifier: Apache-2.0
"""Runs programs with their output in logs, and counts how they came out."""

import json
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache

from dev.tree import BUILD, ENVIRONMENT, JOBS, LOGS, ROOT, say


@dataclass(frozen=True)
class Failure:
    """What failed, and what it printed. It is false, as the result of a step that succeeded is true."""
    name: str
    output: str = ""

    def __bool__(self):
        return False


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[Failure] = field(default_factory=list, compare=False)  # those that failed, where known

    def __add__(self, other):
        return Count(self.passed + other.passed, self.failed + other.failed,
                     self.skipped + other.skipped, self.failures + other.failures)

    def __str__(self):
        text = f"{self.passed} passed, {self.failed} failed"
        return f"{text}, {self.skipped} skipped" if self.skipped else text


def one(succeeded):
    """The count of one step, which was true, or false, or a Failure that says what it printed."""
    if succeeded:
        return Count(passed=1)
    return Count(failed=1, failures=[succeeded] if isinstance(succeeded, Failure) else [])


def counted(succeeded, count):
    """The count that a step printed, which failed if the step did."""
    if not succeeded:
        count.failed = max(1, count.failed)
        count.failures = [succeeded]
    return count


def tail(text):
    return "\n".join(text.strip().splitlines()[-100:])


# Lines that are in the output of each GoogleTest program, and say nothing of what failed.
FRAME = re.compile(r"\[-{10}\]|\[={10}\]|\[       OK \]|\[  PASSED  \]|\[  FAILED  \] \d+ test|Note: Google Test filter"
                   r"|Running main\(\)| *\d+ FAILED TEST|$")
# Lines at which a compiler, a sanitizer, GoogleTest or Python begins to say what failed.
SAYS_WHAT = re.compile(r"\berror: |: Failure$|(ERROR|WARNING): \w+Sanitizer|runtime error: |(FAIL|ERROR): |Traceback|FAILED: ")


def gist(text, limit=15, widest=200):
    """The lines of an output that say most: its last ones, and where they are far from it, where the failure begins."""
    lines = [line for line in text.splitlines() if not FRAME.match(line)]
    passed = {name for name in re.findall(r"^\[       OK \] (\S+)", text, re.MULTILINE)}
    lines = [line for line in lines if not (line.startswith("[ RUN ") and line.split()[-1] in passed)]
    first = next((index for index, line in enumerate(lines) if SAYS_WHAT.search(line)), len(lines))
    if first < len(lines) - limit:
        last = limit // 3
        lines = [*lines[first:first + limit - last - 1], "...", *lines[-last:]]
    return [line if len(line) <= widest else f"{line[:widest - 4]} ..." for line in lines[-limit:]]


def read_log(name):
    return (LOGS / f"{name}.log").read_text(errors="replace")


def as_typed(command):
    """A command as one would type it in the top folder of the tree."""
    text = " ".join(str(part).replace(f"{ROOT}/", "") for part in command)
    return text if len(text) < 200 else f"{text[:200]} ..."


def quietly(title, command, log, show_failure=True, environment=None):
    """Runs a command with its output in a log of that name; shows the end of it only on failure. True, or a Failure."""
    LOGS.mkdir(parents=True, exist_ok=True)
    path = LOGS / f"{log}.log"
    began = time.monotonic()
    with path.open("w") as output:
        code = subprocess.run(command, cwd=ROOT, env=environment or ENVIRONMENT, stdin=subprocess.DEVNULL,
                              stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    say(f"  {title:<12} {time.monotonic() - began:6.1f} s  {'ok' if code == 0 else 'FAILED'}")
    if code != 0 and show_failure:
        say(f"$ {as_typed(command)}")
        say(tail(read_log(log)))
        say(f"(exit code {code}; all of it in {path.relative_to(ROOT)})")
    return code == 0 or Failure(title, read_log(log))


def run_script(title, command, log, environment=None):
    """A stage that is one command. If it ends by counting (`N passed, N failed`), its count is taken."""
    succeeded = quietly(title, command, log, environment=environment)
    counts = re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", read_log(log), re.MULTILINE)
    return counted(succeeded, Count(*(int(number or 0) for number in counts[-1])) if counts else one(succeeded))


# The steps of CMake's presets


@cache
def presets():
    return json.loads((ROOT / "CMakePresets.json").read_text())


# Their tests build what they need.
NOT_BUILT = ("compile_fail", "consumer")


def steps_of(name):
    """What is configured, built and tested under this name, as (type, preset).

    A test preset names its configure preset. Without a test preset, building is the check. A build preset of the name
    builds what these tests need; without one, the whole is built."""
    tests = [each for each in presets()["testPresets"] if each["name"] == name]
    configured = tests[0]["configurePreset"] if tests else name
    built = name if any(each["name"] == name for each in presets()["buildPresets"]) else configured
    return [("configure", configured), *([] if name in NOT_BUILT else [("build", built)]),
            *(("test", name) for _ in tests)]


def fresh_if_moved(folder, source=ROOT):
    """The option with which CMake takes a build folder that was configured for a tree in another place, if it was."""
    cache = folder / "CMakeCache.txt"
    if not cache.exists() or f"CMAKE_HOME_DIRECTORY:INTERNAL={source}\n" in cache.read_text(errors="replace"):
        return []
    say(f"  the tree was moved: {folder.name} is built again")
    return ["--fresh"]


def configure(preset, *definitions):
    fresh = [each for folder in (BUILD, BUILD / "compilers", BUILD / "builds") for each in fresh_if_moved(folder / preset)]
    return quietly("configure", ["cmake", "--preset", preset, *definitions, *fresh[:1]], f"{preset}-configure")


def build(preset, *targets):
    targets = [part for target in targets for part in ("--target", target)]
    command = ["cmake", "--build", "--preset", preset, *targets, "--", f"-j{JOBS}", "-k0"]
    return quietly("build", command, f"{preset}-build")


def build_in_sight(folder, target):
    """Builds one target of a folder, with a line that moves: somebody waits for it."""
    path, began, last = LOGS / f"{folder.name}-build.log", time.monotonic(), 0.0
    moves = sys.stdout.isatty()
    command = ["cmake", "--build", folder, "--target", target, "--", f"-j{JOBS}"]
    with path.open("w") as log, subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as build_:
        for line in build_.stdout:
            log.write(line)
            step = re.match(r"\[(\d+)/(\d+)\]", line)
            if step and time.monotonic() - last > (0.2 if moves else 10):
                last = time.monotonic()
                text = f"  build        {last - began:6.1f} s  {step[1]} of {step[2]}"
                print(f"\r{text}" if moves else text, end="" if moves else "\n", flush=True)
    say(f"{chr(13) if moves else ''}  build        {time.monotonic() - began:6.1f} s  "
        f"{'ok' if build_.returncode == 0 else 'FAILED'}{' ' * 12 if moves else ''}")
    if build_.returncode != 0:
        say(tail(path.read_text(errors="replace")))
    return build_.returncode == 0


def run_workflow(name, only=None, before_test=None, definitions=()):
    """Configures, builds and tests by the presets of this name, with a log for each step, and counts the cases.

    `only` is a regular expression for the names of cases; `before_test` is called when all is built; `definitions` are
    options of the step that configures."""
    for kind, preset in steps_of(name):
        if kind != "test":
            done = configure(preset, *definitions) if kind == "configure" else build(preset)
            if not done:
                return one(done)
        else:
            if before_test:
                before_test()
            return run_ctest(preset, *(["-R", only] if only else []))
    return Count(passed=1)  # building it was the check


def run_ctest(preset, *arguments):
    log, junit = f"{preset}-test", LOGS / f"{preset}.xml"  # where the presets write it
    junit.unlink(missing_ok=True)
    command = ["ctest", "--preset", preset, f"-j{JOBS}", *arguments]
    succeeded = quietly("test", command, log, show_failure=False)
    count = read_junit(junit, log) if junit.exists() else Count()
    if not succeeded and count.failed == 0:  # no test found, or ctest itself failed
        say(tail(read_log(log)))
        count += one(succeeded)
    return count


def cases_in(output):
    """How many cases a program of GoogleTest counted, or None if it is not one that ran to its end."""
    passed = re.search(r"^\[  PASSED  \] (\d+) test", output, re.MULTILINE)
    skipped = re.search(r"^\[  SKIPPED \] (\d+) test", output, re.MULTILINE)
    return Count(int(passed[1]), 0, int(skipped[1]) if skipped else 0) if passed else None


def why_failed(case, log):
    """One line: how a case failed, how long it took, and where all of its output is."""
    name = case.get("name")
    # ctest's own word, which its JUnit file lacks: Failed, Timeout, Exception: SegFault, Not Run ...
    said = re.search(rf"Test +#\d+: {re.escape(name)} [ .]*\*\*\*(.*?) +[\d.]+ sec", read_log(log))
    how = said[1] if said else "Failed"
    how = "TIMED OUT" if how == "Timeout" else "FAILED" if how == "Failed" else f"FAILED ({how})"
    return (f"--- {name} {how} after {float(case.get('time') or 0):.1f} s; "
            f"all output is in {(LOGS / log).relative_to(ROOT)}.log")


def why_skipped(case):
    """The reason that a program of GoogleTest gave, else whether the case is left out here, else where it is."""
    said = re.search(r": Skipped\n(.+)", case.findtext("system-out") or "")
    if said:
        return said[1]
    return "left out here" if case.get("status") == "disabled" else f"in {case.get('name').partition('.')[0]}"


def say_skipped(cases, preset):
    """One line for each reason; all names are in a log."""
    names = defaultdict(list)
    for case in cases:
        names[why_skipped(case)].append(case.get("name"))
    for reason, several in sorted(names.items(), key=lambda each: (-len(each[1]), each[0])):
        say(f"  skipped {len(several):4}: {reason}"[:200])
    if names:
        path = LOGS / f"{preset}-skipped.log"
        path.write_text("".join(f"{reason}: {name}\n" for reason, several in names.items() for name in several))
        say(f"  {'their names':>12}: {path.relative_to(ROOT)}")


def read_junit(path, log):
    """Counts the cases of a ctest run; prints the output of those that failed and why how many were skipped."""
    count, skipped = Count(), []
    for case in xml.parse(path).getroot().iter("testcase"):
        skip = case.find("skipped")
        output = case.findtext("system-out") or ""
        if case.get("status") == "run":
            count += cases_in(output) or Count(passed=1)
        elif case.get("status") == "disabled" or (
                skip is not None and (skip.get("message") or "").startswith("SKIP_")):
            count.skipped += 1
            skipped.append(case)
        else:
            how = why_failed(case, log)
            count += one(Failure(case.get("name"), f"{output}\n{how}"))
            say(how)
            say(tail(output))
    say_skipped(skipped, path.stem)
    return count
