// SPDX-License-Identifier: Apache-2.0
// Makes the mistake that the argument names, which the checks in the headers must notice; none, if it says "nothing".
#include <tocsin/tocsin.hpp>

#include <memory>
#include <string>
#include <thread>

namespace {

template <class Object>
void until_waited_on(const Object& object) {
    while (tocsin::waiting_on(&object) == 0) std::this_thread::yield();
}

void destroy_waited_on_event() {
    auto event = std::make_unique<tocsin::auto_reset_event>();
    std::thread([waited = event.get()] { waited->wait(); }).detach();
    until_waited_on(*event);
    event.reset();
}

void destroy_waited_on_semaphore() {
    auto permits = std::make_unique<tocsin::counting_semaphore<>>(0);
    std::thread([waited = permits.get()] { waited->acquire(); }).detach();
    until_waited_on(*permits);
    permits.reset();
}

void unlock_free_lock() {
    tocsin::word_lock<> lock;
    lock.lock();
    lock.unlock();
    lock.unlock();
}

void drop_wake_list() {
    static tocsin::auto_reset_event event;
    std::thread([] { event.wait(); }).detach();
    until_waited_on(event);
    tocsin::wake_list freed;
    event.set(freed);
}

// A program that mixes checked code with this library works.
int use_everything_well() {
    tocsin::auto_reset_event event;
    tocsin::counting_semaphore<> permits(0);
    tocsin::word_lock<> lock;
    int answer = 0;
    std::thread worker([&] {
        permits.acquire();
        lock.lock();
        answer = 42;
        lock.unlock();
        tocsin::wake_list freed;
        event.set(freed);
        freed.wake();
    });
    permits.release();
    event.wait();
    worker.join();
    return answer == 42 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
    const std::string mistake = count == 2 ? arguments[1] : "";
    if (mistake == "nothing") return use_everything_well();
    if (mistake == "event") destroy_waited_on_event();
    if (mistake == "semaphore") destroy_waited_on_semaphore();
    if (mistake == "lock") unlock_free_lock();
    if (mistake == "wake_list") drop_wake_list();
    return 0;  // not noticed
}
