// SPDX-License-Identifier: Apache-2.0
// A pipe, for tests that wait for its end. Windows has none.
#pragma once

#include "posix.hpp"
#include "threads.hpp"

#include <gtest/gtest.h>

#if !defined(_WIN32)
namespace support {

class pipe_ends {
public:
    pipe_ends() {
        if (::pipe(ends_) != 0) give_up("no pipe");
    }
    ~pipe_ends() {
        for (const int each : ends_) ::close(each);
    }
    pipe_ends(const pipe_ends&) = delete;
    pipe_ends& operator=(const pipe_ends&) = delete;

    int out() const { return ends_[0]; }
    int in() const { return ends_[1]; }
    void put() const { EXPECT_EQ(::write(ends_[1], "x", 1), 1); }
    void get() const {
        char byte;
        EXPECT_EQ(::read(ends_[0], &byte, 1), 1);
    }

private:
    int ends_[2] = {-1, -1};
};

}  // namespace support
#endif
