// expect: use of deleted function|deleted (copy )?constructor
// SPDX-License-Identifier: Apache-2.0
#include <tocsin/barrier.hpp>

#include <utility>

void wait_once(tocsin::barrier<>& all) { all.wait(all.arrive()); }

#if defined(MISUSE)
void wait_twice(tocsin::barrier<>& all) {
    auto token = all.arrive();
    auto copy = token;
    all.wait(std::move(copy));
}
#endif
