// SPDX-License-Identifier: Apache-2.0
// A latch of one as a manual event that is made again where an event would be reset.
#pragma once

namespace lab {

template <class Latch>
class latch_gate {
public:
    void set() noexcept { latch_.count_down(); }
    bool is_set() const noexcept { return latch_.try_wait(); }
    void wait() const noexcept { latch_.wait(); }

private:
    Latch latch_{1};
};

}  // namespace lab
