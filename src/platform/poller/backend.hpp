// SPDX-License-Identifier: Apache-2.0
// Defines the functions of poller_backend (poller.hpp) in terms of a mechanism, which provides what differs between
// systems. A mechanism is a class with these members:
//   set                      the class of the mechanism's poll sets; set::open() returns 0 or an error
//   poll                     as poller_backend::poll
//   doorbells()              the pool of doorbells that this copy of the library uses: its own, or that of the first
//                            copy in the process
//   shared_state()           as poller_backend::shared_state
//   make_doorbell(ends)      opens a doorbell's object (for example a pipe) and sets `ends` to two descriptors, one to
//                            ring and one to wait on (they may be the same); returns 0 or an error
//   make_flag(ends)          opens a readable_flag's object and sets `ends` to two descriptors, one to write and one to
//                            read (they may be the same); returns 0 or an error
//   strike(ring_end, even)   makes a doorbell's object ready; `even` is for objects with two kinds of strikes
//                            (doorbells.cpp)
// A mechanism's file ends with an explicit instantiation of its backend.
#pragma once

#include "platform/poller/doorbells.hpp"
#include "platform/poller/poller.hpp"
#include "platform/system/system.hpp"

#include <cerrno>
#include <memory>
#include <new>
#include <span>

namespace tocsin::platform {

// A poll set that has a bell, which is one of the doorbells in the pool of `Doorbells`.
template <class Doorbells>
class poll_set_with_bell : public poll_set {
public:
    ~poll_set_with_bell() override {
        if (bell_ != no_doorbell) Doorbells::doorbells().release(bell_);
    }
    doorbell_id bell() const noexcept final { return bell_; }

protected:
    // Returns 0 or an error.
    int take_bell() noexcept {
        const auto [bell, error] = Doorbells::doorbells().acquire(Doorbells::make_doorbell);
        bell_ = bell;
        return error;
    }
    doorbell& own_bell() const noexcept { return Doorbells::doorbells()[bell_]; }
    void ring() const noexcept { Doorbells::doorbells().ring(bell_, Doorbells::strike); }

private:
    doorbell_id bell_ = no_doorbell;
};

template <class Mechanism>
taken_doorbell poller_backend<Mechanism>::take_doorbell() noexcept {
    const errno_guard guard;
    return Mechanism::doorbells().take(Mechanism::make_doorbell);
}

template <class Mechanism>
void poller_backend<Mechanism>::give_doorbell_back(doorbell_id bell) noexcept {
    Mechanism::doorbells().give_back(bell);
}

template <class Mechanism>
void poller_backend<Mechanism>::ring_doorbell(doorbell_id bell) noexcept {
    const errno_guard guard;
    Mechanism::doorbells().ring(bell, Mechanism::strike);
}

template <class Mechanism>
poll_result poller_backend<Mechanism>::poll(std::span<poll_entry> what, doorbell_id bell,
                                            const deadline& until) noexcept {
    if (const doorbell* const found = Mechanism::doorbells().find(bell)) found->check();
    return Mechanism::poll(what, bell, until);
}

template <class Mechanism>
std::unique_ptr<poll_set> poller_backend<Mechanism>::open_poll_set(int& error) noexcept {
    const errno_guard guard;
    std::unique_ptr<typename Mechanism::set> made(new (std::nothrow) typename Mechanism::set);
    error = made != nullptr ? made->open() : ENOMEM;
    if (error != 0) made = nullptr;
    return made;
}

template <class Mechanism>
int poller_backend<Mechanism>::open_flag(int (&ends)[2]) noexcept {
    const errno_guard guard;
    return Mechanism::make_flag(ends);
}

template <class Mechanism>
void poller_backend<Mechanism>::after_fork() noexcept {
    Mechanism::doorbells().forget();
}

template <class Mechanism>
void*& poller_backend<Mechanism>::shared_state() noexcept {
    return Mechanism::shared_state();
}

}  // namespace tocsin::platform
