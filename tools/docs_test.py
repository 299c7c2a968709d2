# SPDX-License-Identifier: Apache-2.0
"""The reference's reader of headers, on headers made by hand and on those of the tree."""

import re
import sys
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parent
sys.path.insert(0, str(TOOLS))
sys.path.insert(0, str(TOOLS / "docs"))  # as `./dev docs` runs them

import c_reference  # noqa: E402
import python_reference  # noqa: E402
from docs.reference import Class, markdown, prose, read, undocumented  # noqa: E402

HEADER = """// Bells.
//
//     bell one;
//
// Order
//   First in, first out.
#pragma once

#include <vector>

namespace tocsin {
namespace detail {
struct hidden {
    int secret;
};
// What bells share.
template <class T = int{3}>
class shared {
public:
    // Rings. Cost: one call.
    void ring(int times = {}) noexcept {
        if (times > 0) ring(times - 1);  // a brace: }
    }
};
}  // namespace detail

// A bell.
class TOCSIN_API bell : public detail::shared<int> {
public:
    bell() noexcept : weight_(1), names_{2} {}
    ~bell();
    friend class tower;

    // How heavy it is.
    template <class Unit>
        requires(sizeof(Unit) > 1)
    [[nodiscard]] Unit weight() const noexcept;
    int plain = 0;

    int untold() const;

    // What it sounds like.
    struct tone {
        int pitch = 0;  // in hertz
        int unexplained = 0;
    };
    struct bare {};

private:
    int weight_;
};

#if TOCSIN_CHECKED
// Tells.
void tell(const char* text = "{");
#else
void tell(const char*);
#endif

}  // namespace tocsin
"""


class ReferenceTest(unittest.TestCase):
    def setUp(self) -> None:
        self.page = read(HEADER)

    def test_shows_what_is_public(self) -> None:
        shared, bell, tell = self.page.parts
        self.assertEqual([one.name for one in (shared, bell) if isinstance(one, Class)], ["shared", "bell"])
        self.assertEqual([one.code for one in shared.members], ["void ring(int times = {}) noexcept;"])
        self.assertEqual(
            [one.code for one in bell.members if not isinstance(one, Class)],
            ["bell() noexcept;\n~bell();",
             "template <class Unit>\n    requires(sizeof(Unit) > 1)\n[[nodiscard]] Unit weight() const noexcept;\n"
             "int plain = 0;", "int untold() const;"],
        )  # fmt: skip
        self.assertEqual(tell.code, 'void tell(const char* text = "{");')

    def test_names_what_no_comment_explains(self) -> None:
        self.assertEqual(undocumented(self.page, Path("bell.hpp")), ["bell.hpp: bell: int untold() const;",
                          "bell.hpp: bell::tone: int unexplained = 0;", "bell.hpp: bell::bare"])

    def test_angle_brackets_outside_of_code_stay_text(self) -> None:
        text = prose("As the standard's <semaphore>, channel<T> and `vector<T>`:\n\n    channel<int> a;\n\na < b, <-> c")
        for expected in (r"\<semaphore>", r"channel\<T>", "`vector<T>`", "channel<int> a;", "a < b, <-> c"):
            self.assertIn(expected, text)

    def test_no_header_loses_what_is_in_angle_brackets(self) -> None:
        for path in sorted((TOOLS.parent / "include" / "tocsin").glob("*.hpp")):
            page = markdown(path, read(path.read_text()))
            outside = re.sub(r"^```.*?^```|`[^`\n]+`", "", page, flags=re.MULTILINE | re.DOTALL)
            self.assertNotRegex(outside, r"(?<!\\)<\w", path.name)

    def test_makes_headings_and_code_of_comments(self) -> None:
        self.assertEqual(prose(self.page.about).split("\n\n"),
                         ["Bells.", "```cpp\nbell one;\n```", "\n**Order**", "First in, first out."])
        text = markdown(Path("bell.hpp"), self.page)
        for expected in ("# bell.hpp\n", "## bell\n", "### weight\n", "### ring\n", "How heavy it is."):
            self.assertIn(expected, text)
        self.assertNotIn("secret", text)


C_HEADER = """// SPDX-License-Identifier: Apache-2.0
/* Bells for C.
 *
 *     bell_ring();
 */
#ifndef BELL_H
#define BELL_H

#include <stdint.h>

/* ---- Ringing ---------------------------------------------------- */

/* Rings so
 * often. */
TOCSIN_WIN32_API int bell_ring(int times,
                               int pitch);
#ifdef __cplusplus
int of_cxx();
#else
int of_c(void);
#endif
typedef enum bell_kind TOCSIN_INT {
    SMALL,

    LARGE
} bell_kind;

/* ---- Names ------------------------------------------------------ */

#ifdef UNICODE
#define ring ringW
#endif

#ifdef __cplusplus
class hidden {};
#endif
#endif /* BELL_H */
"""


class CReferenceTest(unittest.TestCase):
    def test_shows_sections_with_what_c_reads(self) -> None:
        self.assertEqual(
            c_reference.markdown(Path("/x/include/bells/bell.h"), C_HEADER),
            "# bells/bell.h\n\n```c\n#include <bells/bell.h>\n```\n\nBells for C.\n\n```cpp\nbell_ring();\n```\n\n\n"
            "## Ringing\n\n"
            "```c\nint bell_ring(int times,\n        int pitch);\nint of_c(void);\n"
            "typedef enum bell_kind {\n    SMALL,\n\n    LARGE\n} bell_kind;\n```\n\nRings so\noften.\n\n"
            "## Names\n\n```c\n#ifdef UNICODE\n#define ring ringW\n#endif\n```\n",
        )


STUB = """from typing import Union
\"\"\"Not the first statement.\"\"\"
__all__ = ["Bell", "ring", "mute"]
_Tower = Union[int, str]
class Bell(object):
    \"\"\"A bell.\"\"\"

    def __init__(self, weight: float = 1) -> None: ...
    @property
    def weight(self) -> float:
        \"\"\"In tonnes.\"\"\"
    def tune(self) -> None: ...
class _Hidden: ...
async def ring(*towers: _Tower, times: int | None = None) -> bool:
    \"\"\"Ring.

    More.
    \"\"\"
def mute() -> None: ...
def not_listed() -> None: ...
"""


class PythonReferenceTest(unittest.TestCase):
    def test_shows_public_names_with_types_and_docstrings(self) -> None:
        self.assertEqual(
            python_reference.markdown(Path("/x/bells/__init__.pyi"), '"""Bells."""\n' + STUB),
            "# The Python package bells\n\n```python\nimport bells\n```\n\nBells.\n\n"
            "## Bell\n\n```python\nclass Bell(object):\n    def __init__(self, weight: float=1) -> None: ...\n```\n\n"
            "A bell.\n\n"
            "### Bell.weight\n\n```python\n@property\ndef weight(self) -> float: ...\n```\n\nIn tonnes.\n\n"
            "### Bell.tune\n\n```python\ndef tune(self) -> None: ...\n```\n\n\n"
            "## ring\n\n```python\nasync def ring(*towers: _Tower, times: int | None=None) -> bool: ...\n```\n\n"
            "Ring.\n\nMore.\n\n"
            "## mute\n\n```python\ndef mute() -> None: ...\n```\n\n\n"
            "## Types of arguments\n\n```python\n_Tower = Union[int, str]\n```\n",
        )

    def test_names_what_no_docstring_explains(self) -> None:
        self.assertEqual(python_reference.undocumented(Path("__init__.pyi"), STUB),
                         ["__init__.pyi: the module", "__init__.pyi: Bell.tune", "__init__.pyi: mute"])


class TreeTest(unittest.TestCase):
    def test_every_public_name_of_the_python_package_is_explained(self) -> None:
        stub = TOOLS.parent / "python" / "tocsin" / "__init__.pyi"
        text = stub.read_text(encoding="utf-8")
        self.assertEqual(python_reference.undocumented(stub, text), [])
        self.assertIn("## wait_any", python_reference.markdown(stub, text))

    def test_every_public_name_is_explained(self) -> None:
        headers = sorted((TOOLS.parent / "include" / "tocsin").glob("*.hpp"))
        found = [each for one in headers for each in undocumented(read(one.read_text(encoding="utf-8")), one)]
        self.assertEqual(found, [])

    def test_a_header_of_c_shows_all_its_functions(self) -> None:
        for name, mark in (("c/include/tocsin.h", "TOCSIN_C_API"), ("win32/include/tocsin/win32.h", "TOCSIN_WIN32_API")):
            header = TOOLS.parent / name
            text = header.read_text(encoding="utf-8")
            page = c_reference.markdown(header, text)
            functions = re.findall(rf"^{mark} [^(;]*?(\w+)\(", text, re.MULTILINE)
            self.assertGreater(len(functions), 50)
            self.assertEqual([each for each in functions if f"{each}(" not in page], [])
            self.assertNotIn(mark, page)


if __name__ == "__main__":
    unittest.main()
