// SPDX-License-Identifier: Apache-2.0
// What tests for Windows wait for: sockets and kernel events.
#pragma once

#include <gtest/gtest.h>

#include <winsock2.h>

namespace support {

class winsock : public testing::Environment {
public:
    void SetUp() override {
        WSADATA about{};
        ASSERT_EQ(WSAStartup(MAKEWORD(2, 2), &about), 0);
    }
    void TearDown() override { WSACleanup(); }
};
// Two ends of a connection.
class socket_pair {
public:
    socket_pair() {
        const SOCKET listener = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int length = sizeof address;
        auto* const plain = reinterpret_cast<sockaddr*>(&address);
        EXPECT_EQ(bind(listener, plain, length), 0);
        EXPECT_EQ(listen(listener, 1), 0);
        EXPECT_EQ(getsockname(listener, plain, &length), 0);
        ends_[0] = socket(AF_INET, SOCK_STREAM, 0);
        EXPECT_EQ(connect(ends_[0], plain, length), 0);
        ends_[1] = accept(listener, nullptr, nullptr);
        closesocket(listener);
    }
    socket_pair(const socket_pair&) = delete;
    socket_pair& operator=(const socket_pair&) = delete;
    ~socket_pair() {
        close(0);
        close(1);
    }

    SOCKET operator[](int end) const { return ends_[end]; }
    void fill() const { EXPECT_EQ(send(ends_[0], "x", 1, 0), 1); }
    void empty() const {
        char byte = 0;
        EXPECT_EQ(recv(ends_[1], &byte, 1, 0), 1);
    }
    void close(int end) {
        if (ends_[end] != INVALID_SOCKET) closesocket(ends_[end]);
        ends_[end] = INVALID_SOCKET;
    }

private:
    SOCKET ends_[2] = {INVALID_SOCKET, INVALID_SOCKET};
};

class kernel_event {
public:
    kernel_event() = default;
    kernel_event(const kernel_event&) = delete;
    kernel_event& operator=(const kernel_event&) = delete;
    ~kernel_event() { CloseHandle(handle_); }
    HANDLE get() const { return handle_; }
    void set() const { SetEvent(handle_); }

private:
    const HANDLE handle_ = CreateEventW(nullptr, TRUE, FALSE, nullptr);
};

}  // namespace support
