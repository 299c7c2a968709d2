// SPDX-License-Identifier: Apache-2.0
// Two coroutines race. The first that ends stops the other, and a deadline of the whole is a source alongside them.
#include <tocsin/await.hpp>
#include <tocsin/event.hpp>
#include <tocsin/task.hpp>
#include <tocsin/wait.hpp>

#include <chrono>
#include <cstdio>

namespace {

using namespace std::chrono_literals;

tocsin::task<int> ask(tocsin::auto_reset_event& answered, int number) {
    const auto stop = co_await tocsin::this_stop_token;
    const auto how = co_await tocsin::async_wait({.stop = stop}, answered);
    co_return how == tocsin::wait_status::signaled ? number : 0;
}

tocsin::task<int> ask_both(tocsin::auto_reset_event& near, tocsin::auto_reset_event& far) {
    auto one = ask(near, 1);
    auto other = ask(far, 2);
    auto late = tocsin::after(10s);
    far.set();
    const auto first = co_await tocsin::when_any(one, other, late);
    std::printf("argument %zu came first, the other was %s\n", first.index,
                one.result() == 0 ? "stopped" : "not stopped");
    co_return first.index == 1 ? other.result() : 0;
}

}  // namespace

int main() {
    tocsin::auto_reset_event near;
    tocsin::auto_reset_event far;
    return tocsin::sync_wait(ask_both(near, far)) == 2 ? 0 : 1;
}
