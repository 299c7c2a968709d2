// SPDX-License-Identifier: Apache-2.0
// Waits for jobs that start further jobs: nobody knows their number beforehand.
#include <tocsin/event.hpp>
#include <tocsin/wait.hpp>
#include <tocsin/wait_group.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <thread>

namespace {

tocsin::wait_group jobs;
std::atomic<int> started{0};
std::atomic<int> worked{0};
std::array<std::jthread, 16> threads;  // joined when the program ends

void start_job(int depth);

void work(int depth) {
    ++worked;
    for (int i = 0; i != depth; ++i) start_job(depth - 1);  // before this job's own done()
}

void start_job(int depth) {
    jobs.add();
    threads[static_cast<std::size_t>(started++)] = std::jthread([depth] {
        work(depth);
        jobs.done();
    });
}

}  // namespace

int main() {
    using namespace std::chrono_literals;
    tocsin::manual_reset_event shutdown;
    start_job(3);
    const auto [status, index, found] = tocsin::wait_any({.until = 10s}, shutdown, jobs);
    std::printf("%d jobs are done\n", worked.load());
    return index == 1 && worked == 16 ? 0 : 1;
}
