#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs the programs of one of the pages docs/coming_from_*.md, and compares what both of a pair print.

    programs.py PAGE COMPILER LIBRARY SOURCE_TREE WORK_FOLDER [DEFINITION,...]

A section has a program before and a program after; the one after is C++. Ends with 77 if the tool for the programs
before is missing, as ctest's SKIP_RETURN_CODE wants, and else by counting."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
MISSING = 77
CRATES = {"parking_lot": "0.12.5", "crossbeam-channel": "0.5.17", "crossbeam-utils": "0.8.22"}


def pairs(page):
    """(heading, language, program before, program after) of each section that has two programs."""
    for section in re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        found = FENCE.findall(section)
        if found:
            (language, before), (after_language, after) = found
            assert after_language == "cpp", section.splitlines()[0]
            yield section.splitlines()[0], language, before, after


class Missing(Exception):
    pass


class Builder:
    def __init__(self, compiler, library, tree, work, definitions):
        self.compiler, self.library, self.tree, self.work = compiler, library, tree, work
        self.definitions = [f"-D{one}" for one in definitions.split(",") if one]  # those of the library

    def cpp(self, code, name):
        """Needs no tool but the compiler; Asio and Boost only where the program includes them."""
        if "<asio/" in code and not self.compiles("#include <asio/io_context.hpp>\n"):
            raise Missing("Asio (Debian's libasio-dev)")
        if "<boost/" in code and not self.compiles("#include <boost/interprocess/sync/interprocess_mutex.hpp>\n"):
            raise Missing("Boost.Interprocess")
        # Asio 1.22 has no coroutines if the compiler is clang.
        if "<asio/awaitable.hpp>" in code and not self.compiles("#include <asio/awaitable.hpp>\n"
                                                                "asio::awaitable<void> wait();\n"):
            raise Missing("an Asio that has coroutines with this compiler")
        source, program = self.work / f"{name}.cpp", self.work / name
        source.write_text(code)
        run([self.compiler, "-std=c++20", "-Wall", "-Wextra", "-pthread", *self.definitions, "-I",
             self.tree / "include", source, self.library, "-o", program])
        return run([program])

    def compiles(self, code):
        probe = self.work / "asio.cpp"
        probe.write_text(code)
        command = [self.compiler, "-std=c++20", "-fsyntax-only", probe]
        return subprocess.run(command, capture_output=True).returncode == 0

    def python(self, code, name):
        source = self.work / f"{name}.py"
        source.write_text(code)
        return run([sys.executable, source])

    def go(self, code, name):
        if not shutil.which("go"):
            raise Missing("Go")
        source = self.work / f"{name}.go"
        source.write_text(code)
        return run(["go", "run", source])

    def rust(self, code, name):
        if not shutil.which("cargo"):
            raise Missing("cargo")
        package = self.work / "crates"
        (package / "src" / "bin").mkdir(parents=True, exist_ok=True)
        needs = "".join(f'{crate} = "={version}"\n' for crate, version in CRATES.items())
        (package / "Cargo.toml").write_text(f'[package]\nname = "programs"\nversion = "0.0.0"\nedition = "2021"\n'
                                            f"[dependencies]\n{needs}")
        (package / "src" / "bin" / f"{name}.rs").write_text(code)
        fetched = subprocess.run(["cargo", "fetch", "--quiet"], cwd=package, capture_output=True, text=True)
        if fetched.returncode != 0:
            raise Missing(f"crates ({fetched.stderr.strip().splitlines()[-1:]})")
        return run(["cargo", "run", "--quiet", "--offline", "--bin", name], cwd=package)


def run(command, **options):
    """What it prints. Ends the test if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main(page, compiler, library, tree, work, definitions=""):
    page, work = Path(page), Path(work).resolve()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    builder = Builder(compiler, Path(library).resolve(), Path(tree).resolve(), work, definitions)
    passed = failed = 0
    missing = None
    for number, (heading, language, before, after) in enumerate(pairs(page), 1):
        try:
            ours = builder.cpp(after, f"after{number}")
            theirs = getattr(builder, language)(before, f"before{number}")
            assert ours and ours == theirs, f"before it prints {theirs!r}, after it prints {ours!r}"
            passed += 1
        except Missing as what:
            missing = what
        except (AssertionError, subprocess.TimeoutExpired) as error:
            print(f"{page.name}: {heading}: {error}")
            failed += 1
    assert passed + failed or missing, f"{page} has no programs"
    if missing and not failed:
        print(f"skipped: needs {missing}; the programs after were run")
        return MISSING
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
