# SPDX-License-Identifier: Apache-2.0
"""The smoke test, built by the compilers that this system offers."""

from dev import needs
from dev.run import Count, run_workflow
from dev.tree import say

PRESETS = ("gcc-cxx23", "gcc-bare", "clang-oldest", "clang-newest-cxx23", "libcxx", "clang-16-libcxx")
OLDEST_CLANG = 16
OLDEST_LIBCXX = 18  # the first with std::stop_token
NEWEST_CLANG = 40  # that is looked for


def clangs():
    """The versions of clang that this system offers, the oldest first."""
    return [version for version in range(OLDEST_CLANG, NEWEST_CLANG) if needs.offered([needs.clang(version)])]


def plan():
    """What to build: (preset, what it needs, what to configure it with), and what this system lacks, in sentences."""
    rows = [("gcc-cxx23", [], {}), ("gcc-bare", [], {})]
    lacking = []
    versions = clangs()
    if not versions:
        return rows, [f"no clang from {OLDEST_CLANG} on"]
    oldest, newest = versions[0], versions[-1]
    if oldest != OLDEST_CLANG:
        lacking.append(f"no clang {OLDEST_CLANG}; clang {oldest} takes its place")
    rows.append(("clang-oldest", [needs.clang(oldest)], {"CMAKE_CXX_COMPILER": f"clang++-{oldest}"}))
    rows.append(("clang-newest-cxx23", [needs.clang(newest)], {"CMAKE_CXX_COMPILER": f"clang++-{newest}"}))
    libraries = [version for version in versions if version >= OLDEST_LIBCXX and needs.offered(needs.libcxx(version))]
    if libraries:
        own = libraries[-1]
        rows.append(("libcxx", [needs.clang(own), *needs.libcxx(own)], {"CMAKE_CXX_COMPILER": f"clang++-{own}"}))
    else:
        lacking.append(f"no libc++ from {OLDEST_LIBCXX} on")
    if 16 in versions and 19 in libraries:
        rows.append(("clang-16-libcxx", [needs.clang(16), *needs.libcxx(19)], {}))
    else:
        lacking.append("not both clang 16 and libc++ 19, which the preset clang-16-libcxx joins")
    return rows, lacking


def run(only):
    rows, lacking = plan()
    for each in lacking:
        say(f"  this system has {each}")
    count = Count()
    for preset, wanted, definitions in rows:
        compiler = definitions.get("CMAKE_CXX_COMPILER")
        say(f"  {preset}{f' ({compiler})' if compiler else ''}:")
        needs.provide(wanted)
        count += run_workflow(preset, only, definitions=[f"-D{name}={value}" for name, value in definitions.items()])
    return count
