#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What can be checked of tools/gdb/tocsin_gdb.py without gdb.

    script_test.py LIBRARIES...    LIBRARIES are what was built of the library
"""

import importlib.util
import re
import subprocess
import sys
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/docs"))
import reference  # noqa: E402

LIBRARIES = ()
PLAIN = "its members are public, and a debugger shows them"
VIEW = "only a reference or pointer to something that is shown itself"
# Public types for which a debugger needs nothing from us, and why.
SHOWN_AS_THEY_ARE = {
    **dict.fromkeys(("value_result", "wake_count", "driver::watch", "group_commit_options", "group_commit_statistics",
                     "handler_options", "idle", "limits", "process_exit", "ready_item", "source_label", "source::operations",
                     "task::awaiter", "this_stop_token_t::awaiter", "wait_counters"), PLAIN),
    **dict.fromkeys(("referred_awaiter", "commit_group", "commit_group::iterator"), VIEW),
    **dict.fromkeys(("boot_clock", "inline_executor_type", "this_stop_token_t"), "it has no members"),
    **dict.fromkeys(("shared_auto_reset_event", "shared_lock", "shared_manual_reset_event", "shared_semaphore"),
                    "its members are the words of a documented layout (detail/shared_layout.hpp)"),
    "shared_memory": "its members are an address, a size and a descriptor",
    "handler_closed": "a std::exception, whose text a debugger shows",
}
NOT_IN_NATVIS = {"signal_source": "Windows has no POSIX signals"}


def load_script():
    with unittest.mock.patch.dict(sys.modules, gdb=unittest.mock.MagicMock(Command=unittest.mock.MagicMock)):
        spec = importlib.util.spec_from_file_location("tocsin_gdb", ROOT / "tools/gdb/tocsin_gdb.py")
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
    return script


class Inside(unittest.TestCase):
    """Without debug information, the functions of the library are known by the linker's names."""

    @classmethod
    def setUpClass(cls):
        cls.script = load_script()

    @staticmethod
    def functions(library):
        listed = subprocess.run(["nm", "--defined-only", library], capture_output=True, text=True, check=True).stdout
        return {line.split()[2] for line in listed.splitlines() if re.match(r"[0-9a-f]+ [tTwWi] ", line)}

    def test_are_all_functions_of_the_libraries(self):
        not_called = re.compile(r"_GLOBAL__|_Z41__static_init|_ZT[HW]|_init$|_fini$|\w+_tm_clones$|frame_dummy$|_\.stapsdt")
        for library in LIBRARIES:
            functions = {name for name in self.functions(library) if not not_called.match(name)}
            self.assertGreater(len(functions), 50)
            self.assertEqual({name for name in functions if not self.script.is_inside(name, "")}, set(), library)

    def test_are_not_functions_of_a_program(self):
        for name in ("main", "_Z13tocsin_workerv", "_Z6tocsinv", "_ZN4user6tocsin4waitEv", "_ZN11tocsin_user4waitEv",
                     "_ZN4user5waitsIN6tocsin18manual_reset_eventEEENS1_11wait_statusERT_", "_ZZ4mainENKUlvE_clEv",
                     "_Z5cloneI3abcEvv", "clone_all", "poll_queue", "futex_worker", "epoll_loop", "_ZL4waitv"):
            self.assertFalse(self.script.is_inside(name, ""), name)

    def test_are_not_functions_of_a_program_with_names_like_ours_and_another_file(self):
        for name, ours in (("tocsin_worker", "c/src/wait.cpp"), ("WaitForSingleObject", "/x/win32/src/wait.cpp"),
                           ("LocalAlloc", "/x/include/tocsin/win32/system.h")):
            self.assertTrue(self.script.is_inside(name, ours))
            self.assertFalse(self.script.is_inside(name, "/x/src/core/worker.cpp"))

    def test_the_names_are_those_of_the_headers(self):
        headers = "".join(path.read_text() for path in (ROOT / "win32/include").rglob("*.h"))
        declared = re.findall(r"(?m)^(?:TOCSIN_WIN32_API|static inline) .*?(\w+)\(", headers)
        self.assertEqual(self.script.OF_WIN32, set(declared))
        self.assertEqual(set(self.script.PUBLIC_HEADERS.split()),
                         {path.stem for path in (ROOT / "include/tocsin").glob("*.hpp")})


def public_classes():
    """The public classes, each with its base classes, by name without `tocsin::`."""
    found = {}

    def add(parts, within):
        for each in parts:
            if isinstance(each, reference.Class):
                if not isinstance(each, reference.Hidden):
                    found[within + each.name] = re.findall(r"[\w:]+", re.sub(r"<.*|public|final", "", each.bases or ""))
                    add(each.members, f"{within}{each.name}::")

    for header in (ROOT / "include/tocsin").glob("*.hpp"):
        add(reference.read(header.read_text()).parts, "")
    return found


class Printers(unittest.TestCase):
    """Each public type has a pretty printer and an entry in tools/tocsin.natvis, or a reason to have none."""

    @classmethod
    def setUpClass(cls):
        cls.classes = public_classes()
        cls.patterns = [pattern for pattern, _ in load_script().PRINTERS]

    def has_printer(self, name):
        return any(re.fullmatch(pattern, form) for pattern in self.patterns for form in (name, f"{name}<int>"))

    def test_the_public_types_are_found(self):
        self.assertGreater(len(self.classes), 50)
        self.assertLess({"auto_reset_event", "latch", "barrier", "channel", "condition", "driver", "wait_set"},
                        set(self.classes))

    def test_gdb(self):
        without = {name for name in self.classes if not self.has_printer(name)}
        self.assertEqual(without, set(SHOWN_AS_THEY_ARE))

    def test_natvis(self):
        text = (ROOT / "tools/tocsin.natvis").read_text()
        shown = set(re.findall(r'<Type Name="tocsin::([\w:]+)', text))
        without = {name for name, bases in self.classes.items() if not shown.intersection([name, *bases])}
        self.assertEqual(without, set(SHOWN_AS_THEY_ARE) | set(NOT_IN_NATVIS))


if __name__ == "__main__":
    LIBRARIES = sys.argv[1:]
    unittest.main(argv=sys.argv[:1], verbosity=2)
