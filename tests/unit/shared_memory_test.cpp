// SPDX-License-Identifier: Apache-2.0
// Shared memory: names, memory without a name, and what is refused.
#include "shared_objects.hpp"

#include <tocsin/shared_event.hpp>
#include <tocsin/shared_memory.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace {

using namespace shared_objects;
using tocsin::shared_memory;

// The same in the children of this process.
const std::string& a_name() {
    static const std::string name = "/tocsin-test-" + std::to_string(::getpid());
    return name;
}

class SharedMemory : public testing::Test {
public:
    SharedMemory() { (void)shared_memory::unlink(a_name()); }
    ~SharedMemory() override { (void)shared_memory::unlink(a_name()); }
};

void expect_error(std::errc wanted, const std::string& words, auto call) {
    try {
        call();
        ADD_FAILURE() << "no error";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), wanted) << error.what();
        EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
}

TEST_F(SharedMemory, IsFoundByItsName) {
    shared_memory made = shared_memory::create(a_name(), 4096);
    EXPECT_EQ(made.size(), 4096u);
    for (std::size_t i = 0; i != made.size(); ++i) ASSERT_EQ(static_cast<char*>(made.data())[i], 0);
    static_cast<char*>(made.data())[17] = 'x';
    const shared_memory found = shared_memory::open(a_name());
    EXPECT_EQ(found.size(), 4096u);
    EXPECT_EQ(static_cast<char*>(found.data())[17], 'x');
    const shared_memory again = shared_memory::open_or_create(a_name(), 4096);
    EXPECT_EQ(static_cast<char*>(again.data())[17], 'x');
    EXPECT_TRUE(shared_memory::unlink(a_name()));
    EXPECT_FALSE(shared_memory::unlink(a_name()));
    const shared_memory fresh = shared_memory::open_or_create(a_name(), 4096);
    EXPECT_EQ(static_cast<char*>(fresh.data())[17], 0);
}

TEST_F(SharedMemory, RefusesWhatCannotBe) {
    expect_error(std::errc::invalid_argument, "a name is a slash",
                 [] { (void)shared_memory::open("no-slash"); });
    expect_error(std::errc::invalid_argument, "a size of 0",
                 [] { (void)shared_memory::create(a_name(), 0); });
    expect_error(std::errc::no_such_file_or_directory, a_name(), [] { (void)shared_memory::open(a_name()); });
    const shared_memory made = shared_memory::create(a_name(), 4096);
    expect_error(std::errc::file_exists, a_name(), [] { (void)shared_memory::create(a_name(), 4096); });
    expect_error(std::errc::invalid_argument, "it has 4096 bytes, not 8192",
                 [] { (void)shared_memory::open_or_create(a_name(), 8192); });
    EXPECT_EQ(made.size(), 4096u);
    expect_error(std::errc::bad_file_descriptor, "descriptor -1", [] { (void)shared_memory::map(-1); });
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    expect_error(std::errc::no_such_device, "no file that can be mapped",
                 [&] { (void)shared_memory::map(ends[0]); });
    ::close(ends[0]);
    ::close(ends[1]);
    const int read_only = ::open(("/dev/shm" + a_name()).c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(read_only, 0);
    expect_error(std::errc::permission_denied, "reading and writing",
                 [&] { (void)shared_memory::map(read_only); });
    ::close(read_only);
}

TEST_F(SharedMemory, RefusesNamesThatAreNone) {
    const std::string longest = a_name() + std::string(255 - a_name().size(), 'x');
    EXPECT_EQ(shared_memory::create(longest, 64).size(), 64u);
    EXPECT_TRUE(shared_memory::unlink(longest));
    for (const std::string& name : {longest + "x", std::string(), std::string("/"), std::string("/."),
                                    std::string("/.."), std::string("/a/b"), std::string("/a\0b", 4)}) {
        expect_error(std::errc::invalid_argument, "a name is a slash",
                     [&] { (void)shared_memory::create(name, 64); });
        expect_error(std::errc::invalid_argument, "a name is a slash",
                     [&] { (void)shared_memory::unlink(name); });
    }
}

TEST_F(SharedMemory, RefusesNamesOfOtherFiles) {
    const std::string path = "/dev/shm" + a_name();
    ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
    expect_error(std::errc::is_a_directory, a_name(), [] { (void)shared_memory::open(a_name()); });
    expect_error(std::errc::is_a_directory, a_name(),
                 [] { (void)shared_memory::open_or_create(a_name(), 64); });
    expect_error(std::errc::file_exists, a_name(), [] { (void)shared_memory::create(a_name(), 64); });
    ASSERT_EQ(::rmdir(path.c_str()), 0);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    expect_error(std::errc::no_such_device, a_name(), [] { (void)shared_memory::open(a_name()); });
    expect_error(std::errc::no_such_device, a_name(),
                 [] { (void)shared_memory::open_or_create(a_name(), 64); });
}

#if SIZE_MAX > UINT32_MAX  // else the machine may have more than the largest size
// The kernel would give pages until there are none.
TEST_F(SharedMemory, RefusesMoreThanTheMachineHas) {
    constexpr std::size_t too_much = SIZE_MAX / 2;
    expect_error(std::errc::not_enough_memory, std::to_string(too_much) + " bytes",
                 [] { (void)shared_memory::anonymous(too_much); });
    expect_error(std::errc::not_enough_memory, std::to_string(too_much) + " bytes",
                 [] { (void)shared_memory::create(a_name(), too_much); });
    EXPECT_FALSE(shared_memory::unlink(a_name())) << "nothing is left of it";
}
#endif

TEST_F(SharedMemory, RefusesWhatIsNoSocketAndNoMemory) {
    const shared_memory memory = shared_memory::anonymous(64);
    const std::string number = std::to_string(memory.descriptor());
    expect_error(std::errc::not_a_socket, "socket " + number, [&] { memory.send(memory.descriptor()); });
    expect_error(std::errc::not_a_socket, "socket " + number,
                 [&] { (void)shared_memory::receive(memory.descriptor()); });
    expect_error(std::errc::bad_file_descriptor, "socket -1", [&] { memory.send(-1); });
    expect_error(std::errc::invalid_argument, "a size of 0", [] { (void)shared_memory::anonymous(0); });
    const int empty = ::open(("/dev/shm" + a_name()).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(empty, 0);
    expect_error(std::errc::invalid_argument, "it has no bytes", [&] { (void)shared_memory::map(empty); });
    ::close(empty);
}

TEST_F(SharedMemory, RefusesWhomThePermissionsExclude) {
    const shared_memory made = shared_memory::create(a_name(), 4096, 0400);
    if (::geteuid() == 0) {  // nothing excludes root
        EXPECT_EQ(shared_memory::open(a_name()).size(), 4096u);
        return;
    }
    expect_error(std::errc::permission_denied, a_name(), [] { (void)shared_memory::open(a_name()); });
    expect_error(std::errc::permission_denied, a_name(),
                 [] { (void)shared_memory::open_or_create(a_name(), 4096); });
}

// The process that made the name was killed before it gave it a size.
TEST_F(SharedMemory, AHalfMadeNameIsCompleted) {
    const int made = ::open(("/dev/shm" + a_name()).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(made, 0);
    ::close(made);
    expect_error(std::errc::resource_unavailable_try_again, "no bytes yet",
                 [] { (void)shared_memory::open(a_name()); });
    EXPECT_EQ(shared_memory::open_or_create(a_name(), 4096).size(), 4096u);
}

TEST_F(SharedMemory, ManyProcessesMakeOneName) {
    std::vector<pid_t> children;
    for (int i = 0; i != 8; ++i) {
        children.push_back(in_child([] {
            const shared_memory memory = shared_memory::open_or_create(a_name(), 4096);
            static_cast<std::atomic<std::uint32_t>*>(memory.data())->fetch_add(1);
        }));
    }
    for (const pid_t child : children) EXPECT_EQ(end_of(child), 0);
    const shared_memory memory = shared_memory::open(a_name());
    EXPECT_EQ(static_cast<std::atomic<std::uint32_t>*>(memory.data())->load(), 8u);
}

TEST_F(SharedMemory, WithoutANameGoesThroughASocket) {
    int sockets[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    shared_memory memory = shared_memory::anonymous(sizeof(tocsin::shared_manual_reset_event));
    const pid_t child = in_child([&] {
        const shared_memory got = shared_memory::receive(sockets[1]);
        tocsin::shared_at<tocsin::shared_manual_reset_event>(got.data(), got.size()).set();
    });
    memory.send(sockets[0]);
    tocsin::shared_at<tocsin::shared_manual_reset_event>(memory.data(), memory.size()).wait();
    EXPECT_EQ(end_of(child), 0);
    ASSERT_EQ(::write(sockets[0], "x", 1), 1);
    expect_error(std::errc::bad_message, "without a descriptor",
                 [&] { (void)shared_memory::receive(sockets[1]); });
    ::close(sockets[0]);
    expect_error(std::errc::connection_reset, "socket", [&] { (void)shared_memory::receive(sockets[1]); });
    ::close(sockets[1]);
    EXPECT_NE(::ftruncate(memory.descriptor(), 1), 0) << "it can't be truncated";
}

TEST_F(SharedMemory, ASecondDescriptorInAMessageIsClosed) {
    int sockets[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    const shared_memory memory = shared_memory::anonymous(64);
    const int two[] = {memory.descriptor(), memory.descriptor()};
    char byte = 0;
    iovec one{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof two)] = {};
    msghdr message{};
    message.msg_iov = &one;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof two);
    std::memcpy(CMSG_DATA(part), two, sizeof two);
    ASSERT_EQ(::sendmsg(sockets[0], &message, 0), 1);
    const auto open_files = [] {
        const std::filesystem::directory_iterator files("/proc/self/fd");
        return std::distance(begin(files), end(files));
    };
    const auto before = open_files();
    {
        const shared_memory got = shared_memory::receive(sockets[1]);
        EXPECT_EQ(got.size(), 64u);
        EXPECT_EQ(open_files(), before + 1);
    }
    EXPECT_EQ(open_files(), before);
    ::close(sockets[0]);
    ::close(sockets[1]);
}

TEST_F(SharedMemory, PlacesThatCannotHoldAnObject) {
    using object = tocsin::shared_auto_reset_event;
    const shared_memory memory = shared_memory::anonymous(8192);
    auto* const bytes = static_cast<unsigned char*>(memory.data());
    const auto at = [](void* where, std::size_t room) {
        return [=] { (void)tocsin::shared_at<object>(where, room); };
    };
    expect_error(std::errc::bad_address, "null pointer", at(nullptr, 8192));
    expect_error(std::errc::invalid_argument, "multiple of 64", at(bytes + 8, 8000));
    expect_error(std::errc::invalid_argument, "takes 2048 bytes, and there are 2047", at(bytes, 2047));
    expect_error(std::errc::bad_address, "no memory is mapped", at(reinterpret_cast<void*>(4096), 8192));
    void* const own = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect_error(std::errc::invalid_argument, "MAP_SHARED", at(own, 4096));
    ::munmap(own, 4096);
    void* const read = ::mmap(nullptr, 8192, PROT_READ, MAP_SHARED, memory.descriptor(), 0);
    expect_error(std::errc::permission_denied, "reading and writing", at(read, 8192));
    ::munmap(read, 8192);
    for (std::size_t i = 0; i != memory.size(); ++i) ASSERT_EQ(bytes[i], 0);
    EXPECT_NO_THROW(at(bytes + 2048, 4096)());
}

}  // namespace
