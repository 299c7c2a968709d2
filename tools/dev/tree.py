# SPDX-License-Identifier: Apache-2.0
"""Where things are in the tree, and what every part of `./dev` shares."""

import argparse
import difflib
import os
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
LOGS = BUILD / "logs"
VENV = ROOT / ".venv"
TOOLS = ROOT / "tools"
LAB = ROOT / "lab"
JOBS = int(os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or os.cpu_count() or 1)
ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8"}  # of every program that is started


class Refusal(Exception):
    """The request makes no sense or cannot be carried out; the text says why, in one sentence."""


def unknown(what, name, valid):
    """The refusal of a name that does not exist. A name like one that does exist is a slip of the pen."""
    close = difflib.get_close_matches(name, valid, 1)
    return f"unknown {what} `{name}`; {f'did you mean `{close[0]}`? ' if close else ''}valid: {', '.join(valid)}"


class Parser(argparse.ArgumentParser):
    """argparse's, which also says what options there are instead of one that does not exist. An option is written
    whole."""

    def __init__(self, **how):
        super().__init__(allow_abbrev=False, **how)

    def parse_args(self, args=None, namespace=None):
        given, rest = self.parse_known_args(args, namespace)
        for strange in rest:
            if strange.startswith("-"):
                self.error(unknown("option", strange.partition("=")[0],
                                   [name for name in self._option_string_actions if name != "-h"]))
            self.error(f"takes no argument `{strange}`")
        return given


def say(text):
    print(text, flush=True)


def compiler_cache(root):
    """The environment in which CMake compiles a tree through ccache."""
    return {"CMAKE_C_COMPILER_LAUNCHER": "ccache", "CMAKE_CXX_COMPILER_LAUNCHER": "ccache",
            # The same source in another preset's folder, or in another clone, is the same source.
            "CCACHE_BASEDIR": str(root), "CCACHE_NOHASHDIR": "1",
            # Without this, a header whose comments alone have changed gets the precompiled header of its old text. The
            # compiler then doesn't recognize the new text, and includes it a second time.
            "CCACHE_DEPEND": "1",
            # What ccache asks for before it caches a compilation that uses a precompiled header.
            "CCACHE_SLOPPINESS": "pch_defines,time_macros,include_file_mtime,include_file_ctime"}


def use_compiler_cache():
    """Compiles through ccache where it is installed, unless the environment already names a launcher."""
    if shutil.which("ccache"):
        for name, value in compiler_cache(ROOT).items():
            ENVIRONMENT.setdefault(name, value)


def cpp_files():
    folders = ("include", "src", "tests", "lab", "examples", "c", "win32", "python")
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*")
                  if path.suffix in (".hpp", ".cpp"))


def require_writable():
    """The build folder is inside the tree, so a tree that cannot be written to cannot be built."""
    try:
        LOGS.mkdir(parents=True, exist_ok=True)
        (LOGS / "writable").touch()
    except OSError as error:
        raise Refusal(f"cannot write to {BUILD}: {error.strerror}; copy the tree to a place that you may write to") \
            from None


def refuse(message):
    print(f"dev: {message}", file=sys.stderr)
    return 2
