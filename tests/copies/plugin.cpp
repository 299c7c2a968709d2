// SPDX-License-Identifier: Apache-2.0
// A plug-in with its own copy of the library, or one that uses the shared library.
#include "plugin.hpp"

#include <tocsin/address.hpp>
#include <tocsin/diagnose.hpp>
#include <tocsin/event.hpp>
#include <tocsin/word_lock.hpp>

#if defined(_WIN32)
#include <tocsin/fd.hpp>
#include <tocsin/wait.hpp>
#endif

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <system_error>

namespace {

using tocsin::wait_status;

// The deadline of every wait here, so that the test fails and does not hang if a wake-up is lost.
constexpr std::chrono::seconds patience(20);

void* make() {
    static shared_objects objects;
    return &objects;
}

bool wait_for_event(void* objects) {
    return static_cast<shared_objects*>(objects)->event.wait_for(patience) == wait_status::signaled;
}
void set_event(void* objects) { static_cast<shared_objects*>(objects)->event.set(); }

bool wait_for_word(void* objects) {
    auto& word = static_cast<shared_objects*>(objects)->word;
    return tocsin::wait_on_address(&word, std::uint16_t{0}, patience) == tocsin::address_status::woken;
}
unsigned wake_word(void* objects) {
    return static_cast<unsigned>(tocsin::wake_by_address_all(&static_cast<shared_objects*>(objects)->word));
}

bool lock(void* objects) { return static_cast<shared_objects*>(objects)->lock.try_lock_for(patience); }
void unlock(void* objects) { static_cast<shared_objects*>(objects)->lock.unlock(); }

unsigned parked(void* objects) {
    const auto& all = *static_cast<shared_objects*>(objects);
    return static_cast<unsigned>(tocsin::waiting_on(&all.event) + tocsin::waiting_on(&all.word) +
                                 tocsin::waiting_on(&all.lock));
}

#if defined(_WIN32)
int wait_for_socket(std::uintptr_t socket, unsigned milliseconds) {
    tocsin::auto_reset_event nobody;
    const std::chrono::milliseconds longest(milliseconds);
    try {
        const auto found = tocsin::wait_any({.until = longest}, nobody, tocsin::readable(socket));
        return found.status == wait_status::signaled ? 0 : ETIMEDOUT;
    } catch (const std::system_error& error) {
        return error.code().value();
    }
}
#endif

}  // namespace

#if defined(_WIN32)
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif
extern "C" EXPORTED const plugin_functions* tocsin_test_plugin() {
    static const plugin_functions functions{
        make,
        wait_for_event,
        set_event,
        wait_for_word,
        wake_word,
        lock,
        unlock,
        parked,
#if defined(_WIN32)
        wait_for_socket,
#endif
    };
    return &functions;
}
