// SPDX-License-Identifier: Apache-2.0
// The first look of a wait for any (may_be_ready(), [all-taken]) alongside a wait for all. If a thread finds that one
// event of the wait for all is taken, it finds the others taken or held. Proof P11.
#include "support/library_model.hpp"

#include <array>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::run;

MODEL_TEST(first_look_model, AWaitForAnyThatFindsOneTakenSeesTheOtherTaken, holds_within, 2) {
    auto_reset_event a(true);
    auto_reset_event b(true);
    r.spawn("all", [&] { (void)wait_all(a, b); });
    r.spawn("looker", [&] {
        const std::array only{source(a)};
        const auto how = wait_any({.until = std::chrono::nanoseconds(0), .spin = sleep_at_once}, only);
        if (how.status == wait_status::signaled) return a.set();  // gives it back to the wait for all
        model::check(!b.is_set(), "one is taken, the other is not");
    });
    r.join_all();
}

}  // namespace
