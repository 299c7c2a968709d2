// SPDX-License-Identifier: Apache-2.0
// ELF systems. Every copy of the library in a process has a record (copy_record), which names the table of waiters that
// the copy uses. Every copy also has an ELF note, which says where its record is. The dynamic linker lists all loaded
// objects with their program headers (dl_iterate_phdr), and these headers lead to the notes. The linker lists even an
// object that was loaded with RTLD_LOCAL or whose symbols are hidden. So a copy finds the other copies although it
// shares no symbol with them.
//
// Copies that sleep and queue in the same way *fit* each other. All copies that fit each other use the same table: that
// of the first of them. When a copy looks for it, the record of every copy that was initialized earlier already names a
// table, for two reasons. The dynamic linker initializes one object at a time, and a copy chooses its table before any
// other code of its object runs (constructor priority in table.cpp). The record of a copy that is not initialized yet
// names no table, so the search skips it.
#include "platform/futex/futex.hpp"
#include "platform/poller/poller.hpp"
#include "platform/shared_table/layout.hpp"
#include "platform/shared_table/shared_table.hpp"
#include "platform/shared_table/thread_slots.hpp"
#include "platform/system/system.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>

#include <dlfcn.h>
#include <link.h>
#if defined(TOCSIN_SLOTS_ARE_KEYS)
#include <pthread.h>
#endif

namespace tocsin::platform {
namespace {

struct copy_record {
    void* table;
    void* sleepers;  // null if the system keeps them
    void* doorbells;
    std::uint64_t core_layout;
    std::uint64_t platform_layout;
    void* (*slots)() noexcept;  // gives the calling thread's slots (or the keys of the slots)
};

// The kind of a copy's table of sleepers (wait_table.hpp). 0 if the system keeps the sleepers.
std::uint32_t kind_of(const void* sleepers) noexcept {
    return sleepers != nullptr ? *static_cast<const std::uint32_t*>(sleepers) : 0;
}

// Whether two copies can share a table: they sleep and queue in the same way.
bool fit(const copy_record& one, const copy_record& other) noexcept {
    return one.core_layout == other.core_layout && one.platform_layout == other.platform_layout &&
           kind_of(one.sleepers) == kind_of(other.sleepers);
}

void* own_slots() noexcept;

}  // namespace
}  // namespace tocsin::platform

extern "C" {
// The record has a C name, which the note below uses. The name is hidden, so that every copy has its own record.
extern __attribute__((visibility("hidden"))) tocsin::platform::copy_record tocsin_copy_record;
__attribute__((used)) constinit tocsin::platform::copy_record tocsin_copy_record{
    nullptr, nullptr, nullptr, 0, tocsin::platform::shared_layout, tocsin::platform::own_slots};
}

// A note has five fields: the size of its name, the size of its descriptor, its type, its name, and its descriptor. The
// descriptor of this one is the distance from itself to the record.
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

// Returns the record to which tocsin's note in this segment points, or null if the segment has no such note.
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
    copy_record* found = nullptr;  // the record of the first copy that fits and has chosen a table
    const char* file = nullptr;    // the file of that copy; empty for the program itself
    bool has_stranger = false;     // whether there is a copy that does not fit
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

#if defined(TOCSIN_SLOTS_ARE_KEYS)

namespace {

pthread_key_t own_keys[thread_slots];
pthread_key_t* keys = own_keys;

void* own_slots() noexcept { return keys; }

void adopt_slots(const copy_record* first) noexcept {
    if (first != nullptr) {
        keys = static_cast<pthread_key_t*>(first->slots());
        return;
    }
    for (pthread_key_t& each : own_keys) {
        if (::pthread_key_create(&each, nullptr) != 0)
            die("tocsin: the system has no thread-specific key left\n");
    }
}

}  // namespace

void* slot_of_this_thread(thread_slot which) noexcept {
    return ::pthread_getspecific(keys[static_cast<unsigned>(which)]);
}
void set_slot_of_this_thread(thread_slot which, void* to) noexcept {
    if (::pthread_setspecific(keys[static_cast<unsigned>(which)], to) != 0) die("tocsin: out of memory\n");
}
std::uintptr_t thread_mark() noexcept { return reinterpret_cast<std::uintptr_t>(::pthread_self()); }

#else

TOCSIN_STATIC_BLOCK constinit thread_local thread_block own_thread_block{};
constinit std::uintptr_t distance_to_first_block = 0;

namespace {

void* own_slots() noexcept { return &block_in_use(); }

void adopt_slots(const copy_record* first) noexcept {
    if (first == nullptr) return;
    distance_to_first_block = reinterpret_cast<std::uintptr_t>(first->slots()) -
                              reinterpret_cast<std::uintptr_t>(&own_thread_block);
}

}  // namespace

#endif

void* adopt_first_copy(void* own, std::uint64_t layout) noexcept {
    tocsin_copy_record.core_layout = layout;
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
    adopt_slots(result.found);
    if (result.found == nullptr) return tocsin_copy_record.table = own;
    // The table is in the object of the copy found, or in an object that the copy found keeps loaded. So the copy found
    // must never be unloaded.
    if (result.file != nullptr && result.file[0] != '\0') {
        ::dlopen(result.file, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }
    if (sleepers != nullptr) tocsin_copy_record.sleepers = *sleepers = result.found->sleepers;
    tocsin_copy_record.doorbells = poller::shared_state() = result.found->doorbells;
    return tocsin_copy_record.table = result.found->table;
}

}  // namespace tocsin::platform
