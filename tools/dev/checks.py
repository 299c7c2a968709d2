# SPDX-License-Identifier: Apache-2.0
"""The stage `check`: what can be seen without running the library."""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from dev.needs import tool
from dev.run import Count, configure, one, quietly
from dev.tree import BUILD, JOBS, ROOT, TOOLS, cpp_files, say


def format_is_right():
    return one(quietly("format", [tool("clang-format"), "--dry-run", "--Werror", *cpp_files()], "check-format"))


def text_is_right():
    """Layers, memory orders, text, shell scripts, and the tests of the tools."""
    python = sys.executable
    return (one(quietly("layers", [python, TOOLS / "check_layers.py"], "check-layers"))
            + one(quietly("text", [python, TOOLS / "check_text.py"], "check-text"))
            + one(quietly("licence", [python, TOOLS / "spdx.py"], "check-licence"))
            + one(quietly("shell", [python, TOOLS / "check_shell.py"], "check-shell"))
            + one(quietly("own tests", [python, "-m", "unittest", "discover", "-s", TOOLS, "-p", "*_test.py"],
                          "check-own-tests")))


def built_sources(preset):
    """The libraries' sources that this system builds; the files of other systems need headers that it lacks."""
    built = json.loads((BUILD / preset / "compile_commands.json").read_text())
    sources = {str(path) for folder in ("src", "c/src", "win32/src") for path in (ROOT / folder).rglob("*.cpp")}
    return sorted({entry["file"] for entry in built} & sources)


def changed_sources(preset):
    """Those of them that differ from the branch `main`, or are not in it."""
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()

    since = (git("merge-base", "HEAD", "main") or ["HEAD"])[0]
    changed = {str(ROOT / name) for name in
               git("diff", "--name-only", since) + git("ls-files", "--others", "--exclude-standard")}
    return [source for source in built_sources(preset) if source in changed]


def clang_tidy(preset, choose):
    """Static analysis of the sources that `choose` names once the preset is configured."""
    program = tool("clang-tidy")
    if not configure(preset):
        return Count(failed=1)
    began = time.monotonic()

    def tidy(source):
        command = [program, "--quiet", "-p", BUILD / preset, "--warnings-as-errors=*", source]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    with ThreadPoolExecutor(JOBS) as pool:
        bad = [result for result in pool.map(tidy, choose(preset)) if result.returncode != 0]
    for result in bad:
        say(result.stdout + result.stderr)
    say(f"  {'clang-tidy':<12} {time.monotonic() - began:6.1f} s  {'FAILED' if bad else 'ok'}")
    return one(not bad)


def check():
    return format_is_right() + clang_tidy("dev", built_sources) + text_is_right()


def check_changes():
    """The same, with static analysis only of the sources that have changed."""
    return format_is_right() + clang_tidy("quick", changed_sources) + text_is_right()
