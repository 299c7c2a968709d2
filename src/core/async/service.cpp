// SPDX-License-Identifier: Apache-2.0
// Which service serves an asynchronous wait that names none: the default driver, or the background threads.
//
// State: a pointer. The user may change it at any time, by set_default_driver(). The destructor of the default driver
// makes it null, and so does a fork in the child.
//
// Memory order
//   [default-service]  The store of a pointer releases, and the load acquires. So a wait that begins in another thread
//       finds the service fully constructed.
//
// Checked by: tests/model/driver_model_test.cpp (P23 of docs/proofs.md), tests/unit/driver_test.cpp.
#include "core/async/service.hpp"

#include "core/sync/fork.hpp"

#include <tocsin/detail/atomic.hpp>

namespace tocsin::core {
namespace {

constinit detail::atomic<service*> chosen{nullptr};

// The child has no default service, because the parent's loop does not run in the child.
const in_child forgets_service(child_duty::default_service, []() noexcept {
    chosen.store(nullptr, std::memory_order_relaxed);  // no order: the child has one thread
});

}  // namespace

service* default_service() noexcept { return chosen.load(std::memory_order_acquire); }  // [default-service]

void set_default_service(service* which) noexcept {
    chosen.store(which, std::memory_order_release);  // [default-service]
}

void unset_default_service(service& which) noexcept {
    service* expected = &which;
    chosen.compare_exchange_strong(expected, nullptr,
                                   std::memory_order_relaxed);  // no order: nothing to publish
}

}  // namespace tocsin::core
