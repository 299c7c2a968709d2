// SPDX-License-Identifier: Apache-2.0
// Nothing here is concurrent within a process. Between processes: open_or_create() opens the name or makes it, in one
// system call, and then reserves memory, which never shrinks a file. So it does not matter who made the name, nor
// whether that process died before it reserved the memory.
//
// Checked by: tests/unit/shared_memory_test.cpp.
#include "core/shared/slots.hpp"
#include "platform/shared/memory.hpp"
#include "platform/system/system.hpp"

#include <tocsin/detail/exceptions.hpp>
#include <tocsin/shared_memory.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <system_error>

namespace tocsin {
namespace {

constexpr const char* what_a_name_is = ": a name is a slash and up to 254 other characters";

// A zero byte would end the message.
std::string quoted_name(const std::string& name) {
    std::string text = "\"";
    for (const char each : name) {
        if (each == '\0')
            text += "\\0";
        else
            text += each;
    }
    return text + "\"";
}

[[noreturn]] void refuse(int error, const std::string& call, const std::string& what) {
    detail::throw_or_die(
        std::system_error(error, platform::error_category(), "tocsin::shared_memory::" + call + ": " + what));
}

[[noreturn]] void refuse_place(std::errc error, const void* at, const char* what) {
    char message[200];
    std::snprintf(message, sizeof message, "tocsin::shared_at: %p: %s", at, what);
    detail::throw_or_die(std::system_error(std::make_error_code(error), message));
}

}  // namespace

shared_memory shared_memory::of_name(const char* call, const std::string& name, std::size_t size, int how,
                                     unsigned permissions) {
    const auto use = static_cast<platform::name_use>(how);
    const std::string quoted = quoted_name(name);
    if (use != platform::name_use::open && size == 0) refuse(EINVAL, call, quoted + ": a size of 0");
    int descriptor = -1;
    if (const int error = platform::open_shared_name(name, use, permissions, descriptor); error != 0)
        refuse(error, call, quoted + (error == EINVAL ? what_a_name_is : ""));
    const auto give_up = [&](int error, const std::string& what) {
        platform::close_file(descriptor);
        if (use == platform::name_use::create) (void)platform::unlink_shared_name(name);
        refuse(error, call, what);
    };
    std::size_t found = 0;
    int error = platform::size_of_file(descriptor, found);
    if (error == 0 && found == 0 && size != 0) {
        error = platform::reserve_file(descriptor, size);
        if (error != 0) give_up(error, quoted + ": " + std::to_string(size) + " bytes");
        error = platform::size_of_file(descriptor, found);
    }
    if (error != 0) give_up(error, quoted);
    if (found == 0) give_up(EAGAIN, quoted + ": it has no bytes yet");
    if (size != 0 && found != size) {
        give_up(EINVAL, quoted + ": it has " + std::to_string(found) + " bytes, not " + std::to_string(size));
    }
    void* data = nullptr;
    if (error = platform::map_file(descriptor, found, data); error != 0) give_up(error, quoted);
    return {data, found, descriptor};
}

shared_memory shared_memory::create(const std::string& name, std::size_t size, unsigned permissions) {
    return of_name("create", name, size, static_cast<int>(platform::name_use::create), permissions);
}
shared_memory shared_memory::open(const std::string& name) {
    return of_name("open", name, 0, static_cast<int>(platform::name_use::open), 0);
}
shared_memory shared_memory::open_or_create(const std::string& name, std::size_t size, unsigned permissions) {
    return of_name("open_or_create", name, size, static_cast<int>(platform::name_use::open_or_create),
                   permissions);
}

bool shared_memory::unlink(const std::string& name) {
    const int error = platform::unlink_shared_name(name);
    if (error != 0 && error != ENOENT)
        refuse(error, "unlink", quoted_name(name) + (error == EINVAL ? what_a_name_is : ""));
    return error == 0;
}

shared_memory shared_memory::anonymous(std::size_t size) {
    if (size == 0) refuse(EINVAL, "anonymous", "a size of 0");
    int descriptor = -1;
    if (const int error = platform::open_unnamed(size, descriptor); error != 0)
        refuse(error, "anonymous", std::to_string(size) + " bytes");
    void* data = nullptr;
    if (const int error = platform::map_file(descriptor, size, data); error != 0) {
        platform::close_file(descriptor);
        refuse(error, "anonymous", std::to_string(size) + " bytes");
    }
    return {data, size, descriptor};
}

shared_memory shared_memory::map(int given) {
    const std::string named = "descriptor " + std::to_string(given);
    int descriptor = -1;
    if (const int error = platform::copy_descriptor(given, descriptor); error != 0)
        refuse(error, "map", named);
    std::size_t size = 0;
    void* data = nullptr;
    int error = platform::size_of_file(descriptor, size);
    const bool empty = error == 0 && size == 0;
    if (empty) error = EINVAL;
    if (error == 0) error = platform::map_file(descriptor, size, data);
    if (error == 0) return {data, size, descriptor};
    platform::close_file(descriptor);
    refuse(error, "map",
           named + (empty             ? ": it has no bytes"
                    : error == ENODEV ? ": it is no file that can be mapped"
                    : error == EACCES ? ": it must be open for reading and writing"
                                      : ""));
}

void shared_memory::send(int socket) const {
    if (const int error = platform::send_descriptor(socket, descriptor_); error != 0)
        refuse(error, "send", "socket " + std::to_string(socket));
}

shared_memory shared_memory::receive(int socket) {
    int descriptor = -1;
    if (const int error = platform::receive_descriptor(socket, descriptor); error != 0) {
        refuse(error, "receive",
               "socket " + std::to_string(socket) +
                   (error == EBADMSG ? ": a message without a descriptor" : ""));
    }
    const struct closer {
        int descriptor;
        ~closer() { platform::close_file(descriptor); }
    } closes{descriptor};
    return map(descriptor);
}

shared_memory::~shared_memory() {
    if (data_ == nullptr) return;
    platform::unmap_file(data_, size_);
    platform::close_file(descriptor_);
}

namespace detail {

void shared_check_place(const void* at, std::size_t room, std::size_t size) {
    if (at == nullptr) refuse_place(std::errc::bad_address, at, "there is no object at a null pointer");
    if (reinterpret_cast<std::uintptr_t>(at) % alignof(shared_header) != 0)
        refuse_place(std::errc::invalid_argument, at, "the address is not a multiple of 64");
    if (room < size) {
        char what[80];
        std::snprintf(what, sizeof what, "the object takes %zu bytes, and there are %zu", size, room);
        refuse_place(std::errc::invalid_argument, at, what);
    }
    const platform::mapping_facts facts = platform::facts_of_mapping(at, size);
    if (!facts.known) return;
    if (!facts.mapped) refuse_place(std::errc::bad_address, at, "no memory is mapped there, or not enough");
    if (!facts.writable)
        refuse_place(std::errc::permission_denied, at, "the memory is not mapped for reading and writing");
    if (!facts.shared)
        refuse_place(std::errc::invalid_argument, at,
                     "the mapping is not shared (MAP_SHARED) with other processes");
}

void shared_check_object(void* at, shared_kind kind, unsigned slots) {
    auto* const bytes = static_cast<shared_header*>(at);
    core::shared_check_stamp({*bytes, nullptr, slots, kind});
}

}  // namespace detail
}  // namespace tocsin
