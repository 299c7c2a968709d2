// SPDX-License-Identifier: Apache-2.0
// Hands jobs to the thread that owns some data, with and without waiting for results.
#include <tocsin/handler_thread.hpp>

#include <cstdio>
#include <map>
#include <string>

int main() {
    std::map<std::string, int> cache;  // only the owner touches it, so it needs no lock
    tocsin::handler_thread owner;
    owner.post([&] { cache["one"] = 1; });  // returns at once
    owner.post([&] { cache["two"] = 2; });
    const auto size = owner.send([&] { return cache.size(); });  // waits for the result
    std::printf("%zu entries\n", size);
    return size == 2 ? 0 : 1;
}
