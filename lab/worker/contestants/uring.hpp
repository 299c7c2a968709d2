// SPDX-License-Identifier: Apache-2.0
// A futex waited for through io_uring (Linux 6.7), in the way of a thread that waits for files and a futex in one
// place. Each thread has a ring.
#pragma once

#include "../contestant.hpp"
#include "../measure/futex.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <linux/io_uring.h>
#include <sys/mman.h>

namespace lab {

// Submits one request at a time and waits for it at once.
class futex_ring {
public:
    futex_ring() noexcept {
        io_uring_params made{};
        descriptor_ = static_cast<int>(syscall(SYS_io_uring_setup, 1, &made));
        if (descriptor_ < 0) return;
        size_ = std::max<std::size_t>(made.sq_off.array + made.sq_entries * sizeof(std::uint32_t),
                                      made.cq_off.cqes + made.cq_entries * sizeof(io_uring_cqe));
        rings_ = map(size_, IORING_OFF_SQ_RING);
        submissions_ = map(sizeof(io_uring_sqe), IORING_OFF_SQES);
        if (rings_ == MAP_FAILED || submissions_ == MAP_FAILED) return;
        submitted_ = at<std::uint32_t>(made.sq_off.tail);
        *at<std::uint32_t>(made.sq_off.array) = 0;
        completed_ = at<std::uint32_t>(made.cq_off.tail);
        consumed_ = at<std::uint32_t>(made.cq_off.head);
        mask_ = *at<std::uint32_t>(made.cq_off.ring_mask);
        completions_ = at<io_uring_cqe>(made.cq_off.cqes);
    }
    ~futex_ring() {
        if (rings_ != MAP_FAILED) munmap(rings_, size_);
        if (submissions_ != MAP_FAILED) munmap(submissions_, sizeof(io_uring_sqe));
        if (descriptor_ >= 0) close(descriptor_);
    }
    futex_ring(const futex_ring&) = delete;
    futex_ring& operator=(const futex_ring&) = delete;

    bool is_open() const noexcept { return completions_ != nullptr; }

    // 0 when woken, -EAGAIN if the word holds another value, another error if this system can't do it.
    int wait(const futex_word& word, std::uint32_t expected) noexcept {
        constexpr std::uint8_t wait_for_futex = 51;  // IORING_OP_FUTEX_WAIT, which older headers lack
        constexpr int private_and_32_bits = 128 | 2;
        io_uring_sqe& request = *static_cast<io_uring_sqe*>(submissions_);
        request = {};
        request.opcode = wait_for_futex;
        request.fd = private_and_32_bits;
        request.addr = reinterpret_cast<std::uintptr_t>(&word);
        request.addr2 = expected;
        request.addr3 = FUTEX_BITSET_MATCH_ANY;
        std::atomic_ref(*submitted_).fetch_add(1, std::memory_order_release);
        const std::uint32_t head = *consumed_;
        for (unsigned to_submit = 1; std::atomic_ref(*completed_).load(std::memory_order_acquire) == head;) {
            const long taken =
                syscall(SYS_io_uring_enter, descriptor_, to_submit, 1, IORING_ENTER_GETEVENTS, nullptr, 0);
            if (taken > 0) to_submit = 0;  // else it was interrupted
        }
        const int result = completions_[head & mask_].res;
        std::atomic_ref(*consumed_).store(head + 1, std::memory_order_release);
        return result;
    }

private:
    void* map(std::size_t size, std::uint64_t what) noexcept {
        return mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor_,
                    static_cast<off_t>(what));
    }
    template <class T>
    T* at(std::uint32_t offset) noexcept {
        return reinterpret_cast<T*>(static_cast<std::byte*>(rings_) + offset);
    }

    int descriptor_ = -1;
    std::size_t size_ = 0;
    void* rings_ = MAP_FAILED;
    void* submissions_ = MAP_FAILED;
    std::uint32_t* submitted_ = nullptr;
    std::uint32_t* completed_ = nullptr;
    std::uint32_t* consumed_ = nullptr;
    std::uint32_t mask_ = 0;
    io_uring_cqe* completions_ = nullptr;
};

struct uring_futex {
    static constexpr contestant_info info{
        .name = "uring_futex",
        .label = "io_uring futex",
        .role = role::peer,
        .about = "a futex word, waited for with IORING_OP_FUTEX_WAIT, woken by the futex's system call",
        .limits = "a ring and a descriptor a thread; set then reset may release nobody; no timed waits here",
        .no_manual_event = "needs a ring a thread: measured with few",
        .no_lock = "a futex is 4 bytes wide, and a bit of it can't be waited for exactly",
        .no_address_wait = "a futex is 4 bytes wide",
        .included_from = tier::full,
    };

    // Linux before 6.7 has no such wait, and a system may forbid rings.
    static std::string missing_here() {
        static const bool works = [] {
            futex_ring ring;
            const futex_word word{0};
            return ring.is_open() && ring.wait(word, 1) == -EAGAIN;
        }();
        return works ? "" : "this kernel has no futex wait in io_uring, or doesn't permit it";
    }

    class auto_event {
    public:
        void set() noexcept {
            word_.exchange(1, std::memory_order_release);
            futex_wake(word_, 1);
        }
        bool try_wait() noexcept {
            return word_.load(std::memory_order_relaxed) != 0 &&
                   word_.exchange(0, std::memory_order_acquire) != 0;
        }
        void wait() noexcept {
            while (!try_wait()) own_ring().wait(word_, 0);
        }

    private:
        static futex_ring& own_ring() noexcept {
            thread_local futex_ring ring;
            return ring;
        }

        futex_word word_{0};
    };
};

}  // namespace lab
