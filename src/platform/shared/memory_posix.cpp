// SPDX-License-Identifier: Apache-2.0
// POSIX shared memory. On Linux a name is a file in /dev/shm, as for the C libraries' shm_open(), which is in a library
// of its own where glibc is older than 2.34.
#include "platform/shared/memory.hpp"

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#endif

namespace tocsin::platform {
namespace {

constexpr int read_write = O_RDWR | O_CLOEXEC;

int error_of(int result) noexcept { return result == 0 ? 0 : errno; }

int result_of_open(int opened, int& descriptor) noexcept {
    if (opened < 0) return errno;
    descriptor = opened;
    return 0;
}

bool is_name(const std::string& name) noexcept {
    return name.size() >= 2 && name.size() <= 255 && name[0] == '/' &&
           name.find('/', 1) == std::string::npos && name.find('\0') == std::string::npos && name != "/." &&
           name != "/..";
}

int open_name(const std::string& name, int flags, mode_t permissions) noexcept {
#if defined(__linux__)
    char path[300];
    std::snprintf(path, sizeof path, "/dev/shm%s", name.c_str());
    return ::open(path, flags | O_NOFOLLOW | O_NONBLOCK, permissions);
#else
    return ::shm_open(name.c_str(), flags & ~O_CLOEXEC, permissions);
#endif
}

int unlink_name(const std::string& name) noexcept {
#if defined(__linux__)
    char path[300];
    std::snprintf(path, sizeof path, "/dev/shm%s", name.c_str());
    return ::unlink(path);
#else
    return ::shm_unlink(name.c_str());
#endif
}

#if defined(MSG_NOSIGNAL)
constexpr int no_signal = MSG_NOSIGNAL;
#else
constexpr int no_signal = 0;
#endif
#if defined(MSG_CMSG_CLOEXEC)
constexpr int close_on_exec = MSG_CMSG_CLOEXEC;
#else
constexpr int close_on_exec = 0;
#endif

// A message of one byte, with room for one descriptor.
struct message_of_one {
    char byte = 0;
    iovec content{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};

    message_of_one() noexcept {
        message.msg_iov = &content;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
    }
    message_of_one(const message_of_one&) = delete;
    message_of_one& operator=(const message_of_one&) = delete;

    // Sends or receives the byte by `call`, which returns what the system returned. Returns 0 or an error.
    template <class Call>
    int transfer(Call call) noexcept {
        for (;;) {
            const ssize_t moved = call(message);
            if (moved == 1) return 0;
            if (moved == 0) return ECONNRESET;
            if (errno != EINTR) return errno;
        }
    }
};

}  // namespace

int open_shared_name(const std::string& name, name_use how, unsigned permissions, int& descriptor) noexcept {
    if (!is_name(name)) return EINVAL;
    const int creates = how == name_use::open ? 0 : how == name_use::create ? O_CREAT | O_EXCL : O_CREAT;
    return result_of_open(open_name(name, read_write | creates, static_cast<mode_t>(permissions)),
                          descriptor);
}

int unlink_shared_name(const std::string& name) noexcept {
    return is_name(name) ? error_of(unlink_name(name)) : EINVAL;
}

int open_unnamed(std::size_t size, int& descriptor) noexcept {
#if defined(__linux__) && defined(SYS_memfd_create)
    constexpr unsigned closes_on_exec = 1, allow_sealing = 2;
    const long opened = ::syscall(SYS_memfd_create, "tocsin", closes_on_exec | allow_sealing);
    if (opened < 0) return errno;
    descriptor = static_cast<int>(opened);
    int error = reserve_file(descriptor, size);
    constexpr int add_seals = 1033, seal_shrink = 2;
    if (error == 0) error = error_of(::fcntl(descriptor, add_seals, seal_shrink) < 0 ? -1 : 0);
    if (error != 0) close_file(descriptor);
    return error;
#else
    // A name that is removed at once.
    for (unsigned i = 0; i != 1000; ++i) {
        char name[40];
        std::snprintf(name, sizeof name, "/tocsin-%ld-%u", static_cast<long>(::getpid()), i);
        const int error = open_shared_name(name, name_use::create, 0600, descriptor);
        if (error == EEXIST) continue;
        if (error != 0) return error;
        (void)unlink_name(name);
        const int reserved = reserve_file(descriptor, size);
        if (reserved != 0) close_file(descriptor);
        return reserved;
    }
    return EEXIST;
#endif
}

int copy_descriptor(int from, int& to) noexcept {
    return result_of_open(::fcntl(from, F_DUPFD_CLOEXEC, 0), to);
}

int reserve_file(int descriptor, std::size_t size) noexcept {
#if defined(__linux__)
    // A memfd has no limit, so the kernel would give pages until the machine has none left.
    struct sysinfo machine{};
    if (::sysinfo(&machine) == 0 && machine.mem_unit != 0) {
        const std::uint64_t units = std::uint64_t{machine.totalram} + machine.totalswap;
        if (size / machine.mem_unit > units) return ENOMEM;
    }
    int error = 0;
    do {
        error = ::posix_fallocate(descriptor, 0, static_cast<off_t>(size));
    } while (error == EINTR);
    return error;
#else
    return error_of(::ftruncate(descriptor, static_cast<off_t>(size)));
#endif
}

int size_of_file(int descriptor, std::size_t& size) noexcept {
    struct stat found{};
    if (::fstat(descriptor, &found) != 0) return errno;
    if (!S_ISREG(found.st_mode)) return ENODEV;
    size = static_cast<std::size_t>(found.st_size);
    return 0;
}

int map_file(int descriptor, std::size_t size, void*& data) noexcept {
    void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (mapped == MAP_FAILED) return errno;
    data = mapped;
    return 0;
}

void unmap_file(void* data, std::size_t size) noexcept { (void)::munmap(data, size); }
void close_file(int descriptor) noexcept { (void)::close(descriptor); }

int send_descriptor(int socket, int descriptor) noexcept {
    message_of_one sent;
    cmsghdr* const part = CMSG_FIRSTHDR(&sent.message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
    return sent.transfer([&](msghdr& message) { return ::sendmsg(socket, &message, no_signal); });
}

int receive_descriptor(int socket, int& descriptor) noexcept {
    message_of_one received;
    const int error =
        received.transfer([&](msghdr& message) { return ::recvmsg(socket, &message, close_on_exec); });
    if (error != 0) return error;
    int found = -1;
    for (cmsghdr* part = CMSG_FIRSTHDR(&received.message); part != nullptr;
         part = CMSG_NXTHDR(&received.message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        // There may be room for a second one, which a well-behaved process does not send.
        for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len; at += sizeof(int)) {
            int each = -1;
            std::memcpy(&each, reinterpret_cast<const char*>(part) + at, sizeof each);
            if (found < 0)
                found = each;
            else
                close_file(each);
        }
    }
    if (found < 0) return EBADMSG;
    descriptor = found;
    return 0;
}

mapping_facts facts_of_mapping(const void* data, std::size_t size) noexcept {
    mapping_facts facts;
#if defined(__linux__)
    std::FILE* const maps = std::fopen("/proc/self/maps", "re");
    if (maps == nullptr) return facts;
    facts = {.known = true, .mapped = false, .writable = true, .shared = true};
    std::uintmax_t next = reinterpret_cast<std::uintptr_t>(data);
    const std::uintmax_t end = next + size;
    char line[512];
    while (next < end && std::fgets(line, sizeof line, maps) != nullptr) {
        // A line begins with FROM-TO RIGHTS: two hexadecimal numbers, and four letters as in `rw-s`.
        const char* const line_end = line + std::strlen(line);
        std::uintmax_t from = 0, to = 0;
        const char* const after_from = std::from_chars(line, line_end, from, 16).ptr;
        if (after_from == line_end) continue;
        const char* const after_to = std::from_chars(after_from + 1, line_end, to, 16).ptr;
        if (line_end - after_to < 5) continue;
        const char* const rights = after_to + 1;
        if (next < from || next >= to) continue;
        if (std::strncmp(rights, "rw", 2) != 0) facts.writable = false;
        if (rights[3] != 's') facts.shared = false;
        next = to;
    }
    std::fclose(maps);
    facts.mapped = next >= end;
#else
    (void)data;
    (void)size;
#endif
    return facts;
}

}  // namespace tocsin::platform
