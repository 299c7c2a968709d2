#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/gdb/tocsin_gdb.py shows who waits on what, in a live process and in its core dump.

    gdb_test.py PROGRAM [checked] [--without-exceptions] --callers CALLERS...

PROGRAM is the built diagnosed.cpp. In a checked build, the owners of locks are known, and so are deadlocks. CALLERS are
the builds of src/core/callers.cpp. Exits with 77, which CTest counts as skipped, if gdb can't be run here.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/gdb/tocsin_gdb.py"
PROGRAM = CHECKED = None
CALLERS = ()
KINDS = ("event", "latch", "barrier", "semaphore", "address", "condition", "lock", "channel receive", "wait_set",
         "group_commit", "shared_manual_reset_event")
# Each value is printed by its pretty printer.
VALUES = {
    "named": r"unset, waited on, 1 parked",
    "idle": r"unset",
    "opened": r"set",
    "countdown": r"3 to go, 1 parked",
    "phases": r"1 of 2 missing, 1 parked",
    "pending": r"2 to go, 1 parked",
    "urgent": r"unset",
    "urgent_permits": r"3 permits",
    "permits": r"0 permits, 1 parked",
    "free_permits": r"5 permits",
    "changed": r"waited on, 1 parked",
    "left": r"locked( by thread \d+)?, 1 parked",
    "right": r"bit 9 of 0x[0-9a-f]+: locked( by thread \d+)?",
    "unlocked": r"free",
    "jobs": r"0 of 2 items, receivers wait",
    "stopped": r"stopped",
    "found": r"signaled, source 3",
    "some": r"signaled, 2 items",
    "source_of_named": r"lot 0x[0-9a-f]+ <named>",
    "descriptor": r"descriptor 0",
    "endless": r"never",
    "hourly": r"every 3600000000000 ns, 0 in the last report, next: steady clock, \d+ ns",
    "halted": r"every 1000000 ns, 0 in the last report, next: never",
    "unstarted_task": r"not started",
    "started_task": r"started",
    "ended_task": r"ended",
    "failed_task": r"ended with an exception",
    "no_task": r"empty",
    "thrifty": r"none",
    "seldom": r"at most one wake-up in 2000000 ns",
    "slept_in": r"state at 0x[0-9a-f]+",
    "member_of_set": r"unset, waited on, 1 parked",
    "members": r"state at 0x[0-9a-f]+",
    "watched": r"state at 0x[0-9a-f]+",
    "snooze": r"(steady clock, \d+ ns, in a set|state at 0x[0-9a-f]+)",
    "idle_timer": r"(.*, in no set|state at 0x[0-9a-f]+)",
    "loop": r"state at 0x[0-9a-f]+",
    "hangups": r"state at 0x[0-9a-f]+",
    "commits": r"state at 0x[0-9a-f]+",
    "watchdog": r"state at 0x[0-9a-f]+",
    "nobody": r"nobody waits",
    "none_woken": r"empty",
    "no_job": r"empty",
    "handler.batch_._M_impl._M_start[1]": r"calls 0x[0-9a-f]+ <tocsin::job::inside<main.*>",
    "handler": r"2 jobs to run",
    "no_stop": r"none",
    "some_stop": r"token at 0x[0-9a-f]+",
    "sending": r"not_ready",
    "waiting_operation": r"waits for 2 sources",
    "idle_operation": r"idle, 1 source",
    "event_wait": r"for the event at 0x[0-9a-f]+",
    "awaiter": r"not parked",
    "several": r"idle, 2 sources",
}


def gdb(*arguments, commands=()):
    command = ["gdb", "--batch", "-nx", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off"]
    for each in (f"source {SCRIPT}", *commands):
        command += ["-ex", each]
    result = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=100)
    return result.stdout + result.stderr


COMMANDS = ["tocsin waits", "tocsin event &named", "tocsin event &opened", *(f"print {name}" for name in VALUES)]


class Looks:
    """What must be shown, however gdb looks at the program. `self.text` is what gdb has written."""

    def test_waits_are_listed_with_kind_name_and_caller(self):
        for kind in KINDS:
            self.assertRegex(self.text, rf"(?m)^{kind} 0x[0-9a-f]+.*: thread \d+ \(gdb \d+ ")
        self.assertRegex(self.text, r"event 0x[0-9a-f]+ 'shutdown'.*\n.*called from waits_for_the_named_event\b")
        self.assertRegex(self.text, r"channel receive 0x[0-9a-f]+ 'jobs'")
        self.assertRegex(self.text, r"lock 0x[0-9a-f]+ bit 9.*\n.*called from takes_left_then_right\b")
        self.assertRegex(self.text, r"(?m)^descriptor \d+: thread \d+ \(gdb \d+ ")
        thread = re.search(r"(?m)^wait_set 0x[0-9a-f]+: thread (\d+)", self.text)[1]
        self.assertRegex(self.text, rf"(?m)^event 0x[0-9a-f]+: thread {thread} ", "what is in the wait_set")
        self.assertRegex(self.text, self.age)
        self.assertNotIn("Error", self.text)

    def test_a_deadlock_is_shown_where_owners_are_known(self):
        if not CHECKED:
            return self.assertNotIn("deadlock", self.text)
        cycle = re.search(r"deadlock: thread (\d+) waits for a lock of thread (\d+), which waits for a lock of thread "
                          r"\1\n", self.text)
        self.assertIsNotNone(cycle, self.text)
        either = "|".join(cycle.groups())
        self.assertRegex(self.text, rf"lock .* bit 9: thread ({either}) .*, held by thread ({either})")

    def test_an_event_is_shown_by_its_address(self):
        self.assertRegex(self.text, r"event 0x[0-9a-f]+ 'shutdown': unset, waited on, 1 parked\nevent .*thread \d+")
        self.assertRegex(self.text, r"event 0x[0-9a-f]+: set, 0 parked")

    def test_values_are_printed(self):
        printed = re.findall(r"(?m)^\$\d+ = (.*)$", self.text)
        self.assertEqual(len(printed), len(VALUES), self.text)
        for (name, expected), value in zip(VALUES.items(), printed):
            self.assertRegex(value, f"^{expected}$", name)


class Live(Looks, unittest.TestCase):
    age = r"thread \d+ .*, for \d+\.\d{3} s"

    @classmethod
    def setUpClass(cls):
        cls.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert cls.process.stdout.readline() == "ready\n"
        cls.text = gdb("-p", str(cls.process.pid), commands=COMMANDS)

    @classmethod
    def tearDownClass(cls):
        cls.process.communicate(timeout=60)


class Core(Looks, unittest.TestCase):
    age = r"thread \d+ .*, parked \d+\.\d{3} s before the last wait"

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
                [PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "ready\n"
            gdb("-p", str(process.pid), commands=[f"generate-core-file {folder}/core"])
            process.communicate(timeout=60)
            cls.text = gdb(PROGRAM, f"{folder}/core", commands=COMMANDS)


class Callers(unittest.TestCase):
    """Each call is attributed to the program's function, whatever the program's files and functions are called."""

    @staticmethod
    def shown(program):
        with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "ready\n"
            text = gdb("-p", str(process.pid), commands=["tocsin waits"])
            process.communicate(timeout=60)
        return text

    @staticmethod
    def expected(program):
        """The functions whose calls block; their names are in the program if it has them."""
        source = (ROOT / "tests/diagnosis/src/core/callers.cpp").read_text()
        names = set(re.findall(r"noinline\]\] \S+ (\w+)\(", source)) | {"waits_in_a_header"}
        text = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
        return {name for name in names if name in text}

    def test_are_the_functions_of_the_program(self):
        for program in CALLERS:
            with self.subTest(Path(program).name):
                text = self.shown(program)
                callers = set(re.findall(r"called from .*?(?:\w+::)*(\w+)(?:<\S*>)?(?:\(.*)? (?:at|\(0x)", text))
                expected = self.expected(program)
                self.assertGreater(len(expected), 6)
                if "g0" in program:  # nothing but debug information distinguishes this function from ours
                    expected.discard("tocsin_worker_of_program")
                self.assertEqual(callers, expected, text)
                if CHECKED and "waits_for_a_mutex" in expected:
                    self.assertRegex(text, r"event 0x.*, held by thread \d+\n    called from waits_for_a_mutex")


class Absent(unittest.TestCase):
    def test_a_program_without_the_library_is_named_as_such(self):
        text = gdb(shutil.which("true"), commands=["tocsin waits"])
        self.assertIn("does not have the symbol tocsin_debugger_layout", text)


def reason_to_skip():
    if shutil.which("gdb") is None:
        return "gdb is not installed"
    if "Python" not in gdb(commands=["python print('Python')"]):
        return "gdb has no Python"
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        text = gdb("-p", str(sleeper.pid))
        sleeper.kill()
    return f"gdb may not attach to a process here: {text}" if "ptrace" in text else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("checked", nargs="?")
    parser.add_argument("--without-exceptions", action="store_true")
    parser.add_argument("--callers", nargs="*", default=[])
    given = parser.parse_args()
    PROGRAM, CHECKED, CALLERS = given.program, bool(given.checked), given.callers
    if given.without_exceptions:
        VALUES["failed_task"] = "ended"
    reason = reason_to_skip()
    if reason is not None:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
