// SPDX-License-Identifier: Apache-2.0
// Hands items from thread to thread through a bounded queue.
#include <tocsin/channel.hpp>

#include <cstdio>
#include <thread>

int main() {
    tocsin::channel<int> numbers(4);  // a capacity of 0 would make it a rendezvous
    long sum = 0;
    std::thread receiver([&] {
        while (const auto next = numbers.receive())
            sum += *next;  // empty once the channel is closed and drained
    });
    for (int i = 1; i <= 100; ++i) (void)numbers.send(i);  // waits while four are queued
    numbers.close();
    receiver.join();
    std::printf("received a sum of %ld\n", sum);
    return sum == 5050 ? 0 : 1;
}
