// A stranger's program: uses what the README shows, and nothing of the tree around it.
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
