// SPDX-License-Identifier: Apache-2.0
// Static thread-local storage is scarce (docs/decisions/0006-copies-share-a-lot.md). This program loads a plug-in that
// contains a copy of the library, and reads from its program headers how much of that storage the copy takes.
//
//     static_tls <plug-in>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include <dlfcn.h>
#include <link.h>

namespace {

constexpr std::size_t promised = 56;

struct search {
    const char* file;
    bool found = false;
    std::size_t size = 0;
};

int look_at(dl_phdr_info* object, std::size_t, void* with) {
    auto& wanted = *static_cast<search*>(with);
    if (std::strcmp(object->dlpi_name, wanted.file) != 0) return 0;
    wanted.found = true;
    for (int i = 0; i != object->dlpi_phnum; ++i) {
        if (object->dlpi_phdr[i].p_type == PT_TLS) wanted.size = object->dlpi_phdr[i].p_memsz;
    }
    return 1;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return 2;
    if (dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    search plugin{arguments[1]};
    dl_iterate_phdr(look_at, &plugin);
    std::printf("%s: %zu bytes of thread-local storage, at most %zu\n", arguments[1], plugin.size, promised);
    // Every copy has slots of threads, so a size of 0 means that the headers were misread.
    return plugin.found && plugin.size != 0 && plugin.size <= promised ? 0 : 1;
}
