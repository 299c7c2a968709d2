# SPDX-License-Identifier: Apache-2.0
"""What the documents name: the programs of the rows "I want to ..."; the documents in the chapters of the site."""

import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from docs.chapters import CHAPTERS  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
SHORT = ROOT / "examples" / "short"
LONGEST = 60  # lines; docs/README.md says so
# With 504 words the README is 1,615 px high in GitHub's style (github-markdown-css 5.9.0, a column of 830 px, which a
# window of 1,280 px has there): one and a half screens of 1,080 px.
README_WORDS = 510


def rows(page):
    """The rows "I want to ..." of a page: of a list in the README, else of a table without its head."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if page == "README.md":
        return text.partition("**I want to")[2].split("\n\n")[1].removeprefix("- ").split("\n- ")
    return text[text.index("| I want to"):].partition("\n\n")[0].splitlines()[2:]


def programs_of(row):
    """The links of a row to short programs, as paths in the tree."""
    return [link.removeprefix("../") for link in re.findall(r"\]\(([^)]*/short/[^)]*)\)", row)]


class Programs(unittest.TestCase):
    def setUp(self):
        self.rows = rows("README.md") + rows("docs/README.md")
        self.named = [program for row in self.rows for program in programs_of(row)]

    def test_the_readme_has_eight_rows(self):
        self.assertEqual(8, len(rows("README.md")))

    def test_the_readme_is_one_and_a_half_screens(self):
        self.assertLessEqual(len((ROOT / "README.md").read_text(encoding="utf-8").split()), README_WORDS)

    def test_each_row_names_one_short_program_that_exists(self):
        self.assertGreater(len(self.rows), 20)
        for row in self.rows:
            [program] = programs_of(row)
            self.assertEqual("examples/short", Path(program).parent.as_posix(), row)
            self.assertTrue((ROOT / program).is_file(), program)

    def test_each_program_is_named_by_one_row(self):
        programs = {f"examples/short/{path.name}" for path in SHORT.iterdir() if path.suffix in (".c", ".cpp")}
        self.assertEqual(sorted(programs - {"examples/short/readme.cpp"}), sorted(self.named))

    def test_each_program_is_short_and_is_built(self):
        built = re.sub("#.*", "", (SHORT / "CMakeLists.txt").read_text(encoding="utf-8"))
        for program in self.named:
            self.assertLess(len((ROOT / program).read_text(encoding="utf-8").splitlines()), LONGEST, program)
            self.assertRegex(built, rf"\b{Path(program).stem}\b")


class Questions(unittest.TestCase):
    def test_each_answer_is_checked_by_tests_that_exist(self):
        page = (ROOT / "docs" / "coming_from_questions.md").read_text(encoding="utf-8")
        answers = [row for row in page.splitlines() if row.startswith("| ") and row[2] not in "-q"]
        self.assertGreater(len(answers), 30)
        for answer in answers:
            self.assertRegex(answer, r"\.hpp\]\(\.\./include/tocsin/\w+\.hpp\).* \| `\w+\.\w+`")
        named = re.findall(r"`(\w+)\.(\w+)`", page)
        texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "unit").glob("*_test.cpp")]
        known = {(suite, case) for text in texts
                 for suite, case in re.findall(r"^(?:TYPED_)?TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", text, re.MULTILINE)}
        self.assertEqual([], [f"{suite}.{case}" for suite, case in named if (suite, case) not in known])


class Chapters(unittest.TestCase):
    def setUp(self):
        self.listed = [page for pages in CHAPTERS.values() for page in pages]

    def test_each_document_is_in_one_chapter(self):
        folders = ("", "docs", "c/docs", "win32/docs", "lab", "proofs")
        documents = [path for folder in folders for path in (ROOT / folder).glob("*.md")]
        names = {path.relative_to(ROOT).as_posix() for path in documents} - {"README.md"}
        self.assertEqual(sorted(names | {"docs/decisions/README.md"}), sorted(self.listed))

    def test_each_document_is_linked_from_the_readme_or_from_the_list_of_documents(self):
        linked = set()
        for page in ("README.md", "docs/README.md"):
            text = (ROOT / page).read_text(encoding="utf-8")
            linked |= {(ROOT / page).parent.joinpath(target).resolve() for target in re.findall(r"\]\(([^)#:]+)", text)}
        self.assertEqual([], [page for page in self.listed if ROOT / page not in linked])

    def test_the_readme_says_how_to_report_a_weakness(self):
        self.assertIn("(SECURITY.md)", (ROOT / "README.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
