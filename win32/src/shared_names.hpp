// SPDX-License-Identifier: Apache-2.0
// Names that reach other processes: what TocsinShareNames() puts under them. Why it is correct: shared_names.cpp.
#pragma once

#include "object.hpp"

#include <tocsin/detail/shared_layout.hpp>
#include <tocsin/detail/shared_tokens.hpp>
#include <tocsin/shared_event.hpp>
#include <tocsin/shared_lock.hpp>
#include <tocsin/shared_memory.hpp>
#include <tocsin/shared_semaphore.hpp>
#include <tocsin/stop_token.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace tocsin::win32 {

enum class shared_type : std::uint32_t { none, manual_reset_event, auto_reset_event, semaphore, mutex };

// What a Create function asks for.
struct shared_recipe {
    shared_type type;
    LONG initial;  // an event is set; the permits of a semaphore; the caller owns a mutex
    LONG maximum;  // of a semaphore
};

// The beginning of the file of a named object. The object follows, at offset 64.
struct alignas(64) named_header {
    static constexpr std::uint32_t current = 1;

    std::uint32_t version;
    shared_type type;
    LONG maximum;
    std::atomic<std::uint32_t> abandoned;  // of a mutex: the next owner is to be told; written by the owner
};
static_assert(sizeof(named_header) == 64);

// The use of a file by this process. When it has ended, the file is deleted if no other process uses it. `lock` is the
// path of the folder's lock.
class file_in_use {
public:
    file_in_use(std::string path, std::string lock) noexcept
        : path_(std::move(path)), lock_(std::move(lock)) {}
    file_in_use(const file_in_use&) = delete;
    file_in_use& operator=(const file_in_use&) = delete;
    ~file_in_use();

    void begin() noexcept { is_used_ = true; }

private:
    const std::string path_;
    const std::string lock_;  // made before it is needed, because the destructor can't fail
    bool is_used_ = false;
};

// The file of a named object, which this process has mapped and holds.
class shared_region {
public:
    // The region of this name; if there is none, and `how` is not null, makes one. Returns null if the call fails, and
    // then sets `error`. Throws what a lack of memory throws.
    static std::unique_ptr<shared_region> attach(const std::string& directory, const std::string& name,
                                                 kind wanted, const shared_recipe* how, bool& is_new,
                                                 DWORD& error);
    shared_region(const shared_region&) = delete;
    shared_region& operator=(const shared_region&) = delete;
    // Frees a mutex that its maker was to own, but does not.
    ~shared_region();

    shared_type type() const noexcept { return type_; }
    LONG maximum() const noexcept { return maximum_; }
    named_header& header() const noexcept { return *static_cast<named_header*>(memory_.data()); }
    // Called when a thread has begun to own the mutex.
    void note_owner() noexcept { is_to_be_owned_ = false; }
    template <class Object>
    Object& object_as() const noexcept {
        return *reinterpret_cast<Object*>(static_cast<std::byte*>(memory_.data()) + sizeof(named_header));
    }

private:
    shared_region(std::string path, std::string lock, shared_memory memory) noexcept
        : file_(std::move(path), std::move(lock)), memory_(std::move(memory)) {}

    void begin(const shared_recipe& how);
    DWORD check(kind wanted) noexcept;

    file_in_use file_;
    shared_memory memory_;  // destroyed first: its descriptor has the lock of this process
    shared_type type_ = shared_type::none;
    LONG maximum_ = 0;
    bool is_to_be_owned_ = false;  // the mutex is new, and the calling thread has its lock
};

// Makes the folder of the names, if there is none, and deletes what processes that died have left in it. `folder` may
// be null; becomes the folder's path. Returns 0, or why the names can't be there.
DWORD prepare_shared_names(const char* folder, std::string& path);

// Removes the object from the map of the names. For the destructors of named objects that processes share.
void forget_name(object& gone) noexcept;

class shared_event_object final : public object {
public:
    explicit shared_event_object(std::unique_ptr<shared_region> of) noexcept
        : object(kind::shared_event), region_(std::move(of)) {}
    ~shared_event_object() override { forget_name(*this); }

    bool try_wait() noexcept { return is_manual() ? gate().try_wait() : token().try_wait(); }
    void set() { is_manual() ? gate().set() : token().set(); }
    void reset() noexcept { is_manual() ? gate().reset() : token().reset(); }
    void give_back() {
        if (!is_manual()) token().set();
    }
    source as_source() { return is_manual() ? source(gate()) : source(token()); }

private:
    bool is_manual() const noexcept { return region_->type() == shared_type::manual_reset_event; }
    shared_manual_reset_event& gate() noexcept { return region_->object_as<shared_manual_reset_event>(); }
    shared_auto_reset_event& token() noexcept { return region_->object_as<shared_auto_reset_event>(); }

    const std::unique_ptr<shared_region> region_;
};

class shared_semaphore_object final : public object {
public:
    explicit shared_semaphore_object(std::unique_ptr<shared_region> of) noexcept
        : object(kind::shared_semaphore), region_(std::move(of)) {}
    ~shared_semaphore_object() override { forget_name(*this); }

    bool try_acquire() noexcept { return permits().try_acquire(); }
    // As basic_permits::release(). A call that fails because another thread releases at the same time may have given
    // some of its permits to threads that wait.
    bool release(LONG count, LONG* before) {
        std::uint32_t found = 0;
        if (!detail::shared_permit_try_release(parts(), count, static_cast<std::uint32_t>(region_->maximum()),
                                               found))
            return false;
        if (before != nullptr) *before = static_cast<LONG>(found);
        return true;
    }
    bool is_full() noexcept { return permits().available() >= region_->maximum(); }
    void give_back() { permits().release(); }
    source as_source() { return permits(); }

private:
    shared_semaphore& permits() noexcept { return region_->object_as<shared_semaphore>(); }
    detail::shared_parts parts() noexcept {
        auto& whole = region_->object_as<detail::shared_object<shared_semaphore::slots>>();
        return {whole.header, whole.slots, shared_semaphore::slots, shared_semaphore::kind};
    }

    const std::unique_ptr<shared_region> region_;
};

// The lock of a mutex that processes share. The kernel notices the end of the thread that holds it.
class shared_mutex {
public:
    explicit shared_mutex(std::unique_ptr<shared_region> of) noexcept : region_(std::move(of)) {}

    enum class result : std::uint8_t { taken, taken_abandoned, not_taken };
    result try_take() { return ended(lock().try_lock()); }
    result take(const deadline& until) { return ended(lock().try_lock_until(until)); }
    // `result::not_taken` also if a stop was requested.
    result take(const deadline& until, const stop_token& stop) {
        return ended(lock().try_lock_until(until, stop));
    }
    void note_owner() noexcept { region_->note_owner(); }
    // For the thread that has taken it. If `abandoned`, the next owner is told that the mutex was abandoned.
    void hand_on(bool abandoned) noexcept;

private:
    tocsin::shared_lock& lock() noexcept { return region_->object_as<tocsin::shared_lock>(); }
    result ended(lock_status how);

    const std::unique_ptr<shared_region> region_;
};

}  // namespace tocsin::win32
