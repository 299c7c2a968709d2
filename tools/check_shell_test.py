# SPDX-License-Identifier: Apache-2.0
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import check_shell  # noqa: E402


class Shell(unittest.TestCase):
    def complaints_about(self, name, text):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / name).write_text(text)
            return list(check_shell.complaints(Path(folder)))

    def test_a_script_that_the_shell_cannot_read_is_named(self):
        for name, first in (("run", "#!/bin/sh\n"), ("run", "#! /usr/bin/env sh\n"), ("x.sh", "")):
            found = self.complaints_about(name, f"{first}if true; then\n    echo yes\n")
            self.assertEqual(len(found), 1)
            self.assertTrue(found[0].startswith(f"{name}: "), found)

    def test_others_are_not(self):
        self.assertEqual(self.complaints_about("run", "#!/bin/sh\necho yes\n"), [])
        self.assertEqual(self.complaints_about("tool.py", "#!/usr/bin/env python3\nif x:\n    pass\n"), [])

    def test_the_scripts_of_the_tree_are_found(self):
        names = {path.relative_to(check_shell.ROOT).as_posix(): shell
                 for path, shell in check_shell.scripts(check_shell.ROOT)}
        self.assertLessEqual({".ci/run", "tools/trace/perf_wakes.sh", "packaging/debian/tests/static"}, set(names))


if __name__ == "__main__":
    unittest.main()
