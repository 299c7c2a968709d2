# SPDX-License-Identifier: Apache-2.0
"""Every kind of package that packaging/ describes: built, looked at, and used by a stranger's program (stage
`packages`)."""

import filecmp
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from email.utils import parsedate_to_datetime
from pathlib import Path

from dev.needs import python_with
from dev.run import Count, one, quietly, run_workflow
from dev.tree import BUILD, ENVIRONMENT, JOBS, ROOT, say

PACKAGING = ROOT / "packaging"
WORK = BUILD / "packages"
STRANGER = ROOT / "tests" / "consumer"
# What a library needs of the tree.
PARTS = ("CMakeLists.txt", "LICENSE", "cmake", "include", "src", "tools", "win32")
# Until the project is published, it has no address and no number of an intent to package.
NOT_YET = "bogus-mail-host,bogus-mail-host-in-debian-changelog,initial-upload-closes-no-bugs"
# ccache would make two builds the same.
PLAIN = {name: value for name, value in ENVIRONMENT.items() if not name.endswith("_COMPILER_LAUNCHER")}


def version():
    return re.search(r"\n    VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


def packaging_python():
    return python_with(PACKAGING / "requirements.txt")


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def copy_parts(folder, parts=PARTS):
    for part in parts:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, dirs_exist_ok=True)
        else:
            shutil.copy(ROOT / part, folder)


def complaint(title, wrong):
    """One check, which `wrong` (a text, or nothing) decides."""
    say(f"  {title:<12} {'':>8}  {f'FAILED: {wrong}' if wrong else 'ok'}")
    return one(not wrong)


# The shared library and the archive


def foreign_exports(library):
    """What a shared library exports besides names of tocsin under its version."""
    output = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    version_node = f"TOCSIN_{version().rpartition('.')[0]}"
    names = [line.split()[-1] for line in output.splitlines()]
    ours = re.compile(rf"(tocsin_\w+|_ZNK?6tocsin\w+|_ZT[ISV]N6tocsin\w+)@@{version_node}")
    return [name for name in names if not ours.fullmatch(name) and name.partition("@")[0] != version_node]


def build_library(source, folder, *options):
    command = ["cmake", "-S", source, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
               "-DTOCSIN_WIN32=ON", *options]
    return (quietly("configure", command, "packages-library", environment=PLAIN)
            and quietly("build", ["cmake", "--build", folder, "--", f"-j{JOBS}"], "packages-library",
                        environment=PLAIN))


def belongs_to_no_component(folder):
    """Whether an install rule of this build names no component."""
    return any("Unspecified" in script.read_text() for script in folder.rglob("cmake_install.cmake")
               if "_deps" not in script.parts)


def files_in(path):
    """The names of the files in an archive, without its outermost folder."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as packed:
            names = [name for name in packed.namelist() if not name.endswith("/")]
    else:
        with tarfile.open(path) as packed:
            names = [member.name for member in packed if not member.isdir()]
    return {name.partition("/")[2] for name in names}


def archive():
    """The shared library's exports and name; what cpack packs: .tar.gz, .zip, and the sources."""
    folder = fresh(WORK / "archive")
    if not build_library(ROOT, folder, "-DBUILD_SHARED_LIBS=ON"):
        return Count(failed=1)
    library = next((folder / "src").glob("libtocsin.so.*.*.*"))
    foreign = foreign_exports(library)
    count = complaint("exports", f"{library.name} exports {', '.join(foreign)}" if foreign else "")
    soname = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    wanted = f"[libtocsin.so.{version().rpartition('.')[0]}]"
    count += complaint("soname", "" if f"Library soname: {wanted}" in soname else f"the soname is not {wanted}")
    binary, source = folder / "CPackConfig.cmake", folder / "CPackSourceConfig.cmake"
    if not (quietly("cpack", ["cpack", "--config", binary, "-G", "TGZ;ZIP", "-B", folder / "binary"], "packages-cpack")
            and quietly("its sources", ["cpack", "--config", source, "-B", folder / "source"], "packages-cpack-source")):
        return count + Count(failed=1)
    packed = files_in(next((folder / "binary").glob("tocsin-*.tar.gz")))
    missing = {"include/tocsin/tocsin.hpp", f"lib/{library.name}", "lib/pkgconfig/tocsin.pc",
               "lib/cmake/tocsin/tocsin-config.cmake", "include/tocsin/win32.h", "include/tocsin/win32/types.h",
               "include/tocsin/win32/wide_names.h", "lib/pkgconfig/tocsin-win32.pc",
               "share/tocsin/tocsin_gdb.py"} - packed
    count += complaint("archive", f"lacks {', '.join(sorted(missing))}" if missing else "")
    other = packed ^ files_in(next((folder / "binary").glob("tocsin-*.zip")))
    count += complaint("zip", f"only one archive has {', '.join(sorted(other))}" if other else "")
    other = set(known_to_git()) ^ files_in(next((folder / "source").glob(f"tocsin-{version()}.tar.gz")))
    count += complaint("sources", f"only git or the archive has {', '.join(sorted(other))}" if other else "")
    return count + complaint("components", "a file belongs to none" if belongs_to_no_component(folder) else "")


def different_files(one_tree, other_tree):
    """The files that are not the same in both, or only in one."""
    files = {path.relative_to(tree) for tree in (one_tree, other_tree) for path in tree.rglob("*") if path.is_file()}
    return sorted(str(path) for path in files
                  if not ((one_tree / path).is_file() and (other_tree / path).is_file()
                          and filecmp.cmp(one_tree / path, other_tree / path, shallow=False)))


def reproducible():
    """Two builds in different folders install the same bytes."""
    trees = []
    for place in (WORK / "here", WORK / "there" / "in a longer path"):
        copy_parts(fresh(place / "source"))
        for shared in ("ON", "OFF"):
            if not build_library(place / "source", place / f"build-{shared}", f"-DBUILD_SHARED_LIBS={shared}"):
                return Count(failed=1)
            subprocess.run(["cmake", "--install", place / f"build-{shared}", "--prefix", place / "tree" / shared],
                           check=True, stdout=subprocess.DEVNULL)
        trees.append(place / "tree")
    different = different_files(*trees)
    return complaint("same bytes", f"these files differ: {', '.join(different)}" if different else "")


# Conan, vcpkg, Meson


def conan():
    """The recipe, static and shared; its own test builds and runs a stranger."""
    program = packaging_python().parent / "conan"
    environment = {**PLAIN, "CONAN_HOME": str(WORK / "conan")}
    if not quietly("profile", [program, "profile", "detect", "--force"], "packages-conan", environment=environment):
        return Count(failed=1)
    count = Count()
    for shared in ("False", "True"):
        count += one(quietly("conan", [program, "create", PACKAGING / "conan", "--no-remote", "-s", "compiler.cppstd=20",
                                       "-o", f"&:shared={shared}", "-o", f"&:counters={shared}",
                                       "-c", f"tools.cmake.cmake_layout:test_folder={WORK / 'conan-test'}"],
                             f"packages-conan-{shared}", environment=environment))
    return count


def vcpkg():
    """The port, with stand-ins for vcpkg's functions."""
    script = PACKAGING / "vcpkg" / "stand_ins.cmake"
    return one(quietly("vcpkg", ["cmake", f"-DWORK={WORK / 'vcpkg'}", "-DSHARED=OFF", "-DFEATURES=checked", "-P", script],
                       "packages-vcpkg"))


def meson():
    """The wrap, in a stranger's project."""
    program = packaging_python().parent / "meson"
    folder = fresh(WORK / "meson")
    shutil.copytree(PACKAGING / "meson" / "test", folder, dirs_exist_ok=True)
    shutil.copy(STRANGER / "main.cpp", folder)
    wrap = PACKAGING / "meson" / "tocsin.wrap"
    place = re.search(r"^directory = (.*)$", wrap.read_text(), re.MULTILINE)[1]
    copy_parts(fresh(folder / "subprojects" / place))
    shutil.copy(wrap, folder / "subprojects")
    environment = {**PLAIN, "PATH": f"{program.parent}{os.pathsep}{PLAIN['PATH']}"}
    return one(quietly("setup", [program, "setup", folder / "build", folder], "packages-meson", environment=environment)
               and quietly("meson", [program, "test", "-C", folder / "build"], "packages-meson-test",
                           environment=environment))


# Debian


def known_to_git():
    """The files that git knows or could know."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted(name for name in names if name and (ROOT / name).is_file())


def files_of_the_tree():
    """The files of a release."""
    return [name for name in known_to_git() if not name.startswith("packaging/debian/")]


def write_orig(path, prefix):
    """The archive of the sources, whose bytes depend on the sources alone. All files have the date of the package."""
    entry = re.search(r"^ -- .*>  (.*)$", (PACKAGING / "debian" / "changelog").read_text(), re.MULTILINE)[1]
    date = int(parsedate_to_datetime(entry).timestamp())

    def plain(member):
        member.uid = member.gid = 0
        member.mtime = date
        member.uname = member.gname = ""
        member.mode = 0o755 if member.mode & 0o100 else 0o644
        return member

    with tarfile.open(path, "w:xz", format=tarfile.USTAR_FORMAT) as packed:
        for name in files_of_the_tree():
            packed.add(ROOT / name, f"{prefix}/{name}", filter=plain)


def build_debian(folder, *options, orig=None):
    """The source package and its binary packages, built in a folder; from this archive of the sources, if one is given,
    because somebody may edit the tree between two builds."""
    fresh(folder)
    name = f"tocsin-{version()}"
    archive_path = folder / f"tocsin_{version()}.orig.tar.xz"
    if orig:
        shutil.copy(orig, archive_path)
    else:
        write_orig(archive_path, name)
    with tarfile.open(archive_path) as packed:
        packed.extractall(folder)
    shutil.copytree(PACKAGING / "debian", folder / name / "debian")
    environment = {**PLAIN, "DEB_BUILD_OPTIONS": f"parallel={JOBS}"}
    command = ["env", "-C", folder / name, "dpkg-buildpackage", "--no-sign", *options]
    return quietly("debian", command, f"packages-debian-{folder.name}", environment=environment)


# A copy of this machine's file system in memory, in which the packages are installed and tested; it is gone afterwards.
IN_A_COPY = """
set -e
root=$1 debs=$2
mount -t tmpfs tmpfs "$root"
mkdir "$root/upper" "$root/work" "$root/all"
mount -t overlay -o "lowerdir=/,upperdir=$root/upper,workdir=$root/work" overlay "$root/all"
mount --rbind /dev "$root/all/dev"
mount --rbind /proc "$root/all/proc"
mount -t tmpfs tmpfs "$root/all/tmp"
mkdir "$root/all/packages"
cp "$debs"/*.deb "$debs"/*.dsc "$debs"/*.tar.xz "$root/all/packages"
exec chroot "$root/all" sh -c 'cd /packages && exec autopkgtest --no-built-binaries *.deb *.dsc -- null'
"""


def autopkgtest(folder):
    """The packages' own tests. They install the packages, so they run in a copy of the machine, which takes root."""
    if os.geteuid() != 0:
        say("  autopkgtest: skipped, because only root may install packages")
        return Count(skipped=1)
    command = ["unshare", "--mount", "sh", "-c", IN_A_COPY, "sh", fresh(WORK / "copy"), folder]
    return one(quietly("autopkgtest", command, "packages-autopkgtest", environment=PLAIN))


def debian():
    """The Debian packages, built with their tests. A second build in another folder must give the same bytes;
    lintian and autopkgtest must not complain."""
    first, second = WORK / "debian", WORK / "debian-again" / "in" / "another" / "folder"
    if not build_debian(first):
        return Count(failed=1)
    count = one(quietly("lintian", ["lintian", "--fail-on", "error,warning", "--suppress-tags", NOT_YET,
                                    "--allow-root", *first.glob("*.changes")], "packages-lintian"))
    count += autopkgtest(first)
    if not build_debian(second, "--build-profiles=nocheck", orig=next(first.glob("*.orig.tar.xz"))):
        return count + Count(failed=1)
    different = [path.name for path in sorted([*first.glob("*.deb"), *first.glob("*.tar.xz")])
                 if not filecmp.cmp(path, second / path.name, shallow=False)]
    return count + complaint("same bytes", f"these packages differ: {', '.join(different)}" if different else "")


def lint_workflow():
    """The workflow for a hosted service: its shape and its safety."""
    flow = ROOT / ".github" / "workflows"
    zizmor = packaging_python().parent / "zizmor"
    count = one(quietly("zizmor", [zizmor, "--offline", "--no-progress", flow], "packages-zizmor"))
    if not shutil.which("go"):
        say("  actionlint: skipped, because there is no Go to build it with")
        return count + Count(skipped=1)
    return count + one(quietly("actionlint", ["go", "run", "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12",
                                              *flow.glob("*.yml")], "packages-actionlint"))


def run(only=None):
    count = Count() if only else run_workflow("single-header")
    for kind in (archive, reproducible, conan, vcpkg, meson, debian, lint_workflow):
        if not only or re.search(only, kind.__name__):
            say(f"  {kind.__name__}:")
            count += kind()
    return count
