// SPDX-License-Identifier: Apache-2.0
// The log from the command line: append, dump, verify, bench.
#include "append_log.hpp"
#include "file.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using arguments = std::vector<std::string>;

constexpr const char* usage =
    "append_log append FILE [TEXT...]                   one record a text, or a line of the standard input;\n"
    "                                                   prints the sequence number when it is durable\n"
    "append_log dump FILE                               sequence number, tab, payload\n"
    "append_log verify FILE                             exit code 1 if the end is torn, 2 if it is damaged\n"
    "append_log bench FILE [THREADS] [SECONDS] [BYTES]  appends as fast as the disk takes it\n";

struct wrong_usage : std::runtime_error {
    using runtime_error::runtime_error;
};

int append(const std::string& path, const arguments& texts) {
    append_log::log log(append_log::open_file(path, append_log::access::write));
    if (log.recovered().cut_off != 0) {
        std::cerr << "cut off " << log.recovered().cut_off
                  << " bytes of a record that was never acknowledged\n";
    }
    const auto add = [&](const std::string& text) { std::cout << log.append(text) << std::endl; };
    for (const std::string& text : texts) add(text);
    if (texts.empty()) {
        for (std::string line; std::getline(std::cin, line);) add(line);
    }
    return 0;
}

int dump(const std::string& path) {
    const auto file = append_log::open_file(path, append_log::access::read);
    append_log::reader from(*file);
    while (const auto record = from.next()) std::cout << record->sequence << '\t' << record->payload << '\n';
    return 0;
}

int verify(const std::string& path) {
    const auto file = append_log::open_file(path, append_log::access::read);
    append_log::reader from(*file);
    while (from.next()) {
    }
    std::cout << from.last_sequence() << " records, " << from.end() << " bytes\n";
    if (from.rest() == 0) return 0;
    const bool damaged = from.rest_shows_damage();
    std::cout << from.rest() << " bytes after them: "
              << (damaged
                      ? "record " + std::to_string(from.last_sequence() + 1) + " is damaged, but was durable"
                      : "torn records that were never acknowledged")
              << '\n';
    return damaged ? 2 : 1;
}

template <class Number>
Number number(const arguments& from, std::size_t at, Number otherwise) {
    if (from.size() <= at) return otherwise;
    Number value{};
    const auto [end, error] = std::from_chars(from[at].data(), from[at].data() + from[at].size(), value);
    if (error != std::errc() || end != from[at].data() + from[at].size() || !(value > 0)) {
        throw wrong_usage("not a number above zero: " + from[at]);
    }
    return value;
}

int bench(const std::string& path, const arguments& rest) {
    using clock = std::chrono::steady_clock;
    const auto threads = number<unsigned>(rest, 0, 8);
    const auto seconds = number<double>(rest, 1, 2.0);
    const std::string payload(number<std::size_t>(rest, 2, 100), 'x');

    append_log::log log(append_log::open_file(path, append_log::access::write));
    std::vector<std::vector<double>> each(threads);
    const auto begin = clock::now();
    {
        const auto end =
            begin + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds));
        std::vector<std::jthread> running;
        for (auto& latencies : each) {
            running.emplace_back([&log, &payload, &latencies, end] {
                auto before = clock::now();
                do {
                    log.append(payload);
                    const auto after = clock::now();
                    latencies.push_back(std::chrono::duration<double, std::micro>(after - before).count());
                    before = after;
                } while (before < end);
            });
        }
    }
    const double took = std::chrono::duration<double>(clock::now() - begin).count();

    std::vector<double> all;
    for (const auto& latencies : each) all.insert(all.end(), latencies.begin(), latencies.end());
    std::sort(all.begin(), all.end());
    const auto counts = log.statistics();
    const auto count = static_cast<double>(counts.submissions);
    std::printf("%u threads, %zu bytes: %.0f appends/s, %.0f syncs/s, %.1f appends a sync (most %zu)\n",
                threads, payload.size(), count / took, static_cast<double>(counts.groups) / took,
                count / static_cast<double>(counts.groups), counts.largest_group);
    std::printf("microseconds: median %.0f, 99 %% %.0f, longest %.0f; a sync %.0f\n", all[all.size() / 2],
                all[all.size() * 99 / 100], all.back(),
                std::chrono::duration<double, std::micro>(counts.flushing).count() /
                    static_cast<double>(counts.groups));
    return 0;
}

int run(arguments all) {
    if (all.size() < 2) throw wrong_usage("a command and a file are needed");
    const std::string command = all[0];
    const std::string path = all[1];
    const arguments rest(all.begin() + 2, all.end());
    if (command == "append") return append(path, rest);
    if (command == "dump") return dump(path);
    if (command == "verify") return verify(path);
    if (command == "bench") return bench(path, rest);
    throw wrong_usage("unknown command " + command);
}

}  // namespace

int main(int count, char** values) {
    try {
        return run(arguments(values + 1, values + count));
    } catch (const wrong_usage& error) {
        std::cerr << "append_log: " << error.what() << "\n\n" << usage;
        return 64;
    } catch (const std::exception& error) {
        std::cerr << "append_log: " << error.what() << '\n';
        return 3;
    }
}
