// SPDX-License-Identifier: Apache-2.0
// Memory that several processes share, for the objects of shared_event.hpp, shared_semaphore.hpp and shared_lock.hpp:
//
//     auto memory = tocsin::shared_memory::open_or_create("/jobs", sizeof(board));     // all zeros when it is new
//     auto& lock = tocsin::shared_at<tocsin::shared_lock>(memory.data(), memory.size());
//
// You may as well map memory yourself (mmap, Boost.Interprocess, Python's multiprocessing.shared_memory): the objects
// need zeroed memory in a shared, writable mapping, and nothing else.
//
// Every call throws std::system_error that names the call, the name or the descriptor, and what is wrong. On systems
// other than Linux, macOS and the BSDs, that is function_not_supported.
#pragma once

#include <tocsin/detail/config.hpp>
#include <tocsin/detail/shared_layout.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace tocsin {

class shared_memory {
public:
    // Names are those of shm_open: a slash, and then up to 254 characters without a slash. On Linux, the name is that
    // of a file in /dev/shm. Permissions are those of a file, such as 0600, and the process's umask applies.

    // Makes memory with this name; fails with file_exists if there is such memory. All bytes are 0. The memory is
    // reserved at once, so a full /dev/shm is an error here (no_space_on_device) and not a SIGBUS later.
    // More than the machine's memory and swap is not_enough_memory.
    TOCSIN_API static shared_memory create(const std::string& name, std::size_t size,
                                           unsigned permissions = 0600);
    // Opens the memory with this name; fails with no_such_file_or_directory if there is none. Its size is size().
    TOCSIN_API static shared_memory open(const std::string& name);
    // Opens the memory with this name, or makes it. Fails with invalid_argument if it exists with another size. Any
    // number of processes may call this at once, and any of them may be killed: the others get the memory.
    TOCSIN_API static shared_memory open_or_create(const std::string& name, std::size_t size,
                                                   unsigned permissions = 0600);
    // Removes the name, and returns whether there was one. Mappings stay, and whoever opens the name afterwards gets
    // other memory.
    TOCSIN_API static bool unlink(const std::string& name);
    // Makes memory without a name (Linux: memfd_create). Other processes get it by fork(), or through a socket: send(),
    // receive(). Nobody can truncate it. More than the machine's memory and swap is not_enough_memory.
    TOCSIN_API static shared_memory anonymous(std::size_t size);
    // Maps the whole of a file or a memfd. Takes its own copy of the descriptor. If somebody truncates the file later,
    // a look at the lost part raises SIGBUS; nothing can prevent that.
    TOCSIN_API static shared_memory map(int descriptor);

    // Sends the memory through a socket of the family AF_UNIX, together with one byte. Blocks as sendmsg() does.
    TOCSIN_API void send(int socket) const;
    // Receives what send() has sent.
    TOCSIN_API static shared_memory receive(int socket);

    shared_memory(shared_memory&& from) noexcept
        : data_(std::exchange(from.data_, nullptr)),
          size_(std::exchange(from.size_, 0)),
          descriptor_(std::exchange(from.descriptor_, -1)) {}
    shared_memory& operator=(shared_memory&& from) noexcept {
        std::swap(data_, from.data_);
        std::swap(size_, from.size_);
        std::swap(descriptor_, from.descriptor_);
        return *this;
    }
    // Unmaps the memory. The name stays.
    TOCSIN_API ~shared_memory();

    // The first byte, at the beginning of a page.
    void* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    // Closed by the destructor.
    int descriptor() const noexcept { return descriptor_; }

private:
    shared_memory(void* data, std::size_t size, int descriptor) noexcept
        : data_(data), size_(size), descriptor_(descriptor) {}
    static shared_memory of_name(const char* call, const std::string& name, std::size_t size, int how,
                                 unsigned permissions);

    void* data_;
    std::size_t size_;
    int descriptor_;
};

namespace detail {

// Throws if there can't be an object of `size` bytes at `at`, in memory that has `room` bytes from there on.
TOCSIN_API void shared_check_place(const void* at, std::size_t room, std::size_t size);
// Throws if the memory at `at` holds an object of another kind, version or size.
TOCSIN_API void shared_check_object(void* at, shared_kind kind, unsigned slots);

}  // namespace detail

// The object of type `Object` at this address, in memory that has `room` bytes from there on. Checks what can be
// checked, so call it once, not for each use: that the address is a multiple of 64, that there is room, on Linux that
// the memory is mapped, writable and shared, and that no object of another kind, version or size has been used there.
// Throws std::system_error with invalid_argument, bad_address or permission_denied, and changes nothing.
template <class Object>
Object& shared_at(void* at, std::size_t room) {
    detail::shared_check_place(at, room, sizeof(Object));
    detail::shared_check_object(at, Object::kind, Object::slots);
    return *static_cast<Object*>(at);
}

}  // namespace tocsin
