// SPDX-License-Identifier: Apache-2.0
#include "complaints.hpp"

#include <cstdio>
#include <mutex>

namespace soak {
namespace {

constexpr std::size_t max = 20;  // a defect that shows once may show a million times
std::mutex mutex;
std::vector<std::string> all;

}  // namespace

void complain(const std::string& what) {
    const std::lock_guard lock(mutex);
    if (all.size() == max) return;
    all.push_back(what);
    std::fprintf(stderr, "FAILED: %s\n", what.c_str());
}

std::vector<std::string> complaints() {
    const std::lock_guard lock(mutex);
    return all;
}

}  // namespace soak
