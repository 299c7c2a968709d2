# SPDX-License-Identifier: Apache-2.0
"""The stage `check`: what can be seen without running the library."""

import json
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from check_text import NOT_OURS
from dev.needs import tool
from dev.run import Failure, configure, one, quietly
from dev.tree import BUILD, JOBS, ROOT, TOOLS, cpp_files, say

STD_CALLS = TOOLS / "std_calls"
LIFETIMES = ROOT / "tests" / "lifetimes"


def format_is_right():
    return one(quietly("format", [tool("clang-format"), "--dry-run", "--Werror", *cpp_files()], "check-format"))


def files():
    """The files of the tree, without what is made in it."""
    return sorted(path for path in ROOT.rglob("*")
                  if path.is_file() and not NOT_OURS.intersection(path.relative_to(ROOT).parts))


def is_shell_script(path):
    with path.open("rb") as file:
        return re.match(rb"#! *\S*/(env +)?(ba)?sh$", file.readline().rstrip()) is not None


def text_is_right():
    """Layers, memory orders, text, shell scripts, and the tests of the tools."""
    python = sys.executable
    return (one(quietly("layers", [python, TOOLS / "check_layers.py"], "check-layers"))
            + one(quietly("text", [python, TOOLS / "check_text.py"], "check-text"))
            + one(quietly("licence", [python, TOOLS / "spdx.py"], "check-licence"))
            + one(quietly("shell", [tool("shellcheck"), *filter(is_shell_script, files())], "check-shell"))
            + one(quietly("spelling", [tool("codespell"), *files()], "check-spelling"))
            + one(quietly("own tests", [python, "-m", "unittest", "discover", "-s", TOOLS, "-p", "*_test.py"],
                          "check-own-tests")))


def library_sources():
    return {str(path) for folder in ("src", "c/src", "win32/src") for path in (ROOT / folder).rglob("*.cpp")}


def built_sources():
    """All files that this system builds; the files of other systems need headers that it lacks."""
    return {entry["file"] for entry in json.loads((BUILD / "dev" / "compile_commands.json").read_text())}


def changed_files():
    """Those that differ from the branch `main`, or are not in it."""
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()

    since = (git("merge-base", "HEAD", "main") or ["HEAD"])[0]
    return {str(ROOT / name) for name in
            git("diff", "--name-only", since) + git("ls-files", "--others", "--exclude-standard")}


def on_all(title, sources, command_of):
    """Runs a command for each source; shows the output of those that fail."""
    began = time.monotonic()

    def run(source):
        return subprocess.run(command_of(source), cwd=ROOT, capture_output=True, text=True, check=False)

    with ThreadPoolExecutor(JOBS) as pool:
        bad = [result for result in pool.map(run, sources) if result.returncode != 0]
    outputs = [result.stdout + result.stderr for result in bad]
    for output in outputs:
        say(output)
    say(f"  {title:<12} {time.monotonic() - began:6.1f} s  {'FAILED' if bad else 'ok'}")
    return one(not bad or Failure(title, "\n".join(outputs)))


def std_calls_config():
    """The configuration of clang-tidy that finds unqualified calls of names that std has, too."""
    functions = [name for line in (STD_CALLS / "functions.txt").read_text().splitlines()
                 if not line.startswith("#") for name in line.split()]
    names = ", ".join(f'"{name}"' for name in functions)
    return (STD_CALLS / "clang-tidy.yml").read_text().replace("hasAnyName(NAMES)", f"hasAnyName({names})")


def with_config(name, text):
    """The command that runs clang-tidy with this configuration, which has checks of its own."""
    config = BUILD / f"{name}.yml"
    config.write_text(text)
    return [tool("clang-tidy"), "--quiet", "--experimental-custom-checks", f"--config-file={config}", "--checks=custom-*"]


def tidy_commands(calls):
    """For each part of the tree with a configuration of its own, the command that runs clang-tidy with it and with the
    check of calls. So each source is read once for both."""
    whole = (ROOT / ".clang-tidy").read_text()
    _, begin, end = calls.partition("\nCustomChecks:")
    assert begin, "clang-tidy.yml of the check of calls has no CustomChecks"
    custom = begin.lstrip() + end
    commands = {ROOT: with_config("clang-tidy", whole + custom)}
    for own in sorted(ROOT.glob("*/.clang-tidy")):
        before, begin, end = own.read_text().partition("InheritParentConfig: true\n")
        assert begin, f"{own} does not inherit"
        inherited = before + whole + end
        commands[own.parent] = with_config(f"clang-tidy-{own.parent.name}", inherited + custom)
    return commands


def sample_is_refused(command):
    """Whether the check finds what it must find in its sample, and nothing else."""
    sample = STD_CALLS / "sample.cpp"
    wanted = [number for number, line in enumerate(sample.read_text().splitlines(), 1) if line.endswith("// found")]
    output = subprocess.run([*command, sample, "--", "-std=c++20"], cwd=ROOT, capture_output=True, text=True,
                            check=False).stdout
    found = sorted({int(line) for line in re.findall(r"sample\.cpp:(\d+):\d+: (?:warning|error): namespace std has", output)})
    if found == wanted:
        return one(True)
    wrong = f"  {sample.relative_to(ROOT)}: the check of calls finds lines {found} instead of {wanted}"
    say(f"{wrong}\n{output}")
    return one(Failure("std calls", f"{output}\n{wrong}"))


def clang_tidy(sources):
    """Static analysis of those of these sources that the preset `dev` builds."""
    configured = not sources or configure("dev")
    if not configured:
        return one(configured)
    commands = tidy_commands(std_calls_config())

    def command_of(source):
        part = next(folder for folder in Path(source).parents if folder in commands)
        return [*commands[part], "-p", BUILD / "dev", "--warnings-as-errors=*", source]

    count = on_all("clang-tidy", sorted(sources and sources & built_sources()), command_of)
    for command in commands.values():
        count += sample_is_refused(command)
    return count


def lifetimes():
    """What clang's lifetime analysis says of the public headers (nothing), and of each misuse in tests/lifetimes."""
    began = time.monotonic()
    config = "{Checks: '-*,clang-diagnostic-*,misc-unused-alias-decls', HeaderFilterRegex: '/include/tocsin/'}"

    def said_of(source, *options):
        command = [tool("clang-tidy"), "--quiet", f"--config={config}", source, "--", "-x", "c++", "-std=c++20",
                   f"-I{ROOT / 'include'}", "-Wlifetime-safety", *options]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return "".join(line for line in (result.stdout + result.stderr).splitlines(keepends=True)
                       if re.search(r": (warning|error): ", line))

    def wrong(case):
        expected = re.match(r"// expect: (.+)", case.read_text())[1]
        fine, misuse = said_of(case), said_of(case, "-DMISUSE")
        fits = not fine and re.search(expected, misuse) and "[clang-diagnostic-error]" not in misuse
        return "" if fits else f"{case.relative_to(ROOT)}: without MISUSE:\n{fine}with MISUSE:\n{misuse}"

    with ThreadPoolExecutor(JOBS) as pool:
        headers = pool.submit(said_of, ROOT / "include" / "tocsin" / "tocsin.hpp",
                              "-Wno-pragma-once-outside-header", "-Wlifetime-safety-lifetimebound-violation")
        bad = [text for text in pool.map(wrong, sorted(LIFETIMES.glob("*.cpp"))) if text]
    bad += [headers.result()] if headers.result() else []
    for text in bad:
        say(text)
    say(f"  {'lifetimes':<12} {time.monotonic() - began:6.1f} s  {'FAILED' if bad else 'ok'}")
    return one(not bad or Failure("lifetimes", "\n".join(bad)))


def check(sources=None):
    """All of it; static analysis of these sources, or of all."""
    count = format_is_right()  # it also installs the tools that the others need
    with ThreadPoolExecutor(1) as pool:
        text = pool.submit(text_is_right)  # one process at a time
        return count + clang_tidy(library_sources() if sources is None else sources) + lifetimes() + text.result()


def check_changes():
    """The same, with static analysis only of the sources that have changed."""
    return check(library_sources() & changed_files())
