// SPDX-License-Identifier: Apache-2.0
// Which values the library's atomics take.
#include <tocsin/detail/atomic.hpp>
#include <tocsin/spin.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace {

template <class T>
concept has_an_atomic = requires { typename tocsin::detail::atomic<T>; };

struct padded {
    std::uint32_t four;
    std::uint8_t one;
};
struct whole {
    std::uint32_t four;
    std::uint32_t four_more;
};

// Trap: GCC 13 to 15 clear the padding of a value when its atomic is made. Then the atomic has no constant initializer:
// `constinit` does not compile, and without `constinit` the constructor runs after waits of other static objects.
TEST(Atomic, HoldsNoValueWithPadding) {
    EXPECT_FALSE(has_an_atomic<padded>);
    EXPECT_TRUE(has_an_atomic<whole>);
    EXPECT_TRUE(has_an_atomic<tocsin::spin_policy>);
}

}  // namespace
