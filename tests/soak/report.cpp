// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include "complaints.hpp"
#include "crew.hpp"
#include "disturbances.hpp"

#include <cinttypes>
#include <cstdio>
#include <string>
#include <thread>

#include <unistd.h>

namespace soak {
namespace {

std::string with_commas(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
        text.insert(static_cast<std::size_t>(at), ",");
    }
    return text;
}

std::string a_second(std::uint64_t number, std::chrono::duration<double> elapsed) {
    return with_commas(static_cast<std::uint64_t>(static_cast<double>(number) / elapsed.count()));
}

double milliseconds(std::chrono::nanoseconds time) {
    return std::chrono::duration<double, std::milli>(time).count();
}

counts sum_of(const std::deque<book>& books) {
    counts all;
    for (const book& each : books) all += each.total();
    return all;
}

void print_row(const char* name, const counts& row, std::chrono::duration<double> elapsed) {
    std::printf("%-24s %15s %12s %15s %12s %14s %14s %9.1f ms\n", name, with_commas(row.operations).c_str(),
                a_second(row.operations, elapsed).c_str(), with_commas(row.races).c_str(),
                a_second(row.races, elapsed).c_str(), with_commas(row.in).c_str(),
                with_commas(row.out).c_str(), milliseconds(row.longest_wait));
}

}  // namespace

void print_header(double minutes, std::uint64_t seed, std::string_view scene) {
    std::printf("tocsin soak: %g minutes, %u processors; again: ./dev soak %g %" PRIu64, minutes,
                std::thread::hardware_concurrency(), minutes, seed);
    if (!scene.empty()) std::printf(" '%.*s'", static_cast<int>(scene.size()), scene.data());
    std::printf("\n");
    std::fflush(stdout);
}

void progress::look(const std::deque<book>& books, std::chrono::duration<double> elapsed,
                    std::size_t threads) {
    static const double step = isatty(STDOUT_FILENO) != 0 ? 3 : 10;
    if (next_ == 0) next_ = step;
    if (elapsed.count() < next_) return;
    next_ += step;
    const counts all = sum_of(books);
    std::printf("%7.0f s  %15s operations  %15s races  %4zu threads  longest wait %.1f ms\n", elapsed.count(),
                with_commas(all.operations).c_str(), with_commas(all.races).c_str(), threads,
                milliseconds(all.longest_wait));
    std::fflush(stdout);
}

bool print_table(const std::deque<book>& books, std::chrono::duration<double> elapsed,
                 const sleepers_report& rested, bool interrupted) {
    std::printf("\n%-24s %15s %12s %15s %12s %14s %14s %12s\n", "primitive", "operations", "a second",
                "races", "a second", "tokens in", "tokens out", "longest wait");
    for (const book& each : books) {
        const counts row = each.total();
        print_row(each.name().c_str(), row, elapsed);
        expect(row.in == row.out,
               each.name() + ": " + with_commas(row.in) + " tokens in, " + with_commas(row.out) + " out");
    }
    print_row("all", sum_of(books), elapsed);

    const auto& met = disturbed();
    std::printf("\nsleepers      %zu threads: %.3f ms of processor time in %.0f s, woken %ld times\n",
                rested.threads, milliseconds(rested.processor_time), elapsed.count(), rested.wake_ups);
    std::printf(
        "disturbances  %s threads moved, %s processors taken away, %s nice values, "
        "%s threads real-time for a moment%s\n",
        with_commas(met.moves).c_str(), with_commas(met.removals).c_str(),
        with_commas(met.priorities).c_str(), with_commas(met.real_time).c_str(),
        met.real_time == 0 ? " (not permitted)" : "");
    std::printf("threads       %s started%s\n", with_commas(crew::threads_started()).c_str(),
                interrupted ? "; ended early, as asked" : "");
    const auto wrong = complaints();
    if (wrong.empty()) {
        std::printf("result        ok\n");
    } else {
        for (const auto& each : wrong) std::printf("result        FAILED: %s\n", each.c_str());
    }
    std::fflush(stdout);
    return wrong.empty();
}

}  // namespace soak
