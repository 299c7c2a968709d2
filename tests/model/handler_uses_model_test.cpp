// SPDX-License-Identifier: Apache-2.0
// What signal handlers may still use of an object that its owner takes away, in every interleaving of small programs.
// Proof P21 in docs/proofs.md. Handlers are threads here: a handler may run in any thread.
#include "platform/signals/handler_uses.hpp"
#include "support/library_model.hpp"

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;
using tocsin::platform::handler_uses;

struct guarded {
    handler_uses uses;
    plain<int> content{0};
};

void handle(guarded& one, int expected) {
    if (!one.uses.enter()) return;
    const int seen = one.content;
    model::check(seen == expected, "a handler uses the object as its owner made it");
    one.content = seen;
    one.uses.leave();
}

void take_away(guarded& one) {
    one.uses.close();
    if (one.uses.unused()) one.content = -1;  // no handler uses it any more
}

MODEL_TEST(handler_uses_model, TheOwnerComesBeforeAndAfterEveryUse, holds_always) {
    guarded one;
    r.spawn("owner", [&] {
        one.content = 1;
        one.uses.open();
        take_away(one);
    });
    r.spawn("handler", [&] {
        handle(one, 1);
        handle(one, 1);
    });
    r.join_all();
    r.check(one.uses.unused(), "the count is even");
}

MODEL_TEST(handler_uses_model, APlaceIsUsedAgain, holds_always) {
    guarded one;
    r.spawn("owner", [&] {
        one.content = 1;
        one.uses.open();
        one.uses.close();
        if (!one.uses.unused()) return;
        one.content = 2;
        one.uses.open();
    });
    r.spawn("handler", [&] {
        if (!one.uses.enter()) return;
        const int seen = one.content;
        model::check(seen == 1 || seen == 2, "a handler finds the slot as one of its owners made it");
        one.uses.leave();
    });
    r.join_all();
}

}  // namespace
