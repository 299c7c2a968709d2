# SPDX-License-Identifier: Apache-2.0
"""What a machine must have: Debian packages, Python packages, and how to see whether they are there."""

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from dev.tree import BUILD, ENVIRONMENT, ROOT, TOOLS, VENV, Refusal, say, use_compiler_cache


@dataclass
class Need:
    """Something outside the tree: where Debian has it, and how to see whether it is there."""

    what: str
    package: str
    present: object


def compiler():
    return os.environ.get("CXX", "c++")


def on_path(program):
    return lambda: shutil.which(program) is not None


def compiler_finds(header):
    probe = [compiler(), "-E", "-x", "c++", "-include", header, os.devnull]
    return lambda: (on_path(compiler())()
                    and subprocess.run(probe, capture_output=True, check=False).returncode == 0)


def pkg_config_finds(module):
    probe = ["pkg-config", "--exists", module]
    return lambda: on_path(probe[0])() and subprocess.run(probe, check=False).returncode == 0


TO_BUILD = [
    Need("a C++20 compiler", "g++", on_path(compiler())),
    Need("CMake", "cmake", on_path("cmake")),
    Need("Ninja", "ninja-build", on_path("ninja")),
    Need("pkg-config", "pkg-config", on_path("pkg-config")),
    Need("GoogleTest", "libgtest-dev", compiler_finds("gtest/gtest.h")),
]
COMPILER_CACHE = Need("ccache", "ccache", on_path("ccache"))
FOR_PYTHON = [Need("Python's venv", "python3-venv", lambda: importlib.util.find_spec("ensurepip"))]
FOR_BROWSER = [
    Need("Chromium", "chromium", on_path("chromium")),
    Need("a font", "fonts-dejavu-core", lambda: next(Path("/usr/share/fonts").rglob("*.ttf"), None)),
]


def gcc(version):
    return Need(f"GCC {version}", f"g++-{version}", on_path(f"g++-{version}"))


def clang(version):
    return Need(f"clang {version}", f"clang-{version}", on_path(f"clang++-{version}"))


def libcxx(version):
    folder = Path(f"/usr/lib/llvm-{version}")
    return [
        Need(f"libc++ {version}", f"libc++-{version}-dev", (folder / "include/c++/v1").is_dir),
        Need("its ABI library", f"libc++abi-{version}-dev", (folder / "lib/libc++abi.a").is_file),
    ]


CLANG = clang(19)
LIBCXX = libcxx(19)
FOR_CLANG = [
    CLANG,
    Need("its sanitizers", "libclang-rt-19-dev", lambda: next(Path("/usr/lib/llvm-19/lib/clang/19/lib").rglob("libclang_rt.tsan*.a"), None)),
]
FOR_TARGETS = [
    Need("GoogleTest's source", "googletest", Path("/usr/src/googletest/googletest/CMakeLists.txt").is_file),
]
QEMU = Need("qemu's user emulation", "qemu-user-static", on_path("qemu-aarch64-static"))
DEBOOTSTRAP = Need("debootstrap", "debootstrap", on_path("debootstrap"))


def for_processor(about, triplet, emulated):
    return [*FOR_TARGETS, *([QEMU] if emulated else []),
            Need(f"a compiler for {about}", f"g++-{triplet}", on_path(f"{triplet}-g++"))]


FOR_WASM = [
    *FOR_TARGETS,
    Need("Emscripten", "emscripten", on_path("em++")),
    CLANG,
    Need("Node", "nodejs", on_path("node")),
]
WINE = [
    Need("Wine", "wine", on_path("wine")),
    Need("64-bit Wine", "wine64", Path("/usr/lib/wine/wine64").is_file),
]
FOR_WINDOWS = [
    Need("MinGW-w64", "g++-mingw-w64-x86-64-posix", on_path("x86_64-w64-mingw32-g++-posix")),
    Need("its thread model win32", "g++-mingw-w64-x86-64-win32", on_path("x86_64-w64-mingw32-g++-win32")),
    *WINE,
    *FOR_TARGETS,
]
FOR_PACKAGES = [
    Need("dpkg-dev", "dpkg-dev", on_path("dpkg-buildpackage")),
    Need("debhelper", "debhelper", on_path("dh")),
    Need("lintian", "lintian", on_path("lintian")),
    Need("autopkgtest", "autopkgtest", on_path("autopkgtest")),
]
FOR_LOOPS = [
    Need("GLib", "libglib2.0-dev", pkg_config_finds("glib-2.0")),
    Need("libuv", "libuv1-dev", pkg_config_finds("libuv")),
    Need("Asio", "libasio-dev", compiler_finds("asio.hpp")),
    Need("Boost.Asio", "libboost-dev", compiler_finds("boost/asio/query.hpp")),  # headers only: 9.5 MB to fetch
]
GDB = Need("gdb", "gdb", on_path("gdb"))
FOR_DIAGNOSIS = [
    GDB,
    Need("bpftrace", "bpftrace", on_path("bpftrace")),
    Need("perf", "linux-perf", on_path("perf")),
]
FOR_ALL_EXAMPLES = [
    *FOR_LOOPS,
    Need("libpq", "libpq-dev", pkg_config_finds("libpq")),
    Need("PostgreSQL", "postgresql", lambda: any(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
         or on_path("initdb")()),
]
FOR_ALL_CONTESTANTS = [
    CLANG,
    *LIBCXX,
    Need("Abseil", "libabsl-dev", pkg_config_finds("absl_synchronization")),
    Need("Asio", "libasio-dev", compiler_finds("asio.hpp")),
    Need("Boost", "libboost-dev", compiler_finds("boost/interprocess/sync/interprocess_semaphore.hpp")),
    Need("Boost.Atomic", "libboost-atomic-dev", compiler_finds("boost/atomic.hpp")),
    Need("Boost.Fiber", "libboost-fiber-dev", compiler_finds("boost/fiber/mutex.hpp")),
    Need("concurrentqueue", "libconcurrentqueue-dev",
         compiler_finds("concurrentqueue/concurrentqueue.h")),
    Need("GLib", "libglib2.0-dev", pkg_config_finds("glib-2.0")),
    Need("libuv", "libuv1-dev", pkg_config_finds("libuv")),
    Need("nsync", "libnsync-dev", compiler_finds("nsync_note.h")),
    Need("WinPR", "libwinpr2-dev", pkg_config_finds("winpr2")),
    Need("oneTBB", "libtbb-dev", pkg_config_finds("tbb")),
    Need("Qt", "qt6-base-dev", pkg_config_finds("Qt6Core")),
    Need("Go", "golang-go", on_path("go")),
    Need("a JDK", "default-jdk-headless", on_path("javac")),
    Need("Mono", "mono-runtime", on_path("mono")),
    Need("its compiler", "mono-mcs", on_path("mcs")),
    *WINE,
    Need("its compiler", "gcc-mingw-w64-x86-64", on_path("x86_64-w64-mingw32-gcc")),
]


def may_install():
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


@functools.cache
def packages_offered():
    """The names of all packages that this system can install."""
    if not may_install() or update():
        return frozenset()
    listed = subprocess.run(["apt-cache", "pkgnames"], text=True, capture_output=True, check=False)
    return frozenset(listed.stdout.split())


def offered(needs):
    """Whether the system has all these, or can install them."""
    return all(need.present() or need.package in packages_offered() for need in needs)


def provide(needs, optional=False):
    """Installs what is missing where that is possible; elsewhere says exactly what is missing."""
    missing = [need for need in needs if not need.present()]
    if not missing:
        return
    packages = sorted({need.package for need in missing})
    if not may_install():
        for need in missing:
            print(f"missing: {need.what} (in Debian: {need.package})", file=sys.stderr)
        if optional:
            return
        raise Refusal("install these and try again")
    say(f"installing Debian packages: {' '.join(packages)}")
    failed = update() or install(packages)
    if failed and not optional:
        raise Refusal(failed)
    if failed:  # perhaps the system lacks one of them
        lacking = [package for package in packages if len(packages) == 1 or install([package])]
        print(f"not installed: {', '.join(lacking)}", file=sys.stderr)


@functools.cache
def update():
    """Fetches the lists of packages, once in a run."""
    return apt_get("update", "-q")


def install(packages):
    return apt_get("install", "-y", "-q", "--no-install-recommends", *packages)


def apt_get(*arguments):
    """Returns what went wrong, or an empty string."""
    command = ["apt-get", *arguments]
    result = subprocess.run(command, env={**ENVIRONMENT, "DEBIAN_FRONTEND": "noninteractive"}, stdin=subprocess.DEVNULL,
                            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if result.returncode == 0:
        return ""
    unknown = re.findall(r"^E: Unable to locate package (\S+)|^E: Package '(\S+)' has no installation candidate",
                         result.stdout, re.MULTILINE)
    if unknown:
        return f"this system has no package {', '.join(a or b for a, b in unknown)}"
    return f"`{' '.join(command)}` failed; is there a network?\n{result.stdout}"


def provide_for_build():
    """What every build needs. Several stages need the same objects, and ccache compiles these once; it only saves time,
    so its absence is no reason to stop."""
    provide(TO_BUILD)
    if may_install():
        provide([COMPILER_CACHE], optional=True)
    use_compiler_cache()


def local_python():
    """The Python environment inside the tree."""
    provide(FOR_PYTHON)
    python = VENV / "bin" / "python"
    made_for = VENV / "made-for"  # an environment does not survive a move
    if not python.exists() or not made_for.exists() or made_for.read_text() != str(ROOT):
        if subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=False).returncode != 0:
            raise Refusal(f"could not make a Python environment in {VENV}")
        made_for.write_text(str(ROOT))
    return python


def python_with(requirements):
    """The Python of the tree, with the packages that this requirements file pins."""
    python = local_python()
    stamp = VENV / f"{requirements.parent.name}.installed"
    if stamp.exists() and stamp.read_text() == requirements.read_text():
        return python
    say(f"installing Python packages of {requirements.relative_to(ROOT)} into {VENV.name}/")
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
               "--requirement", requirements]
    if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode != 0:
        raise Refusal(f"could not install the packages of {requirements.relative_to(ROOT)}; is there a network?")
    stamp.write_text(requirements.read_text())
    return python


def tool(name):
    """A program that tools/requirements.txt pins."""
    return python_with(TOOLS / "requirements.txt").parent / name


def provide_zig():
    """zig, a clang that brings the headers of many systems; the presets find it by this variable."""
    python_with(ROOT / "cmake" / "toolchains" / "requirements.txt")
    ENVIRONMENT["TOCSIN_ZIG"] = str(next((VENV / "lib").glob("python3*/site-packages/ziglang/zig")))


def provide_debian_11():
    """The C library of Debian 11 and its libraries, unpacked into build/debian-11; nothing of it is configured."""
    root = BUILD / "debian-11"
    stamp = root / "unpacked"
    if stamp.exists():
        return
    if os.geteuid() != 0:
        raise Refusal("debootstrap, which unpacks Debian 11, must be started as root")
    shutil.rmtree(root, ignore_errors=True)
    say("unpacking Debian 11 into build/debian-11")
    unpack = ["debootstrap", "--foreign", "--variant=minbase", "bullseye", root]
    result = subprocess.run(unpack, env=ENVIRONMENT, stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False)
    if result.returncode != 0:
        raise Refusal(f"debootstrap failed; is there a network?\n{result.stdout[-2000:]}")
    stamp.touch()


def unpack_libcxx(wheel, folder):
    """The headers and sources of libc++ and the headers of its ABI library, out of the package that brings them."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            part = re.fullmatch(r"ziglang/lib/(?:libcxx/((?:include|src)/.*)|libcxxabi/(include/.*))", name)
            if part and not name.endswith("/"):
                target = folder / (part[1] or part[2])
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))


def provide_libcxx_sources():
    """Fetches the sources that cmake/toolchains/libcxx compiles for WebAssembly."""
    requirements = ROOT / "cmake" / "toolchains" / "libcxx" / "requirements.txt"
    folder = BUILD / "libcxx"
    stamp = folder / "fetched"
    if stamp.exists() and stamp.read_text() == requirements.read_text():
        return
    shutil.rmtree(folder, ignore_errors=True)
    fetch = [local_python(), "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
             "--dest", folder, "--requirement", requirements]
    if subprocess.run(fetch, stdin=subprocess.DEVNULL, check=False).returncode != 0:
        raise Refusal(f"could not fetch {requirements.relative_to(ROOT)}; is there a network?")
    wheel = next(folder.glob("*.whl"))
    unpack_libcxx(wheel, folder)
    wheel.unlink()
    stamp.write_text(requirements.read_text())
