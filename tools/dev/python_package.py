# SPDX-License-Identifier: Apache-2.0
"""The Python package: built for the interpreters that are there, and its tests run on each (python/tests)."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

from dev.needs import python_with
from dev.run import Count, Failure, fresh_if_moved, one, quietly, read_log, run_script
from dev.tree import BUILD, ENVIRONMENT, JOBS, LAB, ROOT, say

SOURCE = ROOT / "python"
FIRST, LAST = (3, 9), (3, 14)
FREE_THREADED = ("3.13t", "3.14t")
PREFERRED = (3, 11)
MEASURED = ("3.11", "3.13")

ABOUT = """import json, os, sys, sysconfig
print(json.dumps([list(sys.version_info[:2]), sysconfig.get_config_var("Py_GIL_DISABLED") or 0,
                  os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")), sys.prefix]))"""


def interpreters():
    """Each version's first interpreter that has headers: {name: program}."""
    found = {}
    minors = range(FIRST[1], LAST[1] + 1)
    candidates = [Path(sys.executable)]
    names = [f"python3.{minor}" for minor in minors] + [f"python{name}" for name in FREE_THREADED]
    candidates += [Path(path) for path in map(shutil.which, names) if path]
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
    """Builds the package for an interpreter, and returns the folder to import it from, or a Failure."""
    folder = BUILD / "python" / name
    log = f"python-{name}"
    configured = quietly("configure", ["cmake", "-S", SOURCE, "-B", folder, "-G", "Ninja",
                                       *fresh_if_moved(folder, SOURCE), f"-DPython_EXECUTABLE={program}",
                                       "-DCMAKE_BUILD_TYPE=Release", *options], log)
    built = configured and quietly("build", ["cmake", "--build", folder, "--", f"-j{JOBS}"], log)
    if not built:
        return built
    site = folder / "site"
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(SOURCE / "tocsin", site / "tocsin", ignore=shutil.ignore_patterns("__pycache__"))
    for module in folder.glob("_core.*"):
        shutil.copy2(module, site / "tocsin")
    return site


def make_for_lab(folder):
    """Writes the lab's worker for the interpreters that are measured; False if the package can't be built for one."""
    found, programs = interpreters(), {}
    for name in [name for name in MEASURED if name in found] or list(found)[:1]:
        site = build(name, found[name])
        if not site:
            return False
        environment = folder / name
        python = environment / "bin" / "python"
        peers = LAB / "worker" / "runtimes" / "requirements.txt"
        stamp = environment / "installed"
        if not (stamp.exists() and stamp.read_text() == peers.read_text()):
            if not quietly("environment", [found[name], "-m", "venv", "--clear", environment], f"python-{name}-lab"):
                return False
            if quietly("peers", [python, "-m", "pip", "install", "--disable-pip-version-check", "-r", peers],
                       f"python-{name}-lab"):
                stamp.write_text(peers.read_text())
            else:
                say(f"  Lab: aiologic and gevent are left out in CPython {name}: pip could not install them")
        programs[name] = (str(python), str(site))
    worker = folder / "tocsin_lab_worker_python"
    worker.write_text(f"#!{sys.executable}\nimport sys\n\nsys.path.insert(0, {str(LAB / 'worker' / 'runtimes')!r})\n"
                      f"import package\n\nsys.exit(package.main({programs!r}, sys.argv[1:]))\n")
    worker.chmod(0o755)
    if not programs:
        say("  no CPython 3.9 to 3.14 with headers (Debian: python3-dev)")
    return bool(programs)


def say_not_run(name, pattern, text):
    for reason in sorted(set(re.findall(pattern, text, re.MULTILINE))):
        say(f"  {name}: {reason}")


def run_tests(name, program, environment, chosen=("discover", "-s", SOURCE / "tests")):
    """Runs python/tests, and counts their cases."""
    log = f"python-{name}-tests"
    command = ["timeout", "600", program, "-X", "faulthandler", "-m", "unittest", chosen[0], "-v", *chosen[1:]]
    environment = {**ENVIRONMENT, "PYTHONDONTWRITEBYTECODE": "1", "TOCSIN_PYTHON_SOURCE": str(SOURCE), **environment}
    good = quietly(f"tests {name}", command, log, environment=environment)
    text = read_log(log)
    say_not_run(name, r"skipped '(NOT RUN.*?)'", text)
    ran = re.search(r"^Ran (\d+) tests?", text, re.MULTILINE)
    failures = [Failure(name, output) for output, name in
                re.findall(r"^((?:FAIL|ERROR): (\S+).*?)(?=^={70}$|^-{70}\nRan |\Z)", text, re.MULTILINE | re.DOTALL)]
    skipped = re.search(r"skipped=(\d+)", text)
    if ran is None or (not good and not failures):
        return one(good)
    number_skipped = int(skipped[1]) if skipped else 0
    return Count(int(ran[1]) - len(failures) - number_skipped, len(failures), number_skipped, failures)


def preferred_of(found):
    name = f"{PREFERRED[0]}.{PREFERRED[1]}"
    return name if name in found else next(iter(found), None)


def preferred():
    """The tests on one interpreter: two minutes at most, most of them for the library."""
    found = interpreters()
    if not found:
        say("  skipped: no CPython 3.9 to 3.14 with headers (Debian: python3-dev)")
        return Count(skipped=1)
    name = preferred_of(found)
    site = build(name, found[name])
    return run_tests(name, found[name], {"PYTHONPATH": str(site)}) if site else one(site)


def unpacked_sdist(python):
    """The sdist, built and unpacked in build/python; None if that fails."""
    folder = BUILD / "python" / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    if not quietly("sdist", [python, "-m", "build", "--sdist", "--no-isolation", "-o", folder, ROOT], "python-sdist"):
        return None
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        top = archive.getnames()[0].split("/")[0]
        target = BUILD / "python" / "sdist"
        shutil.rmtree(target, ignore_errors=True)
        archive.extractall(target, filter="data")
    return target / top


def installed_wheel(name, program, sdist):
    """The Python of a fresh environment that has the wheel, built from the sdist; None if that fails."""
    folder = BUILD / "python" / f"wheel-{name}"
    log = f"python-{name}-wheel"
    shutil.rmtree(folder / "dist", ignore_errors=True)
    python = folder / "venv" / "bin" / "python"
    # The pip of an old interpreter does not know -C.
    steps = {"environment": [program, "-m", "venv", "--clear", "--upgrade-deps", folder / "venv"],
             f"wheel {name}": [python, "-m", "pip", "wheel", "--no-deps", "--disable-pip-version-check",
                               "-w", folder / "dist", "-C", f"build-dir={folder / 'build'}", sdist],
             "install": [python, "-m", "pip", "install", "--no-index", "--disable-pip-version-check", "--find-links",
                         folder / "dist", "tocsin"]}
    return python if all(quietly(title, step, log) for title, step in steps.items()) else None


def without_network():
    """What begins a command that shall reach no network; None if the system refuses."""
    for prefix in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        if shutil.which("unshare") and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0:
            return prefix
    return None


def install_without_network(name, program):
    """`pip install` of the checkout and of the sdist. Only the build's requirements are fetched before."""
    cut_off = without_network()
    if cut_off is None:
        say("  NOT RUN: installing without a network: this system lets no command run without one")
        return Count(skipped=2)
    folder = BUILD / "python" / "offline"
    wheels = folder / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    python = folder / "venv" / "bin" / "python"
    log = f"python-{name}-offline"
    if not quietly("build's needs", [program, "-m", "pip", "download", "--disable-pip-version-check", "-d", wheels,
                                     *requires], log):
        return Count(failed=2)
    count = Count()
    for title, what in (("checkout", ROOT), ("sdist", next((BUILD / "python" / "dist").glob("*.tar.gz")))):
        steps = {"environment": [program, "-m", "venv", "--clear", folder / "venv"],
                 f"pip {title}": [*cut_off, python, "-m", "pip", "install", "--no-index", "--find-links", wheels,
                                  "--disable-pip-version-check", "-C", f"build-dir={folder / f'build-{title}'}", what],
                 "import": [*cut_off, python, "-I", "-c", "import tocsin; e = tocsin.Event(); e.set(); "
                            "assert tocsin.wait_any(tocsin.Event(), e) == 1"]}
        count += one(next((done for done in (quietly(step, command, log) for step, command in steps.items())
                           if not done), True))
    return count


def site_of(installed):
    """Where the Python of an environment has its packages."""
    return subprocess.run([installed, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                          capture_output=True, text=True, check=True).stdout.strip()


def check_types(python, site):
    """The stubs against the module, and the examples against the stubs. The two Pythons have one version."""
    environment = {**ENVIRONMENT, "PYTHONPATH": site, "MYPYPATH": site}
    examples = sorted((SOURCE / "examples").glob("*.py"))
    settings = BUILD / "python" / "pyrightconfig.json"  # pyright is strict by its settings only
    folder = os.path.relpath(SOURCE / "examples", settings.parent)  # it ignores absolute paths
    settings.write_text(json.dumps({"include": [folder], "typeCheckingMode": "strict"}))
    commands = {"stubtest": ["-m", "mypy.stubtest", "tocsin", "--ignore-missing-stub"],
                "mypy": ["-m", "mypy", "--strict", *examples],
                "pyright": ["-m", "pyright", "--project", settings, "--pythonpath", python]}
    return sum((one(quietly(name, [python, *command], f"python-{name}", environment=environment))
                for name, command in commands.items()), Count())


def run_with_others(python, site):
    """trio, uvloop, pytest and Jupyter over our waits. None of these tests may be left out here."""
    count = run_tests("others", python, {"PYTHONPATH": f"{site}{os.pathsep}{SOURCE / 'tests'}"}, ("others",))
    if count.skipped:
        say("  others: a test was left out, although its program is installed")
        count.failed += count.skipped
    return count


def run_wheel(name, program, sdist):
    """One interpreter: the wheel, our tests, and the standard library's own with the types replaced."""
    python = installed_wheel(name, program, sdist)
    if python is None:
        return Count(failed=1)
    log = f"python-{name}-library"
    count = run_tests(name, python, {}) + run_script(
        f"library {name}", ["timeout", "1800", python, SOURCE / "tests" / "standard_library.py"], log)
    say_not_run(name, r"^(NOT RUN.*)", read_log(log))
    return count


def every():
    python = python_with(SOURCE / "requirements.txt")
    sdist = unpacked_sdist(python)
    if sdist is None:
        return Count(failed=1)
    found = interpreters()
    name = preferred_of(found)
    count = install_without_network(name, found[name]) if name else Count()
    for name in [f"3.{minor}" for minor in range(FIRST[1], LAST[1] + 1)] + [*FREE_THREADED]:
        if name in found:
            count += run_wheel(name, found[name], sdist)
        else:
            say(f"  NOT RUN: there is no CPython {name} with headers here")
            count += Count(skipped=1)
    same = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if same in found:
        site = site_of(BUILD / "python" / f"wheel-{same}" / "venv" / "bin" / "python")
        count += check_types(python, site) + run_with_others(python, site)
    return count + run_script("lab", [ROOT / "dev", "lab", "--python", "--smoke"], "python-lab")
