// SPDX-License-Identifier: Apache-2.0
// What contestants offer between processes. A contestant that offers it has a member type `between`, with
//
//     event      an auto event: set() wait() try_wait(). It is made in memory that is shared with children that are
//                forked afterwards, and inherited by them, with its descriptors if it has any
//     gate       a manual event: set() reset() wait(), if it has one
//     lock       acquire() unlock(), which survives the death of its holder, if it has one
//     wait_any(event*, how many) -> which of them it has taken, if it can
//     in_threads true if its events are those of one process, so that threads must take the place of processes
#pragma once

#include "../measure/futex.hpp"
#include "descriptors.hpp"

#include <tocsin/tocsin.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/ipc.h>
#include <sys/sem.h>

namespace lab {

// The info of a contestant that has nothing but `between`.
constexpr contestant_info only_between(contestant_info about) {
    about.no_manual_event = about.no_auto_event = about.no_lock = about.no_address_wait =
        "is measured between processes";
    return about;
}

template <class Event, class Gate>
struct tocsin_in_memory {
    struct event {
        Event it;
        void set() { it.set(); }
        void wait() { it.wait(); }
        bool try_wait() { return it.try_wait(); }
    };
    struct gate {
        Gate it;
        void set() { it.set(); }
        void reset() { it.reset(); }
        void wait() { it.wait(); }
    };
    static std::size_t wait_any(event* events, std::size_t count) {
        static thread_local std::vector<tocsin::source> sources;
        if (sources.empty()) {
            for (std::size_t i = 0; i != count; ++i) sources.emplace_back(events[i].it);
        }
        return tocsin::wait_any(sources).index;
    }
};

struct tocsin_shared {
    static constexpr contestant_info info = only_between({
        .name = "tocsin_shared",
        .label = "tocsin, shared",
        .role = role::ours,
        .about = "shared_auto_reset_event, shared_manual_reset_event and shared_lock in shared memory",
    });
    struct between : tocsin_in_memory<tocsin::shared_auto_reset_event, tocsin::shared_manual_reset_event> {
        struct lock {
            tocsin::shared_lock it;
            void acquire() {
                if (it.lock() == tocsin::lock_status::owner_died) it.mark_repaired();
            }
            void unlock() { it.unlock(); }
        };
    };
};

struct tocsin_in_threads {
    static constexpr contestant_info info = only_between({
        .name = "tocsin_in_threads",
        .label = "tocsin, in threads",
        .role = role::variant,
        .about = "tocsin's events within a process: threads do what the others' processes do",
    });
    struct between : tocsin_in_memory<tocsin::auto_reset_event, tocsin::manual_reset_event> {
        static constexpr bool in_threads = true;
    };
};

struct shared_futex {
    static constexpr contestant_info info = only_between({
        .name = "shared_futex",
        .label = "shared futex",
        .role = role::peer,
        .about = "a futex word in shared memory; every set makes the system call",
        .limits =
            "re-checks after waking: set then reset may release nobody; a wake is lost with a killed sleeper",
    });
    struct between {
        static void sleep(futex_word& word) noexcept {
            syscall(SYS_futex, &word, FUTEX_WAIT, 0, nullptr, nullptr, 0);
        }
        struct event {
            futex_word word{0};
            void set() noexcept {
                word.exchange(1, std::memory_order_release);
                syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
            }
            bool try_wait() noexcept {
                return word.load(std::memory_order_relaxed) != 0 &&
                       word.exchange(0, std::memory_order_acquire) != 0;
            }
            void wait() noexcept {
                while (!try_wait()) sleep(word);
            }
        };
        struct gate {
            futex_word word{0};
            void set() noexcept {
                word.store(1, std::memory_order_release);
                syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
            }
            void reset() noexcept { word.store(0, std::memory_order_relaxed); }
            void wait() noexcept {
                while (word.load(std::memory_order_acquire) == 0) sleep(word);
            }
        };
    };
};

struct shared_posix_semaphore {
    static constexpr contestant_info info = only_between({
        .name = "shared_posix_semaphore",
        .label = "POSIX semaphore, shared",
        .role = role::peer,
        .about = "sem_init with pshared, sem_post and sem_wait",
        .limits = "counts; can't be waited for alongside anything else",
    });
    struct between {
        class event {
        public:
            event() noexcept { sem_init(&count_, 1, 0); }
            void set() noexcept { sem_post(&count_); }
            bool try_wait() noexcept { return sem_trywait(&count_) == 0; }
            void wait() noexcept {
                while (sem_wait(&count_) != 0) {
                }
            }

        private:
            sem_t count_;
        };
    };
};

struct shared_pthread_cond {
    static constexpr contestant_info info = only_between({
        .name = "shared_pthread_cond",
        .label = "pthread mutex + cond, shared",
        .role = role::peer,
        .about = "a flag under a robust, process-shared pthread mutex, and a process-shared condition",
        .limits = "the condition does not survive a killed waiter",
    });
    struct between {
        class lock {
        public:
            lock() noexcept {
                pthread_mutexattr_t attributes;
                pthread_mutexattr_init(&attributes);
                pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
                pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
                pthread_mutex_init(&mutex, &attributes);
                pthread_mutexattr_destroy(&attributes);
            }
            void acquire() noexcept {
                if (pthread_mutex_lock(&mutex) == EOWNERDEAD) pthread_mutex_consistent(&mutex);
            }
            void unlock() noexcept { pthread_mutex_unlock(&mutex); }
            pthread_mutex_t mutex;
        };
        class flag {
        public:
            flag() noexcept {
                pthread_condattr_t attributes;
                pthread_condattr_init(&attributes);
                pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
                pthread_cond_init(&changed_, &attributes);
                pthread_condattr_destroy(&attributes);
            }

        protected:
            bool take(bool clears, bool waits) noexcept {
                mutex_.acquire();
                while (waits && !is_set_) {
                    if (pthread_cond_wait(&changed_, &mutex_.mutex) == EOWNERDEAD)
                        pthread_mutex_consistent(&mutex_.mutex);
                }
                const bool was = is_set_;
                if (clears) is_set_ = false;
                mutex_.unlock();
                return was;
            }
            void put(bool all) noexcept {
                mutex_.acquire();
                is_set_ = true;
                mutex_.unlock();
                if (all)
                    pthread_cond_broadcast(&changed_);
                else
                    pthread_cond_signal(&changed_);
            }

        private:
            lock mutex_;
            pthread_cond_t changed_;
            bool is_set_ = false;
        };
        struct event : flag {
            void set() noexcept { put(false); }
            bool try_wait() noexcept { return take(true, false); }
            void wait() noexcept { (void)take(true, true); }
        };
        struct gate : flag {
            void set() noexcept { put(true); }
            void reset() noexcept { (void)take(true, false); }
            void wait() noexcept { (void)take(false, true); }
        };
    };
};

struct inherited_eventfd {
    static constexpr contestant_info info = only_between({
        .name = "inherited_eventfd",
        .label = "eventfd, inherited",
        .role = role::peer,
        .about = "an eventfd that the child has inherited: one that came over a socket is the same open file",
        .limits = "a descriptor each; every call enters the kernel",
    });
    struct between {
        class event {
        public:
            void set() noexcept { it_.set(); }
            void wait() noexcept {
                while (!it_.take()) {
                }
            }
            bool try_wait() noexcept {
                const timespec none{};
                return eventfd_event::ready_within(it_, &none) && it_.take();
            }
            int to_poll() const noexcept { return it_.to_poll(); }

        private:
            eventfd_descriptor it_{true};
        };
        using gate = eventfd_event::manual_event;
        static std::size_t wait_any(event* events, std::size_t count) {
            std::array<pollfd, 8> wanted{};
            for (std::size_t i = 0; i != count; ++i) wanted[i] = {events[i].to_poll(), POLLIN, 0};
            for (;;) {
                poll(wanted.data(), count, -1);
                for (std::size_t i = 0; i != count; ++i) {
                    if (wanted[i].revents == 0) continue;
                    events[i].wait();
                    return i;
                }
            }
        }
    };
};

struct inherited_pipe {
    static constexpr contestant_info info = only_between({
        .name = "inherited_pipe",
        .label = "pipe, inherited",
        .role = role::peer,
        .about = "a pipe that the child has inherited: a byte sets, reading all takes",
        .limits = "two descriptors each; every call enters the kernel",
    });
    struct between {
        using event = pipe_event::auto_event;
        using gate = pipe_event::manual_event;
    };
};

struct system_v_semaphore {
    static constexpr contestant_info info = only_between({
        .name = "system_v_semaphore",
        .label = "System V semaphore",
        .role = role::peer,
        .about = "semop on a private set of one semaphore; as a lock with SEM_UNDO",
        .limits = "counts; every call enters the kernel; the set outlives the processes unless it is removed",
    });
    static std::string missing_here() {
        const int one = semget(IPC_PRIVATE, 1, 0600);
        if (one < 0) return "this system has no System V semaphores, or no more of them";
        semctl(one, 0, IPC_RMID);
        return {};
    }
    struct between {
        class set_of_one {
        public:
            set_of_one() noexcept : id_(semget(IPC_PRIVATE, 1, 0600)) {}
            ~set_of_one() { semctl(id_, 0, IPC_RMID); }
            set_of_one(const set_of_one&) = delete;
            set_of_one& operator=(const set_of_one&) = delete;

        protected:
            bool change(int by, int flags) noexcept {
                sembuf step{0, static_cast<short>(by), static_cast<short>(flags)};
                int result = -1;
                do {
                    result = semop(id_, &step, 1);
                } while (result != 0 && errno == EINTR);
                return result == 0;
            }

        private:
            int id_;
        };
        struct event : set_of_one {
            void set() noexcept { (void)change(1, 0); }
            void wait() noexcept { (void)change(-1, 0); }
            bool try_wait() noexcept { return change(-1, IPC_NOWAIT); }
        };
        struct lock : set_of_one {
            lock() noexcept { (void)change(1, 0); }
            void acquire() noexcept { (void)change(-1, SEM_UNDO); }
            void unlock() noexcept { (void)change(1, SEM_UNDO); }
        };
    };
};

}  // namespace lab
