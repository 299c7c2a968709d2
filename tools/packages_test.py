# SPDX-License-Identifier: Apache-2.0
"""The lists of parts in tools/dev/packages.py and packaging/: whether each of them has everything that CMake reads and
installs. Nothing is compiled."""

import ast
import fnmatch
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from dev import packages, tree  # noqa: E402

RULE = re.compile(r'file\(INSTALL DESTINATION "\$\{CMAKE_INSTALL_PREFIX\}/([^"]*)" TYPE \w+[^"]*? FILES((?:\s+"[^"]+")+)')
# What packaging/debian/rules and the recipe for Conan say.
WITHOUT_WIN32 = ("-DTOCSIN_WIN32=OFF", "-DBUILD_SHARED_LIBS=ON")


def parts_of_conan(recipe):
    """The patterns that the recipe's export_sources copies."""
    [function] = [node for node in ast.walk(ast.parse(recipe)) if isinstance(node, ast.FunctionDef)
                  and node.name == "export_sources"]
    [loop] = [node for node in ast.walk(function) if isinstance(node, ast.For)]
    return ast.literal_eval(loop.iter)


def files_like(patterns):
    """The files of the tree that Conan's copy() takes: its `*` also matches slashes."""
    top = sorted({pattern.partition("/")[0] for pattern in patterns})
    paths = [path for name in top for path in ([tree.ROOT / name] if (tree.ROOT / name).is_file()
                                               else (tree.ROOT / name).rglob("*")) if path.is_file()]
    names = [path.relative_to(tree.ROOT).as_posix() for path in paths]
    return [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]


class Lists(unittest.TestCase):
    def setUp(self):
        if not shutil.which("cmake") or not shutil.which("ninja"):
            self.skipTest("there is no CMake, or no Ninja")
        place = self.enterContext(tempfile.TemporaryDirectory())
        self.source, self.build = Path(place).resolve() / "source", Path(place).resolve() / "build"
        self.source.mkdir()

    def copy(self, names):
        for name in names:
            (self.source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(tree.ROOT / name, self.source / name)

    def configure(self, *options):
        """What CMake says of the copy, if it fails."""
        command = ["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                   "-DCMAKE_INSTALL_LIBDIR=lib/processor", *options]
        result = subprocess.run(command, env=packages.PLAIN, capture_output=True, text=True, check=False)
        return result.stderr if result.returncode else ""

    def rules(self):
        """(destination, source) of all that `cmake --install` copies."""
        for script in self.build.rglob("cmake_install.cmake"):
            for destination, sources in RULE.findall(script.read_text()):
                for source in re.findall(r'"([^"]+)"', sources):
                    yield f"{destination}/{Path(source).name}", Path(source)

    def lacks(self):
        """The files and folders of the tree that are installed, and that the copy does not have."""
        found = [source for _, source in self.rules() if source.is_relative_to(self.source)]
        self.assertIn(self.source / "include" / "tocsin", found)
        return sorted(source.relative_to(self.source).as_posix() for source in found if not source.exists())

    def test_the_parts_of_a_library_are_enough(self):
        packages.copy_parts(self.source)
        self.assertEqual("", self.configure("-DTOCSIN_WIN32=ON"))
        self.assertEqual([], self.lacks())

    def test_a_part_that_is_not_in_the_list_is_noticed(self):
        packages.copy_parts(self.source, [part for part in packages.PARTS if part != "tools"])
        self.assertEqual("", self.configure("-DTOCSIN_WIN32=OFF"))
        self.assertIn("tools/tocsin.natvis", self.lacks())
        shutil.rmtree(self.source / "win32")
        self.assertIn("win32", self.configure("-DTOCSIN_WIN32=ON"))

    def test_the_recipe_for_conan_exports_enough(self):
        self.copy(files_like(parts_of_conan((packages.PACKAGING / "conan" / "conanfile.py").read_text())))
        self.assertEqual("", self.configure(*WITHOUT_WIN32))
        self.assertEqual([], self.lacks())

    def test_each_installed_file_is_in_a_package_of_debian(self):
        packages.copy_parts(self.source)
        self.assertEqual("", self.configure(*WITHOUT_WIN32))
        patterns = [line for path in (packages.PACKAGING / "debian").glob("*.install")
                    for line in path.read_text().split()]
        installed = [f"usr/{destination}" for destination, _ in self.rules()]
        self.assertIn("usr/lib/processor/pkgconfig/tocsin.pc", installed)
        self.assertEqual([], [name for name in installed if not any(
            fnmatch.fnmatchcase(name, each) or fnmatch.fnmatchcase(name, f"{each}/*") for each in patterns)])


if __name__ == "__main__":
    unittest.main()
