// SPDX-License-Identifier: Apache-2.0
// Systems without POSIX shared memory.
#include "platform/shared/memory.hpp"

#include <cerrno>

namespace tocsin::platform {

int open_shared_name(const std::string&, name_use, unsigned, int&) noexcept { return ENOSYS; }
int unlink_shared_name(const std::string&) noexcept { return ENOSYS; }
int open_unnamed(std::size_t, int&) noexcept { return ENOSYS; }
int copy_descriptor(int, int&) noexcept { return ENOSYS; }
int reserve_file(int, std::size_t) noexcept { return ENOSYS; }
int size_of_file(int, std::size_t&) noexcept { return ENOSYS; }
int map_file(int, std::size_t, void*&) noexcept { return ENOSYS; }
void unmap_file(void*, std::size_t) noexcept {}
void close_file(int) noexcept {}
int send_descriptor(int, int) noexcept { return ENOSYS; }
int receive_descriptor(int, int&) noexcept { return ENOSYS; }
mapping_facts facts_of_mapping(const void*, std::size_t) noexcept { return {}; }

}  // namespace tocsin::platform
