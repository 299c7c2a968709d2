// expect only: tocsin: a channel moves its items after two threads have agreed on it
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/channel.hpp>

struct item {
    item() = default;
    item(item&&) noexcept(false) {}
};

tocsin::channel<item*> pointers(1);

#if defined(MISUSE)
tocsin::channel<item> items(1);
#endif
