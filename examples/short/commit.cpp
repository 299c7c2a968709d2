// SPDX-License-Identifier: Apache-2.0
// Commits for many threads with one flush for each group.
#include <tocsin/group_commit.hpp>

#include <cstdio>
#include <thread>
#include <vector>

struct record {
    int value;
    int position;
};

int main() {
    std::vector<int> log;
    int flushes = 0;
    tocsin::group_commit<record> commit([&](tocsin::commit_group<record> group) {
        for (record& each : group) {
            each.position = static_cast<int>(log.size());
            log.push_back(each.value);
        }
        ++flushes;  // a real log calls fdatasync() here, once for the group
    });
    std::vector<std::jthread> threads;
    for (int i = 0; i != 8; ++i) {
        threads.emplace_back([&, i] {
            record mine{i, -1};
            commit.submit(mine);  // when it returns, `mine` is in the log
        });
    }
    threads.clear();
    std::printf("%zu records, %d flushes\n", log.size(), flushes);
    return log.size() == 8 && flushes <= 8 ? 0 : 1;
}
