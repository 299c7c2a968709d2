# SPDX-License-Identifier: Apache-2.0
"""Who waits for what, with the Python stack of each thread that waits."""

import sys
import threading

from tocsin import _core

FIELDS = ("type", "address", "thread", "seconds", "name")


def name(source, text):
    """Name an event, semaphore, lock or queue in the lists of waits. An empty text removes the name.

    The name stays with the address, so remove it before the object goes."""
    _core._name(source, text)


def _lines_of(frame):
    lines = []
    while frame is not None:
        lines.append(f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}")
        frame = frame.f_back
    return lines[::-1]


def parked_waits():
    """All waits of the process that are queued now, the longest first, as a list of dictionaries.

    Each has "type", "address" (of a descriptor: its number), "name", "thread" (the system's number), "seconds", and,
    for a thread of Python, "python" (the name of the thread) and "stack" (its lines, the innermost last). Not for a
    hot path."""
    threads = {thread.native_id: thread for thread in threading.enumerate() if thread.ident is not None}
    frames = sys._current_frames()
    waits = []
    for row in _core._parked_waits():
        wait = dict(zip(FIELDS, row))
        thread = threads.get(wait["thread"])
        if thread is not None:
            wait["python"] = thread.name
            wait["stack"] = _lines_of(frames.get(thread.ident))
        waits.append(wait)
    return sorted(waits, key=lambda wait: -wait["seconds"])


def describe_parked_waits():
    """The same as text: a line for each wait, and below it the stack of its thread."""
    lines = []
    for wait in parked_waits():
        who = f"thread {wait['thread']}" + (f" {wait['python']!r}" if "python" in wait else "")
        where = str(wait["address"]) if wait["type"] == "descriptor" else f"{wait['address']:#x}"
        what = f"{wait['type']} {where}" + (f" {wait['name']!r}" if wait["name"] else "")
        lines.append(f"{what}: {who}, for {wait['seconds']:.3f} s")
        lines += [f"    {line}" for line in wait.get("stack", ())]
    return "\n".join(lines)


def parked_waits_as_json():
    """The same as one line of JSON: {"parked_waits": [...]}."""
    import json  # not before: few programs need it
    return json.dumps({"parked_waits": parked_waits()})
