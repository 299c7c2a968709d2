# SPDX-License-Identifier: Apache-2.0
"""Empty systems of Debian: the commands that a user types there, every compiler that they offer, and the suites.

debootstrap makes a system in build/distributions/NAME; a second run uses it again. Programs run in it by chroot, with
their own /proc and process numbers. A copy of this tree is in the system, in a folder whose name has a blank, and
belongs to a user without rights; root has another. Each step writes a log, and notes what passed."""

import os
import re
import shlex
import shutil
import subprocess
import time
from dataclasses import dataclass, field

from dev import needs, packages
from dev.run import Count, Failure, counted, one, presets, quietly, read_log
from dev.tree import BUILD, ENVIRONMENT, JOBS, ROOT, VENV, Refusal, compiler_cache, say, unknown

SUITES = {"debian-12": "bookworm", "debian-13": "trixie", "debian-newest": "sid"}
FOLDER = BUILD / "distributions"
PAGE = ROOT / "docs" / "platforms.md"
BEGIN, END = "<!-- ./dev test distributions -->\n", "<!-- end -->\n"
STANDARDS = (20, 23, 26)
OLDEST = {"g++": 12, "clang++": 16}
OF_C = {"g++": "gcc", "clang++": "clang"}
SAYS_VERSION = {"g++": "-dumpfullversion", "clang++": "-dumpversion"}
NOT_EXPERIMENTAL = 20  # the first libc++ with std::stop_token as it is
WARNINGS = "-Wall -Wextra -Wpedantic -Wold-style-cast -Werror"  # no -Wshadow: one file has all scopes
# Of programs that include the headers: every warning that this project's own builds have.
BASE = next(each for each in presets()["configurePresets"] if each["name"] == "base")
STRICT = f"{BASE['environment']['WARNINGS']} -Werror"
# Clang 17 refuses this in C++23, with libstdc++ 14.
PROBE = "#include <map>\nint main() { std::map<int, int> numbers; ++numbers[1]; }"
HOME = "/srv/user"
USER = f"{HOME}/a tree"  # the blank is meant
TREES = {"user": USER, "root": "/srv/tree"}
BUILT = (BUILD.name, VENV.name)  # what ./dev makes in a tree
CLONES = {"user": f"{HOME}/a clone", "root": "/srv/clone"}
CACHE = "/srv/ccache"
TRUSTED = "/srv/certificates"  # those of this system, which may be behind a proxy with a certificate
SUITE_PROGRAMS = "tocsin_suites"
SUITE_TESTS = "-L '^(slow_)?(unit|internal|stress)$' -E '^(soak|fuzz)[.]'"
STRANGER = """
#include <tocsin/tocsin.hpp>
#include <thread>
int main() {
    tocsin::auto_reset_event work;
    std::jthread signaller([&] { work.set(); });
    work.wait();
}
"""


def enter(root, script, user, tree=None):
    """The command that runs a script of the shell in the system, as this user, in the user's tree or in another."""
    tree = tree or TREES[user]
    inside = ("mount -t proc proc /proc && mount -t tmpfs tmpfs /dev/shm && mkdir --parents /dev/pts "
              f"&& mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts && cd '{tree}' "
              f"&& exec su {user} --shell /bin/sh --command {shlex.quote(script)}")
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "chroot", root, "/bin/sh", "-c", inside]


def export(variables):
    """The line of the shell that puts these variables into the environment."""
    return f"export {' '.join(f'{name}={shlex.quote(value)}' for name, value in variables.items())}"


@dataclass
class System:
    name: str
    suite: str
    chosen: tuple = ()  # the compilers that the steps take of those that are offered; none: all
    passed: dict = field(default_factory=dict)  # step -> what it says in the table; None if it failed (note())
    lists_are_new: bool = False  # the lists of packages

    @property
    def root(self):
        return FOLDER / self.name

    def run(self, title, script, user="user", tree=None):
        done = quietly(title, enter(self.root, script, user, tree), self.log(title), environment=self.environment())
        return done or Failure(f"{self.name}: {title}", done.output)

    def log(self, title):
        return f"{self.name}-{title.replace(' ', '-')}"

    @staticmethod
    def environment():
        keep = {name: ENVIRONMENT[name] for name in ("LC_ALL", "http_proxy", "https_proxy") if name in ENVIRONMENT}
        if "SSL_CERT_FILE" in ENVIRONMENT:
            keep |= {"SSL_CERT_FILE": TRUSTED, "PIP_CERT": TRUSTED}
        return {**keep, "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "CMAKE_BUILD_PARALLEL_LEVEL": str(JOBS), "DEBIAN_FRONTEND": "noninteractive",
                # Outside the user's home, which each run makes again.
                "CCACHE_DIR": CACHE, "CCACHE_UMASK": "000"}

    def says(self, script):
        """What a script prints in the system."""
        return self.started(script, "root").stdout.strip()

    def refuses(self, script, *words, tree=None):
        """Whether the user hears these words and nothing is done."""
        result = self.started(script, "user", tree)
        heard = result.stdout + result.stderr
        fits = result.returncode != 0 and all(word in heard for word in words)
        say(f"  `{script}` says: {heard.strip()}" if fits else f"  `{script}` ({result.returncode}) should say "
            f"{', '.join(words)}, and says: {heard.strip()}")
        return one(fits)

    def started(self, script, user, tree=None):
        return subprocess.run(enter(self.root, script, user, tree), env=self.environment(), stdin=subprocess.DEVNULL,
                              text=True, capture_output=True, check=False)

    def make(self):
        """debootstrap and a fresh copy of the tree. Returns whether it succeeded."""
        stamp = self.root / "made"
        if not stamp.exists():
            shutil.rmtree(self.root, ignore_errors=True)
            FOLDER.mkdir(parents=True, exist_ok=True)
            if not quietly("debootstrap", ["debootstrap", "--variant=minbase", self.suite, self.root],
                           self.log("debootstrap")):
                return False
            stamp.touch()
        shutil.copy("/etc/resolv.conf", self.root / "etc" / "resolv.conf")
        if "SSL_CERT_FILE" in ENVIRONMENT:
            shutil.copy(ENVIRONMENT["SSL_CERT_FILE"], self.root / TRUSTED[1:])
        # The newest system's lists of packages are valid for a week, and those of a mirror may be older. apt checks
        # their signatures all the same.
        (self.root / "etc" / "apt" / "apt.conf.d" / "old-mirror").write_text('Acquire::Check-Valid-Until "false";\n')
        shutil.rmtree(self.root / HOME[1:], ignore_errors=True)
        for tree in TREES.values():
            copy_tree(self.root / tree[1:])
        return self.run("user", f"id user || useradd --home-dir {HOME} user; chown --recursive user {HOME}; "
                                f"mkdir --parents --mode 0777 {CACHE}", "root")

    def update(self):
        """Fetches the lists of packages, once in a run. Returns whether it succeeded."""
        self.lists_are_new = self.lists_are_new or self.run("packages", "apt-get update -q", "root")
        return self.lists_are_new

    def install(self, *names):
        return self.update() and self.run(f"install {names[0]}", f"apt-get install -y -q --no-install-recommends "
                                                                 f"{' '.join(names)}", "root")

    def compilers(self):
        """The versions of both compilers that the system offers, those that are chosen, the oldest first."""
        return {compiler: [version for version in versions if not self.chosen or f"{compiler}-{version}" in self.chosen]
                for compiler, versions in self.offered().items()}

    def offered(self):
        """The versions of both compilers that the system offers, the oldest first."""
        if not self.update():
            raise Refusal(f"the packages of {self.name} could not be listed; is there a network?")
        listed = self.says("apt-cache pkgnames")
        return {compiler: sorted(int(number) for number in re.findall(rf"^{re.escape(package)}-(\d+)$", listed, re.M)
                                if int(number) >= OLDEST[compiler])
                for compiler, package in (("g++", "g++"), ("clang++", "clang"))}

    def count(self, title):
        """The count that ./dev or ctest printed at the end of a step's log."""
        text = read_log(self.log(title))
        counts = re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", text, re.M)
        if counts:
            return Count(*(int(number or 0) for number in counts[-1]))
        return ctest_count(text)

    def note(self, step, text):
        self.passed[step] = text

    def note_count(self, step, count):
        self.note(step, None if count.failed else str(count))


def copy_tree(to):
    """Copies this tree there, beside what was built there before. A file that this tree no longer has goes."""
    to.mkdir(parents=True, exist_ok=True)
    for old in to.iterdir():
        if old.is_dir() and old.name not in BUILT:
            shutil.rmtree(old)
        elif not old.is_dir():
            old.unlink()
    for name in packages.known_to_git():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name)


def ctest_count(text):
    """What ctest says at its end: how many tests of how many failed, and which ones it skipped and counts as passed."""
    summary = re.findall(r"(\d+) tests failed out of (\d+)", text)
    if not summary:
        return Count(failed=1)
    failed, total = (int(number) for number in summary[-1])
    skipped = len(re.findall(r"^\s+\d+ - .* \(Skipped\)", text, re.MULTILINE))
    return Count(total - failed - skipped, failed, skipped)


# The steps. Each takes a system and whether there is time for all of it, and returns a Count.


def empty(system, whole):
    """What ./dev says in an empty system: the user hears what to ask for, root gets it."""
    count = Count()
    if not system.says("command -v python3"):
        count += system.refuses("./dev test dev", "missing: Python 3.11 or newer (in Debian: python3)")
    count += one(system.run("verbs", "./dev", "root"))
    if not system.says("command -v g++"):
        count += system.refuses("./dev test dev", *(f"(in Debian: {name})" for name in
                                                    ("g++", "cmake", "ninja-build", "pkg-config", "libgtest-dev")))
    some = "" if whole else " -R 'compile_fail.event_'"
    succeeded = system.run("compile_fail", f"./dev test compile_fail{some}", "root")
    system.note_count("`compile_fail`", system.count("compile_fail"))
    return count + one(succeeded)


def user(system, whole):
    """README's commands, a first program by find_package and by pkg-config, and the single header, as the user."""
    succeeded = one(system.install("g++", "cmake", "make", "pkg-config"))
    succeeded += one(system.run("readme", f"""set -e
rm -rf ~/.local ~/app
export CXXFLAGS='{WARNINGS}'
cmake -B build/readme
cmake --build build/readme
cmake --install build/readme --prefix ~/.local
mkdir ~/app && cd ~/app
echo {shlex.quote(STRANGER)} > main.cpp
printf 'cmake_minimum_required(VERSION 3.21)\nproject(app CXX)\nadd_executable(app main.cpp)\n' > CMakeLists.txt
printf 'find_package(tocsin REQUIRED)\ntarget_link_libraries(app PRIVATE tocsin::tocsin)\n' >> CMakeLists.txt
cmake -B build -DCMAKE_PREFIX_PATH=$HOME/.local
cmake --build build
timeout 60 build/app
export PKG_CONFIG_PATH=$(dirname "$(find ~/.local -name tocsin.pc)")
g++ -std=c++20 main.cpp $(pkg-config --cflags --libs tocsin) -o by_pkg_config
timeout 60 ./by_pkg_config"""))
    succeeded += one(system.run("single header", f"""set -e
python3 tools/amalgamate.py build/single
cd build/single
echo {shlex.quote(STRANGER.replace("tocsin/tocsin.hpp", "tocsin.hpp"))} > main.cpp
printf '#define TOCSIN_IMPLEMENTATION\n#include "tocsin.hpp"\n' > library.cpp
g++ -std=c++20 {WARNINGS} -I. main.cpp library.cpp -pthread -o program
timeout 60 ./program"""))
    if whole:
        succeeded += one(system.run("consumer", "./dev test consumer"))
        system.note_count("`consumer`", system.count("consumer"))
    return succeeded


def matrix(system, whole):
    """The library, built as one file, and the smoke test, with every compiler in every standard."""
    offered = system.compilers()
    standards = {compiler: STANDARDS for compiler in offered}
    count = Count()
    if not whole:
        count += headers(system, offered["clang++"][0])
        default = int(system.says("g++ -dumpversion"))
        # The step `user` has built the library with this GCC in C++20, and warnings as errors.
        standards = {"g++": STANDARDS[-1:], "clang++": (STANDARDS[0], STANDARDS[-1])}
        offered = {"g++": [default], "clang++": offered["clang++"][-1:]}
    wanted = [f"{'clang' if compiler == 'clang++' else compiler}-{version}" for compiler in offered
              for version in offered[compiler]]
    installed = not wanted or system.install(*wanted)
    if not installed:
        return count + one(installed)
    for compiler, versions in offered.items():
        for version in versions:
            for standard in standards[compiler]:
                succeeded = build_one(system, f"{compiler}-{version}", standard)
                if succeeded is not None:
                    count += one(succeeded)
                    system.note(f"{compiler}-{version} C++{standard}",
                                system.says(f"{compiler}-{version} {SAYS_VERSION[compiler]}") if succeeded else None)
    return count


def headers(system, clang):
    """The headers alone with the oldest clang, which has crashed where others compile."""
    return one(system.install(f"clang-{clang}")
               and system.run(f"headers by clang++-{clang}", f"clang++-{clang} -std=c++20 {STRICT} -Iinclude "
                                                             "-fsyntax-only tests/smoke/main.cpp"))


def build_one(system, compiler, standard):
    """Whether it succeeded; None if the compiler does not know the standard, or not with the system's libstdc++."""
    title = f"{compiler} C++{standard}"
    probe = f"echo {shlex.quote(PROBE)} | {compiler} -std=c++{standard} -fsyntax-only -x c++ - 2> /dev/null && echo yes"
    if not system.says(probe):
        say(f"  {compiler} has no C++{standard}, or can't compile a std::map in it")
        return None
    build = f"build/{compiler}-{standard}"
    level = "-O2" if compiler.startswith("g++") else "-O0"  # some of GCC's warnings need what its optimiser knows
    definitions = (f"-DCMAKE_BUILD_TYPE=Debug -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 "
                   f"-DCMAKE_CXX_STANDARD={standard} -DCMAKE_CXX_COMPILER={compiler} -DTOCSIN_BUILD_C=ON -DTOCSIN_WIN32=ON "
                   f"-DCMAKE_CXX_FLAGS='{WARNINGS} {level}'")
    return system.run(title, f"""set -e
cmake -S . -B {build} -G Ninja {definitions}
cmake --build {build}
{compiler} -std=c++{standard} {STRICT} -Iinclude tests/smoke/main.cpp {build}/src/libtocsin.a -o {build}/smoke
timeout 60 {build}/smoke | grep 'all well'""")


def suites(compiler):
    """Unit, internal and stress tests with the newest GCC or clang, or with those that are chosen."""
    def run(system, whole):
        versions = system.compilers()[compiler]
        return sum((suites_by(system, compiler, version) for version in (versions if system.chosen else versions[-1:])),
                   Count())
    return run


def suites_by(system, compiler, version):
    """The suites with the checks of the standard library. Those of libstdc++ are a part of -fhardened."""
    name = f"{compiler}-{version}"
    if compiler == "g++":
        checked, flags, options, wanted = "-O1 -fhardened", "-O1 -fhardened", "", [name, "libgtest-dev"]
    else:
        checked = f"-O0, libc++ {version}, its hardening mode for debugging"
        flags = "-O0 -stdlib=libc++ -D_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_DEBUG"
        if version < NOT_EXPERIMENTAL:
            flags += " -fexperimental-library"
        options = " -DTOCSIN_GTEST_SOURCE=/usr/src/googletest"
        wanted = [f"clang-{version}", f"libc++-{version}-dev", f"libc++abi-{version}-dev", "googletest"]
    return built_and_run(system, f"suites {name}", f"suites by {name} {checked}", compiler, version, wanted,
                         "distribution", f"-DCMAKE_CXX_FLAGS_DEBUG='{flags}'{options}", SUITE_PROGRAMS, SUITE_TESTS)


def built_and_run(system, title, said, compiler, version, wanted, preset, options, targets, tests):
    """Configures by a preset with this compiler, builds the targets alone, and runs these tests, as the user."""
    installed = system.install(*wanted, "cmake", "ninja-build", "pkg-config", "ccache")
    if not installed:
        return one(installed)
    folder = f"build/{title.replace(' ', '-')}"
    environment = next((each.get("environment", {}) for each in presets()["testPresets"] if each["name"] == preset), {})
    # CMake keeps one ending of precompiled headers for both languages, so both have the same compiler.
    succeeded = system.run(title, f"""
{export({**compiler_cache(USER), **environment})}
cmake --preset {preset} -B {folder} -DCMAKE_CXX_COMPILER={compiler}-{version} \\
    -DCMAKE_C_COMPILER={OF_C[compiler]}-{version} {options} &&
cmake --build {folder} --target {targets} -- -k0 &&
ctest --test-dir {folder} -j {JOBS} --output-on-failure {tests}""")
    count = counted(succeeded, system.count(title))
    system.note_count(said, count)
    return count


def sanitized(preset):
    """The suites under a sanitizer of the newest GCC, or of those that are chosen."""
    def run(system, whole):
        versions = system.compilers()["g++"]
        return sum((built_and_run(system, f"{preset} g++-{version}", f"`{preset}` by g++-{version}", "g++", version,
                                  [f"g++-{version}", "libgtest-dev"], preset, "-DTOCSIN_BUILD_C=OFF "
                                  "-DTOCSIN_WIN32_SUITE=OFF", SUITE_PROGRAMS, SUITE_TESTS)
                    for version in (versions if system.chosen else versions[-1:])), Count())
    return run


def examples(system, whole):
    """The examples, and the tests of foreign loops, with the loops and the database of the system."""
    version = system.compilers()["g++"][-1]
    wanted = [f"g++-{version}", "libgtest-dev", *(need.package for need in needs.FOR_ALL_EXAMPLES)]
    count = built_and_run(system, "examples", "examples and foreign loops", "g++", version, wanted, "dev",
                          "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "examples/all tests/loops/all unit_driver_loops_test",
                          "-R '^(example|loops_|documents[.]coming_from|unit_driver_loops)'")
    if not count.failed:
        with_ = system.says(f"dpkg-query -W -f '${{Package}} ${{Version}}, ' {' '.join(wanted[2:])}").rstrip(", ")
        system.passed["examples and foreign loops"] += f" ({with_})"
    return count


def lab(system, whole):
    """The laboratory's usual questions, alongside what the system has, and the laboratory's own tests."""
    installed = system.install("g++", "cmake", "make", "ninja-build", "pkg-config", "libgtest-dev", "ccache", "python3-venv")
    if not installed:
        return one(installed)
    succeeded = system.run("lab", "./dev lab && .venv/bin/python -m unittest discover -s lab/tests -t lab")
    system.note("lab", "its usual questions and its own tests" if succeeded else None)
    return one(succeeded)


def clone(system, whole):
    """Fresh clones of the last commit, as root and as the user: ./dev test quick, and again."""
    for user, place in CLONES.items():
        folder = system.root / place[1:]
        shutil.rmtree(folder, ignore_errors=True)
        if not quietly(f"clone for {user}", ["git", "clone", "--no-local", ROOT, folder], system.log(f"clone {user}")):
            return Count(failed=1)
    if not (system.install("git") and system.run("owner", f"chown --recursive user '{CLONES['user']}'", "root")):
        return Count(failed=1)
    count = Count()
    if not system.says("command -v python3"):
        count += system.refuses("./dev", "missing: Python 3.11 or newer (in Debian: python3)", tree=CLONES["user"])
    elif not system.says("command -v g++"):
        count += system.refuses("./dev test quick", "(in Debian: g++)", tree=CLONES["user"])
    for user, title in (("root", "quick"), ("user", "quick by a user"), ("user", "quick again")):
        count += one(system.run(f"{title}: verbs", "./dev", user, CLONES[user]))
        succeeded = system.run(title, "./dev test quick", user, CLONES[user])
        found = counted(succeeded, system.count(title))
        system.note_count(f"`{title}`" if title == "quick" else title, found)
        count += found
    return count


def stage(name):
    """A stage of ./dev test in the system, as root."""
    def run(system, whole):
        succeeded = system.run(name, f"./dev test {name}", "root")
        count = counted(succeeded, system.count(name))
        system.note_count(f"`{name}`", count)
        return count
    return run


STEPS = {"empty": empty, "user": user, "matrix": matrix}
SLOW = {"suites-gcc": suites("g++"), "suites-clang": suites("clang++")}
# These run only if -R names them.
NAMED = {"clone": clone, "examples": examples, "lab": lab, **{name: sanitized(name) for name in ("asan", "tsan")},
         **{name: stage(name) for name in ("dev", "clang", "compilers")}}


def versions(system):
    """One line: what the system's tools are."""
    parts = {"GCC": "g++ -dumpfullversion", "glibc": "ldd --version | sed -n '1s/.* //p'",
             "CMake": "cmake --version | sed -n '1s/.* //p'", "Python": "python3 -c 'import platform; "
             "print(platform.python_version())'", "GoogleTest": "dpkg-query -W -f '${Version}' libgtest-dev"}
    return ", ".join(f"{name} {system.says(command)}" for name, command in parts.items())


# Of all steps, those of which --compiler chooses a part; without -R, the first.
BY_COMPILER = ("matrix", "suites-gcc", "suites-clang")


def plan(names, only, whole, chosen):
    """The names of the steps to run, by system. `only` is a regular expression for 'SYSTEM STEP', which can also name
    steps that otherwise are not run."""
    possible = BY_COMPILER if chosen else [*STEPS, *SLOW, *NAMED]
    usual = BY_COMPILER[:1] if chosen else [*STEPS, *(SLOW if whole else ())]
    planned = {name: [step for step in possible if (re.search(only, f"{name} {step}") if only else step in usual)]
               for name in names}
    if not any(planned.values()):
        raise Refusal(f"-R `{only}` fits no SYSTEM STEP; systems: {', '.join(names)}; steps: {', '.join(possible)}")
    return {name: steps for name, steps in planned.items() if steps}


def check_chosen(chosen, systems):
    """Refuses a compiler that none of the systems offers, and says which of them offers only others."""
    offered = {system.name: [f"{compiler}-{version}" for compiler, versions in system.offered().items()
                             for version in versions] for system in systems}
    choices = sorted({name for each in offered.values() for name in each}, key=by_version)
    for name in chosen:
        if name not in choices:
            raise Refusal(unknown("compiler", name, choices))
        for system, names in offered.items():
            if name not in names:
                say(f" {system} does not offer {name}")


def run(names, only=None, whole=True, chosen=()):
    """Runs the steps in these systems; by the chosen compilers alone, if any are."""
    planned = plan(names, only, whole, chosen)
    if os.geteuid() != 0:
        raise Refusal("debootstrap and chroot, which make and enter an empty system, must be started as root")
    needs.provide([needs.DEBOOTSTRAP])
    count, systems = Count(), []
    for name in planned:
        system = System(name, SUITES[name], tuple(chosen))
        say(f" {name} ({system.suite}):")
        if system.make():
            systems.append(system)
        else:
            count += Count(failed=1, failures=[Failure(f"{name}: debootstrap")])
    if chosen and systems:
        check_chosen(chosen, systems)
    steps = {**STEPS, **SLOW, **NAMED}
    for system in systems:
        say(f" {system.name}: {', '.join(planned[system.name])}")
        for step in planned[system.name]:
            count += steps[step](system, whole)
            if whole:
                note_result(system)
    if whole:
        say(f"  the table is in {PAGE.relative_to(ROOT)}")
    return count


def note_result(system):
    """Writes what passed, with the day and the versions, into the table. A step that ran again has the result of its
    last run alone, and none if it failed."""
    before, rest = PAGE.read_text().split(BEGIN, 1)
    written, after = rest.split(END, 1)
    results = read(written)
    mine = results.setdefault(system.name, {})
    now = (time.strftime("%Y-%m-%d"), versions(system))
    for step, said in system.passed.items():
        mine.pop(step, None)
        if said:
            mine[step] = (*now, said)
    PAGE.write_text(before + BEGIN + "\n" + table(results) + "\n" + END + after)
    system.passed.clear()


def by_version(compiler):
    family, version = compiler.rsplit("-", 1)
    return family != "g++", int(version)


def compilers_together(passed):
    """What passed, where the compilers that built in the same standards are one entry: the last."""
    built, others = {}, {}
    for step, text in passed.items():
        found = re.fullmatch(r"(\S+) (C\+\+\d+)", step)
        if found:
            built.setdefault(found[1], {})[found[2]] = text
        else:
            others[step] = text
    alike = {}
    for compiler in sorted(built, key=by_version):
        standards = ", ".join(sorted(built[compiler]))
        alike.setdefault(standards, []).append(f"{compiler} ({max(built[compiler].values())})")
    return {**others, **{", ".join(names): standards for standards, names in alike.items()}}


def apart(passed):
    """What compilers_together() made of them, as it was."""
    for entry in passed.split("; "):
        step, said = entry.rsplit(": ", 1)
        standards = re.findall(r"C\+\+\d+", said)
        if standards:
            for compiler, version in re.findall(r"(\S+) \((\S+)\)", step):
                yield from ((f"{compiler} {standard}", version) for standard in standards)
        else:
            yield step, said


def read(table_):
    """The results in a table: for each system, step -> (day, versions, what is said)."""
    results = {}
    for name, day, tools, passed in re.findall(r"^\| (\S+), ([\d-]+) \| (.*) \| (.*) \|$", table_, re.MULTILINE):
        results.setdefault(name, {}).update((step, (day, tools, said)) for step, said in apart(passed))
    return results


def table(results):
    """A row for each system, day and set of versions, with the steps that ran last on that day with these versions."""
    rows = ["| system, day | versions | passed |", "| --- | --- | --- |"]
    for name in SUITES:
        together = {}
        for step, (day, tools, said) in results.get(name, {}).items():
            together.setdefault((day, tools), {})[step] = said
        for (day, tools), passed in sorted(together.items()):
            said = "; ".join(f"{step}: {text}" for step, text in compilers_together(passed).items())
            rows.append(f"| {name}, {day} | {tools} | {said} |")
    return "\n".join(rows) + "\n"
