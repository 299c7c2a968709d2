// SPDX-License-Identifier: Apache-2.0
// What append_log.hpp promises, even when the disk is full or fails, or the power goes.
#include "append_log.hpp"

#include "crc32c.hpp"
#include "test_files.hpp"

#include <tocsin/event.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using append_log::access;
using append_log::bytes;
using append_log::closed_error;
using append_log::damage_error;
using append_log::disk;
using append_log::faults;
using append_log::faulty_file;
using append_log::folder;
using append_log::log;
using append_log::memory_file;
using append_log::open_file;
using append_log::write_error;

constexpr std::size_t begin_size = 16;
constexpr std::size_t header_size = 24;

std::uint64_t seed() {
    static const std::uint64_t chosen = [] {
        const char* wanted = std::getenv("TOCSIN_SEED");
        const std::uint64_t value =
            wanted != nullptr ? std::strtoull(wanted, nullptr, 0) : std::random_device{}();
        std::printf("TOCSIN_SEED=%llu\n", static_cast<unsigned long long>(value));
        return value;
    }();
    return chosen;
}

std::unique_ptr<append_log::file> file_on(const std::shared_ptr<disk>& on) {
    return std::make_unique<memory_file>(on);
}
std::unique_ptr<append_log::file> faulty_on(const std::shared_ptr<disk>& on,
                                            const std::shared_ptr<faults>& what) {
    return std::make_unique<faulty_file>(file_on(on), what);
}

std::vector<std::string> payloads_of(const bytes& content) {
    memory_file file(std::make_shared<disk>(content));
    append_log::reader from(file);
    std::vector<std::string> payloads;
    while (auto each = from.next()) {
        EXPECT_EQ(each->sequence, payloads.size() + 1);
        payloads.push_back(std::move(each->payload));
    }
    return payloads;
}

// The bytes of a log with these records. Each was acknowledged before the next was appended.
bytes log_of(const std::vector<std::string>& payloads) {
    const auto on = std::make_shared<disk>();
    log all(file_on(on));
    for (const std::string& each : payloads) all.append(each);
    return on->content();
}

TEST(Crc32c, IsTheOneOfTheStandard) {
    const std::string digits = "123456789";
    EXPECT_EQ(append_log::crc32c(std::as_bytes(std::span(digits))), 0xE3069283u);
    const std::vector<std::byte> zeros(32);
    EXPECT_EQ(append_log::crc32c(zeros), 0x8A9136AAu);  // RFC 3720, appendix B.4
    const auto all = std::as_bytes(std::span(digits));
    EXPECT_EQ(append_log::crc32c(all.subspan(4), append_log::crc32c(all.first(4))), 0xE3069283u);
}

TEST(AppendLog, KeepsWhatIsAppended) {
    const auto on = std::make_shared<disk>();
    const std::string binary("\0\xff\n\r", 4);
    {
        log mine(file_on(on));
        EXPECT_EQ(mine.append("one"), 1u);
        EXPECT_EQ(mine.append(""), 2u);
        EXPECT_EQ(mine.append(binary), 3u);
    }
    log again(file_on(on));
    EXPECT_EQ(again.recovered().records, 3u);
    EXPECT_EQ(again.recovered().cut_off, 0u);
    EXPECT_EQ(again.append("four"), 4u);
    EXPECT_EQ(payloads_of(on->content()), (std::vector<std::string>{"one", "", binary, "four"}));
}

TEST(AppendLog, LimitsThePayload) {
    const auto on = std::make_shared<disk>();
    log mine(file_on(on));
    const std::string longest(append_log::longest_payload, 'x');
    EXPECT_EQ(mine.append(longest), 1u);
    EXPECT_THROW(mine.append(longest + 'x'), std::length_error);
    EXPECT_EQ(payloads_of(on->content()), (std::vector<std::string>{longest}));
}

TEST(AppendLog, AppendsNothingAfterTheDeadlineWhileAnotherThreadAppends) {
    const auto on = std::make_shared<disk>();
    const auto plan = std::make_shared<faults>();
    tocsin::manual_reset_event syncs;
    tocsin::manual_reset_event go_on;
    log mine(faulty_on(on, plan));
    plan->on_sync = [&] {
        syncs.set();
        go_on.wait();
        return 0;
    };
    std::thread other([&] { EXPECT_EQ(mine.append("in time", std::chrono::hours(1)), 1u); });
    syncs.wait();
    EXPECT_EQ(mine.append("late", std::chrono::seconds(0)), std::nullopt);
    go_on.set();
    other.join();
    EXPECT_EQ(mine.append("nobody else appends", std::chrono::seconds(0)), 2u);
    EXPECT_EQ(payloads_of(on->content()), (std::vector<std::string>{"in time", "nobody else appends"}));
}

TEST(AppendLog, ManyThreadsShareASync) {
    const auto on = std::make_shared<disk>();
    std::atomic<int> syncs{0};
    const auto plan = std::make_shared<faults>();
    plan->on_sync = [&] {
        ++syncs;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        return 0;
    };
    constexpr unsigned threads = 8;
    constexpr unsigned each = 100;
    std::vector<std::vector<std::uint64_t>> given(threads);
    {
        log mine(faulty_on(on, plan));
        std::vector<std::jthread> running;
        for (unsigned thread = 0; thread != threads; ++thread) {
            running.emplace_back([&mine, &given, thread] {
                for (unsigned i = 0; i != each; ++i) {
                    given[thread].push_back(mine.append(std::to_string(thread) + ' ' + std::to_string(i)));
                }
            });
        }
    }
    const auto payloads = payloads_of(on->content());
    EXPECT_EQ(payloads.size(), threads * each);
    for (unsigned thread = 0; thread != threads; ++thread) {
        for (unsigned i = 0; i != each; ++i) {
            EXPECT_EQ(payloads.at(given[thread][i] - 1), std::to_string(thread) + ' ' + std::to_string(i));
        }
    }
    EXPECT_LE(syncs.load(), static_cast<int>(threads * each) + 1);  // one more for the start
}

TEST(AppendLog, AGroupIsCutWhereItsWriteWouldBeTooLong) {
    const auto on = std::make_shared<disk>();
    std::atomic<std::size_t> synced{0};
    std::atomic<std::size_t> longest{0};
    const auto plan = std::make_shared<faults>();
    plan->on_sync = [&] {
        const std::size_t size = on->content().size();
        longest = std::max(longest.load(), size - synced.exchange(size));
        std::this_thread::sleep_for(std::chrono::milliseconds(2));  // so that the next records gather
        return 0;
    };
    constexpr std::size_t threads = 6;
    const std::string payload(400'000, 'x');
    std::uint64_t groups = 0;
    {
        log mine(faulty_on(on, plan));
        {
            std::vector<std::jthread> running;
            for (std::size_t i = 0; i != threads; ++i) {
                running.emplace_back([&] {
                    for (int turn = 0; turn != 3; ++turn) mine.append(payload);
                });
            }
        }
        groups = mine.statistics().groups;
    }
    EXPECT_EQ(payloads_of(on->content()).size(), threads * 3);
    EXPECT_LE(longest.load(), append_log::longest_write);
    EXPECT_GE(groups, threads * 3 / 2) << "two of these fit into a write";
}

// Recovery

TEST(AppendLogRecovery, StopsAtALastRecordCutAtAnyByte) {
    const std::vector<std::string> first_two{"first", "second"};
    const std::size_t end = log_of(first_two).size();
    const bytes whole = log_of({"first", "second", "the third is the last"});
    for (std::size_t size = end; size != whole.size(); ++size) {
        const auto on =
            std::make_shared<disk>(bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
        log mine(file_on(on));
        ASSERT_EQ(mine.recovered().records, 2u) << "cut at " << size;
        ASSERT_EQ(mine.recovered().cut_off, size - end);
        ASSERT_EQ(on->content().size(), end);
        ASSERT_EQ(mine.append("3"), 3u);
        ASSERT_EQ(payloads_of(on->content()), (std::vector<std::string>{"first", "second", "3"}));
    }
}

TEST(AppendLogRecovery, StopsAtALastRecordWithAnyBitFlipped) {
    const std::size_t end = log_of({"first", "second"}).size();
    const bytes whole = log_of({"first", "second", "third"});
    for (std::size_t bit = end * 8; bit != whole.size() * 8; ++bit) {
        bytes flipped = whole;
        flipped[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
        const auto on = std::make_shared<disk>(flipped);
        log mine(file_on(on));
        ASSERT_EQ(mine.recovered().records, 2u) << "bit " << bit;
        ASSERT_EQ(on->content().size(), end);
    }
}

TEST(AppendLogRecovery, StopsAtZerosBehindTheEnd) {
    for (const std::size_t zeros : {1u, 23u, 24u, 25u, 4096u, 100'000u}) {
        bytes content = log_of({"first"});
        content.resize(content.size() + zeros);
        const auto on = std::make_shared<disk>(content);
        log mine(file_on(on));
        EXPECT_EQ(mine.recovered().records, 1u);
        EXPECT_EQ(mine.recovered().cut_off, zeros);
    }
}

TEST(AppendLogRecovery, RefusesDamageToWhatWasDurable) {
    const bytes whole = log_of({"first", "second", "third"});
    const std::size_t second = log_of({"first"}).size();
    const std::size_t third = log_of({"first", "second"}).size();
    for (std::size_t at = begin_size; at != third; ++at) {
        bytes damaged = whole;
        damaged[at] ^= std::byte{1};
        EXPECT_THROW(log(file_on(std::make_shared<disk>(damaged))), damage_error) << at << " of " << second;
    }
}

TEST(AppendLogRecovery, IsNotMisledByALogInsideARecord) {
    const bytes inner = log_of({"1", "2", "3", "4", "5"});
    const std::string payload(reinterpret_cast<const char*>(inner.data()), inner.size());
    bytes torn = log_of({payload});
    torn.pop_back();
    const auto on = std::make_shared<disk>(torn);
    log mine(file_on(on));
    EXPECT_EQ(mine.recovered().records, 0u);
    EXPECT_EQ(mine.recovered().cut_off, torn.size() - begin_size);
}

TEST(AppendLogRecovery, BeginsALogWhoseBeginningIsCutOrPartlyZeros) {
    const bytes whole = log_of({});
    ASSERT_EQ(whole.size(), begin_size);
    for (std::size_t size = 0; size != whole.size(); ++size) {
        for (std::size_t kept = 0; kept <= size; ++kept) {
            bytes left(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(kept));
            left.resize(size);
            const auto on = std::make_shared<disk>(left);
            log mine(file_on(on));
            EXPECT_EQ(mine.append("first"), 1u);
            EXPECT_EQ(payloads_of(on->content()), (std::vector<std::string>{"first"}));
        }
    }
}

TEST(AppendLogRecovery, RefusesAFileThatIsNoLog) {
    for (const std::string& text :
         {std::string("#!/bin/sh\n"), std::string("TOCSLOG2 and then some more"), std::string(100, '\0')}) {
        const auto* first = reinterpret_cast<const std::byte*>(text.data());
        const auto on = std::make_shared<disk>(bytes(first, first + text.size()));
        EXPECT_THROW(log(file_on(on)), damage_error);
        EXPECT_EQ(on->content().size(), text.size());
    }
}

// Errors of the disk

// Three groups with known members: the first and the last have one record, the second has three.
struct three_groups {
    std::shared_ptr<disk> on = std::make_shared<disk>();
    std::shared_ptr<faults> plan = std::make_shared<faults>();
    std::map<std::string, std::string> outcome;  // for each payload: "acknowledged" or what was thrown

    // The second group's write fails with this error, or succeeds if the error is 0.
    void run(int error_of_second_write = 0) {
        tocsin::auto_reset_event go;
        tocsin::manual_reset_event begun;
        std::atomic<bool> held{false};
        int errors_left = 1;
        plan->on_write = [&] {
            if (held.exchange(false)) {
                begun.set();
                go.wait();
                return 0;
            }
            return begun.is_set() && errors_left-- > 0 ? error_of_second_write : 0;
        };
        log mine(faulty_on(on, plan));
        held.store(true);
        std::mutex mutex;
        const auto append = [&](const std::string& payload) {
            std::string how = "acknowledged";
            try {
                mine.append(payload);
            } catch (const write_error& error) {
                how = "write error " + std::to_string(error.code().value());
            } catch (const closed_error&) {
                how = "closed";
            }
            const std::lock_guard hold(mutex);
            outcome[payload] = how;
        };
        std::vector<std::jthread> threads;
        threads.emplace_back(append, "first");
        begun.wait();
        for (const char* payload : {"a", "b", "c"}) {
            threads.emplace_back(append, payload);
            while (mine.statistics().waiting != threads.size() - 1) std::this_thread::yield();
        }
        go.set();
        threads.clear();
        append("last");
        groups = mine.statistics().groups;
    }

    std::uint64_t groups = 0;
    std::vector<std::string> kept() const { return payloads_of(on->content()); }
};

using outcomes = std::map<std::string, std::string>;

TEST(AppendLogErrors, AFullDiskFailsExactlyItsGroup) {
    three_groups all;
    all.run(ENOSPC);
    const std::string full = "write error " + std::to_string(ENOSPC);
    EXPECT_EQ(
        all.outcome,
        (outcomes{
            {"first", "acknowledged"}, {"a", full}, {"b", full}, {"c", full}, {"last", "acknowledged"}}));
    EXPECT_EQ(all.kept(), (std::vector<std::string>{"first", "last"}));
    EXPECT_EQ(all.groups, 3u);
}

TEST(AppendLogErrors, NothingOfAFailedGroupComesBackBehindAShorterOne) {
    const auto on = std::make_shared<disk>();
    const auto plan = std::make_shared<faults>();
    log mine(faulty_on(on, plan));
    mine.append("first");
    plan->on_write = [] { return EIO; };
    plan->partly = [](std::size_t all) { return all; };  // fails although all of it was written
    EXPECT_THROW(mine.append("lost"), write_error);
    EXPECT_EQ(payloads_of(on->content()), (std::vector<std::string>{"first"}));
    plan->on_write = [] { return 0; };
    mine.append("second");
    EXPECT_EQ(payloads_of(on->content()), (std::vector<std::string>{"first", "second"}));
}

TEST(AppendLogErrors, AFailedSyncClosesTheLogForItsGroupAndAllLaterOnes) {
    three_groups all;
    int syncs = 0;
    all.plan->on_sync = [&] { return ++syncs == 3 ? EIO : 0; };  // the start's, the first group's, then this
    all.run();
    EXPECT_EQ(all.outcome, (outcomes{{"first", "acknowledged"},
                                     {"a", "closed"},
                                     {"b", "closed"},
                                     {"c", "closed"},
                                     {"last", "closed"}}));
    EXPECT_EQ(syncs, 3);
    const auto kept = all.kept();
    ASSERT_FALSE(kept.empty());
    EXPECT_EQ(kept[0], "first");
    for (const std::string& each : kept) EXPECT_NE(each, "last");
}

TEST(AppendLogErrors, SaysWhyItIsClosed) {
    const auto on = std::make_shared<disk>();
    const auto plan = std::make_shared<faults>();
    log mine(faulty_on(on, plan));
    plan->on_sync = [] { return EIO; };
    for (int i = 0; i != 2; ++i) {
        try {
            mine.append("x");
            ADD_FAILURE() << "acknowledged";
        } catch (const closed_error& error) {
            EXPECT_NE(std::string(error.what()).find("fdatasync"), std::string::npos) << error.what();
            EXPECT_NE(std::string(error.what()).find("closed for writing"), std::string::npos)
                << error.what();
        }
    }
}

TEST(AppendLogErrors, AWriteThatCannotBeTakenBackClosesTheLog) {
    const auto on = std::make_shared<disk>();
    const auto plan = std::make_shared<faults>();
    log mine(faulty_on(on, plan));
    mine.append("first");
    plan->on_write = [] { return ENOSPC; };
    plan->on_truncate = [] { return EIO; };
    EXPECT_THROW(mine.append("second"), closed_error);
    plan->on_write = [] { return 0; };
    plan->on_truncate = [] { return 0; };
    EXPECT_THROW(mine.append("third"), closed_error);
    log again(file_on(on));
    EXPECT_EQ(again.recovered().records, 1u);
}

// Real files

TEST(AppendLogFile, KeepsWhatIsAppendedAndIsCutWhereItIsTorn) {
    const folder here;
    const std::string payload(5'000, 'p');
    {
        log mine(open_file(here / "log", access::write));
        std::vector<std::jthread> threads;
        for (int i = 0; i != 8; ++i) threads.emplace_back([&] { mine.append(payload); });
    }
    std::filesystem::resize_file(here / "log", std::filesystem::file_size(here / "log") - 1);
    log again(open_file(here / "log", access::write));
    EXPECT_EQ(again.recovered().records, 7u);
    EXPECT_EQ(again.recovered().cut_off, header_size + payload.size() - 1);
    EXPECT_EQ(again.append("8"), 8u);
    const auto file = open_file(here / "log", access::read);
    append_log::reader from(*file);
    std::vector<std::string> payloads;
    while (auto each = from.next()) payloads.push_back(std::move(each->payload));
    std::vector<std::string> wanted(7, payload);
    wanted.push_back("8");
    EXPECT_EQ(payloads, wanted);
    EXPECT_EQ(from.rest(), 0u);
}

TEST(AppendLogFile, ASecondWriterIsRefused) {
    const folder here;
    const log first(open_file(here / "log", access::write));
    EXPECT_THROW(open_file(here / "log", access::write), std::system_error);
    EXPECT_NO_THROW(open_file(here / "log", access::read));
}

TEST(AppendLogFile, ThatCannotBeOpenedIsNamed) {
    const folder here;
    try {
        open_file(here / "missing", access::read);
        ADD_FAILURE();
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), std::errc::no_such_file_or_directory);
        EXPECT_NE(std::string(error.what()).find("missing"), std::string::npos);
    }
}

// Many threads append to a disk that fails at random, and the power fails at a random step of the disk. At the next
// start, every record that was acknowledged before is in the log, and no record that was refused or never appended.
class fate_of_records {
public:
    explicit fate_of_records(std::uint64_t number) : random_(seed() + number) {}

    void live_and_lose_power() {
        const auto plan = std::make_shared<faults>();
        const auto fails = static_cast<unsigned>(random_() % 3);
        std::mt19937_64 dice(random_());
        auto steps_left = static_cast<int>(random_() % 40);
        bytes left;
        const auto step = [&](int error) {  // one leader at a time calls it
            if (steps_left-- == 0) left = lose_power();
            return error;
        };
        plan->on_write = [&] { return step(fails > 0 && dice() % 6 == 0 ? ENOSPC : 0); };
        plan->on_truncate = [&] { return step(0); };
        plan->on_sync = [&] { return step(fails > 1 && dice() % 30 == 0 ? EIO : 0); };
        plan->partly = [&](std::size_t all) { return dice() % (all + 1); };
        try {
            log mine(faulty_on(disk_, plan));
            run_threads(mine);
        } catch (const std::system_error&) {  // the disk failed at the start
        }
        if (steps_left >= 0) left = lose_power();
        check(left);
        disk_ = std::make_shared<disk>(left);
        ++life_;
    }

private:
    void run_threads(log& mine) {
        std::vector<std::jthread> running;
        for (unsigned thread = 0; thread != 4; ++thread) {
            running.emplace_back([this, &mine, thread] {
                for (unsigned i = 0; i != 6; ++i) append(mine, thread, i);
            });
        }
    }

    void append(log& mine, unsigned thread, unsigned number) {
        const std::string payload = "life " + std::to_string(life_) + " thread " + std::to_string(thread) +
                                    " record " + std::to_string(number) +
                                    std::string((thread * 31 + number * 17) % 90, '.');
        note(appended_, payload);
        try {
            mine.append(payload);
            note(acknowledged_, payload);
        } catch (const write_error&) {
            note(refused_, payload);
        } catch (const closed_error&) {
        }
    }

    void note(std::set<std::string>& where, const std::string& payload) {
        const std::lock_guard held(mutex_);
        where.insert(payload);
    }

    // Returns what is on the disk after a power cut now, and notes what had been acknowledged and refused by then.
    bytes lose_power() {
        const std::lock_guard held(mutex_);
        must_be_there_ = acknowledged_;
        must_not_be_there_ = refused_;
        return disk_->after_power_cut(random_);
    }

    void check(const bytes& left) {
        const auto on = std::make_shared<disk>(left);
        log again(file_on(on));  // recovery accepts whatever the power cut left
        std::set<std::string> kept;
        for (const std::string& each : payloads_of(on->content())) {
            EXPECT_TRUE(kept.insert(each).second) << "twice: " << each;
            EXPECT_TRUE(appended_.contains(each)) << "invented: " << each;
            EXPECT_FALSE(must_not_be_there_.contains(each)) << "refused, but there: " << each;
        }
        for (const std::string& each : must_be_there_) EXPECT_TRUE(kept.contains(each)) << "lost: " << each;
        acknowledged_ = must_be_there_;
        refused_ = must_not_be_there_;
    }

    std::mt19937_64 random_;
    int life_ = 0;
    std::shared_ptr<disk> disk_ = std::make_shared<disk>();
    std::mutex mutex_;
    std::set<std::string> appended_, acknowledged_, refused_;
    std::set<std::string> must_be_there_, must_not_be_there_;
};

TEST(AppendLogPower, EveryAcknowledgedRecordSurvivesAndNoneIsInvented) {
    for (std::uint64_t number = 0; number != 300 && !testing::Test::HasFailure(); ++number) {
        SCOPED_TRACE("number " + std::to_string(number));
        fate_of_records record(number);
        for (int life = 0; life != 4; ++life) record.live_and_lose_power();
    }
}

}  // namespace
