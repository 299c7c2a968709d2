// SPDX-License-Identifier: Apache-2.0
#include "threads.hpp"

#include "machine.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lab {

struct thread_group::member {
    thread_group* group;
    std::size_t index;
};

thread_group::thread_group(std::size_t wanted, std::function<void(std::size_t)> body)
    : body_(std::move(body)), members_(wanted), ids_(wanted) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * 1024);  // so that thousands of them fit
    threads_.reserve(wanted);
    for (std::size_t i = 0; i < wanted; ++i) {
        members_[i] = {this, i};
        pthread_t thread{};
        if (const int error = pthread_create(&thread, &attributes, enter, &members_[i]); error != 0) {
            shortage_ = "only " + std::to_string(i) + " of " + std::to_string(wanted) +
                        " threads could be created: " + std::strerror(error);
            break;
        }
        threads_.push_back(thread);
    }
    pthread_attr_destroy(&attributes);

    ids_.resize(threads_.size());
    for (;;) {
        const std::uint32_t ready = ready_.load();
        if (ready == threads_.size()) break;
        futex_wait(ready_, ready);
    }
}

thread_group::~thread_group() {
    go();
    join();
}

void thread_group::join() noexcept {
    for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
    threads_.clear();
}

void* thread_group::enter(void* raw) noexcept {
    const member& self = *static_cast<member*>(raw);
    thread_group& group = *self.group;
    group.ids_[self.index] = thread_id();
    group.ready_.fetch_add(1);
    futex_wake(group.ready_);
    group.start_.pass();
    group.body_(self.index);
    return nullptr;
}

}  // namespace lab
