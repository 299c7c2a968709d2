# SPDX-License-Identifier: Apache-2.0
"""A page of the reference from a public header: its comments as text, its public declarations as code, in the header's
order. The headers are written to be read in that order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

CLASS = re.compile(r"^(?:template\s*<.*>\s*(?:requires\b.*)?)?(?:class|struct|union)\s+(?:TOCSIN_\w+\s+|\[\[.*?\]\]\s*)*"
                   r"([\w:]+)(?:\s*<.*>)?(?:\s+final)?\s*(?::\s*(.*))?$", re.DOTALL)  # fmt: skip
ACCESS = re.compile(r"(public|protected|private)\s*:(?!:)")
# Needs no comment of its own: a constructor, a destructor, an operator, another name for something, what the language
# asks of an awaiter.
PLAIN = re.compile(r"=\s*(?:default|delete)\s*;|\boperator\b|\busing\b|(?:^|\s)~\w+\(|\)\s*->|\bawait_(?:ready|suspend|resume)\(")
# A friend, a forward declaration, a member that is defined outside of its class.
NOT_SHOWN = re.compile(r"^(?:friend|static_assert)\b|^(?:template\s*<[^;]*>\s*)?(?:class|struct) [\w:]+;$|"
                       r"^[^(=]*\w(?:<\w+>)?::\w+\(")
MARKERS = re.compile(r"\b(?:TOCSIN_API|TOCSIN_NOINLINE|TOCSIN_ALWAYS_INLINE) ")


@dataclass
class Paragraph:
    """Declarations that follow each other without an empty line, and the comment above them."""

    comment: str
    code: str = ""


@dataclass
class Class:
    comment: str
    head: str
    name: str
    bases: str
    members: list[Paragraph | Class] = field(default_factory=list)


@dataclass
class Page:
    about: str
    parts: list[Paragraph | Class]


class Reader:
    """Reads declarations of one scope, one after the other. It knows as much of C++ as these headers use."""

    def __init__(self, text: str) -> None:
        self.text = without_preprocessor(text)
        self.at = 0

    def scope(self, *, in_class: bool, access: str = "public") -> list[Paragraph | Class]:
        """Until the brace that closes the scope, or the end of the text."""
        found: list[Paragraph | Class] = []
        comment, joined = "", False
        while self.at < len(self.text):
            blank = self.skip_space()
            if blank:
                comment, joined = "", False
            rest = self.text[self.at : self.at + 40]
            if not rest or rest[0] == "}":
                self.at += 1
                return found
            if rest.startswith("//"):
                comment, joined = self.comment(), False
            elif in_class and (label := ACCESS.match(rest)):
                access, comment, joined = label[1], "", False
                self.at += label.end()
            elif (one := self.declaration(comment)) is None or access != "public":
                continue
            elif isinstance(one, Class):
                found.append(one)
                comment, joined = "", False
            elif isinstance(one, list):  # a namespace
                found += one
            else:
                if joined and isinstance(found[-1], Paragraph):
                    found[-1].code += "\n" + one
                else:
                    found.append(Paragraph(comment, one))
                comment, joined = "", True
        return found

    def skip_space(self) -> bool:
        """Returns whether there was an empty line."""
        start = self.at
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.text[start : self.at].count("\n") > 1

    def comment(self) -> str:
        lines = []
        while match := re.compile(r"[ \t]*// ?(.*)\n").match(self.text, self.at):
            lines.append(match[1])
            self.at = match.end()
        return "\n".join(lines)

    def declaration(self, comment: str) -> str | Class | list[Paragraph | Class] | None:
        """Returns its text, without a function's body. None: nothing that users call."""
        start = self.at
        depth = 0
        while parameters := re.compile(r"template\s*<|\s*requires\s+(?=\()").match(self.text, self.at):
            self.at = parameters.end() - 1
            self.skip_angles() if self.text[self.at] == "<" else self.skip_braces()
        while self.at < len(self.text):
            char = self.text[self.at]
            if self.text.startswith("//", self.at):
                self.at = self.text.index("\n", self.at)
                continue
            if char in "([":
                depth += 1
            elif char in ")]":
                depth -= 1
            elif char in "\"'" and not self.text[self.at - 1].isalnum():
                self.skip_literal(char)
                continue
            elif depth == 0 and char == ";":
                self.at += 1
                return self.whole(start)
            elif depth == 0 and char == ":" and self.starts_initializers(start):
                head = self.text[start : self.at]
                self.skip_initializers()
                return self.cleaned(start, head.rstrip() + ";")
            elif depth == 0 and char == "{":
                return self.braced(start, comment)
            self.at += 1
        return None

    def braced(self, start: int, comment: str) -> str | Class | list[Paragraph | Class] | None:
        head = self.text[start : self.at].strip()
        if head.startswith(("namespace", "inline namespace", "extern")):
            self.at += 1
            inner = self.scope(in_class=False)
            return inner if "detail" not in head else used_by_others(inner)
        if head.startswith("enum") or re.search(r"\bconcept\b|[^=!<>]=\s*$|=\s*requires|=\s*\[", head):
            self.skip_braces()
            return self.rest_of(start)
        if kind := CLASS.match(head):
            self.at += 1
            members = self.scope(in_class=True, access="private" if re.search(r"(?:^|>\s*)class\b", head) else "public")
            self.at = self.text.index(";", self.at) + 1
            if "::" in kind[1]:  # a private class, defined later
                return None
            return Class(comment, MARKERS.sub("", head), kind[1], kind[2] or "", members)
        if not head.endswith((")", "const", "noexcept", "requires", "override")) and "(" not in head:
            self.skip_braces()  # an initializer
            return self.rest_of(start)
        self.skip_braces()
        return self.cleaned(start, head + ";")

    def rest_of(self, start: int) -> str | None:
        self.at = self.text.index(";", self.at) + 1
        return self.whole(start)

    def whole(self, start: int) -> str | None:
        end_of_line = self.text.find("\n", self.at)
        trailing = self.text[self.at : end_of_line]
        if trailing.strip().startswith("//"):
            self.at = end_of_line
        return self.cleaned(start, self.text[start : self.at])

    def cleaned(self, start: int, text: str) -> str | None:
        if NOT_SHOWN.search(text):
            return None
        indent = start - self.text.rfind("\n", 0, start) - 1
        return MARKERS.sub("", dedent(" " * indent + text)).rstrip()

    def starts_initializers(self, start: int) -> bool:
        before, after = self.text[start : self.at], self.text[self.at : self.at + 2]
        return after != "::" and not before.endswith(":") and bool(re.search(r"\)[\s\w]*$", before))

    def skip_initializers(self) -> None:
        while True:
            self.at = min(at for at in (self.text.find("(", self.at), self.text.find("{", self.at)) if at >= 0)
            self.skip_braces()
            tail = re.compile(r"\s*([,{])").match(self.text, self.at)
            if tail is None or tail[1] == "{":
                break
        self.at = self.text.index("{", self.at)
        self.skip_braces()

    def skip_braces(self) -> None:
        """From an opening bracket to behind the one that closes it."""
        depth = 0
        while True:
            char = self.text[self.at]
            if self.text.startswith("//", self.at):
                self.at = self.text.index("\n", self.at)
                continue
            if char in "\"'" and not self.text[self.at - 1].isalnum():
                self.skip_literal(char)
                continue
            depth += (char in "({[") - (char in ")}]")
            self.at += 1
            if depth == 0:
                return

    def skip_angles(self) -> None:
        depth = 0
        while True:
            if self.text[self.at] in "({[":
                self.skip_braces()
                continue
            depth += (self.text[self.at] == "<") - (self.text[self.at] == ">")
            self.at += 1
            if depth == 0:
                self.skip_space()
                return

    def skip_literal(self, quote: str) -> None:
        self.at += 1
        while self.text[self.at] != quote:
            self.at += 2 if self.text[self.at] == "\\" else 1
        self.at += 1


@dataclass
class Hidden(Class):
    """A class of a detail namespace: shown only where a public name stands for it."""


def used_by_others(inner: list[Paragraph | Class]) -> list[Paragraph | Class]:
    return [Hidden(**vars(one)) for one in inner if isinstance(one, Class)]


def without_preprocessor(text: str) -> str:
    """With the first branch of each condition."""
    kept, conditions = [], []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if directive := re.match(r"\s*#\s*(\w+)", line):
            if directive[1].startswith("if"):
                conditions.append(True)
            elif directive[1] in ("else", "elif"):
                conditions[-1] = False
            elif directive[1] == "endif":
                conditions.pop()
        elif all(conditions):
            kept.append(line)
    return "\n".join(kept) + "\n"


def read(header: str) -> Page:
    about, _, body = header.partition("#pragma once")
    lines = [line[3:] if line.startswith("// ") else line[2:] for line in about.splitlines()
             if line.startswith("//") and "SPDX-License-Identifier" not in line]  # fmt: skip
    parts = Reader(body).scope(in_class=False)
    return Page("\n".join(lines), wanted(parts, body))


def wanted(parts: list[Paragraph | Class], body: str) -> list[Paragraph | Class]:
    """Without hidden classes that no public name stands for."""
    shown = {name for one in parts if not isinstance(one, Hidden)
             for name in re.findall(r"detail::(\w+)", one.bases if isinstance(one, Class) else aliases(one.code))}
    return [one for one in parts if not isinstance(one, Hidden) or (one.name in shown and one.comment)]


def aliases(code: str) -> str:
    return "\n".join(line for line in code.splitlines() if "using " in line)


# Rendering


def markdown(header: Path, page: Page) -> str:
    lines = [f"# {header.name}", "", "```cpp", f"#include <tocsin/{header.name}>", "```", "", prose(page.about), ""]
    for one in page.parts:
        lines += part(one, 2)
    return "\n".join(lines).rstrip() + "\n"


def part(one: Paragraph | Class, level: int) -> list[str]:
    """The declaration comes first, then what its comment says."""
    comment = [prose(one.comment), ""] if one.comment.strip() else []
    if isinstance(one, Paragraph):
        name = name_of(one.code) if comment else ""
        return ([f"{'#' * level} {name}", ""] if name else []) + ["```cpp", one.code, "```", "", *comment]
    lines = [f"{'#' * level} {one.name}", "", "```cpp", one.head + ";", "```", "", *comment]
    for member in one.members:
        lines += part(member, level + 1)
    return lines


def name_of(code: str) -> str:
    """The name of the first thing that is declared, or "" if that is a constructor or an operator."""
    code = re.sub(r"//.*", "", code)
    if PLAIN.search(statements(code)[0]):
        return ""
    code = re.sub(r"\[\[.*?\]\]", "", code)
    while (shorter := re.sub(r"<[^<>]*>", "", code)) != code:
        code = shorter
    if kind := re.match(r"\s*enum class (\w+)", code):
        return kind[1]
    code = re.sub(r"\b(?:requires|noexcept|explicit)\s*\((?:[^()]|\([^()]*\))*\)", "", code)
    before = re.split(r"[(;={]", code)[0].split()
    return before[-1].lstrip("*&") if len(before) > 1 else ""


def prose(comment: str) -> str:
    """Markdown. In comments, a line followed by indented text is a heading, and text indented by four is code."""
    lines = comment.splitlines()
    out: list[str] = []
    index, is_under_heading = 0, False
    while index < len(lines):
        line = lines[index]
        if re.match(r" {4}", line) and (not out or not out[-1].strip()) and not in_list(out, line):
            block = []
            while index < len(lines) and (not lines[index].strip() or lines[index].startswith("    ")):
                block.append(lines[index])
                index += 1
            out += ["```" + ("cpp" if not is_shell(block) else "text"), dedent("\n".join(block)).rstrip(), "```", ""]
            continue
        following = lines[index + 1] if index + 1 < len(lines) else ""
        if re.match(r"[A-Z]", line) and re.match(r" {2}\S", following) and not line.rstrip().endswith((".", ",", ":")):
            out += ["", f"**{line.strip()}**", ""]
            is_under_heading = True
        elif is_under_heading and line.startswith("  "):
            out.append(line[2:])
        else:
            is_under_heading = is_under_heading and not line.strip()
            out.append(line)
        index += 1
    return as_text("\n".join(out))


def as_text(markdown: str) -> str:
    """Outside of code, a `<` begins no tag: the standard's <semaphore> is text."""
    parts = re.split(r"(^```.*?^```|`[^`\n]+`)", markdown, flags=re.MULTILINE | re.DOTALL)
    parts[::2] = [re.sub(r"<(?=[\w/!])", r"\<", one) for one in parts[::2]]
    return "".join(parts)


def in_list(out: list[str], line: str) -> bool:
    """Whether a line continues an item of a list, which is indented too."""
    before = next((one for one in reversed(out) if one.strip()), "")
    return bool(re.match(r"\s*- |\s+\S", before)) and not line.startswith("     ")


def is_shell(block: list[str]) -> bool:
    return all(not re.search(r"[;{(]", line) for line in block)


def undocumented(page: Page, header: Path) -> list[str]:
    """The public names that no comment explains. The header's first comment explains the class of its name, and a
    class's comment its constructors."""
    found = []
    for one in page.parts:
        found += unexplained_in(one, header.stem) if isinstance(one, Class) else unexplained(one, "")
    return [f"{header.name}: {each}" for each in found]


def unexplained_in(one: Class, explained: str, outer: str = "") -> list[str]:
    """In a class and the classes in it. `explained` is the name of a class that needs no comment of its own."""
    name = f"{outer}{one.name}"
    found = [name] if not one.comment.strip() and one.name != explained else []
    for each in one.members:
        if isinstance(each, Class):
            found += unexplained_in(each, "", f"{name}::")
        else:
            found += [f"{name}: {line}" for line in unexplained(each, one.name)]
    return found


def unexplained(one: Paragraph, of: str) -> list[str]:
    if one.comment.strip():
        return []
    makes = re.compile(rf"(?:^|\s){of}\(") if of else PLAIN
    lines = [each for each in statements(one.code) if not PLAIN.search(each) and not makes.search(each)]
    return [each.strip().splitlines()[0] for each in lines if "//" not in each]


def statements(code: str) -> list[str]:
    """With the comment at the end of each."""
    found: list[str] = []
    open_ = False
    for line in code.splitlines():
        if open_:
            found[-1] += "\n" + line
        else:
            found.append(line)
        open_ = not re.search(r";\s*(//.*)?$", line)
    return found
