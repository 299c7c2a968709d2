# SPDX-License-Identifier: Apache-2.0
"""Whether programs link with the C library of an old system, and the libraries that tocsin.pc names."""

import re
import subprocess

from dev.run import one
from dev.tree import BUILD, say

# What every program is linked with: the C library, and what a C++ compiler adds.
ALWAYS = {"c", "m", "stdc++", "gcc_s"}
# Symbols that every program has: from the compiler's crtbegin.o, and from the archive part of the C library.
IN_EVERY_PROGRAM = {"__dso_handle", "atexit", "fstat", "lstat", "stat"}


def symbols(*arguments):
    """Names that nm prints, without versions; those of C++, which its own library resolves, are left out."""
    output = subprocess.run(["nm", "--format=posix", *arguments], capture_output=True, text=True, check=True).stdout
    names = (line.split(maxsplit=1)[0].partition("@")[0] for line in output.splitlines() if not line.endswith(":"))
    return {name for name in names if name and not name.startswith("_Z")}


def libraries_of(pkg_config_file):
    """The libraries that a program needs besides the installed one, as the file names them."""
    line = re.search("^Libs:(.*)$", pkg_config_file.read_text(), re.MULTILINE)[1]
    named = {each[2:] for each in line.split() if each.startswith("-l")} - {"tocsin"}
    return named | ({"pthread"} if "-pthread" in line else set())


def unresolved(archive, pkg_config_file, root):
    """Symbols that stay unresolved in the old system at `root`, with the libraries that the file names."""
    folder = root / "lib" / "x86_64-linux-gnu"
    defined = set()
    for name in ALWAYS | libraries_of(pkg_config_file):
        for library in [*folder.glob(f"lib{name}.so.?"), *(root / "usr" / folder.relative_to(root)).glob(
                f"lib{name}.so.?")]:
            defined |= symbols("-D", "--defined-only", library)
    loader = next(folder.glob("ld-2.*.so"))
    defined |= symbols("-D", "--defined-only", loader) | symbols("--defined-only", archive)
    return sorted(symbols("--undefined-only", archive) - defined - IN_EVERY_PROGRAM)


def links(preset, root):
    """Counts one check: the library of a preset links in the old system."""
    folder = BUILD / preset
    missing = unresolved(folder / "src" / "libtocsin.a", folder / "tocsin.pc", root)
    for name in missing:
        say(f"  no library that tocsin.pc names has {name}")
    say(f"  {'link':<12} {'':8}  {'FAILED' if missing else 'ok'}")
    return one(not missing)
