// SPDX-License-Identifier: Apache-2.0
// What a tocsin_driver points to.
#pragma once

#include <tocsin/driver.hpp>

#include <tocsin.h>

namespace tocsin::c {

struct c_driver {
    c_driver(tocsin_driver_changed call, void* argument)
        : changed(call), context(argument), driver(changed != nullptr ? wake : nullptr, this) {}

    static void wake(void* self) noexcept {
        const auto& one = *static_cast<c_driver*>(self);
        one.changed(one.context);
    }

    const tocsin_driver_changed changed;
    void* const context;
    tocsin::driver driver;
};

}  // namespace tocsin::c
