# SPDX-License-Identifier: Apache-2.0
"""Twenty copies of the library in one process, built by two compilers with different options (tests/copies/twenty)."""

import time

from dev.run import Count, fresh_if_moved, one, quietly
from dev.tree import BUILD, ENVIRONMENT, JOBS, ROOT, say

WARNINGS = "-Wall -Wextra"
SANITIZED = "-fsanitize=address -fno-omit-frame-pointer"
# Compiler, options, whether misuse is checked. The first one builds the program that loads the copies. An object with
# unique symbols of GNU, which GCC makes of inline variables, is never unloaded.
FLAVORS = {
    "gcc-O0": ("g++", "-O0 -g", "ON"),
    "gcc-O3": ("g++", "-O3 -fno-exceptions -fno-rtti -fno-gnu-unique", "OFF"),
    "clang-O0": ("clang++-19", "-O0 -g -fno-rtti", "OFF"),
    "clang-O3": ("clang++-19", "-O3 -std=c++2b -fno-exceptions", "ON"),
}
EACH = 5
ROUNDS = 4


def build(flavor, sanitized):
    """Builds the plug-ins of a flavor, and returns their folder; None if that fails.

    A process has one AddressSanitizer, that of the program's compiler: clang's copies are not instrumented."""
    compiler, options, checked = FLAVORS[flavor]
    sanitized = sanitized and compiler == "g++"
    folder = BUILD / "copies" / (f"{flavor}-asan" if sanitized else flavor)
    options = f"{WARNINGS} {options} {SANITIZED if sanitized else ''}"
    log = f"copies-{folder.name}"
    host = "ON" if flavor == next(iter(FLAVORS)) else "OFF"
    source = ROOT / "tests" / "copies" / "twenty"
    configured = quietly("configure", ["cmake", "-S", source, "-B", folder, "-G", "Ninja",
                                       *fresh_if_moved(folder, source),
                                       f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_CXX_FLAGS={options}",
                                       f"-DTOCSIN_CHECKED={checked}", f"-DCOPIES={EACH}", f"-DHOST={host}"], log)
    return folder if configured and quietly(flavor, ["cmake", "--build", folder, "--", f"-j{JOBS}"], log) else None


def plugins_of(folder):
    return [folder / f"copy{number}.so" for number in range(1, EACH + 1)]


def load_all(sanitized, seeds):
    """Counts one check for each seed."""
    say("  under AddressSanitizer:" if sanitized else "  plain:")
    folders = [build(flavor, sanitized) for flavor in FLAVORS]
    if None in folders:
        return Count(failed=len(seeds))
    plugins = [plugin for folder in folders for plugin in plugins_of(folder)]
    # The copies have globals of the same names.
    environment = {**ENVIRONMENT, "ASAN_OPTIONS": "detect_odr_violation=0"}
    count = Count()
    for number, seed in enumerate(seeds):
        command = ["timeout", "300", folders[0] / "host", str(seed), *plugins]
        log = f"copies-{'asan-' if sanitized else ''}{number}"
        count += one(quietly(f"seed {seed}", command, log, environment=environment))
    return count


def run(seed=None):
    """The stage; a seed that failed can be given again."""
    first = int(time.time()) % 1_000_000 if seed is None else seed
    seeds = [first + i for i in range(ROUNDS if seed is None else 1)]
    return load_all(False, seeds) + load_all(True, seeds[:2])
