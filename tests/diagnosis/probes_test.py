#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The probes in a built program are those that docs/diagnosis.md lists, and the tracers' scripts use no others.

    probes_test.py PROGRAM FILE

PROGRAM is the built diagnosed.cpp. FILE has the library: the program, or a shared library. Where the kernel permits,
also runs each script of tools/trace on the program.
"""

import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = FILE = None
UPROBES = "/sys/kernel/tracing/uprobe_events"
NOPS = (b"\x90", bytes.fromhex("1f2003d5"))  # x86-64, 64-bit ARM
sys.path.insert(0, str(ROOT / "tools/trace"))

import trace_events  # noqa: E402


class Elf:
    """A 64-bit little-endian ELF file: just enough of it to read its probes."""

    def __init__(self, path):
        self.bytes = Path(path).read_bytes()
        assert self.bytes[:6] == b"\x7fELF\x02\x01"
        offset, = struct.unpack_from("<Q", self.bytes, 0x28)
        size, count, names = struct.unpack_from("<HHH", self.bytes, 0x3A)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.bytes, offset + i * size) for i in range(count)]
        self.names = self.sections[names][4]

    def section(self, wanted):
        for name, _, _, _, offset, size, *_ in self.sections:
            begin = self.names + name
            if self.bytes[begin:self.bytes.index(b"\0", begin)] == wanted:
                return self.bytes[offset:offset + size]
        return b""

    def at(self, address, size):
        for _, kind, flags, begin, offset, length, *_ in self.sections:
            if flags & 2 and kind == 1 and begin <= address < begin + length:
                return self.bytes[offset + address - begin:][:size]
        return b""

    def probes(self):
        """(name, arguments, address, semaphore) of each note of the library."""
        notes = self.section(b".note.stapsdt")
        at = 0
        while at < len(notes):
            name_size, size, kind = struct.unpack_from("<III", notes, at)
            at += 12
            assert kind == 3 and notes[at:at + name_size] == b"stapsdt\0"
            at += (name_size + 3) & ~3
            address, _, semaphore = struct.unpack_from("<QQQ", notes, at)
            provider, name, arguments, *_ = notes[at + 24:at + size].split(b"\0")
            at += (size + 3) & ~3
            if provider == b"tocsin":
                yield name.decode(), arguments.decode().split(), address, semaphore


def documented():
    """The probes of docs/diagnosis.md, and for each the number of its arguments."""
    table = (ROOT / "docs/diagnosis.md").read_text().split("## Probes")[1].split("## Traces")[0]
    return {name: len(arguments.split(",")) for name, arguments in re.findall(r"(?m)^\| `(\w+)` \| ([^|]+) \|", table)}


class Probes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.elf = Elf(FILE)
        cls.found = list(cls.elf.probes())

    def test_are_those_that_the_page_lists(self):
        self.assertEqual({name for name, *_ in self.found}, set(documented()))
        for name, arguments, _, _ in self.found:
            self.assertEqual(len(arguments), documented()[name], name)

    def test_have_arguments_that_tracers_can_read(self):
        for name, arguments, _, _ in self.found:
            for each in arguments:
                self.assertRegex(each, r"^-?[1248]@(\$-?\d+|%\w+|-?\d*\(%\w+\)|-?\d+|[wx]\d+|\[\w+(, -?\d+)?\]|sp)$", name)

    def test_have_no_constants_where_perf_reads_them(self):
        for name, arguments, _, _ in self.found:
            if name in trace_events.ARGUMENTS:
                self.assertNotRegex(" ".join(arguments), r"@(\$|-?\d+( |$))", name)

    def test_are_a_nop_each_and_have_no_semaphore(self):
        for name, _, address, semaphore in self.found:
            code = self.elf.at(address, 4)
            self.assertTrue(any(code.startswith(nop) for nop in NOPS), f"{name}: {code.hex()}")
            self.assertEqual(semaphore, 0, name)


class Scripts(unittest.TestCase):
    def test_use_only_probes_and_arguments_that_exist(self):
        known = documented()
        scripts = sorted((ROOT / "tools/trace").glob("*.bt"))
        self.assertEqual(len(scripts), 3)
        for script in scripts:
            text = re.sub(r"//.*", "", script.read_text())
            parts = re.split(r"usdt:\*:tocsin:(\w+)", text)[1:]
            self.assertTrue(parts, script)
            for name, body in zip(parts[::2], parts[1::2]):
                body = body.split("\n}\n")[0]
                self.assertIn(name, known, script)
                for number in re.findall(r"\barg(\d+)", body):
                    self.assertLess(int(number), known[name], f"{script}: {name}")

    def test_of_perf_uses_only_probes_that_exist(self):
        text = (ROOT / "tools/trace/perf_wakes.sh").read_text()
        names = re.search(r"for probe in ([a-z_ ]+); do", text).group(1).split()
        self.assertEqual(set(names), set(trace_events.ARGUMENTS))
        self.assertLessEqual(set(names), set(documented()))
        for name, used in trace_events.ARGUMENTS.items():
            self.assertLessEqual(used, documented()[name])


WOKEN = """\
Attaching 5 probes...
park 1000 11 77 4096 0 reader 1
park 1500 12 88 8192 5 12
park 1600 12 88 12288 255 12
release 3000 13 77 writer
awake 5000 11 77 3 reader 1
park 5300 11 66 4096 0 reader 1
timeout 9000 12 88 12
release 9500 13 99 writer
awake 9600 14 99 3 late
awake 9700 11 66 2 reader 1
park 97
"""
BY_PERF = """\
       reader 1    11    0.000001000: sdt_tocsin:park: (5599) arg1=77 arg2=4096 arg3=0x0 arg4=11
             12    12    0.000001500: sdt_tocsin:park: (5599) arg1=88 arg2=8192 arg3=5 arg4=12
             12    12    0.000001600: sdt_tocsin:park: (5599) arg1=88 arg2=12288 arg3=255 arg4=12
         writer    13    0.000003000: sdt_tocsin:release_1: (5601) arg1=77
       reader 1    11    0.000005000: sdt_tocsin:awake: (5602) arg1=77 arg2=3
       reader 1    11    0.000005300: sdt_tocsin:park: (5599) arg1=66 arg2=4096 arg3=0x0 arg4=11
             12    12    0.000009000: sdt_tocsin:timeout: (5603) arg1=88
       reader 1    11    0.000009700: sdt_tocsin:awake: (5602) arg1=66 arg2=2
"""


def complaints_about(trace):
    """What the format of Chrome's trace events forbids: an empty list is a valid trace."""
    found = []
    flows, slices = {}, {}

    def nanoseconds(microseconds):  # exact, while sums of fractions are not on a machine that has run for hours
        return round(microseconds * 1000)

    for event in trace["traceEvents"]:
        missing = [key for key in ("ph", "ts", "pid", "tid", "name") if key not in event]
        if missing or event["ph"] not in "XsfM" or event["ts"] < 0:
            found.append(f"not an event: {event}")
        if event["ph"] == "X":
            slices.setdefault(event["tid"], []).append((nanoseconds(event["ts"]), nanoseconds(event.get("dur", -1))))
        if event["ph"] in "sf":
            flows.setdefault(event["id"], []).append(event["ph"])
    found += [f"arrow {number} has the ends {ends}" for number, ends in flows.items() if ends != ["s", "f"]]
    for thread, each in slices.items():
        found += [f"a slice without duration on thread {thread}: {one}" for one in each if one[1] <= 0]
        open_until = []
        for begin, duration in sorted(each, key=lambda one: (one[0], -one[1])):
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            if open_until and begin + duration > open_until[-1]:
                found.append(f"a slice on thread {thread} at {begin} reaches out of the one around it")
            open_until.append(begin + duration)
    return found


class Traces(unittest.TestCase):
    def test_say_who_woke_whom(self):
        for lines in (WOKEN, BY_PERF):
            trace = trace_events.trace_of(lines.splitlines(keepends=True))
            self.assertEqual(complaints_about(json.loads(json.dumps(trace))), [])
            events = trace["traceEvents"]
            self.assertEqual({event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"},
                             {11: "reader 1", 12: "12", 13: "writer"})
            waits = [(event["tid"], event["name"], event["ts"], event["dur"], event["args"])
                     for event in events if event.get("cat") == "wait"]
            self.assertEqual(waits, [
                (11, "wait for event 0x1000", 1, 4, {"ended": "signaled", "by thread": 13}),
                (12, "wait for lock bit 1 0x2000, source 0x3000", 1.5, 7.5, {"ended": "timed out"}),
                (11, "wait for event 0x1000", 5.3, 4.4, {"ended": "stopped"})])
            arrows = [(event["ph"], event["tid"], event["ts"]) for event in events if event["ph"] in "sf"]
            self.assertEqual(arrows, [("s", 13, 3), ("f", 11, 5)])

    def test_have_a_slice_at_each_end_of_an_arrow_that_ends_before_the_next_slice(self):
        trace = trace_events.trace_of(WOKEN.splitlines())
        marks = [(event["name"], event["tid"], event["ts"], event["dur"])
                 for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] == "wake"]
        self.assertEqual(marks, [("wake", 13, 3, 1), ("woken", 11, 5, 0.3)])

    def test_have_no_wait_of_which_no_end_was_seen(self):
        lost = "park 500 11 77 4096 0 reader 1\nrelease 600 12 77 12\n"
        of_another_thread = "park 700 14 88 8192 5 late\n"
        self.assertEqual(trace_events.trace_of((lost + of_another_thread + WOKEN).splitlines()),
                         trace_events.trace_of(WOKEN.splitlines()))

    def test_are_empty_if_nothing_was_seen(self):
        self.assertEqual(trace_events.trace_of([])["traceEvents"], [])


def may_trace():
    """Whether bpftrace may place a probe in a program: its BEGIN is one, in itself."""
    return subprocess.run(["bpftrace", "-e", "BEGIN { exit(); }"], capture_output=True, check=False).returncode == 0


def lines_until(output, beginning, times=1):
    """Reads lines until that many have this beginning, or the output ends."""
    text = ""
    while times > 0 and (line := output.readline()):
        text += line
        times -= line.startswith(beginning)
    return text


class WithProgram(unittest.TestCase):
    """A program runs in which two threads wake each other."""

    def setUp(self):
        self.program = subprocess.Popen([PROGRAM, "ping-pong"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.program.communicate, timeout=30)
        self.assertEqual(self.program.stdout.readline(), "ready\n")

    def trace(self, name, until, more=""):
        """What the script, with `more` at its end, prints until `until(tracer's output)` returns, and after Ctrl-C."""
        if shutil.which("bpftrace") is None:
            self.skipTest("bpftrace is not installed")
        if not may_trace():
            self.skipTest("this user may not trace")
        script = (ROOT / "tools/trace" / name).read_text() + more
        tracer = subprocess.Popen(["bpftrace", "-B", "line", "-p", str(self.program.pid), "-e", script],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = tracer.stdout.readline()
        seen = until(tracer.stdout)
        tracer.send_signal(signal.SIGINT)
        text, errors = tracer.communicate(timeout=30)
        self.assertIn("Attaching", first, errors)
        return seen + text

    def trace_of_wakes(self):
        text = self.trace("wakes.bt", lambda output: lines_until(output, "awake", 100))
        return trace_events.trace_of(text.splitlines())


class Running(WithProgram):
    """The scripts on that program."""

    def test_latency_has_a_histogram(self):
        # The script prints nothing before Ctrl-C. Its probes are in place before the one that is added here.
        text = self.trace("wakeup_latency.bt", lambda output: lines_until(output, "awake", 100),
                          'usdt:*:tocsin:awake { printf("awake\\n"); }')
        self.assertRegex(text, r"@latency\[\d+, 0\]: *\n\[")

    def test_longest_waits_are_listed(self):
        text = self.trace("longest_waits.bt", lambda output: lines_until(output, "@asleep_since_ms"))
        self.assertRegex(text, r"now: \d+ ms\n(@asleep_since_ms\[\d+, \d+, 0\]: \d+\n)+")

    def check_ping_pong(self, trace):
        """Two threads wake each other, so each arrow leads from one to the other."""
        self.assertEqual(complaints_about(trace), [])
        events = trace["traceEvents"]
        names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.assertEqual(sorted(names.values()), ["ping", "pong"])
        ends = {}
        for event in events:
            if event["ph"] in "sf":
                ends.setdefault(event["id"], []).append(names[event["tid"]])
        self.assertTrue(ends)
        for each in ends.values():
            self.assertEqual(sorted(each), ["ping", "pong"])

    def test_a_trace_of_wakes_is_valid(self):
        self.check_ping_pong(self.trace_of_wakes())

    def test_of_perf_makes_a_valid_trace(self):
        if shutil.which("perf") is None:
            self.skipTest("perf is not installed")
        # A file system of our own, if the machine has none with the events.
        mounted = os.path.exists(UPROBES)
        see = ["sh"] if mounted else ["unshare", "--mount", "sh"]
        mount = "" if mounted else "mount -t tracefs tracefs /sys/kernel/tracing && "
        may = subprocess.run([*see, "-c", f"{mount}test -w {UPROBES} && ! grep sdt_tocsin {UPROBES}"],
                             capture_output=True, text=True, check=False)
        if may.returncode != 0:
            self.skipTest(f"this user may not trace with perf, or another one traces: {may.stderr}{may.stdout}")
        script = ROOT / "tools/trace/perf_wakes.sh"
        traced = subprocess.run([*see, "-c", f'{mount}exec "$@"', "sh", script, FILE, str(self.program.pid), "1"],
                                capture_output=True, text=True, check=False)
        self.assertEqual(traced.returncode, 0, traced.stderr)
        self.check_ping_pong(json.loads(traced.stdout))


if __name__ == "__main__":
    PROGRAM, FILE = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1], verbosity=2)
