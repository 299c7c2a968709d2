// SPDX-License-Identifier: Apache-2.0
// Operations: waits that call a function, in whichever thread ends them.
#include "complaints.hpp"
#include "places.hpp"
#include "scene.hpp"
#include "stress.hpp"
#include "waits.hpp"

#include <tocsin/driver.hpp>
#include <tocsin/event.hpp>
#include <tocsin/operation.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace soak {
namespace {

using tocsin::any_result;
using tocsin::auto_reset_event;
using tocsin::ended_operation;

// Call for a token that an operation has taken, in the function of the operation.
template <class Places>
void pass_on(Places& tokens, std::size_t taken) {
    worker* const self = worker::current();
    expect(self != nullptr, "an operation has taken a token in a thread that sets nothing");
    if (self == nullptr) return;
    tokens.took(taken, *self);
    tokens.put_back(*self);
}

// Tokens that wander through operations that all threads share: any thread starts an idle one, and cancels any. Half of
// the operations have a driver, which one of the threads serves.
class callbacks : public scene {
public:
    explicit callbacks(support::random_source& random)
        : places_(2 + random.below(3)), threads_(some_threads(random)) {
        for (std::size_t i = 0; i != shared_.size(); ++i) shared_[i].emplace(*this, i);
    }

    void enter(crew& hands, book& counted) override {
        hands.start(counted, "serves a driver", [this](worker& self) { serve(self); });
        for (int i = 0; i < threads_; ++i) {
            hands.start(counted, "starts operations", [this](worker& self) { start_and_cancel(self); });
        }
    }

    void end() override { look_again_.set(); }

    void check() override {
        for (auto& each : shared_) {
            (void)each->wait.cancel();
            while (each->is_taken.load()) std::this_thread::yield();  // a background thread may be ending it
            expect(each->calls.load() == each->starts.load(), "a start was not followed by one call");
        }
        places_.check();
        expect(driver_.next_deadline().is_never(), "a driver has a deadline of an operation that has ended");
    }

private:
    struct callback {
        callback(callbacks& its, std::size_t number)
            : of(its),
              first(number % places<6>::count),
              wait(ended{*this}, tocsin::limits(), its.places_[first], its.places_[second()]) {
            if (number % 2 == 0) wait.by(its.driver_);
        }
        std::size_t second() const { return (first + 1) % places<6>::count; }

        struct ended {
            void operator()(any_result how) const noexcept { one.end(how); }
            callback& one;
        };
        // Afterwards another thread may start the operation.
        void end(any_result how) noexcept {
            calls.fetch_add(1);
            if (how.status == wait_status::signaled) pass_on(of.places_, how.index == 0 ? first : second());
            is_taken.store(false);
        }

        callbacks& of;
        const std::size_t first;
        std::atomic<bool> is_taken{false};  // from before the start until the end of the function
        std::atomic<std::uint64_t> starts{0};
        std::atomic<std::uint64_t> calls{0};
        decltype(tocsin::any_operation(std::declval<ended>(), tocsin::limits(),
                                       std::declval<auto_reset_event&>(),
                                       std::declval<auto_reset_event&>())) wait;
    };

    void start_and_cancel(worker& self) {
        while (!self.is_over()) {
            callback& one = *shared_[self.random.below(shared_.size())];
            if (self.random.one_in(3)) {
                if (one.wait.cancel()) self.counts.race();
            } else if (!one.is_taken.exchange(true)) {
                one.starts.fetch_add(1);
                one.wait.start({.until = nanoseconds(self.random.below(100'000))});
            }
            self.done();
            if (self.random.one_in(16)) std::this_thread::yield();
        }
    }

    void serve(worker& self) {
        while (!self.is_over()) {
            (void)look_again_.wait_until(driver_.next_deadline());
            driver_.run_due();
            self.done();
        }
    }

    places<6> places_;
    const int threads_;
    auto_reset_event look_again_;
    const std::function<void()> changed_ = [this] { look_again_.set(); };
    tocsin::driver driver_{changed_};
    std::array<std::optional<callback>, 8> shared_;
};

// Calls the functions of operations in one thread, when it calls run().
class desk {
public:
    void operator()(ended_operation one) {
        const std::lock_guard held(mutex_);
        ended_.push_back(one.address());
    }
    void run() {
        while (void* const next = take()) ended_operation::from_address(next)();
    }
    // Call it after the operation was destroyed.
    void forget(const void* gone) {
        const std::lock_guard held(mutex_);
        std::erase(ended_, gone);
    }

private:
    void* take() {
        const std::lock_guard held(mutex_);
        if (ended_.empty()) return nullptr;
        void* const first = ended_.front();
        ended_.erase(ended_.begin());
        return first;
    }

    std::mutex mutex_;
    std::vector<void*> ended_;
};

// Tokens that wander through operations of several threads. Each thread has an executor of its own, and so may destroy
// its operations at any time. A token that a destroyed operation had been given goes back to its place.
class guests : public scene {
public:
    explicit guests(support::random_source& random)
        : places_(2 + random.below(3)), threads_(some_threads(random)) {}

    void enter(crew& hands, book& counted) override {
        for (int i = 0; i < threads_; ++i) {
            hands.start(counted, "destroys operations", [this](worker& self) { entertain(self); });
        }
    }

    void check() override { places_.check(); }

private:
    static constexpr std::size_t wanted = 2;  // how many places each operation waits for

    // In memory of its own, because its sources are known only when it begins.
    struct guest {
        bool is_there = false;
        bool has_ended = false;
        bool waits_for_all = false;
        guests* of = nullptr;
        std::array<std::size_t, wanted> at{};
        std::unique_ptr<std::max_align_t[]> memory{
            new std::max_align_t[tocsin::operation_size(wanted) / sizeof(std::max_align_t) + 1]};
        tocsin::span_operation* wait = nullptr;
    };

    void entertain(worker& self) {
        desk executor;
        std::array<guest, 4> all;
        while (!self.is_over()) {
            guest& one = all[self.random.below(all.size())];
            if (!one.is_there) {
                welcome(one, executor, self);
            } else if (one.has_ended || self.random.one_in(8)) {
                dismiss(one, executor);
            } else if (self.random.one_in(8)) {
                if (one.wait->cancel()) self.counts.race();
            }
            executor.run();
            self.done();
            if (self.random.one_in(16)) std::this_thread::yield();
        }
        for (guest& each : all) dismiss(each, executor);
    }

    void welcome(guest& one, desk& executor, worker& self) {
        one.of = this;
        one.is_there = true;
        one.has_ended = false;
        one.waits_for_all = self.random.one_in(3);
        one.at[0] = self.random.below(places_.count);
        one.at[1] = (one.at[0] + 1 + self.random.below(places_.count - 1)) % places_.count;
        const tocsin::source sources[wanted] = {places_[one.at[0]], places_[one.at[1]]};
        one.wait =
            &tocsin::span_operation::make(one.memory.get(), one.waits_for_all, sources,
                                          {.until = nanoseconds(self.random.below(200'000))}, ended, &one);
        one.wait->on(executor).start();
    }

    static void ended(void* context, const any_result& how) noexcept {
        guest& one = *static_cast<guest*>(context);
        one.has_ended = true;
        if (how.status != wait_status::signaled) return;
        if (!one.waits_for_all) return pass_on(one.of->places_, one.at[how.index]);
        worker& self = *worker::current();
        for (const std::size_t each : one.at) one.of->places_.took(each, self);
        for (std::size_t i = 0; i != wanted; ++i) one.of->places_.put_back(self);
    }

    static void dismiss(guest& one, desk& executor) {
        if (!one.is_there) return;
        std::destroy_at(one.wait);
        executor.forget(one.wait);
        one.is_there = false;
    }

    places<6> places_;
    const int threads_;
};

template <class Scene>
std::unique_ptr<scene> make(support::random_source& random) {
    return std::make_unique<Scene>(random);
}

}  // namespace

std::vector<scene_kind> operation_scenes() {
    return {{"operations: tokens", make<callbacks>}, {"operations: guests", make<guests>}};
}

}  // namespace soak
