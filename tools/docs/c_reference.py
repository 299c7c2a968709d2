# SPDX-License-Identifier: Apache-2.0
"""A page of the reference from a header of C: its sections, each with its comments as text and its declarations as
code, in the header's order. A section begins with a line of the form `// ---- Title ----`."""

from __future__ import annotations

import re
from pathlib import Path

from reference import prose

SECTION = re.compile(r"^// -{4} (.*?) -+$", re.MULTILINE)
MARKERS = re.compile(r"\bTOCSIN_(?:C_API|WIN32_API|ALIGNED_8) | TOCSIN_INT\b")
FAR_RIGHT = re.compile(r"^ {16,}", re.MULTILINE)  # arguments that are aligned behind a marker
NOT_SHOWN = re.compile(r"_Static_assert\b|#undef\b")  # what says nothing to a caller


def markdown(header: Path, text: str) -> str:
    text = with_line_comments(text)
    about = text.partition("\n#ifndef ")[0]
    lines = [f"# {included_as(header)}", "", "```c", f"#include <{included_as(header)}>", "```", "", prose(uncommented(about)), ""]
    sections = SECTION.split(for_c(text[SECTION.search(text).start():]))[1:]
    for title, section in zip(sections[::2], sections[1::2], strict=True):
        lines += [f"## {title}", "", *paragraphs(section)]
    return "\n".join(lines).rstrip() + "\n"


def included_as(header: Path) -> str:
    return header.as_posix().rpartition("/include/")[2]


def with_line_comments(text: str) -> str:
    """Each comment /* ... */ that begins a line becomes comments of the form // ..."""
    return re.sub(r"^/\*(.*?)\*/$", lambda found: re.sub(r"^ ?\*?(?: |$)?", "// ", found[1].strip(), flags=re.MULTILINE),
                  text, flags=re.MULTILINE | re.DOTALL)  # fmt: skip


def uncommented(lines: str) -> str:
    kept = [line[2:].removeprefix(" ") for line in lines.splitlines() if "SPDX-License-Identifier" not in line]
    return "\n".join(line.rstrip() for line in kept)


def for_c(body: str) -> str:
    """Without what only a compiler of C++ reads, and without the ends of conditions that began before."""
    kept: list[str] = []
    conditions: list[bool | None] = []  # for each open one: whether C takes this branch; None: both are shown
    for line in body.splitlines():
        directive = re.match(r"#\s*(if\w*|else|elif|endif)\b(.*)", line)
        if directive and directive[1].startswith("if"):
            conditions.append(False if directive[1] == "ifdef" and "__cplusplus" in directive[2] else None)
        is_shown = False not in conditions and not (directive and (not conditions or conditions[-1] is not None))
        if directive and conditions and conditions[-1] is not None and directive[1] == "else":
            conditions[-1] = not conditions[-1]
        if is_shown:
            kept.append(line)
        if directive and directive[1] == "endif" and conditions:
            conditions.pop()
    return "\n".join(kept)


def paragraphs(section: str) -> list[str]:
    """Of each, the declarations, and then the comment above them."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n(?=\S)", section.strip()):
        for comment, code in re.findall(r"((?:^//.*\n?)*)((?:^(?!//).*\n?)*)", paragraph, re.MULTILINE):
            if code.strip() and not NOT_SHOWN.match(code):
                lines += ["```c", FAR_RIGHT.sub(" " * 8, MARKERS.sub("", code.rstrip())), "```", ""]
            if comment.strip():
                lines += [prose(uncommented(comment)), ""]
    return lines
