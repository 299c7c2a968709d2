# SPDX-License-Identifier: Apache-2.0
"""The stages of `./dev test`."""

import sys
import time
from collections import Counter
from dataclasses import dataclass

from dev import checks, compilers, copies, distributions, needs, old_glibc, packages, python_mutants, python_package
from dev.run import Count, gist, one, quietly, run_script, run_workflow
from dev.tree import BUILD, JOBS, LAB, ROOT, TOOLS, say
from dev.wine import Wine

# Systems that are not at hand.
BUILDS = ("aarch64-macos", "x86_64-macos", "x86_64-freebsd", "x86_64-openbsd")
# Systems that others have, whom .github/workflows/ci.yml serves.
HOSTED = ("msvc", "clang-cl", "apple-clang")
# Linux on other processors: what the stage says, Debian's name of the processor, whether it takes an emulator.
PROCESSORS = {
    "arm": ("64-bit ARM", "aarch64-linux-gnu", True),
    "riscv": ("64-bit RISC-V", "riscv64-linux-gnu", True),
    "armhf": ("32-bit ARM", "arm-linux-gnueabihf", True),
    "x86": ("32-bit x86", "i686-linux-gnu", False),
}


def workflow(name, wanted=(), optional=False, prepare=None):
    """A stage that is the workflow preset of its name, once what it needs is there."""
    def run(only):
        needs.provide(wanted, optional)
        if prepare:
            prepare()
        return run_workflow(name, only)
    return run


def workflows(names, wanted, prepare=None):
    """A stage of several workflow presets."""
    def run(only):
        needs.provide(wanted)
        if prepare:
            prepare()
        count = Count()
        for name in names:
            say(f"  {name}:")
            count += run_workflow(name, only)
        return count
    return run


def whole(function):
    """A stage that has no cases to choose from."""
    return lambda only: function()


def quick():
    return checks.check_changes() + run_workflow("quick")


def windows(only):
    needs.provide(needs.FOR_WINDOWS)
    with Wine() as wine:
        count = run_workflow("windows", only, wine.wait_until_started)
        if not only:
            # And the library as a DLL, alongside its program.
            count += run_workflow("windows-win32", only)
    return count


def windows_lab():
    needs.provide(needs.FOR_WINDOWS)
    python = needs.python_with(LAB / "requirements.txt")
    with Wine() as wine:
        built = run_workflow("windows-lab")
        wine.wait_until_started()
        if built.failed:
            return built
        return run_script("lab", [python, LAB / "run.py", "--smoke", "--workers", BUILD / "windows-lab" / "lab"],
                          "windows-lab-smoke", wine.environment)


def glibc(only):
    needs.provide([*needs.FOR_TARGETS, needs.DEBOOTSTRAP])
    needs.provide_zig()
    needs.provide_debian_11()
    count = run_workflow("glibc-2.31", only)
    return count if only else count + old_glibc.links("glibc-2.31", BUILD / "debian-11")


def unity():
    """The libraries, with all sources of each as one: for Linux, and for Windows by MinGW-w64."""
    needs.provide(needs.FOR_WINDOWS)
    count = Count()
    for name, options in (("linux", []), ("windows", [f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'cmake' / 'mingw.cmake'}"])):
        work = BUILD / f"unity-{name}"
        built = (quietly(f"configure {name}", ["cmake", "-S", ROOT, "-B", work, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                                               "-DTOCSIN_WIN32=ON", "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0",
                                               *options],
                         f"unity-{name}-configure")
                 and quietly(f"build {name}", ["cmake", "--build", work, "--", f"-j{JOBS}"], f"unity-{name}-build"))
        count += one(built)
    return count


def twenty_copies():
    needs.provide(needs.FOR_CLANG)
    return copies.run()


def all_packages(only):
    needs.provide(needs.FOR_PACKAGES)
    return packages.run(only)


def prepare_wasm():
    """The C++ library that cmake/toolchains/wasm.cmake wants, compiled."""
    needs.provide_libcxx_sources()
    source, work = ROOT / "cmake" / "toolchains" / "libcxx", BUILD / "libcxx" / "build"
    toolchain = ROOT / "cmake" / "toolchains" / "wasm.cmake"
    if not (quietly("configure", ["cmake", "-S", source, "-B", work, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                                  f"-DCMAKE_TOOLCHAIN_FILE={toolchain}"], "libcxx-configure")
            and quietly("build", ["cmake", "--build", work, "--", f"-j{JOBS}"], "libcxx-build")):
        say("  the C++ library for WebAssembly does not build")


def prove():
    return run_script("prove", [sys.executable, TOOLS / "prove.py", "--bounded"], "prove")


def lab():
    smoke = run_script("lab", [ROOT / "dev", "lab", "--smoke"], "lab")
    python = needs.python_with(LAB / "requirements.txt")
    smoke += one(quietly("defects", [python, LAB / "run.py", "defects", "--budget", "0.2",
                                     "--out", BUILD / "lab" / "defects" / "smoke.json"], "lab-defects"))
    # Also the tests that need packages, which `lab.units` skips.
    return smoke + one(quietly("own tests", [python, "-m", "unittest", "discover", "-s", LAB / "tests", "-t", LAB],
                               "lab-own-tests"))


def report():
    needs.provide(needs.FOR_BROWSER)
    needs.python_with(LAB / "requirements.txt")
    python = needs.python_with(LAB / "tests" / "requirements.txt")
    return run_script("report", [python, LAB / "tests" / "browser.py"], "report")


def documents():
    needs.provide(needs.FOR_BROWSER)
    made = run_script("docs", [ROOT / "dev", "docs"], "docs")
    python = needs.python_with(LAB / "tests" / "requirements.txt")
    return made + run_script("browser", [python, TOOLS / "docs" / "browser.py"], "docs-browser")


def diagnosis(only):
    needs.provide([*needs.FOR_DIAGNOSIS, *needs.FOR_BROWSER], optional=True)
    count = run_workflow("diagnosis", only)
    if only:
        return count
    if not all(need.present() for need in needs.FOR_BROWSER):
        say("  skipped: traces in a browser, because there is no Chromium")
        return count + Count(skipped=1)
    tests = ROOT / "tests" / "diagnosis"
    python = needs.python_with(tests / "requirements.txt")
    return count + run_script("browser", [python, tests / "browser.py", BUILD / "dev" / "tests" / "diagnosis" / "diagnosed"],
                              "diagnosis-browser")


@dataclass
class Stage:
    about: str
    run: object  # called with a regular expression for the names of cases, or None for all
    when: str = "usual"  # what runs it: `./dev test` and CI ("usual"), CI alone ("ci"), only its name ("named")
    has_cases: bool = True
    has_compilers: bool = False  # also takes a list of compilers, of which an empty one stands for all


def in_ci(about, run):
    return Stage(about, run, when="ci")


def seldom(about, run):
    return Stage(about, run, when="named")


def processor(name, when="named"):
    """The stage of Linux on another processor."""
    about, triplet, emulated = PROCESSORS[name]
    return Stage(f"unit, internal and stress tests on {about} Linux{', under qemu' if emulated else ''}",
                 workflow(name, needs.for_processor(about, triplet, emulated)), when=when)


def group(name):
    """The stages that a word stands for: `usual`, what a change must pass; or `ci`, what `.ci/run` runs."""
    kinds = {"usual": ("usual",), "ci": ("usual", "ci")}.get(name)
    return [each for each, stage in STAGES.items() if stage.when in kinds] if kinds else [name]


STAGES = {
    "check": Stage("format, static analysis, layers, text", whole(checks.check), has_cases=False),
    "dev": Stage("unit, internal and stress tests; debug, misuse checked",
                 workflow("dev", [*needs.FOR_LOOPS, needs.GDB], optional=True)),
    "compile_fail": Stage("what must not compile, with GCC and, where there is one, clang",
                          workflow("compile_fail", [needs.CLANG], optional=True)),
    "models": Stage("the library's sources over the explorer, bounded: no interleaving loses a wake-up", workflow("models")),
    "slow-models": in_ci("those of the models that take longer (tests/model/slow.txt), bounded", workflow("slow-models")),
    "consumer": in_ci("a stranger's project: find_package, pkg-config, add_subdirectory, ThreadSanitizer",
                      workflow("consumer", needs.FOR_CLANG, optional=True)),
    "prove": Stage("a sample of the mutants, and Spin's quick checks", whole(prove), when="ci", has_cases=False),
    "python-one": Stage("the Python package on one interpreter, 3.11 if there is one: about two minutes",
                        whole(python_package.preferred), when="ci", has_cases=False),
    "python": Stage("wheels from the sdist on every CPython from 3.9 to 3.14 that is there, with the standard library's own "
                    "tests; types; trio, uvloop, pytest and Jupyter", whole(python_package.every), when="named", has_cases=False),
    "python-mutants": seldom("planted defects of the Python package: a test must find each; half an hour",
                             python_mutants.run),
    "portable": in_ci("the tests of `dev` over the portable futex", workflow("portable")),
    "release": in_ci("the tests of `dev`, optimised and unchecked", workflow("release")),
    "asan": in_ci("the tests of `dev` under AddressSanitizer and UBSan, with the counters of waits", workflow("asan")),
    "tsan": in_ci("the tests of `dev` under ThreadSanitizer", workflow("tsan")),
    "lab": Stage("every scenario × contestant once", whole(lab), when="ci", has_cases=False),
    "windows": in_ci("unit, internal and stress tests for Windows, under Wine", windows),
    "arm": processor("arm", when="ci"),
    "report": Stage("the lab's report in a browser, at phone and desktop width", whole(report), when="named",
                    has_cases=False),
    "docs": Stage("the site of all documents: its links, its search, and every page in a browser", whole(documents),
                  when="named", has_cases=False),
    "quick": Stage("for a change under way: check (clang-tidy of what has changed), most unit, internal and model tests",
                   whole(quick), when="named", has_cases=False),
    "examples": seldom("the examples, with the loops and the database that some of them need",
                       workflow("examples", needs.FOR_ALL_EXAMPLES, optional=True)),
    "diagnosis": seldom("what gdb, bpftrace and perf see of a program; what Perfetto shows of a trace, in a browser",
                        diagnosis),
    "long-models": seldom("the models that take longest (tests/model/long.txt), bounded", workflow("long-models")),
    "windows-lab": Stage("every scenario × contestant for Windows once, under Wine", whole(windows_lab), when="named",
                         has_cases=False),
    "delays": seldom("the stress tests with naps between the steps of threads, twenty times", workflow("delays")),
    "tsan-portable": seldom("ThreadSanitizer over the portable futex", workflow("tsan-portable")),
    "clang": seldom("dev built by clang 19", workflow("clang", needs.FOR_CLANG)),
    "clang-tsan": seldom("ThreadSanitizer of clang 19", workflow("clang-tsan", needs.FOR_CLANG)),
    "copies": Stage("twenty copies of the library, of two compilers, in one process; under AddressSanitizer, too",
                    whole(twenty_copies), when="named", has_cases=False),
    "packages": seldom("Conan, vcpkg, Meson, Debian and cpack; the single header; same bytes from two builds (-R: one "
                       "kind)", all_packages),
    "unity": Stage("the libraries as unity builds, on Linux and with MinGW-w64: one minute", whole(unity), when="named",
                   has_cases=False),
    "compilers": seldom("the oldest and the newest clang here, libc++, C++23, no exceptions: the smoke test",
                        compilers.run),
    "debian-13": in_ci("an empty Debian 13: README's commands, the libraries by two compilers; five minutes, as root",
                        lambda only: distributions.run(["debian-13"], only, whole=False)),
    "distributions": Stage("empty Debian 13 and the newest: README's commands, every compiler, the suites; hours, as root "
                           "(-R 'SYSTEM STEP': also tsan, asan, lab ...; --compiler: one of them)",
                           lambda only, compilers: distributions.run(distributions.SUITES, only, chosen=compilers),
                           when="named", has_compilers=True),
    "builds": seldom("macOS, FreeBSD and OpenBSD: the library and the smoke test, linked",
                     workflows(BUILDS, needs.FOR_TARGETS, needs.provide_zig)),
    "musl": seldom("unit, internal and stress tests on Linux with musl",
                   workflow("musl", needs.FOR_TARGETS, prepare=needs.provide_zig)),
    "glibc-2.31": seldom("unit, internal and stress tests with the C library of Debian 11; links with it", glibc),
    **{name: processor(name) for name in PROCESSORS if name != "arm"},
    "wasm": seldom("unit, internal and stress tests for WebAssembly, under Node",
                   workflow("wasm", needs.FOR_WASM, prepare=prepare_wasm)),
}


def run(names, only=None, minutes=float("inf"), compilers=()):
    """Runs these stages, and begins none after so many minutes; prints how each came out. Returns the whole count."""
    rows = []
    first = time.monotonic()
    for index, name in enumerate(names):
        if time.monotonic() - first > minutes * 60:
            say(f"left out, because {minutes:g} minutes are over: {', '.join(names[index:])}")
            break
        say(f"{name}: {STAGES[name].about}")
        began = time.monotonic()
        chosen = [compilers] if STAGES[name].has_compilers else []
        rows.append((name, STAGES[name].run(only, *chosen), time.monotonic() - began))
    total = sum((count for _, count, _ in rows), Count())
    say(f"\n{'stage':<14} {'seconds':>8} {'passed':>7} {'failed':>7} {'skipped':>8}")
    for name, count, seconds in rows:
        say(f"{name:<14} {seconds:8.1f} {count.passed:7} {count.failed:7} {count.skipped:8}")
    say(f"{'all':<14} {sum(seconds for _, _, seconds in rows):8.1f}")
    # From here on once more, because a page that keeps a part of the output keeps its end.
    say_gists([(name, failure) for name, count, _ in rows for failure in count.failures])
    for name, count, _ in rows:
        if count.failed:
            names = [failure.name for failure in count.failures]
            say(f"failed in {name}: {', '.join(names) or 'its own output says what'}")
    say(str(total))
    return total


def say_gists(failures, limit=12):
    """What some of these pairs of a stage and a Failure printed: the first of each stage, then the second of each."""
    seen = Counter()
    turns = []
    for name, failure in failures:
        turns.append((seen[name], name, failure))
        seen[name] += 1
    for _, name, failure in sorted(turns, key=lambda turn: turn[0])[:limit]:
        say(f"\n{name}: {failure.name}")
        for line in gist(failure.output):
            say(f"  {line}")
    if len(failures) > limit:
        say(f"\nand {len(failures) - limit} more, whose output is in build/logs")
    if failures:
        say("")
