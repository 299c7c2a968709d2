# SPDX-License-Identifier: Apache-2.0
"""Makes the site of `./dev docs`: every document, a page for each public header, for the Python package and for each
file that a document links to, and the lab's reports. The site keeps the tree's layout, so that the documents' own links
lead to the right pages."""

from __future__ import annotations

import html
import re
import shutil
import sys
from pathlib import Path

import c_reference
import python_reference
import reference
from chapters import CHAPTERS
from sphinx.cmd.build import main as sphinx

ROOT = Path(__file__).resolve().parents[2]
HEADERS = "include/tocsin"
C_HEADERS = ("c/include/tocsin.h", "win32/include/tocsin/win32.h", "win32/include/tocsin/win32/types.h")
PYTHON_STUB = "python/tocsin/__init__.pyi"
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".h": "c", ".py": "python", ".sh": "bash", ".toml": "toml", ".json": "json",
             ".txt": "cmake", ".cmake": "cmake", ".pml": "promela", ".js": "js"}  # fmt: skip
# What the theme leaves out for people who don't see or use no mouse.
ACCESSIBLE = {
    'role="heading"': 'role="heading" aria-level="2"',
    '<aside class="sidebar-drawer"': '<aside aria-label="All pages" class="sidebar-drawer"',
    '<aside class="toc-drawer': '<aside aria-label="This page" class="toc-drawer',
    "<pre>": '<pre tabindex="0">',
}


class Site:
    def __init__(self, source: Path) -> None:
        self.source = source
        self.made: set[Path] = set()  # paths in the tree that have a page
        self.wanted: list[Path] = []  # those that still need one
        self.mistakes: list[str] = []

    def make(self) -> None:
        readme = self.text_of(ROOT / "README.md")
        for path in documents():
            self.page(path)
        while self.wanted:
            self.page(self.wanted.pop())
        (self.source / "index.md").write_text(readme + self.contents(), encoding="utf-8")

    def page(self, path: Path) -> None:
        if path in self.made:
            return
        self.made.add(path)
        if path.suffix == ".html":
            self.copy(path, self.source / "extra")
        elif path.suffix in (".svg", ".png", ".xz"):
            self.copy(path, self.source / "extra")
        elif path != ROOT / "README.md":
            to = self.source / page_of(path).relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(self.text_of(path), encoding="utf-8")

    def copy(self, path: Path, below: Path) -> None:
        to = below / path.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to)

    def text_of(self, path: Path) -> str:
        """In Markdown."""
        if path.suffix == ".md":
            return self.with_links(path.read_text(encoding="utf-8"), path)
        if is_public_header(path):
            page = reference.read(path.read_text(encoding="utf-8"))
            self.mistakes += [f"{one}: no comment explains it" for one in reference.undocumented(page, path)]
            return reference.markdown(path, page)
        name = path.relative_to(ROOT)
        if name.as_posix() in C_HEADERS:
            return c_reference.markdown(path, path.read_text(encoding="utf-8"))
        if name.as_posix() == PYTHON_STUB:
            text = path.read_text(encoding="utf-8")
            self.mistakes += [f"{one}: no docstring explains it" for one in python_reference.undocumented(path, text)]
            return python_reference.markdown(path, text)
        if path.is_dir():
            listed = "\n".join(f"- {one.name}{'/' if one.is_dir() else ''}" for one in sorted(path.iterdir())
                               if one.name[0] not in "._")  # fmt: skip
            return f"---\norphan: true\n---\n# {name}/\n\n{listed}\n"
        fence = "`" * 6
        language = LANGUAGES.get(path.suffix, "text")
        return f"---\norphan: true\n---\n# {name}\n\n{fence}{language}\n{path.read_text(encoding='utf-8')}\n{fence}\n"

    def with_links(self, text: str, path: Path) -> str:
        """Outside of code, links lead to pages."""
        parts = re.split(r"(^ *```.*?^ *```|^    .*?$|`[^`\n]+`(?!\]))", text, flags=re.MULTILINE | re.DOTALL)
        parts[::2] = [LINK.sub(lambda link: self.link(link, path), one) for one in parts[::2]]
        for tag in re.findall(r'(?:src|srcset)="([^"]+)"', text):
            self.wanted.append((path.parent / tag).resolve())
        return "".join(parts)

    def link(self, link: re.Match[str], path: Path) -> str:
        text, target = link[1], link[2]
        file, _, anchor = target.partition("#")
        if ":" in file or not file:
            return link[0]
        to = (path.parent / file).resolve()
        if not to.exists():
            self.mistakes.append(f"{path.relative_to(ROOT)}: links to {file}, which does not exist")
            return text
        self.wanted.append(to)
        if to.suffix in (".html", ".xz", ".svg"):
            return f'<a href="{html.escape(file)}">{text}</a>'
        page = self.source / page_of(to).relative_to(ROOT)
        here = self.source / page_of(path).relative_to(ROOT)
        relative = Path(relative_to(page, here.parent)).as_posix()
        return f"[{text}]({relative}{'#' + anchor if anchor else ''})"

    def contents(self) -> str:
        """The tree of pages, which the theme shows at the side."""
        headers = sorted(f"{HEADERS}/{one.name}.md" for one in public_headers())
        headers += [f"{one}.md" for one in (*C_HEADERS, PYTHON_STUB)]
        decisions = sorted(str(one.relative_to(ROOT)) for one in (ROOT / "docs/decisions").glob("0*.md"))
        chapters = {"Use it": CHAPTERS["Use it"], "Reference": headers, **CHAPTERS}
        with (self.source / "docs/decisions/README.md").open("a", encoding="utf-8") as file:
            file.write(tree("", [Path(each).name for each in decisions]))
        return "".join(tree(caption, pages) for caption, pages in chapters.items())


def tree(caption: str, pages: list[str]) -> str:
    named = f":caption: {caption}\n" if caption else ""
    return f"\n```{{toctree}}\n:hidden:\n{named}\n" + "\n".join(pages) + "\n```\n"


def documents() -> list[Path]:
    found = [one for one in ROOT.glob("*.md")] + [one for one in (ROOT / "docs").rglob("*.md")]
    found += [one for folder in ("c", "win32", "lab", "proofs", "examples", "tools", "packaging")
              for one in (ROOT / folder).rglob("*.md")]  # fmt: skip
    return sorted(found) + public_headers() + [ROOT / one for one in (*C_HEADERS, PYTHON_STUB)]


def public_headers() -> list[Path]:
    return sorted((ROOT / HEADERS).glob("*.hpp"))


def is_public_header(path: Path) -> bool:
    return path.parent == ROOT / HEADERS and path.suffix == ".hpp"


def page_of(path: Path) -> Path:
    if path == ROOT / "README.md":
        return ROOT / "index.md"
    if path.suffix == ".md":
        return path
    if path.is_dir():
        return path / "README.md" if (path / "README.md").exists() else path / "index.md"
    return path.with_name(path.name + ".md")


def relative_to(path: Path, folder: Path) -> str:
    ups = 0
    while not path.is_relative_to(folder):
        folder, ups = folder.parent, ups + 1
    return "../" * ups + path.relative_to(folder).as_posix()


def main() -> int:
    out = ROOT / "build" / "docs"
    source, site = out / "source", out / "site"
    shutil.rmtree(out, ignore_errors=True)
    (source / "extra").mkdir(parents=True)
    made = Site(source)
    made.make()
    for mistake in made.mistakes:
        print(f"docs: {mistake}", file=sys.stderr)
    for name in ("conf.py", "scorer.js"):
        shutil.copyfile(Path(__file__).with_name(name), source / name)
    shutil.copytree(Path(__file__).with_name("static"), source / "static")
    failed = sphinx(["-q", "-W", "--keep-going", "-b", "html", "-d", str(out / "cache"), str(source), str(site)])
    for page in site.rglob("*.html"):
        if (source / page.relative_to(site)).with_suffix(".md").exists() or page.name in ("search.html", "genindex.html"):
            text = page.read_text(encoding="utf-8")
            for gap, filled in ACCESSIBLE.items():
                text = text.replace(gap, filled)
            page.write_text(text, encoding="utf-8")
    if failed or made.mistakes:
        return 1
    print(f"The documents: {site / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
