#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which file may include which, and whether every memory order names its partner.

Arrows never point up: features -> core -> platform. Features stand in four storeys, and include only what is below
them. Between the folders of src/core, and between those of src/platform, the arrows point down as well. docs/design.md
has the reasons; this file is the rule.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The vocabulary of every part: how long to wait, how, and with which result. Any header may include it.
VOCABULARY = {"deadline", "limits", "queue_order", "readiness", "source", "spin", "status", "stop_token",
              "execution"}

# The storeys of the features, lowest first. Each has the features on which others of the same storey are built, and
# then those others. A feature includes what is below it, and nothing next to it. One that is not named here is an
# object of the lowest storey. Everything else that features share belongs in core.
STOREYS = (
    ("objects", {"event", "bit_lock", "diagnose", "driver"},
     {"word_lock", "latch", "barrier", "wait_group", "watchdog"}),  # a count and an event; a lock on a word of its own
    ("waits for several things", {"wait", "channel_base"},
     {"condition", "channel", "wait_set", "coalescer", "group_commit"}),
    ("asynchronous waits", {"pending"}, {"operation", "await"}),  # the same, for a function to call or a coroutine
    ("bridges to other libraries and threads", {"described_wait", "asio_waits"},
     {"sender", "asio", "uv", "glib", "epoll", "pollable", "task", "handler_thread"}),
)
SIDEWAYS = "a feature includes only features below it (STOREYS)"

# The area of a folder's files; the first folder that matches counts.
AREAS = (
    ("include/tocsin/detail/sanitizer.hpp", "vocabulary"),
    ("include/tocsin/detail/channel_base.hpp", "public"),
    ("include/tocsin/detail/pending.hpp", "public"),
    ("include/tocsin/detail/described_wait.hpp", "public"),
    ("include/tocsin/detail/asio_waits.hpp", "public"),
    ("include/tocsin/detail/", "detail"),
    ("include/tocsin/", "public"),
    ("src/platform/", "platform"),
    ("src/core/", "core"),
    ("src/", "feature"),
    ("tests/internal/", "inside"),
    ("tests/model/", "inside"),
    ("tests/", "outside"),
    ("lab/", "outside"),
    ("examples/", "outside"),
    ("c/", "outside"),
    ("win32/tests/", "outside"),
    ("win32/", "win32"),
    ("python/", "python"),
)

MAY_INCLUDE = {
    "detail": {"detail", "vocabulary"},
    "vocabulary": {"detail", "vocabulary"},
    "public": {"detail", "vocabulary"},
    "platform": {"detail", "vocabulary", "platform"},
    "core": {"detail", "vocabulary", "platform", "core"},
    "feature": {"detail", "vocabulary", "platform", "core"},
    "inside": {"detail", "vocabulary", "public", "platform", "core", "feature", "inside", "outside", "python"},
    "outside": {"vocabulary", "public", "outside"},
    "win32": {"detail", "vocabulary", "public", "win32"},  # a library of its own, checked by the same models
    "python": {"detail", "vocabulary", "public", "python"},  # the extension module of the Python package
}

# The folders of core and platform, and for each the other folders of its layer that it may include.
FOLDERS = {
    "src/core/sync": set(),
    "src/core/shared": {"src/core/wait", "src/core/lot", "src/core/sync"},
    "src/core/lot": {"src/core/sync"},
    "src/core/wait": {"src/core/lot", "src/core/sync"},
    "src/core/async": {"src/core/lot", "src/core/sync"},
    "src/platform/system": set(),
    "src/platform/futex": {"src/platform/system"},
    "src/platform/poller": {"src/platform/futex", "src/platform/system"},
    "src/platform/process": {"src/platform/system"},
    "src/platform/shared": {"src/platform/futex", "src/platform/system"},
    "src/platform/signals": {"src/platform/poller", "src/platform/futex", "src/platform/system"},
    "src/platform/shared_table": {"src/platform/poller", "src/platform/futex", "src/platform/system"},
}
LAYERS_WITH_ROOMS = ("src/core/", "src/platform/")

# For a user's loop, which calls epoll, as uv.hpp is for one that calls libuv.
FOR_LOOPS_OF_EPOLL = "include/tocsin/epoll.hpp"
# Headers of an operating system: only src/platform calls it.
SYSTEM_HEADER = re.compile(
    r"(sys|linux|asm|mach|bits|windows|winsock2|synchapi|unistd|pthread|sched|semaphore|poll|fcntl"
    r"|signal|dlfcn|link)(/|\.h$)")

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')

# What orders memory. Two helpers have an order in their names. The seam, the header that defines them, is exempt,
# because the partner is known where they are called.
ORDERED = re.compile(r"\bmemory_order(_|::)\w+|\bfull_fence\(\)|\bload_erased\(")
SEAM = "include/tocsin/detail/atomic.hpp"
TAG = re.compile(r"(?<!\[)\[([a-z][a-z0-9]*(?:-[a-z0-9]+)*)\](?!\])")
NO_PARTNER = re.compile(r"only for speed|no order", re.IGNORECASE)
REACH = 3  # a comment is about the statement that contains it, and about this many lines after it


def area_of(path):
    """The area of a path relative to the root, or None for a file that is in no layer."""
    for folder, area in AREAS:
        if path.startswith(folder):
            if area == "public" and Path(path).stem in VOCABULARY:
                return "vocabulary"
            return area
    return None


def height_of(feature):
    """The place of a feature in STOREYS: two numbers for each storey."""
    for number, (_, below, above) in enumerate(STOREYS):
        if feature in below or feature in above:
            return 2 * number + (feature in above)
    return 1


def resolve(root, path, included):
    """The included file, relative to the root, or None if it is not one of the tree."""
    for folder in (Path(path).parent, "src", "include", "tests/support"):
        candidate = (root / folder / included).resolve()
        if candidate.is_file() and candidate.is_relative_to(root):
            return candidate.relative_to(root).as_posix()
    return None


def complaint_about(path, included):
    """What is wrong with `path` including `included`, or None."""
    area, target = area_of(path), area_of(included)
    stem, target_stem = Path(path).stem, Path(included).stem
    if target is None:
        return None
    if target in MAY_INCLUDE[area]:
        return complaint_about_folders(path, included)
    if area == "public" and target == "public":
        return None if stem == "tocsin" or height_of(target_stem) < height_of(stem) else SIDEWAYS
    if area == "feature" and target in ("public", "feature"):
        return None if target_stem == stem or height_of(target_stem) < height_of(stem) else SIDEWAYS
    if area in ("outside", "win32"):
        return f"{path.split('/')[0]}/ sees only <tocsin/...>"
    return f"an arrow from {area} up to {target}"


def complaint_about_folders(path, included):
    """What is wrong with an arrow between two folders of the same layer, or None."""
    here, there = (Path(name).parent.as_posix() for name in (path, included))
    if here == there or here not in FOLDERS or there not in FOLDERS or here.split("/")[1] != there.split("/")[1]:
        return None
    if there in FOLDERS[here]:
        return None
    return f"an arrow from {here} to {there}, which points up or sideways"


def check_folders(files):
    """Every file of core and platform is in one of these folders."""
    for path in files:
        if path.startswith(LAYERS_WITH_ROOMS) and Path(path).parent.as_posix() not in FOLDERS:
            yield f"{path}:1: is in none of the folders {', '.join(FOLDERS)}"


def check_includes(root, path, lines):
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        included = resolve(root, path, match[1])
        if included:
            complaint = complaint_about(path, included)
        elif SYSTEM_HEADER.match(match[1]) and path.startswith(("include/", "src/")) \
                and area_of(path) != "platform" and path != FOR_LOOPS_OF_EPOLL:
            complaint = "only src/platform calls the operating system"
        else:
            complaint = None
        if complaint:
            yield f"{path}:{number}: includes {match[1]}: {complaint}"


def end_of_statement(lines, start):
    for i in range(start, min(start + REACH, len(lines))):
        if re.search(r"[;{}]\s*$", lines[i].partition("//")[0]):
            return i
    return start


def check_orders(files):
    """Every order has a comment with its partner's tag, and every such tag is in two places."""
    lines_with, used = defaultdict(set), {}
    for path, lines in files.items():
        comments = [line.partition("//")[2] for line in lines]
        top = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("//")), 0)
        for i, comment in enumerate(comments):
            if i >= top:  # the argument at the top of a file explains tags, and is not one of their ends
                for tag in TAG.findall(comment):
                    lines_with[tag].add((path, i))
        for i, line in enumerate(lines):
            if path == SEAM or not ORDERED.search(line.partition("//")[0]):
                continue
            near = " ".join(comments[max(0, i - REACH):end_of_statement(lines, i) + 1])
            tags = TAG.findall(near)
            for tag in tags:
                used.setdefault(tag, f"{path}:{i + 1}")
            if not tags and not NO_PARTNER.search(near):
                yield (f"{path}:{i + 1}: a memory order without its partner: say `// [tag]`, "
                       "`only for speed` or `no order: why`")
    for tag, line in sorted(used.items()):
        if len(lines_with[tag]) < 2:
            yield f"{line}: [{tag}] has no partner: it is in one place only"


def check(root):
    files = {}
    for folder in ("include", "src", "tests", "lab", "examples", "c", "win32", "python"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".hpp", ".cpp", ".h"):
                files[path.relative_to(root).as_posix()] = path.read_text().splitlines()
    complaints = [*check_folders(files)]
    for path, lines in files.items():
        if area_of(path):
            complaints += check_includes(root, path, lines)
    complaints += check_orders(
        {path: lines for path, lines in files.items() if path.startswith(("include/", "src/", "win32/", "python/"))
         and area_of(path) != "outside"})
    return complaints


if __name__ == "__main__":
    found = check(ROOT)
    print("\n".join(found))
    sys.exit(1 if found else 0)
