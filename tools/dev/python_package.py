# SPDX-License-Identifier: Apache-2.0
"""The Python package: built for the interpreters that are there, and its tests run on each (python/tests)."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from dev.run import Count, fresh_if_moved, one, quietly
from dev.tree import BUILD, ENVIRONMENT, JOBS, ROOT, say

SOURCE = ROOT / "python"
FIRST, LAST = (3, 9), (3, 13)
PREFERRED = (3, 11)

ABOUT = """import json, os, sys, sysconfig
print(json.dumps([list(sys.version_info[:2]), sysconfig.get_config_var("Py_GIL_DISABLED") or 0,
                  os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")), sys.prefix]))"""


def interpreters():
    """Each version's first interpreter that has headers: {name: program}."""
    found = {}
    minors = range(FIRST[1], LAST[1] + 1)
    candidates = [Path(sys.executable)]
    candidates += [Path(path) for path in (shutil.which(f"python3.{minor}") for minor in minors) if path]
    pyenv = shutil.which("pyenv")
    roots = [os.environ.get("PYENV_ROOT"), Path.home() / ".pyenv"]
    if pyenv:
        roots.append(subprocess.run([pyenv, "root"], capture_output=True, text=True, check=False).stdout.strip())
    for root in filter(None, roots):
        candidates += sorted(Path(root).glob("versions/3.*/bin/python3"))
    for program in candidates:
        asked = subprocess.run([program, "-c", ABOUT], capture_output=True, text=True, check=False)
        if asked.returncode != 0:
            continue
        version, free_threaded, has_headers, _ = json.loads(asked.stdout)
        if has_headers and FIRST <= tuple(version) <= LAST:
            name = f"{version[0]}.{version[1]}{'t' if free_threaded else ''}"
            found.setdefault(name, program)
    return found


def build(name, program, options=()):
    """Builds the package for an interpreter, and returns the folder to import it from; None if that fails."""
    folder = BUILD / "python" / name
    log = f"python-{name}"
    configured = quietly("configure", ["cmake", "-S", SOURCE, "-B", folder, "-G", "Ninja",
                                       *fresh_if_moved(folder, SOURCE), f"-DPython_EXECUTABLE={program}",
                                       "-DCMAKE_BUILD_TYPE=Release", *options], log)
    if not configured or not quietly("build", ["cmake", "--build", folder, "--", f"-j{JOBS}"], log):
        return None
    site = folder / "site"
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(SOURCE / "tocsin", site / "tocsin", ignore=shutil.ignore_patterns("__pycache__"))
    for module in folder.glob("_core.*"):
        shutil.copy2(module, site / "tocsin")
    return site


def run_tests(name, program, site, folder="tests"):
    """Runs the tests in one folder, and counts their cases."""
    log = f"python-{name}-{folder}"
    environment = {**ENVIRONMENT, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1",
                   "TOCSIN_PYTHON_SOURCE": str(SOURCE)}
    command = ["timeout", "600", program, "-X", "faulthandler", "-m", "unittest", "discover", "-v",
               "-s", SOURCE / folder]
    good = quietly(f"{folder} {name}", command, log, environment=environment)
    text = (BUILD / "logs" / f"{log}.log").read_text(errors="replace")
    for reason in sorted(set(re.findall(r"skipped '(NOT RUN.*?)'", text))):
        say(f"  {name}: {reason}")
    ran = re.search(r"^Ran (\d+) tests?", text, re.MULTILINE)
    failures = re.findall(r"^(?:FAIL|ERROR): (\S+)", text, re.MULTILINE)
    skipped = re.search(r"skipped=(\d+)", text)
    if ran is None or (not good and not failures):
        return Count(failed=1)
    number_skipped = int(skipped[1]) if skipped else 0
    return Count(passed=int(ran[1]) - len(failures) - number_skipped, failed=len(failures), skipped=number_skipped)


def run_one(name, program):
    site = build(name, program)
    return Count(failed=1) if site is None else run_tests(name, program, site)


def preferred():
    """The tests on one interpreter: two minutes at most, most of them for the library."""
    found = interpreters()
    if not found:
        say("  skipped: no CPython 3.9 to 3.13 with headers (Debian: python3-dev)")
        return Count(skipped=1)
    name = f"{PREFERRED[0]}.{PREFERRED[1]}"
    name = name if name in found else next(iter(found))
    return run_one(name, found[name])


def every():
    count = Count()
    found = interpreters()
    wanted = [f"3.{minor}" for minor in range(FIRST[1], LAST[1] + 1)] + ["3.13t"]
    for name in wanted:
        if name in found:
            count += run_one(name, found[name])
        else:
            say(f"  NOT RUN: there is no CPython {name} with headers here")
            count += Count(skipped=1)
    return count
