// SPDX-License-Identifier: Apache-2.0
// Stand-ins for those parts of folly, Abseil and pevents that docs/coming_from.md shows: the signatures of these
// libraries and what they document, over one mutex and one condition variable each.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace support {

// What most of them are made of: a value under a mutex, and threads that wait until a predicate of it holds.
template <class Value>
class guarded {
public:
    explicit guarded(Value value) : value_(std::move(value)) {}

    template <class Change>
    void change(Change change) {
        const std::lock_guard lock(mutex_);
        change(value_);
        changed_.notify_all();
    }
    template <class Predicate>
    void wait(Predicate holds) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return holds(value_); });
    }
    template <class Predicate>
    bool wait_for(std::chrono::milliseconds longest, Predicate holds) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, longest, [&] { return holds(value_); });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    Value value_;
};

}  // namespace support

namespace folly {

template <bool MayBlock = true>
class Baton {
public:
    void post() {
        is_posted_.change([](bool& is_posted) { is_posted = true; });
    }
    bool try_wait_for(std::chrono::milliseconds longest) {
        return is_posted_.wait_for(longest, [](bool is_posted) { return is_posted; });
    }

private:
    support::guarded<bool> is_posted_{false};
};

class EventCount {
public:
    void notify() {
        epoch_.change([](std::uint64_t& epoch) { ++epoch; });
    }
    template <class Condition>
    void await(Condition condition) {
        while (!condition()) {
            std::uint64_t key = 0;
            epoch_.wait([&](std::uint64_t epoch) {
                key = epoch;
                return true;
            });
            if (condition()) return;
            epoch_.wait([&](std::uint64_t epoch) { return epoch != key; });
        }
    }

private:
    support::guarded<std::uint64_t> epoch_{0};
};

}  // namespace folly

namespace absl {

inline std::chrono::milliseconds Seconds(int count) { return std::chrono::seconds(count); }

class Notification {
public:
    void Notify() {
        is_notified_.change([](bool& is_notified) { is_notified = true; });
    }
    bool WaitForNotificationWithTimeout(std::chrono::milliseconds longest) {
        return is_notified_.wait_for(longest, [](bool is_notified) { return is_notified; });
    }

private:
    support::guarded<bool> is_notified_{false};
};

class Condition {
public:
    template <class Function>
    explicit Condition(const Function* function)
        : function_(function), call_([](const void* of) { return (*static_cast<const Function*>(of))(); }) {}
    bool Eval() const { return call_(function_); }

private:
    const void* function_;
    bool (*call_)(const void*);
};

class Mutex {
public:
    void Lock() { mutex_.lock(); }
    void Unlock() {
        mutex_.unlock();
        changed_.notify_all();
    }
    void Await(const Condition& condition) {
        std::unique_lock lock(mutex_, std::adopt_lock);
        changed_.wait(lock, [&] { return condition.Eval(); });
        lock.release();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
};

class MutexLock {
public:
    explicit MutexLock(Mutex* mutex) : mutex_(mutex) { mutex_->Lock(); }
    ~MutexLock() { mutex_->Unlock(); }
    MutexLock(const MutexLock&) = delete;
    MutexLock& operator=(const MutexLock&) = delete;

private:
    Mutex* mutex_;
};

class BlockingCounter {
public:
    explicit BlockingCounter(int initial_count) : count_(initial_count) {}
    bool DecrementCount() {
        bool is_zero = false;
        count_.change([&](int& count) { is_zero = --count == 0; });
        return is_zero;
    }
    void Wait() {
        count_.wait([](int count) { return count == 0; });
    }

private:
    support::guarded<int> count_;
};

}  // namespace absl

namespace neosmart {

struct neosmart_event_t_ {
    bool resets_itself;
    bool is_set;
};
using neosmart_event_t = neosmart_event_t_*;

// One for all events, so that a wait can look at several.
inline support::guarded<int>& of_all_events() {
    static support::guarded<int> changes{0};
    return changes;
}

inline neosmart_event_t CreateEvent(bool manualReset = false, bool initialState = false) {
    return new neosmart_event_t_{!manualReset, initialState};
}
inline int DestroyEvent(neosmart_event_t event) {
    delete event;
    return 0;
}
inline int SetEvent(neosmart_event_t event) {
    of_all_events().change([&](int&) { event->is_set = true; });
    return 0;
}
// As the page needs it: for any of the events.
inline int WaitForMultipleEvents(neosmart_event_t* events, int count, bool, std::uint64_t milliseconds,
                                 int& index) {
    const bool is_done = of_all_events().wait_for(std::chrono::milliseconds(milliseconds), [&](int) {
        for (index = 0; index != count; ++index) {
            if (!events[index]->is_set) continue;
            if (events[index]->resets_itself) events[index]->is_set = false;
            return true;
        }
        return false;
    });
    return is_done ? 0 : 1;
}

}  // namespace neosmart
