// SPDX-License-Identifier: Apache-2.0
// Linux: futexes that are not private to a process, and the list of robust futexes that the kernel walks when a thread
// ends.
//
// The list has one head for each thread, which belongs to the C library (glibc, from the thread's start; musl, from the
// thread's first robust mutex). If the thread has none, it gets one from this file.
//
// Covered words need no list: their address is in the head, in memory of the process. The C library uses that field
// only during its own calls for robust mutexes, and no such call runs while a call of this library does.
//
// Held words are in the list, with links in shared memory. Other processes may scribble over these links, so nobody but
// the kernel must read them:
//   links-1  The held words are the last entries of the list, in the order of `held`. To insert in front of them, the C
//            library reads the head. To remove an entry in front of them, it reads that entry. In both cases it writes
//            the link backwards of our first entry, which is in the slot.
//   links-2  This file knows from `held` what the links are, and writes them only. It reads the links of the C
//            library's entries, which the C library trusts as well.
// If a process scribbles over the links, the kernel may miss the later ones of a dying thread's held words.
#include "platform/futex/futex.hpp"
#include "platform/shared/shared_futex.hpp"
#include "platform/system/kernel_time.hpp"
#include "platform/system/system.hpp"
#include "platform/system/timed_call_linux.hpp"

#include <tocsin/detail/sanitizer.hpp>

#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tocsin::platform {
namespace {

constexpr long call_futex_waitv = 449;  // the same number on every architecture

// The kernel's own types, which older headers lack.
struct waitv_entry {
    std::uint64_t expected;
    std::uint64_t address;
    std::uint32_t flags;
    std::uint32_t reserved;
};
constexpr std::uint32_t word_of_four_bytes = 2;
constexpr std::uint32_t own_word = 128;
struct time_of_kernel {
    std::int64_t tv_sec;
    long long tv_nsec;
};
struct robust_entry {
    robust_entry* next;
};
struct robust_head {
    robust_entry list;
    long futex_offset;
    robust_entry* pending;
};

constexpr std::size_t max_held = 64;

// What a thread keeps. It is not thread-local, because static thread-local storage is scarce
// (docs/decisions/0006-copies-share-a-lot.md): it is the value of a key, and made at the thread's first use.
struct thread_state {
    robust_head* head = nullptr;
    std::uint32_t mark = 0;
    bool of_kernel = false;  // whether the kernel knows the head
    int ends = 0;            // how often end_of_thread() has been called
    std::size_t held_count = 0;
    const void* held[max_held] = {};
    robust_head own = {};
};

void* low_half(const wide_word& word) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(&word);
    return reinterpret_cast<void*>(address + (std::endian::native == std::endian::big ? 4 : 0));
}
void* address_of(const narrow_word& word) noexcept { return const_cast<narrow_word*>(&word); }

// Fills in the thread's mark and the head of its list. If the thread has no list, it gets `own`.
void find_head(thread_state& self) noexcept {
    const errno_guard guard;
    self.mark = static_cast<std::uint32_t>(::syscall(SYS_gettid)) | sleepers_bit;
    robust_head* found = nullptr;
    std::size_t length = 0;
    self.of_kernel = ::syscall(SYS_get_robust_list, 0, &found, &length) == 0;
    if (!self.of_kernel || found == nullptr || length != sizeof(robust_head)) {
        self.own.list.next = &self.own.list;
        self.own.futex_offset = -32;
        self.own.pending = nullptr;
        self.of_kernel = ::syscall(SYS_set_robust_list, &self.own, sizeof self.own) == 0;
        found = &self.own;
    }
    self.head = found;
}

// The key whose value is a thread's state, and whether there is one.
struct state_key {
    pthread_key_t key{};
    bool exists = false;

    state_key() noexcept {
        exists = ::pthread_key_create(&key, end_of_thread) == 0;
        (void)::pthread_atfork(nullptr, nullptr, forget_in_child);
    }
    static void end_of_thread(void* state) noexcept;
    static void forget_in_child() noexcept;
};

const state_key& the_key() noexcept {
    static const state_key made;
    return made;
}

// A thread that ends with a list of ours keeps its state: the kernel reads the list after the thread's last
// instruction. Only a C library without a list of its own for each thread (musl) comes here.
// A thread that holds locks keeps its state for as long as it can: what ends after this function may unlock them. In
// the last round of destructors ThreadSanitizer takes its own state of the thread away, and instrumented code may then
// crash (seen with GCC 16.2). So a build for it does without the last round.
constexpr int rounds_at_end = PTHREAD_DESTRUCTOR_ITERATIONS - (detail::thread_sanitizer ? 1 : 0);
void state_key::end_of_thread(void* state) noexcept {
    auto* const self = static_cast<thread_state*>(state);
    if (self->held_count != 0 && ++self->ends < rounds_at_end) {
        (void)::pthread_setspecific(the_key().key, self);
    } else if (self->head != &self->own) {
        delete self;
    }
}

// The child of a fork has one thread, another number, and holds nothing.
void state_key::forget_in_child() noexcept {
    auto* const self = static_cast<thread_state*>(::pthread_getspecific(the_key().key));
    if (self == nullptr) return;
    self->held_count = 0;
    find_head(*self);
}

// The calling thread's state. Null if there is no memory for it. Then the thread asks the kernel each time, and can
// hold no lock.
thread_state* state_of_thread() noexcept {
    const state_key& key = the_key();
    auto* self = static_cast<thread_state*>(::pthread_getspecific(key.key));
    if (self != nullptr) [[likely]]
        return self;
    const errno_guard guard;
    self = key.exists ? new (std::nothrow) thread_state : nullptr;
    if (self != nullptr && ::pthread_setspecific(key.key, self) == 0) {
        find_head(*self);
        return self;
    }
    delete self;
    return nullptr;
}

// Null if the thread has no list.
robust_head* head_of_thread() noexcept {
    if (const thread_state* const self = state_of_thread()) return self->head;
    const errno_guard guard;
    robust_head* found = nullptr;
    std::size_t length = 0;
    const bool known =
        ::syscall(SYS_get_robust_list, 0, &found, &length) == 0 && length == sizeof(robust_head);
    return known ? found : nullptr;
}

robust_entry* entry_of(const robust_head& head, const void* word) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(word);
    return reinterpret_cast<robust_entry*>(address - static_cast<std::uintptr_t>(head.futex_offset));
}

// The kernel reads the links and the pending entry when the thread ends, so the compiler must not move these writes.
template <class T>
void write(T*& to, T* value) noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // no order: for the compiler alone
    std::memcpy(static_cast<void*>(&to), static_cast<const void*>(&value), sizeof(T*));
    std::atomic_signal_fence(std::memory_order_seq_cst);  // no order: for the compiler alone
}

void cover_word(const void* word) noexcept {
    if (robust_head* const head = head_of_thread()) write(head->pending, entry_of(*head, word));
}

void wake(const void* word, int max, int operation) noexcept {
    const errno_guard guard;
    (void)timed_call<older_futex, newer_futex>(0, [=](long call, const auto&) {
        return ::syscall(call, word, operation, max, nullptr, nullptr, 0);
    });
}

shared_sleep sleep_on_one(const watched_word& one, const deadline& until) noexcept {
    const void* word = one.wide != nullptr ? low_half(*one.wide) : address_of(*one.narrow);
    const int operation = FUTEX_WAIT_BITSET | (one.own ? FUTEX_PRIVATE_FLAG : 0) |
                          (until.which() == deadline::clock::system ? FUTEX_CLOCK_REALTIME : 0);
    bool cut = false;
    const long result =
        timed_call<older_futex, newer_futex>(until.nanoseconds(), [&]<class Time>(long call, Time end) {
            cut = !fits<Time>(until.nanoseconds());
            return ::syscall(call, word, operation, one.expected, until.is_never() ? nullptr : &end, nullptr,
                             FUTEX_BITSET_MATCH_ANY);
        });
    return result == -1 && errno == ETIMEDOUT && !cut ? shared_sleep::timed_out : shared_sleep::woken;
}

constinit optional_call several_words;

shared_sleep sleep_on_all(const watched_word* words, std::size_t count, const deadline& until) noexcept {
    waitv_entry entries[max_watched];
    for (std::size_t i = 0; i != count; ++i) {
        const watched_word& each = words[i];
        const void* word = each.wide != nullptr ? low_half(*each.wide) : address_of(*each.narrow);
        entries[i] = {each.expected, reinterpret_cast<std::uintptr_t>(word),
                      word_of_four_bytes | (each.own ? own_word : 0), 0};
    }
    const auto end = time_of<time_of_kernel>(until.nanoseconds());
    const clockid_t clock = until.which() == deadline::clock::system ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    bool in_slices = false;
    const long result = several_words(
        [&] {
            return ::syscall(call_futex_waitv, entries, count, 0, until.is_never() ? nullptr : &end, clock);
        },
        [&]() -> long {
            in_slices = true;
            if (errno == ENOSYS || errno == EPERM) errno = EAGAIN;  // refused for good
            return -1;
        });
    if (in_slices) {
        const deadline slice = std::chrono::milliseconds(10);
        const bool last = until.remaining() <= slice.remaining();
        const shared_sleep how = sleep_on_one(words[0], last ? until : slice);
        return last ? how : shared_sleep::woken;
    }
    return result == -1 && errno == ETIMEDOUT ? shared_sleep::timed_out : shared_sleep::woken;
}

}  // namespace

bool shared_futex::is_available() noexcept { return true; }
bool shared_futex::notices_deaths() noexcept {
    const thread_state* const self = state_of_thread();
    return self != nullptr ? self->of_kernel : head_of_thread() != nullptr;
}

shared_sleep shared_futex::sleep(const watched_word* words, std::size_t count,
                                 const deadline& until) noexcept {
    const errno_guard guard;
    const sleep_result how = sleep_until(until, [&](const deadline& end) {
        const shared_sleep one = count == 1 ? sleep_on_one(words[0], end) : sleep_on_all(words, count, end);
        return one == shared_sleep::timed_out ? sleep_result::timed_out : sleep_result::returned;
    });
    return how == sleep_result::timed_out ? shared_sleep::timed_out : shared_sleep::woken;
}

void shared_futex::wake_all(const wide_word& word) noexcept { wake(low_half(word), INT_MAX, FUTEX_WAKE); }
void shared_futex::wake_all(const narrow_word& word) noexcept { wake(address_of(word), INT_MAX, FUTEX_WAKE); }
void shared_futex::wake_own(const narrow_word& word) noexcept {
    wake(address_of(word), INT_MAX, FUTEX_WAKE_PRIVATE);
}

void shared_futex::set_lowest_bit_and_wake_all(narrow_word& word) noexcept {
    const errno_guard guard;
    detail::
        full_fence();  // [gate] what came before is visible before the kernel's change, whatever order that has
    void* const address = address_of(word);
    const auto never = static_cast<unsigned>(FUTEX_OP(FUTEX_OP_OR, 1, FUTEX_OP_CMP_LT, 0));
    const long result = timed_call<older_futex, newer_futex>(0, [=](long call, const auto&) {
        return ::syscall(call, address, FUTEX_WAKE_OP, INT_MAX, 0L, address, never);
    });
    if (result != -1) return;
    // No such operation here (an emulator): in two steps.
    word.fetch_or(1, std::memory_order_release);  // [gate] with the acquire of whoever passes
    wake(address, INT_MAX, FUTEX_WAKE);
}

std::uint32_t shared_futex::thread_mark() noexcept {
    if (const thread_state* const self = state_of_thread()) return self->mark;
    return static_cast<std::uint32_t>(::syscall(SYS_gettid)) | sleepers_bit;
}

void shared_futex::cover(const narrow_word& word) noexcept { cover_word(address_of(word)); }
void shared_futex::cover(const wide_word& word) noexcept { cover_word(low_half(word)); }
void shared_futex::uncover() noexcept {
    if (robust_head* const head = head_of_thread()) write(head->pending, static_cast<robust_entry*>(nullptr));
}

bool shared_futex::has_room_to_hold() noexcept {
    const thread_state* const self = state_of_thread();
    return self != nullptr && self->held_count != max_held;
}

void shared_futex::hold(narrow_word& word) noexcept {
    thread_state& self = *state_of_thread();  // there was room
    robust_head& head = *self.head;
    robust_entry* const added = entry_of(head, &word);
    write(added->next, &head.list);
    robust_entry* last = &head.list;
    if (self.held_count != 0) {
        last = entry_of(head, self.held[self.held_count - 1]);
    } else {
        for (int i = 0; i != 4096 && last->next != &head.list; ++i) {
            last = reinterpret_cast<robust_entry*>(reinterpret_cast<std::uintptr_t>(last->next) &
                                                   ~std::uintptr_t{1});
        }
    }
    self.held[self.held_count++] = &word;
    write(last->next, added);
}

void shared_futex::let_go(const narrow_word& word) noexcept {
    thread_state* const state = state_of_thread();
    if (state == nullptr) return;
    thread_state& self = *state;
    robust_head& head = *self.head;
    std::size_t index = 0;
    while (index != self.held_count && self.held[index] != &word) ++index;
    if (index == self.held_count) return;
    robust_entry* const after =
        index + 1 == self.held_count ? &head.list : entry_of(head, self.held[index + 1]);
    robust_entry* before = &head.list;
    if (index != 0) {
        before = entry_of(head, self.held[index - 1]);
    } else {
        robust_entry* const ours = entry_of(head, &word);
        for (int i = 0; i != 4096 && before->next != ours && before->next != &head.list; ++i) {
            before = reinterpret_cast<robust_entry*>(reinterpret_cast<std::uintptr_t>(before->next) &
                                                     ~std::uintptr_t{1});
        }
    }
    write(before->next, after);
    for (--self.held_count; index != self.held_count; ++index) self.held[index] = self.held[index + 1];
}

bool shared_futex::holds(const narrow_word& word) noexcept {
    const thread_state* const self = state_of_thread();
    for (std::size_t i = 0; self != nullptr && i != self->held_count; ++i)
        if (self->held[i] == &word) return true;
    return false;
}

}  // namespace tocsin::platform
