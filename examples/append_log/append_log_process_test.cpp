// SPDX-License-Identifier: Apache-2.0
// The log on real files: processes killed at random moments, disks that are really full, and the program.
//
// The test starts itself again as the process that is killed or runs out of space: see main().
#include "append_log.hpp"
#include "test_files.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;
using append_log::access;
using append_log::folder;
using append_log::log;
using append_log::open_file;

constexpr int skipped = 77;
constexpr unsigned writer_threads = 4;

std::vector<append_log::record> records_of(const fs::path& path) {
    const auto file = open_file(path, access::read);
    append_log::reader from(*file);
    std::vector<append_log::record> records;
    while (auto each = from.next()) records.push_back(std::move(*each));
    return records;
}

// A name is what a writer appends. An acknowledgement is what it prints when the record is durable, and is small enough
// to be written to a pipe in one step.
struct name {
    std::uint32_t life;
    std::uint32_t thread;
    std::uint32_t number;
    auto operator<=>(const name&) const = default;
};
struct acknowledgement {
    name who;
    std::uint64_t sequence;
};

// Most payloads are short. Some are so long that a writer can be killed while it writes them.
std::string payload_of(const name& who) {
    std::string text =
        std::to_string(who.life) + ' ' + std::to_string(who.thread) + ' ' + std::to_string(who.number) + ' ';
    std::minstd_rand random(who.life * 1'000'003 + who.thread * 10'007 + who.number + 1);
    random.discard(3);
    const std::size_t size = text.size() + (random() % 200 == 0 ? random() % 100'000 : random() % 200);
    for (auto letter = random() % 26; text.size() < size; ++letter)
        text += static_cast<char>('a' + letter % 26);
    return text;
}

name name_in(const std::string& payload) {
    name who{};
    std::istringstream(payload) >> who.life >> who.thread >> who.number;
    return who;
}

// Appends until the process is killed, and writes acknowledgements to the standard output.
int write_for_ever(const char* path, std::uint32_t life) {
    log mine(open_file(path, access::write));
    std::vector<std::jthread> running;
    for (std::uint32_t thread = 0; thread != writer_threads; ++thread) {
        running.emplace_back([&mine, life, thread] {
            for (std::uint32_t number = 0;; ++number) {
                acknowledgement done{{life, thread, number}, 0};
                done.sequence = mine.append(payload_of(done.who));
                if (::write(STDOUT_FILENO, &done, sizeof done) != sizeof done) ::_exit(1);
            }
        });
    }
    running.clear();
    return 0;
}

class process {
public:
    explicit process(std::vector<std::string> arguments, const char* program = "/proc/self/exe") {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
        std::vector<char*> values{const_cast<char*>(program)};
        for (std::string& each : arguments) values.push_back(each.data());
        values.push_back(nullptr);
        id_ = ::fork();
        if (id_ == 0) {
            ::dup2(ends[1], STDOUT_FILENO);
            ::execv(program, values.data());
            ::_exit(126);
        }
        ::close(ends[1]);
        output_ = ends[0];
    }
    process(const process&) = delete;
    process& operator=(const process&) = delete;
    ~process() {
        if (!status_) {
            kill();
            end();
        }
        ::close(output_);
    }

    void kill() const { ::kill(id_, SIGKILL); }

    // Reads what the process prints until it has printed something.
    void read_first() {
        if (printed_.empty()) (void)read_some();
    }
    // Reads until that time, or until the process ends.
    void read_until(std::chrono::steady_clock::time_point when) {
        for (;;) {
            const auto left =
                std::chrono::duration_cast<std::chrono::nanoseconds>(when - std::chrono::steady_clock::now());
            const timespec longest{0, std::max<long>(0, left.count())};
            pollfd ready{output_, POLLIN, 0};
            if (::ppoll(&ready, 1, &longest, nullptr) <= 0 || !read_some()) return;
        }
    }
    void read_all() {
        while (read_some()) {
        }
    }
    const std::string& printed() const { return printed_; }

    int end() {
        if (!status_) {
            int status = 0;
            ::waitpid(id_, &status, 0);
            status_ = status;
        }
        return WIFEXITED(*status_) ? WEXITSTATUS(*status_) : -WTERMSIG(*status_);
    }

private:
    bool read_some() {
        char buffer[65536];
        const ssize_t got = ::read(output_, buffer, sizeof buffer);
        if (got > 0) printed_.append(buffer, static_cast<std::size_t>(got));
        return got > 0;
    }

    pid_t id_ = -1;
    int output_ = -1;
    std::string printed_;
    std::optional<int> status_;
};

std::vector<acknowledgement> acknowledgements_in(const std::string& printed) {
    std::vector<acknowledgement> all(printed.size() / sizeof(acknowledgement));
    if (!all.empty()) std::memcpy(all.data(), printed.data(), all.size() * sizeof(acknowledgement));
    return all;
}

// Checks that every acknowledged record is where its writer said. Every record must be one that its writer had appended
// or could just have been appending, and the records of a writer must be in its order.
void check_log(const fs::path& path, const std::vector<acknowledgement>& acknowledged, int& torn) {
    const auto file = open_file(path, access::read);
    append_log::reader from(*file);
    std::vector<append_log::record> records;
    while (auto each = from.next()) records.push_back(std::move(*each));
    torn += from.rest() != 0 ? 1 : 0;
    ASSERT_FALSE(from.rest_shows_damage());
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> acknowledged_by;
    for (const acknowledgement& each : acknowledged) {
        ASSERT_GE(records.size(), each.sequence) << "lost";
        ASSERT_EQ(records[each.sequence - 1].payload, payload_of(each.who));
        acknowledged_by[{each.who.life, each.who.thread}] = each.who.number + 1;
    }
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> seen_of;
    for (const append_log::record& each : records) {
        const name who = name_in(each.payload);
        ASSERT_EQ(each.payload, payload_of(who)) << "invented or torn";
        ASSERT_EQ(who.number, (seen_of[{who.life, who.thread}]++)) << "twice, or out of order";
    }
    // At most the one record that each thread was appending when it was killed.
    for (const auto& [writer, count] : seen_of) ASSERT_LE(count, acknowledged_by[writer] + 1) << "invented";
}

TEST(AppendLogProcess, KilledAtRandomMomentsItLosesNothingAcknowledged) {
    std::mt19937_64 random(std::random_device{}());
    constexpr int kills = 400;
    constexpr int kills_of_a_file = 10;
    // Every fourth file is on the disk. The others are in memory, where more happens between two kills.
    const fs::path memory = fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
    const auto begin = std::chrono::steady_clock::now();
    std::size_t all = 0;
    int done = 0;
    int torn = 0;
    // The time is limited, so on a slow disk the test makes fewer rounds.
    const auto may_go_on = [&] {
        return done < kills && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20);
    };
    while (may_go_on()) {
        const folder here(done / kills_of_a_file % 4 == 0 ? fs::temp_directory_path() : memory);
        const fs::path path = here / "log";
        std::vector<acknowledgement> acknowledged;
        for (std::uint32_t life = 0; life != kills_of_a_file && may_go_on(); ++life, ++done) {
            process writer({"--write-for-ever", path.string(), std::to_string(life)});
            // Mostly while it writes, sometimes while it starts and recovers.
            if (random() % 5 != 0) writer.read_first();
            const auto moment = std::chrono::microseconds(random() % 6'000);
            writer.read_until(std::chrono::steady_clock::now() + moment);
            writer.kill();
            writer.read_all();
            ASSERT_EQ(writer.end(), -SIGKILL);
            for (const acknowledgement& each : acknowledgements_in(writer.printed()))
                acknowledged.push_back(each);
            if (!fs::exists(path)) continue;
            check_log(path, acknowledged, torn);
            if (testing::Test::HasFatalFailure()) return;
        }
        all += acknowledged.size();
    }
    std::printf("%d processes killed, %zu records acknowledged and there, %d torn ends\n", done, all, torn);
    EXPECT_GT(all, 0u);
}

// Appends from several threads until the disk is full, makes room, and continues. Then checks what is in the log.
int fill_up(const fs::path& path, int expected, const std::function<void()>& make_room) {
    std::mutex mutex;
    std::set<std::string> acknowledged;
    std::set<std::string> refused;
    bool other = false;
    {
        log mine(open_file(path, access::write));
        const auto append = [&](const std::string& payload) {
            bool there = false;
            try {
                mine.append(payload);
                there = true;
            } catch (const append_log::write_error& error) {
                if (error.code().value() != expected) other = true;
            } catch (const std::exception& error) {
                std::fprintf(stderr, "%s\n", error.what());
                other = true;
            }
            const std::lock_guard held(mutex);
            (there ? acknowledged : refused).insert(payload);
            return there;
        };
        {
            std::vector<std::jthread> running;
            for (unsigned thread = 0; thread != writer_threads; ++thread) {
                running.emplace_back([&, thread] {
                    std::string filler(1000 + thread * 100, 'x');
                    for (int i = 0; i != 1000; ++i) {
                        if (!append(std::to_string(thread) + ' ' + std::to_string(i) + ' ' + filler)) return;
                    }
                });
            }
        }
        const bool was_full = refused.size() == writer_threads;
        make_room();
        if (!was_full || !append("there is room again") || other) return 1;
    }
    log again(open_file(path, access::write));
    std::set<std::string> kept;
    for (const auto& each : records_of(path)) kept.insert(each.payload);
    std::printf("%zu acknowledged, %zu refused, %zu kept\n", acknowledged.size(), refused.size(),
                kept.size());
    return kept == acknowledged ? 0 : 2;
}

int fill_up_to_the_limit(const char* path) {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 100'000;
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return skipped;
    return fill_up(path, EFBIG, [&] {
        limit.rlim_cur = limit.rlim_max;
        ::setrlimit(RLIMIT_FSIZE, &limit);
    });
}

// Does so on a separate file system that only this process sees.
int fill_up_a_small_disk(const char* where) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", where, "tmpfs", 0, "size=256k") != 0) {
        return skipped;
    }
    const fs::path ballast = fs::path(where) / "ballast";
    std::FILE* const file = std::fopen(ballast.c_str(), "w");
    const std::string filler(64 * 1024, 'x');
    std::fwrite(filler.data(), 1, filler.size(), file);
    std::fclose(file);
    return fill_up(fs::path(where) / "log", ENOSPC, [&] { fs::remove(ballast); });
}

void expect_success(std::vector<std::string> arguments) {
    process filling(std::move(arguments));
    filling.read_all();
    const int result = filling.end();
    if (result == skipped) GTEST_SKIP() << "not permitted here";
    EXPECT_EQ(result, 0);
    std::printf("%s", filling.printed().c_str());
}

TEST(AppendLogProcess, AFileThatMayNotGrowFailsOnlyAppendsThatDoNotFit) {
    const folder here;
    expect_success({"--fill-up-to-the-limit", (here / "log").string()});
}

TEST(AppendLogProcess, AFullDiskFailsOnlyAppendsThatDoNotFit) {
    const folder here;
    fs::create_directory(here / "disk");
    expect_success({"--fill-up-a-small-disk", (here / "disk").string()});
}

struct ending {
    int code;
    std::string printed;
};

ending run_program(std::vector<std::string> arguments) {
    process program(std::move(arguments), APPEND_LOG_PROGRAM);
    program.read_all();
    const int code = program.end();
    return {code, program.printed()};
}

TEST(AppendLogProgram, AppendsDumpsAndVerifies) {
    const folder here;
    const std::string path = (here / "log").string();
    EXPECT_EQ(run_program({"append", path, "one", "two"}).printed, "1\n2\n");
    EXPECT_EQ(run_program({"append", path, "three"}).printed, "3\n");
    EXPECT_EQ(run_program({"dump", path}).printed, "1\tone\n2\ttwo\n3\tthree\n");
    const ending whole = run_program({"verify", path});
    EXPECT_EQ(whole.code, 0);
    EXPECT_EQ(whole.printed.substr(0, 9), "3 records");
    fs::resize_file(path, fs::file_size(path) - 1);
    EXPECT_EQ(run_program({"verify", path}).code, 1);
    EXPECT_EQ(run_program({"dump", path}).printed, "1\tone\n2\ttwo\n");
    EXPECT_EQ(run_program({"append", path, "again"}).printed, "3\n");
    EXPECT_EQ(run_program({"verify", path}).code, 0);
}

TEST(AppendLogProgram, MeasuresTheDisk) {
    const folder here;
    const ending result = run_program({"bench", (here / "log").string(), "4", "0.2", "50"});
    EXPECT_EQ(result.code, 0);
    EXPECT_NE(result.printed.find("appends a sync"), std::string::npos) << result.printed;
}

TEST(AppendLogProgram, SaysWhatIsWrong) {
    const folder here;
    const std::string path = (here / "log").string();
    EXPECT_EQ(run_program({}).code, 64);
    EXPECT_EQ(run_program({"sing", path}).code, 64);
    EXPECT_EQ(run_program({"bench", path, "none"}).code, 64);
    EXPECT_EQ(run_program({"dump", path}).code, 3);
}

}  // namespace

int main(int count, char** values) {
    const std::string role = count > 2 ? values[1] : "";
    if (role == "--write-for-ever")
        return write_for_ever(values[2], static_cast<std::uint32_t>(std::atoi(values[3])));
    if (role == "--fill-up-to-the-limit") return fill_up_to_the_limit(values[2]);
    if (role == "--fill-up-a-small-disk") return fill_up_a_small_disk(values[2]);
    testing::InitGoogleTest(&count, values);
    return RUN_ALL_TESTS();
}
