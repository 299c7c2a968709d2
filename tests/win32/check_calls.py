#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares three lists: the calls of Windows' headers (calls.txt), those that tocsin's headers declare or refuse, and
the tables of docs/porting_from_windows.md. So no call is forgotten, and the page says of each what is true.

A row of the page has the names of calls in full in its first column. Its second column begins with "Same", "Different",
"Better", "Refused" (a program that uses it does not compile, and the message says why) or "Not there". Names of the
Interlocked functions stand for all their widths and orders."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HEADERS = ROOT / "win32" / "include" / "tocsin"
KINDS = ("Same", "Different", "Better", "Refused", "Not there", "Ours")


def family(name):
    """The name of an Interlocked function without its width and its order."""
    if not name.startswith("Interlocked") or "SList" in name:
        return name
    return re.sub(r"(8|16|64|128|SizeT)?(Acquire|Release|NoFence)?$", "", name)


def listed():
    lines = (line for line in (HERE / "calls.txt").read_text().splitlines() if line and not line.startswith("#"))
    return {name for line in lines for name in line.split(":")[1].split()}


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
    for line in (ROOT / "docs" / "porting_from_windows.md").read_text().splitlines():
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
    windows = listed()
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
    for line in wrong:
        print(line)
    print(f"{len(windows)} calls of Windows, {len(has)} declared, {len(refused)} refused, {len(page)} on the page")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
