#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/tocsin.natvis is well-formed, and names types and members that the public headers have."""

import re
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SPACE = "{http://schemas.microsoft.com/vstudio/debugger/natvis/2010}"
OF_MSVC = {"_Storage", "_Value", "_Ptr"}
WORDS = {"void"}


class Natvis(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = ElementTree.parse(ROOT / "tools/tocsin.natvis").getroot()
        headers = [*(ROOT / "include/tocsin").glob("*.hpp"), *(ROOT / "include/tocsin/detail").glob("*.hpp")]
        cls.source = re.sub(r"//.*", "", "".join(path.read_text() for path in headers))

    def test_is_a_file_of_visualizers(self):
        self.assertEqual(self.root.tag, SPACE + "AutoVisualizer")
        self.assertGreater(len(self.root), 10)
        for each in self.root:
            self.assertEqual(each.tag, SPACE + "Type")
            shown = each.findall(SPACE + "DisplayString")
            self.assertTrue(shown)
            self.assertIsNone(shown[-1].get("Condition"), "a value for which no condition is true would not be shown")

    def test_names_types_of_the_headers(self):
        for each in self.root:
            name = re.sub(r"<.*", "", each.get("Name").split("::")[-1])
            self.assertRegex(self.source, rf"\b(class|struct)( \[\[nodiscard\]\])?( TOCSIN_API)? {name}\b", name)

    def test_names_members_of_the_headers(self):
        for each in self.root:
            for shown in each.findall(SPACE + "DisplayString"):
                parts = re.findall(r"\{([^}]*)\}", shown.text) + [shown.get("Condition", "")]
                for part in parts:
                    for name in re.findall(r"(?<![\w,])[A-Za-z_]\w*", part):
                        if name not in OF_MSVC | WORDS:
                            self.assertRegex(self.source, rf"\b{name}(\{{|;| =|\[)", f"{each.get('Name')}: {name}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
