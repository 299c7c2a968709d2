#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the library as one header, `tocsin.hpp`, for projects that want to copy a file instead of building a library.

    tools/amalgamate.py FOLDER [--forward]

Every file of a program includes the header. One of them, a file of its own, defines TOCSIN_IMPLEMENTATION before. With
--forward, FOLDER/tocsin has a header of each header's name that includes the single one, so that programs written for
the tree compile with it. A header is copied instead if it needs another library, or if the single header has it only
for the file with the implementation. The sources of each system are those of src/CMakeLists.txt
(cmake/list_sources.cmake)."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import spdx  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
# CMake's name of a system, and how the preprocessor recognises it. The last one is for every system that is left.
SYSTEMS = {
    "Linux": "defined(__linux__) && !defined(__ANDROID__)",
    "Windows": "defined(_WIN32)",
    "Darwin": "defined(__APPLE__)",
    "FreeBSD": "defined(__FreeBSD__)",
    "OpenBSD": "defined(__OpenBSD__)",
    "Emscripten": "defined(__EMSCRIPTEN__)",
    "Generic": "",
}
INCLUDE = re.compile(r'\s*#\s*include\s+(?:<(tocsin/[^>]+)>|"([^"]+)")')
CONDITION = re.compile(r"\s*#\s*(if|el|endif)")


def sources_of(system):
    """The sources for a system, and the definitions that choose its mechanisms. For Windows they are those of version 8
    and later, because the files of the older ways to sleep do not fit into one unit."""
    options = ["-DTOCSIN_FUTEX=windows_waitonaddress"] if system == "Windows" else []
    script = ["cmake", f"-DSYSTEM={system}", *options, "-P", ROOT / "cmake" / "list_sources.cmake"]
    lines = subprocess.run(script, cwd=ROOT / "src", check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    return [line for line in lines if not line.startswith("-D")], [line[2:] for line in lines if line.startswith("-D")]


def resolve(include):
    """The file of ours that an #include names, or None."""
    name = include[1] or include[2]
    found = [ROOT / folder / name for folder in ("include", "src") if (ROOT / folder / name).is_file()]
    return found[0] if found else None


class Writer:
    """Puts files into one, each at its first #include. A file that may have been skipped by the preprocessor there is
    put in again where it is next included, under a guard."""

    def __init__(self):
        self.lines = []
        self.seen = [set()]  # files that are certainly there already, for each level of conditions

    def file(self, path):
        if any(path in level for level in self.seen):
            return
        self.seen[-1].add(path)
        name = path.relative_to(ROOT).as_posix()
        is_header = path.suffix != ".cpp"
        guard = "TOCSIN_HAS_" + re.sub(r"\W", "_", name).upper()
        self.lines += ["", f"// ---- {name}", *([f"#if !defined({guard})", f"#define {guard} 1"] if is_header else [])]
        for line in path.read_text().splitlines():
            self.line(line, is_header)
        self.lines += ["#endif"] if is_header else []

    def line(self, line, is_header):
        include = INCLUDE.match(line)
        inner = resolve(include) if include else None
        if inner:
            self.file(inner)
            return
        if is_header and line.strip() == "#pragma once" or spdx.LICENCE in line:
            return
        condition = CONDITION.match(line)
        if condition and condition[1] != "if":
            self.seen.pop()
        if condition and condition[1] != "endif":
            self.seen.append(set())
        self.lines.append(line)

    def under(self, condition, paths):
        """These files, compiled only where the condition holds."""
        self.lines += ["", f"#if {condition}"]
        self.seen.append(set())
        for path in paths:
            self.file(path)
        self.seen.pop()
        self.lines += ["#endif"]


def certain_headers(path):
    """Our files that this one includes under no condition."""
    depth = 0
    for line in path.read_text().splitlines():
        condition, include = CONDITION.match(line), INCLUDE.match(line)
        if condition:
            depth += {"if": 1, "el": 0, "endif": -1}[condition[1]]
        if include and depth == 0 and resolve(include):
            yield resolve(include)


def condition_of(systems):
    """How the preprocessor recognises these systems."""
    named = [f"({test})" if "&&" in test else test for name, test in SYSTEMS.items() if name in systems and test]
    if "Generic" not in systems:
        return " || ".join(named)
    others = [f"!({test})" for name, test in SYSTEMS.items() if name not in systems and test]
    return " && ".join(others)


def choices(definitions):
    """The lines that choose each system's mechanisms, unless the program chose others."""
    lines = ["#if !defined(TOCSIN_FUTEX_CHOSEN)"]
    for number, (system, test) in enumerate(SYSTEMS.items()):
        lines.append(f"#{'el' if number else ''}if {test}" if test else "#else")
        lines += [f"#define {definition.replace('=', ' ')}" for definition in definitions[system]]
    return [*lines, "#endif", "#endif"]


def public_headers():
    """Those that tocsin.hpp includes. The others need other libraries, which a program may not have."""
    everything = ROOT / "include" / "tocsin" / "tocsin.hpp"
    return sorted({everything, *certain_headers(everything)})


def single_header():
    version = re.search(r"\n    VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    writer = Writer()
    writer.lines += [
        f"// {spdx.LICENCE}",
        f"// tocsin {version} in one header, written by tools/amalgamate.py. Include it wherever it is used. One file of",
        "// the program, which does nothing else, has:",
        "//     #define TOCSIN_IMPLEMENTATION",
        "//     #include \"tocsin.hpp\"",
        "// TOCSIN_CHECKED and TOCSIN_COUNTERS must have the same value in all files of a program.",
        "#if !defined(TOCSIN_SINGLE_HEADER)", "#define TOCSIN_SINGLE_HEADER 1"]
    for header in public_headers():
        writer.file(header)
    writer.lines += ["#endif", "", "#if defined(TOCSIN_IMPLEMENTATION) && !defined(TOCSIN_IMPLEMENTED)",
                     "#define TOCSIN_IMPLEMENTED 1", "#define TOCSIN_BUILDING 1",
                     "#if defined(_WIN32)",
                     "#if !defined(WIN32_LEAN_AND_MEAN)", "#define WIN32_LEAN_AND_MEAN", "#endif",
                     "#if !defined(NOMINMAX)", "#define NOMINMAX", "#endif",
                     "#endif"]
    sources, definitions = {}, {}
    for system in SYSTEMS:
        sources[system], definitions[system] = sources_of(system)
    writer.lines += choices(definitions)
    layers = ("platform/", "core/", "")
    files = sorted({file for each in sources.values() for file in each},
                   key=lambda file: (next(i for i, layer in enumerate(layers) if file.startswith(layer)), file))
    for file in files:  # first the headers that every system needs, so that they are put in once
        if all(file in each for each in sources.values()):
            for header in certain_headers(ROOT / "src" / file):
                writer.file(header)
    windows_undefined = False
    for file in files:
        if not file.startswith("platform/") and not windows_undefined:
            # windows.h defines these, and nothing below includes it.
            writer.lines += ["", "#if defined(_WIN32)", "#undef near", "#undef far", "#endif"]
            windows_undefined = True
        systems = [system for system in SYSTEMS if file in sources[system]]
        if len(systems) == len(SYSTEMS):
            writer.file(ROOT / "src" / file)
        else:
            writer.under(condition_of(systems), [ROOT / "src" / file])
    return "\n".join([*writer.lines, "#endif", ""])


def main():
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--forward", action="store_true", help="also a header for each public one, which includes it")
    given = options.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    (given.folder / "tocsin.hpp").write_text(single_header())
    if given.forward:
        seen_by_all = (given.folder / "tocsin.hpp").read_text().partition("\n#if defined(TOCSIN_IMPLEMENTATION)")[0]
        for header in (ROOT / "include" / "tocsin").rglob("*.hpp"):
            name = header.relative_to(ROOT / "include")
            up = "../" * (len(name.parts) - 1)
            inside = f"\n// ---- include/{name.as_posix()}\n" in seen_by_all
            (given.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (given.folder / name).write_text(f'#include "{up}tocsin.hpp"\n' if inside else header.read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
