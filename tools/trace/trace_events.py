#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the lines of wakes.bt, or of `perf script`, into a trace of who woke whom.

    trace_events.py < lines > trace.json

The output is the JSON of Chrome's trace events, which https://ui.perfetto.dev and chrome://tracing open: for each
thread the waits as slices, and from each thread that ended a wait an arrow to the thread that waited. An arrow leads
from a short slice `wake` to a short slice `woken`, which begins where the wait ends. It can't lead to the wait itself:
Perfetto turns an arrow around if the slice to which it leads has begun first.
"""

import bisect
import json
import re
import sys

# How many arguments of each probe are used.
ARGUMENTS = {"park": 3, "release": 1, "awake": 2, "timeout": 1}
SOURCE = 255  # the kind of a channel or a custom source
KINDS = ("event", "address", "semaphore", "condition")
ENDS = {1: "timed out", 2: "stopped"}  # claim in src/core/lot/waiter.hpp; everything else is `signaled`
PERF = re.compile(r"\s*(?:(\S.*?)\s+)?(\d+)\s+(\d+)\.(\d{9}):\s+sdt_tocsin:([a-z_]+?)(?:_\d+)?:\s+\([0-9a-f]+\)"
                  r"((?: arg\d+=\S+)*)")
MARK = 1000  # nanoseconds: how long a `wake` or `woken` is shown, at most


def parse(line):
    """(probe, nanoseconds, thread, its name or "", arguments) of a line, or None if it is not one of a probe."""
    perf = PERF.match(line)
    if perf:
        name, thread, seconds, rest, probe, arguments = perf.groups()
        values = [int(each, 0) for each in re.findall(r"arg\d+=(\S+)", arguments)]
        return probe, int(seconds) * 10**9 + int(rest), int(thread), name or "", values
    probe, _, rest = line.rstrip("\n").partition(" ")
    count = 2 + ARGUMENTS.get(probe, 0)  # the name, which is the rest, may be of digits and spaces
    words = rest.split(" ", count)
    if probe not in ARGUMENTS or len(words) <= count or not all(map(str.isdigit, words[:count])):
        return None
    time, thread, *values = map(int, words[:count])
    return probe, time, thread, words[count], values


def what(kind, address):
    if kind == SOURCE:
        name = "source"
    else:
        name = KINDS[kind] if kind < len(KINDS) else f"lock bit {kind - len(KINDS)}"
    return f"{name} 0x{address:x}"


class Trace:
    def __init__(self):
        self.events = []
        self.names = {}  # by thread
        self.parked = {}  # by waiter: the thread, when it was parked, and on what
        self.released = {}  # by waiter: the thread that released it, and when
        self.marks = []  # each `wake` and `woken`: its thread, its time, its event
        self.times = {}  # by thread: when a slice begins or ends
        self.arrows = 0

    def add(self, event, time, thread, **more):
        self.events.append({"ph": event, "ts": time / 1000, "pid": 1, "tid": thread, **more})
        self.times.setdefault(thread, []).append(time)

    def mark(self, time, thread, name):
        self.add("X", time, thread, name=name, cat="wake")
        self.marks.append((thread, time, self.events[-1]))

    def park(self, time, thread, waiter, address, kind):
        before, begin, sources = self.parked.get(waiter, (thread, time, []))
        source = what(kind, address)
        # The end of the wait before was not seen, because tracers attach to one probe after another, and lose lines.
        if before != thread or source in sources:
            begin, sources = time, []
            self.released.pop(waiter, None)
        self.parked[waiter] = (thread, begin, [*sources, source])

    def release(self, time, thread, waiter):
        self.released[waiter] = (thread, time)

    def awake(self, time, thread, waiter, reason):
        self.end(time, thread, waiter, ENDS.get(reason, "signaled"))

    def timeout(self, time, thread, waiter):
        self.end(time, thread, waiter, "timed out")

    def end(self, time, thread, waiter, how):
        waiting, begin, sources = self.parked.pop(waiter, (thread, None, []))
        by, when = self.released.pop(waiter, (None, None))
        if begin is None or waiting != thread:
            return  # parked before the trace began
        self.add("X", begin, thread, name="wait for " + ", ".join(sources), cat="wait", dur=(time - begin) / 1000,
                 args={"ended": how, **({"by thread": by} if by is not None and how == "signaled" else {})})
        self.times[thread].append(time)
        if by is None or how == "timed out":
            return
        self.arrows += 1
        self.mark(when, by, "wake")
        self.add("s", when, by, name="wake", cat="wake", id=self.arrows)
        self.mark(time, thread, "woken")
        self.add("f", time, thread, name="wake", cat="wake", id=self.arrows, bp="e")

    def finish(self):
        for times in self.times.values():
            times.sort()
        for thread, time, event in self.marks:  # none reaches into the next slice
            times = self.times[thread]
            after = bisect.bisect_right(times, time)
            event["dur"] = (min(MARK, times[after] - time) if after < len(times) else MARK) / 1000
        names = [{"ph": "M", "ts": 0, "pid": 1, "tid": thread, "name": "thread_name",
                  "args": {"name": self.names.get(thread) or f"thread {thread}"}} for thread in sorted(self.times)]
        if names:  # the process's number is made up
            names.insert(0, {**names[0], "name": "process_name", "args": {"name": "program"}})
        return {"displayTimeUnit": "ns", "traceEvents": names + sorted(self.events, key=lambda event: event["ts"])}


def in_order(lines):
    return sorted(filter(None, (parse(line) for line in lines if line.strip())), key=lambda event: event[1])


def trace_of(lines):
    trace = Trace()
    for probe, time, thread, name, arguments in in_order(lines):
        width = ARGUMENTS.get(probe)
        if width is not None and len(arguments) >= width:
            trace.names[thread] = name
            getattr(trace, probe)(time, thread, *arguments[:width])
    return trace.finish()


if __name__ == "__main__":
    json.dump(trace_of(sys.stdin), sys.stdout)
    print()
