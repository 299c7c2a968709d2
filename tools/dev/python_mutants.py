# SPDX-License-Identifier: Apache-2.0
"""Plants defects in a copy of the Python package, one at a time: a test of python/tests must find each.

python/tests/mutants.toml has them, and names the files of which each refusal of bad input is taken away in turn."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import tomllib

from dev import python_package
from dev.run import Count, Failure, quietly
from dev.tree import BUILD, ENVIRONMENT, JOBS, ROOT, say
from mutants import CHANGE, code

TREE = BUILD / "python" / "mutants"
ENVIRONMENT_OF_TESTS = {"TOCSIN_TEST_PATIENCE": "20", "TOCSIN_PYTHON_SOURCE": str(TREE / "python"),
                        "PYTHONPATH": f"{TREE / 'site'}:{TREE / 'python' / 'tests'}", "PYTHONDONTWRITEBYTECODE": "1"}

RAISES = {".cpp": re.compile(r"\)(?: \{)?\s*(?://[^\n]*\n\s*)*PyErr_(?:SetString|Format)\([^;\"]*(\"[^\"]*\")"),
          ".py": re.compile(r"^ *(raise \w+(?=\(f?(\"[^\"\n]*\")))", re.MULTILINE)}


def matching(text, at, step):
    """The place of the parenthesis that belongs to the one at this place."""
    depth = 0
    while True:
        depth += {"(": step, ")": -step}.get(text[at], 0)
        if depth == 0:
            return at
        at += step


def without_refusals(file, text):
    """(name, text) for each check of a source that raises an exception: the text without the check."""
    for found in RAISES[file.suffix].finditer(text):
        name = f"nothing refuses, in {file.name}: {found[found.re.groups]}"
        if file.suffix == ".py":
            without = text[:found.start(1)] + "pass" + text[matching(text, found.end(1), 1) + 1:]
            compile(without, name, "exec")
            yield name, without
        elif text[:(begin := matching(text, found.start(), -1))].endswith("if "):
            yield name, f"{text[:begin]}(false && {text[begin:found.start() + 1]}){text[found.start() + 1:]}"


def mutants():
    """(name, file, its text with the defect, tests)"""
    tables = tomllib.loads((ROOT / "python/tests/mutants.toml").read_text())
    for name, tests in tables.pop("refusals").items():
        for about, text in without_refusals(ROOT / name, (ROOT / name).read_text()):
            yield about, name, text, tests
    for file, runs in tables.items():
        text = (ROOT / file).read_text()
        for tests, named in runs.items():
            for name, change in named.items():
                old, new = (CHANGE.sub(part, change) for part in (lambda found: found[1] or "",
                                                                  lambda found: found[2] or found[3] or ""))
                planted, times = code(old).subn(lambda _, new=new: new.strip(), text)
                if times != 1:
                    raise ValueError(f"mutant '{name}': its code occurs {times} times in {file}, not once")
                if file.endswith(".py"):
                    compile(planted, name, "exec")
                yield name, file, planted, tests


def build():
    """The package in the copy, as it is now; what the compiler says if that fails."""
    made = subprocess.run(["cmake", "--build", TREE / "build", "--", f"-j{JOBS}"], env=ENVIRONMENT, capture_output=True,
                          text=True, check=False)
    if made.returncode == 0:
        shutil.copytree(TREE / "python" / "tocsin", TREE / "site" / "tocsin", dirs_exist_ok=True)
        shutil.copy2(next((TREE / "build").glob("_core.*")), TREE / "site" / "tocsin")
    return made.stdout if made.returncode else ""


def run_tests(program, tests, seconds):
    """What the first test that fails says, or None. More seconds count as a hang."""
    command = [program, "-X", "faulthandler", "-m", "unittest", "-f", "-q", *tests.split()]
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        running = subprocess.Popen(command, env={**ENVIRONMENT, **ENVIRONMENT_OF_TESTS}, stdin=subprocess.DEVNULL,
                                   stdout=said, stderr=said, start_new_session=True)
        try:
            code_of_end = running.wait(seconds)
        except subprocess.TimeoutExpired:
            return "the tests hang"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)  # also what a test has left behind
            running.wait()
        said.seek(0)
        failed = re.search(r"^(?:FAIL|ERROR): (\w+)", said.read(), re.MULTILINE)
    return failed[1] if failed else f"the program ends with {code_of_end}" if code_of_end else None


def run(only):
    found = python_package.interpreters()
    if not found:
        say("  skipped: no CPython 3.9 to 3.14 with headers (Debian: python3-dev)")
        return Count(skipped=1)
    program = found[python_package.preferred_of(found)]
    chosen = [mutant for mutant in mutants() if re.search(only or "", mutant[0])]
    shutil.rmtree(TREE, ignore_errors=True)
    for part in ("include", "src", "cmake", "python"):
        shutil.copytree(ROOT / part, TREE / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "CMakeLists.txt", TREE)
    options = ["-G", "Ninja", f"-DPython_EXECUTABLE={program}", "-DCMAKE_BUILD_TYPE=Release"]
    configured = quietly("configure", ["cmake", "-S", TREE / "python", "-B", TREE / "build", *options],
                         "python-mutants")
    wrong = build() if configured else "CMake refuses"
    limits = {}
    for tests in dict.fromkeys(tests for *_, tests in chosen):
        began = time.monotonic()
        wrong = wrong or run_tests(program, tests, 600)
        limits[tests] = 30 + 3 * (time.monotonic() - began)
    if wrong:
        return Count(failed=1, failures=[Failure("without any defect", wrong)])
    count = Count()
    for name, file, text, tests in chosen:
        began = time.monotonic()
        original = (TREE / file).read_text()
        (TREE / file).write_text(text)
        broken = build()
        by = None if broken else run_tests(program, tests, limits[tests])
        (TREE / file).write_text(original)
        say(f"  {'killed' if by else 'SURVIVED':8} {time.monotonic() - began:5.0f} s  {name}: "
            f"{by or ('it does not build' if broken else 'nothing found it')}")
        count += Count(passed=1) if by else Count(failed=1, failures=[Failure(name, broken)])
    return count
