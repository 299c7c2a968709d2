// SPDX-License-Identifier: Apache-2.0
// A stranger's program: it uses what the README shows, and nothing else of this tree.
#include <tocsin/event.hpp>

#include <cstdio>
#include <thread>

int main() {
    tocsin::manual_reset_event ready;
    int answer = 0;
    std::thread worker([&] {
        answer = 42;
        ready.set();
    });
    ready.wait();
    worker.join();
    std::printf("answer %d\n", answer);
    return answer == 42 ? 0 : 1;
}
