# SPDX-License-Identifier: Apache-2.0
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import check_text  # noqa: E402
import prose  # noqa: E402


def complaints(files):
    """Complaints about a tree of these files: `name:line: what`."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return [f"{name}:{line}: {what}" for name, line, what in check_text.check(root)]


class TextCase(unittest.TestCase):
    def assert_one(self, files, *parts):
        found = complaints(files)
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])

    def assert_none(self, files):
        self.assertEqual([], complaints(files))


class Words(TextCase):
    WRONG = {
        "Who sets an event wakes a thread.": "a bare `who`",
        "The bit is set; who clears it must hold the lock.": "a bare `who`",
        "Nothing of the library's is left.": "a double possessive",
        "It is a thread of the caller's.": "a double possessive",
        "This uses the library's own lock.": "own",
        "Not promised: that it sleeps.": "Not promised",
        "The thread goes on.": "goes on",
        "Both go on.": "goes on",
        "The time has come to stop.": "has come",
        "No memory is to be had.": "had",
        "The claim was had by another.": "had",
        "The tag stands in two places.": "stands",
        "It waits beside sockets.": "beside",
        "It waits in vain.": "in vain",
        "It lets go of the lock.": "lets go",
        "It starts by itself.": "by itself",
        "It wakes threads also.": "also",
        "Meanwhile others wait: they sleep.": "meanwhile",
    }
    RIGHT = ("Those who wait are released.", "Who waits on this event?", "A thread that waits sleeps, whoever sets it.",
             "`who` is a column.", "The list says who waits.", "AES stands for a cipher.", "Also, it wakes threads.",
             "The page is beside the result.", "It is one bit of the user's word.", "Each token has come out once.",
             "The headers of the library are its contract.", "It has released its lock.")

    def test_wrong_english_is_named_in_comments_and_markdown(self):
        for sentence, what in self.WRONG.items():
            with self.subTest(sentence):
                self.assert_one({"docs/a.md": f"{sentence}\n"}, "docs/a.md:1:", what)
                self.assert_one({"src/a.cpp": f"int a;\n// {sentence}\n"}, "src/a.cpp:2:", what)
                self.assert_one({"tools/a.py": f"a = 1\n# {sentence}\n"}, "tools/a.py:2:", what)
                self.assert_one({"cmake/a.cmake": f"# {sentence}\n"}, "cmake/a.cmake:1:", what)

    def test_right_english_is_not(self):
        for sentence in self.RIGHT:
            with self.subTest(sentence):
                self.assert_none({"docs/a.md": f"{sentence}\n", "src/a.cpp": f"// {sentence}\n"})

    def test_a_sentence_may_be_on_two_lines(self):
        self.assert_one({"src/a.cpp": "// The thread\n// goes\n// on.\n"}, "src/a.cpp:3:")
        self.assert_one({"docs/a.md": "It ends.\nWho waits sleeps.\n"}, "docs/a.md:2:")

    def test_code_is_no_prose(self):
        self.assert_none({"src/a.cpp": 'auto a = "// goes on";\nauto b = R"(// goes on)";\n',
                          "docs/a.md": "```\nit goes on\n```\n\n`goes on` is refused.\n",
                          "tools/a.py": 'a = "it goes on"\n'})

    def test_a_docstring_is_prose(self):
        self.assert_one({"tools/a.py": 'def f():\n    """It goes on."""\n'}, "tools/a.py:2:")

    def test_prose_is_at_most_120_columns_wide(self):
        line = "// " + "a word " * 16
        self.assert_none({"src/a.cpp": f"{line.strip()}\n"})
        self.assert_one({"src/a.cpp": f"{line}and more.\n"}, "120 columns")
        self.assert_one({"docs/a.md": f"{line}and more.\n"}, "120 columns")

    def test_tables_and_code_may_be_wider(self):
        self.assert_none({"docs/a.md": f"| {'a word ' * 20}|\n\n```\n{'a word ' * 20}.\n```\n",
                          "src/a.cpp": f'auto a = "{"a word " * 20}";\n'})

    def test_every_folder_keeps_the_rules(self):
        for name in ("src/a.cpp", "tests/unit/a_test.cpp", "lab/worker/a.cpp", "lab/worker/a.rs", "examples/a.cpp"):
            self.assertIn("goes on", "\n".join(complaints({name: "// It goes on.\n"})))

    def test_the_names_of_mutants_are_prose(self):
        self.assert_one({"tests/a.toml": 'P1."a thread goes on" = "it goes on"\n'}, "tests/a.toml:1:")


class TypedTests(TextCase):
    """CMake 3.25 to 4.3 lists a case of a suite whose types have names under the whole line that GoogleTest printed."""

    def test_a_typed_suite_numbers_its_types(self):
        self.assert_one({"src/a.cpp": "int a;\nTYPED_TEST_SUITE(Every, kinds, names);\n"}, "src/a.cpp:2:", "names its types")
        self.assert_one({"src/a.cpp": "INSTANTIATE_TYPED_TEST_SUITE_P(My, Every,\n    kinds, names);\n"}, "names its types")
        self.assert_none({"src/a.cpp": "TYPED_TEST_SUITE(Every, kinds);\nTYPED_TEST_SUITE(Each, kinds, );\n"
                                       "INSTANTIATE_TYPED_TEST_SUITE_P(My, Every, kinds);\nint a, b;\n"})


class Citations(TextCase):
    LOT = {"src/core/lot/lot.cpp": "// Invariants\n//   lot-1  A queue is locked.\n//   lot-2  It is short.\nint a;\n"}

    def test_a_citation_resolves(self):
        self.assert_none({**self.LOT, "src/a.cpp": "// By lot-2 and UTF-8.\n", "docs/a.md": "See lot-1; clang-16.\n"})

    def test_a_citation_that_resolves_to_nothing_is_named(self):
        self.assert_one({**self.LOT, "src/a.cpp": "// By lot-3.\n"}, "src/a.cpp:1:", "lot-3")

    def test_an_invariant_is_stated_in_the_file_of_its_name(self):
        self.assert_one({"src/core/lot/lot.cpp": "int a;\n", "src/a.cpp": "//   lot-1  Not here.\n"}, "cites lot-1")

    def test_a_file_may_be_cited_with_the_name_of_its_folder_before_its_own(self):
        self.assert_none({"src/platform/futex/linux.cpp": "//   futex_linux-1  It sleeps.\n",
                          "src/a.cpp": "// By futex_linux-1.\n"})
        self.assert_none({"win32/src/wait.cpp": "//   win32_wait-1  It sleeps.\n",
                          "tests/a_test.cpp": "// By win32_wait-1.\n"})
        self.assert_one({"win32/src/wait.cpp": "//   win32_wait-1  It sleeps.\n",
                         "tests/a_test.cpp": "// By win32_wait-2.\n"}, "win32_wait-2")

    def test_an_invariant_is_stated_once(self):
        self.assert_one({**self.LOT, "src/core/lot/lot.hpp": "#pragma once\n", "include/tocsin/lot.hpp":
                         "//   lot-1  Once more.\n#pragma once\n"}, "lot-1 is stated in two files")

    def test_old_labels_are_refused(self):
        self.assert_one({"src/a.cpp": "// By L3.\n"}, "the label L3")
        self.assert_none({"src/a.cpp": "// The proof P3; `L3`; x86; C4073; UTF-8.\n"})


    def test_old_names_are_refused(self):
        self.assert_one({"src/a.cpp": "// The errand is done.\n"}, "the old name errand")


class Paths(TextCase):
    def test_a_file_that_is_named_exists(self):
        self.assert_none({"src/a.cpp": "// See docs/a.md and src/*.cpp, docs/decisions.\n", "docs/a.md": "",
                          "docs/decisions/1.md": ""})
        self.assert_one({"src/a.cpp": "// See docs/b.md.\n"}, "names docs/b.md")
        self.assert_one({"src/a.cpp": "// See tests/b_*.cpp.\n"}, "names tests/b_*.cpp")
        self.assert_one({"docs/a.md": "It is in `src/b.cpp`.\n"}, "names src/b.cpp")

    def test_a_link_leads_to_a_file_and_a_heading(self):
        page = "# The page\n\n## What it's, *now*\n\n## Twice\n\n## Twice\n"
        self.assert_none({"docs/a.md": page, "docs/b.md": "[a](a.md#what-its-now) [b](a.md#twice-1) [c](../docs/a.md)\n"})
        self.assert_one({"docs/b.md": "[a](a.md)\n"}, "a link to a.md")
        self.assert_one({"docs/a.md": page, "docs/b.md": "[a](a.md#thrice)\n"}, "a.md#thrice")
        self.assert_one({"docs/a.md": page + "\n[a](#thrice)\n"}, "#thrice")


class EveryFile(TextCase):
    def test_what_no_editor_should_leave(self):
        self.assert_one({"src/a.cpp": "int a; \n"}, "space at the end")
        self.assert_one({"src/a.cpp": "int a;"}, "no newline")
        self.assert_one({"src/a.cpp": "\tint a;\n"}, "a tab")
        self.assert_one({"src/a.cpp": "// TO" "DO\n"}, "a promise")
        self.assert_one({"include/a.hpp": "int a;\n"}, "#pragma once")

    def test_a_function_has_a_short_contract(self):
        def header(lines, code):
            return {"include/tocsin/a.hpp": "#pragma once\n\n" + "// A.\n" * lines + code + "\n\n\n\n"}
        self.assert_none(header(12, "void set();"))
        self.assert_one(header(13, "void set();"), "a.hpp:3: a contract of 13 lines")
        self.assert_one(header(13, "template <class Lock>\nvoid wait(Lock&);"), "a contract of 13 lines")
        self.assert_none(header(13, "template <class Word>\nclass bit_lock {};"))


if __name__ == "__main__":
    unittest.main()
