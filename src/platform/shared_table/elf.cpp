// ELF: every copy carries a note in its program headers that says where its record is. The dynamic linker lists all
// loaded objects with their headers (dl_iterate_phdr), whatever their symbols' visibility and even if they were loaded
// with RTLD_LOCAL. So a copy finds the others although no symbol is unified.
//
// The linker loads and initializes one object at a time. A copy chooses its table before any other code of its object
// runs (constructor priority in lot.cpp). So the record of every copy loaded earlier already names the first copy's
// table.
#include "platform/futex/futex.hpp"
#include "platform/poller/poller.hpp"
#include "platform/shared_table/shared_table.hpp"
#include "platform/system/system.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include <dlfcn.h>
#include <link.h>

namespace tocsin::platform {
namespace {

// The version of everything that two copies share: bucket, node, waiter, sleeper, doorbell, and their protocols.
constexpr std::uint32_t layout = 4 + (std::is_same_v<poller, posix_poller> ? 0x1'0000 : 0);

struct copy_record {
    void* table;
    void* sleepers;  // null if the system keeps them
    void* doorbells;
    std::size_t size;
    std::uint32_t layout;
};

// Whether two copies sleep and queue in the same way.
bool fit(const copy_record& one, const copy_record& other) noexcept {
    return one.layout == other.layout && one.size == other.size &&
           (one.sleepers == nullptr) == (other.sleepers == nullptr);
}

}  // namespace
}  // namespace tocsin::platform

extern "C" {
// Has a name for the note below. Hidden, so that every copy has its own.
extern __attribute__((visibility("hidden"))) tocsin::platform::copy_record tocsin_copy_record;
__attribute__((used)) constinit tocsin::platform::copy_record tocsin_copy_record{nullptr, nullptr, nullptr, 0,
                                                                                 tocsin::platform::layout};
}

// Name size, descriptor size, type; name; descriptor: the distance from there to the record.
__asm__(
    ".pushsection .note.tocsin, \"a\", %note\n"
    ".balign 4\n"
    ".long 7, 4, 1\n"
    ".asciz \"tocsin\"\n"
    ".balign 4\n"
    ".long tocsin_copy_record - .\n"
    ".popsection\n");

namespace tocsin::platform {
namespace {

// The record that tocsin's note in this segment points to; null if the segment has no such note.
copy_record* record_in(const char* segment, std::size_t size) noexcept {
    struct header {
        std::uint32_t name_size, descriptor_size, type;
    };
    constexpr auto aligned = [](std::size_t bytes) { return (bytes + 3) & ~std::size_t{3}; };
    while (size >= sizeof(header)) {
        header note;
        std::memcpy(&note, segment, sizeof note);
        const char* const name = segment + sizeof note;
        const char* const descriptor = name + aligned(note.name_size);
        const std::size_t all = sizeof note + aligned(note.name_size) + aligned(note.descriptor_size);
        if (all > size) return nullptr;
        if (note.name_size == sizeof "tocsin" && note.descriptor_size == 4 &&
            std::memcmp(name, "tocsin", sizeof "tocsin") == 0) {
            std::int32_t distance;
            std::memcpy(&distance, descriptor, sizeof distance);
            return reinterpret_cast<copy_record*>(const_cast<char*>(descriptor + distance));
        }
        segment += all;
        size -= all;
    }
    return nullptr;
}

struct search {
    copy_record* found = nullptr;  // of the first copy that fits and has chosen a table
    const char* file = nullptr;    // the file of that copy; empty for the program itself
    bool has_stranger = false;     // a copy that does not fit
    char stranger_file[256] = {};
};

int look_at(dl_phdr_info* object, std::size_t, void* context) noexcept {
    auto& result = *static_cast<search*>(context);
    for (int i = 0; i != object->dlpi_phnum; ++i) {
        const auto& segment = object->dlpi_phdr[i];
        if (segment.p_type != PT_NOTE) continue;
        copy_record* const record =
            record_in(reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr), segment.p_memsz);
        if (record == nullptr || record == &tocsin_copy_record || record->table == nullptr) continue;
        if (!fit(*record, tocsin_copy_record)) {
            result.has_stranger = true;
            std::snprintf(result.stranger_file, sizeof result.stranger_file, "%s", object->dlpi_name);
        } else if (result.found == nullptr) {
            result.found = record;
            result.file = object->dlpi_name;
        }
    }
    return 0;
}

}  // namespace

void* adopt_first_copy(void* own, std::size_t size) noexcept {
    tocsin_copy_record.size = size;
    void** const sleepers = futex::sleepers();
    tocsin_copy_record.sleepers = sleepers != nullptr ? *sleepers : nullptr;
    tocsin_copy_record.doorbells = poller::shared_state();
    search result;
    ::dl_iterate_phdr(look_at, &result);
    if (result.has_stranger) {
        char message[512];
        std::snprintf(
            message, sizeof message,
            "tocsin: this process holds two versions of tocsin that cannot share their waiters "
            "(the other is in %s). An event used through both loses wake-ups. Link one version, as a "
            "shared library.\n",
            result.stranger_file[0] != '\0' ? result.stranger_file : "the program itself");
        say(message);
    }
    if (result.found == nullptr) return tocsin_copy_record.table = own;
    // The table is in the object of the copy found, or in one that this copy keeps loaded: never unload it.
    if (result.file != nullptr && result.file[0] != '\0') {
        ::dlopen(result.file, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }
    if (sleepers != nullptr) tocsin_copy_record.sleepers = *sleepers = result.found->sleepers;
    tocsin_copy_record.doorbells = poller::shared_state() = result.found->doorbells;
    return tocsin_copy_record.table = result.found->table;
}

}  // namespace tocsin::platform
