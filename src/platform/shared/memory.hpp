// SPDX-License-Identifier: Apache-2.0
// Memory that processes share. Each function returns 0 or an error number.
#pragma once

#include <cstddef>
#include <string>

namespace tocsin::platform {

enum class name_use : int { create, open, open_or_create };

int open_shared_name(const std::string& name, name_use how, unsigned permissions, int& descriptor) noexcept;
int unlink_shared_name(const std::string& name) noexcept;
int open_unnamed(std::size_t size, int& descriptor) noexcept;
int copy_descriptor(int from, int& to) noexcept;
// Makes sure that the file has at least this many bytes, and that there is memory for them. Never shrinks it. More than
// the machine has (Linux: memory and swap) is ENOMEM at once.
int reserve_file(int descriptor, std::size_t size) noexcept;
int size_of_file(int descriptor, std::size_t& size) noexcept;
int map_file(int descriptor, std::size_t size, void*& data) noexcept;
void unmap_file(void* data, std::size_t size) noexcept;
void close_file(int descriptor) noexcept;
int send_descriptor(int socket, int descriptor) noexcept;
int receive_descriptor(int socket, int& descriptor) noexcept;

struct mapping_facts {
    bool known = false;  // whether the system can say
    bool mapped = false, writable = false, shared = false;
};
// What the system knows of these bytes.
mapping_facts facts_of_mapping(const void* data, std::size_t size) noexcept;

}  // namespace tocsin::platform
