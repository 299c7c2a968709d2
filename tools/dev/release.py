# SPDX-License-Identifier: Apache-2.0
"""Everything that a release publishes, made in one folder (`./dev release`). It needs no network once the tools are
here, makes no tag, and publishes nothing."""

import hashlib
import lzma
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from dev import needs, packages
from dev.run import quietly
from dev.tree import BUILD, LAB, ROOT, TOOLS, Parser, Refusal, say

RELEASES = BUILD / "releases"


def notes_of(changelog, version):
    """This version's part of the changelog, or what is not released yet."""
    parts = re.split(r"^## \[(.+?)\].*\n", changelog, flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2]))
    if version not in found and "Unreleased" not in found:
        raise Refusal(f"CHANGELOG.md has neither a part for {version} nor an unreleased one")
    text = found.get(version, found.get("Unreleased"))
    return re.sub(r"^\[.*\]: .*\n?", "", text, flags=re.MULTILINE).strip() + "\n", version in found


def commit():
    """The commit that is released: all files must be as they are in it."""
    changes = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=False)
    if changes.returncode != 0:
        raise Refusal("release: this is no clone of git, so nobody could say which commit it is")
    if changes.stdout:
        raise Refusal(f"release: not committed: {changes.stdout.split(maxsplit=1)[1].splitlines()[0]}")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    return head.stdout.strip()


def sources(folder, name):
    """The archive of the sources, with the same bytes on every machine."""
    packages.write_orig(folder / f"{name}.tar.xz", name)
    return True


def binary(folder, name):
    """The shared library with its headers, as cpack packs it."""
    work = packages.fresh(packages.WORK / "release")
    if not packages.build_library(ROOT, work, "-DBUILD_SHARED_LIBS=ON"):
        return False
    if not quietly("cpack", ["cpack", "--config", work / "CPackConfig.cmake", "-G", "TGZ;ZIP", "-B", work / "packed"],
                   "release-cpack"):
        return False
    for path in [*(work / "packed").glob("tocsin-*.tar.gz"), *(work / "packed").glob("tocsin-*.zip")]:
        shutil.copy(path, folder)
    return True


def header(folder, _):
    """The library as a single header."""
    work = packages.fresh(packages.WORK / "release-header")
    if not quietly("header", [sys.executable, TOOLS / "amalgamate.py", work], "release-header"):
        return False
    shutil.copy(work / "tocsin.hpp", folder)
    return True


def debian(folder, _):
    """The Debian packages. Their tests are those of `./dev test packages`."""
    needs.provide(needs.FOR_PACKAGES)
    work = packages.WORK / "release-debian"
    if not packages.build_debian(work, "--build-profiles=nocheck"):
        return False
    for pattern in ("*.deb", "*.dsc", "*.debian.tar.xz", "*.orig.tar.xz"):
        for path in work.glob(pattern):
            shutil.copy(path, folder)
    return True


def site(folder, name):
    """All documents with the reference, to read without a network."""
    python = needs.python_with(TOOLS / "docs" / "requirements.txt")
    if not quietly("site", [python, TOOLS / "docs" / "site.py"], "release-site"):
        return False
    with tarfile.open(folder / f"{name}-site.tar.xz", "w:xz") as packed:
        packed.add(BUILD / "docs" / "site", f"{name}-site")
    return True


def result(folder, path):
    """A whole result of the laboratory, compressed, and its report."""
    python = needs.python_with(LAB / "requirements.txt")
    plain = path.name.removesuffix(".xz").removesuffix(".json")
    if not quietly("report", [python, LAB / "run.py", "report", path, "--out", folder / f"{plain}.html"],
                   "release-report"):
        return False
    data = path.read_bytes()
    (folder / f"{plain}.json.xz").write_bytes(data if path.suffix == ".xz" else lzma.compress(data))
    return True


PARTS = {part.__name__: part for part in (sources, binary, header, debian, site)}


def sums(folder):
    files = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def parse(arguments):
    options = Parser(prog="./dev release", description="Makes everything that a release of this commit publishes, "
                     "in build/releases/. Makes no tag, and publishes nothing.")
    options.add_argument("--without", type=lambda text: text.split(","), default=[], metavar="PART[,PART...]",
                         help=f"leaves these out: {', '.join(PARTS)}")
    options.add_argument("--result", type=Path, action="append", default=[], metavar="RESULT.json",
                         help="a result of `./dev lab --whole`, to attach with its report; may be given several times")
    given = options.parse_args(arguments)
    for name in given.without:
        if name not in PARTS:
            options.error(f"no part is named {name}; there are: {', '.join(PARTS)}")
    for path in given.result:
        if not path.is_file():
            options.error(f"{path}: No such file")
    return given


def make(given):
    """The exit code."""
    version = packages.version()
    notes, is_dated = notes_of((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    released = commit()
    name = f"tocsin-{version}"
    folder = packages.fresh(RELEASES / name)
    say(f"release {version} of commit {released[:12]}:")
    failed = [part for part in PARTS if part not in given.without and not PARTS[part](folder, name)]
    failed += [path.name for path in given.result if not result(folder, path)]
    (folder / "NOTES.md").write_text(f"# tocsin {version}\n\n{notes}", encoding="utf-8")
    (folder / "SHA256SUMS").write_text(sums(folder))
    say(f"\n{sums(folder)}")
    for part in failed:
        say(f"not made: {part}")
    if not is_dated:
        say(f"CHANGELOG.md does not name {version} yet: NOTES.md has what is unreleased")
    if not given.result:
        say("no result of the laboratory is attached: ./dev lab --whole, then --result FILE")
    say(f"Everything is in {folder.relative_to(ROOT)}. To tag this commit:\n"
        f"    git tag --sign v{version} --message \"tocsin {version}\" {released[:12]}")
    return 1 if failed else 0
