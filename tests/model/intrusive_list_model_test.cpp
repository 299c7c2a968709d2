// SPDX-License-Identifier: Apache-2.0
// Every interleaving of small programs that share an intrusive list under a lock. The links are `plain`: the explorer
// reports an access that the lock does not order, and one to a node that has been destroyed.
#include "explorer/expect.hpp"
#include "support/library_model.hpp"

#include <tocsin/detail/intrusive_list.hpp>

#include <array>
#include <mutex>
#include <utility>

namespace {

using namespace tocsin;
using namespace tocsin::library_model;
using model::plain;
using model::run;

struct node : detail::list_links<node> {
    plain<bool> queued{false};
};
using list = detail::intrusive_list<node>;

struct shared_list {
    core::futex_lock lock;
    list nodes;

    void append(node& last) {
        const std::lock_guard held(lock);
        last.queued = true;
        nodes.append(last);
    }
    // As every owner of nodes does: its own flag tells whether somebody has taken the node.
    bool remove(node& mine) {
        const std::lock_guard held(lock);
        if (!mine.queued) return false;
        mine.queued = false;
        nodes.remove(mine);
        return true;
    }
    bool take_first() {
        const std::lock_guard held(lock);
        node* const oldest = nodes.take_first();
        if (oldest != nullptr) oldest->queued = false;
        return oldest != nullptr;
    }
};

// The node lives on the stack of a thread that takes it out again before it returns.
MODEL_TEST(intrusive_list_model, ANodeIsTakenOrRemovedNeverBoth, holds_always) {
    shared_list shared;
    bool removed = false;
    bool taken = false;
    r.spawn("owner", [&] {
        node mine;
        shared.append(mine);
        removed = shared.remove(mine);
    });
    r.spawn("taker", [&] { taken = shared.take_first(); });
    r.join_all();
    r.check(removed != taken, "the node left the list once");
    r.check(shared.nodes.empty() && shared.nodes.last() == nullptr, "the list is empty at the end");
}

MODEL_TEST(intrusive_list_model, NodesLeaveFromAnywhere, holds_within, 2) {
    shared_list shared;
    node first;
    shared.append(first);
    for (const char* name : {"one", "two", "three"}) {
        r.spawn(name, [&] {
            node mine;
            shared.append(mine);
            r.check(shared.remove(mine), "nobody else takes it");
        });
    }
    r.join_all();
    r.check(shared.nodes.first() == &first && shared.nodes.last() == &first && list::next(first) == nullptr,
            "the first node is alone again");
}

// Whoever takes the whole list in one step walks it outside the lock, while others begin a new one.
MODEL_TEST(intrusive_list_model, AWholeListBelongsToItsTaker, holds_always) {
    shared_list shared;
    node nodes[3];
    shared.append(nodes[0]);
    unsigned seen = 0;
    const auto take_all = [&] {
        list mine;
        {
            const std::lock_guard held(shared.lock);
            mine = std::move(shared.nodes);
        }
        for (node* each = mine.first(); each != nullptr; each = list::next(*each)) {
            each->queued = false;
            ++seen;
        }
    };
    r.spawn("appender", [&] {
        shared.append(nodes[1]);
        shared.append(nodes[2]);
    });
    r.spawn("taker", take_all);
    r.join_all();
    take_all();
    r.check(seen == 3, "each node was in one of the two lists");
}

// The models detect forbidden uses of these lists.
MODEL_TEST(intrusive_list_model, TwoListsThatBecomeOneAreLinkedInBothDirections, holds_always) {
    std::array<node, 4> nodes;
    list all;
    list more;
    all.append(nodes[0]);
    all.append(nodes[3]);
    more.append(nodes[1]);
    more.append(nodes[2]);
    all.insert_after(&nodes[0], std::move(more));
    r.spawn("reader", [&] {
        all.remove(nodes[1]);
        all.remove(nodes[2]);
        model::check(all.first() == &nodes[0] && list::next(nodes[0]) == &nodes[3], "both are gone");
    });
    r.join_all();
}

TEST(intrusive_list_model, ANodeDestroyedInTheListIsNoticed) {
    model::expect_finds("after its destruction", {}, [](run& r) {
        shared_list shared;
        r.spawn("leaves its node behind", [&] {
            node mine;
            shared.append(mine);
        });
        r.join_all();
        node next;
        shared.append(next);
    });
}

TEST(intrusive_list_model, ANodeRemovedWithoutTheLockIsNoticed) {
    model::expect_finds("data race", {}, [](run& r) {
        shared_list shared;
        r.spawn("forgets the lock", [&] {
            node mine;
            shared.append(mine);
            shared.nodes.remove(mine);
        });
        r.spawn("another", [&] {
            node mine;
            shared.append(mine);
            shared.remove(mine);
        });
        r.join_all();
    });
}

}  // namespace
