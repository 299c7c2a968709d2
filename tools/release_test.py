# SPDX-License-Identifier: Apache-2.0
"""`./dev release`: what it refuses, and what it writes."""

import contextlib
import hashlib
import io
import lzma
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent))
from dev import release  # noqa: E402
from dev.tree import Refusal  # noqa: E402

CHANGELOG = """# Changelog

## [Unreleased]

New things.

## [0.1.0] - 2026-12-01

The first release.

[0.1.0]: https://example.org/
"""


class Notes(unittest.TestCase):
    def test_they_are_the_part_of_the_version(self):
        self.assertEqual(("The first release.\n", True), release.notes_of(CHANGELOG, "0.1.0"))

    def test_before_the_version_has_a_part_they_are_what_is_unreleased(self):
        self.assertEqual(("New things.\n", False), release.notes_of(CHANGELOG, "0.2.0"))

    def test_a_changelog_with_neither_is_refused(self):
        with self.assertRaisesRegex(Refusal, "0.2.0"):
            release.notes_of("# Changelog\n", "0.2.0")


class Arguments(unittest.TestCase):
    def test_wrong_ones_are_named(self):
        for arguments, expected in ((["--without", "sites"], "no part is named sites; there are: sources, binary"),
                                    (["--result", "nowhere.json"], "nowhere.json: No such file")):
            said = io.StringIO()
            with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
                release.parse(arguments)
            self.assertIn(expected, said.getvalue())


class Folder(unittest.TestCase):
    def make(self, *arguments, parts):
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as name, mock.patch.multiple(
                release, RELEASES=Path(name) / "releases", ROOT=Path(name), PARTS=parts,
                commit=lambda: "0123456789abcdef"), contextlib.redirect_stdout(said):
            (Path(name) / "CHANGELOG.md").write_text(CHANGELOG)
            code = release.make(release.parse(list(arguments)))
            folder = next((Path(name) / "releases").iterdir())
            return code, said.getvalue(), {path.name: path.read_bytes() for path in folder.iterdir()}

    def test_it_has_what_was_made_with_notes_and_sums(self):
        parts = {"one": lambda folder, name: bool((folder / f"{name}.txt").write_text("x")),
                 "two": lambda folder, name: bool((folder / "left out").write_text("y"))}
        code, said, files = self.make("--without", "two", parts=parts)
        self.assertEqual(0, code)
        archive = next(name for name in files if name.endswith(".txt"))
        self.assertEqual({archive, "NOTES.md", "SHA256SUMS"}, set(files))
        self.assertIn(f"{hashlib.sha256(b'x').hexdigest()}  {archive}\n", files["SHA256SUMS"].decode())
        self.assertIn("git tag --sign v", said)
        self.assertIn("no result of the laboratory is attached", said)

    def test_a_part_that_is_not_made_is_named_and_the_others_are_made(self):
        parts = {"one": lambda folder, name: False, "two": lambda folder, name: bool((folder / "made").write_text("y"))}
        code, said, files = self.make(parts=parts)
        self.assertEqual(1, code)
        self.assertIn("not made: one", said)
        self.assertIn("made", files)

    def test_a_result_is_attached_compressed(self):
        with tempfile.TemporaryDirectory() as name, mock.patch.object(release, "quietly", return_value=True), \
                mock.patch.object(release.needs, "python_with", return_value=Path("python")):
            path = Path(name) / "whole.json"
            path.write_text("{}")
            self.assertTrue(release.result(Path(name), path))
            self.assertEqual(b"{}", lzma.decompress((Path(name) / "whole.json.xz").read_bytes()))


if __name__ == "__main__":
    unittest.main()
