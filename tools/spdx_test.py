# SPDX-License-Identifier: Apache-2.0
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import spdx  # noqa: E402


class Lines(unittest.TestCase):
    def written(self, name, text):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_text(text)
            self.assertEqual([path], list(spdx.sources(Path(folder))))
            self.assertFalse(spdx.has_line(path))
            spdx.write_line(path)
            self.assertTrue(spdx.has_line(path))
            return path.read_text()

    def test_it_is_the_first_line(self):
        self.assertEqual(f"// {spdx.LICENCE}\n// An event.\n#pragma once\n",
                         self.written("event.hpp", "// An event.\n#pragma once\n"))
        self.assertEqual(f"# {spdx.LICENCE}\nproject(x)\n", self.written("CMakeLists.txt", "project(x)\n"))

    def test_it_is_after_the_lines_that_must_be_first(self):
        self.assertEqual(f"#!/usr/bin/env python3\n# {spdx.LICENCE}\n\"\"\"Text.\"\"\"\n",
                         self.written("dev", "#!/usr/bin/env python3\n\"\"\"Text.\"\"\"\n"))
        self.assertEqual(f"// expect: x\n// misuse: -std=c++17\n// {spdx.LICENCE}\nint i;\n",
                         self.written("case.cpp", "// expect: x\n// misuse: -std=c++17\nint i;\n"))

    def test_it_is_a_comment_of_the_files_format(self):
        for name, comment in (("wakes.bt", "// {}"), ("ci.yml", "# {}"), ("tocsin.pc.in", "# {}"), ("static", "# {}"),
                              ("symbols.map", "/* {} */"), ("tocsin.wrap", "# {}"), ("x.config", "# {}")):
            self.assertEqual(f"{comment.format(spdx.LICENCE)}\ntext\n", self.written(name, "text\n"))
        self.assertEqual(f"#!/usr/bin/env bpftrace\n// {spdx.LICENCE}\nBEGIN {{}}\n",
                         self.written("waits.bt", "#!/usr/bin/env bpftrace\nBEGIN {}\n"))
        self.assertEqual(f"<?xml version=\"1.0\"?>\n<!-- {spdx.LICENCE} -->\n<AutoVisualizer/>\n",
                         self.written("x.natvis", "<?xml version=\"1.0\"?>\n<AutoVisualizer/>\n"))

    def test_other_files_have_none(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("README.md", "presets.json", "empty.py"):
                (Path(folder) / name).touch()
            self.assertEqual([], list(spdx.sources(Path(folder))))


if __name__ == "__main__":
    unittest.main()
