#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares three lists: the calls of Windows' headers (calls.txt), those that tocsin's headers declare or refuse, and
the tables of win32/docs/porting_from_windows.md. So no call is forgotten, and the page says of each what is true. Given
the folder of Windows' headers as MinGW-w64 has them, also compares the list with those of them that are about nothing
but threads, waits and wakes.

A row of the page has the names of calls in full in its first column. Its second column begins with "Same", "Different",
"Better", "Refused" (a program that uses it does not compile, and the message says why) or "Not there". Names of the
Interlocked functions stand for all their widths and orders."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HEADERS = ROOT / "win32" / "include" / "tocsin"
WHOLE = ("synchapi.h", "threadpoollegacyapiset.h", "threadpoolapiset.h", "processthreadsapi.h", "interlockedapi.h")
KINDS = ("Same", "Different", "Better", "Refused", "Not there", "Ours")


def family(name):
    """The name of an Interlocked function without its width and its order."""
    if not name.startswith("Interlocked") or "SList" in name:
        return name
    return re.sub(r"(8|16|64|128|SizeT)?(Acquire|Release|NoFence)?$", "", name)


def listed():
    """The calls that the page has to have, and those of the same headers that are about other things."""
    calls, others = set(), set()
    for line in (HERE / "calls.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            of, names = line.split(":")
            (others if of.endswith(" of processes") else calls).update(names.split())
    return calls, others


def unlisted(headers, known):
    """What Windows' headers declare and calls.txt does not have."""
    for header in WHOLE:
        declared = re.findall(r"\bWINAPI\s+(\w+)\s*\(", (headers / header).read_text())
        yield from (f"{name}: in {header}, but not in calls.txt" for name in sorted(set(declared) - known))


def declared():
    """The calls that the headers have, and those that they refuse."""
    text = "\n".join(path.read_text() for path in [HEADERS / "win32.h", *(HEADERS / "win32").glob("*.h")])
    refused = set(re.findall(r"TOCSIN_WIN32_REFUSED\([^,]+, (\w+),", text)) - {"name"}
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    functions = set(re.findall(r"TOCSIN_WIN32_API[^;()]*?\b(\w+)\(", text))
    functions |= set(re.findall(r"static inline [\w ]+?\*? ?(\w+)\(", text))
    functions |= {name for name in re.findall(r"\b(Interlocked\w+?)##", text)}
    functions |= {name for name in re.findall(r"\b(Interlocked\w+)\(", text)}
    return {family(name) for name in functions}, refused


def described():
    """The names of the page's tables, each with the first word of its row."""
    rows, wrong = {}, []
    for line in (ROOT / "win32" / "docs" / "porting_from_windows.md").read_text().splitlines():
        if not line.startswith("| `"):
            continue
        names, what = (cell.strip() for cell in line.strip().strip("|").split(" | ", 1))
        kind = next((kind for kind in KINDS if what.startswith(kind)), None)
        for name in re.findall(r"`(\w+)`", names):
            if kind is None:
                wrong.append(f"{name}: its row begins with none of {', '.join(KINDS)}")
            if name in rows:
                wrong.append(f"{name}: is in two rows")
            rows[name] = kind
    return rows, wrong


def main():
    windows, others = listed()
    has, refused = declared()
    page, wrong = described()
    helpers = {"TocsinSecureZeroMemory", "__attribute__"}
    for name in sorted((windows | has | refused) - set(page) - helpers):
        wrong.append(f"{name}: not on the page")
    for name, kind in sorted(page.items()):
        if kind in ("Same", "Different", "Better", "Ours") and name not in has:
            wrong.append(f"{name}: on the page, but no header declares it")
        if kind == "Refused" and name not in refused:
            wrong.append(f"{name}: refused on the page, but not by a header")
        if kind == "Not there" and name in has | refused:
            wrong.append(f"{name}: not there, says the page, but a header has it")
    if len(sys.argv) == 2:
        wrong += unlisted(Path(sys.argv[1]), windows | others)
    for line in wrong:
        print(line)
    print(f"{len(windows)} calls of Windows, {len(has)} declared, {len(refused)} refused, {len(page)} on the page")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
