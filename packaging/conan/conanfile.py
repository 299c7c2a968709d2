# SPDX-License-Identifier: Apache-2.0
"""The recipe for Conan 2: `conan create packaging/conan` in the top folder of the tree."""

import re
from pathlib import Path

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rmdir

ROOT = Path("..", "..")  # the top folder of the tree, from the recipe's


class Tocsin(ConanFile):
    name = "tocsin"
    license = "Apache-2.0"
    description = "Wakes threads: events, semaphores, channels, waits on addresses and on many things at once"
    topics = ("threads", "events", "synchronization", "coroutines", "futex")
    package_type = "library"
    settings = "os", "compiler", "build_type", "arch"
    options = {"shared": [True, False], "fPIC": [True, False], "checked": [True, False], "counters": [True, False]}
    default_options = {"shared": False, "fPIC": True, "checked": False, "counters": False}
    implements = ["auto_shared_fpic"]

    def set_version(self):
        project = Path(self.recipe_folder, ROOT, "CMakeLists.txt").read_text()
        self.version = re.search(r"\n    VERSION (\S+)", project)[1]

    def export_sources(self):
        for part in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*", "tools/gdb/*", "tools/trace/*",
                     "tools/tocsin.natvis"):
            copy(self, part, Path(self.recipe_folder, ROOT), self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.cache_variables["TOCSIN_WIN32"] = False  # the recipe exports no sources of it
        toolchain.cache_variables["TOCSIN_CHECKED"] = bool(self.options.checked)
        toolchain.cache_variables["TOCSIN_COUNTERS"] = bool(self.options.counters)
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, Path(self.package_folder, "licenses"))
        # Conan writes files of its own for CMake and pkg-config, from what package_info says.
        rmdir(self, Path(self.package_folder, "lib", "cmake"))
        rmdir(self, Path(self.package_folder, "lib", "pkgconfig"))

    def package_info(self):
        self.cpp_info.libs = ["tocsin"]
        self.cpp_info.set_property("cmake_file_name", "tocsin")
        self.cpp_info.set_property("cmake_target_name", "tocsin::tocsin")
        self.cpp_info.set_property("pkg_config_name", "tocsin")
        for option, macro in (("shared", "TOCSIN_SHARED"), ("checked", "TOCSIN_CHECKED"),
                              ("counters", "TOCSIN_COUNTERS")):
            if self.options.get_safe(option):
                self.cpp_info.defines.append(f"{macro}=1")
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread", *(["dl"] if self.settings.os == "Linux" else [])]
        if self.settings.arch == "riscv64" and self.settings.compiler == "gcc":
            self.cpp_info.system_libs.append("atomic")  # before GCC 14, atomics of a byte are calls there
