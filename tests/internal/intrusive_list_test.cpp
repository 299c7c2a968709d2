// SPDX-License-Identifier: Apache-2.0
// The list under every queue of the library, against a vector of pointers.
#include "random.hpp"

#include <tocsin/detail/intrusive_list.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace {

struct node : tocsin::detail::list_links<node> {};
using list = tocsin::detail::intrusive_list<node>;

std::vector<const node*> forwards(const list& all) {
    std::vector<const node*> found;
    for (const node* each = all.first(); each != nullptr; each = list::next(*each)) found.push_back(each);
    return found;
}

// Removes from the end, so that every link back is followed.
std::vector<const node*> drained_backwards(list& all) {
    std::vector<const node*> found;
    while (node* const last = all.last()) {
        found.insert(found.begin(), last);
        all.remove(*last);
    }
    return found;
}

using order = std::vector<const node*>;

TEST(IntrusiveList, IsEmptyAtFirst) {
    list all;
    EXPECT_TRUE(all.empty());
    EXPECT_EQ(all.first(), nullptr);
    EXPECT_EQ(all.last(), nullptr);
    EXPECT_EQ(all.take_first(), nullptr);
}

TEST(IntrusiveList, KeepsTheOrderOfArrival) {
    std::array<node, 3> nodes;
    list all;
    for (node& each : nodes) all.append(each);
    const order expected{&nodes[0], &nodes[1], &nodes[2]};
    EXPECT_EQ(forwards(all), expected);
    EXPECT_EQ(all.first(), &nodes[0]);
    EXPECT_EQ(all.last(), &nodes[2]);
    EXPECT_EQ(drained_backwards(all), expected);
    EXPECT_TRUE(all.empty());
}

TEST(IntrusiveList, InsertsAtTheFrontInTheMiddleAndAtTheEnd) {
    node first, second, third, fourth;
    list all;
    all.insert_after(nullptr, third);
    all.insert_after(nullptr, first);
    all.insert_after(&first, second);
    all.insert_after(&third, fourth);
    const order expected{&first, &second, &third, &fourth};
    EXPECT_EQ(forwards(all), expected);
    EXPECT_EQ(drained_backwards(all), expected);
}

TEST(IntrusiveList, RemovesTheFirstTheMiddleTheLastAndTheOnlyNode) {
    for (std::size_t removed = 0; removed != 3; ++removed) {
        std::array<node, 3> nodes;
        list all;
        order expected;
        for (std::size_t i = 0; i != 3; ++i) {
            all.append(nodes[i]);
            if (i != removed) expected.push_back(&nodes[i]);
        }
        all.remove(nodes[removed]);
        EXPECT_EQ(list::next(nodes[removed]), nullptr);
        EXPECT_EQ(forwards(all), expected);
        EXPECT_EQ(drained_backwards(all), expected);
    }
    node only;
    list all;
    all.append(only);
    all.remove(only);
    EXPECT_TRUE(all.empty());
    EXPECT_EQ(all.last(), nullptr);
}

TEST(IntrusiveList, ChangesHandsWhole) {
    std::array<node, 3> nodes;
    list all;
    for (node& each : nodes) all.append(each);
    const order expected{&nodes[0], &nodes[1], &nodes[2]};
    list moved(std::move(all));
    EXPECT_TRUE(all.empty());  // NOLINT(bugprone-use-after-move): a list that was moved from is empty
    EXPECT_EQ(all.last(), nullptr);
    list assigned;
    assigned = std::move(moved);
    EXPECT_TRUE(moved.empty());  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(forwards(assigned), expected);
    list adopted(assigned.first(), assigned.last());
    EXPECT_EQ(drained_backwards(adopted), expected);
}

TEST(IntrusiveList, TakesInAnotherList) {
    for (std::size_t behind = 0; behind != 3; ++behind) {
        std::array<node, 4> nodes;
        list all;
        all.append(nodes[0]);
        all.append(nodes[1]);
        list more;
        all.insert_after(&nodes[0], std::move(more));  // an empty one
        more.append(nodes[2]);
        more.append(nodes[3]);
        all.insert_after(behind == 0 ? nullptr : &nodes[behind - 1], std::move(more));
        order expected{&nodes[0], &nodes[1]};
        expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(behind), {&nodes[2], &nodes[3]});
        EXPECT_TRUE(more.empty());  // NOLINT(bugprone-use-after-move): a list that was moved from is empty
        EXPECT_EQ(forwards(all), expected);
        EXPECT_EQ(drained_backwards(all), expected);
    }
}

TEST(IntrusiveList, IsCutAnywhere) {
    for (std::size_t cut = 0; cut != 3; ++cut) {
        std::array<node, 3> nodes;
        list all;
        for (node& each : nodes) all.append(each);
        list tail = all.take_from(nodes[cut]);
        order front;
        order back;
        for (std::size_t i = 0; i != 3; ++i) (i < cut ? front : back).push_back(&nodes[i]);
        EXPECT_EQ(forwards(all), front);
        EXPECT_EQ(forwards(tail), back);
        EXPECT_EQ(drained_backwards(all), front);
        EXPECT_EQ(drained_backwards(tail), back);
    }
}

TEST(IntrusiveList, AgreesWithAVector) {
    support::random_source random(1);
    std::array<node, 12> nodes;
    std::vector<node*> idle;
    for (node& each : nodes) idle.push_back(&each);
    std::vector<node*> model;
    list all;
    for (int step = 0; step != 20'000; ++step) {
        const std::size_t at = model.empty() ? 0 : random.below(model.size());
        const auto position = model.begin() + static_cast<std::ptrdiff_t>(at);
        switch (random.below(5)) {
            case 0:
            case 1:
                if (idle.empty()) break;
                all.append(*idle.back());
                model.push_back(idle.back());
                idle.pop_back();
                break;
            case 2:
                if (idle.empty()) break;
                all.insert_after(at != 0 ? model[at - 1] : nullptr, *idle.back());
                model.insert(position, idle.back());
                idle.pop_back();
                break;
            case 3:
                if (model.empty()) break;
                all.remove(*model[at]);
                idle.push_back(model[at]);
                model.erase(position);
                break;
            default:
                ASSERT_EQ(all.take_first(), model.empty() ? nullptr : model.front());
                if (model.empty()) break;
                idle.push_back(model.front());
                model.erase(model.begin());
        }
        ASSERT_EQ(forwards(all), order(model.begin(), model.end()));
        ASSERT_EQ(all.last(), model.empty() ? nullptr : model.back());
    }
    EXPECT_EQ(drained_backwards(all), order(model.begin(), model.end()));
}

}  // namespace
