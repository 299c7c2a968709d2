// SPDX-License-Identifier: Apache-2.0
// A thread unmaps an event's memory right after its wait has returned. A call that is still under way never touches it.
#include "facts.hpp"
#include "pages.hpp"
#include "sanitizer.hpp"
#include "threads.hpp"

#include <tocsin/address.hpp>
#include <tocsin/event.hpp>
#include <tocsin/spin.hpp>
#include <tocsin/word_lock.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <thread>

namespace {

using support::rounds;
using support::thread_group;
using tocsin::auto_reset_event;
using tocsin::manual_reset_event;

// Pages that are never mapped twice, so that a late touch of one cannot hit a later one.
class fresh_pages {
public:
    explicit fresh_pages(std::size_t count)
        : size_(support::page_size()),
          left_(count),
          first_(support::reserve_pages(size_ * count)),
          next_(static_cast<char*>(first_)) {}
    fresh_pages(const fresh_pages&) = delete;
    fresh_pages& operator=(const fresh_pages&) = delete;
    ~fresh_pages() { support::release_pages(first_, next_, size_ * left_); }

    void* take() {
        char* const page = next_;
        support::map_pages(page, size_);
        next_ += size_;
        --left_;
        return page;
    }
    void unmap(void* page) const { support::unmap_pages(page, size_); }

private:
    std::size_t size_;
    std::size_t left_;
    void* first_;
    char* next_;
};

template <class Event>
class EveryEventInUnmappedMemory : public testing::Test {};
using both_events = testing::Types<manual_reset_event, auto_reset_event>;
TYPED_TEST_SUITE(EveryEventInUnmappedMemory, both_events);

template <class Fact>
void poll(Fact holds) {
    for (int looks = 0; !holds(); ++looks) {
        if (looks > 300) std::this_thread::yield();
    }
}

// In turn the thread waits with or without spinning, polls is_set() or polls try_wait(). Then it unmaps the event at
// once.
TYPED_TEST(EveryEventInUnmappedMemory, IsNotTouchedOnceTheWaiterReturns) {
    const int count = rounds(10'000, 3'000);
    fresh_pages pages(static_cast<std::size_t>(count));
    std::atomic<TypeParam*> request{nullptr};
    thread_group threads;
    threads.start("setter", [&] {
        for (int i = 0; i < count; ++i) {
            TypeParam* event = nullptr;
            for (int looks = 0; (event = request.exchange(nullptr)) == nullptr; ++looks) {
                if (looks > 100) std::this_thread::yield();
            }
            if (i % 8 == 0) {
                support::until("parked", [&] { return tocsin::waiting_on(event) == 1 || i % 4 != 0; });
            }
            event->set();
        }
    });
    for (int i = 0; i < count; ++i) {
        auto* const event = new (pages.take()) TypeParam;
        const bool polls = i % 4 != 0 && i % 3 == 0;
        request.store(event);
        if (!polls) {
            event->wait(i % 2 == 0 ? tocsin::spin_policy::none() : tocsin::spin_policy());
        } else if (i % 2 == 0) {
            poll([&] { return event->is_set(); });
        } else {
            poll([&] { return event->try_wait(); });
        }
        pages.unmap(event);
    }
    threads.join();
}

TEST(AWordInUnmappedMemory, IsNotTouchedByALateWakeOrUnlock) {
    struct shared {
        std::atomic<std::uint32_t> word{0};
        tocsin::word_lock<std::uint8_t> lock;
    };
    const int count = rounds(4'000, 1'500);
    fresh_pages pages(static_cast<std::size_t>(count));
    std::atomic<shared*> request{nullptr};
    thread_group threads;
    threads.start("changes and unlocks", [&] {
        for (int i = 0; i < count; ++i) {
            shared* page = nullptr;
            while ((page = request.exchange(nullptr)) == nullptr) std::this_thread::yield();
            if (i % 4 == 0) {
                page->word.store(1, std::memory_order_release);
                tocsin::wake_by_address_all(&page->word);
            } else if (i % 4 == 2) {
                tocsin::store(&page->word, 1, tocsin::wake_all);
            } else {
                page->lock.unlock();
            }
        }
    });
    for (int i = 0; i < count; ++i) {
        auto* const page = new (pages.take()) shared;
        if (i % 2 == 1) page->lock.lock();
        request.store(page);
        if (i % 2 == 0) {
            while (tocsin::wait_on_address(&page->word, 0u) != tocsin::address_status::differed) {
                if (page->word.load(std::memory_order_acquire) == 1) break;
            }
        } else {
            page->lock.lock();
        }
        pages.unmap(page);
    }
    threads.join();
}

}  // namespace
