// SPDX-License-Identifier: Apache-2.0
// Holds a state that is never destroyed, because threads that use it keep running while the process exits.
#pragma once

namespace tocsin::detail {

template <class State>
union never_destroyed {
    constexpr never_destroyed() noexcept : it() {}
    constexpr ~never_destroyed() {}
    State it;
};

}  // namespace tocsin::detail
