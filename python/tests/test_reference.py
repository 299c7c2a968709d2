# SPDX-License-Identifier: Apache-2.0
"""The reference is made of the stub: it names what the module has, and says what the module's docstrings say."""

import ast
import inspect
import pathlib
import unittest

import tocsin

STUB = pathlib.Path(tocsin.__file__).with_name("__init__.pyi")


def documented(tree, of, prefix=""):
    """(name, docstring in the stub, the module's object) for each class, function and method."""
    for one in tree.body:
        if isinstance(one, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and not one.name.startswith("_"):
            it = getattr(of, one.name)
            yield prefix + one.name, ast.get_docstring(one), it
            if isinstance(one, ast.ClassDef):
                yield from documented(one, it, f"{one.name}.")


class Reference(unittest.TestCase):
    def test_the_stub_says_what_the_module_says(self):
        found = list(documented(ast.parse(STUB.read_text(encoding="utf-8")), tocsin))
        for name, text, it in found:
            with self.subTest(name=name):
                self.assertTrue(text)
                self.assertEqual(text.split(), inspect.getdoc(it).split())
        self.assertLessEqual(set(tocsin.__all__) - {"__version__", "BrokenBarrierError"}, {name for name, _, _ in found})


if __name__ == "__main__":
    unittest.main()
