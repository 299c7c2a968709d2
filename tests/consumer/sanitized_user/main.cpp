// SPDX-License-Identifier: Apache-2.0
// A stranger's program, built with -fsanitize=thread, with a library that was not. Each function passes plain data from
// thread to thread by one kind of object, in ways that the library orders. ThreadSanitizer must report none of them.
// Called with the argument `race`, the program has a race of its own, alongside an event that does not order it.
// ThreadSanitizer must report that.
#include <tocsin/tocsin.hpp>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <unistd.h>
#endif

namespace {

using namespace std::chrono_literals;
using threads = std::vector<std::jthread>;

constexpr int rounds = 300;
int sum = 0;  // of the thread that runs main() alone

// Lets some waits sleep, and some find what they wait for.
void sometimes_nap(int round) {
    if (round % 16 == 0) std::this_thread::sleep_for(200us);
}

// Calls `first` in another thread, and then `second` in this one. Only what they call orders their uses of the data.
// ThreadSanitizer may miss two writes at the same moment, writes of threads that have ended, and writes that share
// eight bytes with many others. So `done` counts the calls, orders nothing, and lies elsewhere.
template <class First, class Second>
void in_turn(First first, Second second) {
    alignas(16) std::atomic<int> done = 0;
    alignas(16) int data = 0;
    const auto until = [&](int count) {
        while (done.load(std::memory_order::relaxed) != count) std::this_thread::yield();
    };
    const auto end = [&] { done.fetch_add(1, std::memory_order::relaxed); };
    std::jthread other([&] {
        first(data);
        end();
        until(2);
    });
    until(1);
    second(data);
    end();
}

// The same if the first writes before it makes something ready, and the second writes after it has found it ready.
template <class Make, class Find>
void made_and_found(Make make, Find find) {
    in_turn(
        [&](int& data) {
            ++data;
            make();
        },
        [&](int& data) {
            find();
            ++data;
        });
}

// So that the other threads sleep by now. Nothing says that they do.
void let_sleep() { std::this_thread::sleep_for(3ms); }

void events() {
    tocsin::auto_reset_event ask;
    tocsin::auto_reset_event answer;
    int data = 0;
    std::jthread other([&] {
        for (int i = 0; i != rounds; ++i) {
            ask.wait();
            ++data;
            sometimes_nap(i);
            answer.set();
        }
    });
    for (int i = 0; i != rounds; ++i) {
        ++data;
        sometimes_nap(i + 8);
        ask.set();
        (void)answer.wait_for(1h);
    }
    sum += data;
}

void gates() {
    for (int i = 0; i != rounds / 10; ++i) {
        auto gate = std::make_unique<tocsin::manual_reset_event>();
        int data = 0;
        {
            threads all;
            for (int k = 0; k != 6; ++k)
                all.emplace_back([&] {
                    gate->wait();
                    if (data != 1) std::abort();
                });
            if (i % 2 == 0)
                std::this_thread::sleep_for(1ms);  // so that some threads sleep; nothing says that they do
            data = 1;
            gate->set();
        }
        ++data;
    }
}

void semaphores() {
    tocsin::counting_semaphore<> one(1);
    int data = 0;
    {
        threads all;
        for (int k = 0; k != 3; ++k)
            all.emplace_back([&] {
                for (int i = 0; i != rounds; ++i) {
                    one.acquire();
                    ++data;
                    sometimes_nap(i);
                    one.release();
                }
            });
    }
    tocsin::counting_semaphore<> many(0);
    std::jthread taker([&] {
        many.acquire(3);
        ++data;
    });
    ++data;
    many.release(3);
    taker.join();
    sum += data;
}

void locks() {
    tocsin::word_lock<> lock;
    int data = 0;
    threads all;
    for (int k = 0; k != 3; ++k)
        all.emplace_back([&] {
            for (int i = 0; i != rounds; ++i) {
                const std::lock_guard held(lock);
                ++data;
                sometimes_nap(i);
            }
        });
}

void conditions() {
    std::mutex mutex;
    tocsin::condition changed;
    int data = 0;
    std::jthread other([&] {
        for (int i = 0; i != rounds; ++i) {
            std::unique_lock held(mutex);
            changed.wait(held, [&] { return data % 2 == 1; });
            ++data;
            changed.notify_all();
        }
    });
    for (int i = 0; i != rounds; ++i) {
        std::unique_lock held(mutex);
        changed.wait(held, [&] { return data % 2 == 0; });
        ++data;
        changed.notify_one();
    }
}

// The thread writes after it has unlocked, so only the notification orders what it writes.
void conditions_alone() {
    std::mutex mutex;
    tocsin::condition changed;
    bool waits = false;
    int data = 0;
    std::jthread other([&] {
        for (int i = 0; i != rounds / 10;) {
            {
                const std::lock_guard held(mutex);
                if (!std::exchange(waits, false)) continue;
            }
            ++data;
            ++i;
            changed.notify_one();
        }
    });
    std::unique_lock held(mutex);
    for (int i = 0; i != rounds / 10; ++i) {
        waits = true;
        changed.wait(held);
        ++data;
    }
    sum += data;
}

void latches() {
    for (int i = 0; i != rounds / 10; ++i) {
        tocsin::latch done(3);
        int data[3]{};
        threads all;
        for (int k = 0; k != 3; ++k)
            all.emplace_back([&, k] {
                data[k] = k;
                done.arrive_and_wait();
                if (data[(k + 1) % 3] != (k + 1) % 3) std::abort();
            });
        done.wait();
        sum += data[0] + data[1] + data[2];
    }
}

void barriers() {
    int total = 0;
    int data[3]{};
    const auto completion = [&]() noexcept { total += data[0] + data[1] + data[2]; };
    tocsin::barrier<decltype(completion)> phase(3, completion);
    threads all;
    for (int k = 0; k != 3; ++k)
        all.emplace_back([&, k] {
            for (int i = 0; i != rounds; ++i) {
                ++data[k];
                sometimes_nap(i + k);
                phase.arrive_and_wait();
                if (data[(k + 1) % 3] != i + 1 || total < 0) std::abort();
                phase.arrive_and_wait();
            }
        });
}

void groups() {
    tocsin::wait_group all_done;
    for (int i = 0; i != rounds / 10; ++i) {
        int data[2]{};
        all_done.add(2);
        threads all;
        for (int k = 0; k != 2; ++k)
            all.emplace_back([&, k] {
                data[k] = 1;
                all_done.done();
            });
        all_done.wait();
        sum += data[0] + data[1];
    }
}

void channels(std::size_t capacity) {
    tocsin::channel<std::string> items(capacity);
    threads all;
    for (int k = 0; k != 2; ++k)
        all.emplace_back([&] {
            for (int i = 0; i != rounds; ++i) {
                sometimes_nap(i);
                (void)items.send(std::string(40, 'x'));
            }
        });
    std::size_t length = 0;
    for (int i = 0; i != 2 * rounds; ++i) {
        sometimes_nap(i + 4);
        if (i % 2 == 0) {
            length += items.receive()->size();
        } else {
            auto next = items.receiving();
            (void)tocsin::wait_any(next);
            length += next->size();
        }
    }
    items.close();
    sum += static_cast<int>(length);
}

void waits_for_several() {
    tocsin::auto_reset_event one;
    tocsin::auto_reset_event other;
    tocsin::counting_semaphore<> permits(0);
    int data[3]{};
    tocsin::auto_reset_event next;
    std::jthread setter([&] {
        for (int i = 0; i != rounds; ++i) {
            ++data[0];
            one.set();
            next.wait();
            ++data[1];
            permits.release();
            next.wait();
            ++data[2];
            other.set();
            one.set();
            next.wait();
        }
    });
    for (int i = 0; i != rounds; ++i) {
        sometimes_nap(i);
        (void)tocsin::wait_any(one, other, permits);
        ++data[0];
        next.set();
        (void)tocsin::wait_any(tocsin::limits{.until = 1h}, other, permits);
        ++data[1];
        next.set();
        (void)tocsin::wait_all(one, other);
        ++data[2];
        next.set();
    }
}

void sets() {
    tocsin::auto_reset_event one;
    tocsin::auto_reset_event back;
    int data = 0;
    tocsin::wait_set set;
    set.add(one, 1);
    std::jthread setter([&] {
        for (int i = 0; i != rounds; ++i) {
            ++data;
            sometimes_nap(i);
            one.set();
            back.wait();
        }
    });
    for (int i = 0; i != rounds; ++i) {
        tocsin::ready_item found[2];
        (void)set.wait(found);
        ++data;
        back.set();
    }
    setter.join();
    set.remove(one);
}

void addresses() {
    std::uint32_t turn = 0;
    int data = 0;
    std::jthread other([&] {
        for (std::uint32_t i = 0; i != rounds; ++i) {
            for (std::uint32_t seen; (seen = std::atomic_ref(turn).load()) % 2 == 0;)
                (void)tocsin::wait_on_address(&turn, seen);
            ++data;
            std::atomic_ref(turn).fetch_add(1);
            (void)tocsin::wake_by_address_all(&turn);
        }
    });
    for (std::uint32_t i = 0; i != rounds; ++i) {
        ++data;
        std::atomic_ref(turn).fetch_add(1);
        (void)tocsin::wake_by_address_all(&turn);
        for (std::uint32_t seen; (seen = std::atomic_ref(turn).load()) % 2 == 1;)
            (void)tocsin::wait_on_address(&turn, seen);
    }
}

void handler_threads() {
    int data = 0;
    tocsin::handler_thread handler;
    for (int i = 0; i != rounds; ++i) {
        auto owned = std::make_unique<int>(i);
        (void)handler.post([&data, owned = std::move(owned)] { data += *owned; });
        if (i % 10 == 0) sum += handler.send([&data] { return ++data; });
    }
    handler.join();
    sum += data;
}

void group_commits() {
    struct submission {
        int value;
        int result = 0;
    };
    int flushed = 0;
    tocsin::group_commit<submission> log([&](tocsin::commit_group<submission> group) {
        for (submission& each : group) {
            each.result = each.value + 1;
            ++flushed;
        }
        std::this_thread::sleep_for(20us);
    });
    threads all;
    for (int k = 0; k != 4; ++k)
        all.emplace_back([&] {
            for (int i = 0; i != rounds / 3; ++i) {
                submission mine{i};
                (void)log.submit(mine);
                if (mine.result != i + 1) std::abort();
            }
        });
}

tocsin::task<int> pass_back_and_forth(tocsin::auto_reset_event& ask, tocsin::auto_reset_event& answer,
                                      int& data) {
    tocsin::auto_reset_event never;
    int local = 0;
    for (int i = 0; i != rounds; ++i) {
        co_await tocsin::async_wait(ask);
        ++local;
        ++data;
        answer.set();
        if (i % 50 == 0) (void)co_await tocsin::async_wait_any(tocsin::limits{.until = 1ms}, never);
    }
    co_return local;
}

// A sender may claim the transfer once it is queued, also before the coroutine suspends.
tocsin::task<std::size_t> receive_in_coroutine(tocsin::channel<std::string>& items) {
    tocsin::auto_reset_event never;
    std::size_t length = 0;
    for (int i = 0; i != rounds; ++i) {
        auto next = items.receiving();
        (void)co_await tocsin::async_wait_any(next, never);
        length += next->size();
    }
    co_return length;
}

void coroutines_that_receive() {
    tocsin::channel<std::string> items(0);
    std::jthread sender([&] {
        for (int i = 0; i != rounds; ++i) (void)items.send(std::string(40, 'x'));
    });
    sum += static_cast<int>(tocsin::sync_wait(receive_in_coroutine(items)));
}

void coroutines() {
    tocsin::auto_reset_event ask;
    tocsin::auto_reset_event answer;
    int data = 0;
    std::jthread other([&] {
        for (int i = 0; i != rounds; ++i) {
            ++data;
            ask.set();
            answer.wait();
        }
    });
    sum += tocsin::sync_wait(pass_back_and_forth(ask, answer, data));
}

void operations() {
    tocsin::auto_reset_event ask;
    tocsin::auto_reset_event answer;
    int data = 0;
    for (int i = 0; i != rounds; ++i) {
        auto wait = tocsin::any_operation(
            [&](tocsin::any_result) noexcept {
                ++data;
                answer.set();
            },
            ask);
        wait.start();
        std::jthread other([&] {
            ++data;
            ask.set();
        });
        answer.wait();
        ++data;
    }
}

tocsin::task<> wait_for_any(tocsin::auto_reset_event& one, tocsin::auto_reset_event& other) {
    (void)co_await tocsin::async_wait_any(one, other);
}
tocsin::task<> wait_for_all(tocsin::auto_reset_event& one, tocsin::auto_reset_event& other) {
    (void)co_await tocsin::async_wait_all(one, other);
}

// A wait that finds what it waits for, and does not sleep. The header of the one names what the library takes for the
// other, or the reverse.
void found_without_sleep() {
    tocsin::auto_reset_event one;
    tocsin::auto_reset_event other;
    const auto set_one = [&] { one.set(); };
    const auto set_both = [&] {
        other.set();
        one.set();
    };
    made_and_found(set_one, [&] {
        auto wait = tocsin::any_operation([](tocsin::any_result) noexcept {}, one);
        wait.start();
    });
    tocsin::event chosen(tocsin::reset_mode::auto_reset);  // the header doesn't look at its mode
    made_and_found([&] { chosen.set(); },
                   [&] {
                       auto wait = tocsin::any_operation([](tocsin::any_result) noexcept {}, chosen);
                       wait.start();
                   });
    made_and_found(set_one, [&] { tocsin::sync_wait(wait_for_any(other, one)); });
    made_and_found(set_both, [&] { tocsin::sync_wait(wait_for_all(other, one)); });
    made_and_found(set_both, [&] { tocsin::wait_all(other, one); });
    made_and_found(set_one, [&] { (void)tocsin::wait_any(tocsin::after(1h), one); });
    tocsin::pollable of_one(one);
    made_and_found(set_one, [&] { (void)of_one.try_wait(); });
    tocsin::wait_set set;
    set.add(one, 1);
    made_and_found(set_one, [&] {
        tocsin::ready_item found[2];
        (void)set.wait(found);
    });
    set.remove(one);

    tocsin::barrier<> phase(2);
    auto token = phase.arrive();
    made_and_found([&] { (void)phase.arrive(); }, [&] { phase.wait(std::move(token)); });

    tocsin::wait_group group(1);
    made_and_found([&] { group.done(); }, [&] { group.add(); });
    group.done();
    made_and_found([&] { group.add(); }, [&] { group.done(); });

    tocsin::channel<int> items(1);
    made_and_found([&] { (void)items.close(); }, [&] { (void)items.receive(); });
}

// Others wait, too, so that the library does what headers do otherwise.
void found_alongside_others() {
    tocsin::counting_semaphore<> permits(0);
    std::jthread takes_one([&] { permits.acquire(); });
    let_sleep();
    made_and_found([&] { permits.release(2); }, [&] { permits.acquire(); });

    tocsin::auto_reset_event event;
    threads both;
    for (int k = 0; k != 2; ++k) both.emplace_back([&] { event.wait(); });
    let_sleep();
    made_and_found([&] { event.set(); }, [&] { event.reset(); });
    event.set();

    // The thread sleeps, is woken by the first unlock, and takes the lock after the second.
    tocsin::word_lock<> lock;
    int data = 0;
    for (int i = 0; i != rounds / 10; ++i) {
        lock.lock();
        std::jthread taker([&] {
            lock.lock();
            ++data;
            lock.unlock();
        });
        let_sleep();
        lock.unlock();
        lock.lock();
        ++data;
        lock.unlock();
    }
}

// Whoever has received an item, or finds room where one was, may destroy the channel, although the other thread may not
// have given up its lock.
void destroyed_channels() {
    auto items = std::make_unique<tocsin::channel<int>>(1);
    in_turn([&](int&) { (void)items->send(1); },
            [&](int&) {
                (void)items->receive();
                items.reset();
            });
    items = std::make_unique<tocsin::channel<int>>(1);
    (void)items->send(1);
    in_turn([&](int&) { (void)items->receive(); },
            [&](int&) {
                (void)items->send(2);
                items.reset();
            });
}

void ended_handler_threads() {
    for (const bool cancels : {false, true}) {
        std::atomic<bool> done = false;
        alignas(16) int data = 0;
        tocsin::handler_thread handler;
        (void)handler.post([&] {
            ++data;
            done.store(true, std::memory_order::relaxed);
        });
        while (!done.load(std::memory_order::relaxed)) std::this_thread::yield();
        handler.close();
        let_sleep();
        if (cancels)
            (void)handler.cancel();
        else
            handler.join();
        ++data;
        sum += data;
    }
}

tocsin::task<> wait_for(tocsin::auto_reset_event& event, std::stop_token stop) {
    (void)co_await tocsin::async_wait(tocsin::limits{.stop = stop}, event);
}
tocsin::task<> wait_for(tocsin::auto_reset_event& event, std::stop_token stop, tocsin::handler_thread& on) {
    (void)co_await tocsin::async_wait(tocsin::limits{.stop = stop}, event).on(on);
}

// The request runs a callback that the library has registered: on a stack that its thread uses again once the wait has
// ended, or in a coroutine's frame, which may be freed then.
void stops_during_waits() {
    tocsin::auto_reset_event never;
    tocsin::handler_thread handler;
    const auto use_stack = [] {
        char bytes[4096];
        std::snprintf(bytes, sizeof bytes, "%4000d", 1);
        return static_cast<int>(bytes[1]);
    };
    for (int i = 0; i != rounds / 10; ++i) {
        std::atomic<int> used = 0;
        threads all;
        all.emplace_back([&](std::stop_token stop) {
            (void)never.wait(stop);
            used += use_stack();
            let_sleep();
        });
        all.emplace_back([&](std::stop_token stop) { tocsin::sync_wait(wait_for(never, stop)); });
        all.emplace_back([&](std::stop_token stop) { tocsin::sync_wait(wait_for(never, stop, handler)); });
        if (i % 2 == 0) std::this_thread::sleep_for(500us);  // as for the gates
        for (std::jthread& each : all) each.request_stop();
    }
}

void stops() {
    for (int i = 0; i != rounds / 10; ++i) {
        tocsin::auto_reset_event never;
        int data = 0;
        std::jthread waiting([&](std::stop_token stop) {
            if (never.wait(stop) == tocsin::wait_status::stopped) ++data;
        });
        if (i % 2 == 0) std::this_thread::sleep_for(500us);  // as for the gates
        waiting.request_stop();
        waiting.join();
        sum += data;
    }
}

#if defined(__linux__)
void descriptors() {
    int ends[2];
    int silent[2];
    if (pipe(ends) != 0 || pipe(silent) != 0) std::abort();
    tocsin::auto_reset_event event;
    int data = 0;
    std::jthread other([&] {
        for (int i = 0; i != rounds; ++i) {
            ++data;
            sometimes_nap(i);
            event.set();
            char byte = 0;
            (void)tocsin::wait_any(tocsin::readable(ends[0]));
            if (read(ends[0], &byte, 1) != 1) std::abort();
        }
    });
    for (int i = 0; i != rounds; ++i) {
        sometimes_nap(i + 8);
        (void)tocsin::wait_any(event, tocsin::readable(silent[0]), tocsin::after(1h));
        ++data;
        if (write(ends[1], "", 1) != 1) std::abort();  // ThreadSanitizer knows that a pipe orders its ends
    }
    other.join();
    for (const int each : {ends[0], ends[1], silent[0], silent[1]}) close(each);
    sum += data;
}

void shared_objects() {
    const auto ask = std::make_unique<tocsin::shared_auto_reset_event>();
    const auto answer = std::make_unique<tocsin::shared_semaphore>();
    const auto end = std::make_unique<tocsin::shared_manual_reset_event>();
    const auto lock = std::make_unique<tocsin::shared_lock>();
    int data = 0;
    int locked = 0;
    int last = 0;
    const auto add_one = [&] {
        if (lock->lock() != tocsin::lock_status::acquired) std::abort();
        ++locked;
        lock->unlock();
    };
    std::jthread other([&] {
        for (int i = 0; i != rounds; ++i) {
            (void)ask->wait();
            ++data;
            sometimes_nap(i);
            answer->release();
            add_one();
        }
        last = 1;
        let_sleep();
        end->set();
    });
    for (int i = 0; i != rounds; ++i) {
        ++data;
        sometimes_nap(i + 8);
        ask->set();
        answer->acquire();
        add_one();
    }
    (void)end->wait();
    sum += data + last;

    const auto gate = std::make_unique<tocsin::shared_manual_reset_event>();
    tocsin::auto_reset_event never;
    made_and_found([&] { gate->set(); }, [&] { (void)tocsin::wait_any(never, *gate); });
}

// The same objects as sources of waits, whose places in the queues a thread of the library keeps.
void shared_sources() {
    const auto ask = std::make_unique<tocsin::shared_auto_reset_event>();
    const auto answer = std::make_unique<tocsin::shared_semaphore>();
    const auto end = std::make_unique<tocsin::shared_manual_reset_event>();
    tocsin::auto_reset_event never;
    int data = 0;
    int last = 0;
    std::jthread other([&] {
        for (int i = 0; i != rounds; ++i) {
            (void)tocsin::wait_any(*ask, never);
            ++data;
            sometimes_nap(i);
            answer->release();
        }
        last = data;
        std::this_thread::sleep_for(1ms);  // so that the other thread may sleep; nothing says that it does
        end->set();
    });
    for (int i = 0; i != rounds; ++i) {
        ++data;
        sometimes_nap(i + 8);
        ask->set();
        (void)tocsin::wait_any(*answer, never);
    }
    (void)tocsin::wait_any(*end, never);
    sum += data + last;
}
#endif

// The event says nothing of the data: the thread that sets it writes afterwards.
void race() {
    tocsin::auto_reset_event ready;
    in_turn(
        [&](int& data) {
            ready.set();
            ++data;
        },
        [&](int& data) {
            ready.wait();
            ++data;
        });
}

}  // namespace

int main(int count, char** arguments) {
    if (count == 2 && std::strcmp(arguments[1], "race") == 0) {
        race();
        return 0;
    }
    const std::pair<const char*, void (*)()> all[]{{"events", events},
                                                   {"gates", gates},
                                                   {"semaphores", semaphores},
                                                   {"locks", locks},
                                                   {"conditions", conditions},
                                                   {"conditions alone", conditions_alone},
                                                   {"latches", latches},
                                                   {"barriers", barriers},
                                                   {"groups", groups},
                                                   {"channel of 0", [] { channels(0); }},
                                                   {"channel of 4", [] { channels(4); }},
                                                   {"several", waits_for_several},
                                                   {"sets", sets},
                                                   {"addresses", addresses},
                                                   {"handlers", handler_threads},
                                                   {"group_commit", group_commits},
                                                   {"coroutines", coroutines},
                                                   {"receiving coroutines", coroutines_that_receive},
                                                   {"operations", operations},
#if defined(__linux__)
                                                   {"descriptors", descriptors},
                                                   {"shared", shared_objects},
                                                   {"shared_sources", shared_sources},
#endif
                                                   {"found", found_without_sleep},
                                                   {"found alongside", found_alongside_others},
                                                   {"destroyed channels", destroyed_channels},
                                                   {"ended handlers", ended_handler_threads},
                                                   {"stops", stops},
                                                   {"stops during waits", stops_during_waits}};
    for (const auto& [name, run] : all) {
        if (count == 2 && std::strcmp(arguments[1], name) != 0) continue;
        std::fprintf(stderr, "%s\n", name);  // in front of what ThreadSanitizer reports of it
        run();
    }
    return 0;
}
