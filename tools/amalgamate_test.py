# SPDX-License-Identifier: Apache-2.0
import shutil
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import amalgamate  # noqa: E402


@unittest.skipUnless(shutil.which("cmake"), "the list of sources is CMake's")
class SingleHeader(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = amalgamate.single_header()

    def test_it_includes_no_file_of_the_tree(self):
        left = [line for line in self.text.splitlines()
                if (found := amalgamate.INCLUDE.match(line)) and amalgamate.resolve(found)]
        self.assertEqual([], left)

    def test_every_source_of_every_system_is_there_once(self):
        for system in amalgamate.SYSTEMS:
            files, definitions = amalgamate.sources_of(system)
            self.assertEqual(2, len(definitions), system)
            for file in files:
                self.assertEqual(1, self.text.count(f"\n// ---- src/{file}\n"), f"{file} of {system}")

    def test_every_public_header_is_there_once(self):
        for header in amalgamate.public_headers():
            self.assertEqual(1, self.text.count(f"\n// ---- include/tocsin/{header.name}\n"), header.name)

    def test_every_source_is_for_some_system(self):
        used = {file for system in amalgamate.SYSTEMS for file in amalgamate.sources_of(system)[0]}
        older_windows = {f"platform/futex/windows{each}.cpp" for each in ("", "_srw")}
        source = amalgamate.ROOT / "src"
        paths = [*source.glob("*.cpp"), *(source / "core").rglob("*.cpp"), *(source / "platform").rglob("*.cpp")]
        wanted = {path.relative_to(source).as_posix() for path in paths}
        self.assertEqual(older_windows, wanted - used)

    def test_each_header_by_its_name_gives_every_file_what_the_tree_s_gives(self):
        public = self.text.partition("defined(TOCSIN_IMPLEMENTATION)")[0]
        with tempfile.TemporaryDirectory() as folder, \
                unittest.mock.patch("sys.argv", ["amalgamate.py", folder, "--forward"]):
            self.assertEqual(amalgamate.main(), 0)
            for header in (amalgamate.ROOT / "include" / "tocsin").rglob("*.hpp"):
                name = header.relative_to(amalgamate.ROOT / "include")
                text = (Path(folder) / name).read_text()
                if f"// ---- include/{name.as_posix()}\n" in public:
                    self.assertRegex(text, r'^#include "(\.\./)+tocsin\.hpp"\n$')
                else:
                    self.assertEqual(text, header.read_text(), name)


if __name__ == "__main__":
    unittest.main()
